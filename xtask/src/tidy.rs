//! House rules that no compiler knows: file sizes, nothing unfinished, one file that writes to the terminal.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail, ensure};

use crate::{test, workspace::Workspace};

/// Longest source file that is neither a test nor generated.
const MAX_LINES: usize = 600;
const SOURCES: [&str; 7] = [
    "profiler-common",
    "crates",
    "profiler-ebpf",
    "profiler-agent",
    "xtask",
    "tests",
    "web/src",
];
const EXTENSIONS: [&str; 4] = ["rs", "ts", "tsx", "css"];

/// Text that shows unfinished work or a test that does not run. Split so that this file does not match.
const UNFINISHED: [&str; 5] = [
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
    concat!("#[ig", "nore"),
    concat!("it.sk", "ip("),
    concat!("TO", "DO:"),
];

/// The one file of the agent that writes to the terminal, and what others would do it with. Foreign text is escaped
/// there. Split so that this file does not match.
const TERMINAL: &str = "profiler-agent/src/terminal.rs";
const AGENT_SOURCES: [&str; 3] = ["profiler-agent/src/", "profiler-common/src/", "crates/"];
const TERMINAL_WRITERS: [&str; 10] = [
    concat!("print", "!("),
    concat!("println", "!("),
    concat!("eprint", "!("),
    concat!("eprintln", "!("),
    concat!("dbg", "!("),
    concat!("io::std", "out"),
    concat!("io::std", "err"),
    concat!("std", "out()"),
    concat!("std", "err()"),
    concat!("ProgressDraw", "Target"),
];

/// A file of the workspace, with its path as people write it.
struct Source {
    path: String,
    text: String,
}

/// All violations in one error.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let sources = read_sources(&workspace.root)?;
    ensure!(
        !sources.is_empty(),
        "no sources found below {}",
        workspace.root.display()
    );
    let mut violations: Vec<String> = sources.iter().flat_map(violations_of).collect();
    violations.extend(test::unlisted_modules(&workspace.root)?);
    if violations.is_empty() {
        return Ok(());
    }
    bail!(
        "{} violations:\n  {}",
        violations.len(),
        violations.join("\n  ")
    )
}

fn violations_of(source: &Source) -> Vec<String> {
    let Source { path, text } = source;
    let mut found = Vec::new();
    let is_test = is_test(path);
    let lines = text.lines().count();
    if lines > MAX_LINES && !is_test && !is_generated(path) {
        found.push(format!("{path}: {lines} lines, more than {MAX_LINES}"));
    }
    let within = |modules: &[&str]| modules.iter().any(|module| path.starts_with(module));
    for (number, line) in text.lines().enumerate() {
        let mut report = |what: String| found.push(format!("{path}:{}: {what}", number + 1));
        for marker in UNFINISHED {
            if line.contains(marker) && !line.contains(test::NOT_A_TEST) {
                report(format!("`{marker}` is left over"));
            }
        }
        if within(&AGENT_SOURCES)
            && !is_test
            && path != TERMINAL
            && !path.ends_with("/build.rs")
            && let Some(writer) = terminal_writer(line)
        {
            report(format!(
                "`{writer}`: only {TERMINAL} writes to the terminal"
            ));
        }
    }
    found
}

/// Whether a path is that of a test, by the names that this repository uses.
fn is_test(path: &str) -> bool {
    path.ends_with("tests.rs") || path.contains("tests/") || path.contains(".test.")
}

/// Whether a path is that of a file that a generator wrote; the generator's check keeps it fresh.
fn is_generated(path: &str) -> bool {
    path.contains("/generated/")
}

/// What of a line writes to the terminal; a comment does not.
fn terminal_writer(line: &str) -> Option<&'static str> {
    let code = line.split("//").next().unwrap_or_default();
    let starts_word = |at: usize| {
        let before = code.get(..at).unwrap_or_default();
        !before.ends_with(|letter: char| letter.is_alphanumeric() || letter == '_')
    };
    TERMINAL_WRITERS
        .into_iter()
        .find(|writer| code.match_indices(writer).any(|(at, _)| starts_word(at)))
}

fn read_sources(root: &Path) -> Result<Vec<Source>> {
    let mut paths = Vec::new();
    for folder in SOURCES {
        let folder = root.join(folder);
        if folder.exists() {
            collect(&folder, &mut paths)?;
        }
    }
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let text =
                fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
            let path = path
                .strip_prefix(root)
                .unwrap_or(&path)
                .to_string_lossy()
                .into_owned();
            Ok(Source { path, text })
        })
        .collect()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))? {
        let path = entry
            .with_context(|| format!("list {}", folder.display()))?
            .path();
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        if path.is_dir() && name != "target" && name != "node_modules" {
            collect(&path, paths)?;
        } else if path
            .extension()
            .is_some_and(|found| EXTENSIONS.iter().any(|known| found == *known))
        {
            paths.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, text: &str, expected: &[&str]) {
        let found = violations_of(&Source {
            path: path.to_owned(),
            text: text.to_owned(),
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn unfinished_work_is_found_with_its_line() {
        let text = concat!("fn a() {\n    todo", "!()\n}\n");
        check(
            "profiler-agent/src/app.rs",
            text,
            &[concat!(
                "profiler-agent/src/app.rs:2: `todo",
                "!(` is left over"
            )],
        );
    }

    #[test]
    fn a_test_that_never_runs_is_found() {
        let text = concat!("#[test]\n#[ig", "nore = \"slow\"]\n");
        check(
            "tests/it/api.rs",
            text,
            &[concat!("tests/it/api.rs:2: `#[ig", "nore` is left over")],
        );
    }

    #[test]
    fn a_file_with_too_many_lines_is_found_unless_it_is_a_test_or_generated() {
        let text = "\n".repeat(MAX_LINES + 1);
        check(
            "xtask/src/a.rs",
            &text,
            &["xtask/src/a.rs: 601 lines, more than 600"],
        );
        for path in [
            "xtask/src/a/tests.rs",
            "xtask/src/a/tests/b.rs",
            "xtask/src/a_tests.rs",
            "web/src/api/generated/a.ts",
        ] {
            check(path, &text, &[]);
        }
    }

    #[test]
    fn only_one_file_writes_to_the_terminal() {
        for (line, found) in [
            (
                concat!("    print", "ln!(\"{name}\");"),
                concat!("print", "ln!("),
            ),
            (concat!("eprint", "!(\"x\")"), concat!("eprint", "!(")),
            (
                concat!("std::io::std", "out().lock()"),
                concat!("io::std", "out"),
            ),
            (
                concat!("let mut to = std", "err();"),
                concat!("std", "err()"),
            ),
        ] {
            let expected = format!(
                "profiler-agent/src/cli/a.rs:1: `{found}`: only {TERMINAL} writes to the terminal"
            );
            check("profiler-agent/src/cli/a.rs", line, &[&expected]);
            check(
                "profiler-agent/src/main.rs",
                line,
                &[&expected.replace("cli/a", "main")],
            );
            for path in [
                TERMINAL,
                "profiler-agent/src/cli/a_tests.rs",
                "crates/engine/src/task/tests/a.rs",
                "profiler-agent/build.rs",
                "crates/recorder/build.rs",
                "xtask/src/a.rs",
            ] {
                check(path, line, &[]);
            }
        }
        for harmless in [
            concat!("// print", "ln!(x)"),
            concat!("self.blue", "print", "!(x)"),
            "command.stdout(Stdio::null())",
        ] {
            check("profiler-agent/src/cli/a.rs", harmless, &[]);
        }
    }
}
