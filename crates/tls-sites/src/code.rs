//! Bytes of a file's code by their linked addresses.

use std::{fs::File, os::unix::fs::FileExt as _};

use profiler_image::{
    elf_layout::{Layout, Segment},
    fde_table::FdeTable,
};

/// Most of a function that is read.
const FUNCTION_LIMIT: u64 = 256 << 10;

/// The code of one open file.
#[derive(Debug)]
pub(super) struct Code<'file> {
    file: &'file File,
    segments: &'file [Segment],
    table: Option<FdeTable>,
}

/// Where a function begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Bounds {
    pub(super) start: u64,
    pub(super) end: u64,
}

impl<'file> Code<'file> {
    pub(super) fn of(file: &'file File, layout: &'file Layout) -> Self {
        Self {
            file,
            segments: &layout.segments,
            table: FdeTable::read(file, layout),
        }
    }

    /// Reads code at an address as far as the file has it.
    pub(super) fn read(&self, address: u64, buffer: &mut [u8]) -> usize {
        let Some(segment) = self.segment(address) else {
            return 0;
        };
        let inside = address - segment.address;
        let room = usize::try_from(segment.bytes - inside).unwrap_or(usize::MAX);
        let length = buffer.len().min(room);
        let Some(buffer) = buffer.get_mut(..length) else {
            return 0;
        };
        self.file
            .read_at(buffer, segment.offset.saturating_add(inside))
            .unwrap_or(0)
    }

    /// The function around an address, from the unwind table.
    pub(super) fn around(&self, address: u64) -> Option<Bounds> {
        let (start, end) = self.table.as_ref()?.around(address)?;
        Some(Bounds { start, end })
    }

    /// The bytes of a function, none when it is too long.
    pub(super) fn function(&self, bounds: Bounds) -> Option<Vec<u8>> {
        let length = bounds.end.checked_sub(bounds.start)?;
        if length > FUNCTION_LIMIT {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        let count = self.read(bounds.start, &mut bytes);
        (count == bytes.len()).then_some(bytes)
    }

    fn segment(&self, address: u64) -> Option<&Segment> {
        self.segments
            .iter()
            .find(|segment| segment.contains(address, 1))
    }
}
