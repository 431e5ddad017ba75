//! Source files of functions that name none, from the functions around them.
//!
//! Linkers put the code of one object file in one piece. So what lies between two functions of
//! the same source file was compiled with it (which includes templates and inline functions of
//! headers, as far as this object file's copy was kept). Where a program is not laid out like
//! that, as after sorting functions by how hot they are, its files would appear in many places,
//! and nothing is concluded.

use std::collections::BTreeMap;

use super::{
    classes::{ClassId, Classes},
    functions::Functions,
    memory::Memory,
    owners::Owner,
    source_paths::{FileKind, Paths},
    sources::{FileEvidence, FunctionFile},
    table,
};

/// Farthest distance between neighbours; object files are rarely larger.
const DISTANCE_LIMIT: u64 = 1 << 20;

/// Files with several functions that must be there to tell how a program is laid out.
const TELLING_FILES: usize = 5;

/// A function whose source file is known. Files are numbered anew, so that equal paths are equal.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    function: u32,
    file: u32,
}

pub(super) struct Neighbourhood<'a> {
    pub(super) memory: &'a Memory,
    pub(super) functions: &'a Functions,
    pub(super) classes: &'a Classes,
    pub(super) owners: &'a [Owner],
    pub(super) paths: &'a Paths,
}

/// Adds the files that follow from their neighbours' to `files`, which is in order of functions.
pub(super) fn add(around: &Neighbourhood<'_>, files: Vec<FunctionFile>) -> Vec<FunctionFile> {
    let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
    let mut path_of: Vec<u32> = Vec::new();
    let mut anchors = Vec::new();
    for known in &files {
        if around.paths.kind(known.path) != FileKind::Source {
            continue;
        }
        let text = around.paths.text(around.memory, known.path);
        let file = *numbers.entry(text).or_insert_with(|| {
            path_of.push(known.path);
            u32::try_from(path_of.len() - 1).unwrap_or(u32::MAX)
        });
        anchors.push(Anchor {
            function: known.function,
            file,
        });
    }
    if !is_in_pieces(&anchors) {
        return files;
    }
    let anchors = with_methods(around, &anchors);
    let mut all = Vec::with_capacity(files.len());
    let mut known = files.into_iter().peekable();
    for pair in anchors.windows(2) {
        let &[one, next] = pair else { continue };
        let address = |anchor: Anchor| around.functions.all[anchor.function as usize].start;
        let is_near = one.file == next.file && address(next) - address(one) <= DISTANCE_LIMIT;
        for function in one.function..next.function {
            while let Some(earlier) = known.next_if(|known| known.function < function) {
                all.push(earlier);
            }
            if let Some(own) = known.next_if(|known| known.function == function) {
                all.push(own);
            } else if is_near {
                all.push(FunctionFile {
                    function,
                    path: path_of[one.file as usize],
                    evidence: FileEvidence::Neighbours,
                });
            }
        }
    }
    all.extend(known);
    all
}

/// True when nearly every file's functions lie in one piece, as far as there are enough files with
/// several functions to tell.
fn is_in_pieces(anchors: &[Anchor]) -> bool {
    let mut functions: BTreeMap<u32, usize> = BTreeMap::new();
    for anchor in anchors {
        *functions.entry(anchor.file).or_default() += 1;
    }
    let telling = functions.values().filter(|count| **count > 1).count();
    let pieces = anchors.chunk_by(|one, next| one.file == next.file).count();
    telling >= TELLING_FILES && pieces <= functions.len() + functions.len() / 50
}

/// Adds virtual functions of classes that have a file: the class's table says that they are its
/// own, and they lie beside other functions of the file. Templates are in every object file that
/// uses them, so they do not count.
fn with_methods(around: &Neighbourhood<'_>, anchors: &[Anchor]) -> Vec<Anchor> {
    let methods = methods_by_function(around);
    let file_of = files_of_classes(around, anchors, &methods);
    let mut all = Vec::with_capacity(anchors.len());
    let mut after = anchors.iter().copied().peekable();
    let mut before: Option<Anchor> = None;
    for (function, class) in methods {
        while let Some(anchor) = after.next_if(|anchor| anchor.function <= function) {
            before = Some(anchor);
            all.push(anchor);
        }
        let Some(Some(file)) = file_of.get(&class).copied() else {
            continue;
        };
        let is_new = before.is_none_or(|anchor| anchor.function != function);
        let is_beside = |anchor: Option<Anchor>| anchor.is_some_and(|anchor| anchor.file == file);
        if is_new && (is_beside(before) || is_beside(after.peek().copied())) {
            all.push(Anchor { function, file });
        }
    }
    all.extend(after);
    all
}

/// The class of each virtual function, in order of functions.
fn methods_by_function(around: &Neighbourhood<'_>) -> Vec<(u32, ClassId)> {
    let mut owners = around.owners.iter().peekable();
    let mut methods = Vec::with_capacity(around.owners.len());
    for (index, function) in (0u32..).zip(&around.functions.all) {
        while owners
            .next_if(|owner| owner.function < function.start)
            .is_some()
        {}
        let owner = owners.next_if(|owner| owner.function == function.start);
        methods.extend(owner.map(|owner| (index, owner.class)));
    }
    methods
}

/// The file of each class that has a virtual function with one; `None` for those with several
/// and for templates.
fn files_of_classes(
    around: &Neighbourhood<'_>,
    anchors: &[Anchor],
    methods: &[(u32, ClassId)],
) -> BTreeMap<ClassId, Option<u32>> {
    let mut files: BTreeMap<ClassId, Option<u32>> = BTreeMap::new();
    let mut methods = methods.iter().peekable();
    for anchor in anchors {
        while methods
            .next_if(|(function, _)| *function < anchor.function)
            .is_some()
        {}
        let Some((_, class)) = methods.next_if(|(function, _)| *function == anchor.function) else {
            continue;
        };
        let file = files.entry(*class).or_insert_with(|| {
            let name = table::mangled_name(around.memory, around.classes, *class);
            (!is_template(name)).then_some(anchor.file)
        });
        if *file != Some(anchor.file) {
            *file = None;
        }
    }
    files
}

/// Whether a mangled name has template arguments, which begin with an `I` outside of identifiers.
/// (A number of a repeated part may hold that letter too; that is a rare one too many.)
fn is_template(mangled: &str) -> bool {
    let mut rest = mangled.as_bytes();
    while let Some(byte) = rest.first() {
        if *byte == b'I' {
            return true;
        }
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let length = rest[..digits].iter().fold(0usize, |number, digit| {
            number
                .saturating_mul(10)
                .saturating_add(usize::from(digit - b'0'))
        });
        let skip = digits.max(1).saturating_add(length);
        rest = rest.get(skip..).unwrap_or_default();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anchors(files: &[u32]) -> Vec<Anchor> {
        let anchor = |(function, file): (u32, &u32)| Anchor {
            function,
            file: *file,
        };
        (0..).zip(files).map(anchor).collect()
    }

    #[test]
    fn neighbours_count_only_where_files_lie_in_pieces() {
        assert!(is_in_pieces(&anchors(&[3, 3, 0, 0, 1, 1, 4, 4, 2, 2])));
        assert!(!is_in_pieces(&anchors(&[3, 0, 3, 0, 1, 4, 1, 4, 2, 2])));
        assert!(!is_in_pieces(&anchors(&[0, 0, 0, 0])));
        assert!(!is_in_pieces(&anchors(&[0, 1, 2, 3, 4, 5])));
        assert!(!is_in_pieces(&[]));
    }

    #[test]
    fn templates_are_told_by_their_mangled_names() {
        for (mangled, expected) in [
            ("N5Envoy4Http21ConnectionManagerImplE", false),
            ("3Foo", false),
            ("9INTERFACE", false),
            ("3FooIiE", true),
            ("N5Envoy3BoxINS_9InterfaceEEE", true),
            ("", false),
            ("99999999999999999999999999", false),
        ] {
            assert_eq!(is_template(mangled), expected, "{mangled}");
        }
    }
}
