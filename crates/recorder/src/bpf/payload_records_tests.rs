use super::*;

fn words(numbers: &[u32]) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|number| number.to_ne_bytes())
        .collect()
}

/// A piece of which `captured` bytes are said to follow, and `body` do.
fn piece(length: u32, captured: u32, body: &[u8]) -> Vec<u8> {
    let all = u32::try_from(size_of::<PieceHead>() + body.len()).unwrap();
    let mut record = words(&[KIND_PIECE, all]);
    for number in [7_u64, 42, 5, 100] {
        record.extend(number.to_ne_bytes());
    }
    record.extend(words(&[length, captured, 11, 12, 1, 3]));
    record.extend(body);
    record
}

#[test]
fn a_piece_has_the_bytes_that_its_head_says() {
    let record = piece(20, 4, b"GET ");
    let Some(PieceRecord::Piece { head, bytes }) = PieceRecord::decode(&record) else {
        panic!("well formed");
    };
    assert_eq!(bytes, b"GET ");
    assert_eq!((head.cookie, head.since_ns, head.offset), (42, 5, 100));
    assert_eq!((head.header.time_ns, head.length, head.lost), (7, 20, 3));
    assert_eq!((head.pid, head.tid, head.flags), (11, 12, 1));
}

#[test]
fn what_does_not_add_up_is_refused() {
    for (length, captured, body) in [(20, 5, 4), (20, 3, 4), (3, 4, 4), (u32::MAX, u32::MAX, 4)] {
        let record = piece(length, captured, &vec![7; body]);
        assert_eq!(PieceRecord::decode(&record), None, "{length} {captured}");
    }
    let most = u32::try_from(MAX_PIECE_BYTES).unwrap();
    let whole = piece(most, most, &vec![7; MAX_PIECE_BYTES]);
    assert!(PieceRecord::decode(&whole).is_some());
    let longer = piece(most + 1, most + 1, &vec![7; MAX_PIECE_BYTES + 1]);
    assert_eq!(PieceRecord::decode(&longer), None);
    assert_eq!(PieceRecord::decode(&words(&[99, 16, 0, 0])), None);
}

#[test]
fn truncation_at_every_length_is_refused() {
    let record = piece(20, 4, b"GET ");
    for length in 0..record.len() {
        assert_eq!(PieceRecord::decode(&record[..length]), None, "{length}");
    }
    for (kind, bytes) in [
        (KIND_PIECE_CONNECTION, size_of::<PieceConnection>()),
        (KIND_PIECE_END, size_of::<PieceEnd>()),
    ] {
        let mut record = words(&[kind, u32::try_from(bytes).unwrap()]);
        record.resize(bytes, 0);
        assert!(PieceRecord::decode(&record).is_some());
        for length in 0..record.len() {
            assert_eq!(PieceRecord::decode(&record[..length]), None, "{length}");
        }
    }
}
