//! How large a picture may become while it is made.
//!
//! A profile names each function once, a picture once for each stack that it is in, and a program can see to it that
//! its stacks are deep, full of inlined functions and all different. So what a picture takes is counted before it is
//! taken, the heaviest stacks first; what has no room is shown as `(other)`.

use std::{cmp::Reverse, collections::HashMap};

use profiler_model::{Frame, FrameId, ProcessId, Profile, StackId};

use super::{Value, names::process_of};

/// Names of one stack that are shown; `(other)` stands for those nearer to the leaf.
pub(super) const MAX_NAMES: usize = 4096;
/// What stands for all that has no room.
pub(super) const OTHER: &str = "(other)";

/// Where the agent's memory has no ceiling.
const LARGEST_BYTES: u64 = 512 << 20;
/// Part of the free memory, as a divisor: two pictures may be made at once, and each profile is in memory as well.
const SHARE: u64 = 4;
/// A node of a tree while it is built, ordered and written.
const NODE_BYTES: u64 = 160;

/// Memory for one picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    bytes: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self::of_room(None)
    }
}

impl Budget {
    /// What there is for one picture with so much memory free; `None` where nothing bounds it.
    pub fn of_room(room_bytes: Option<u64>) -> Self {
        let share = room_bytes.map(|room| room / SHARE);
        Self {
            bytes: share.map_or(LARGEST_BYTES, |share| share.min(LARGEST_BYTES)),
        }
    }

    /// For one of `parts` that are made one after the other and kept.
    pub(super) fn part(self, parts: u64) -> Self {
        Self {
            bytes: self.bytes / parts.max(1),
        }
    }

    /// Nodes of a tree.
    pub(super) fn nodes(self) -> usize {
        usize::try_from(self.bytes / NODE_BYTES).unwrap_or(usize::MAX)
    }

    /// Takes a part of it; false, and nothing taken, where it has no room.
    pub(super) fn take(&mut self, bytes: u64) -> bool {
        let left = self.bytes.checked_sub(bytes);
        self.bytes = left.unwrap_or(self.bytes);
        left.is_some()
    }
}

/// The stacks of each process with their sums, in the order of these: what has no room is what matters least.
pub(super) fn heaviest_first(profile: &Profile, value: Value) -> Vec<((ProcessId, StackId), u64)> {
    let mut sums: HashMap<(ProcessId, StackId), u64> = HashMap::new();
    for row in profile.samples.iter().filter(|row| value.of(row) > 0) {
        let sum = sums
            .entry((process_of(profile, row.thread), row.stack))
            .or_default();
        *sum = sum.saturating_add(value.of(row));
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_unstable_by_key(|(key, sum)| (Reverse(*sum), *key));
    sums
}

/// How many names each frame has.
pub(super) fn name_counts(profile: &Profile) -> Vec<usize> {
    let count = |frame: &Frame| frame.functions.len().max(1);
    profile.frames.iter().map(count).collect()
}

/// What is shown of a stack's frames, which are given from the leaf on: the root's side, up to [`MAX_NAMES`].
pub(super) fn shown_frames<'a>(ids: &'a [FrameId], names: &[usize]) -> &'a [FrameId] {
    let mut sum = 0;
    let from_root = ids.iter().rev().take_while(|id| {
        sum += names[**id as usize];
        sum <= MAX_NAMES
    });
    &ids[ids.len() - from_root.count()..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_a_part_of_what_is_free() {
        assert_eq!(Budget::default().bytes, LARGEST_BYTES);
        assert_eq!(Budget::of_room(Some(400)).bytes, 100);
        assert_eq!(Budget::of_room(Some(u64::MAX)).bytes, LARGEST_BYTES);
        assert_eq!(Budget::of_room(Some(4 * 1600)).nodes(), 10);
        let mut small = Budget::of_room(Some(400)).part(2);
        assert!(small.take(30) && !small.take(21) && small.take(20) && !small.take(1));
    }
}
