//! The code of a page.

use std::fs::File;

use profiler_common::unwind::table::PAGE_BYTES;

use super::source::read_up_to;
use crate::symbolize::elf_layout::Segment;

/// Bytes behind the page that are read too, for what begins at its end.
const MARGIN: u64 = 64;

/// Bytes of code from an address on; 0 where the file has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageCode {
    pub(crate) start: u64,
    bytes: Vec<u8>,
}

impl PageCode {
    pub(crate) fn read(file: &File, segments: &[Segment], start: u64) -> Self {
        let length = PAGE_BYTES + MARGIN;
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        for segment in segments {
            let from = segment.address.max(start);
            let to =
                (segment.address.saturating_add(segment.bytes)).min(start.saturating_add(length));
            if from < to
                && let (Ok(low), Ok(high)) =
                    (usize::try_from(from - start), usize::try_from(to - start))
                && let Some(part) = bytes.get_mut(low..high)
            {
                read_up_to(
                    file,
                    segment.offset.saturating_add(from - segment.address),
                    part,
                );
            }
        }
        Self { start, bytes }
    }

    #[cfg(test)]
    pub(crate) fn of_bytes(start: u64, bytes: Vec<u8>) -> Self {
        Self { start, bytes }
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
            .checked_sub(self.start)
            .and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| self.bytes.get(at..)).unwrap_or_default()
    }
}
