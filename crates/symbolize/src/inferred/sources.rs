//! Source files that functions name: log lines and assertions carry the path of their file, so a
//! function that refers to the path of one source file is code of that file.

use super::{code::References, functions::Functions, memory::Memory};

/// Paths that are kept. Envoy has 1,600.
const PATHS_LIMIT: usize = 200_000;
/// Longest and shortest path.
const LENGTH: std::ops::RangeInclusive<usize> = 5..=512;

const SOURCES: [&str; 7] = [".cc", ".c", ".cpp", ".cxx", ".c++", ".C", ".cu"];
const HEADERS: [&str; 7] = [".h", ".hh", ".hpp", ".hxx", ".h++", ".inc", ".ipp"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    Source,
    Header,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SourcePath {
    pub(super) address: u64,
    kind: FileKind,
}

/// All texts that are paths of source files, in order of their addresses.
#[derive(Debug, Default)]
pub(super) struct Paths {
    pub(super) all: Vec<SourcePath>,
}

impl Paths {
    pub(super) fn kind(&self, path: u32) -> FileKind {
        let path = self.all.get(path as usize);
        path.map_or(FileKind::Header, |path| path.kind)
    }

    pub(super) fn text<'memory>(&self, memory: &'memory Memory, path: u32) -> &'memory str {
        let address = self.all.get(path as usize).map(|path| path.address);
        address
            .and_then(|address| memory.text(address, *LENGTH.end()))
            .unwrap_or_default()
    }
}

pub(super) fn paths(memory: &Memory) -> Paths {
    let mut all = Vec::new();
    for region in &memory.regions {
        let bytes = region.bytes.as_slice();
        let mut start = 0;
        for (end, byte) in bytes.iter().enumerate() {
            if *byte != 0 {
                continue;
            }
            if let Some(kind) = kind_of(&bytes[start..end])
                && all.len() < PATHS_LIMIT
            {
                all.push(SourcePath {
                    address: region.address.wrapping_add(start as u64),
                    kind,
                });
            }
            start = end + 1;
        }
    }
    Paths { all }
}

/// Says what a text is the path of. A name without a folder may be any text, so it does not count.
fn kind_of(text: &[u8]) -> Option<FileKind> {
    if !LENGTH.contains(&text.len()) {
        return None;
    }
    let dot = text.iter().rev().take(5).position(|byte| *byte == b'.')?;
    let ending = &text[text.len() - 1 - dot..];
    let is = |endings: &[&str]| endings.iter().any(|known| known.as_bytes() == ending);
    let kind = if is(&SOURCES) {
        FileKind::Source
    } else if is(&HEADERS) {
        FileKind::Header
    } else {
        return None;
    };
    let is_path = text.contains(&b'/')
        && text
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"/._-+@~".contains(byte));
    is_path.then_some(kind)
}

/// How the file of a function is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileEvidence {
    /// The function refers to the file's path.
    Reference,
    /// The functions around it are of this file.
    Neighbours,
}

/// The one file that a function belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FunctionFile {
    /// Index of the function.
    pub(super) function: u32,
    /// Index of the path.
    pub(super) path: u32,
    pub(super) evidence: FileEvidence,
}

/// For each function the source file it refers to, if that is exactly one. Headers count only
/// where no source file is named: their code is inlined everywhere.
pub(super) fn of_functions(
    memory: &Memory,
    functions: &Functions,
    paths: &Paths,
    references: References,
) -> Vec<FunctionFile> {
    let mut files = Vec::new();
    let mut rest = references.all.as_slice();
    for (index, function) in (0..).zip(&functions.all) {
        let end = function.start.saturating_add(function.bytes.into());
        let before = rest
            .iter()
            .take_while(|reference| reference.from < function.start)
            .count();
        rest = &rest[before..];
        let inside = rest
            .iter()
            .take_while(|reference| reference.from < end)
            .count();
        let (own, after) = rest.split_at(inside);
        rest = after;
        let of_kind = |kind| {
            let of_kind = |path: &u32| paths.kind(*path) == kind;
            only(
                own.iter().map(|reference| reference.path).filter(of_kind),
                |path| paths.text(memory, path),
            )
        };
        let path = match of_kind(FileKind::Source) {
            Only::One(path) => Some(path),
            Only::Several => None,
            Only::None => match of_kind(FileKind::Header) {
                Only::One(path) => Some(path),
                Only::Several | Only::None => None,
            },
        };
        files.extend(path.map(|path| FunctionFile {
            function: index,
            path,
            evidence: FileEvidence::Reference,
        }));
    }
    files
}

enum Only {
    None,
    One(u32),
    Several,
}

/// The only path among some; the same text in two places is one path.
fn only<'memory>(paths: impl Iterator<Item = u32>, text: impl Fn(u32) -> &'memory str) -> Only {
    let mut found: Option<u32> = None;
    for path in paths {
        match found {
            None => found = Some(path),
            Some(first) if first == path || text(first) == text(path) => {}
            Some(_) => return Only::Several,
        }
    }
    found.map_or(Only::None, Only::One)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_source_files_are_told_from_other_text() {
        for (text, expected) in [
            ("source/common/http/utility.cc", Some(FileKind::Source)),
            ("./src/main.cpp", Some(FileKind::Source)),
            ("/usr/src/a.c", Some(FileKind::Source)),
            ("external/grpc+/src/core/call.h", Some(FileKind::Header)),
            ("utility.cc", None),
            ("/.c", None),
            ("envoy/config/core.proto", None),
            ("see source/common/http/utility.cc", None),
            ("a/b.cc: %s", None),
            ("a/b.cc\n", None),
            ("", None),
        ] {
            assert_eq!(kind_of(text.as_bytes()), expected, "{text}");
        }
        let long = format!("{}/b.cc", "a".repeat(600));
        assert_eq!(kind_of(long.as_bytes()), None);
    }
}
