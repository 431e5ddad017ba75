//! Entries that are damaged or put together of parts, against what prost makes of the same declarations.

use prost::Message as _;

use super::{HttpEntry, TcpEntry};
use crate::{
    declared,
    entry::Entry,
    limits::Limits,
    testing::{Numbers, decode_all, field, unknown_fields},
};

const ENTRIES: u64 = 4_000;

/// The entry of a list with this one alone; `None`: it is unreadable.
fn decoded(list: u32, entry: &[u8]) -> Option<(Entry, u64)> {
    let message = field(list, &field(1, entry));
    let (decoded, mut entries) = decode_all(message, &Limits::default()).unwrap();
    assert_eq!(decoded.counts.entries + decoded.counts.unreadable, 1);
    Some((entries.pop()?, decoded.counts.malformed_values))
}

/// Parts of every kind that an entry has, in any order, some of them twice.
fn random_parts(numbers: &mut Numbers) -> Vec<u8> {
    let mut encoded = Vec::new();
    for _ in 0..numbers.below(4) {
        let common = random_fields(numbers, 33, 2);
        encoded.extend(field(1, &common));
    }
    for _ in 0..numbers.below(3) {
        let content = random_fields(numbers, 12, 1);
        encoded.extend(field(
            2 + u32::try_from(numbers.below(3)).unwrap(),
            &content,
        ));
    }
    if numbers.one_in(4) {
        encoded.extend(unknown_fields());
    }
    encoded
}

fn random_fields(numbers: &mut Numbers, most: u64, depth: u32) -> Vec<u8> {
    let mut encoded = Vec::new();
    for _ in 0..numbers.below(8) {
        let number = 1 + u32::try_from(numbers.below(most)).unwrap();
        // Numbers where numbers are expected, about.
        let is_text = depth == 0 && numbers.one_in(2) || depth > 0 && number <= 23;
        if !is_text {
            prost::encoding::encode_varint(u64::from(number << 3), &mut encoded);
            prost::encoding::encode_varint(numbers.size(), &mut encoded);
        } else if depth == 0 || numbers.one_in(3) {
            encoded.extend(field(number, numbers.text().as_bytes()));
        } else {
            encoded.extend(field(number, &random_fields(numbers, 4, depth - 1)));
        }
    }
    encoded
}

/// Whether the group that prost skips is what makes an entry unreadable here.
fn has_group(read: &[u8]) -> bool {
    read.iter().any(|byte| byte & 7 == 3)
}

#[test]
fn what_is_put_together_or_damaged_is_what_prost_reads() {
    let (mut readable, mut unreadable, mut groups) = (0, 0, 0);
    for seed in 0..ENTRIES {
        let mut numbers = Numbers::new(seed);
        let mut entry = random_parts(&mut numbers);
        if numbers.one_in(2) && !entry.is_empty() {
            let place = numbers.index(entry.len());
            entry[place] = numbers.next().to_be_bytes()[0];
        }
        let http = declared::HttpEntry::decode(entry.as_slice()).ok();
        let http = http.filter(|read| declared::Response::decode(read.response.clone()).is_ok());
        let tcp = declared::TcpEntry::decode(entry.as_slice()).ok();
        let expected = [
            (2, http.map(|read| read.encode_to_vec())),
            (3, tcp.map(|read| read.encode_to_vec())),
        ];
        for (list, expected) in expected {
            let found = decoded(list, &entry);
            match expected {
                None => assert_eq!(found, None, "seed {seed}"),
                Some(_) if found.is_none() => {
                    assert!(has_group(&entry), "seed {seed}: {entry:?}");
                    groups += 1;
                }
                // Prost writes each field once.
                Some(canonical) => assert_eq!(found, decoded(list, &canonical), "seed {seed}"),
            }
            if found.is_some() {
                readable += 1;
            } else {
                unreadable += 1;
            }
        }
    }
    assert!(
        readable > 1_000 && unreadable > 1_000 && groups < 100,
        "{readable} {unreadable} {groups}"
    );
}

#[test]
fn a_place_beyond_the_message_has_no_fields() {
    assert!(HttpEntry::default().read(&[], (3..9).into()).is_ok());
    assert!(TcpEntry::default().read(&[0x08], (1..9).into()).is_ok());
}
