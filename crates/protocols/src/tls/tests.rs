use crate::{
    ConnectionFacts, Protocol, TlsVersion,
    testing::{Cut, Driver, WHOLE, facts, run, to_client, to_server, transcript},
};

/// Python's OpenSSL 3 with `openssl s_server`: TLS 1.2, then 1.3.
const RECORDED: &str = include_str!("../../../../tests/fixtures/protocols/tls.txt");

#[test]
fn real_handshakes_in_any_cut() {
    let versions = [TlsVersion::Tls12, TlsVersion::Tls13];
    // With TLS 1.3 what the server chose is encrypted.
    let chosen = [Some("h2"), None];
    for ((calls, version), chosen) in transcript(RECORDED).iter().zip(versions).zip(chosen) {
        for seed in (0..60).map(Some).chain([None]) {
            let mut driver = Driver::new(facts(1));
            for (number, call) in calls.iter().enumerate() {
                let seed = seed.map(|seed| seed * 100 + number as u64);
                driver.call(call, Cut { seed, ..WHOLE });
            }
            assert_eq!(driver.connection.protocol(), Some(Protocol::Tls));
            let facts = driver.connection.tls().unwrap();
            assert_eq!(facts.server_name.as_deref(), Some("shop.example"));
            assert_eq!(facts.alpn_offered, ["h2", "http/1.1"]);
            assert_eq!(facts.version, Some(version));
            assert_eq!(facts.alpn_chosen.as_deref(), chosen);
            assert_eq!(driver.connection.trouble(), crate::Trouble::default());
            assert!(driver.out.is_empty());
        }
    }
}

#[test]
fn little_captured_says_little() {
    for calls in transcript(RECORDED) {
        let cut = Cut {
            capture: 60,
            seed: None,
        };
        let mut driver = Driver::new(facts(1));
        for call in &calls {
            driver.call(call, cut);
        }
        assert_eq!(driver.connection.protocol(), Some(Protocol::Tls));
        assert_eq!(driver.connection.tls().unwrap().server_name, None);
    }
}

#[test]
fn a_joined_connection_is_known_by_its_records() {
    let record = |length: u16| {
        let mut bytes = vec![23, 3, 3];
        bytes.extend(length.to_be_bytes());
        bytes.extend(std::iter::repeat_n(0x5a, usize::from(length)));
        bytes
    };
    let mut driver = Driver::new(ConnectionFacts {
        joined: true,
        ..facts(1)
    });
    driver.call(&to_client(&record(900)[300..]), WHOLE);
    driver.call(&to_server(record(400)), WHOLE);
    driver.call(&to_client(record(5000)), WHOLE);
    assert_eq!(driver.connection.protocol(), Some(Protocol::Tls));
    assert_eq!(driver.connection.tls(), Some(&crate::TlsFacts::default()));
}

#[test]
fn other_bytes_are_no_handshake() {
    for bytes in [
        &b"\x16\x03\x01\x00\x00\x01"[..],
        b"\x16\x03\x01\xff\xff\x01",
        b"\x16\x05\x01\x00\x40\x01",
    ] {
        let driver = run(&[to_server(bytes)], facts(443), WHOLE);
        assert_eq!(driver.connection.protocol(), None);
    }
}
