//! A copy of what names an ELF file's code, in sealed memory and in a form of our own making.
//!
//! The ELF and DWARF library maps its input and follows what it finds there: a file that shrinks
//! would kill the agent with `SIGBUS`, one that changes would break the library's promises, and
//! links to other files (`.gnu_debuglink`, `.gnu_debugaltlink`, `.debug_sup`) would be opened on
//! the host. Therefore a hostile file is read once, by `pread`, into a new ELF file in a sealed
//! memfd that holds only executable segments, trustworthy symbols and the debug sections that
//! names, lines and inlined functions need. No link to another file survives.
//!
//! Which symbols are trustworthy says `elf_symbols`.

use std::{
    fs::File,
    io::{self, Read},
    os::unix::fs::FileExt as _,
};

use rustix::fs::MemfdFlags;

use super::{
    elf_layout::{ElfError, Layout, Section},
    elf_symbols::{self, Bounds},
    elf_writer::{CopiedSection, Output},
};

/// Debug sections that names, lines and inlined functions need.
const DEBUG_SECTIONS: [&str; 10] = [
    ".debug_abbrev",
    ".debug_addr",
    ".debug_aranges",
    ".debug_info",
    ".debug_line",
    ".debug_line_str",
    ".debug_ranges",
    ".debug_rnglists",
    ".debug_str",
    ".debug_str_offsets",
];

/// The finished copy.
#[derive(Debug)]
pub struct ElfCopy {
    /// Sealed: its content and size cannot change any more.
    pub file: File,
    pub bytes: u64,
    /// Equal content has equal digests; keyed anew in each process of the agent.
    pub digest: u64,
    pub symbols: u64,
    /// The symbols are those of a `.symtab`, so that static functions have names as well.
    pub complete_symbols: bool,
    /// Empty when the file has no debug information, or more than the limit.
    pub debug: Vec<CopiedSection>,
    /// True when debug information was left away because of its size or compression.
    pub debug_too_large: bool,
}

impl ElfCopy {
    /// True when it names nothing.
    pub fn is_empty(&self) -> bool {
        self.symbols == 0 && self.debug.is_empty()
    }

    /// Memory that an image of this copy may come to use, about: tables that the ELF library
    /// makes of debug information when many of its units are asked for (measured: 2.1 times).
    pub fn weight(&self) -> u64 {
        let debug: u64 = self.debug.iter().map(|section| section.bytes).sum();
        self.bytes.saturating_add(debug.saturating_mul(2))
    }
}

/// Copies what names the code of `file`. Debug information above `max_debug_bytes` (when
/// uncompressed) is left away. The segments of `layout` are those of the program that runs: in a
/// separate debug file they are no more than a memory of it.
pub fn copy(
    file: &File,
    layout: &Layout,
    bounds: &mut Bounds<'_>,
    max_debug_bytes: u64,
    keys: &std::hash::RandomState,
) -> Result<ElfCopy, ElfError> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let memory: File = rustix::fs::memfd_create("profiler-agent:symbols", flags)
        .map_err(io::Error::from)?
        .into();
    let mut out = Output::new(memory, keys, layout.segments.len())?;
    let symbols = elf_symbols::copy(file, layout, bounds, &mut out)?;
    let wanted = || {
        DEBUG_SECTIONS
            .into_iter()
            .filter_map(|name| Some((name, layout.section(name)?)))
    };
    let too_large = wanted()
        .try_fold(0u64, |sum, (_, section)| sum.checked_add(section.bytes))
        .is_none_or(|sum| sum > max_debug_bytes);
    let mut debug = Vec::new();
    let mut left = max_debug_bytes;
    let mut complete = !too_large;
    for (name, section) in wanted() {
        if !complete {
            break;
        }
        let offset = out.align()?;
        match copy_section(file, layout, section, left, &mut out)? {
            Some(bytes) => {
                left = left.saturating_sub(bytes);
                debug.push(CopiedSection {
                    name,
                    offset,
                    bytes,
                });
            }
            None => complete = false,
        }
    }
    let debug_too_large = !complete;
    if debug_too_large {
        debug.clear();
    }
    let (file, bytes, digest) = out.finish(layout, &symbols, &debug)?;
    Ok(ElfCopy {
        file,
        bytes,
        digest,
        symbols: symbols.count,
        complete_symbols: symbols.complete,
        debug,
        debug_too_large,
    })
}

/// Copies one section; `None` when it does not fit in `limit` or is compressed in a way that we do
/// not read.
fn copy_section(
    file: &File,
    layout: &Layout,
    section: &Section,
    limit: u64,
    out: &mut Output,
) -> Result<Option<u64>, ElfError> {
    let mut source = Range {
        file,
        at: section.offset,
        left: section.bytes,
    };
    if !section.compressed {
        let copied = copy_bounded(&mut source, limit, out)?;
        return Ok(copied.filter(|bytes| *bytes == section.bytes));
    }
    // The header of a compressed section: kind, (padding,) size, alignment.
    let mut header = [0; 24];
    let header = &mut header[..if layout.wide { 24 } else { 12 }];
    source.read_exact(header)?;
    match header[0] {
        1 => copy_bounded(&mut flate2::read::ZlibDecoder::new(source), limit, out),
        2 => copy_bounded(&mut zstd::Decoder::new(source)?, limit, out),
        _ => Ok(None),
    }
}

fn copy_bounded(
    source: &mut impl Read,
    limit: u64,
    out: &mut Output,
) -> Result<Option<u64>, ElfError> {
    let mut buffer = vec![0; 64 * 1024];
    let mut total = 0;
    loop {
        let count = source.read(&mut buffer)?;
        if count == 0 {
            return Ok(Some(total));
        }
        total += count as u64;
        if total > limit {
            return Ok(None);
        }
        out.write_all(&buffer[..count])?;
    }
}

/// Part of a file, read without moving the file's position.
struct Range<'file> {
    file: &'file File,
    at: u64,
    left: u64,
}

impl Read for Range<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = usize::try_from(self.left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let count = self.file.read_at(&mut buffer[..length], self.at)?;
        self.at = self.at.saturating_add(count as u64);
        self.left -= count as u64;
        Ok(count)
    }
}
