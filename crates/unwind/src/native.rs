//! Unwinding here, with the kernel's own step and tables, for samples that came before their
//! tables.

use std::time::Instant;

use profiler_common::unwind::{
    frame,
    state::{Memory, State},
    step::{self, Arch, step},
};

use super::tables::TableCache;

/// Steps of one stack.
pub const MAX_STEPS: usize = 4096;
/// Frames that are kept next to the leaf.
pub const LEAF_FRAMES: usize = 384;
/// Frames that are kept next to the root when a stack has more.
pub const ROOT_FRAMES: usize = 128;

/// The stack of a process, as far as it was captured.
pub trait StackMemory {
    /// The 8 bytes at `address`.
    fn word(&self, address: u64) -> Option<u64>;
}

/// A copy of the stack's top.
#[derive(Clone, Copy, Debug)]
pub struct CapturedStack<'bytes> {
    /// The address of the first byte.
    pub start: u64,
    pub bytes: &'bytes [u8],
}

impl StackMemory for CapturedStack<'_> {
    fn word(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.start)?).ok()?;
        let bytes = self.bytes.get(at..at.checked_add(8)?)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }
}

/// An unwound stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeStack {
    /// From the leaf to the root, in the form of `profiler_common::unwind::frame`; without a mark
    /// at the end.
    pub frames: Vec<u64>,
    /// Frames left out behind the first [`LEAF_FRAMES`].
    pub elided: usize,
    /// Outcome of the last step: `step::COMPLETE`, or why the stack ends early.
    pub outcome: u32,
}

/// Unwinds from the registers in `state`, and loads the pages that this needs.
pub fn unwind_capture<A: Arch>(
    tables: &mut TableCache,
    mut state: State,
    stack: &impl StackMemory,
    now: Instant,
) -> NativeStack {
    let mut frames = Vec::new();
    let mut outcome = step::TOO_DEEP;
    for nth in 0..MAX_STEPS {
        let mark = if state.interrupted & 1 == 1 && nth > 0 {
            frame::INTERRUPTED
        } else {
            0
        };
        frames.push(state.pc | mark);
        outcome = one_step::<A>(tables, &mut state, stack, now);
        if outcome != step::CONTINUE {
            break;
        }
    }
    if outcome == step::CONTINUE {
        outcome = step::TOO_DEEP;
    }
    let elided = frames.len().saturating_sub(LEAF_FRAMES + ROOT_FRAMES);
    frames.drain(LEAF_FRAMES.min(frames.len())..(LEAF_FRAMES + elided).min(frames.len()));
    NativeStack {
        frames,
        elided,
        outcome,
    }
}

fn one_step<A: Arch>(
    tables: &mut TableCache,
    state: &mut State,
    stack: &impl StackMemory,
    now: Instant,
) -> u32 {
    // A step misses at most the one page of its address.
    for _ in 0..2 {
        let memory = WithCode {
            tables,
            slot: state.slot,
            stack,
        };
        let outcome = step::<A, _, _>(&memory, &*tables, state);
        if outcome != step::TABLE_MISSING {
            return outcome;
        }
        tables.load(state.missing, now);
    }
    step::TABLE_MISSING
}

/// The captured stack, and code from the process's files.
struct WithCode<'parts, Stack> {
    tables: &'parts TableCache,
    slot: u32,
    stack: &'parts Stack,
}

impl<Stack: StackMemory> Memory for WithCode<'_, Stack> {
    fn word(&self, address: u64) -> Option<u64> {
        self.stack.word(address)
    }

    fn byte(&self, address: u64) -> Option<u8> {
        self.tables.code_byte(self.slot, address)
    }
}

#[cfg(test)]
mod tests {
    use profiler_common::unwind::x86_64::X86_64;

    use super::*;
    use crate::{CodeMapping, Content, ProcessCode, TableSizes};

    /// Memory that the process made itself, and a chain of frame pointers through it.
    fn chain(frames: u64) -> (TableCache, Vec<u8>) {
        let mut tables = TableCache::new(TableSizes {
            blocks: 64,
            pages: 64,
        });
        let code = ProcessCode {
            mappings: vec![CodeMapping {
                start: 0x1000,
                end: 0x1_0000_0000,
                offset: 0,
                content: Content::Anonymous,
            }],
            files: Vec::new(),
        };
        tables.set_process(0, code, Instant::now());
        let mut stack = Vec::new();
        for nth in 1..=frames {
            let next = if nth == frames { 0 } else { STACK + 16 * nth };
            stack.extend_from_slice(&next.to_le_bytes());
            stack.extend_from_slice(&(0x2000 + nth).to_le_bytes());
        }
        (tables, stack)
    }

    const STACK: u64 = 0x7000_0000;

    fn unwind(frames: u64) -> NativeStack {
        let (mut tables, bytes) = chain(frames);
        let stack = CapturedStack {
            start: STACK,
            bytes: &bytes,
        };
        let state = State {
            pc: 0x2000,
            sp: STACK,
            fp: STACK,
            ..State::default()
        };
        unwind_capture::<X86_64>(&mut tables, state, &stack, Instant::now())
    }

    #[test]
    fn all_frames_of_an_ordinary_stack_are_kept() {
        let unwound = unwind(100);
        assert_eq!(unwound.outcome, step::COMPLETE);
        assert_eq!(unwound.frames, (0x2000..=0x2064).collect::<Vec<u64>>());
        assert_eq!(unwound.elided, 0);
    }

    #[test]
    fn a_deep_stack_keeps_leaf_and_root() {
        let unwound = unwind(2000);
        assert_eq!(unwound.outcome, step::COMPLETE);
        assert_eq!(unwound.frames.len(), LEAF_FRAMES + ROOT_FRAMES);
        assert_eq!(unwound.elided, 2001 - LEAF_FRAMES - ROOT_FRAMES);
        assert_eq!(
            unwound.frames[LEAF_FRAMES - 1],
            0x2000 + LEAF_FRAMES as u64 - 1
        );
        assert_eq!(unwound.frames.last(), Some(&(0x2000 + 2000)));
    }

    #[test]
    fn an_endless_stack_ends() {
        assert_eq!(unwind(5000).outcome, step::TOO_DEEP);
    }
}
