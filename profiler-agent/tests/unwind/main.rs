//! The unwinder's tables against gimli, at every instruction of real files.
//!
//! Run by `cargo xtask test unwind`, which fetches Envoy, Debian's arm64 glibc and the packages.
//! Release build: twenty million instructions are compared in some seconds.

mod compare;
mod dwarf;
mod rows;
mod synthetic;

use std::path::{Path, PathBuf};

use compare::{Class, Report, Source, compare};

/// In 1/10,000 of a file's rows.
const MOST_EXCEPTIONS: u64 = 5;

fn check(path: &Path, source: Source) -> Report {
    let report = compare(path, source);
    println!("{report}");
    assert!(
        report.instructions > 1000 && report.returns > 100,
        "{report}"
    );
    if source == Source::EhFrame {
        assert_eq!(report.count(Class::WrongFrame), 0, "{report}");
    }
    assert!(
        report.exception_rows * 10_000 <= report.rows_raw * MOST_EXCEPTIONS,
        "{report}"
    );
    report
}

/// The path in an environment variable that `cargo xtask test unwind` sets.
fn given(variable: &str) -> PathBuf {
    match std::env::var_os(variable) {
        Some(path) => path.into(),
        None => panic!("{variable} is not set: run `cargo xtask test unwind`"),
    }
}

#[test]
fn envoy() {
    let report = check(&given("PROFILER_ENVOY"), Source::EhFrame);
    // One row for a function with a frame pointer: the tables stay small.
    assert!(report.rows_ours < 500_000, "{report}");
}

#[test]
fn libc() {
    let report = check(
        Path::new("/lib/x86_64-linux-gnu/libc.so.6"),
        Source::EhFrame,
    );
    assert_eq!(
        report.exceptions(),
        report.count(Class::Unsupported),
        "{report}"
    );
}

#[test]
fn libstdcxx() {
    check(
        Path::new("/usr/lib/x86_64-linux-gnu/libstdc++.so.6"),
        Source::EhFrame,
    );
}

#[test]
fn libcrypto() {
    check(
        Path::new("/usr/lib/x86_64-linux-gnu/libcrypto.so.3"),
        Source::EhFrame,
    );
}

#[test]
fn node() {
    check(&given("PROFILER_NODE"), Source::EhFrame);
}

#[test]
fn rust_program() {
    check(&std::env::current_exe().expect("a path"), Source::EhFrame);
}

/// Functions written in assembly that call without a frame of their own (`runtime.morestack`) lose
/// one frame here; they are the exceptions.
#[test]
fn go_program() {
    check(&given("PROFILER_GO_PROGRAM"), Source::DebugFrame);
}

#[test]
fn arm64_libc() {
    let report = check(&given("PROFILER_ARM64_LIBC"), Source::EhFrame);
    assert_eq!(
        report.exceptions(),
        report.count(Class::Unsupported),
        "{report}"
    );
}
