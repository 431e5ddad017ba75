//! Waits: time that a thread was off the CPU, counted like samples but with its exact length.

use crate::limits::COMM_BYTES;

/// [`crate::on_cpu::CountKey::wait`] of a sample that is not a wait.
pub const WAIT_NONE: u32 = 0;
/// The thread could have gone on: it was preempted, or gave up the CPU by itself.
pub const WAIT_PREEMPTED: u32 = 1;
/// It slept and signals could have woken it.
pub const WAIT_INTERRUPTIBLE: u32 = 2;
/// It slept and only the event that it waited for could have woken it.
pub const WAIT_UNINTERRUPTIBLE: u32 = 3;
/// The same for a device, as the kernel's own accounting sees it (`in_iowait`).
pub const WAIT_IO: u32 = 4;
/// A signal or a debugger stopped it.
pub const WAIT_STOPPED: u32 = 5;

/// [`Wait::how`]: the wait is sampled and not counted.
pub const HOW_SAMPLED: u32 = 1;
/// Its user stack was taken.
pub const HOW_TAKEN: u32 = 2;

/// The element of the map of modes: 0 counts every wait, 1 samples.
pub const MODE_EVERY: u32 = 0;
pub const MODE_SAMPLED: u32 = 1;

/// Where `sched_switch` has its arguments; resolved from the kernel's BTF.
/// Not known: waits cannot be measured.
pub const SWITCH_UNKNOWN: u32 = 0;
/// `(preempt, prev, next)`, before 5.18.
pub const SWITCH_WITHOUT_STATE: u32 = 1;
/// `(preempt, prev, next, prev_state)`, since 5.19; 5.18 had another order, which is not supported.
pub const SWITCH_STATE_LAST: u32 = 2;

/// A thread in the table of waits, by its number in the initial PID namespace.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// When it left the CPU; 0 while it runs.
    pub began_ns: u64,
    /// When it was woken; 0 before.
    pub woken_ns: u64,
    /// As in [`crate::on_cpu::CountKey`]. The kernel's is taken when the wait ends, or when the
    /// collection does: until then it is 0.
    pub kernel_stack: u64,
    pub user_stack: u64,
    /// In the agent's PID namespace.
    pub pid: u32,
    pub tid: u32,
    pub generation: u32,
    /// `WAIT_*`.
    pub wait: u32,
    /// The CPU that it left.
    pub cpu: u32,
    /// How often the agent had let the kernel forget what it sent when the thread was announced.
    pub rotation: u32,
    /// Its name then.
    pub comm: [u8; COMM_BYTES],
    /// `task->cgroups` when it was found to be wanted.
    pub cgroups: u64,
    /// `HOW_*` of the wait.
    pub how: u32,
    /// In the sampling mode: distance between the last sample of waits and the next, and what is
    /// left of it.
    pub gap: u32,
    pub left: u32,
    pub padding: u32,
    /// The same for samples of time, in nanoseconds; 0 before the first.
    pub gap_ns: u64,
    pub left_ns: u64,
    /// Longest of the recent waits, decaying.
    pub longest_ns: u64,
    /// Of the wait that is over: from when it waited for a CPU, what this time stands for (0: it did not wait), and the
    /// moment at which it came back, as one number.
    pub ready_ns: u64,
    pub runnable_ns: u64,
    pub place: u64,
}

/// Value of a counter of waits. The key is a [`crate::on_cpu::CountKey`] with the CPU and the bucket
/// in which the waits ended.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitValue {
    pub count: u64,
    /// From leaving the CPU until the wake-up; 0 for [`WAIT_PREEMPTED`].
    pub blocked_ns: u64,
    /// From then on until the thread was on a CPU again.
    pub runnable_ns: u64,
}

const _: () = assert!(size_of::<Wait>() == 144);
const _: () = assert!(size_of::<WaitValue>() == 24);
