use crate::{
    ConnectionFacts, Protocol,
    testing::{
        Call, Cut, Driver, MILLISECOND, WHOLE, check_cuts, check_secrets, facts, run, shown,
        timings, to_client, to_server, transcript,
    },
};

/// PyMySQL, the mariadb client and MySQL's Connector/Python (prepared) with MariaDB 10.11.
const RECORDED: &str = include_str!("../../../../tests/fixtures/protocols/mysql.txt");

fn packet(number: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_le_bytes();
    [&length[..3], &[number], payload].concat()
}

fn query(text: &str) -> Call {
    to_server(packet(0, &[b"\x03", text.as_bytes()].concat()))
}

const OK: &[u8] = b"\x00\x01\x00\x02\x00\x00\x00";

fn ok() -> Call {
    to_client(packet(1, OK))
}

fn joined() -> Driver {
    Driver::new(ConnectionFacts {
        joined: true,
        ..facts(1)
    })
}

#[test]
fn real_connections() {
    let select = "SELECT name FROM users WHERE id = ? AND name <> ? => fine";
    let expected: [&[&str]; 5] = [
        &[
            "CONNECT => fine",
            "INSERT INTO users VALUES (?) => fine",
            "SELECT name FROM users WHERE name = ? AND id IN (?) => fine",
            "SELECT * FROM users WHERE id = ? => fine",
            "SELECT * FROM nosuch WHERE x = ? => 1146 client error",
            "INSERT INTO users VALUES (?) => 1062 client error",
            "SELEC ? => 1064 client error",
            "SELECT REPEAT(?), ? UNION ALL SELECT REPEAT(?), ? => fine",
            "PING => fine",
            "USE shop => fine",
            "LOAD DATA LOCAL INFILE ? INTO TABLE users FIELDS TERMINATED BY ? => fine",
        ],
        &[
            "CONNECT => fine",
            "SET AUTOCOMMIT = ? => fine",
            "SELECT ?; UPDATE users SET name = ? WHERE id = ?; SELECT ? => fine",
            "COMMIT => fine",
        ],
        &["CONNECT => 1045 client error"],
        &[
            "CONNECT => fine",
            "SELECT COUNT(*) FROM users => fine",
            "SHOW TABLES => fine",
            "PREPARE s FROM ? => fine",
            "SET @a = ? => fine",
            "EXECUTE s USING @a => fine",
        ],
        &[
            "CONNECT => fine",
            "SET NAMES ? COLLATE ? => fine",
            "SET @@session.autocommit = ? => fine",
            "PING => fine",
            "PREPARE SELECT name FROM users WHERE id = ? AND name <> ? => fine",
            "RESET STATEMENT => fine",
            select,
            "RESET STATEMENT => fine",
            select,
            "RESET STATEMENT => fine",
            select,
            "PREPARE UPDATE users SET name = ? WHERE id = ? => fine",
            "RESET STATEMENT => fine",
            "UPDATE users SET name = ? WHERE id = ? => fine",
            "PREPARE INSERT INTO users VALUES (?) => fine",
            "RESET STATEMENT => fine",
            "INSERT INTO users VALUES (?) => 1062 client error",
        ],
    ];
    for (calls, expected) in transcript(RECORDED).iter().zip(expected) {
        let driver = run(calls, facts(3306), WHOLE);
        assert_eq!(shown(&driver.out), expected);
        assert_eq!(driver.connection.trouble(), crate::Trouble::default());
        check_secrets(&driver.out);
    }
}

#[test]
fn real_connections_cut_anywhere() {
    check_cuts(&transcript(RECORDED), facts(3306));
}

#[test]
fn joined_connections_pair_from_a_command_on() {
    let mut driver = joined();
    driver.call(&to_client(packet(7, b"\x01a\x01b")), WHOLE);
    driver
        .call(&query("UPDATE t SET a = 'canary'"), WHOLE)
        .call(&ok(), WHOLE);
    driver.call(&query("SELECT a"), WHOLE);
    // With the end of descriptions left out, as both ends agreed before the observation.
    let rows = [
        packet(1, b"\x01"),
        packet(2, b"\x03def column"),
        packet(3, b"\x01a"),
        packet(4, b"\xfe\x00\x00\x02\x00\x00\x00"),
    ];
    driver.call(&to_client(rows.concat()), WHOLE);
    assert_eq!(
        driver.take(),
        ["UPDATE t SET a = ? => fine", "SELECT a => fine"]
    );
    assert_eq!(driver.connection.protocol(), Some(Protocol::MySql));
}

#[test]
fn a_statement_prepared_before_the_join_is_unknown() {
    let mut driver = joined();
    let execute = to_server(packet(0, b"\x17\x05\x00\x00\x00\x00\x01\x00\x00\x00"));
    driver.call(&execute, WHOLE).call(&ok(), WHOLE);
    assert_eq!(driver.take(), ["- => fine"]);
}

#[test]
fn a_lost_answer_leaves_one_unknown() {
    let mut driver = joined();
    driver
        .call(&query("COMMIT"), WHOLE)
        .call(&ok(), WHOLE)
        .wait(300 * MILLISECOND);
    assert_eq!(driver.take(), ["COMMIT => fine"]);
    driver.call(&query("SELECT 1"), WHOLE).miss(&ok());
    driver.call(&query("BEGIN"), WHOLE).call(&ok(), WHOLE);
    driver.call(&query("ROLLBACK"), WHOLE).call(&ok(), WHOLE);
    assert_eq!(
        driver.take(),
        [
            "SELECT ? => - unknown",
            "BEGIN => - unknown",
            "ROLLBACK => fine"
        ]
    );
}

#[test]
fn packets_of_16_megabytes_are_one_with_the_next() {
    let mut driver = joined();
    driver
        .call(&query("BEGIN"), WHOLE)
        .call(&ok(), WHOLE)
        .wait(300 * MILLISECOND)
        .take();
    let cut = Cut {
        capture: 1024,
        seed: None,
    };
    let mut first = vec![0xff, 0xff, 0xff, 0, 3];
    first.extend(b"INSERT INTO t VALUES ('");
    first.resize(4 + 0xff_ffff, b'x');
    let second = packet(1, b"canary')");
    let bytes = (first.len() + second.len()) as u64;
    // A server reads the header by itself; a packet's end is a call's.
    driver
        .call(&to_server(first), cut)
        .call(&to_server(second), cut);
    driver.call(&to_client(packet(2, OK)), cut);
    assert_eq!(driver.out[0].request_bytes, bytes);
    assert_eq!(driver.take(), ["INSERT INTO t VALUES (?... => fine"]);

    driver.call(&query("SELECT long"), cut);
    let mut row = vec![0xff, 0xff, 0xff, 3, 0xfd];
    row.resize(4 + 0xff_ffff, b'x');
    driver.call(
        &to_client([packet(1, b"\x01"), packet(2, b"\x03def")].concat()),
        cut,
    );
    driver.call(&to_client(row), cut);
    // What goes on looks like an end, and is none.
    driver.call(&to_client(packet(4, b"\xfe\x00\x00\x02\x00\x00\x00")), cut);
    assert!(driver.out.is_empty());
    driver.call(&to_client(packet(5, b"\xfe\x00\x00\x02\x00\x00\x00")), cut);
    assert_eq!(driver.take(), ["SELECT long => fine"]);
}

#[test]
fn servers_that_fail_are_told_from_clients_that_do() {
    let mut driver = joined();
    for (answer, shown) in [
        (
            &b"\xff\xbd\x04#40001Deadlock canary"[..],
            "BEGIN => 1213 server error",
        ),
        (b"\xff\x10\x04Too many", "BEGIN => 1040 server error"),
        (b"\xff\x7a\x04#42S02canary", "BEGIN => 1146 client error"),
    ] {
        driver
            .call(&query("BEGIN"), WHOLE)
            .call(&to_client(packet(1, answer)), WHOLE);
        check_secrets(&driver.out);
        assert_eq!(driver.take(), [shown]);
    }
}

#[test]
fn noise_is_no_greeting() {
    for bytes in [
        &b"SSH-2.0-OpenSSH_9.2\r\n"[..],
        b"220 mail ESMTP\r\n",
        &[0; 80],
    ] {
        let mut driver = Driver::new(facts(3306));
        driver.call(&to_client(bytes), WHOLE);
        assert_eq!(driver.connection.protocol(), None);
    }
}

#[test]
fn queries_behind_the_captured_bytes_are_a_gap_and_the_rest_of_one_is_none() {
    let cut = Cut {
        capture: 60,
        seed: None,
    };
    let long = query(&format!(
        "DELETE FROM users WHERE x = '{}'",
        "y".repeat(500)
    ));
    let mut driver = joined();
    driver
        .call(&query("DELETE FROM a"), WHOLE)
        .call(&ok(), WHOLE);
    driver.call(&long, cut).call(&ok(), WHOLE);
    assert_eq!(
        driver.take(),
        [
            "DELETE FROM a => fine",
            "DELETE FROM users WHERE x = ?... => fine"
        ]
    );
    assert_eq!(driver.connection.trouble().gaps, 0);
    let both = [long.bytes, query("DELETE FROM b").bytes].concat();
    driver
        .call(&to_server(both), cut)
        .call(&ok(), WHOLE)
        .call(&ok(), WHOLE);
    assert_eq!(
        driver.take(),
        ["DELETE FROM users WHERE x = ?... => - unknown"]
    );
    assert_eq!(driver.connection.trouble().gaps, 1);
    assert!(driver.connection.is_dirty());
    driver.wait(300_000_000);
    driver
        .call(&query("DELETE FROM c"), WHOLE)
        .call(&ok(), WHOLE);
    assert_eq!(driver.take(), ["DELETE FROM c => fine"]);
    assert!(!driver.connection.is_dirty());
}

#[test]
fn answers_above_the_captured_bytes_have_their_time_and_what_their_end_tells() {
    let cut = Cut {
        capture: 1024,
        seed: None,
    };
    let head = [packet(1, b"\x01"), packet(2, b"\x03def")].concat();
    let row = [&b"\x64"[..], &[b'v'; 100]].concat();
    let rows: Vec<u8> = (3..23).flat_map(|number| packet(number, &row)).collect();
    let end = packet(23, b"\xfe\x00\x00\x02\x00\x00\x00");
    let error = packet(23, b"\xff\x25\x05#70100interrupted canary");
    let mut driver = joined();
    driver
        .call(&query("BEGIN"), cut)
        .call(&ok(), cut)
        .wait(300 * MILLISECOND);
    let whole = [&head[..], &rows, &end].concat();
    for parts in [
        vec![whole],
        vec![[&head[..], &rows].concat(), [&row[7..], &end].concat()],
        vec![[&head[..], &rows].concat(), [&row[7..], &error].concat()],
    ] {
        driver.call(&query("SELECT a"), cut);
        for part in parts {
            driver.call(&to_client(part), cut);
        }
        driver.wait(7 * MILLISECOND);
    }
    driver.call(&query("COMMIT"), cut).call(&ok(), cut).close();
    assert_eq!(
        shown(&driver.out),
        [
            "BEGIN => fine",
            "SELECT a => - unknown",
            "SELECT a => fine",
            "SELECT a => 1317 server error",
            "COMMIT => fine",
        ]
    );
    let call = MILLISECOND + 10;
    let timed = timings(&driver.out);
    let expected = [
        (call, false),
        (call, true),
        (2 * call, false),
        (2 * call, false),
        (call, false),
    ];
    assert_eq!(timed, expected);
    assert_eq!(driver.connection.trouble().gaps, 0);
    assert!(driver.connection.trouble().not_understood.to_client == 0);
}

/// MariaDB's server reads the four bytes of the header by themselves.
#[test]
fn a_joined_server_that_reads_headers_by_themselves_is_understood() {
    for begins_inside in [false, true] {
        let mut driver = joined();
        if begins_inside {
            driver
                .call(&to_server(b"\x03SELECT 0"), WHOLE)
                .call(&ok(), WHOLE);
        }
        for number in 0..300 {
            let query = query(&format!("SELECT {number}")).bytes;
            let (header, payload) = query.split_at(4);
            driver
                .call(&to_server(header), WHOLE)
                .call(&to_server(payload), WHOLE)
                .call(&ok(), WHOLE);
        }
        driver.close();
        assert_eq!(shown(&driver.out), vec!["SELECT ? => fine"; 300]);
        let call = 3 * (MILLISECOND + 10) - MILLISECOND;
        assert!(driver.out.iter().all(|it| it.duration_ns() == call - 10));
    }
}

#[test]
fn a_joined_server_that_reads_headers_by_themselves_is_understood_from_an_execution_on() {
    let mut driver = joined();
    let execute = |driver: &mut Driver, packet: &[u8]| {
        let (header, payload) = packet.split_at(4);
        driver
            .call(&to_server(header), WHOLE)
            .call(&to_server(payload), WHOLE)
            .call(&ok(), WHOLE);
    };
    for _ in 0..20 {
        execute(&mut driver, &packet(0, b"\x1a\x05\x00\x00\x00"));
        execute(
            &mut driver,
            &packet(0, b"\x17\x05\x00\x00\x00\x00\x01\x00\x00\x00"),
        );
    }
    driver.close();
    let count = |line: &str| shown(&driver.out).iter().filter(|it| *it == line).count();
    assert_eq!(
        (count("- => fine"), count("RESET STATEMENT => fine")),
        (20, 20)
    );
}

/// MySQL's Connector/Python, which had prepared its statements before the observation.
#[test]
fn a_joined_connection_is_understood_from_any_command_of_a_prepared_statement_on() {
    let calls = &transcript(RECORDED)[4];
    let executes = calls
        .iter()
        .filter(|call| call.bytes.get(4) == Some(&0x17))
        .count();
    for skipped in 8..calls.len() - 12 {
        let mut driver = joined();
        for call in &calls[skipped..] {
            driver.call(call, WHOLE);
        }
        driver.close();
        let left = calls[skipped..]
            .iter()
            .filter(|call| call.bytes.get(4) == Some(&0x17))
            .count();
        let found = driver
            .out
            .iter()
            .filter(|it| {
                it.method.as_deref() != Some("RESET STATEMENT")
                    && it.method.as_deref() != Some("PREPARE")
            })
            .count();
        assert!(
            found >= left,
            "{skipped}: {:?} {executes} {left}",
            shown(&driver.out)
        );
    }
}
