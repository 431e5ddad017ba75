//! What threads do, in the few kinds that are told apart at a glance.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{ThreadState, WaitReason};

/// Kinds that all time of a thread divides into.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    Running,
    WaitingForCpu,
    Lock,
    Disk,
    PageFault,
    Network,
    Asleep,
    Other,
    /// It has nothing to do, by the rules about idle waits; whatever it waits for.
    Idle,
}

/// Time of one kind in a result, and the parameters that select it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ActivitySum {
    pub activity: Activity,
    pub title: &'static str,
    /// Switches (on the CPU: samples).
    pub count: u64,
    pub total_ns: u64,
    /// With `idle=hide`; empty for what is idle, which `idle=only` selects.
    pub states: Vec<&'static str>,
    /// Empty: any.
    pub reasons: Vec<&'static str>,
}

/// Time of one kind of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ThreadActivity {
    pub activity: Activity,
    pub total_ns: u64,
}

/// Time of one kind of a thread, over time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ActivityTimes {
    pub activity: Activity,
    /// Microseconds in each bucket.
    pub times_us: Vec<u64>,
}

/// States of threads that are not ready to run.
const BLOCKED: [ThreadState; 4] = [
    ThreadState::Interruptible,
    ThreadState::Uninterruptible,
    ThreadState::Io,
    ThreadState::Stopped,
];

impl Activity {
    /// In the order in which they are shown.
    pub const ALL: [Self; 9] = [
        Self::Running,
        Self::WaitingForCpu,
        Self::Lock,
        Self::Disk,
        Self::PageFault,
        Self::Network,
        Self::Asleep,
        Self::Other,
        Self::Idle,
    ];

    pub fn title(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::WaitingForCpu => "waiting for a CPU",
            Self::Lock => "lock",
            Self::Disk => "disk",
            Self::PageFault => "page fault",
            Self::Network => "network",
            Self::Asleep => "asleep",
            Self::Other => "other waits",
            Self::Idle => "idle",
        }
    }

    pub fn sum(self, count: u64, total_ns: u64) -> ActivitySum {
        let reasons = self.reasons();
        ActivitySum {
            activity: self,
            title: self.title(),
            count,
            total_ns,
            states: self.states().iter().map(|state| state.name()).collect(),
            reasons: reasons.iter().map(|reason| reason.name()).collect(),
        }
    }

    /// Of time that is not idle.
    pub fn of(state: ThreadState, reason: WaitReason) -> Self {
        match state {
            ThreadState::OnCpu => Self::Running,
            ThreadState::Preempted | ThreadState::Woken => Self::WaitingForCpu,
            ThreadState::Interruptible
            | ThreadState::Uninterruptible
            | ThreadState::Io
            | ThreadState::Stopped => Self::of_reason(reason),
        }
    }

    fn of_reason(reason: WaitReason) -> Self {
        match reason {
            WaitReason::Preempted => Self::WaitingForCpu,
            WaitReason::Futex => Self::Lock,
            WaitReason::Fsync | WaitReason::FileRead | WaitReason::FileWrite => Self::Disk,
            WaitReason::PageFault => Self::PageFault,
            WaitReason::Poll
            | WaitReason::SocketRead
            | WaitReason::SocketWrite
            | WaitReason::Accept
            | WaitReason::Connect => Self::Network,
            WaitReason::Sleep => Self::Asleep,
            WaitReason::Pipe | WaitReason::Child | WaitReason::IoUring | WaitReason::Other => {
                Self::Other
            }
        }
    }

    /// The states that select it, together with [`Self::reasons`], where idle waits are left out; empty: it is what is idle.
    pub fn states(self) -> &'static [ThreadState] {
        match self {
            Self::Running => &[ThreadState::OnCpu],
            Self::WaitingForCpu => &[ThreadState::Preempted, ThreadState::Woken],
            Self::Idle => &[],
            Self::Lock
            | Self::Disk
            | Self::PageFault
            | Self::Network
            | Self::Asleep
            | Self::Other => &BLOCKED,
        }
    }

    /// Empty: any.
    pub fn reasons(self) -> Vec<WaitReason> {
        if matches!(self, Self::Running | Self::WaitingForCpu | Self::Idle) {
            return Vec::new();
        }
        let mut reasons = WaitReason::ALL.to_vec();
        reasons.retain(|reason| Self::of_reason(*reason) == self);
        reasons
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_and_reasons_select_just_what_is_of_a_kind() {
        for state in ThreadState::ALL {
            for reason in WaitReason::ALL {
                // Preempted is the reason of that state alone.
                if reason == WaitReason::Preempted {
                    continue;
                }
                let selecting: Vec<Activity> = Activity::ALL
                    .into_iter()
                    .filter(|activity| {
                        let reasons = activity.reasons();
                        activity.states().contains(&state)
                            && (reasons.is_empty() || reasons.contains(&reason))
                    })
                    .collect();
                assert_eq!(
                    selecting,
                    [Activity::of(state, reason)],
                    "{state:?} {reason:?}"
                );
            }
        }
    }
}
