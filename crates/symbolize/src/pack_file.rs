//! A file that may serve as a symbol pack.

use std::{fs::File, io, time::UNIX_EPOCH};

use profiler_clock::wall_ns;
use profiler_image::elf_layout::Layout;
use profiler_model::NameSource;

/// The thread that looks into files, when the one that asks has capabilities.
pub(super) const READER: &str = "symbol-files";

/// Why a file is not taken as a pack.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    #[error("the file is not a little-endian ELF file")]
    NotElf,
    #[error(
        "the file has no build-id, so nothing says which program it belongs to; link with -Wl,--build-id"
    )]
    NoBuildId,
    #[error(
        "the file has build-id {found}, but {expected} was asked for: it belongs to another build of the program"
    )]
    Mismatch { expected: String, found: String },
    #[error(
        "the file has neither a symbol table nor debug information: give the unstripped program or its debug file"
    )]
    NoSymbols,
    #[error(
        "symbol files take {used} bytes with this one; the limit is {limit} (--max-symbol-bytes)"
    )]
    TooLarge { used: u64, limit: u64 },
    #[error("this agent keeps no symbol files: it runs without a data directory")]
    NoFolder,
    #[error("{what}: {source}")]
    Io {
        what: &'static str,
        source: io::Error,
    },
}

pub(super) fn io_error(what: &'static str) -> impl FnOnce(io::Error) -> PackError {
    move |source| PackError::Io { what, source }
}

/// A pack as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackInfo {
    pub build_id: Vec<u8>,
    pub bytes: u64,
    /// `SymbolPack` or `Debuginfod`.
    pub source: NameSource,
    /// A file of `--symbol-dir`, which cannot be removed through the API.
    pub is_given: bool,
    pub added_ns: u64,
    pub has_symbols: bool,
    pub has_debug_information: bool,
}

/// What a file states about itself, if it can serve as a pack.
pub(super) fn examine(file: &File, source: NameSource) -> Result<PackInfo, PackError> {
    let layout = Layout::read(file).map_err(|_| PackError::NotElf)?;
    let metadata = file.metadata().map_err(io_error("read the symbol file"))?;
    let has = |name| {
        layout
            .section(name)
            .is_some_and(|section| section.bytes > 0)
    };
    let (has_symbols, has_debug_information) = (has(".symtab"), has(".debug_info"));
    if layout.build_id.len() < 2 {
        return Err(PackError::NoBuildId);
    }
    if !has_symbols && !has_debug_information {
        return Err(PackError::NoSymbols);
    }
    let added_ns = metadata.modified().map_or_else(
        |_| wall_ns(),
        |added| {
            let added = added.duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::try_from(added.as_nanos()).unwrap_or(u64::MAX)
        },
    );
    Ok(PackInfo {
        build_id: layout.build_id,
        bytes: metadata.len(),
        source,
        is_given: false,
        added_ns,
        has_symbols,
        has_debug_information,
    })
}
