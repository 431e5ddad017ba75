//! References from code to data: which words objects begin at, and which functions refer to the
//! paths of source files.
//!
//! Code is not disassembled. An instruction that takes an address has a pattern of three bytes
//! before a distance; that other bytes look like it and lead exactly to the start of something is
//! rare enough (the tests count it).

use super::{
    NotInferred,
    input::Input,
    memory::{Bits, Memory},
    sections::{Machine, Placement, Section, Sections, u32_at},
    source_paths::Paths,
};

/// Bytes of all code. Envoy has 68 MB.
const BYTES_LIMIT: u64 = 256 << 20;
/// Code that is read at once.
const AT_ONCE: u64 = 1 << 20;
/// Bytes at the end of a piece that the next piece begins with, so that no instruction is cut.
const OVERLAP: usize = 8;
/// References to paths that are kept. Envoy has 26,000.
const REFERENCES_LIMIT: usize = 500_000;

/// One reference from code to the path of a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Reference {
    pub(super) from: u64,
    /// Index of the path.
    pub(super) path: u32,
}

#[derive(Debug, Default)]
pub(super) struct References {
    /// In order of the code's addresses.
    pub(super) all: Vec<Reference>,
}

impl References {
    pub(super) fn scan(
        input: &mut Input<'_>,
        sections: &Sections,
        memory: &mut Memory,
        paths: &Paths,
    ) -> Result<Self, NotInferred> {
        let mut all = Vec::new();
        if sections.machine != Machine::X86_64 {
            return Ok(Self { all });
        }
        let index = PathIndex::new(paths);
        let mut left = BYTES_LIMIT;
        for section in sections.code() {
            left = left
                .checked_sub(section.bytes)
                .ok_or(NotInferred::TooLarge { what: "code" })?;
            let found = |from, target| match index.find(target) {
                Some(path) if all.len() < REFERENCES_LIMIT => all.push(Reference { from, path }),
                Some(_) => {}
                None => memory.refer(target),
            };
            scan_section(input, section, sections.placement, found)?;
        }
        all.sort_unstable();
        Ok(Self { all })
    }
}

pub(super) fn scan_section(
    input: &mut Input<'_>,
    section: &Section,
    placement: Placement,
    mut found: impl FnMut(u64, u64),
) -> Result<(), NotInferred> {
    let mut done = 0;
    while done < section.bytes {
        let bytes = AT_ONCE.min(section.bytes - done);
        let piece = input.read(section.offset.saturating_add(done), bytes, "code")?;
        let start = section.address.wrapping_add(done);
        scan(&piece, start, placement, &mut found);
        if done + bytes == section.bytes {
            break;
        }
        done += bytes - OVERLAP as u64;
    }
    Ok(())
}

fn scan(code: &[u8], start: u64, placement: Placement, found: &mut impl FnMut(u64, u64)) {
    for (at, part) in code.windows(3).enumerate() {
        // `lea distance(%rip), %register` in its 64-bit form.
        if part[1] == 0x8d && part[0] & 0xfb == 0x48 && part[2] & 0xc7 == 0x05 {
            let Some(distance) = u32_at(code, at + 3) else {
                return;
            };
            let from = start.wrapping_add(at as u64);
            let distance = i64::from(distance.cast_signed());
            found(from, from.wrapping_add(7).wrapping_add_signed(distance));
        }
        // `mov $address, %register`, where addresses are known when linking.
        if placement == Placement::Fixed && part[0] & 0xf8 == 0xb8 {
            let Some(address) = u32_at(code, at + 1) else {
                return;
            };
            found(start.wrapping_add(at as u64), u64::from(address));
        }
    }
}

/// Finds paths by their addresses, mostly by saying at once that there is none.
struct PathIndex<'a> {
    paths: &'a Paths,
    first: u64,
    starts: Bits,
}

/// Distance between the first and the last path up to which a bit is kept for each address.
const SPAN_LIMIT: u64 = 128 << 20;

impl<'a> PathIndex<'a> {
    fn new(paths: &'a Paths) -> Self {
        let first = paths.all.first().map_or(0, |path| path.address);
        let last = paths.all.last().map_or(0, |path| path.address);
        let span = last.saturating_sub(first).saturating_add(1).min(SPAN_LIMIT);
        let mut starts = Bits::new(usize::try_from(span).unwrap_or(0));
        for path in &paths.all {
            if let Ok(place) = usize::try_from(path.address.wrapping_sub(first)) {
                starts.set(place);
            }
        }
        Self {
            paths,
            first,
            starts,
        }
    }

    fn find(&self, address: u64) -> Option<u32> {
        let place = usize::try_from(address.checked_sub(self.first)?).ok()?;
        if !self.starts.get(place) {
            return None;
        }
        let found = self
            .paths
            .all
            .binary_search_by_key(&address, |path| path.address);
        u32::try_from(found.ok()?).ok()
    }
}
