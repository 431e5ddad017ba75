use crate::{
    Outcome, Protocol,
    testing::{
        Cut, Driver, MILLISECOND, WHOLE, check_cuts, check_secrets, facts, run, shown, to_client,
        to_server, transcript,
    },
};

/// redis-py with redis-server 7.0, and a client of its own with RESP3.
const RECORDED: &str = include_str!("../../../../tests/fixtures/protocols/redis.txt");

fn command(words: &[&str]) -> String {
    let strings: Vec<String> = words
        .iter()
        .map(|word| format!("${}\r\n{word}\r\n", word.len()))
        .collect();
    format!("*{}\r\n{}", words.len(), strings.concat())
}

fn joined() -> Driver {
    Driver::new(crate::ConnectionFacts {
        joined: true,
        ..facts(6379)
    })
}

#[test]
fn real_connections() {
    let expected: [&[&str]; 3] = [
        &[
            "ACL SETUSER ? ? ... => fine",
            "AUTH ? ? => fine",
            "AUTH ? => ERR client error",
            "SET ? ? => fine",
            "GET ? => fine",
            "SET ? ? => fine",
            "GET ? => fine",
            "MSET ? ? ... => fine",
            "MGET ? ? => fine",
            "LPUSH ? ? ... => fine",
            "LRANGE ? ? ... => fine",
            "INCRBY ? ? => WRONGTYPE client error",
            "- => ERR client error",
            "MULTI => fine",
            "SET ? ? => fine",
            "INCRBY ? ? => fine",
            "EXEC => fine",
            "INCRBY ? ? => fine",
            "INCRBY ? ? => fine",
            "INCRBY ? ? => fine",
            "INCRBY ? ? => fine",
            "INCRBY ? ? => fine",
            "CONFIG GET ? => fine",
            "CLIENT SETNAME ? => fine",
            "DBSIZE => fine",
            "PING => fine",
            "EVAL ? ? ... => fine",
            "EVAL ? ? => CUSTOMERR client error",
        ],
        &[
            "SUBSCRIBE ? ? => fine",
            "UNSUBSCRIBE ? => fine",
            "PING ? => fine",
        ],
        &[
            "HELLO ? ? ... => fine",
            "HSET ? ? ... => fine",
            "HGETALL ? => fine",
            "CLIENT TRACKING ? => fine",
            "GET ? => fine",
            "GET ? => fine",
            "SUBSCRIBE ? => fine",
            "GET ? => fine",
            "PING => fine",
            "CLIENT REPLY ? => -",
            "SET ? ? => -",
            "GET ? => fine",
        ],
    ];
    for (calls, expected) in transcript(RECORDED).iter().zip(expected) {
        let driver = run(calls, facts(6379), WHOLE);
        assert_eq!(shown(&driver.out), expected);
        assert_eq!(driver.connection.trouble(), crate::Trouble::default());
        check_secrets(&driver.out);
    }
}

#[test]
fn real_connections_cut_anywhere() {
    check_cuts(&transcript(RECORDED), facts(6379));
}

#[test]
fn sizes_and_times_are_those_of_the_messages() {
    let mut driver = Driver::new(facts(1));
    let set = command(&["SET", "k", &"v".repeat(5000)]);
    let (first, second) = set.split_at(3000);
    let begin = driver.now_ns;
    let cut = Cut {
        capture: 100,
        seed: None,
    };
    driver
        .call(&to_server(first), cut)
        .call(&to_server(second), cut);
    driver
        .wait(7 * MILLISECOND)
        .call(&to_client("+OK\r\n"), cut);
    let [exchange] = driver.out.as_slice() else {
        panic!("{:?}", driver.out);
    };
    assert_eq!(exchange.begin_ns, begin);
    assert_eq!(exchange.request_end_ns, Some(begin + MILLISECOND + 10));
    assert_eq!(exchange.first_byte_ns, Some(begin + 9 * MILLISECOND + 20));
    assert_eq!(exchange.end_ns, begin + 9 * MILLISECOND + 20);
    assert_eq!(
        (exchange.request_bytes, exchange.response_bytes),
        (set.len() as u64, 5)
    );
    assert!(exchange.request_size_known && exchange.response_size_known);
}

#[test]
fn a_lost_reply_leaves_one_unknown() {
    let get = to_server(command(&["GET", "k"]));
    let mut driver = Driver::new(facts(1));
    for reply in ["$1\r\na\r\n", "$1\r\nb\r\n"] {
        driver.call(&get, WHOLE).call(&to_client(reply), WHOLE);
    }
    assert_eq!(driver.take(), ["GET ? => fine", "GET ? => fine"]);
    driver.call(&get, WHOLE).miss(&to_client("-ERR lost\r\n"));
    let ping = to_server(command(&["PING"]));
    driver
        .call(&ping, WHOLE)
        .call(&to_client("+PONG\r\n"), WHOLE);
    // Whose reply this is was not known yet.
    assert_eq!(driver.take(), ["GET ? => - unknown", "PING => - unknown"]);
    driver
        .call(&get, WHOLE)
        .call(&to_client("$1\r\nc\r\n"), WHOLE);
    assert_eq!(driver.take(), ["GET ? => fine"]);
    assert!(!driver.connection.is_dirty());
}

#[test]
fn pipelines_begin_anew_after_a_silence_only() {
    let get = to_server(command(&["GET", "k"]));
    let fine = to_client("$1\r\na\r\n");
    let mut driver = Driver::new(facts(1));
    driver.call(&get, WHOLE).call(&get, WHOLE);
    driver.call(&fine, WHOLE).call(&fine, WHOLE);
    assert_eq!(driver.take(), ["GET ? => fine", "GET ? => fine"]);
    driver.call(&get, WHOLE).miss(&get).call(&get, WHOLE);
    driver
        .call(&fine, WHOLE)
        .call(&to_client("-ERR no\r\n"), WHOLE)
        .call(&fine, WHOLE);
    driver.call(&get, WHOLE).call(&fine, WHOLE);
    assert!(driver.connection.is_dirty());
    let unknown = "GET ? => - unknown";
    assert_eq!(driver.take(), [unknown, unknown, unknown]);
    driver
        .wait(300 * MILLISECOND)
        .call(&get, WHOLE)
        .call(&fine, WHOLE);
    assert_eq!(driver.take(), ["GET ? => fine"]);
}

#[test]
fn a_command_that_is_cut_has_its_reply_and_no_size() {
    let mut driver = Driver::new(facts(1));
    driver
        .call(&to_server(command(&["PING"])), WHOLE)
        .call(&to_client("+PONG\r\n"), WHOLE);
    let many: Vec<String> = (0..200).map(|number| format!("key{number}")).collect();
    let words: Vec<&str> = std::iter::once("MGET")
        .chain(many.iter().map(String::as_str))
        .collect();
    let cut = Cut {
        capture: 64,
        seed: None,
    };
    driver
        .call(&to_server(command(&words)), cut)
        .call(&to_client("*1\r\n$1\r\nx\r\n"), WHOLE);
    driver
        .call(&to_server(command(&["PING"])), WHOLE)
        .call(&to_client("+PONG\r\n"), WHOLE);
    let sized = |exchange: &crate::Exchange| exchange.request_size_known;
    assert_eq!(
        driver.out.iter().map(sized).collect::<Vec<_>>(),
        [true, false]
    );
    assert_eq!(
        driver.take(),
        ["PING => fine", "MGET ? ? ... => fine", "PING => fine"]
    );
}

#[test]
fn joined_connections_begin_with_a_whole_command() {
    let mut driver = joined();
    driver.call(&to_client("lue\r\n"), WHOLE);
    driver.call(&to_client("$3\r\nabc\r\n"), WHOLE);
    driver.call(&to_server(command(&["HGET", "canary", "f"])), WHOLE);
    driver.call(&to_client("-LOADING canary\r\n"), WHOLE);
    assert_eq!(driver.take(), ["HGET ? ? => LOADING server error"]);
    assert_eq!(driver.connection.protocol(), Some(Protocol::Redis));
}

#[test]
fn an_end_breaks_what_is_open() {
    let mut driver = Driver::new(facts(1));
    driver
        .call(&to_server(command(&["BLPOP", "k", "0"])), WHOLE)
        .wait(5)
        .close();
    let [exchange] = driver.out.as_slice() else {
        panic!("{:?}", driver.out);
    };
    assert_eq!(exchange.outcome, Outcome::Broken);
    assert_eq!(exchange.end_ns, driver.now_ns);
}

#[test]
fn a_connection_may_begin_with_a_command_that_nobody_knows() {
    let mut driver = Driver::new(facts(6379));
    driver
        .call(&to_server(command(&["nosuch", "secret"])), WHOLE)
        .call(&to_client("-ERR unknown command\r\n"), WHOLE)
        .call(&to_server(command(&["TTL", "k"])), WHOLE)
        .call(&to_client(":-1\r\n"), WHOLE);
    assert_eq!(
        shown(&driver.out),
        ["- => ERR client error", "TTL ? => fine"]
    );
}

#[test]
fn lines_of_other_protocols_are_none() {
    for text in [
        "GET / HTTP/1.1\r\n\r\n",
        "*3\r\n$6\r\nCANARY\r\n",
        "*1\r\n+OK\r\n",
        "*1\r\n$3\r\na b\r\n",
        "EHLO a\r\n",
    ] {
        let mut driver = Driver::new(facts(6379));
        driver
            .call(&to_server(text), WHOLE)
            .call(&to_client("+OK\r\n"), WHOLE);
        assert_ne!(
            driver.connection.protocol(),
            Some(Protocol::Redis),
            "{text}"
        );
    }
}

#[test]
fn lengths_beyond_64_bits_are_none() {
    for reply in ["$", "*"] {
        let mut driver = Driver::new(facts(1));
        driver.call(&to_server(command(&["PING"])), WHOLE);
        driver.call(&to_client(format!("{reply}{}\r\n", "9".repeat(40))), WHOLE);
        assert_eq!(driver.connection.trouble().withdrawn_guesses, 1);
    }
}

#[test]
fn deep_and_long_values_are_bounded() {
    let mut driver = Driver::new(facts(1));
    for _ in 0..2 {
        driver
            .call(&to_server(command(&["PING"])), WHOLE)
            .call(&to_client("+PONG\r\n"), WHOLE);
    }
    driver.call(&to_server(command(&["PING"])), WHOLE);
    driver.call(&to_client("*1\r\n".repeat(100_000)), WHOLE);
    driver.call(&to_client("+".repeat(1 << 20)), WHOLE);
    assert!(driver.connection.is_dirty());
}

#[test]
fn commands_behind_the_captured_bytes_are_a_gap_and_values_are_none() {
    let set = command(&["SET", "k", &"v".repeat(500)]);
    let cut = Cut {
        capture: 60,
        seed: None,
    };
    let mut driver = Driver::new(facts(6379));
    driver
        .call(&to_server(&set), cut)
        .call(&to_client("+OK\r\n"), WHOLE);
    assert_eq!(driver.take(), ["SET ? ? => fine"]);
    assert_eq!(driver.connection.trouble().gaps, 0);
    assert!(!driver.connection.is_dirty());
    driver
        .call(&to_server(set + &command(&["PING"])), cut)
        .call(&to_client("+OK\r\n+PONG\r\n"), WHOLE);
    // That there was one more is known by its reply.
    assert_eq!(driver.take(), ["SET ? ? => fine", "- => fine unknown"]);
    assert_eq!(driver.connection.trouble().gaps, 1);
    assert!(driver.connection.is_dirty());
    driver
        .wait(300 * MILLISECOND)
        .call(&to_server(command(&["PING"])), WHOLE)
        .call(&to_client("+PONG\r\n"), WHOLE);
    assert_eq!(driver.take(), ["PING => fine"]);
    assert!(!driver.connection.is_dirty());
    driver.close();
    assert_eq!(driver.connection.trouble().gaps, 1);
}

/// Answers of 5,000 bytes, captured as far as the default says.
const CAPTURED: Cut = Cut {
    capture: 1024,
    seed: None,
};

fn list(strings: usize) -> String {
    format!(
        "*{strings}\r\n{}",
        "$100\r\nSTRING\r\n"
            .replace("STRING", &"v".repeat(100))
            .repeat(strings)
    )
}

#[test]
fn replies_above_the_captured_bytes_have_their_own_status_and_time() {
    let mut driver = Driver::new(facts(6379));
    for round in 0..100 {
        driver.call(&to_server(command(&["LRANGE", "k", "0", "-1"])), CAPTURED);
        // Read in three calls.
        let reply = list(50);
        for part in reply.as_bytes().chunks(2000) {
            driver.call(&to_client(part), CAPTURED);
        }
        driver.wait(170 * MILLISECOND);
        driver
            .call(&to_server(command(&["ECHO", "a"])), CAPTURED)
            .call(&to_client("$1\r\na\r\n"), CAPTURED);
        if round % 5 == 0 {
            driver
                .call(&to_server(command(&["INCR", "k"])), CAPTURED)
                .call(&to_client("-WRONGTYPE no\r\n"), CAPTURED);
        }
    }
    driver.close();
    let count = |line: &str| shown(&driver.out).iter().filter(|it| *it == line).count();
    assert_eq!(count("LRANGE ? ? ... => fine"), 100);
    assert_eq!(count("ECHO ? => fine"), 100);
    assert_eq!(count("INCR ? => WRONGTYPE client error"), 20);
    assert_eq!(driver.out.len(), 220);
    for exchange in &driver.out {
        let is_list = exchange.route.as_deref() == Some("LRANGE ? ? ...");
        let (calls, bytes) = if is_list {
            (3, list(50).len() as u64)
        } else {
            (1, exchange.response_bytes)
        };
        assert_eq!(exchange.duration_ns(), calls * (MILLISECOND + 10));
        assert_eq!(exchange.response_bytes, bytes);
    }
    assert_eq!(driver.connection.trouble().gaps, 0);
    assert!(driver.connection.trouble().withdrawn_guesses == 0);
}

#[test]
fn a_reply_that_was_not_seen_to_its_end_is_unknown_when_the_connection_ends() {
    let mut driver = Driver::new(facts(6379));
    driver
        .call(&to_server(command(&["PING"])), CAPTURED)
        .call(&to_client("+PONG\r\n"), CAPTURED)
        .call(&to_server(command(&["LRANGE", "k", "0", "-1"])), CAPTURED)
        .call(&to_client(list(50)), CAPTURED)
        .close();
    assert_eq!(
        shown(&driver.out),
        ["PING => fine", "LRANGE ? ? ... => - unknown"]
    );
    assert!(driver.connection.wants_bytes() || driver.connection.protocol().is_none());
}

#[test]
fn replies_above_the_captured_bytes_of_a_client_that_sends_ahead_are_unknown() {
    let mut driver = Driver::new(facts(6379));
    let (list_all, echo) = (
        command(&["LRANGE", "k", "0", "-1"]),
        command(&["ECHO", "a"]),
    );
    for _ in 0..20 {
        driver
            .call(&to_server(&list_all), CAPTURED)
            .call(&to_server(&echo), CAPTURED)
            .call(&to_client(list(50)), CAPTURED)
            .call(&to_client("$1\r\na\r\n"), CAPTURED);
    }
    driver.close();
    assert_eq!(driver.out.len(), 40);
    assert!(
        driver
            .out
            .iter()
            .all(|found| found.outcome == Outcome::Unknown),
        "{:?}",
        shown(&driver.out)
    );
    assert!(driver.connection.trouble().gaps > 0);
}

#[test]
fn pipelines_above_the_captured_bytes_are_counted_by_their_replies() {
    let mut driver = Driver::new(facts(6379));
    let pipeline = command(&["SET", "key", &"v".repeat(50)]).repeat(100);
    for _ in 0..50 {
        driver
            .call(&to_server(&pipeline), CAPTURED)
            .call(&to_client("+OK\r\n".repeat(100)), CAPTURED);
        assert!(driver.connection.wants_bytes());
    }
    driver.close();
    assert_eq!(driver.out.len(), 5000);
    let known = driver
        .out
        .iter()
        .filter(|found| found.outcome == Outcome::Ok);
    // Of the first pipeline: the next may not begin in time.
    assert!(known.count() > 10);
    assert!(
        driver
            .out
            .iter()
            .all(|found| found.outcome != Outcome::Broken)
    );
    let whole = Cut {
        capture: 16_320,
        ..CAPTURED
    };
    let mut driver = Driver::new(facts(6379));
    driver
        .call(&to_server(&pipeline), whole)
        .call(&to_client("+OK\r\n".repeat(100)), whole);
    assert_eq!(driver.take(), vec!["SET ? ? => fine"; 100]);
    assert!(!driver.connection.wants_bytes());
}

#[test]
fn a_joined_connection_that_sends_ahead_is_unknown_until_a_silence() {
    let mut driver = joined();
    let (get, echo) = (
        to_server(command(&["GET", "k"])),
        to_server(command(&["ECHO", "k"])),
    );
    // The reply to a command from before.
    driver
        .call(&get, WHOLE)
        .call(&to_client("-ERR of another\r\n"), WHOLE);
    driver.call(&echo, WHOLE).call(&get, WHOLE);
    for _ in 0..3 {
        driver.call(&to_client("$1\r\na\r\n"), WHOLE);
    }
    driver.wait(300 * MILLISECOND);
    driver
        .call(&echo, WHOLE)
        .call(&to_client("$1\r\nk\r\n"), WHOLE);
    let unknown = |name: &str| format!("{name} ? => - unknown");
    assert_eq!(
        driver.take(),
        [
            unknown("GET"),
            unknown("ECHO"),
            unknown("GET"),
            "ECHO ? => fine".to_owned()
        ]
    );
}
