//! docs/access-logs.md shows the tables of this crate as they are.

use std::{fmt::Write as _, path::Path};

use crate::{flags::FLAGS, names::LOG_TYPES, otlp::ATTRIBUTES, timing::PHASES};

/// Tables by the name that their marks in the document have.
fn tables() -> [(&'static str, String); 4] {
    let mut phases = "| phase | time | what happens |\n|---|---|---|\n".to_owned();
    for phase in &PHASES {
        let (name, formula, meaning) = (phase.name, phase.formula, phase.meaning);
        writeln!(phases, "| {name} | {formula} | {meaning} |").unwrap();
    }
    let mut types = "| type | number | stage |\n|---|---|---|\n".to_owned();
    for row in &LOG_TYPES {
        writeln!(
            types,
            "| `{}` | {} | {:?} |",
            row.name, row.number, row.stage
        )
        .unwrap();
    }
    let mut flags =
        "| flag | what happened | usual cause and setting |\n|---|---|---|\n".to_owned();
    for flag in &FLAGS {
        let (short, long) = (flag.short_name, flag.long_name);
        let (meaning, cause) = (flag.meaning, flag.cause);
        writeln!(flags, "| `{short}` {long} | {meaning} | {cause} |").unwrap();
    }
    let mut attributes = "| attribute | value | as the message's |\n|---|---|---|\n".to_owned();
    for row in &ATTRIBUTES {
        let (name, operator, field) = (row.name, row.operator, row.field);
        writeln!(attributes, "| `{name}` | `{operator}` | {field} |").unwrap();
    }
    [
        ("phases", phases),
        ("log types", types),
        ("flags", flags),
        ("attributes", attributes),
    ]
}

#[expect(clippy::disallowed_methods, reason = "the test reads the document")]
fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test writes the document when it is asked to"
)]
fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}

#[test]
fn the_document_lists_the_tables_as_they_are() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/access-logs.md");
    let mut current = read(&path);
    for (name, table) in tables() {
        let begin = format!("<!-- {name}: made from crates/access-logs -->\n");
        let end = format!("<!-- end of {name} -->");
        let (before, rest) = current
            .split_once(&begin)
            .expect("the line before the table");
        let (_, after) = rest.split_once(&end).expect("the line behind the table");
        current = format!("{before}{begin}{table}{end}{after}");
    }
    if std::env::var_os("BLESS").is_some() {
        write(&path, &current);
    }
    assert!(
        read(&path) == current,
        "docs/access-logs.md does not list the tables as they are; BLESS=1 PROFILER_SKIP_EBPF=1 cargo test \
         -p profiler-access-logs --lib document_lists writes them"
    );
}
