//! `cargo xtask new-probe NAME`: the skeleton of a probe. It counts execs by CPU until it is changed to what it is for.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result, bail, ensure};

use crate::{exec, workspace::Workspace};

/// Files of a probe, with `NAME` for its name.
const FILES: [(&str, &str); 4] = [
    ("profiler-common/src/NAME.rs", include_str!("record.rs.in")),
    (
        "profiler-ebpf/src/probes/NAME.rs",
        include_str!("program.rs.in"),
    ),
    (
        "crates/recorder/src/probes/NAME.rs",
        include_str!("user_half.rs.in"),
    ),
    (
        "crates/recorder/tests/kernel/NAME.rs",
        include_str!("test.rs.in"),
    ),
];

/// Lists of modules that get a line each.
const MODULES: [(&str, &str); 4] = [
    ("profiler-common/src/lib.rs", "pub mod NAME;\n"),
    ("profiler-ebpf/src/probes/mod.rs", "mod NAME;\n"),
    ("crates/recorder/src/probes/mod.rs", "pub mod NAME;\n"),
    (
        "crates/recorder/tests/kernel/main.rs",
        "#[cfg(test)]\nmod NAME;\n",
    ),
];

/// The table of programs, how it begins and what ends it.
const TABLE: &str = "crates/recorder/src/bpf/programs.rs";
const TABLE_BEGIN: &str = "pub static PROGRAMS";
const TABLE_END: &str = "\n];";
const ROW: &str = include_str!("row.in");

/// Names that no module can have.
const KEYWORDS: [&str; 43] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
    "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "if", "impl", "in",
    "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "use",
];
/// Longest name: what the agent and the kernel print stays in its columns.
const MAX_LENGTH: usize = 23;

pub(crate) fn run(workspace: &Workspace, name: &str) -> Result<()> {
    for path in write(&workspace.root, name)? {
        println!("{path}");
    }
    println!(
        "next: BLESS=1 PROFILER_SKIP_EBPF=1 cargo test -p profiler-recorder --lib document_lists  (docs/kernel-support.md)\n      \
         cargo test -p profiler-recorder --test kernel {name}  (as root)"
    );
    Ok(())
}

/// Writes the skeleton into a checkout and returns the paths that it wrote; an error leaves everything as it was.
pub(crate) fn write(root: &Path, name: &str) -> Result<Vec<String>> {
    check_name(name)?;
    let mut writes = Vec::new();
    for (path, template) in FILES {
        let path = path.replace("NAME", name);
        let folder = path.trim_end_matches(".rs");
        for taken in [path.as_str(), folder] {
            ensure!(
                !root.join(taken).exists(),
                "{taken} is there already: choose another name"
            );
        }
        writes.push((path, filled(template, name)));
    }
    for (path, line) in MODULES {
        let text = read(root, path)?;
        let line = line.replace("NAME", name);
        let text = with_module(&text, &line)
            .with_context(|| format!("{path} lists no modules: add `{}` by hand", line.trim()))?;
        writes.push((path.to_owned(), text));
    }
    let text = with_row(&read(root, TABLE)?, name)?;
    writes.push((TABLE.to_owned(), text));
    let mut written = Vec::new();
    for (path, text) in writes {
        fs::write(root.join(&path), text).with_context(|| format!("write {path}"))?;
        written.push(path);
    }
    format(root, &written[..FILES.len()])?;
    Ok(written)
}

/// How long a line is and which import comes first depend on the name.
fn format(root: &Path, files: &[String]) -> Result<()> {
    let mut command = Command::new("rustfmt");
    command.current_dir(root).args(files);
    exec::output(&mut command)
        .context("the skeleton is written but not formatted: run `cargo fmt --all`")?;
    Ok(())
}

fn check_name(name: &str) -> Result<()> {
    let is_word = name.starts_with(|letter: char| letter.is_ascii_lowercase())
        && name
            .chars()
            .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
    ensure!(
        is_word && name.len() <= MAX_LENGTH,
        "{name:?} is no name for a probe: write small letters, digits and `_`, {MAX_LENGTH} at most, as in `exec_count`"
    );
    ensure!(
        !KEYWORDS.contains(&name),
        "{name} is a word of Rust: choose another name"
    );
    Ok(())
}

fn read(root: &Path, path: &str) -> Result<String> {
    fs::read_to_string(root.join(path)).with_context(|| format!("read {path}"))
}

/// A template with the name in its three spellings.
fn filled(template: &str, name: &str) -> String {
    template
        .replace("ProbeName", &camel_case(name))
        .replace("PROBE_NAME", &name.to_uppercase())
        .replace("probe_name", name)
}

fn camel_case(name: &str) -> String {
    name.split('_')
        .flat_map(|word| {
            let mut letters = word.chars();
            let first = letters.next().map(|letter| letter.to_ascii_uppercase());
            first.into_iter().chain(letters)
        })
        .collect()
}

/// A list of modules with one more at its end; `None` where there is no list.
fn with_module(text: &str, line: &str) -> Option<String> {
    let mut end = 0;
    let mut at = 0;
    for found in text.split_inclusive('\n') {
        at += found.len();
        let rest = found.strip_prefix("pub ").unwrap_or(found);
        if rest.starts_with("mod ") && rest.trim_end().ends_with(';') {
            end = at;
        }
    }
    let (before, after) = text.split_at_checked(end).filter(|_| end > 0)?;
    Some(format!("{before}{line}{after}"))
}

/// The table with a row at its end.
fn with_row(text: &str, name: &str) -> Result<String> {
    if text.contains(&format!("program(\"{name}\",")) {
        bail!("{TABLE} has a program {name} already: choose another name");
    }
    let end = text.find(TABLE_BEGIN).and_then(|begin| {
        let length = text[begin..].find(TABLE_END)?;
        Some(begin + length)
    });
    let end = end.with_context(|| {
        format!("{TABLE} has no table `{TABLE_BEGIN}`: adapt xtask/src/new_probe")
    })?;
    let (before, after) = text.split_at(end);
    Ok(format!("{before}\n{}{after}", filled(ROW.trim_end(), name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_module_and_a_type() {
        assert_eq!(camel_case("exec_count"), "ExecCount");
        for good in ["demo", "exec_count", "tcp4"] {
            check_name(good).unwrap();
        }
        for bad in [
            "",
            "Demo",
            "4tcp",
            "a-b",
            "loop",
            "../x",
            "a_name_that_is_longer_than_columns",
        ] {
            check_name(bad).unwrap_err();
        }
    }

    #[test]
    fn a_module_is_added_behind_the_last_one() {
        let text = "//! Doc.\n\nmod one;\npub mod two;\n\npub use one::One;\n";
        assert_eq!(
            with_module(text, "mod three;\n").unwrap(),
            "//! Doc.\n\nmod one;\npub mod two;\nmod three;\n\npub use one::One;\n"
        );
        assert_eq!(with_module("fn main() {}\n", "mod three;\n"), None);
    }

    #[test]
    fn a_row_is_added_at_the_end_of_the_table() {
        let text = "use a;\npub static PROGRAMS: &[ProgramRow] = &[\n    program(\"one\", x),\n];\n\nfn f() {}\n];\n";
        let found = with_row(text, "exec_count").unwrap();
        assert!(
            found.contains("program(\"one\", x),\n    program(\"exec_count\", TracepointBtf("),
            "{found}"
        );
        assert!(found.contains("),\n];\n\nfn f() {}"), "{found}");
        let twice = with_row(&found, "exec_count").unwrap_err().to_string();
        assert!(twice.contains("choose another name"), "{twice}");
    }

    #[test]
    fn nothing_is_written_where_a_file_is_in_the_way() {
        let root = tempfile::tempdir().unwrap();
        let taken = root.path().join("crates/recorder/src/probes/demo");
        fs::create_dir_all(&taken).unwrap();
        let error = write(root.path(), "demo").unwrap_err().to_string();
        assert!(
            error.contains("crates/recorder/src/probes/demo is there"),
            "{error}"
        );
        assert!(!root.path().join("profiler-common").exists());
    }
}
