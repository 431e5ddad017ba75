use super::{Dialect, fold};

fn check(dialect: Dialect, statement: &str, expected: &str) {
    let folded = fold(statement.as_bytes(), true, dialect, 512);
    assert_eq!(folded.text, expected, "{statement}");
}

fn both(statement: &str, expected: &str) {
    check(Dialect::PostgreSql, statement, expected);
    check(Dialect::MySql, statement, expected);
}

#[test]
fn literals_become_marks() {
    both(
        "SELECT * FROM t1 WHERE a = 'x''y' AND b=12.5e-3 AND c > -7",
        "SELECT * FROM t1 WHERE a = ? AND b=? AND c > ?",
    );
    both("SELECT a-1, t.b FROM t", "SELECT a-?, t.b FROM t");
    both("SELECT 0xDEADBEEF, .5, 1_000", "SELECT ?");
    both("SELECT x'ff', N'a', b'01' FROM t", "SELECT ? FROM t");
    check(Dialect::PostgreSql, "SELECT E'a', U&'b' , $1", "SELECT ?");
    check(Dialect::MySql, "SELECT _utf8'a' , \"lit\"", "SELECT ?");
}

#[test]
fn names_stay() {
    check(
        Dialect::PostgreSql,
        "SELECT \"My Name\" FROM s.tab_2",
        "SELECT \"My Name\" FROM s.tab_2",
    );
    check(
        Dialect::MySql,
        "SELECT `a b` FROM `t1`",
        "SELECT `a b` FROM `t1`",
    );
}

#[test]
fn lists_and_rows_become_one() {
    both(
        "INSERT INTO t (a, b) VALUES (1, 'x'), (2, 'y'),(3,'z')",
        "INSERT INTO t (a, b) VALUES (?)",
    );
    both(
        "SELECT 1 FROM t WHERE a IN ( 1,2 , 3 )",
        "SELECT ? FROM t WHERE a IN (?)",
    );
}

#[test]
fn comments_and_spaces_go() {
    both(
        "/* secret */ SELECT -- 'secret'\n\t a\r\n FROM  t ; ",
        "SELECT a FROM t",
    );
    check(
        Dialect::MySql,
        "SELECT a # secret\nFROM t",
        "SELECT a FROM t",
    );
    check(Dialect::PostgreSql, "SELECT a #> '{b}'", "SELECT a #> ?");
}

#[test]
fn dollar_quotes_are_literals() {
    check(
        Dialect::PostgreSql,
        "DO $body$ SELECT 'secret' $x$ $body$ LANGUAGE sql",
        "DO ? LANGUAGE sql",
    );
    check(Dialect::PostgreSql, "DO $$secret$$", "DO ?");
    check(Dialect::PostgreSql, "DO $$secret", "DO ?...");
}

#[test]
fn what_two_settings_read_differently_is_left_out() {
    both(r"SELECT 'a\' secret '", "SELECT ?...");
    both(r"SELECT 'a\\', b", "SELECT ?...");
    both("SELECT 1 /* a /* b */ secret */", "SELECT ?...");
}

#[test]
fn no_cut_shows_a_literal() {
    let statements = [
        (
            Dialect::PostgreSql,
            "SELECT a WHERE b = 'secret' AND c IN ('secret', 'secret') -- secret",
        ),
        (
            Dialect::PostgreSql,
            "INSERT INTO t VALUES ('secret', E'secret', $q$secret$q$, 'secret')",
        ),
        (
            Dialect::MySql,
            "/*secret*/ UPDATE t SET a = 'sec''ret secret', c = \"secret\"",
        ),
        (
            Dialect::MySql,
            "SELECT _utf8'secret' # secret\n, N'secret', 'a\\'secret'",
        ),
    ];
    for (dialect, statement) in statements {
        for end in 0..statement.len() {
            let folded = fold(&statement.as_bytes()[..end], false, dialect, 512);
            // "se" is in "SELECT" only in upper case.
            assert!(!folded.text.contains("sec"), "{}", folded.text);
            assert!(folded.text.ends_with("..."), "{}", folded.text);
        }
    }
}

#[test]
fn length_is_bounded() {
    let long = format!("SELECT {} FROM t", "column, ".repeat(1000));
    let folded = fold(long.as_bytes(), true, Dialect::MySql, 100);
    assert!(
        folded.text.len() <= 100 && folded.text.ends_with("..."),
        "{}",
        folded.text
    );
    assert_eq!(folded.method.as_deref(), Some("SELECT"));
}

#[test]
fn methods_are_words_of_sql() {
    let method = |text: &str| fold(text.as_bytes(), true, Dialect::MySql, 512).method;
    assert_eq!(method("(select 1)").as_deref(), Some("SELECT"));
    assert_eq!(method("  begin"), Some("BEGIN".to_owned()));
    assert_eq!(method("selec 1"), None);
    assert_eq!(method(""), None);
}

/// What one server reads as a comment and the other, or an earlier version of this file, does not.
#[test]
fn comments_end_where_the_server_ends_them() {
    check(
        Dialect::PostgreSql,
        "-- x\rSELECT 'first\nCANARY' AS v",
        "SELECT ? AS v",
    );
    check(Dialect::MySql, "-- x\rSELECT 'CANARY\nSELECT a", "SELECT a");
    check(
        Dialect::MySql,
        "/*!50000 SELECT '*/ CANARY ' AS v */",
        "...",
    );
    check(
        Dialect::MySql,
        "SELECT a /*M!100100 , '*/ CANARY' */",
        "SELECT a...",
    );
    check(Dialect::PostgreSql, "/*!50000 ' */ SELECT a", "SELECT a");
    check(
        Dialect::MySql,
        "SELECT /*+ SET_VAR(x='*/ CANARY') */ a",
        "SELECT...",
    );
    check(Dialect::MySql, "SELECT /*+ NO_ICP(t) */ a", "SELECT a");
    check(Dialect::MySql, "SELECT 1--'\nCANARY', a", "SELECT ?--?, a");
    check(Dialect::MySql, "SELECT 1--\tb\n, a", "SELECT ?, a");
    check(Dialect::PostgreSql, "SELECT 1--'\n, a", "SELECT ?, a");
    let latin = fold(b"SELECT a--\xa0'\nCANARY'", true, Dialect::MySql, 512);
    assert_eq!(latin.text, "SELECT a...");
}

#[test]
fn values_of_settings_go_without_quotes_as_well() {
    both("SET my.secret = CANARY", "SET my.secret = ?");
    both("set local a.b to CANARY, c", "set local a.b to ?...");
    both("SET a = 'x', CANARY", "SET a = ?");
    both("SET a = CANARY-CANARY", "SET a = ?...");
    both("SET autocommit=0", "SET autocommit=?");
    check(Dialect::MySql, "SET @a := CANARY ;", "SET @a := ?");
    both(
        "SELECT a; /* x */ SET my.secret=CANARY; SELECT 1",
        "SELECT a; SET my.secret=?...",
    );
    both("ALTER ROLE r SET x TO CANARY", "ALTER ROLE r SET x TO ?");
    both("UPDATE t SET a = b", "UPDATE t SET a = b");
    both(
        "INSERT INTO t SELECT a FROM b WHERE c = d",
        "INSERT INTO t SELECT a FROM b WHERE c = d",
    );
    both(
        "SET TRANSACTION READ ONLY; SELECT a = b",
        "SET TRANSACTION READ ONLY; SELECT a = b",
    );
}
