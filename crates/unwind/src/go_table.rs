//! Go functions and the sizes of their frames, from `.gopclntab`.
//!
//! Go writes no `.eh_frame`. Its own table says for every address how many bytes lie below the
//! return address (`pcsp`), which is all that an interrupted Go function needs; its callers are
//! found by the frame pointer, which Go keeps in every function with a frame. Tables of Go 1.18 and
//! later are read; code of older versions is left to frame pointers.

use std::fs::File;

use profiler_common::unwind::rule::{Rule, cfa, fp};
use profiler_image::{
    elf_layout::{Layout, Section},
    go_header::{GoHeader, GoVersion, HEADER_BYTES, MODULE_TEXT_WORD, difference, varint},
};

use super::{cfi::Function, machine::Machine, rules::of_kind, source::Window};

/// Functions of one file that are believed.
const FUNCTIONS_LIMIT: u64 = 4 << 20;
/// Bytes of one function's table of frame sizes.
const SIZES_BYTES: usize = 64 * 1024;
/// Longest name that matters here.
const NAME_BYTES: usize = 32;

/// `TOPFRAME`: the function is the outermost of its stack.
const FLAG_TOP_FRAME: u8 = 1;

/// How ordinary Go functions begin: the check of the stack's limit (`cmp rsp, [r14+16]`, or with
/// `lea r12, [rsp-N]` for large frames), or the frame itself (`push rbp; mov rbp, rsp`).
const PROLOGUES: [&[u8]; 3] = [
    &[0x49, 0x3b, 0x66, 0x10],
    &[0x4c, 0x8d, 0x64, 0x24],
    &[0x55, 0x48, 0x89, 0xe5],
];
/// Functions that are looked at to see whether the table belongs to the code.
const CHECKED_FUNCTIONS: u64 = 256;

/// The table of one file.
#[derive(Debug)]
pub(crate) struct GoTable {
    section: Section,
    /// The address that the table counts from.
    text: u64,
    functions: u64,
    /// Parts of the section, from its beginning.
    names: u64,
    sizes: u64,
    table: u64,
    /// The place of the flags in a function's record.
    flags: u64,
    quantum: u64,
}

impl GoTable {
    /// None when the file is not a Go program, or one that this reader does not understand.
    pub(crate) fn find(file: &File, layout: &Layout, machine: Machine) -> Option<Self> {
        if machine != Machine::X86_64 {
            return None;
        }
        let section = GoHeader::section(layout)?.clone();
        let mut window = Window::new(file);
        let header = window.bytes(section.offset, HEADER_BYTES)?;
        let header = GoHeader::parse(header.first_chunk()?)?;
        let flags = match header.version {
            GoVersion::From1_18 => 37,
            GoVersion::From1_20 => 41,
        };
        if header.pointer_bytes != 8 {
            return None;
        }
        let mut found = Self {
            text: 0,
            functions: header.functions,
            names: header.names_at,
            sizes: header.values_at,
            table: header.index_at,
            flags,
            quantum: header.quantum,
            section,
        };
        let parts = [found.names, found.sizes, found.table];
        if found.functions == 0
            || found.functions > FUNCTIONS_LIMIT
            || parts.iter().any(|part| *part > found.section.bytes)
        {
            return None;
        }
        let module = layout.section(".go.module").and_then(|module| {
            window.word64(module.offset.checked_add(8 * MODULE_TEXT_WORD as u64)?)
        });
        let section = layout.section(".text").map(|text| text.address);
        let candidates = [Some(header.text), module, section];
        for text in candidates.into_iter().flatten().filter(|text| *text != 0) {
            found.text = text;
            if found.belongs_to_code(file, layout) {
                return Some(found);
            }
        }
        None
    }

    /// The functions of which code lies in `[start, end)`, in ascending order.
    pub(crate) fn functions(&self, file: &File, start: u64, end: u64) -> Vec<Function> {
        let mut window = Window::new(file);
        let mut found = Vec::new();
        let from = start.saturating_sub(self.text);
        let (mut low, mut high) = (0, self.functions);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.entry(&mut window, middle) {
                Some((offset, _)) if offset <= from => low = middle + 1,
                Some(_) => high = middle,
                None => return found,
            }
        }
        let mut data = Window::new(file);
        for number in low.saturating_sub(1)..self.functions {
            let Some((offset, record)) = self.entry(&mut window, number) else {
                break;
            };
            let address = self.text.wrapping_add(offset);
            if address >= end {
                break;
            }
            // Behind the last function stands the end of the code.
            let Some((next, _)) = self.entry(&mut window, number + 1) else {
                break;
            };
            if next > offset {
                let behind = self.text.wrapping_add(next);
                found.extend(self.function(&mut data, address, behind, record));
            }
        }
        found
    }

    /// Offset in the code and offset of the record of a function.
    fn entry(&self, window: &mut Window<'_>, number: u64) -> Option<(u64, u64)> {
        let at = self.at(self.table, number.checked_mul(8)?, 8)?;
        let offset = u64::from(window.word32(at)?);
        Some((offset, u64::from(window.word32(at + 4)?)))
    }

    /// The offset in the file of something in a part of the section.
    fn at(&self, part: u64, offset: u64, bytes: u64) -> Option<u64> {
        let inside = part.checked_add(offset)?;
        if inside.checked_add(bytes)? > self.section.bytes {
            return None;
        }
        self.section.offset.checked_add(inside)
    }

    fn function(
        &self,
        window: &mut Window<'_>,
        start: u64,
        end: u64,
        record: u64,
    ) -> Option<Function> {
        let mut function = Function {
            start,
            end,
            ..Function::default()
        };
        let at = self.at(self.table, record, 44)?;
        let name = u64::from(window.word32(at.checked_add(4)?)?);
        let sizes = u64::from(window.word32(at.checked_add(16)?)?);
        let flags = *window.bytes(at.checked_add(self.flags)?, 1)?.first()?;
        let name = self.name(window, name);
        let name = name.strip_suffix(".abi0").unwrap_or(&name);
        if name.starts_with("runtime.sigreturn") {
            function.rows.push((start, of_kind(cfa::SIGNAL)));
            return Some(function);
        }
        // It is marked as outermost as well, but what it interrupted is worth more.
        let trampoline = name == "runtime.sigtramp" || name == "runtime.cgoSigtramp";
        if flags & FLAG_TOP_FRAME != 0 && !trampoline {
            function.rows.push((start, of_kind(cfa::OUTERMOST)));
            return Some(function);
        }
        for (address, size) in self.frame_sizes(window, start, end, sizes) {
            let rule = if trampoline {
                Rule {
                    cfa_kind: cfa::SP,
                    cfa_offset: size.saturating_add(8),
                    ra_offset: -8,
                    fp_kind: fp::SAME,
                    ..Rule::default()
                }
            } else {
                Rule {
                    cfa_offset: size,
                    ..of_kind(cfa::GO)
                }
            };
            function.raw_rows += 1;
            if function.rows.last().is_none_or(|(_, last)| *last != rule) {
                function.rows.push((address, rule));
            }
        }
        Some(function)
    }

    fn name(&self, window: &mut Window<'_>, offset: u64) -> String {
        let left = self
            .section
            .bytes
            .saturating_sub(self.names.saturating_add(offset));
        let length = NAME_BYTES.min(usize::try_from(left).unwrap_or(0));
        let bytes = self
            .at(self.names, offset, length as u64)
            .and_then(|at| window.bytes(at, length));
        let bytes = bytes.unwrap_or_default();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(0);
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }

    /// (address, bytes below the return address) in ascending order, the first at `start`.
    fn frame_sizes(
        &self,
        window: &mut Window<'_>,
        start: u64,
        end: u64,
        offset: u64,
    ) -> Vec<(u64, i32)> {
        // Functions without a table are stubs without a frame.
        let mut rows = vec![(start, 0)];
        let part = self.sizes.saturating_add(offset);
        let length = usize::try_from(self.section.bytes.saturating_sub(part))
            .unwrap_or(0)
            .min(SIZES_BYTES);
        if offset == 0 || length == 0 {
            return rows;
        }
        // Most tables have some dozens of bytes.
        let first = length.min(256);
        for length in [first, length] {
            let Some(at) = self.at(self.sizes, offset, length as u64) else {
                break;
            };
            let Some(bytes) = window.bytes(at, length) else {
                break;
            };
            let (decoded, complete) = decode_sizes(bytes, start, end, self.quantum);
            rows = decoded;
            if complete {
                break;
            }
        }
        rows
    }

    fn belongs_to_code(&self, file: &File, layout: &Layout) -> bool {
        let mut window = Window::new(file);
        let mut code = Window::new(file);
        let checked = self.functions.min(CHECKED_FUNCTIONS);
        let known = (0..checked).filter(|nth| {
            let number = nth * self.functions / checked;
            let Some((offset, _)) = self.entry(&mut window, number) else {
                return false;
            };
            let address = self.text.wrapping_add(offset);
            let mut segments = layout.segments.iter();
            let Some(segment) = segments.find(|segment| segment.contains(address, 4)) else {
                return false;
            };
            let at = segment.offset.saturating_add(address - segment.address);
            code.bytes(at, 4)
                .is_some_and(|bytes| PROLOGUES.contains(&bytes))
        });
        known.count() as u64 * 4 >= checked
    }
}

/// Decodes pairs of (difference of the value, length of code); says whether the end was reached.
fn decode_sizes(bytes: &[u8], start: u64, end: u64, quantum: u64) -> (Vec<(u64, i32)>, bool) {
    let mut rows = Vec::new();
    let mut rest = bytes.iter().copied();
    let (mut value, mut address) = (-1i32, start);
    while let Some(change) = varint(|| rest.next()) {
        if change == 0 && !rows.is_empty() {
            return (rows, true);
        }
        let Some(next) = value.checked_add(difference(change)) else {
            break;
        };
        value = next;
        let Some(length) = varint(|| rest.next()) else {
            break;
        };
        if rows.last().is_none_or(|(_, last)| *last != value) {
            rows.push((address, value));
        }
        address = address.saturating_add(u64::from(length).saturating_mul(quantum));
        if address >= end {
            return (rows, true);
        }
    }
    if rows.is_empty() {
        rows.push((start, 0));
    }
    (rows, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_decoded_as_go_writes_them() {
        // -1 + 1 for 4 bytes, + 24 for 16, - 24 for the rest.
        let bytes = [2, 4, 48, 16, 47, 8, 0];
        let (rows, complete) = decode_sizes(&bytes, 100, 1000, 1);
        assert_eq!(rows, [(100, 0), (104, 24), (120, 0)]);
        assert!(complete);
        let (rows, complete) = decode_sizes(&bytes[..3], 100, 1000, 1);
        assert_eq!(rows, [(100, 0)]);
        assert!(!complete);
        assert_eq!(decode_sizes(&[0xff; 16], 0, 10, 1), (vec![(0, 0)], false));
        assert_eq!(decode_sizes(&[], 0, 10, 1), (vec![(0, 0)], false));
    }
}
