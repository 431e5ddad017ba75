//! Rules for the code of musl, which is built without descriptions, by following its instructions.
//!
//! Programs that are linked with musl, and musl itself, begin with the same instructions; only such
//! files are looked at, and in them only what has no description.

use std::fs::File;

use object::elf::{SHN_UNDEF, STT_FUNC};
use profiler_common::unwind::rule::Rule;
use profiler_image::elf_layout::{Layout, Section, Segment, read_range};

use super::{
    cfi::Decoder,
    fde_index::FdeIndex,
    gaps::PADDING,
    source::{Window, read_up_to},
    stack_flow::{self, CodeRange},
};

/// Code without descriptions that is followed; musl has 403 KB.
const CODE_BYTES: u64 = 1 << 20;
/// Descriptions of a file that are measured to find what lies between them.
const DESCRIPTIONS: u64 = 128 * 1024;
/// Symbols of a table that are read.
const SYMBOLS: u64 = 128 * 1024;
/// Bytes of a symbol in a 64-bit file.
const SYMBOL_BYTES: usize = 24;

/// `xor rbp, rbp; mov rdi, rsp; lea rsi, [rip + ..]`: how musl begins a program, and its dynamic
/// linker.
const START: [u8; 9] = [0x48, 0x31, 0xed, 0x48, 0x89, 0xe7, 0x48, 0x8d, 0x35];
/// `and rsp, -16; call ..`, behind the four bytes of the address.
const START_ENDS: [u8; 5] = [0x48, 0x83, 0xe4, 0xf0, 0xe8];

/// What is known of the code of a file that has no descriptions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Undescribed {
    /// An address, the first one behind, and the rule in between; in ascending order.
    rules: Vec<(u64, u64, Rule)>,
}

impl Undescribed {
    /// None when the file is not one of musl.
    pub(crate) fn find(
        file: &File,
        layout: &Layout,
        index: Option<&FdeIndex>,
        decoder: Option<&mut Decoder<'_>>,
    ) -> Option<Self> {
        is_musl(file, layout).then(|| {
            let described = match (index, decoder) {
                (Some(index), Some(decoder)) => described(file, index, decoder),
                _ => Some(Vec::new()),
            };
            let ranges = described.and_then(|described| between(file, layout, &described));
            let functions = functions(file, layout);
            let segments = &layout.segments;
            Self {
                rules: ranges.map_or_else(Vec::new, |ranges| {
                    stack_flow::rules(&ranges, &functions, &|address, bytes| {
                        read_at(file, layout, segments, address, bytes)
                    })
                }),
            }
        })
    }

    /// The rules between two addresses.
    pub(crate) fn between(&self, start: u64, end: u64) -> &[(u64, u64, Rule)] {
        let from = self.rules.partition_point(|rule| rule.1 <= start);
        let to = self.rules.partition_point(|rule| rule.0 < end);
        self.rules.get(from..to).unwrap_or_default()
    }
}

fn is_musl(file: &File, layout: &Layout) -> bool {
    let mut code = [0; START.len() + 4 + START_ENDS.len()];
    let length = code.len() as u64;
    let mut segments = layout.segments.iter();
    let Some(segment) = segments.find(|segment| segment.contains(layout.entry, length)) else {
        return false;
    };
    let at = segment
        .offset
        .saturating_add(layout.entry - segment.address);
    read_up_to(file, at, &mut code) == code.len()
        && code.starts_with(&START)
        && code.ends_with(&START_ENDS)
}

/// What the descriptions cover, in ascending order; none when there are too many.
fn described(file: &File, index: &FdeIndex, decoder: &mut Decoder<'_>) -> Option<Vec<(u64, u64)>> {
    if index.len() > DESCRIPTIONS {
        return None;
    }
    let mut window = Window::new(file);
    let entries = (0..index.len()).filter_map(|number| index.entry(&mut window, number));
    let mut ranges: Vec<(u64, u64)> = entries
        .filter_map(|(_, description)| decoder.range(description))
        .filter(|(start, end)| start < end)
        .collect();
    ranges.sort_unstable();
    Some(ranges)
}

/// The code between descriptions; none when it is too much.
fn between(file: &File, layout: &Layout, described: &[(u64, u64)]) -> Option<Vec<CodeRange>> {
    let text = layout
        .section(".text")
        .map(|text| (text.address, text.bytes));
    let mut ranges = Vec::new();
    let mut left = CODE_BYTES;
    let mut segments: Vec<&Segment> = layout.segments.iter().collect();
    segments.sort_unstable_by_key(|segment| segment.address);
    let mut behind = 0;
    for segment in segments {
        let end = segment.address.saturating_add(segment.bytes);
        let (first, last) = match text {
            Some((address, bytes)) if segment.contains(address, bytes) => {
                (address, address.saturating_add(bytes))
            }
            Some(_) | None => (segment.address, end),
        };
        // Segments of a damaged file may lie on each other.
        let mut at = first.max(behind);
        let known = described.iter().copied().filter(|known| known.1 > first);
        for (start, end) in known.chain([(last, last)]) {
            let until = start.min(last);
            let bytes = until.saturating_sub(at);
            if bytes > PADDING {
                left = left.checked_sub(bytes)?;
                let offset = segment.offset.saturating_add(at - segment.address);
                let mut code = vec![0; usize::try_from(bytes).ok()?];
                let count = read_up_to(file, offset, &mut code);
                code.truncate(count);
                ranges.push(CodeRange {
                    start: at,
                    bytes: code,
                });
            }
            at = at.max(end);
        }
        behind = behind.max(end);
    }
    Some(ranges)
}

/// Where functions begin, as far as symbols say so.
fn functions(file: &File, layout: &Layout) -> Vec<u64> {
    let mut functions = vec![layout.entry];
    for name in [".symtab", ".dynsym"] {
        if let Some(table) = layout.section(name) {
            functions.extend(functions_of(file, table));
        }
    }
    functions
}

fn functions_of(file: &File, table: &Section) -> Vec<u64> {
    let limit = SYMBOLS * SYMBOL_BYTES as u64;
    let bytes = read_range(file, table.offset, table.bytes.min(limit), limit, "symbols");
    let bytes = bytes.unwrap_or_default();
    let functions = bytes.chunks_exact(SYMBOL_BYTES).filter_map(|symbol| {
        let is_function = symbol[4] & 0xf == STT_FUNC.0;
        let section = u16::from_le_bytes([symbol[6], symbol[7]]);
        let address = u64::from_le_bytes(symbol[8..16].try_into().ok()?);
        (is_function && section != SHN_UNDEF.0).then_some(address)
    });
    functions.collect()
}

/// Reads what lies at an address, in code or in a section of constants.
fn read_at(
    file: &File,
    layout: &Layout,
    segments: &[Segment],
    address: u64,
    bytes: &mut [u8],
) -> bool {
    let length = bytes.len() as u64;
    let sections = layout.sections.iter().flatten();
    let sections = sections
        .filter(|section| section.address != 0)
        .map(|section| Segment {
            offset: section.offset,
            address: section.address,
            bytes: section.bytes,
        });
    let mut places = segments.iter().copied().chain(sections);
    let Some(place) = places.find(|place| place.contains(address, length)) else {
        return false;
    };
    let at = place.offset.saturating_add(address - place.address);
    read_up_to(file, at, bytes) == bytes.len()
}

#[cfg(test)]
#[path = "undescribed_tests.rs"]
mod tests;
