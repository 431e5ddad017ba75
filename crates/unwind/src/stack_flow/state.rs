//! Where the caller's frame is, before an instruction.

use profiler_common::unwind::rule::{Rule, cfa, fp};

/// Bytes of a word on the stack.
const WORD: i32 = 8;
/// The CFA is above the return address.
const ENTRY: i32 = -WORD;
/// Frames larger than this are not believed.
const LARGEST_FRAME: i32 = 1 << 24;

/// What an instruction does to the stack pointer and the frame pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    None,
    /// The stack pointer moves by this much.
    Move(i32),
    /// `rsp = rbp + offset`.
    StackFromFrame(i32),
    LoseStack,
    Push,
    Pop,
    /// `[rsp + offset] = rbp`.
    Save(i32),
    /// `rbp = [rsp + offset]`.
    Load(i32),
    /// `rbp = rsp + offset`.
    FrameFromStack(i32),
    LoseFrame,
    Leave,
}

/// What `rbp` holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FramePointer {
    /// What the caller had in it.
    Callers,
    /// The CFA plus an offset.
    At(i32),
    Other,
}

/// All offsets are from the CFA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameState {
    stack: Option<i32>,
    frame: FramePointer,
    /// Where the caller's `rbp` was stored.
    saved: Option<i32>,
}

impl FrameState {
    pub(super) fn at_entry() -> Self {
        Self {
            stack: Some(ENTRY),
            frame: FramePointer::Callers,
            saved: None,
        }
    }

    /// Whether a function could begin or end here.
    pub(super) fn is_at_entry(self) -> bool {
        self.stack == Some(ENTRY) && self.frame == FramePointer::Callers
    }

    pub(super) fn after(self, effect: Effect) -> Self {
        let plus = |offset: i32| self.stack.and_then(|stack| stack.checked_add(offset));
        let mut next = self;
        match effect {
            Effect::None => {}
            Effect::Move(bytes) => next.stack = plus(bytes),
            Effect::StackFromFrame(offset) => next.stack = self.frame_plus(offset),
            Effect::LoseStack => next.stack = None,
            Effect::Push => {
                next.stack = plus(-WORD);
                next.save(next.stack);
            }
            Effect::Pop => {
                next.load(self.stack);
                next.stack = plus(WORD);
            }
            Effect::Save(offset) => next.save(plus(offset)),
            Effect::Load(offset) => next.load(plus(offset)),
            Effect::FrameFromStack(offset) => {
                let place = plus(offset).and_then(believed);
                next.frame = place.map_or(FramePointer::Other, FramePointer::At);
            }
            Effect::LoseFrame => next.frame = FramePointer::Other,
            Effect::Leave => {
                next.stack = self.frame_plus(0);
                next.load(next.stack);
                next.stack = self.frame_plus(WORD);
            }
        }
        next.stack = next.stack.and_then(believed);
        // What lies below the stack pointer may be overwritten.
        if let (Some(stack), Some(saved)) = (next.stack, next.saved)
            && saved < stack
        {
            next.saved = None;
        }
        next
    }

    /// What holds whichever of two ways was taken; none when they cannot belong together.
    pub(super) fn merged(self, other: Self) -> Option<Self> {
        if self.stack != other.stack {
            return None;
        }
        let frame = if self.frame == other.frame {
            self.frame
        } else {
            FramePointer::Other
        };
        let saved = self.saved.filter(|saved| other.saved == Some(*saved));
        Some(Self {
            stack: self.stack,
            frame,
            saved,
        })
    }

    /// None where the caller's registers are not known.
    pub(super) fn rule(self) -> Option<Rule> {
        let (cfa_kind, cfa_offset) = match (self.stack, self.frame) {
            (Some(stack), _) if stack <= ENTRY => (cfa::SP, -stack),
            (None, FramePointer::At(offset)) => (cfa::FP, -offset),
            _ => return None,
        };
        let (fp_kind, fp_offset) = match (self.frame, self.saved) {
            (FramePointer::Callers, _) => (fp::SAME, 0),
            (_, Some(saved)) => (fp::AT_CFA, saved),
            (_, None) => return None,
        };
        Some(Rule {
            cfa_kind,
            cfa_offset,
            ra_offset: -8,
            fp_kind,
            fp_offset,
            ..Rule::default()
        })
    }

    fn frame_plus(self, offset: i32) -> Option<i32> {
        match self.frame {
            FramePointer::At(frame) => frame.checked_add(offset),
            FramePointer::Callers | FramePointer::Other => None,
        }
    }

    fn save(&mut self, place: Option<i32>) {
        if self.frame == FramePointer::Callers {
            self.saved = place.filter(|place| *place < ENTRY);
        } else if self.saved.is_some() && self.saved == place {
            self.saved = None;
        }
    }

    fn load(&mut self, place: Option<i32>) {
        self.frame = if place.is_some() && self.saved == place {
            FramePointer::Callers
        } else {
            FramePointer::Other
        };
    }
}

fn believed(offset: i32) -> Option<i32> {
    let is_believable = (-LARGEST_FRAME..=LARGEST_FRAME).contains(&offset);
    is_believable.then_some(offset)
}
