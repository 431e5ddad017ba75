//! The table of programs against the eBPF sources, and as it stands in docs/kernel-support.md.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use super::*;

/// What stands above a program in the sources, with how a hook of that kind begins in [`as_written`].
const ATTRIBUTES: [(&str, &str); 5] = [
    ("#[btf_tracepoint(function = \"", "tp_btf/"),
    ("#[tracepoint", "tracepoint"),
    ("#[perf_event", "perf_event"),
    ("#[uprobe", "uprobe"),
    ("#[unsafe(link_section = \"", ""),
];

/// Sections that hold no programs.
const DATA: [&str; 1] = ["license"];

/// The hook of a row as the sources tell it.
fn as_written(hook: Hook) -> String {
    match hook {
        Hook::TracepointBtf(target) => format!("tp_btf/{target}"),
        // The agent chooses the tracepoints.
        Hook::SystemCalls(_) => "tracepoint".to_owned(),
        Hook::PerfEvent => "perf_event".to_owned(),
        Hook::Iterator(visited) => format!("iter/{visited}"),
        Hook::Uprobe => "uprobe".to_owned(),
        // The section of any raw tracepoint: the program is never attached.
        Hook::Command => "raw_tp/sys_enter".to_owned(),
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The hook above which a line of the sources stands.
fn hook_of(line: &str) -> Option<String> {
    let (rest, kind) = ATTRIBUTES
        .iter()
        .find_map(|(begin, kind)| Some((line.strip_prefix(begin)?, kind)))?;
    let target = rest.split('"').next().filter(|_| rest.contains('"'));
    let hook = format!("{kind}{}", target.unwrap_or_default());
    (!DATA.contains(&hook.as_str())).then_some(hook)
}

/// The programs of the sources with their hooks.
fn in_sources() -> BTreeMap<String, String> {
    let mut files = Vec::new();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../profiler-ebpf/src");
    collect(&sources, &mut files);
    let mut found = BTreeMap::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let Some(hook) = hook_of(line) else { continue };
            let name = lines.find_map(|line| {
                let (_, name) = line.split_once("fn ")?;
                name.split('(').next().map(str::to_owned)
            });
            let name = name.unwrap_or_else(|| panic!("{}: no function", file.display()));
            let twice = found.insert(name.clone(), hook);
            assert_eq!(twice, None, "{name} is there twice");
        }
    }
    found
}

#[test]
fn each_program_of_the_sources_has_one_row_with_its_hook() {
    let rows: BTreeMap<String, String> = PROGRAMS
        .iter()
        .map(|row| (row.name.to_owned(), as_written(row.hook)))
        .collect();
    assert_eq!(rows.len(), PROGRAMS.len(), "a name has two rows");
    assert_eq!(in_sources(), rows);
}

#[test]
fn a_program_that_needs_more_than_the_floor_says_so() {
    for (name, expected) in [("network_send", "6.3"), ("on_cpu", FLOOR)] {
        assert_eq!(row(name).minimum_kernel, expected, "{name}");
    }
    assert_eq!(minimum_kernel(Group::PayloadControl), "6.3");
}

#[test]
fn a_row_says_in_half_a_sentence_what_is_missing() {
    for row in PROGRAMS {
        assert!(
            !row.without.is_empty() && !row.without.ends_with('.'),
            "{}: {:?}",
            row.name,
            row.without
        );
    }
}

/// The lines of docs/kernel-support.md between which the table stands.
const BEGIN: &str = "<!-- programs: made from crates/recorder/src/bpf/programs.rs -->";
const END: &str = "<!-- end of programs -->";

/// The table for people.
fn document() -> String {
    let rows = PROGRAMS.iter().map(|row| {
        let since = match row.hazard {
            Hazard::None => String::new(),
            Hazard::GrowingMaps => "; refused before 6.1".to_owned(),
            Hazard::RingBufferInScheduler => "; with `PREEMPT_RT` 6.12, 6.6.84".to_owned(),
        };
        format!(
            "| `{}` | `{}` | {}{since} | {} | {} |\n",
            row.name,
            row.hook,
            row.minimum_kernel,
            row.group.name().replace('_', " "),
            row.without
        )
    });
    let head = "| program | hook | since | needed for | without it |\n|---|---|---|---|---|\n";
    std::iter::once(head.to_owned()).chain(rows).collect()
}

#[test]
fn the_document_lists_the_programs_as_they_are() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/kernel-support.md");
    let parts = || {
        let text = fs::read_to_string(&path).unwrap();
        let (before, rest) = text.split_once(BEGIN).expect("the line before the table");
        let (table, after) = rest.split_once(END).expect("the line behind the table");
        (before.to_owned(), table.to_owned(), after.to_owned())
    };
    let current = format!("\n{}", document());
    if std::env::var_os("BLESS").is_some() {
        let (before, _, after) = parts();
        fs::write(&path, format!("{before}{BEGIN}{current}{END}{after}")).unwrap();
    }
    assert!(
        parts().1 == current,
        "docs/kernel-support.md does not list the programs as they are; BLESS=1 PROFILER_SKIP_EBPF=1 cargo test \
         -p profiler-recorder --lib document_lists writes the table"
    );
}
