//! The section headers of the file.

use std::ops::Range;

use super::{NotInferred, input::Input};

/// Section headers that are read. Executables have some dozens.
const SECTIONS_LIMIT: u64 = 4096;
/// Largest table of section names.
const NAMES_LIMIT: u64 = 1 << 20;

const HEADER_BYTES: u64 = 64;
const ENTRY_BYTES: u64 = 64;

const SHT_PROGBITS: u32 = 1;
pub(super) const SHT_RELA: u32 = 4;
pub(super) const SHT_DYNSYM: u32 = 11;
pub(super) const SHT_RELR: u32 = 19;

const SHF_WRITE: u64 = 1;
const SHF_ALLOC: u64 = 2;
const SHF_EXECINSTR: u64 = 4;
const SHF_TLS: u64 = 0x400;
const SHF_COMPRESSED: u64 = 0x800;

/// Sections that the unwinder or the loader reads and that hold neither strings nor objects.
const NOT_DATA: [&str; 5] = [
    ".eh_frame",
    ".eh_frame_hdr",
    ".gcc_except_table",
    ".interp",
    ".dynamic",
];

/// The instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Machine {
    X86_64,
    Aarch64,
    Other,
}

/// Where the file runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placement {
    /// At the linked addresses: pointers need no relocations.
    Fixed,
    /// Anywhere: every pointer is relocated.
    Anywhere,
}

#[derive(Clone, Debug)]
pub(super) struct Section {
    pub(super) name: String,
    pub(super) kind: u32,
    pub(super) address: u64,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pub(super) link: usize,
    flags: u64,
}

impl Section {
    fn is_program(&self) -> bool {
        self.kind == SHT_PROGBITS
            && self.flags & SHF_ALLOC != 0
            && self.flags & (SHF_TLS | SHF_COMPRESSED) == 0
    }

    pub(super) fn is_code(&self) -> bool {
        self.is_program() && self.flags & SHF_EXECINSTR != 0
    }

    pub(super) fn is_data(&self) -> bool {
        self.is_program()
            && self.flags & SHF_EXECINSTR == 0
            && !NOT_DATA.contains(&self.name.as_str())
            && !self.name.starts_with(".note")
    }

    pub(super) fn is_writable(&self) -> bool {
        self.flags & SHF_WRITE != 0
    }

    pub(super) fn is_loaded(&self) -> bool {
        self.flags & SHF_ALLOC != 0
    }

    pub(super) fn contains(&self, address: u64) -> bool {
        address
            .checked_sub(self.address)
            .is_some_and(|inside| inside < self.bytes)
    }
}

#[derive(Debug)]
pub(super) struct Sections {
    pub(super) machine: Machine,
    pub(super) placement: Placement,
    pub(super) all: Vec<Section>,
    /// Addresses of code, in order and without overlaps.
    code: Vec<Range<u64>>,
}

impl Sections {
    pub(super) fn read(input: &mut Input<'_>) -> Result<Self, NotInferred> {
        let header = input
            .read(0, HEADER_BYTES, "header")
            .map_err(|_| NotInferred::NotElf)?;
        // 64-bit, little-endian.
        if !header.starts_with(&[0x7f, b'E', b'L', b'F', 2, 1]) {
            return Err(NotInferred::NotElf);
        }
        let half = |at| u16_at(&header, at).ok_or(NotInferred::NotElf);
        let placement = match half(16)? {
            2 => Placement::Fixed,
            3 => Placement::Anywhere,
            _ => return Err(NotInferred::NotElf),
        };
        let machine = match half(18)? {
            62 => Machine::X86_64,
            183 => Machine::Aarch64,
            _ => Machine::Other,
        };
        let what = "section headers";
        let start = u64_at(&header, 40).ok_or(NotInferred::NotElf)?;
        let count = u64::from(half(60)?);
        if count > SECTIONS_LIMIT || u64::from(half(58)?) != ENTRY_BYTES {
            return Err(NotInferred::OutOfBounds { what });
        }
        let table = input.read(start, count * ENTRY_BYTES, what)?;
        let entries = || table.chunks_exact(64);
        let names = entries()
            .nth(usize::from(half(62)?))
            .and_then(|entry| Some((u64_at(entry, 24)?, u64_at(entry, 32)?)));
        let what = "section names";
        let (offset, bytes) = names.ok_or(NotInferred::OutOfBounds { what })?;
        if bytes > NAMES_LIMIT {
            return Err(NotInferred::TooLarge { what });
        }
        let names = input.read(offset, bytes, what)?;
        let all: Vec<Section> = entries()
            .filter_map(|entry| section(entry, &names))
            .collect();
        Ok(Self {
            machine,
            placement,
            code: code_ranges(&all),
            all,
        })
    }

    pub(super) fn named(&self, name: &str) -> Option<&Section> {
        self.all.iter().find(|section| section.name == name)
    }

    pub(super) fn code(&self) -> impl Iterator<Item = &Section> {
        self.all.iter().filter(|section| section.is_code())
    }

    /// Sections that relocate words of the running program, or name its imports.
    pub(super) fn loaded(&self, kind: u32) -> impl Iterator<Item = &Section> {
        let wanted = move |section: &&Section| section.kind == kind && section.is_loaded();
        self.all.iter().filter(wanted)
    }

    pub(super) fn is_code(&self, address: u64) -> bool {
        let after = self.code.partition_point(|range| range.start <= address);
        let before = after.checked_sub(1).and_then(|index| self.code.get(index));
        before.is_some_and(|range| range.contains(&address))
    }
}

fn code_ranges(all: &[Section]) -> Vec<Range<u64>> {
    let code = all.iter().filter(|section| section.is_code());
    let mut ranges: Vec<_> = code
        .map(|section| section.address..section.address.saturating_add(section.bytes))
        .collect();
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, kept| {
        let joined = next.start <= kept.end;
        if joined {
            kept.end = kept.end.max(next.end);
        }
        joined
    });
    ranges
}

/// `None` for an entry with a name that is not text; the indexes of later ones must not move, so
/// it only happens together with an unusable file.
fn section(entry: &[u8], names: &[u8]) -> Option<Section> {
    let name = usize::try_from(u32_at(entry, 0)?).ok()?;
    let address = u64_at(entry, 16)?;
    let bytes = u64_at(entry, 32)?;
    let name = names
        .get(name..)
        .and_then(|rest| rest.split(|byte| *byte == 0).next())
        .unwrap_or_default();
    Some(Section {
        name: String::from_utf8_lossy(name).into_owned(),
        kind: u32_at(entry, 4)?,
        flags: u64_at(entry, 8)?,
        address,
        offset: u64_at(entry, 24)?,
        // A section that wraps around the address space is empty.
        bytes: address.checked_add(bytes).map_or(0, |_| bytes),
        link: usize::try_from(u32_at(entry, 40)?).ok()?,
    })
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let part = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_le_bytes(part.try_into().ok()?))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let part = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(part.try_into().ok()?))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let part = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(part.try_into().ok()?))
}
