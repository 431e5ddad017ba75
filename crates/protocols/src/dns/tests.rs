use crate::{
    ConnectionFacts, Outcome, Protocol,
    testing::{
        Call, Driver, MILLISECOND, WHOLE, check_sound, facts, run, shown, to_client, to_server,
    },
};

fn name(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in text.split('.') {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    bytes
}

/// A message with one question (RFC 1035 section 4.1).
fn message(id: u16, flags: u16, text: &str, kind: u16, answer: &[u8]) -> Vec<u8> {
    let answers = u16::from(!answer.is_empty());
    let mut bytes = Vec::new();
    for number in [id, flags, 1, answers, 0, 0] {
        bytes.extend(number.to_be_bytes());
    }
    bytes.extend(name(text));
    bytes.extend(kind.to_be_bytes());
    bytes.extend(1_u16.to_be_bytes());
    bytes.extend(answer);
    bytes
}

const ADDRESS: &[u8] = b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\xc0\x00\x02\x01";

fn query(id: u16, text: &str) -> Vec<u8> {
    message(id, 0x0100, text, 1, &[])
}

fn response(id: u16, text: &str, code: u16) -> Vec<u8> {
    message(
        id,
        0x8180 | code,
        text,
        1,
        if code == 0 { ADDRESS } else { &[] },
    )
}

fn udp() -> Driver {
    Driver::new(ConnectionFacts {
        is_udp: true,
        ..facts(53)
    })
}

fn framed(message: &[u8]) -> Vec<u8> {
    let length = u16::try_from(message.len()).unwrap().to_be_bytes();
    [&length[..], message].concat()
}

#[test]
fn answers_belong_to_their_questions() {
    let mut driver = udp();
    driver.call(&to_server(query(1, "web.Example.com")), WHOLE);
    driver.call(
        &to_server(message(1, 0x0100, "web.Example.com", 28, &[])),
        WHOLE,
    );
    driver.call(&to_server(query(2, "nosuch.example.com")), WHOLE);
    driver.call(&to_client(response(2, "nosuch.example.com", 3)), WHOLE);
    driver.call(
        &to_client(message(1, 0x8182, "WEB.example.com", 28, &[])),
        WHOLE,
    );
    driver.call(&to_client(response(1, "web.eXample.com", 0)), WHOLE);
    check_sound(&driver.out);
    let methods: Vec<_> = driver.out.iter().map(|it| it.method.as_deref()).collect();
    assert_eq!(methods, [Some("A"), Some("AAAA"), Some("A")]);
    assert_eq!(driver.out[2].request_bytes, 33);
    assert_eq!(driver.out[2].response_bytes, 49);
    assert_eq!(
        driver.take(),
        [
            "nosuch.example.com => NXDOMAIN client error",
            "web.example.com => SERVFAIL server error",
            "web.example.com => fine",
        ]
    );
    assert_eq!(driver.connection.protocol(), Some(Protocol::Dns));
}

#[test]
fn a_query_sent_again_is_one() {
    let mut driver = udp();
    let begin = driver.now_ns;
    driver
        .call(&to_server(query(7, "a.example")), WHOLE)
        .wait(5_000 * MILLISECOND);
    driver.call(&to_server(query(7, "a.example")), WHOLE);
    driver.call(&to_client(response(7, "a.example", 0)), WHOLE);
    // The answer to the first one, late.
    driver.call(&to_client(response(7, "a.example", 0)), WHOLE);
    driver.close();
    assert_eq!(driver.out.len(), 1);
    assert_eq!(driver.out[0].begin_ns, begin);
    assert!(driver.out[0].duration_ns() > 5_000 * MILLISECOND);
}

#[test]
fn no_answer_is_broken_after_a_while() {
    let mut driver = udp();
    driver.call(&to_server(query(9, "z.example")), WHOLE);
    driver.call(&to_client(response(9, "z.example", 0)), WHOLE);
    assert_eq!(driver.take(), ["z.example => fine"]);
    driver
        .call(&to_server(query(1, "a.example")), WHOLE)
        .wait(31_000 * MILLISECOND);
    driver.call(&to_server(query(2, "b.example")), WHOLE);
    assert_eq!(driver.take(), ["a.example => - broken"]);
    driver.miss(&to_client(response(2, "b.example", 0)));
    driver.call(&to_server(query(3, "c.example")), WHOLE);
    driver
        .call(&to_client(response(3, "c.example", 0)), WHOLE)
        .close();
    // The one that is missing may have been its answer.
    assert_eq!(
        driver.take(),
        ["c.example => fine", "b.example => - unknown"]
    );
}

#[test]
fn names_that_stand_for_many_are_folded() {
    let names = [
        ("4.3.2.1.in-addr.arpa", "{n}.in-addr.arpa"),
        (
            "10-0-3-7.default.pod.cluster.local",
            "{n}.default.pod.cluster.local",
        ),
        ("f0e1d2c3b4a5968778695a4b3c2d1e0f.example", "{hex}.example"),
        (
            "123e4567-e89b-12d3-a456-426614174000.example",
            "{uuid}.example",
        ),
        ("s3.eu-west-1.example", "s3.eu-west-1.example"),
    ];
    for (number, (asked, shown)) in names.into_iter().enumerate() {
        let id = u16::try_from(number).unwrap();
        let mut driver = udp();
        driver.call(&to_server(query(id, asked)), WHOLE);
        driver.call(&to_client(response(id, asked, 0)), WHOLE);
        assert_eq!(driver.out[0].route.as_deref(), Some(shown));
    }
}

#[test]
fn over_tcp_in_any_cut() {
    let both = [
        framed(&query(1, "a.example")),
        framed(&query(2, "b.example")),
    ]
    .concat();
    let calls: Vec<Call> = vec![
        to_server(both),
        to_client(framed(&response(2, "b.example", 0))),
        to_client(framed(&response(1, "a.example", 5))),
    ];
    let expected = ["b.example => fine", "a.example => REFUSED server error"];
    for seed in (0..100).map(Some).chain([None]) {
        let driver = run(&calls, facts(53), crate::testing::Cut { seed, ..WHOLE });
        assert_eq!(shown(&driver.out), expected, "{seed:?}");
    }
}

#[test]
fn over_tcp_after_a_gap() {
    let mut driver = Driver::new(facts(53));
    for id in 0..4 {
        let text = format!("{}.example", ["a", "b", "c", "d"][usize::from(id)]);
        driver.call(&to_server(framed(&query(id, &text))), WHOLE);
        let answer = to_client(framed(&response(id, &text, 0)));
        if id == 1 {
            driver.miss(&answer)
        } else {
            driver.call(&answer, WHOLE)
        };
    }
    driver.close();
    assert_eq!(
        driver.take(),
        [
            "a.example => fine",
            "c.example => fine",
            "d.example => fine",
            "b.example => - unknown"
        ]
    );
}

#[test]
fn multicast_and_noise_are_none() {
    let mut driver = Driver::new(ConnectionFacts {
        is_udp: true,
        ..facts(5353)
    });
    driver.call(&to_server(query(0, "printer.local")), WHOLE);
    assert_eq!(driver.connection.protocol(), None);
    for noise in [&b"\x00\x01"[..], b"hello world, hello world", &[0xff; 40]] {
        let mut driver = udp();
        driver
            .call(&to_server(noise), WHOLE)
            .call(&to_client(noise), WHOLE);
        assert_eq!(driver.connection.protocol(), None);
    }
}

#[test]
fn endless_queries_are_bounded() {
    let mut driver = udp();
    for number in 0..5000_u16 {
        driver.call(&to_server(query(number, "a.example")), WHOLE);
    }
    assert!(driver.out.len() >= 5000 - 1024);
    driver.close();
    assert_eq!(driver.out.len(), 5000);
    assert!(
        driver
            .out
            .iter()
            .all(|exchange| exchange.outcome == Outcome::Broken)
    );
}

#[test]
fn joined_ends_that_read_lengths_by_themselves_are_understood() {
    let mut driver = Driver::new(ConnectionFacts {
        joined: true,
        ..facts(53)
    });
    for id in 1..30 {
        let (query, response) = (
            framed(&query(id, "web.example.com")),
            framed(&response(id, "web.example.com", 0)),
        );
        for call in [
            to_server(&query[..2]),
            to_server(&query[2..]),
            to_client(&response[..2]),
            to_client(&response[2..]),
        ] {
            driver.call(&call, crate::testing::WHOLE);
        }
    }
    driver.close();
    assert_eq!(driver.take(), vec!["web.example.com => fine"; 29]);
}
