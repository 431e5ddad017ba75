//! Real files: ours must be what gimli says.

use std::path::{Path, PathBuf};

use object::{Object as _, ObjectSymbol as _};
use profiler_common::unwind::rule::cfa;

use super::{
    compare::{Class, Report, Source, compare},
    rows,
};

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
pub(crate) fn given(variable: &str) -> PathBuf {
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

/// musl writes no descriptions; where programs and threads begin must still end a stack.
#[test]
fn musl_start_code_is_the_outermost_frame() {
    let path = given("PROFILER_MUSL_PROGRAM");
    let bytes = std::fs::read(&path).expect("the program");
    let object = object::File::parse(&*bytes).expect("an ELF file");
    let rows = rows::Rows::of(&path);
    let kind = |address| rows.rule_at(address).expect("a row").cfa_kind;
    let entry = object.entry();
    for offset in [0, 8, 20] {
        assert_eq!(
            kind(entry + offset),
            cfa::OUTERMOST,
            "{offset} bytes from the entry"
        );
    }
    let mut symbols = object.symbols();
    let clone = symbols.find(|symbol| symbol.name() == Ok("__clone"));
    let clone = clone.expect("a program with threads").address();
    assert_eq!(kind(clone), cfa::SP);
    let outermost = (clone..clone + 64).filter(|address| kind(*address) == cfa::OUTERMOST);
    let outermost: Vec<u64> = outermost.collect();
    let code = |address| rows.file.code_byte(address);
    // From the call of the thread's function to `hlt`.
    let first = *outermost.first().expect("the child's part");
    let call = [0, 1, 2].map(|offset| code(first + offset));
    assert_eq!(call, [Some(0x41), Some(0xff), Some(0xd1)]);
    assert_eq!(code(outermost[outermost.len() - 1] + 1), Some(0xf4));
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
