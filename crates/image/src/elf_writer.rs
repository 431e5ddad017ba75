//! Writes the ELF file that a copy is: 64-bit, little-endian, with sections of our choice.

use std::{
    fs::File,
    hash::Hasher as _,
    io::{self, BufWriter, Seek as _, SeekFrom, Write as _},
    os::unix::fs::FileExt as _,
};

use rustix::fs::SealFlags;

use super::elf_layout::{ElfError, Layout, Segment};

/// Where in the copy a debug section lies.
#[derive(Clone, Copy, Debug)]
pub struct CopiedSection {
    pub name: &'static str,
    pub offset: u64,
    pub bytes: u64,
}

/// The copied symbol and string table.
#[derive(Debug, Default)]
pub(crate) struct CopiedSymbols {
    pub(crate) count: u64,
    /// They are those of a `.symtab`.
    pub(crate) complete: bool,
    pub(crate) symbols_offset: u64,
    pub(crate) strings_offset: u64,
    pub(crate) strings_bytes: u64,
}

/// Writes the copy and its digest.
pub(crate) struct Output {
    writer: BufWriter<File>,
    /// Where the next byte goes.
    pub(crate) at: u64,
    digest: std::hash::DefaultHasher,
}

const HEADER_BYTES: u64 = 64;
const SEGMENT_BYTES: u64 = 56;
const SECTION_BYTES: u16 = 64;

impl Output {
    pub(crate) fn new(
        memory: File,
        keys: &std::hash::RandomState,
        segments: usize,
    ) -> io::Result<Self> {
        let at = HEADER_BYTES + SEGMENT_BYTES * segments as u64;
        let mut writer = BufWriter::with_capacity(64 * 1024, memory);
        writer.seek(SeekFrom::Start(at))?;
        Ok(Self {
            writer,
            at,
            digest: std::hash::BuildHasher::build_hasher(keys),
        })
    }

    pub(crate) fn write_all(&mut self, data: &[u8]) -> io::Result<()> {
        self.digest.write(data);
        self.at += data.len() as u64;
        self.writer.write_all(data)
    }

    /// Moves on to a multiple of 8 and returns it.
    pub(crate) fn align(&mut self) -> io::Result<u64> {
        let padding = usize::try_from(self.at.next_multiple_of(8) - self.at).unwrap_or(0);
        self.write_all(&[0; 8][..padding])?;
        Ok(self.at)
    }

    /// Writes an `Elf64_Sym`: a global function in section 1.
    pub(crate) fn symbol(&mut self, name: u32, address: u64, bytes: u64) -> io::Result<()> {
        const GLOBAL_FUNCTION: u8 = 0x12;
        let mut entry = [0; 24];
        entry[..4].copy_from_slice(&name.to_le_bytes());
        entry[4] = GLOBAL_FUNCTION;
        entry[6] = 1;
        entry[8..16].copy_from_slice(&address.to_le_bytes());
        entry[16..].copy_from_slice(&bytes.to_le_bytes());
        self.write_all(&entry)
    }

    /// Writes names and headers of the sections, then the file's header and segments, and seals.
    pub(crate) fn finish(
        mut self,
        layout: &Layout,
        symbols: &CopiedSymbols,
        debug: &[CopiedSection],
    ) -> Result<(File, u64, u64), ElfError> {
        const PROGBITS: u32 = 1;
        const SYMTAB: u32 = 2;
        const STRTAB: u32 = 3;
        let strings = (
            ".strtab",
            STRTAB,
            symbols.strings_offset,
            symbols.strings_bytes,
        );
        let table = (
            ".symtab",
            SYMTAB,
            symbols.symbols_offset,
            symbols.count * 24,
        );
        let mut sections = vec![("", 0, 0, 0), strings, table];
        sections.extend(
            debug
                .iter()
                .map(|copied| (copied.name, PROGBITS, copied.offset, copied.bytes)),
        );
        let mut names = Vec::new();
        let names_offset = self.align()?;
        sections.push((".shstrtab", STRTAB, names_offset, 0));
        let mut headers = Vec::new();
        for (name, kind, offset, bytes) in sections {
            let name_offset = u32::try_from(names.len()).unwrap_or(0);
            names.extend_from_slice(name.as_bytes());
            names.push(0);
            // The section of names is the last one, so their length is known by now.
            let bytes = if offset == names_offset {
                names.len() as u64
            } else {
                bytes
            };
            let mut header = [0; SECTION_BYTES as usize];
            header[..4].copy_from_slice(&name_offset.to_le_bytes());
            header[4..8].copy_from_slice(&kind.to_le_bytes());
            header[24..32].copy_from_slice(&offset.to_le_bytes());
            header[32..40].copy_from_slice(&bytes.to_le_bytes());
            header[40] = u8::from(kind == SYMTAB);
            header[48] = 8;
            header[56] = if kind == SYMTAB { 24 } else { 0 };
            headers.push(header);
        }
        self.write_all(&names)?;
        let headers_offset = self.align()?;
        let count = u16::try_from(headers.len()).unwrap_or(0);
        for header in &headers {
            self.write_all(header)?;
        }
        let start = start_of_file(layout, headers_offset, count);
        self.digest.write(&start);
        let digest = std::hash::Hasher::finish(&self.digest);
        let bytes = self.at;
        let memory = self
            .writer
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        memory.write_all_at(&start, 0)?;
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&memory, seals).map_err(io::Error::from)?;
        Ok((memory, bytes, digest))
    }
}

/// The `Elf64_Ehdr` and the program headers.
fn start_of_file(layout: &Layout, sections_offset: u64, sections: u16) -> Vec<u8> {
    const SHARED_OBJECT: u16 = 3;
    const LOAD: u32 = 1;
    const READ_EXECUTE: u32 = 5;
    let segments = u16::try_from(layout.segments.len()).unwrap_or(0);
    let mut out = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    out.extend(SHARED_OBJECT.to_le_bytes());
    out.extend(layout.machine.to_le_bytes());
    out.extend(1u32.to_le_bytes());
    out.extend(0u64.to_le_bytes());
    out.extend(HEADER_BYTES.to_le_bytes());
    out.extend(sections_offset.to_le_bytes());
    out.extend(0u32.to_le_bytes());
    for half in [
        64,
        56,
        segments,
        SECTION_BYTES,
        sections,
        sections.saturating_sub(1),
    ] {
        out.extend(half.to_le_bytes());
    }
    for Segment {
        offset,
        address,
        bytes,
    } in &layout.segments
    {
        out.extend(LOAD.to_le_bytes());
        out.extend(READ_EXECUTE.to_le_bytes());
        for word in [*offset, *address, *address, *bytes, *bytes, 4096] {
            out.extend(word.to_le_bytes());
        }
    }
    out
}
