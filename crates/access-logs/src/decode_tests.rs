//! Rules of decoding that the oracle does not know: limits, damage and memory.

use bytes::Bytes;
use prost::{DecodeError as ProstError, Message as _};

use super::{DecodeError, decode};
use crate::{
    declared::{self, HttpEntry, TlsProperties},
    limits::{Counts, Limits},
    testing::{decode_all, field},
    wire::{WireError, WireProblem},
};

fn http(entries: &[Vec<u8>]) -> Vec<u8> {
    let list: Vec<u8> = entries.iter().flat_map(|entry| field(1, entry)).collect();
    field(2, &list)
}

fn entry(common: declared::Common) -> Vec<u8> {
    let entry = HttpEntry {
        common: Some(common),
        ..HttpEntry::default()
    };
    entry.encode_to_vec()
}

fn with_stream_id(id: &'static str) -> declared::Common {
    declared::Common {
        stream_id: Bytes::from_static(id.as_bytes()),
        ..declared::Common::default()
    }
}

#[test]
fn a_message_beyond_the_limit_is_refused() {
    let message = http(&[vec![], vec![]]);
    let limits = Limits {
        message_bytes: message.len(),
        ..Limits::default()
    };
    assert_eq!(decode_all(message.clone(), &limits).unwrap().1.len(), 2);
    let limit = message.len() - 1;
    let limits = Limits {
        message_bytes: limit,
        ..Limits::default()
    };
    let error = decode_all(message, &limits).unwrap_err();
    let bytes = limit + 1;
    assert_eq!(error, DecodeError::TooLarge { bytes, limit });
    assert_eq!(error.to_string(), "a message of 6 bytes, more than 5");
}

#[test]
fn entries_beyond_the_limit_are_left_out_and_counted() {
    let limits = Limits {
        entries: 2,
        ..Limits::default()
    };
    let message = http(&vec![vec![]; 5]);
    let (decoded, entries) = decode_all(message, &limits).unwrap();
    assert_eq!(entries.len(), 2);
    let expected = Counts {
        entries: 2,
        left_out: 3,
        ..Counts::default()
    };
    assert_eq!(decoded.counts, expected);
}

#[test]
fn an_entry_that_cannot_be_decoded_does_not_affect_the_others() {
    let entries = [
        entry(with_stream_id("a")),
        // The common properties are a number.
        vec![0x08, 1],
        entry(with_stream_id("b")),
    ];
    let (decoded, entries) = decode_all(http(&entries), &Limits::default()).unwrap();
    let ids: Vec<&[u8]> = entries
        .iter()
        .map(|entry| entry.stream_id.as_ref())
        .collect();
    assert_eq!(ids, [b"a", b"b"]);
    assert_eq!((decoded.counts.entries, decoded.counts.unreadable), (2, 1));
}

#[test]
fn of_a_damaged_message_no_entry_is_handed_out() {
    let mut message = http(&[vec![], vec![]]);
    message.extend([0x12, 3, 0x0a, 7, 0]);
    let mut taken = 0;
    let result = decode(&message.into(), &Limits::default(), |_| taken += 1);
    let problem = WireProblem::Length { length: 7, left: 1 };
    let error = DecodeError::Wire(WireError { at: 8, problem });
    assert_eq!(
        error.to_string(),
        "not a protobuf message: a field of 7 bytes where 1 are left at byte 8"
    );
    assert_eq!((result, taken), (Err(error), 0));
}

#[test]
fn an_identifier_that_cannot_be_decoded_is_an_error_that_says_where() {
    let message = [http(&[vec![]]), field(1, &[0x08, 1])].concat();
    let error = decode_all(message, &Limits::default()).unwrap_err();
    let DecodeError::Identifier { at, source } = error else {
        panic!("{error}");
    };
    let source: ProstError = source;
    assert_eq!(at, 6, "{source}");
}

#[test]
fn long_text_is_cut_and_counted() {
    let limits = Limits {
        text_bytes: 8,
        ..Limits::default()
    };
    let common = declared::Common {
        upstream_cluster: Bytes::from_static(b"outbound|80||host"),
        route_name: Bytes::from_static(b"12345678"),
        ..with_stream_id("123456789")
    };
    let (decoded, entries) = decode_all(http(&[entry(common)]), &limits).unwrap();
    let [entry] = entries.as_slice() else {
        panic!("{entries:?}");
    };
    assert_eq!(entry.stream_id, "12345…".as_bytes());
    assert_eq!(entry.upstream.cluster, "outbo…".as_bytes());
    assert_eq!(entry.upstream.route_name, "12345678");
    assert_eq!(decoded.counts.cut_texts, 2);
}

#[test]
fn text_shares_the_memory_of_the_message() {
    let message = Bytes::from(http(&[entry(with_stream_id("0123456789"))]));
    let inside = message.as_ptr_range();
    let mut ids = Vec::new();
    decode(&message, &Limits::default(), |entry| {
        ids.push(entry.stream_id);
    })
    .unwrap();
    assert_eq!(ids, ["0123456789"]);
    assert!(inside.contains(&ids[0].as_ptr()));
}

#[test]
fn a_damaged_certificate_has_no_identity_and_is_counted() {
    let names = field(1, &field(1, b"spiffe://mesh/a"));
    let check = |certificate: Vec<u8>, id: &str, malformed: u64| {
        let common = declared::Common {
            tls_properties: Some(TlsProperties {
                peer_certificate_properties: certificate.into(),
                ..TlsProperties::default()
            }),
            ..declared::Common::default()
        };
        let message = http(&[entry(common)]);
        let (decoded, entries) = decode_all(message, &Limits::default()).unwrap();
        assert_eq!(entries[0].tls.downstream_peer_id, id.as_bytes());
        assert_eq!(decoded.counts.malformed_values, malformed);
    };
    check(vec![], "", 0);
    check(names.clone(), "spiffe://mesh/a", 0);
    check(field(1, &field(2, b"host.example")), "", 0);
    check(vec![0x0a, 9], "", 1);
    // Reading stops at the first name.
    check([names, vec![0x0a, 9]].concat(), "spiffe://mesh/a", 0);
}

#[test]
fn many_empty_entries_need_no_memory() {
    let message = http(&vec![vec![]; 100_000]);
    let mut taken = 0_u64;
    let limits = Limits {
        entries: usize::MAX,
        ..Limits::default()
    };
    let decoded = decode(&message.into(), &limits, |_| taken += 1).unwrap();
    assert_eq!((decoded.counts.all(), taken), (100_000, 100_000));
}
