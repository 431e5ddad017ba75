//! Indexes of the per-CPU counters. Every error path of the kernel side adds to one of them.

/// Ticks of the sampling clock, idle and unwanted ones included.
pub const TICKS: u32 = 0;
/// Samples that passed the filter.
pub const SAMPLES: u32 = 1;
/// The counting table was full (`-E2BIG`) or busy (`-EBUSY`).
pub const COUNT_TABLE_FULL: u32 = 2;
/// A record did not fit the ring buffer.
pub const RING_BUFFER_FULL: u32 = 3;
/// The table of known stacks was full.
pub const STACK_TABLE_FULL: u32 = 4;
/// `bpf_get_stack` failed for the user stack.
pub const USER_STACK_UNREADABLE: u32 = 5;
/// `bpf_get_stack` failed for the kernel stack.
pub const KERNEL_STACK_UNREADABLE: u32 = 6;
/// The user stack was cut by the kernel's walker.
pub const USER_STACK_TRUNCATED: u32 = 7;
/// The task has no number in the agent's PID namespace.
pub const PID_NOT_VISIBLE: u32 = 8;
/// A process event did not fit the ring buffer.
pub const PROCESS_EVENT_DROPPED: u32 = 9;
/// A new process did not fit the pid filter.
pub const FILTER_FULL: u32 = 10;
/// A kernel structure could not be read; the sample was dropped.
pub const KERNEL_READ_FAILED: u32 = 11;
/// The table of announced threads was full; the thread is announced again with its next sample.
pub const THREAD_TABLE_FULL: u32 = 12;
/// Frames of user stacks that were walked with tables.
pub const USER_FRAMES: u32 = 13;
/// Samples whose registers and stack were sent because a table was missing.
pub const CAPTURES: u32 = 14;
/// The same, but they did not fit the ring buffer: the stack stays incomplete.
pub const CAPTURE_DROPPED: u32 = 15;
/// A thread came back to a CPU without the tracepoint's notice.
pub const SWITCH_MISSED: u32 = 16;
/// The table of waits had no room for a thread.
pub const WAIT_TABLE_FULL: u32 = 17;
/// Waits that were shorter than the task wants, and their nanoseconds.
pub const WAITS_BELOW: u32 = 18;
pub const WAITS_BELOW_NS: u32 = 19;
/// Waits that were longer than the task wants, and their nanoseconds.
pub const WAITS_ABOVE: u32 = 20;
pub const WAITS_ABOVE_NS: u32 = 21;

/// Returns from epoll of threads that the table of event loops had no room for.
pub const LOOP_TABLE_FULL: u32 = 22;
/// A stall, or the end of a thread with an event loop, did not fit the ring buffer.
pub const LOOP_RECORD_DROPPED: u32 = 23;

/// The kernel stack was cut by the kernel's walker.
pub const KERNEL_STACK_TRUNCATED: u32 = 24;

/// Kernel stacks that a program walked and the kernel's walker again (`record --verify-unwinding`), and those that differ.
pub const KERNEL_STACKS_COMPARED: u32 = 25;
pub const KERNEL_STACKS_DIFFERENT: u32 = 26;

/// Number of counters.
pub const COUNTERS: u32 = 27;
