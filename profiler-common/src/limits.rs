//! Sizes and bounds that the kernel side and the agent must agree on.

/// Frames copied of a kernel stack. `bpf_get_stack` never returns more than the sysctl
/// `kernel.perf_event_max_stack`, 127 by default.
pub const MAX_KERNEL_FRAMES: usize = 127;

/// Frames copied of a user stack; same bound.
pub const MAX_USER_FRAMES: usize = 127;

/// Frames a [`crate::stack::StackRecord`] has room for.
pub const MAX_RECORD_FRAMES: usize = 128;

/// Depth of PID namespaces that the kernel allows (`MAX_PID_NS_LEVEL`).
pub const MAX_PID_NAMESPACE_LEVELS: u32 = 32;

/// Ancestors of a cgroup that the filter climbs before it gives up.
pub const MAX_CGROUP_DEPTH: u32 = 32;

/// Bytes of a thread name, with its terminating zero (`TASK_COMM_LEN`).
pub const COMM_BYTES: usize = 16;

/// Entries of the kernel's table of stacks that were already sent.
pub const STACK_TABLE_ENTRIES: u32 = 65_536;

/// Entries of the kernel's table of threads that were already announced.
pub const THREAD_TABLE_ENTRIES: u32 = 65_536;

/// Entries of the pid filter.
pub const FILTER_PID_ENTRIES: u32 = 16_384;

/// Cgroups that one task can be limited to.
pub const FILTER_CGROUP_ENTRIES: u32 = 1024;

/// Bytes of the ring buffer for records (a power of two and a multiple of the page size).
pub const RING_BUFFER_BYTES: u32 = 1 << 20;

/// Default and lower bound of the counting tables; the agent enlarges them to CPUs x rate.
pub const COUNT_TABLE_ENTRIES: u32 = 4096;

const _: () = assert!(MAX_KERNEL_FRAMES < MAX_RECORD_FRAMES);
const _: () = assert!(MAX_USER_FRAMES < MAX_RECORD_FRAMES);
const _: () = assert!(MAX_RECORD_FRAMES.is_power_of_two());
const _: () = assert!(RING_BUFFER_BYTES.is_power_of_two());
