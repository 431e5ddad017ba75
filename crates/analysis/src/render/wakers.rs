//! Off-wake stacks: on top of where a thread waited, who ended the wait.

use std::collections::HashMap;

use profiler_model::{Profile, Stack, StackId};

/// Beginning of the frame between the two.
pub(super) const WOKEN_BY: &str = "[woken by ";

/// The profile with the waker's frames above those of each wait whose waker is known, from its leaf
/// to its root.
pub(super) fn shown(profile: &Profile) -> Profile {
    let mut shown = profile.clone();
    let mut joined: HashMap<(StackId, StackId), StackId> = HashMap::new();
    for row in &mut shown.samples {
        let Some(waker) = row.waker.take() else {
            continue;
        };
        let stacks = &mut shown.stacks;
        let blocked = row.stack;
        row.stack = *joined.entry((blocked, waker)).or_insert_with(|| {
            let above = stacks[waker as usize].frames.iter().rev();
            let below = &stacks[blocked as usize].frames;
            let frames = above.chain(below).copied().collect();
            let id = u32::try_from(stacks.len()).unwrap_or(u32::MAX);
            stacks.push(Stack { frames });
            id
        });
    }
    shown
}
