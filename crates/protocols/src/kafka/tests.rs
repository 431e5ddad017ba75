use crate::{
    ConnectionFacts, Outcome, Protocol,
    testing::{Call, Cut, Driver, WHOLE, check_cuts, check_secrets, facts, to_client, to_server},
};

fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&length[..], message].concat()
}

/// A request with the client's id `canary-id`; `tags`: of the flexible header.
fn request(key: i16, version: i16, id: i32, tags: &[u8], body: &[u8]) -> Call {
    let head = [
        &key.to_be_bytes()[..],
        &version.to_be_bytes(),
        &id.to_be_bytes(),
    ]
    .concat();
    to_server(framed(
        &[&head[..], b"\0\x09canary-id", tags, body].concat(),
    ))
}

fn answer(id: i32, body: &[u8]) -> Call {
    to_client(framed(&[&id.to_be_bytes()[..], body].concat()))
}

fn versions(id: i32) -> [Call; 2] {
    [
        request(18, 3, id, b"\0", b"\x07canary\x02\x31\0"),
        // An error code, then an empty list, the throttle time, tags.
        answer(id, b"\0\0\x01\0\0\0\0\0"),
    ]
}

fn started() -> Driver {
    let mut driver = Driver::new(facts(9092));
    for call in versions(1) {
        driver.call(&call, WHOLE);
    }
    assert_eq!(driver.take(), ["ApiVersions => fine"]);
    assert_eq!(driver.connection.protocol(), Some(Protocol::Kafka));
    driver
}

/// Version 7: transaction, acks, timeout, one topic of one partition with records.
fn produce_7(id: i32, acks: i16) -> Call {
    let body = [
        &b"\xff\xff"[..],
        &acks.to_be_bytes(),
        b"\0\0\x75\x30\0\0\0\x01\0\x06orders\0\0\0\x01\0\0\0\0\0\0\0\x0ccanaryrecord",
    ];
    request(0, 7, id, b"", &body.concat())
}

/// Version 9, compact: the same.
fn produce_9(id: i32) -> Call {
    let body = b"\0\0\x01\0\0\x75\x30\x02\x07orders\x02\0\0\0\0\x0dcanaryrecord\0\0\0";
    request(0, 9, id, b"\0", body)
}

fn produced_7(id: i32, code: u8) -> Call {
    let head = b"\0\0\0\x01\0\x06orders\0\0\0\x01\0\0\0\0\0";
    answer(id, &[&head[..], &[code], &[0; 28]].concat())
}

fn produced_9(id: i32, code: u8) -> Call {
    let head = b"\0\x02\x07orders\x02\0\0\0\0\0";
    answer(id, &[&head[..], &[code], &[0; 30]].concat())
}

/// Versions 4 and 12 of Fetch.
fn fetches(id: i32) -> [Call; 2] {
    let most = b"\xff\xff\xff\xff\0\0\x01\xf4\0\0\0\x01\x03\x20\0\0\0";
    let partition = b"\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x05\0\x10\0\0";
    let old = [&most[..], b"\0\0\0\x01\0\x06orders", partition].concat();
    let session = [0; 8];
    let new = [&most[..], &session, b"\x02\x07orders\x01\0\x01\x01\0"].concat();
    [
        request(1, 4, id, b"", &old),
        request(1, 12, id + 1, b"\0", &new),
    ]
}

#[test]
fn requests_and_answers_of_old_and_flexible_versions() {
    let mut driver = started();
    driver
        .call(&produce_7(2, -1), WHOLE)
        .call(&produced_7(2, 0), WHOLE);
    driver
        .call(&produce_9(3), WHOLE)
        .call(&produced_9(3, 19), WHOLE);
    driver
        .call(&produce_7(4, 1), WHOLE)
        .call(&produced_7(4, 10), WHOLE);
    let [old, new] = fetches(5);
    driver.call(&old, WHOLE).call(&new, WHOLE);
    // Answers of a broker come in order; the ids decide all the same.
    driver.call(&answer(6, b"\0\0\0\0\0\0\0\0\0\0\x01\x01\0"), WHOLE);
    driver.call(&answer(5, b"\0\0\0\0\0\0\0\0"), WHOLE);
    check_secrets(&driver.out);
    assert_eq!(
        driver.take(),
        [
            "Produce orders => fine",
            "Produce orders => NOT_ENOUGH_REPLICAS server error",
            "Produce orders => MESSAGE_TOO_LARGE client error",
            "Fetch orders => fine",
            // Before version 7 errors stand with the partitions only.
            "Fetch orders => -",
        ]
    );
}

#[test]
fn groups_members_and_tokens_are_not_shown() {
    let mut driver = started();
    driver.call(
        &request(12, 3, 2, b"", b"\0\x06canary\0\0\0\x01\0\x06canary\xff\xff"),
        WHOLE,
    );
    driver.call(&answer(2, b"\0\0\0\0\0\x1b"), WHOLE);
    driver.call(
        &request(36, 2, 3, b"\0", b"\x15\0canary\0canarysecret\0"),
        WHOLE,
    );
    driver.call(
        &answer(3, b"\0\0\x3a\x07canary\x01\0\0\0\0\0\0\0\0\0"),
        WHOLE,
    );
    check_secrets(&driver.out);
    assert_eq!(
        driver.take(),
        [
            "Heartbeat => REBALANCE_IN_PROGRESS client error",
            "SaslAuthenticate => SASL_AUTHENTICATION_FAILED client error"
        ]
    );
}

#[test]
fn metadata_names_its_topic_when_it_is_one() {
    let mut driver = started();
    let id = [0; 16];
    let one = [&b"\x02"[..], &id, b"\x07orders\0\x01\0\0"].concat();
    driver
        .call(&request(3, 10, 2, b"\0", &one), WHOLE)
        .call(&answer(2, &[0; 20]), WHOLE);
    driver
        .call(&request(3, 9, 3, b"\0", b"\0\x01\0\0\0"), WHOLE)
        .call(&answer(3, &[0; 20]), WHOLE);
    driver
        .call(&request(3, 1, 4, b"", b"\0\0\0\x01\0\x06orders"), WHOLE)
        .call(&answer(4, &[0; 20]), WHOLE);
    assert_eq!(
        driver.take(),
        [
            "Metadata orders => -",
            "Metadata => -",
            "Metadata orders => -"
        ]
    );
}

#[test]
fn without_acknowledgements_there_is_no_answer() {
    let mut driver = started();
    driver.call(&produce_7(2, 0), WHOLE).close();
    assert_eq!(driver.out[0].outcome, Outcome::Ok);
    assert_eq!(driver.out[0].first_byte_ns, None);
    assert_eq!(driver.take(), ["Produce orders => -"]);
}

#[test]
fn tokens_without_a_header_are_passed_over() {
    let mut driver = started();
    driver.call(&request(17, 0, 2, b"", b"\0\x06GSSAPI"), WHOLE);
    driver.call(&answer(2, b"\0\0\0\0\0\0"), WHOLE);
    driver
        .call(&to_server(framed(b"\x60\x82canary token")), WHOLE)
        .call(&to_client(framed(b"")), WHOLE);
    driver
        .call(&produce_9(3), WHOLE)
        .call(&produced_9(3, 0), WHOLE);
    assert_eq!(
        driver.take(),
        ["SaslHandshake => fine", "Produce orders => fine"]
    );
    assert_eq!(driver.connection.trouble(), crate::Trouble::default());
}

#[test]
fn any_cut_gives_the_same() {
    let mut calls: Vec<Call> = versions(1).to_vec();
    calls.extend([
        produce_7(2, -1),
        produced_7(2, 0),
        produce_9(3),
        produced_9(3, 6),
    ]);
    calls.extend(fetches(4));
    calls.push(answer(4, &[0; 100]));
    calls.push(answer(5, &[0; 5000]));
    check_cuts(&[calls], facts(9092));
}

#[test]
fn ids_pair_across_a_gap() {
    let mut driver = started();
    driver.call(&produce_9(2), WHOLE).miss(&produced_9(2, 0));
    driver
        .call(&produce_9(3), WHOLE)
        .call(&produced_9(3, 0), WHOLE);
    driver.miss(&produce_9(4));
    driver.call(&produced_9(4, 0), WHOLE);
    driver
        .call(&produce_9(5), WHOLE)
        .call(&produced_9(5, 0), WHOLE);
    // Whose answer was missed shows only with the next one.
    assert_eq!(
        driver.take(),
        [
            "Produce orders => - unknown",
            "Produce orders => - unknown",
            "Produce orders => fine"
        ]
    );
    assert!(!driver.connection.is_dirty());
}

#[test]
fn joined_connections_are_known_by_an_answer() {
    let mut driver = Driver::new(ConnectionFacts {
        joined: true,
        ..facts(9092)
    });
    driver.call(&answer(7, &[0; 40]), WHOLE);
    driver.call(&produce_9(8), WHOLE);
    assert_eq!(driver.connection.protocol(), None);
    driver.call(&produced_9(8, 0), WHOLE);
    assert_eq!(driver.take(), ["Produce orders => fine"]);
}

#[test]
fn large_batches_need_their_beginning_only() {
    let mut driver = started();
    let Call { mut bytes, .. } = produce_7(2, -1);
    bytes.resize(500_000, b'x');
    let length = u32::try_from(bytes.len() - 4).unwrap();
    bytes[..4].copy_from_slice(&length.to_be_bytes());
    let cut = Cut {
        capture: 256,
        seed: None,
    };
    driver
        .call(&to_server(&bytes), cut)
        .call(&produced_7(2, 0), cut);
    assert_eq!(driver.out[0].request_bytes, 500_000);
    assert_eq!(driver.take(), ["Produce orders => fine"]);
}

/// A broker reads the length of a request by itself, and so do clients that of an answer.
#[test]
fn joined_ends_that_read_lengths_by_themselves_are_understood() {
    let mut driver = Driver::new(ConnectionFacts {
        joined: true,
        ..facts(9092)
    });
    for id in 7..30 {
        for Call { direction, bytes } in [produce_9(id), produced_9(id, 0)] {
            for part in [&bytes[..4], &bytes[4..]] {
                let bytes = part.to_vec();
                driver.call(&Call { direction, bytes }, WHOLE);
            }
        }
    }
    driver.close();
    assert_eq!(driver.take(), vec!["Produce orders => fine"; 23]);
}
