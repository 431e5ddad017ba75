//! Debian's C++ libraries: their exported symbols are the truth, hidden from the inference.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
};

use profiler_symbolize::inferred;

use super::truth::Truth;

/// Only one test at a time runs apt.
static APT: Mutex<()> = Mutex::new(());

/// Fetches a package of this machine's Debian and unpacks it below target, without installing it.
fn library(package: &str, file: &str) -> Vec<u8> {
    let _one = APT
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let folder = super::scratch().join("packages").join(package);
    if find(&folder, file).is_none() {
        fs::create_dir_all(&folder).unwrap();
        let run = |command: &mut Command| {
            let shown = format!("{command:?}");
            let done = command.current_dir(&folder).output().unwrap();
            assert!(
                done.status.success(),
                "{shown}: {}",
                String::from_utf8_lossy(&done.stderr)
            );
        };
        let download = ["-o", "APT::Sandbox::User=root", "download", package];
        run(Command::new("apt-get").args(download));
        run(Command::new("sh").args(["-c", "for deb in *.deb; do dpkg -x \"$deb\" .; done"]));
    }
    let path = find(&folder, file).expect("the package holds the library");
    fs::read(path).unwrap()
}

/// The regular file below `folder` whose name begins so.
fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let kind = entry.file_type().ok()?;
        if kind.is_dir() {
            if let Some(found) = find(&entry.path(), name) {
                return Some(found);
            }
        } else if kind.is_file() && entry.file_name().to_string_lossy().starts_with(name) {
            return Some(entry.path());
        }
    }
    None
}

/// Takes the names of all functions and objects of the file's own away; what it imports keeps its
/// name, as without it the file could not be loaded.
fn hide_names(file: &[u8]) -> Vec<u8> {
    const SHT_SYMTAB: u32 = 2;
    const SHT_DYNSYM: u32 = 11;
    let u64_at = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap());
    let u32_at = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let u16_at = |at: usize| u16::from_le_bytes(file[at..at + 2].try_into().unwrap());
    let mut hidden = file.to_vec();
    let headers = usize::try_from(u64_at(40)).unwrap();
    for section in 0..usize::from(u16_at(60)) {
        let header = headers + section * 64;
        if ![SHT_SYMTAB, SHT_DYNSYM].contains(&u32_at(header + 4)) {
            continue;
        }
        let start = usize::try_from(u64_at(header + 24)).unwrap();
        let bytes = usize::try_from(u64_at(header + 32)).unwrap();
        for symbol in (start..start + bytes).step_by(24) {
            let is_import = u16_at(symbol + 6) == 0;
            if !is_import {
                hidden[symbol..symbol + 4].fill(0);
            }
        }
    }
    hidden
}

fn check(package: &str, file: &str, at_least: usize) {
    let library = library(package, file);
    let hidden = hide_names(&library);
    assert!(
        Truth::read(&hidden)
            .names
            .values()
            .flatten()
            .all(String::is_empty)
    );
    let names = inferred::infer(&hidden).unwrap();
    let score = Truth::read(&library).judge(&hidden, &names);
    score.show(file);
    score.assert_right(at_least);
}

#[test]
fn libgrpcpp_agrees_with_its_symbols() {
    check("libgrpc++1.51", "libgrpc++.so.1", 100);
}

#[test]
fn libprotobuf_agrees_with_its_symbols() {
    check("libprotobuf32", "libprotobuf.so", 100);
}

#[test]
fn libqt6core_agrees_with_its_symbols() {
    check("libqt6core6", "libQt6Core.so", 100);
}
