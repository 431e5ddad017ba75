//! Requests to databases and name servers, by their own clients: each is reported once, with its
//! operation and what became of it.

use std::{collections::BTreeMap, fmt::Write as _};

use profiler_protocols::{Dialect, fold_statement};
use profiler_tests::{
    cleanup::scratch_directory,
    peers::{
        asked::Asked,
        dns::{self, Dnsmasq},
        lasting::Lasting,
        mariadb::MariaDb,
        postgres::Postgres,
        redis::Redis,
        watch::{Edges, Expected, Gaps, Report, Watch},
    },
};

/// Requests of an expected list, each as often as it was made.
fn repeated(lines: &[(usize, &str, &str, &str)]) -> Vec<Asked> {
    let one = |&(times, method, route, status): &(usize, &str, &str, &str)| {
        std::iter::repeat_n(Asked::new(method, route, status), times)
    };
    lines.iter().flat_map(one).collect()
}

/// One server for all tests here, of which each has a table of its own.
fn postgres() -> &'static Postgres {
    static POSTGRES: Lasting<Postgres> = Lasting::new();
    POSTGRES.get(Postgres::start).unwrap()
}

/// Processes that answered at a port, of which each was born to one of `parents` or is one.
fn servers_of(report: &Report, port: u16, known: u32) -> Vec<u32> {
    let samples = report.samples(Edges::To(port)).unwrap();
    let pids = samples
        .iter()
        .filter_map(|sample| sample["edge"]["server"]["pid"].as_u64());
    let mut pids: Vec<u32> = pids.map(|pid| u32::try_from(pid).unwrap()).collect();
    pids.push(known);
    pids.sort_unstable();
    pids.dedup();
    pids
}

/// Statements in which words stand in literals, names and comments, put together at random from pieces of a dialect.
/// Each `@` of a piece is another word.
fn statements(pieces: &[&str], seed: u64) -> Vec<String> {
    const COUNT: usize = 600;
    const BETWEEN: [&str; 8] = [", ", ", ", "\n, ", " ", "\n", "\r", ",", " , -- x\n"];
    let mut state = seed;
    let mut random = move |below: usize| {
        // Knuth's MMIX.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    let mut words = 0;
    let mut one = |_| {
        let mut statement = "SELECT ".to_owned();
        for number in 0..=random(4) {
            if number > 0 {
                statement.push_str(BETWEEN[random(BETWEEN.len())]);
            }
            statement.push_str(pieces[random(pieces.len())]);
        }
        let mut whole = String::new();
        for (number, part) in statement.split('@').enumerate() {
            if number > 0 {
                words += 1;
                write!(whole, "CANARY{words:05}").unwrap();
            }
            whole.push_str(part);
        }
        whole
    };
    (0..COUNT).map(&mut one).collect()
}

/// What the server's own lexer takes for a value is never shown.
fn check_values(dialect: Dialect, statements: &[String], answers: &[String]) {
    assert_eq!(statements.len(), answers.len());
    let mut seen = 0;
    for (statement, answer) in statements.iter().zip(answers) {
        let shown = fold_statement(statement.as_bytes(), dialect);
        for word in answer
            .match_indices("CANARY")
            .map(|(at, _)| &answer[at..at + 11])
        {
            assert!(statement.contains(word));
            assert!(
                !shown.contains(word),
                "{word} of {statement:?} is shown: {shown:?}"
            );
            seen += 1;
        }
    }
    assert!(seen > 200, "only {seen} words were values");
}

#[test]
fn what_postgresql_reads_as_a_value_is_never_shown() {
    let (folder, _guard) = scratch_directory("sql-postgresql").unwrap();
    let pieces = [
        "'@'",
        "'a''@'",
        "'x\n@'",
        "'-- @'",
        "'/* @'",
        "E'\\'@'",
        "e'a\\n@\\\\'",
        "U&'@'",
        "B'1'",
        "$$@$$",
        "$a$@ $$ '$a$",
        "$a1$ /* @ $a1$",
        "1",
        "1 --'\n",
        "2 -- x\r",
        "2 --\r, '@'",
        "/* @ */ 3",
        "/* /* ' */ @ */ '@'",
        "/*! '*/ '@'",
        "'@'::text",
        "'@' AS \"@\"",
        "5 AS \"a'b\"",
        "'a'\n'@'",
        "-1",
        "3 # 4",
    ];
    let statements = statements(&pieces, 1);
    let answers = postgres().values(&folder, &statements).unwrap();
    check_values(Dialect::PostgreSql, &statements, &answers);
}

#[test]
fn what_mariadb_reads_as_a_value_is_never_shown() {
    let (folder, _guard) = scratch_directory("sql-mariadb").unwrap();
    let mariadb = MariaDb::start(&folder).unwrap();
    let pieces = [
        "'@'",
        "\"@\"",
        "'a''@'",
        "\"a\"\"@'\"",
        "'x\n@'",
        "'a\\'@'",
        "\"a\\\"@\"",
        "'@\\\\'",
        "'-- @'",
        "'# @'",
        "_utf8'@'",
        "N'@'",
        "x'61'",
        "1",
        "1--'@'",
        "1--\t'\n",
        "2 -- x\r",
        "2 # '\n",
        "2 # x\r, '@'\n",
        "/* @ */ 3",
        "/* ' */ '@'",
        "/*! '@' */",
        "/*!50000 '*/ @' */",
        "/*M!100100 '@' */",
        "/*!99999 ' */ '@'",
        "/*+ '@' */ 3",
        "'@' AS `@`",
        "5 AS `a'b`",
        "'a' '@'",
        "-1",
    ];
    let statements = statements(&pieces, 1);
    let answers = mariadb.values(&folder, &statements).unwrap();
    check_values(Dialect::MySql, &statements, &answers);
}

#[test]
fn commands_of_redis_are_told_with_their_errors_and_sizes() {
    let (folder, _guard) = scratch_directory("redis").unwrap();
    let redis = Redis::start(&folder).unwrap();
    let watch = Watch::start(&[redis.pid()]).unwrap();
    let clients = [
        redis.command_line(&folder, &["-r", "20", "SET", "secret", "hidden"]),
        redis.command_line(&folder, &["-r", "10", "GET", "secret"]),
        redis.command_line(&folder, &["LPUSH", "secret", "hidden"]),
        redis.command_line(&folder, &["DEL", "secret", "other", "third"]),
        redis.command_line(&folder, &["EVALSHA", "hidden", "0"]),
        redis.command_line(&folder, &["PING"]),
    ]
    .map(Result::unwrap);
    let report = watch.finish().unwrap();
    let with_sizes = |times, asked: Asked| std::iter::repeat_n(asked, times);
    let mut asked = Vec::new();
    // *3 $3 SET $6 secret $6 hidden, answered +OK; and so on.
    asked.extend(with_sizes(
        20,
        Asked::new("SET", "SET ? ?", "ok").sizes(37, 5),
    ));
    asked.extend(with_sizes(
        10,
        Asked::new("GET", "GET ?", "ok").sizes(25, 12),
    ));
    asked.push(Asked::new("LPUSH", "LPUSH ? ?", "WRONGTYPE"));
    asked.push(Asked::new("DEL", "DEL ? ? ...", "ok"));
    asked.push(Asked::new("EVALSHA", "EVALSHA ? ?", "NOSCRIPT"));
    asked.push(Asked::new("PING", "PING", "ok").sizes(14, 7));
    report
        .check(&Expected {
            protocol: "redis",
            tls: false,
            edges: Edges::To(redis.port),
            clients: &clients,
            servers: &[redis.pid()],
            asked: &asked,
        })
        .unwrap();
    let text = report.json.to_string();
    assert!(
        !text.contains("secret") && !text.contains("hidden"),
        "{text}"
    );
}

#[test]
fn pipelined_commands_of_redis_are_counted_as_the_server_counts_them() {
    let (folder, _guard) = scratch_directory("redis").unwrap();
    let redis = Redis::start(&folder).unwrap();
    let watch = Watch::start(&[redis.pid()]).unwrap();
    let arguments = [
        "-t",
        "set,get,lpush",
        "-n",
        "1600",
        "-c",
        "4",
        "-P",
        "16",
        "--csv",
    ];
    let client = redis.benchmark(&folder, &arguments).unwrap();
    let report = watch.finish().unwrap();
    let asked = repeated(&[
        (2, "CONFIG", "CONFIG GET ?", "ok"),
        (1600, "SET", "SET ? ?", "ok"),
        (1600, "GET", "GET ?", "ok"),
        (1600, "LPUSH", "LPUSH ? ?", "ok"),
    ]);
    let truth = [
        ("config|get", 2),
        ("get", 1600),
        ("lpush", 1600),
        ("set", 1600),
    ];
    let truth = truth.map(|(name, count)| (name.to_owned(), count));
    assert_eq!(redis.counts(&folder).unwrap(), BTreeMap::from(truth));
    report
        .check(&Expected {
            protocol: "redis",
            tls: false,
            edges: Edges::To(redis.port),
            clients: &[client],
            servers: &[redis.pid()],
            asked: &asked,
        })
        .unwrap();
}

#[test]
fn statements_of_psql_are_told_without_their_literals() {
    let (folder, _guard) = scratch_directory("postgres").unwrap();
    let postgres = postgres();
    // How a statement ended stands behind its rows.
    let options = ["--capture-bytes=16320"];
    let watch = Watch::start_with(&[postgres.pid()], &options).unwrap();
    let before = postgres.logged().unwrap().0;
    let statements = [
        "CREATE TABLE things (id int PRIMARY KEY, name text)",
        "INSERT INTO things VALUES (1, 'hidden'), (2, 'hidden')",
        "SELECT name FROM things WHERE id = 1",
        "SELECT name FROM things WHERE id = 2",
        "SELECT nothing FROM things",
        "INSERT INTO things VALUES (1, 'again')",
        "SELECT repeat('long', 5000)",
        "BEGIN",
        "UPDATE things SET name = 'hidden' WHERE id = 2",
        "ROLLBACK",
    ];
    let client = postgres.psql(&folder, &statements).unwrap();
    let report = watch.finish().unwrap();
    assert_eq!(postgres.logged().unwrap().0 - before, statements.len());
    let asked = repeated(&[
        (1, "CONNECT", "CONNECT", "ok"),
        (
            1,
            "CREATE",
            "CREATE TABLE things (id int PRIMARY KEY, name text)",
            "ok",
        ),
        (1, "INSERT", "INSERT INTO things VALUES (?)", "ok"),
        (2, "SELECT", "SELECT name FROM things WHERE id = ?", "ok"),
        (1, "SELECT", "SELECT nothing FROM things", "42703"),
        (1, "INSERT", "INSERT INTO things VALUES (?)", "23505"),
        (1, "SELECT", "SELECT repeat(?)", "ok"),
        (1, "BEGIN", "BEGIN", "ok"),
        (1, "UPDATE", "UPDATE things SET name = ? WHERE id = ?", "ok"),
        (1, "ROLLBACK", "ROLLBACK", "ok"),
    ]);
    let servers = servers_of(&report, postgres.port, postgres.pid());
    report
        .check(&Expected {
            protocol: "postgresql",
            tls: false,
            edges: Edges::To(postgres.port),
            clients: &[client],
            servers: &servers,
            asked: &asked,
        })
        .unwrap();
    assert!(!report.json.to_string().contains("hidden"));
}

#[test]
fn statements_of_pgbench_are_counted_in_every_mode() {
    const TRANSACTIONS: u32 = 300;
    const CLIENTS: u32 = 2;
    const RATE: u32 = 600;
    let (folder, _guard) = scratch_directory("postgres").unwrap();
    let postgres = postgres();
    let table = ["CREATE TABLE counters (id int PRIMARY KEY, count int)"];
    postgres.psql(&folder, &table).unwrap();
    let script = "\\set id random(1, 100)\n\
                  INSERT INTO counters VALUES (:id, 1) ON CONFLICT (id) DO NOTHING;\n\
                  SELECT count FROM counters WHERE id = :id;\n";
    let insert = "INSERT INTO counters VALUES (?) ON CONFLICT (id) DO NOTHING";
    let select = "SELECT count FROM counters WHERE id = ?";
    for mode in ["simple", "extended", "prepared"] {
        let watch = Watch::start(&[postgres.pid()]).unwrap();
        let before = postgres.logged().unwrap();
        let how_often = [TRANSACTIONS, CLIENTS, RATE];
        let client = postgres.pgbench(&folder, script, mode, how_often).unwrap();
        let report = watch.finish().unwrap();
        let count = (TRANSACTIONS * CLIENTS) as usize;
        let after = postgres.logged().unwrap();
        // pgbench looks whether the server is there before its clients connect.
        let connections = CLIENTS as usize + 1;
        let truth = (before.0 + 2 * count, before.1 + connections);
        assert_eq!(after, truth, "{mode}");
        let asked = repeated(&[
            (connections, "CONNECT", "CONNECT", "ok"),
            (count, "INSERT", insert, "ok"),
            (count, "SELECT", select, "ok"),
        ]);
        let servers = servers_of(&report, postgres.port, postgres.pid());
        let expected = Expected {
            protocol: "postgresql",
            tls: false,
            edges: Edges::To(postgres.port),
            clients: &[client],
            servers: &servers,
            asked: &asked,
        };
        report
            .check(&expected)
            .unwrap_or_else(|error| panic!("{mode}: {error:#}"));
    }
}

#[test]
fn statements_of_mariadb_are_told_without_their_literals_and_without_the_password() {
    let (folder, _guard) = scratch_directory("mariadb").unwrap();
    let server = MariaDb::start(&folder).unwrap();
    let watch = Watch::start(&[server.pid()]).unwrap();
    let before = server.logged().unwrap().len();
    let statements = [
        "CREATE TABLE things (id int PRIMARY KEY, name text)",
        "INSERT INTO things VALUES (1, 'hidden'), (2, \"hidden\")",
        "SELECT name FROM things WHERE id = 1",
        "SELECT name FROM things WHERE id = 2",
        "SELECT nothing FROM things",
        "INSERT INTO things VALUES (1, 'again')",
        "SELECT repeat('long', 5000)",
        "UPDATE things SET name = 'hidden' WHERE id = 2",
    ];
    let client = server.run(&folder, &statements).unwrap();
    let report = watch.finish().unwrap();
    let logged = &server.logged().unwrap()[before..];
    let queries = logged.iter().filter(|(kind, _text)| kind == "Query");
    assert_eq!(queries.count(), statements.len(), "{logged:?}");
    let asked = repeated(&[
        (1, "CONNECT", "CONNECT", "ok"),
        (
            1,
            "CREATE",
            "CREATE TABLE things (id int PRIMARY KEY, name text)",
            "ok",
        ),
        (1, "INSERT", "INSERT INTO things VALUES (?)", "ok"),
        (2, "SELECT", "SELECT name FROM things WHERE id = ?", "ok"),
        (1, "SELECT", "SELECT nothing FROM things", "1054"),
        (1, "INSERT", "INSERT INTO things VALUES (?)", "1062"),
        (1, "SELECT", "SELECT repeat(?)", "ok"),
        (1, "UPDATE", "UPDATE things SET name = ? WHERE id = ?", "ok"),
    ]);
    let expected = Expected {
        protocol: "mysql",
        tls: false,
        edges: Edges::To(server.port),
        clients: &[client],
        servers: &[server.pid()],
        asked: &asked,
    };
    // The end of the long row's answer lies behind what is looked at.
    report.check_but(&expected, Gaps::AtMost(1)).unwrap();
    assert!(!report.json.to_string().contains("hidden"));
}

#[test]
fn questions_of_dig_are_told_over_udp_and_tcp() {
    // dnsmasq closes a connection of TCP after 100 questions.
    const TIMES: usize = 15;
    let (folder, _guard) = scratch_directory("dns").unwrap();
    let server = Dnsmasq::start(&folder).unwrap();
    let own = [server.pid()];
    // A server's socket of UDP has no peer: only clients' edges are looked at.
    let transports: [(&[&str], &[u32]); 3] = [
        (&["+notcp"], &[]),
        (&["+tcp"], &own),
        (&["+tcp", "+keepopen"], &own),
    ];
    for (options, servers) in transports {
        let watch = Watch::start(servers).unwrap();
        let before = server.logged().unwrap();
        let (client, asked) = server.dig(&folder, TIMES, options).unwrap();
        let report = watch.finish().unwrap();
        assert_eq!(
            server.logged().unwrap() - before,
            asked.len(),
            "{options:?}"
        );
        let expected = Expected {
            protocol: "dns",
            tls: false,
            edges: Edges::To(dns::PORT),
            clients: &[client],
            servers,
            asked: &asked,
        };
        report
            .check(&expected)
            .unwrap_or_else(|error| panic!("{options:?}: {error:#}"));
    }
}
