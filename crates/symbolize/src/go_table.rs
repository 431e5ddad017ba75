//! Go's own table of functions, files and lines (`.gopclntab`), which `-ldflags=-s -w` leaves in
//! place because the runtime needs it. Formats of Go 1.18 and later.
//!
//! ```text
//! header -> function index (offset of code, offset of record), sorted
//!        -> record: name, tables "pc -> value" for file, line and inlined call
//!        -> names | file numbers of compilation units | file names | the pc-value tables
//! ```
//!
//! Where the code begins and where the trees of inlined calls lie is in the runtime's `moduledata`,
//! which is found by its first two words: they point to the table and to its names.
//!
//! The table is copied once and then read by `pread` in small pieces: nothing is decoded before it
//! is asked for, and every walk has a bound.

use std::{fs::File, os::unix::fs::FileExt as _, rc::Rc};

use profiler_image::{
    elf_layout::{Layout, Segment, read_range},
    go_header::{GoHeader, GoVersion, HEADER_BYTES, MODULE_TEXT_WORD, difference, varint},
    memory_copy::MemoryCopy,
};
use profiler_model::NameSource;

use super::{
    demangle::{NAME_LIMIT, cut},
    native::{NamedFunction, Names},
};

/// Largest table that is copied. The Kubernetes API server's has 40 MB.
const TABLE_LIMIT: u64 = 64 << 20;
/// Largest part with trees of inlined calls.
const TREES_LIMIT: u64 = 32 << 20;
/// Bytes of writable data that are searched for `moduledata`.
const SEARCH_LIMIT: u64 = 64 << 20;
/// Bytes that are read at once.
const CHUNK_BYTES: usize = 64 * 1024;
/// Longest pc-value table of one function, in bytes. The largest functions have some 100 KB.
const VALUES_LIMIT: usize = 1 << 20;
/// Deepest inlining that is followed; the compiler stops far earlier.
const INLINED_LIMIT: usize = 64;

/// Words of `moduledata` that are used.
const MODULE_WORDS: usize = 41;
/// Table number of the inlined call, and number of the tree in a record's other data.
const INLINED_CALL: u32 = 2;
const INLINED_TREE: u32 = 3;

/// Differences between the formats.
#[derive(Clone, Copy, Debug)]
struct Format {
    /// Bytes of a record before its table numbers.
    record_bytes: u64,
    /// Place of `gofunc` in `moduledata`.
    trees_word: usize,
    /// Bytes of an inlined call, and where its name and the pc of its call are.
    call_bytes: u64,
    call_name: usize,
    call_pc: usize,
}

const FORMAT_1_18: Format = Format {
    record_bytes: 40,
    trees_word: 38,
    call_bytes: 20,
    call_name: 12,
    call_pc: 16,
};
const FORMAT_1_20: Format = Format {
    record_bytes: 44,
    trees_word: 40,
    call_bytes: 16,
    call_name: 4,
    call_pc: 8,
};

/// The table of one program.
#[derive(Debug)]
pub struct GoTable {
    table: MemoryCopy,
    /// Trees of inlined calls, from `gofunc` on.
    trees: Option<MemoryCopy>,
    format: Format,
    /// Smallest step of code, in bytes.
    quantum: u64,
    functions: u64,
    /// Address at which the code begins.
    text: u64,
    names_at: u64,
    units_at: u64,
    files_at: u64,
    values_at: u64,
    index_at: u64,
}

/// A function's record.
struct Record {
    /// Where it begins in the table.
    at: u64,
    entry: u64,
    name: u32,
    files: u32,
    lines: u32,
    tables: u32,
    unit: u32,
    others: u8,
}

impl GoTable {
    /// Copies the table of a program; `None` when it has none that is understood.
    pub fn read(file: &File, layout: &Layout, keys: &std::hash::RandomState) -> Option<Self> {
        let section = GoHeader::section(layout)?;
        let mut header = [0; HEADER_BYTES];
        file.read_exact_at(&mut header, section.offset).ok()?;
        let GoHeader {
            version,
            quantum,
            pointer_bytes,
            functions,
            text,
            names_at,
            units_at,
            files_at,
            values_at,
            index_at,
        } = GoHeader::parse(&header)?;
        let format = match version {
            GoVersion::From1_18 => FORMAT_1_18,
            GoVersion::From1_20 => FORMAT_1_20,
        };
        if !layout.wide || pointer_bytes != 8 || ![1, 2, 4].contains(&quantum) {
            return None;
        }
        let module = find_module(file, layout, section.address, names_at);
        let text = match (text, &module) {
            (_, Some(module)) => module[MODULE_TEXT_WORD],
            (0, None) => return None,
            (text, None) => text,
        };
        // An index of eight bytes for each function has to fit.
        if functions > section.bytes / 8 || !is_code(&layout.segments, text) {
            return None;
        }
        let table = MemoryCopy::of(file, section.offset, section.bytes, TABLE_LIMIT, keys).ok()?;
        let trees =
            module.and_then(|module| read_trees(file, layout, module[format.trees_word], keys));
        Some(Self {
            table,
            trees,
            format,
            quantum,
            functions,
            text,
            names_at,
            units_at,
            files_at,
            values_at,
            index_at,
        })
    }

    /// Memory that it takes.
    pub(crate) fn bytes(&self) -> u64 {
        self.table.bytes + self.trees.as_ref().map_or(0, |trees| trees.bytes)
    }

    /// Equal content has equal digests.
    pub(crate) fn digest(&self) -> u64 {
        self.table.digest
    }

    /// Names of the code at an address, the innermost inlined function first.
    pub(crate) fn names(&self, address: u64) -> Option<Names> {
        let record = self.find(address.checked_sub(self.text)?)?;
        let mut at = address.checked_sub(self.text)?;
        let mut functions = Vec::new();
        while functions.len() < INLINED_LIMIT {
            let Some((name, call_pc)) = self.inlined(&record, at) else {
                break;
            };
            functions.push(self.function(&record, name, at)?);
            at = record.entry.checked_add(call_pc)?;
        }
        functions.push(self.function(&record, record.name, at)?);
        Some(Names {
            functions,
            source: NameSource::GoTable,
        })
    }

    /// Where the functions of some names begin and end, in the order of the names.
    pub fn functions_named<const COUNT: usize>(
        &self,
        names: [&str; COUNT],
    ) -> [Option<(u64, u64)>; COUNT] {
        let mut found = [None; COUNT];
        let places = names.map(|name| self.place_of_name(name));
        if places.iter().all(Option::is_none) {
            return found;
        }
        let mut index = vec![0; CHUNK_BYTES];
        let mut number = 0;
        // Entries of eight bytes; the one behind the last says where the last function ends.
        while number < self.functions {
            let Some(at) = self.index_at.checked_add(number * 8) else {
                break;
            };
            let Some(count) = self.table.read_some(at, &mut index) else {
                break;
            };
            let words: Vec<(u32, u32)> = index
                .get(..count)
                .unwrap_or_default()
                .chunks_exact(8)
                .filter_map(|entry| {
                    let (entry, record) = entry.split_first_chunk::<4>()?;
                    let record = u32::from_le_bytes(record.try_into().ok()?);
                    Some((u32::from_le_bytes(*entry), record))
                })
                .collect();
            if words.len() < 2 {
                break;
            }
            for pair in words.windows(2) {
                let [(entry, record), (end, _)] = pair else {
                    continue;
                };
                let name = self.index_at.checked_add(u64::from(*record) + 4);
                let name = name.and_then(|at| self.table.u32(at));
                for (place, found) in places.iter().zip(&mut found) {
                    if place.is_some() && *place == name {
                        *found = Some((
                            self.text.wrapping_add(u64::from(*entry)),
                            self.text.wrapping_add(u64::from(*end)),
                        ));
                    }
                }
            }
            number += words.len() as u64 - 1;
        }
        found
    }

    /// Where a name is among the names.
    fn place_of_name(&self, name: &str) -> Option<u32> {
        let pattern = [&[0], name.as_bytes(), &[0]].concat();
        let end = self.units_at.min(self.table.bytes);
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut at = self.names_at;
        while at < end {
            let room = usize::try_from(end - at).unwrap_or(usize::MAX);
            let length = chunk.len().min(room);
            let count = self.table.read_some(at, chunk.get_mut(..length)?)?;
            let bytes = chunk.get(..count)?;
            let found = bytes
                .windows(pattern.len())
                .position(|window| window == pattern);
            if let Some(found) = found {
                let place = at.checked_add(found as u64 + 1)?;
                return u32::try_from(place.checked_sub(self.names_at)?).ok();
            }
            // The pattern may lie across the end of this piece.
            let step = count.saturating_sub(pattern.len() - 1);
            if step == 0 {
                return None;
            }
            at = at.checked_add(step as u64)?;
        }
        None
    }

    /// The record of the function around an offset in the code.
    fn find(&self, offset: u64) -> Option<Record> {
        let wanted = u32::try_from(offset).ok()?;
        // The first index whose function begins after the offset; one entry follows the last.
        let (mut low, mut high) = (0, self.functions);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.table.u32(self.index_at.checked_add(middle * 8)?)? <= wanted {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let index = low.checked_sub(1)?;
        let entry = self.index_at.checked_add(index * 8)?;
        let end = self.table.u32(entry.checked_add(8)?)?;
        if wanted >= end {
            return None;
        }
        let at = self
            .index_at
            .checked_add(u64::from(self.table.u32(entry + 4)?))?;
        let mut fixed = [0; 44];
        let bytes = usize::try_from(self.format.record_bytes).ok()?;
        self.table.read(at, fixed.get_mut(..bytes)?)?;
        let word = |index: usize| -> Option<u32> {
            let bytes = fixed.get(index * 4..index * 4 + 4)?;
            Some(u32::from_le_bytes(bytes.try_into().ok()?))
        };
        Some(Record {
            at,
            entry: u64::from(word(0)?),
            name: word(1)?,
            files: word(5)?,
            lines: word(6)?,
            tables: word(7)?,
            unit: word(8)?,
            others: *fixed.get(bytes - 1)?,
        })
    }

    fn function(&self, record: &Record, name: u32, offset: u64) -> Option<NamedFunction> {
        let name = self
            .table
            .text(self.names_at.checked_add(name.into())?, NAME_LIMIT)?;
        if name.is_empty() {
            return None;
        }
        let place = self.place(record, offset);
        let (file, line) = place.unwrap_or_default();
        Some(NamedFunction {
            name: cut(&name).into(),
            file: Rc::from(file),
            line,
        })
    }

    /// Source file and line of an offset in the code.
    fn place(&self, record: &Record, offset: u64) -> Option<(String, u32)> {
        let number = self.value(record, record.files, offset)?;
        let number = u64::from(record.unit).checked_add(u64::try_from(number).ok()?)?;
        let at = self
            .table
            .u32(self.units_at.checked_add(number.checked_mul(4)?)?)?;
        let file = self
            .table
            .text(self.files_at.checked_add(at.into())?, NAME_LIMIT)?;
        let line = self.value(record, record.lines, offset)?;
        Some((cut(&file), u32::try_from(line).ok()?))
    }

    /// Name and place of the call that was inlined at an offset.
    fn inlined(&self, record: &Record, offset: u64) -> Option<(u32, u64)> {
        let trees = self.trees.as_ref()?;
        if record.tables <= INLINED_CALL || u32::from(record.others) <= INLINED_TREE {
            return None;
        }
        let tables_at = record.at.checked_add(self.format.record_bytes)?;
        let table = self
            .table
            .u32(tables_at.checked_add(u64::from(INLINED_CALL) * 4)?)?;
        let call = u64::try_from(self.value(record, table, offset)?).ok()?;
        let others_at = tables_at.checked_add(u64::from(record.tables) * 4)?;
        let tree = self
            .table
            .u32(others_at.checked_add(u64::from(INLINED_TREE) * 4)?)?;
        if tree == u32::MAX {
            return None;
        }
        let at = u64::from(tree).checked_add(call.checked_mul(self.format.call_bytes)?)?;
        let mut bytes = [0; 20];
        let length = usize::try_from(self.format.call_bytes).ok()?;
        trees.read(at, bytes.get_mut(..length)?)?;
        let word = |at: usize| -> Option<u32> {
            Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
        };
        Some((
            word(self.format.call_name)?,
            word(self.format.call_pc)?.into(),
        ))
    }

    /// The value that a pc-value table gives for an offset in the code: pairs of a difference of
    /// the value (signed) and one of the pc, until a difference of zero.
    fn value(&self, record: &Record, table: u32, offset: u64) -> Option<i32> {
        if table == 0 {
            return None;
        }
        let mut bytes = ValueBytes {
            table: &self.table,
            at: self.values_at.checked_add(table.into())?,
            left: VALUES_LIMIT,
            chunk: Vec::new(),
            next: 0,
        };
        let (mut pc, mut value, mut first) = (record.entry, -1i32, true);
        loop {
            let change = varint(|| bytes.byte())?;
            if change == 0 && !first {
                return None;
            }
            first = false;
            value = value.checked_add(difference(change))?;
            let step = u64::from(varint(|| bytes.byte())?).checked_mul(self.quantum)?;
            pc = pc.checked_add(step)?;
            if offset < pc {
                return Some(value);
            }
        }
    }
}

/// Bytes of a pc-value table, read piece by piece.
struct ValueBytes<'table> {
    table: &'table MemoryCopy,
    at: u64,
    left: usize,
    chunk: Vec<u8>,
    next: usize,
}

impl ValueBytes<'_> {
    fn byte(&mut self) -> Option<u8> {
        const PIECE: usize = 512;
        if self.next == self.chunk.len() {
            self.chunk.resize(PIECE.min(self.left), 0);
            let count = self.table.read_some(self.at, &mut self.chunk)?;
            self.chunk.truncate(count);
            self.at = self.at.checked_add(count as u64)?;
            self.left -= count;
            self.next = 0;
        }
        let byte = *self.chunk.get(self.next)?;
        self.next += 1;
        Some(byte)
    }
}

fn is_code(segments: &[Segment], address: u64) -> bool {
    segments.iter().any(|segment| segment.contains(address, 1))
}

/// The words of the program's `moduledata`. Pointers in it are as the file holds them, which is as
/// linked: also for programs that are moved, because Go's linkers write them in place.
fn find_module(
    file: &File,
    layout: &Layout,
    table: u64,
    names_at: u64,
) -> Option<[u64; MODULE_WORDS]> {
    let names = table.checked_add(names_at)?;
    let pattern = [table.to_le_bytes(), names.to_le_bytes()].concat();
    for name in [".go.module", ".noptrdata", ".data"] {
        let Some(section) = layout.section(name) else {
            continue;
        };
        let end = section
            .offset
            .checked_add(section.bytes.min(SEARCH_LIMIT))?;
        let mut at = section.offset;
        while at < end {
            let bytes = (end - at).min(CHUNK_BYTES as u64);
            let Ok(chunk) = read_range(file, at, bytes, bytes, "module data") else {
                break;
            };
            let words = chunk.windows(pattern.len()).step_by(8);
            if let Some(index) = words.into_iter().position(|words| words == pattern) {
                let found = at + index as u64 * 8;
                let data = read_range(
                    file,
                    found,
                    MODULE_WORDS as u64 * 8,
                    CHUNK_BYTES as u64,
                    "module data",
                )
                .ok()?;
                let mut module = [0; MODULE_WORDS];
                for (word, bytes) in module.iter_mut().zip(data.chunks_exact(8)) {
                    *word = u64::from_le_bytes(bytes.try_into().ok()?);
                }
                return Some(module);
            }
            // The pattern may lie across the end of this piece.
            at += bytes.saturating_sub(8).max(8);
        }
    }
    None
}

/// Copies what follows `gofunc` in its section.
fn read_trees(
    file: &File,
    layout: &Layout,
    address: u64,
    keys: &std::hash::RandomState,
) -> Option<MemoryCopy> {
    let section = layout.sections.iter().flatten().find(|section| {
        section.address != 0
            && address
                .checked_sub(section.address)
                .is_some_and(|inside| inside < section.bytes)
    })?;
    let inside = address - section.address;
    let bytes = (section.bytes - inside).min(TREES_LIMIT);
    let offset = section.offset.checked_add(inside)?;
    MemoryCopy::of(file, offset, bytes, TREES_LIMIT, keys).ok()
}

#[cfg(test)]
#[path = "go_table_tests.rs"]
mod tests;
