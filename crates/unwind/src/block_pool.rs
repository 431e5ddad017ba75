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

/// No program in the kernel runs that long.
pub(crate) const REST: Duration = Duration::from_secs(1);

/// Rules of the blocks that all pages with one such row share. They are never given away: without
/// them, the pages of a program that describes next to nothing would fill the pool.
pub(crate) const SHARED: [u16; 2] = [rules::NO_UNWIND_INFO, rules::FRAME_POINTERS];

/// Blocks by index. The native unwinder reads the same blocks that the kernel has.
#[derive(Debug)]
pub(crate) struct BlockPool {
    blocks: Vec<RowBlock>,
    capacity: usize,
    free: Vec<u16>,
    resting: VecDeque<(Instant, u16)>,
}

impl BlockPool {
    /// A pool of at most `capacity` blocks, the shared ones included.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            blocks: SHARED.map(shared_block).to_vec(),
            capacity: capacity.clamp(SHARED.len(), usize::from(u16::MAX)),
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
            self.blocks.push(shared_block(rules::NO_UNWIND_INFO));
        }
        Some(self.free.split_off(self.free.len() - count))
    }

    /// Gives blocks back, whose page's entry is being removed.
    pub(crate) fn give_back(&mut self, blocks: &[u16], now: Instant) {
        for index in blocks {
            if !is_shared(*index) {
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

/// The shared block for pages whose one row has this rule.
pub(crate) fn shared_index(rule: u16) -> Option<u16> {
    let nth = SHARED.iter().position(|shared| *shared == rule)?;
    u16::try_from(nth).ok()
}

pub(crate) fn is_shared(block: u16) -> bool {
    usize::from(block) < SHARED.len()
}

fn shared_block(rule: u16) -> RowBlock {
    RowBlock {
        rows: [row(0, rule); BLOCK_ROWS],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_rest_before_they_are_taken_again() {
        let mut pool = BlockPool::new(5);
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
    fn shared_blocks_are_never_taken() {
        let mut pool = BlockPool::new(4);
        let now = Instant::now();
        let taken = pool.take(2, now).unwrap();
        assert!(taken.iter().all(|index| !is_shared(*index)));
        pool.give_back(&[0, 1], now);
        assert_eq!(pool.take(1, now + REST), None);
    }
}
