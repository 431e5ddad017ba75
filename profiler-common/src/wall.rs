//! Time on the CPU, measured from switch to switch and shared out over the samples inside.

/// [`crate::on_cpu::CountKey::wait`] of time on the CPU without a sample; samples have
/// [`crate::off_cpu::WAIT_NONE`].
pub const NOT_SAMPLED: u32 = 0x100;

/// What runs on a CPU: one for each, written by that CPU alone.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// Until when the time of the thread is counted; 0 before the first event on this CPU.
    pub counted_ns: u64,
    /// Of the last sample, as in [`crate::on_cpu::CountKey`].
    pub kernel_stack: u64,
    pub user_stack: u64,
    /// The thread's number in the initial PID namespace; 0: the idle task.
    pub global_tid: u32,
    /// In the agent's PID namespace.
    pub pid: u32,
    pub tid: u32,
    /// Of the last sample, or of the thread's program when the slice began.
    pub generation: u32,
    /// 1: the thread is a target.
    pub wanted: u32,
    /// [`NOT_SAMPLED`], or [`crate::off_cpu::WAIT_NONE`] when there was a sample.
    pub kind: u32,
    /// 1 while the switch changes the rest: a sample taken now leaves it alone.
    pub busy: u32,
    pub padding: u32,
}

/// Value of a counter of time on the CPU; the key is a [`crate::on_cpu::CountKey`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SliceValue {
    /// Samples, or slices without one.
    pub count: u64,
    pub ns: u64,
}

const _: () = assert!(size_of::<Slice>() == 56);
const _: () = assert!(size_of::<SliceValue>() == 16);
