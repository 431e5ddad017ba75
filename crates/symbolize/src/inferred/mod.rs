//! Names for functions of stripped C++ programs, inferred from what the program needs to run.
//!
//! ```text
//! input -> sections -> functions (.eh_frame: where each function starts and ends)
//!                   -> memory (data sections, as the loader's relocations leave them)
//!                        -> classes (type_info objects: names and bases)
//!          code (references to data) -> vtables (slots: function, class, index)
//!                        -> owners (one class for each function, or silence)
//!          code (references to paths of source files)
//!                        -> sources, neighbours (one file for each function, or silence)
//!                        -> table (function -> name)
//! ```
//!
//! A claim is made only about a function whose bounds are known, and is phrased so that it can be
//! true: `Envoy::Http::ConnectionManagerImpl [vslot 7]` says that the function is what this class
//! has in slot 7, so it is a method of the class or of one of its bases. What is ambiguous has no
//! name. See docs/inferred-names.md.
//!
//! The file is the target's choice: every read is bounded, every number is checked, and the work
//! is linear in the sizes of the sections (`n log n` where something is sorted).

mod cache;
mod error;
mod labels;
mod table;

mod input;
mod sections;

mod functions;
mod memory;
mod relocations;

mod class_kind;
mod classes;
mod code;
mod vtables;

mod owners;
mod source_paths;
mod sources;
mod neighbours;

mod searched;

use std::fs::File;

use classes::Classes;
use code::References;
use functions::Functions;
use input::Input;
use memory::Memory;
use neighbours::Neighbourhood;
use sections::Sections;
use table::Evidence;

pub(crate) use cache::{InferredCache, Stripped};
pub use error::NotInferred;
pub use labels::{Claim, class_name};
pub use searched::{FoundReference, FoundText, SearchedFile};
pub use sources::FileEvidence;
pub use table::{Inferred, InferredNames, Lineage};

/// Infers the names of a whole ELF file in memory.
pub fn infer(file: &[u8]) -> Result<InferredNames, NotInferred> {
    infer_from(&mut Input::bytes(file))
}

/// Infers names of an open file by bounded reads, without mapping it.
pub fn infer_file(file: &File) -> Result<InferredNames, NotInferred> {
    infer_from(&mut Input::file(file)?)
}

/// The same classes that the names of [`infer`] come from, each with all of its bases: what a
/// claim may be checked against.
pub fn lineages(file: &[u8]) -> Result<Vec<Lineage>, NotInferred> {
    let mut input = Input::bytes(file);
    let sections = Sections::read(&mut input)?;
    let mut memory = Memory::load(&mut input, &sections)?;
    let links = relocations::apply(&mut input, &sections, &mut memory)?;
    let classes = Classes::find(&memory, &links);
    Ok(table::lineages(&memory, &classes))
}

fn infer_from(input: &mut Input<'_>) -> Result<InferredNames, NotInferred> {
    let sections = Sections::read(input)?;
    let functions = Functions::read(input, &sections)?;
    let mut memory = Memory::load(input, &sections)?;
    let links = relocations::apply(input, &sections, &mut memory)?;
    let paths = source_paths::find(&memory);
    let references = References::scan(input, &sections, &mut memory, &paths)?;
    let classes = Classes::find(&memory, &links);
    let slots = vtables::slots(&memory, &classes, &sections);
    let owners = owners::decide(&classes, &slots);
    let files = sources::of_functions(&memory, &functions, &paths, references);
    let around = Neighbourhood {
        memory: &memory,
        functions: &functions,
        classes: &classes,
        owners: &owners,
        paths: &paths,
    };
    let files = neighbours::add(&around, files);
    Ok(table::build(&Evidence {
        sections: &sections,
        functions: &functions,
        memory: &memory,
        classes: &classes,
        owners: &owners,
        paths: &paths,
        files: &files,
    }))
}
