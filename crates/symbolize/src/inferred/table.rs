//! The finished table: functions in order, each with what is claimed about it.
//!
//! Only what is needed for a claim is kept, names in their mangled form and each once; readable
//! text is made when a name is asked for.

use super::{
    classes::{ClassId, Classes, NAME_LIMIT},
    functions::Functions,
    labels::{self, Claim},
    memory::Memory,
    owners::Owner,
    sections::Sections,
    source_paths::Paths,
    sources::{FileEvidence, FunctionFile},
};

/// Bytes of all texts of a table. Those of Envoy have 2.3 MB.
const TEXTS_LIMIT: usize = 24 << 20;
/// Bases of one class that are reported.
const LINEAGE_LIMIT: usize = 1024;

/// Sections that hold nothing but the memory allocator.
const ALLOCATORS: [&str; 2] = ["google_malloc", "malloc_hook"];

/// A range of [`InferredNames::texts`]; empty for what is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Text {
    start: u32,
    bytes: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    start: u64,
    bytes: u32,
    class: Text,
    file: Text,
    file_evidence: FileEvidence,
    slot: Option<u16>,
    in_allocator: bool,
}

/// The inferred names of one file.
#[derive(Debug, Default)]
pub struct InferredNames {
    entries: Vec<Entry>,
    texts: String,
    functions: usize,
}

/// What is inferred about the function at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inferred {
    pub name: String,
    /// Path of the source file, empty when unknown.
    pub file: String,
}

/// A class and its bases, direct and indirect, by their mangled names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lineage {
    pub class: String,
    pub bases: Vec<String>,
}

impl InferredNames {
    /// The name of the function that the (linked) address lies in.
    pub fn at(&self, address: u64) -> Option<Inferred> {
        let after = self.entries.partition_point(|entry| entry.start <= address);
        let entry = self.entries.get(after.checked_sub(1)?)?;
        if address - entry.start >= entry.bytes.into() {
            return None;
        }
        let claim = self.claim(entry);
        Some(Inferred {
            name: labels::name(&claim)?,
            file: claim.file.map(labels::file).unwrap_or_default(),
        })
    }

    /// All claims, in order of the functions' addresses.
    pub fn claims(&self) -> impl Iterator<Item = Claim<'_>> {
        self.entries.iter().map(|entry| self.claim(entry))
    }

    /// Functions of the file, with and without a name.
    pub fn functions(&self) -> usize {
        self.functions
    }

    /// Memory of the table.
    pub fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>() + self.texts.capacity()
    }

    fn claim(&self, entry: &Entry) -> Claim<'_> {
        Claim {
            start: entry.start,
            bytes: entry.bytes,
            class: self.text(entry.class),
            slot: entry.slot,
            file: self.text(entry.file),
            file_evidence: entry.file_evidence,
            in_allocator: entry.in_allocator,
        }
    }

    fn text(&self, text: Text) -> Option<&str> {
        let start = text.start as usize;
        let text = self.texts.get(start..start + text.bytes as usize)?;
        (!text.is_empty()).then_some(text)
    }
}

/// What was found out about a file.
pub(super) struct Evidence<'a> {
    pub(super) sections: &'a Sections,
    pub(super) functions: &'a Functions,
    pub(super) memory: &'a Memory,
    pub(super) classes: &'a Classes,
    pub(super) owners: &'a [Owner],
    pub(super) paths: &'a Paths,
    pub(super) files: &'a [FunctionFile],
}

pub(super) fn build(evidence: &Evidence<'_>) -> InferredNames {
    let mut texts = Texts::new(evidence);
    let mut owners = evidence.owners.iter().peekable();
    let mut files = evidence.files.iter().peekable();
    let allocators: Vec<_> = ALLOCATORS
        .into_iter()
        .filter_map(|name| evidence.sections.named(name))
        .filter(|section| section.is_code())
        .collect();
    let mut entries = Vec::new();
    for (index, function) in (0u32..).zip(&evidence.functions.all) {
        while owners
            .next_if(|owner| owner.function < function.start)
            .is_some()
        {}
        let owner = owners.next_if(|owner| owner.function == function.start);
        let file = files.next_if(|file| file.function == index);
        let file_evidence = file.map_or(FileEvidence::Reference, |file| file.evidence);
        let in_allocator = allocators
            .iter()
            .any(|section| section.contains(function.start));
        let class = owner.map_or(Text::default(), |owner| texts.class(owner.class));
        let file = file.map_or(Text::default(), |file| texts.path(file.path));
        if class.bytes > 0 || file.bytes > 0 || in_allocator {
            entries.push(Entry {
                start: function.start,
                bytes: function.bytes,
                class,
                file,
                file_evidence,
                slot: owner.and_then(|owner| owner.slot),
                in_allocator,
            });
        }
    }
    entries.shrink_to_fit();
    let mut all = texts.all;
    all.shrink_to_fit();
    InferredNames {
        entries,
        texts: all,
        functions: evidence.functions.all.len(),
    }
}

/// Copies texts out of the file's data, each once.
struct Texts<'a> {
    evidence: &'a Evidence<'a>,
    all: String,
    classes: Vec<Text>,
    paths: Vec<Text>,
}

impl<'a> Texts<'a> {
    fn new(evidence: &'a Evidence<'a>) -> Self {
        Self {
            evidence,
            all: String::new(),
            classes: vec![Text::default(); evidence.classes.all.len()],
            paths: vec![Text::default(); evidence.paths.all.len()],
        }
    }

    fn class(&mut self, class: ClassId) -> Text {
        let index = class as usize;
        let known = self.classes[index];
        if known.bytes > 0 {
            return known;
        }
        let name = mangled_name(self.evidence.memory, self.evidence.classes, class);
        let text = keep(&mut self.all, name);
        self.classes[index] = text;
        text
    }

    fn path(&mut self, path: u32) -> Text {
        let index = path as usize;
        let known = self.paths[index];
        if known.bytes > 0 {
            return known;
        }
        let path = self.evidence.paths.text(self.evidence.memory, path);
        let text = keep(&mut self.all, path);
        self.paths[index] = text;
        text
    }
}

/// Appends a text; one beyond the limit is not kept, and with it the claims that need it.
fn keep(all: &mut String, text: &str) -> Text {
    let (Ok(start), Ok(bytes)) = (u32::try_from(all.len()), u32::try_from(text.len())) else {
        return Text::default();
    };
    if all.len() + text.len() > TEXTS_LIMIT {
        return Text::default();
    }
    all.push_str(text);
    Text { start, bytes }
}

/// The mangled name without the mark of a name that is unique in its file only.
pub(super) fn mangled_name<'a>(memory: &'a Memory, classes: &Classes, class: ClassId) -> &'a str {
    let address = classes.all.get(class as usize).map(|class| class.name);
    let name = address.and_then(|address| memory.text(address, NAME_LIMIT));
    name.map_or("", |name| name.strip_prefix('*').unwrap_or(name))
}

pub(super) fn lineages(memory: &Memory, classes: &Classes) -> Vec<Lineage> {
    let name = |class| mangled_name(memory, classes, class).to_owned();
    let ids = 0..u32::try_from(classes.all.len()).unwrap_or(u32::MAX);
    ids.filter_map(|class| {
        let lineage = classes.lineage(class, LINEAGE_LIMIT)?;
        Some(Lineage {
            class: name(class),
            bases: lineage.into_iter().skip(1).map(name).collect(),
        })
    })
    .collect()
}
