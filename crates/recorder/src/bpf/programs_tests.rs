//! The table of programs against the eBPF sources.

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
    assert_eq!(minimum_kernel(Group::Payload), "6.3");
}

#[test]
fn a_row_says_in_half_a_sentence_what_is_missing() {
    for row in &PROGRAMS {
        assert!(
            !row.without.is_empty() && !row.without.ends_with('.'),
            "{}: {:?}",
            row.name,
            row.without
        );
    }
}
