//! The code of a page.

use std::fs::File;

use profiler_common::unwind::table::PAGE_BYTES;
use profiler_image::elf_layout::Segment;

use super::source::read_up_to;

/// Bytes behind the page that are read too, for what begins at its end.
const MARGIN: u64 = 64;
/// Bytes before the page that are read too, for the end of the instruction before.
const BEFORE: u64 = 1;

/// Bytes of code from an address on; 0 where the file has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageCode {
    /// The address of the page.
    pub(crate) start: u64,
    /// The address of the first byte.
    first: u64,
    bytes: Vec<u8>,
}

impl PageCode {
    pub(crate) fn read(file: &File, segments: &[Segment], start: u64) -> Self {
        let first = start.saturating_sub(BEFORE);
        let length = start - first + PAGE_BYTES + MARGIN;
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        for segment in segments {
            let from = segment.address.max(first);
            let to =
                (segment.address.saturating_add(segment.bytes)).min(first.saturating_add(length));
            if from < to
                && let (Ok(low), Ok(high)) =
                    (usize::try_from(from - first), usize::try_from(to - first))
                && let Some(part) = bytes.get_mut(low..high)
            {
                read_up_to(
                    file,
                    segment.offset.saturating_add(from - segment.address),
                    part,
                );
            }
        }
        Self {
            start,
            first,
            bytes,
        }
    }

    #[cfg(test)]
    pub(crate) fn of_bytes(start: u64, bytes: Vec<u8>) -> Self {
        Self {
            start,
            first: start,
            bytes,
        }
    }

    pub(crate) fn byte(&self, address: u64) -> u8 {
        self.from(address).first().copied().unwrap_or(0)
    }

    pub(crate) fn starts_with(&self, address: u64, expected: &[u8]) -> bool {
        self.from(address).starts_with(expected)
    }

    /// The code from an address on.
    pub(crate) fn from(&self, address: u64) -> &[u8] {
        let at = address
            .checked_sub(self.first)
            .and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| self.bytes.get(at..)).unwrap_or_default()
    }
}
