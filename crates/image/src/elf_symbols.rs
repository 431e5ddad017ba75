//! The symbols of a hostile ELF file that may name code.
//!
//! A symbol names an address only when something says that the address is inside of it. Its size
//! says so; where it has none (hand-written assembly), the unwind table may: the symbol reaches to
//! the end of the entry that contains it, or to the next symbol before that. A symbol without
//! either names nothing, because the nearest name is mostly a wrong one.

use std::fs::File;

use object::{
    Endianness,
    elf::{SHN_ABS, SHN_COMMON, SHN_UNDEF, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, Sym32, Sym64},
    pod,
    read::elf::Sym,
};

use super::{
    elf_layout::{ElfError, Layout, Section, Segment, read_range, text_at},
    elf_writer::{CopiedSymbols, Output},
    fde_table::FdeTable,
};

/// Largest string table of symbols.
const STRINGS_LIMIT: u64 = 96 << 20;
/// Symbols that are read of one table.
const SYMBOLS_LIMIT: u64 = 2_000_000;
/// Symbols without size that are looked at.
const SIZELESS_LIMIT: usize = 100_000;
/// Longest mangled name that is kept; longer symbols are left away.
const MANGLED_LIMIT: usize = 8 * 1024;
/// Symbols that are read at once.
const SYMBOLS_AT_ONCE: usize = 4096;

/// The unwind table of the program, read when the first symbol without size is met. A separate
/// debug file has none, so it is always that of the program itself.
#[derive(Debug)]
pub struct Bounds<'program> {
    program: Option<(&'program File, &'program Layout)>,
    table: Option<FdeTable>,
}

impl<'program> Bounds<'program> {
    pub fn of(file: &'program File, layout: &'program Layout) -> Self {
        Self {
            program: Some((file, layout)),
            table: None,
        }
    }

    /// No unwind table: symbols without size name nothing.
    pub fn none() -> Self {
        Self {
            program: None,
            table: None,
        }
    }

    /// Start and end of the entry around an address.
    fn around(&mut self, address: u64) -> Option<(u64, u64)> {
        if let Some((file, layout)) = self.program.take() {
            self.table = FdeTable::read(file, layout);
        }
        self.table.as_ref()?.around(address)
    }
}

/// A symbol that may name code.
struct Candidate<'strings> {
    address: u64,
    /// 0 when the table does not say.
    bytes: u64,
    name: &'strings str,
    is_function: bool,
}

/// Copies the symbols of `.symtab`, or of `.dynsym` where there are none.
pub(crate) fn copy(
    file: &File,
    layout: &Layout,
    bounds: &mut Bounds<'_>,
    out: &mut Output,
) -> Result<CopiedSymbols, ElfError> {
    // A .symtab has all that a .dynsym has, unless it was emptied by hand.
    for name in [".symtab", ".dynsym"] {
        let Some(table) = layout.section(name) else {
            continue;
        };
        let Some(Some(strings)) = layout.sections.get(table.link) else {
            continue;
        };
        // A table that is out of bounds names nothing; the other one may still be sound.
        let Ok(strings) = read_range(
            file,
            strings.offset,
            strings.bytes,
            STRINGS_LIMIT,
            "symbol names",
        ) else {
            continue;
        };
        let mut copied = if layout.wide {
            copy_table::<Sym64<Endianness>>(file, layout, table, &strings, bounds, out)?
        } else {
            copy_table::<Sym32<Endianness>>(file, layout, table, &strings, bounds, out)?
        };
        if copied.count > 0 {
            copied.complete = name == ".symtab";
            return Ok(copied);
        }
    }
    Ok(CopiedSymbols::default())
}

/// The table that is being written.
struct Copy<'out> {
    out: &'out mut Output,
    /// The names, each ended by a zero.
    names: Vec<u8>,
    copied: CopiedSymbols,
}

impl Copy<'_> {
    /// Adds a symbol; false when there is no room for its name.
    fn add(&mut self, address: u64, bytes: u64, name: &str) -> Result<bool, ElfError> {
        let Ok(name_offset) = u32::try_from(self.names.len()) else {
            return Ok(false);
        };
        self.names.extend_from_slice(name.as_bytes());
        self.names.push(0);
        self.out.symbol(name_offset, address, bytes)?;
        self.copied.count += 1;
        Ok(true)
    }

    fn finish(mut self) -> Result<CopiedSymbols, ElfError> {
        self.copied.strings_offset = self.out.at;
        self.copied.strings_bytes = self.names.len() as u64;
        self.out.write_all(&self.names)?;
        Ok(self.copied)
    }
}

fn copy_table<Symbol>(
    file: &File,
    layout: &Layout,
    table: &Section,
    strings: &[u8],
    bounds: &mut Bounds<'_>,
    out: &mut Output,
) -> Result<CopiedSymbols, ElfError>
where
    Symbol: Sym<Endian = Endianness> + pod::Pod,
{
    let entry = size_of::<Symbol>() as u64;
    let mut left = (table.bytes / entry).min(SYMBOLS_LIMIT);
    let mut at = table.offset;
    let mut copy = Copy {
        copied: CopiedSymbols {
            symbols_offset: out.align()?,
            ..CopiedSymbols::default()
        },
        out,
        names: vec![0u8],
    };
    let mut sized: Vec<(u64, u64)> = Vec::new();
    let mut sizeless: Vec<Candidate<'_>> = Vec::new();
    'table: while left > 0 {
        let count = left.min(SYMBOLS_AT_ONCE as u64);
        let bytes = count * entry;
        let Ok(data) = read_range(file, at, bytes, bytes, "symbols") else {
            break;
        };
        let Ok(symbols) = pod::slice_from_all_bytes::<Symbol>(&data) else {
            break;
        };
        for symbol in symbols {
            let Some(candidate) = candidate(symbol, &layout.segments, strings) else {
                continue;
            };
            if candidate.bytes == 0 {
                if sizeless.len() < SIZELESS_LIMIT {
                    sizeless.push(candidate);
                }
                continue;
            }
            if !copy.add(candidate.address, candidate.bytes, candidate.name)? {
                break 'table;
            }
            sized.push((candidate.address, candidate.address + candidate.bytes));
        }
        at = at.saturating_add(bytes);
        left -= count;
    }
    for (candidate, end) in bounded(sizeless, sized, bounds) {
        if !copy.add(candidate.address, end - candidate.address, candidate.name)? {
            break;
        }
    }
    copy.finish()
}

/// Symbols without size with the ends that the unwind table gives them. Those inside of a symbol
/// with a size are labels in its code and left away.
fn bounded<'strings>(
    mut sizeless: Vec<Candidate<'strings>>,
    mut sized: Vec<(u64, u64)>,
    bounds: &mut Bounds<'_>,
) -> Vec<(Candidate<'strings>, u64)> {
    if sizeless.is_empty() {
        return Vec::new();
    }
    sized.sort_unstable();
    // The end that any symbol up to this one reaches.
    let mut reached = 0;
    for (_, end) in &mut sized {
        reached = reached.max(*end);
        *end = reached;
    }
    sizeless.sort_by_key(|candidate| (candidate.address, !candidate.is_function));
    sizeless.dedup_by_key(|candidate| candidate.address);
    let starts: Vec<u64> = sizeless.iter().map(|candidate| candidate.address).collect();
    let mut found = Vec::new();
    for (index, candidate) in sizeless.into_iter().enumerate() {
        let at = candidate.address;
        let after = sized.partition_point(|(start, _)| *start <= at);
        if after > 0 && sized[after - 1].1 > at {
            continue;
        }
        let Some((start, end)) = bounds.around(at) else {
            continue;
        };
        // A label in the middle of something is not a function.
        if start != at && !candidate.is_function {
            continue;
        }
        let next_sized = sized.get(after).map_or(u64::MAX, |(start, _)| *start);
        let next = starts.get(index + 1).copied().unwrap_or(u64::MAX);
        let end = end.min(next_sized).min(next);
        if end > at {
            found.push((candidate, end));
        }
    }
    found
}

/// A symbol of code inside an executable segment, with a name.
fn candidate<'strings, Symbol>(
    symbol: &Symbol,
    segments: &[Segment],
    strings: &'strings [u8],
) -> Option<Candidate<'strings>>
where
    Symbol: Sym<Endian = Endianness>,
{
    let endian = Endianness::Little;
    let kind = symbol.st_type();
    let section = symbol.st_shndx(endian);
    if ![STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE].contains(&kind)
        || [SHN_UNDEF, SHN_ABS, SHN_COMMON].contains(&section)
    {
        return None;
    }
    let (address, bytes) = (
        symbol.st_value(endian).into(),
        symbol.st_size(endian).into(),
    );
    if !segments
        .iter()
        .any(|segment| segment.contains(address, bytes))
    {
        return None;
    }
    let name = text_at(strings, symbol.st_name(endian) as usize)?;
    (!name.is_empty() && name.len() <= MANGLED_LIMIT).then_some(Candidate {
        address,
        bytes,
        name,
        is_function: kind != STT_NOTYPE,
    })
}
