//! What each stack of a profile waits for.

use crate::model::{FrameSpace, Profile, SampleRow, ThreadState, WaitReason};

/// Reasons by the number of the stack.
pub(super) struct WaitReasons {
    of_stack: Vec<WaitReason>,
}

impl WaitReasons {
    pub(super) fn of(profile: &Profile) -> Self {
        let of_stack = profile
            .stacks
            .iter()
            .map(|stack| {
                let frames = stack.frames.iter().map(|id| &profile.frames[*id as usize]);
                let names = frames
                    .filter(|frame| frame.space == FrameSpace::Kernel)
                    .flat_map(|frame| &frame.functions)
                    .map(|function| profile.text(function.name));
                WaitReason::of(names)
            })
            .collect();
        Self { of_stack }
    }

    pub(super) fn of_row(&self, row: &SampleRow) -> WaitReason {
        if row.state == ThreadState::Preempted {
            return WaitReason::Preempted;
        }
        self.of_stack
            .get(row.stack as usize)
            .copied()
            .unwrap_or(WaitReason::Other)
    }
}
