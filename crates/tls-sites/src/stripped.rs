//! Finds the functions of a statically linked BoringSSL or OpenSSL in a file without symbols.
//!
//! Both record errors with the path of the source file, which therefore stays in the program, and
//! with constants that tell the functions of that file apart:
//!
//! - BoringSSL (`ssl/ssl_lib.cc`): what must not be called over QUIC gives the reason 66,
//!   `ERR_R_SHOULD_NOT_HAVE_BEEN_CALLED`. One of these functions also gives `SSL_R_UNINITIALIZED` and
//!   `SSL_R_BAD_LENGTH` (`ssl.h`): `SSL_write`. The one before it in the order of lines, 21 or 22
//!   lines apart, gives no other reason: `SSL_read`, into which `SSL_peek` is compiled.
//! - OpenSSL 3 (`ssl/ssl_lib.c`): errors carry the function's name.
//! - OpenSSL 1.1 (the same file): errors carry the function's number (`sslerr.h`).
//!
//! Where the program has Envoy's class of TLS sockets, its methods must call what was found.
//! Functions are named only when all of it agrees; otherwise the reason is reported.

use std::{collections::BTreeMap, fs::File};

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};
use profiler_symbolize::inferred::{FoundReference, FoundText, NotInferred, SearchedFile};

use super::{
    call::{Convention, Library, Operation, TlsCall},
    code::{Bounds, Code},
    errors::{ErrorSite, error_sites},
};

const BORINGSSL_PATH: &[u8] = b"/ssl/ssl_lib.cc";
const OPENSSL_PATH: &[u8] = b"ssl/ssl_lib.c";
/// In the paths of rustls' source, which its panics carry: a version's folder of cargo's, a copy in a tree.
const RUSTLS_PATHS: [&[u8]; 2] = [b"/rustls-0.", b"/rustls/src/"];
/// Functions that record errors with the path. OpenSSL has 150.
const FUNCTIONS_LIMIT: usize = 4096;

/// `ERR_LIB_SSL` of BoringSSL (`err.h`) and of OpenSSL.
const BORINGSSL_LIBRARY: u64 = 16;
const OPENSSL_LIBRARY: u64 = 20;
const SHOULD_NOT_HAVE_BEEN_CALLED: u64 = 66;
/// `SSL_R_UNINITIALIZED` and `SSL_R_BAD_LENGTH` of BoringSSL.
const UNINITIALIZED: u64 = 226;
const BAD_LENGTH: u64 = 111;
/// Lines between the errors of `SSL_read` and of `SSL_write`, October 2024 to August 2026.
const LINES_BETWEEN: std::ops::RangeInclusive<u64> = 21..=22;

/// Envoy's class of TLS sockets.
const SOCKET_CLASS: &str = "N5Envoy10Extensions16TransportSockets3Tls9SslSocketE";
/// Functions that a method may call on its way to the library.
const CALLEES_LIMIT: usize = 512;

/// A function that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FoundFunction {
    pub(super) call: TlsCall,
    pub(super) bounds: Bounds,
}

/// Why nothing is attached although the library is there.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unclear {
    #[error("the file cannot be searched: {0}")]
    File(#[from] NotInferred),
    #[error("it holds {0} paths of the library's source")]
    SeveralCopies(usize),
    #[error("its code is not for x86-64")]
    Machine,
    #[error("{functions} of its functions record the errors of SSL_write, not one")]
    Writes { functions: usize },
    #[error("no function records the error of SSL_read before SSL_write does")]
    NoRead,
    #[error("SSL_write and the function before it record errors {lines} lines apart, not 21 or 22")]
    Lines { lines: u64 },
    #[error("the function taken for SSL_read records errors of other functions")]
    ReadErrors,
    #[error("no method of Envoy's SslSocket calls the function taken for {0}")]
    NoCaller(&'static str),
    #[error("the library is linked in, but its functions cannot be told apart")]
    NotTold,
    #[error("rustls is linked in, and read only by its symbols, which the file has not")]
    Rustls,
}

/// The functions of a library that is linked in; empty when there is none.
pub(super) fn find(file: &File, code: &Code<'_>) -> Result<Vec<FoundFunction>, Unclear> {
    let mut searched = match SearchedFile::read(file) {
        Ok(searched) => searched,
        // A file that has no data to search has no library in it.
        Err(NotInferred::NotElf) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let boring = searched.texts(&|text| text.ends_with(BORINGSSL_PATH));
    let openssl = searched.texts(&is_openssl_path);
    match (boring.as_slice(), openssl.as_slice()) {
        ([], []) if !searched.texts(&is_of_rustls).is_empty() => Err(Unclear::Rustls),
        ([], []) => Ok(Vec::new()),
        _ if !searched.is_x86_64() => Err(Unclear::Machine),
        ([path], []) => boringssl(&mut searched, code, path),
        ([], [path]) => super::stripped_openssl::find(&mut searched, code, path),
        (boring, openssl) => Err(Unclear::SeveralCopies(boring.len() + openssl.len())),
    }
}

fn is_openssl_path(text: &[u8]) -> bool {
    text.strip_suffix(OPENSSL_PATH)
        .is_some_and(|before| before.is_empty() || before.ends_with(b"/"))
}

/// Whether paths of rustls are in it. Rust's texts need not end with a zero, so that many may stand together.
fn is_of_rustls(text: &[u8]) -> bool {
    RUSTLS_PATHS.into_iter().any(|path| {
        let mut rest = text;
        while let Some(at) = rest.iter().position(|byte| *byte == b'/') {
            rest = &rest[at..];
            if rest.starts_with(path) {
                return true;
            }
            rest = &rest[1..];
        }
        false
    })
}

/// A function that records errors with the path.
#[derive(Debug)]
pub(super) struct Recorder {
    pub(super) bounds: Bounds,
    pub(super) errors: Vec<ErrorSite>,
}

impl Recorder {
    /// The first line that gives a reason. The call that records it may be shared, with the
    /// library's number set there.
    fn line_of(&self, reason: u64) -> Option<u64> {
        let given = self.errors.iter().filter(|error| {
            error.third == Some(reason)
                && error.first.is_none_or(|first| first == BORINGSSL_LIBRARY)
        });
        given.filter_map(|error| error.fifth).min()
    }
}

/// All functions that record errors with a path.
pub(super) fn recorders(
    searched: &mut SearchedFile<'_>,
    code: &Code<'_>,
    path: &FoundText,
) -> Result<Vec<Recorder>, Unclear> {
    let references = searched.references(&[path.start_of_last(path.text.len())])?;
    let mut by_function: BTreeMap<Bounds, Vec<u64>> = BTreeMap::new();
    for FoundReference { from, .. } in references {
        if let Some(bounds) = code.around(from)
            && (by_function.len() < FUNCTIONS_LIMIT || by_function.contains_key(&bounds))
        {
            by_function.entry(bounds).or_default().push(from);
        }
    }
    let recorders = by_function.into_iter().filter_map(|(bounds, from)| {
        let bytes = code.function(bounds)?;
        Some(Recorder {
            bounds,
            errors: error_sites(bounds, &bytes, &from),
        })
    });
    Ok(recorders.collect())
}

fn boringssl(
    searched: &mut SearchedFile<'_>,
    code: &Code<'_>,
    path: &FoundText,
) -> Result<Vec<FoundFunction>, Unclear> {
    let recorders = recorders(searched, code, path)?;
    let (read, write) = read_and_write(&recorders)?;
    let found = [
        found("SSL_read", Operation::Read, read),
        found("SSL_write", Operation::Write, write),
    ];
    let methods = searched.methods(SOCKET_CLASS)?;
    if !methods.is_empty() {
        let reached = reached(code, &methods);
        for one in &found {
            if !reached.contains(&one.bounds.start) {
                return Err(Unclear::NoCaller(one.call.name));
            }
        }
    }
    Ok(found.to_vec())
}

fn found(name: &'static str, operation: Operation, bounds: Bounds) -> FoundFunction {
    FoundFunction {
        call: TlsCall {
            name,
            library: Library::BoringSsl,
            operation,
            convention: Convention::Int,
        },
        bounds,
    }
}

/// The two functions of BoringSSL, if all that is known of them holds.
fn read_and_write(recorders: &[Recorder]) -> Result<(Bounds, Bounds), Unclear> {
    let mut callers: Vec<(u64, &Recorder)> = recorders
        .iter()
        .filter_map(|recorder| Some((recorder.line_of(SHOULD_NOT_HAVE_BEEN_CALLED)?, recorder)))
        .collect();
    callers.sort_by_key(|(line, _)| *line);
    let is_write = |recorder: &Recorder| {
        let of_write = [UNINITIALIZED, BAD_LENGTH];
        of_write
            .iter()
            .all(|reason| recorder.line_of(*reason).is_some())
    };
    let writes: Vec<usize> = (0..callers.len())
        .filter(|at| callers.get(*at).is_some_and(|(_, one)| is_write(one)))
        .collect();
    let [at] = writes.as_slice() else {
        return Err(Unclear::Writes {
            functions: writes.len(),
        });
    };
    let before = at.checked_sub(1).and_then(|before| callers.get(before));
    let (Some((read_line, read)), Some((write_line, write))) = (before, callers.get(*at)) else {
        return Err(Unclear::NoRead);
    };
    let lines = write_line - read_line;
    if !LINES_BETWEEN.contains(&lines) {
        return Err(Unclear::Lines { lines });
    }
    let is_read = |error: &ErrorSite| error.third == Some(SHOULD_NOT_HAVE_BEEN_CALLED);
    if !read.errors.iter().all(is_read) {
        return Err(Unclear::ReadErrors);
    }
    Ok((read.bounds, write.bounds))
}

/// Functions that some functions call, or that those call.
fn reached(code: &Code<'_>, from: &[u64]) -> Vec<u64> {
    let mut reached: Vec<u64> = Vec::new();
    let mut next: Vec<u64> = from.to_vec();
    for _ in 0..2 {
        let mut called: Vec<u64> = Vec::new();
        for address in next.iter().take(CALLEES_LIMIT) {
            called.extend(callees(code, *address));
        }
        called.sort_unstable();
        called.dedup();
        reached.extend(&called);
        next = called;
    }
    reached
}

/// Targets of the direct calls and jumps of a function.
fn callees(code: &Code<'_>, function: u64) -> Vec<u64> {
    let mut targets = Vec::new();
    let Some((bounds, bytes)) = code
        .around(function)
        .and_then(|bounds| Some((bounds, code.function(bounds)?)))
    else {
        return targets;
    };
    let mut decoder = Decoder::with_ip(64, &bytes, bounds.start, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    while decoder.can_decode() && targets.len() < CALLEES_LIMIT {
        decoder.decode_out(&mut instruction);
        let leads_on = matches!(
            instruction.flow_control(),
            FlowControl::Call | FlowControl::UnconditionalBranch
        );
        if leads_on {
            targets.push(instruction.near_branch_target());
        }
    }
    targets
}

/// Of the other library, whose errors are recorded with the same arguments before version 3.
pub(super) fn is_openssl_error(error: &ErrorSite) -> bool {
    error.first == Some(OPENSSL_LIBRARY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorder(start: u64, errors: &[(u64, u64)]) -> Recorder {
        Recorder {
            bounds: Bounds {
                start,
                end: start + 16,
            },
            errors: errors
                .iter()
                .map(|(reason, line)| ErrorSite {
                    first: Some(16),
                    second: Some(0),
                    third: Some(*reason),
                    fifth: Some(*line),
                })
                .collect(),
        }
    }

    fn library() -> Vec<Recorder> {
        vec![
            recorder(0x100, &[(66, 800)]),
            recorder(0x200, &[(66, 962), (226, 967), (215, 982), (111, 988)]),
            recorder(0x300, &[(66, 940)]),
            recorder(0x400, &[(66, 900), (12, 901)]),
            recorder(0x500, &[(7, 1000)]),
            recorder(0x600, &[(66, 1629), (182, 1634)]),
        ]
    }

    fn check(recorders: &[Recorder], expected: Result<(u64, u64), &str>) {
        let found = read_and_write(recorders)
            .map(|(read, write)| (read.start, write.start))
            .map_err(|unclear| unclear.to_string());
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
            (Err(text), Err(part)) => assert!(text.contains(part), "{text}"),
            (found, expected) => panic!("{found:?}, not {expected:?}"),
        }
    }

    #[test]
    fn paths_of_rustls_are_told_from_those_of_its_users() {
        assert!(is_of_rustls(
            b"called on a NoneC:/x/rustls-0.23.46/src/conn.rs/rustc/src/lib.rs"
        ));
        assert!(is_of_rustls(b"/build/vendor/rustls/src/conn.rs"));
        assert!(!is_of_rustls(b"/x/tokio-rustls-0.26.6/src/lib.rs"));
        assert!(!is_of_rustls(b"/x/rustls-webpki-0.103.16/src/lib.rs"));
    }

    #[test]
    fn the_function_before_the_write_is_the_read() {
        check(&library(), Ok((0x300, 0x200)));
    }

    #[test]
    fn anything_else_is_refused() {
        check(&[], Err("0 of its functions"));
        let mut two = library();
        two.push(recorder(0x600, &[(66, 1100), (226, 1101), (111, 1102)]));
        check(&two, Err("2 of its functions"));
        let mut other = library();
        other[1] = recorder(0x200, &[(66, 962), (226, 967)]);
        check(&other, Err("0 of its functions"));
        check(&library()[1..2], Err("no function records"));
        let mut far = library();
        far[2] = recorder(0x300, &[(66, 930)]);
        check(&far, Err("32 lines apart"));
        let mut same = library();
        same[2] = recorder(0x300, &[(66, 940), (12, 945)]);
        check(&same, Err("of other functions"));
        let mut foreign = library();
        foreign[1].errors[0].first = Some(4);
        check(&foreign, Err("0 of its functions"));
    }
}
