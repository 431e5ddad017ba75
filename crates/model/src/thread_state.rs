//! What a thread did in the time that a sample stands for.

use serde::{Deserialize, Serialize};

use super::Clock;

/// The parts of a wait are samples of their own: blocked until the wake-up, runnable from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ThreadState {
    OnCpu,
    /// Ready to go on, and no CPU was free: since it was preempted or gave up the CPU by itself.
    Preempted,
    /// The same, since it was woken.
    Woken,
    /// Asleep, also for signals.
    Interruptible,
    /// Asleep until what it waits for has happened.
    Uninterruptible,
    /// Asleep until a device has answered.
    Io,
    /// Stopped by a signal or a debugger.
    Stopped,
}

impl ThreadState {
    pub const ALL: [Self; 7] = [
        Self::OnCpu,
        Self::Preempted,
        Self::Woken,
        Self::Interruptible,
        Self::Uninterruptible,
        Self::Io,
        Self::Stopped,
    ];

    /// Name in exports.
    pub fn name(self) -> &'static str {
        match self {
            Self::OnCpu => "on_cpu",
            Self::Preempted => "preempted",
            Self::Woken => "woken",
            Self::Interruptible => "interruptible",
            Self::Uninterruptible => "uninterruptible",
            Self::Io => "io",
            Self::Stopped => "stopped",
        }
    }

    /// The frame on top of the stack that tells this time from other time at the same place: time
    /// asleep, and, in a profile that has both, time on the CPU.
    pub fn marker(self, clock: Clock) -> Option<&'static str> {
        match (self, clock) {
            (Self::Preempted, _) => Some("[runnable: preempted]"),
            (Self::Woken, _) => Some("[runnable: woken]"),
            (Self::Interruptible, Clock::Wall) => Some("[blocked]"),
            (Self::Uninterruptible, Clock::Wall) => Some("[blocked: uninterruptible]"),
            (Self::Io, Clock::Wall) => Some("[blocked: I/O]"),
            (Self::Stopped, Clock::Wall) => Some("[stopped]"),
            _ => None,
        }
    }
}
