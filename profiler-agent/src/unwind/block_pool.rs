//! The blocks of rows: which are free, and which must rest before they may be written again.
//!
//! A program in the kernel that found a page's entry just before it was removed may read the
//! page's blocks a little longer. They are given to another page only when that is over.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use profiler_common::unwind::table::{BLOCK_ROWS, RowBlock, row};

use super::rules;

/// No program in the kernel runs so long.
pub(crate) const REST: Duration = Duration::from_secs(1);

/// The block of pages without descriptions; it is never given away.
pub(crate) const EMPTY_BLOCK: u16 = 0;

/// Blocks by index. The native unwinder reads the same blocks that the kernel has.
#[derive(Debug)]
pub(crate) struct BlockPool {
    blocks: Vec<RowBlock>,
    capacity: usize,
    free: Vec<u16>,
    resting: VecDeque<(Instant, u16)>,
}

impl BlockPool {
    /// A pool of at most `capacity` blocks, the one for empty pages included.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            blocks: vec![RowBlock {
                rows: [row(0, rules::NO_UNWIND_INFO); BLOCK_ROWS],
            }],
            capacity: capacity.clamp(1, usize::from(u16::MAX)),
            free: Vec::new(),
            resting: VecDeque::new(),
        }
    }

    pub(crate) fn get(&self, index: u32) -> Option<&RowBlock> {
        self.blocks.get(usize::try_from(index).ok()?)
    }

    pub(crate) fn set(&mut self, index: u16, block: &RowBlock) {
        if let Some(place) = self.blocks.get_mut(usize::from(index)) {
            *place = *block;
        }
    }

    /// Takes blocks; none when there are not enough.
    pub(crate) fn take(&mut self, count: usize, now: Instant) -> Option<Vec<u16>> {
        while let Some((since, index)) = self.resting.front().copied() {
            if now.saturating_duration_since(since) < REST {
                break;
            }
            self.resting.pop_front();
            self.free.push(index);
        }
        if self.available() < count {
            return None;
        }
        while self.free.len() < count {
            self.free.push(u16::try_from(self.blocks.len()).ok()?);
            self.blocks.push(self.blocks[usize::from(EMPTY_BLOCK)]);
        }
        Some(self.free.split_off(self.free.len() - count))
    }

    /// Gives blocks back, whose page's entry is being removed.
    pub(crate) fn give_back(&mut self, blocks: &[u16], now: Instant) {
        for index in blocks {
            if *index != EMPTY_BLOCK {
                self.resting.push_back((now, *index));
            }
        }
    }

    /// Blocks that can be taken at once.
    fn available(&self) -> usize {
        self.free.len() + self.capacity - self.blocks.len()
    }

    /// Blocks that can be taken at once or when they have rested.
    pub(crate) fn soon_available(&self) -> usize {
        self.available() + self.resting.len()
    }

    /// Blocks that hold rows of pages.
    pub(crate) fn used(&self) -> usize {
        self.blocks.len() - self.free.len() - self.resting.len()
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_rest_before_they_are_taken_again() {
        let mut pool = BlockPool::new(4);
        let start = Instant::now();
        let taken = pool.take(3, start).unwrap();
        assert_eq!(pool.take(1, start), None);
        pool.give_back(&taken[..2], start);
        assert_eq!(pool.soon_available(), 2);
        assert_eq!(pool.take(1, start + REST / 2), None);
        assert_eq!(pool.take(2, start + REST).unwrap().len(), 2);
        assert_eq!(pool.take(1, start + REST), None);
    }

    #[test]
    fn the_block_of_empty_pages_is_never_taken() {
        let mut pool = BlockPool::new(3);
        let now = Instant::now();
        assert!(!pool.take(2, now).unwrap().contains(&EMPTY_BLOCK));
        pool.give_back(&[EMPTY_BLOCK], now);
        assert_eq!(pool.take(1, now + REST), None);
    }
}
