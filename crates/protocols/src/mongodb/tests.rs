use crate::{
    ConnectionFacts, Outcome, Protocol,
    testing::{Call, Cut, Driver, WHOLE, check_cuts, check_secrets, facts, to_client, to_server},
};

/// A document of elements that are already encoded.
fn document(elements: &[Vec<u8>]) -> Vec<u8> {
    let body = elements.concat();
    let length = u32::try_from(body.len() + 5).unwrap().to_le_bytes();
    [&length[..], &body, b"\0"].concat()
}

fn text(name: &str, value: &str) -> Vec<u8> {
    let length = u32::try_from(value.len() + 1).unwrap().to_le_bytes();
    [
        &b"\x02"[..],
        name.as_bytes(),
        b"\0",
        &length,
        value.as_bytes(),
        b"\0",
    ]
    .concat()
}

fn integer(name: &str, value: i32) -> Vec<u8> {
    [&b"\x10"[..], name.as_bytes(), b"\0", &value.to_le_bytes()].concat()
}

fn double(name: &str, value: f64) -> Vec<u8> {
    [&b"\x01"[..], name.as_bytes(), b"\0", &value.to_le_bytes()].concat()
}

fn nested(kind: u8, name: &str, elements: &[Vec<u8>]) -> Vec<u8> {
    [&[kind][..], name.as_bytes(), b"\0", &document(elements)].concat()
}

fn message(id: u32, response_to: u32, operation: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 16).unwrap();
    let header = [length, id, response_to, operation].map(u32::to_le_bytes);
    [header.concat(), body.to_vec()].concat()
}

fn command(id: u32, elements: &[Vec<u8>]) -> Call {
    to_server(message(
        id,
        0,
        2013,
        &[&[0; 5][..], &document(elements)].concat(),
    ))
}

fn reply(response_to: u32, elements: &[Vec<u8>]) -> Call {
    let body = [&[0; 5][..], &document(elements)].concat();
    to_client(message(response_to + 1000, response_to, 2013, &body))
}

fn find(id: u32) -> Call {
    let filter = nested(3, "filter", &[text("password", "canary")]);
    command(id, &[text("find", "users"), filter, text("$db", "shop")])
}

fn found(id: u32) -> Call {
    let batch = nested(
        4,
        "firstBatch",
        &[nested(3, "0", &[text("name", "canary")])],
    );
    reply(id, &[nested(3, "cursor", &[batch]), double("ok", 1.0)])
}

#[test]
fn commands_with_their_collections() {
    let mut driver = Driver::new(facts(27017));
    // The first message of drivers is of the old form.
    let hello = document(&[integer("isMaster", 1), text("user", "canary")]);
    let body = [&[0; 4][..], b"admin.$cmd\0", &[0; 4], &[0xff; 4], &hello].concat();
    driver.call(&to_server(message(1, 0, 2004, &body)), WHOLE);
    let answered = [&[0; 16][..], &[1, 0, 0, 0], &document(&[double("ok", 1.0)])].concat();
    driver.call(&to_client(message(9, 1, 1, &answered)), WHOLE);
    driver.call(&find(2), WHOLE).call(&find(3), WHOLE);
    driver.call(&found(3), WHOLE).call(&found(2), WHOLE);
    let cursor = [&b"\x12getMore\0"[..], &[1; 8]].concat();
    driver.call(&command(4, &[cursor, text("collection", "users")]), WHOLE);
    driver.call(&found(4), WHOLE);
    driver.call(
        &command(5, &[text("createUser", "canary"), text("pwd", "canary")]),
        WHOLE,
    );
    driver.call(&reply(5, &[double("ok", 1.0)]), WHOLE);
    driver.call(
        &command(6, &[integer("saslStart", 1), text("payload", "canary")]),
        WHOLE,
    );
    let failed = [
        double("ok", 0.0),
        text("errmsg", "canary"),
        integer("code", 18),
        text("codeName", "AuthenticationFailed"),
    ];
    driver.call(&reply(6, &failed), WHOLE);
    check_secrets(&driver.out);
    assert_eq!(
        driver.take(),
        [
            "isMaster => fine",
            "find users => fine",
            "find users => fine",
            "getMore users => fine",
            "createUser => fine",
            "saslStart => AuthenticationFailed client error",
        ]
    );
    assert_eq!(driver.connection.protocol(), Some(Protocol::MongoDb));
}

#[test]
fn documents_in_sections_and_errors_of_writes() {
    let mut driver = Driver::new(facts(1));
    let rows = document(&[text("name", "canary")]);
    let section = [&b"documents\0"[..], &rows, &rows].concat();
    let length = u32::try_from(section.len() + 4).unwrap().to_le_bytes();
    let body = document(&[text("insert", "users"), text("$db", "shop")]);
    let sections = [&[0; 4][..], b"\x01", &length, &section, b"\x00", &body].concat();
    driver.call(&to_server(message(1, 0, 2013, &sections)), WHOLE);
    let error = nested(
        3,
        "0",
        &[
            integer("index", 0),
            integer("code", 11000),
            text("errmsg", "canary"),
        ],
    );
    driver.call(
        &reply(
            1,
            &[
                integer("n", 0),
                nested(4, "writeErrors", &[error]),
                double("ok", 1.0),
            ],
        ),
        WHOLE,
    );
    driver.call(&find(2), WHOLE);
    driver.call(
        &reply(2, &[double("ok", 0.0), integer("code", 11600)]),
        WHOLE,
    );
    check_secrets(&driver.out);
    assert_eq!(
        driver.take(),
        [
            "insert users => 11000 client error",
            "find users => 11600 server error"
        ]
    );
}

#[test]
fn unacknowledged_writes_get_no_reply() {
    let mut driver = Driver::new(facts(1));
    driver.call(&find(1), WHOLE).call(&found(1), WHOLE);
    let body = [&[2, 0, 0, 0, 0][..], &document(&[text("update", "users")])].concat();
    driver.call(&to_server(message(2, 0, 2013, &body)), WHOLE);
    assert_eq!(driver.out[1].outcome, Outcome::Ok);
    assert_eq!(driver.take(), ["find users => fine", "update users => -"]);
    assert!(driver.close().out.is_empty());
}

#[test]
fn replies_that_go_on_by_themselves_are_one() {
    let mut driver = Driver::new(facts(1));
    driver.call(&command(1, &[integer("hello", 1)]), WHOLE);
    let body = [&[2, 0, 0, 0, 0][..], &document(&[double("ok", 1.0)])].concat();
    driver.call(&to_client(message(50, 1, 2013, &body)), WHOLE);
    driver.call(&to_client(message(51, 50, 2013, &body)), WHOLE);
    driver.call(&find(2), WHOLE).call(&found(2), WHOLE);
    assert_eq!(driver.take(), ["hello => fine", "find users => fine"]);
    assert_eq!(driver.connection.trouble(), crate::Trouble::default());
}

#[test]
fn compressed_messages_are_paired_and_not_read() {
    let mut driver = Driver::new(facts(1));
    driver.call(
        &to_server(message(7, 0, 2012, b"\xdd\x07\0\0\x80\0\0\0\x01canary")),
        WHOLE,
    );
    driver.call(
        &to_client(message(8, 7, 2012, b"\xdd\x07\0\0\x80\0\0\0\x01canary")),
        WHOLE,
    );
    check_secrets(&driver.out);
    assert!(driver.out[0].request_size_known && driver.out[0].response_size_known);
    assert_eq!(driver.take(), ["- => - unknown"]);
}

#[test]
fn any_cut_gives_the_same() {
    let rows: Vec<Vec<u8>> = (0..400)
        .map(|_| nested(3, "0", &[text("name", "canary")]))
        .collect();
    let long = reply(
        2,
        &[
            nested(3, "cursor", &[nested(4, "firstBatch", &rows)]),
            double("ok", 1.0),
        ],
    );
    let calls = vec![find(1), found(1), find(2), long, find(3), found(3)];
    check_cuts(&[calls], facts(27017));
}

#[test]
fn a_reply_that_is_cut_is_fine_only_with_a_cursor() {
    let cut = Cut {
        capture: 100,
        seed: None,
    };
    let mut driver = Driver::new(facts(1));
    let long = "x".repeat(5000);
    let batch = nested(4, "firstBatch", &[text("0", &long)]);
    driver.call(&find(1), WHOLE);
    driver.call(
        &reply(1, &[nested(3, "cursor", &[batch]), double("ok", 1.0)]),
        cut,
    );
    driver.call(&command(2, &[integer("serverStatus", 1)]), WHOLE);
    driver.call(&reply(2, &[text("host", &long), double("ok", 1.0)]), cut);
    assert_eq!(
        driver.take(),
        ["find users => -", "serverStatus => - unknown"]
    );
}

#[test]
fn ids_pair_across_a_gap_and_after_a_join() {
    let mut driver = Driver::new(ConnectionFacts {
        joined: true,
        ..facts(1)
    });
    driver
        .call(&found(1), WHOLE)
        .call(&find(2), WHOLE)
        .call(&found(2), WHOLE);
    driver
        .call(&find(3), WHOLE)
        .miss(&found(3))
        .call(&find(4), WHOLE)
        .call(&found(4), WHOLE);
    driver.call(&find(5), WHOLE).call(&found(5), WHOLE);
    let unknown = "find users => - unknown";
    assert_eq!(
        driver.take(),
        ["find users => fine", unknown, unknown, "find users => fine"]
    );
}

#[test]
fn noise_is_none() {
    for bytes in [
        &[0x10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xdd, 7, 0, 0][..],
        &[0xff; 40],
        b"GET / HTTP/1.1\r\n\r\n",
    ] {
        let mut driver = Driver::new(facts(27017));
        driver.call(&to_server(bytes), WHOLE);
        assert_ne!(driver.connection.protocol(), Some(Protocol::MongoDb));
    }
}

#[test]
fn joined_ends_that_read_headers_by_themselves_are_understood() {
    let mut driver = Driver::new(ConnectionFacts {
        joined: true,
        ..facts(27017)
    });
    for id in 1..30 {
        for Call { direction, bytes } in [find(id), found(id)] {
            for part in [&bytes[..16], &bytes[16..]] {
                let bytes = part.to_vec();
                driver.call(&Call { direction, bytes }, WHOLE);
            }
        }
    }
    driver.close();
    assert_eq!(driver.take(), vec!["find users => fine"; 29]);
}

/// As those of Go's driver do.
#[test]
fn ends_that_read_lengths_by_themselves_are_understood_behind_a_gap() {
    let mut driver = Driver::new(facts(27017));
    for Call { direction, bytes } in [find(1), found(1)] {
        driver.call(&Call { direction, bytes }, WHOLE);
    }
    for round in 1..5 {
        for direction in [crate::Direction::ToServer, crate::Direction::ToClient] {
            driver.connection.gap(direction, &mut driver.out);
        }
        for id in 10 * round..10 * round + 5 {
            for Call { direction, bytes } in [find(id), found(id)] {
                for part in [&bytes[..4], &bytes[4..]] {
                    let bytes = part.to_vec();
                    driver.call(&Call { direction, bytes }, WHOLE);
                }
            }
        }
    }
    driver.close();
    assert_eq!(driver.take(), vec!["find users => fine"; 21]);
}
