//! Source files that functions name: log lines and assertions carry the path of their file, so a
//! function that refers to the path of one source file is code of that file.

use super::{
    code::References,
    functions::Functions,
    memory::Memory,
    source_paths::{FileKind, Paths},
};

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
