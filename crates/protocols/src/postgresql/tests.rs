use crate::{
    ConnectionFacts, Outcome, Protocol,
    testing::{
        Call, Cut, Driver, MILLISECOND, WHOLE, check_cuts, check_secrets, facts, run, shown,
        timings, to_client, to_server, transcript,
    },
};

/// psycopg2 (simple queries) and psycopg 3 (prepared statements, a pipeline) with PostgreSQL 15.
const RECORDED: &str = include_str!("../../../../tests/fixtures/protocols/postgresql.txt");

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
    [&[kind][..], &length, body].concat()
}

fn query(text: &str) -> Call {
    to_server(message(b'Q', format!("{text}\0").as_bytes()))
}

fn done(tag: &str) -> Call {
    let tag = message(b'C', format!("{tag}\0").as_bytes());
    to_client([tag, message(b'Z', b"I")].concat())
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
    let expected: [&[&str]; 3] = [
        &[
            "CONNECT => fine",
            "CREATE TABLE IF NOT EXISTS users (id INT PRIMARY KEY, name TEXT) => fine",
            "DELETE FROM users => fine",
            "INSERT INTO users VALUES (?) => fine",
            "SELECT name FROM users WHERE name = ? AND id IN (?) => fine",
            "SELECT * FROM nosuch WHERE x = ? => 42P01 client error",
            "INSERT INTO users VALUES (?) => 23505 client error",
            "SELEC ? => 42601 client error",
            "SELECT repeat(?), ? UNION ALL SELECT repeat(?), ? => fine",
            "SELECT ?; UPDATE users SET name = ? WHERE id = ?; SELECT ? => fine",
            "COPY users FROM STDIN => fine",
            "COPY users TO STDOUT => fine",
            "DO ? => fine",
            "LISTEN ch => fine",
            "NOTIFY ch, ? => fine",
        ],
        &[
            "CONNECT => fine",
            select,
            select,
            select,
            "UPDATE users SET name = ? WHERE id = ? => fine",
            "INSERT INTO users VALUES (?) => 23505 client error",
            "SELECT ?::int + ? => fine",
            "SELECT ?::int + ? => fine",
            "SELECT ?::int + ? => fine",
            "SELECT ?::int + ? => fine",
            "SELECT ?::int + ? => fine",
            "BEGIN => fine",
            "UPDATE users SET name = ? WHERE id = ? => fine",
            "COMMIT => fine",
        ],
        &["CONNECT => 28P01 client error"],
    ];
    for (calls, expected) in transcript(RECORDED).iter().zip(expected) {
        let driver = run(calls, facts(5432), WHOLE);
        assert_eq!(shown(&driver.out), expected);
        assert_eq!(driver.connection.trouble(), crate::Trouble::default());
        check_secrets(&driver.out);
    }
}

#[test]
fn real_connections_cut_anywhere() {
    check_cuts(&transcript(RECORDED), facts(5432));
}

#[test]
fn joined_connections_pair_from_a_query_on() {
    let mut driver = joined();
    driver.call(&done("SELECT 1"), WHOLE);
    driver
        .call(&query("SELECT 'canary'"), WHOLE)
        .call(&done("SELECT 1"), WHOLE);
    driver
        .call(&query("BEGIN"), WHOLE)
        .call(&done("BEGIN"), WHOLE);
    assert_eq!(driver.take(), ["SELECT ? => fine", "BEGIN => fine"]);
    assert_eq!(driver.connection.protocol(), Some(Protocol::PostgreSql));
}

#[test]
fn a_statement_prepared_before_the_join_is_unknown() {
    let mut driver = joined();
    let group = [
        message(b'B', b"\0s1\0\0\0\0\0\0\0"),
        message(b'E', b"\0\0\0\0\0"),
        message(b'S', b""),
    ];
    driver.call(&to_server(group.concat()), WHOLE);
    let answer = [
        message(b'2', b""),
        message(b'C', b"SELECT 1\0"),
        message(b'Z', b"I"),
    ];
    driver.call(&to_client(answer.concat()), WHOLE);
    assert_eq!(driver.take(), ["- => fine"]);
}

#[test]
fn a_lost_answer_leaves_one_unknown() {
    let mut driver = joined();
    driver
        .call(&query("SELECT 1"), WHOLE)
        .call(&done("SELECT 1"), WHOLE)
        .wait(300 * MILLISECOND);
    assert_eq!(driver.take(), ["SELECT ? => fine"]);
    driver
        .call(&query("SELECT 2"), WHOLE)
        .miss(&done("SELECT 1"));
    driver
        .call(&query("DELETE FROM t"), WHOLE)
        .call(&done("DELETE 1"), WHOLE);
    driver
        .call(&query("SELECT 3"), WHOLE)
        .call(&done("SELECT 1"), WHOLE);
    assert_eq!(
        driver.take(),
        [
            "SELECT ? => - unknown",
            "DELETE FROM t => - unknown",
            "SELECT ? => fine"
        ]
    );
}

#[test]
fn what_a_failed_group_did_not_run_is_broken() {
    let mut driver = joined();
    driver
        .call(&query("BEGIN"), WHOLE)
        .call(&done("BEGIN"), WHOLE)
        .take();
    let run = |text: &str| {
        [
            message(b'P', format!("\0{text}\0\0\0").as_bytes()),
            message(b'B', b"\0\0\0\0\0\0\0\0"),
            message(b'E', b"\0\0\0\0\0"),
        ]
        .concat()
    };
    let group = [run("SELECT 1/0"), run("SELECT 2"), message(b'S', b"")].concat();
    driver.call(&to_server(group), WHOLE);
    let error = message(b'E', b"SERROR\0C22012\0Mdivision by canary\0\0");
    let answer = [
        message(b'1', b""),
        message(b'2', b""),
        error,
        message(b'Z', b"E"),
    ];
    driver.call(&to_client(answer.concat()), WHOLE);
    assert_eq!(
        driver.take(),
        ["SELECT ?/? => 22012 client error", "SELECT ? => - broken"]
    );
}

#[test]
fn a_statement_that_cannot_be_prepared_fails_by_itself() {
    let mut driver = joined();
    driver
        .call(&query("BEGIN"), WHOLE)
        .call(&done("BEGIN"), WHOLE)
        .take();
    let group = [
        message(b'P', b"s\0SELECT canary_column FROM nosuch\0\0\0"),
        message(b'D', b"Ss\0"),
        message(b'S', b""),
    ];
    driver.call(&to_server(group.concat()), WHOLE);
    let error = message(b'E', b"SERROR\0C42P01\0Mno\0\0");
    driver.call(&to_client([error, message(b'Z', b"E")].concat()), WHOLE);
    let route = "SELECT canary_column FROM nosuch => 42P01 client error";
    assert_eq!(driver.take(), [route]);
}

#[test]
fn an_encrypted_session_is_tls() {
    let mut driver = Driver::new(facts(1));
    driver.call(&to_server([0, 0, 0, 8, 4, 210, 22, 47]), WHOLE);
    driver.call(&to_client("S"), WHOLE);
    let hello = transcript(include_str!("../../../../tests/fixtures/protocols/tls.txt"));
    driver.call(&hello[0][0], WHOLE);
    assert_eq!(driver.connection.protocol(), Some(Protocol::Tls));
    let tls = driver.connection.tls().unwrap();
    assert_eq!(tls.server_name.as_deref(), Some("shop.example"));
    assert!(driver.close().out.is_empty());
}

#[test]
fn an_end_breaks_what_is_open() {
    let mut driver = joined();
    driver
        .call(&query("SELECT pg_sleep(9)"), WHOLE)
        .wait(MILLISECOND)
        .close();
    assert_eq!(driver.out[0].outcome, Outcome::Broken);
    assert_eq!(driver.take(), ["SELECT pg_sleep(?) => - broken"]);
}

#[test]
fn lengths_that_cannot_be_are_no_start() {
    for start in [
        [0, 0, 0, 8, 0, 3, 0, 0],
        [0, 1, 0, 0, 0, 3, 0, 0],
        [0, 0, 0, 99, 0, 2, 0, 0],
    ] {
        let mut driver = Driver::new(facts(5432));
        driver.call(&to_server(start), WHOLE);
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
        "SELECT name FROM users WHERE x = '{}'",
        "y".repeat(500)
    ));
    let other = query("DELETE FROM users");
    let mut driver = joined();
    driver
        .call(&query("SELECT 1"), WHOLE)
        .call(&done("SELECT 1"), WHOLE);
    driver.call(&long, cut).call(&done("SELECT 1"), WHOLE);
    assert_eq!(
        driver.take(),
        [
            "SELECT ? => fine",
            "SELECT name FROM users WHERE x = ?... => fine"
        ]
    );
    assert_eq!(driver.connection.trouble().gaps, 0);
    let both = [long.bytes, other.bytes].concat();
    driver
        .call(&to_server(both), cut)
        .call(&done("SELECT 1"), WHOLE)
        .call(&done("DELETE 3"), WHOLE);
    assert_eq!(
        driver.take(),
        ["SELECT name FROM users WHERE x = ?... => - unknown"]
    );
    assert_eq!(driver.connection.trouble().gaps, 1);
    assert!(driver.connection.is_dirty());
    driver.wait(300 * MILLISECOND);
    driver
        .call(&query("SELECT 1"), WHOLE)
        .call(&done("SELECT 1"), WHOLE);
    assert_eq!(driver.take(), ["SELECT ? => fine"]);
    assert!(!driver.connection.is_dirty());
}

#[test]
fn answers_above_the_captured_bytes_have_their_time_and_what_their_end_tells() {
    let cut = Cut {
        capture: 1024,
        seed: None,
    };
    let rows = message(b'D', &[b'v'; 100]).repeat(20);
    let error = message(b'E', b"SERROR\0C57014\0Mtimeout canary\0\0");
    let fine = message(b'C', b"SELECT 20\0");
    let ready = message(b'Z', b"I");
    let mut driver = joined();
    driver
        .call(&query("BEGIN"), cut)
        .call(&done("BEGIN"), cut)
        .wait(300 * MILLISECOND);
    let ask = |driver: &mut Driver, parts: &[Vec<u8>]| {
        driver.call(&query("SELECT a"), cut);
        for part in parts {
            driver.call(&to_client(part), cut);
        }
        driver.wait(7 * MILLISECOND);
    };
    let whole = [&rows[..], &fine, &ready].concat();
    // In one call nothing is seen of the end; in a later one that is captured it is.
    ask(&mut driver, &[whole]);
    ask(
        &mut driver,
        &[rows.clone(), [&rows[..300], &fine, &ready].concat()],
    );
    ask(
        &mut driver,
        &[rows.clone(), [&rows[50..300], &error, &ready].concat()],
    );
    driver
        .call(&query("COMMIT"), cut)
        .call(&done("COMMIT"), cut);
    let times: Vec<u64> = driver
        .out
        .iter()
        .map(crate::Exchange::duration_ns)
        .collect();
    check_secrets(&driver.out);
    driver.close();
    assert_eq!(
        shown(&driver.out),
        [
            "BEGIN => fine",
            "SELECT a => - unknown",
            "SELECT a => fine",
            "SELECT a => 57014 server error",
            "COMMIT => fine",
        ]
    );
    assert_eq!(times.len(), 3);
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
}

#[test]
fn notices_between_an_answer_and_the_next_query_take_no_time() {
    let cut = Cut {
        capture: 1024,
        seed: None,
    };
    let rows = message(b'D', &[b'v'; 100]).repeat(20);
    let mut driver = joined();
    driver
        .call(&query("LISTEN ch"), cut)
        .call(&done("LISTEN"), cut)
        .wait(300 * MILLISECOND);
    driver
        .call(&query("SELECT a"), cut)
        .call(&to_client(rows), cut);
    driver.wait(50 * MILLISECOND);
    driver.call(&to_client(message(b'A', b"\0\0\0\x01ch\0canary\0")), cut);
    driver
        .call(&query("COMMIT"), cut)
        .call(&done("COMMIT"), cut)
        .close();
    assert_eq!(driver.out[1].duration_ns(), MILLISECOND + 10);
    check_secrets(&driver.out);
}

#[test]
fn a_statement_whose_name_was_missed_does_not_have_the_text_of_another() {
    let mut driver = joined();
    driver
        .call(&query("BEGIN"), WHOLE)
        .call(&done("BEGIN"), WHOLE)
        .wait(300 * MILLISECOND);
    let parse = |table: &str| message(b'P', format!("\0SELECT a FROM {table}\0\0\0").as_bytes());
    let rest = [
        message(b'B', b"\0\0\0\0\0\0\0\0"),
        message(b'E', b"\0\0\0\0\0"),
        message(b'S', b""),
    ]
    .concat();
    let answer = [
        message(b'1', b""),
        message(b'2', b""),
        message(b'C', b"SELECT 1\0"),
        message(b'Z', b"I"),
    ]
    .concat();
    driver
        .call(&to_server([parse("users"), rest.clone()].concat()), WHOLE)
        .call(&to_client(&answer), WHOLE);
    let parse = parse("orders");
    driver
        .call(&to_server(&parse[..5]), WHOLE)
        .miss(&to_server(&parse[5..12]))
        .call(&to_server([&parse[12..], &rest[..]].concat()), WHOLE)
        .call(&to_client(&answer), WHOLE);
    assert_eq!(
        driver.take(),
        ["BEGIN => fine", "SELECT a FROM users => fine", "- => fine"]
    );
}
