//! Sizes and bounds that the kernel side and the agent must agree on.

/// Frames copied of a kernel stack. `bpf_get_stack` never returns more than the sysctl
/// `kernel.perf_event_max_stack`, 127 by default.
pub const MAX_KERNEL_FRAMES: usize = 127;

/// Frames copied of a user stack that the kernel walks by frame pointers; same bound.
pub const MAX_FRAME_POINTER_FRAMES: usize = 127;

/// Frames at the leaf that are kept of a stack that is too deep to be kept whole.
pub const LEAF_FRAMES: usize = 384;

/// Frames at the root that are kept of such a stack.
pub const ROOT_FRAMES: usize = 128;

/// Frames a [`crate::stack::StackRecord`] has room for.
pub const MAX_RECORD_FRAMES: usize = LEAF_FRAMES + ROOT_FRAMES;

/// Frames of a user stack that are walked at most, whether they are kept or not.
pub const MAX_STEPS: u32 = 4096;

/// The same while the lock of a run queue is held: a frame takes some 0.1 us, and other CPUs may wait
/// for the lock. Stacks of programs that are not lost in a recursion have far fewer.
pub const MAX_STEPS_UNDER_LOCK: u32 = 1024;

/// Walks that each CPU remembers with the words that they read (a power of two).
pub const KNOWN_WALKS: u32 = 128;

/// Words that a walk may read to be remembered (a power of two); a frame takes two.
pub const KNOWN_READS: usize = 128;

/// Bytes above the stack pointer in which these words lie.
pub const KNOWN_SPAN_BYTES: u64 = 4096;

/// Counters of changes of mappings, by the low bits of a pid (a power of two): when one process starts, the walks of the others
/// stay remembered.
pub const MAPPING_CHANGE_ENTRIES: u32 = 1024;

/// Bytes of a kernel stack that are read at once (a power of two): most waits have no more frames. Behind them lies a gap of random
/// length (`CONFIG_RANDOMIZE_KSTACK_OFFSET`); words beyond it are read one by one.
pub const KERNEL_WALK_BYTES: usize = 512;

/// Rules of kernel code that each CPU remembers (a power of two), 16 bytes each.
pub const KERNEL_RULES: usize = 512;

/// Frames of a kernel stack that are walked by the agent's programs, the scheduler's own included.
pub const KERNEL_WALK_STEPS: u32 = 128;

/// Bytes of stack that a capture holds at most, in pieces of [`CAPTURE_PIECE_BYTES`].
pub const CAPTURE_STACK_BYTES: usize = 17 * CAPTURE_PIECE_BYTES;

/// Pieces are aligned, so that none is partly readable.
pub const CAPTURE_PIECE_BYTES: usize = 1024;

/// Bytes of the ring buffer for captures (a power of two and a multiple of the page size).
pub const CAPTURE_BUFFER_BYTES: u32 = 4 << 20;

/// Captures of one process for addresses in no mapping, until its mappings are read again.
pub const MAX_CAPTURES_PER_READING: u32 = 64;

/// Processes whose mappings the kernel knows, in a task for some processes.
pub const PROCESS_SLOTS: u32 = 256;

/// The same in a task for cgroups or the whole node.
pub const MANY_PROCESS_SLOTS: u32 = 1024;

/// Pages of unwind tables that the kernel knows.
pub const TABLE_PAGES: u32 = 2048;

/// Blocks of unwind rows that the kernel holds, 1 KiB each.
pub const TABLE_BLOCKS: u32 = 2048;

/// Unwind rules that the kernel holds.
pub const TABLE_RULES: u32 = 8192;

/// Programs that may interrupt each other on one CPU have scratch memory of their own.
pub const PROGRAM_CLASSES: u32 = 3;

/// Programs of perf events; they do not interrupt each other.
pub const CLASS_PERF_EVENT: u32 = 0;

/// Programs of the scheduler's tracepoints; interrupts are off while they run.
pub const CLASS_SCHEDULER: u32 = 1;

/// The program that visits sleeping threads; the scheduler's may interrupt it.
pub const CLASS_ITERATOR: u32 = 2;

/// Classes of programs that walk user stacks with tables.
pub const WALK_CLASSES: u32 = CLASS_SCHEDULER + 1;

/// Size of a task's kernel stack (`THREAD_SIZE` of kernels without KASAN).
pub const KERNEL_STACK_BYTES: u64 = 16 << 10;

/// Depth of PID namespaces that the kernel allows (`MAX_PID_NS_LEVEL`).
pub const MAX_PID_NAMESPACE_LEVELS: u32 = 32;

/// Cgroups whose verdict is remembered, by a hash (a power of two): more than a node with 500 pods has.
pub const CGROUP_VERDICTS: u32 = 4096;

/// Ancestors of a cgroup that the filter climbs before it gives up.
pub const MAX_CGROUP_DEPTH: u32 = 32;

/// Bytes of a thread name, with its terminating zero (`TASK_COMM_LEN`).
pub const COMM_BYTES: usize = 16;

/// Entries of the kernel's table of stacks that were already sent.
pub const STACK_TABLE_ENTRIES: u32 = 65_536;

/// Entries of the kernel's table of threads that were already announced.
pub const THREAD_TABLE_ENTRIES: u32 = 65_536;

/// Entries of the kernel's table of threads and their waits.
pub const WAIT_TABLE_ENTRIES: u32 = 65_536;

/// Entries of the kernel's table of threads with event loops, some 1.2 KB each.
pub const LOOP_TABLE_ENTRIES: u32 = 16_384;

/// In the sampling mode each thread's off-CPU time is sampled once in this many nanoseconds, on average.
pub const SAMPLED_PERIOD_NS: u64 = 10_000_000;

/// And its waits once in this many.
pub const SAMPLED_WAITS: u32 = 128;

/// Marks that spare a lookup for most tasks, by the low bits of their number (a power of two).
pub const MARKS: u32 = 16_384;

/// Entries of each counting table of waits, distinct ones of an epoch, on a machine of up to 16 CPUs; the agent
/// enlarges them on larger ones.
pub const WAIT_COUNT_ENTRIES: u32 = 32_768;

/// The same of time on the CPU in a task that measures it exactly.
pub const SLICE_COUNT_ENTRIES: u32 = 32_768;

/// Runs of each CPU that are kept (a power of two): how far back it is known who had it.
pub const RUNS_OF_CPU: usize = 32;

/// Entries of each table of who had the CPU, on a machine of up to four CPUs.
pub const CONTENTION_ENTRIES: u32 = 8192;

/// Entries of the pid filter.
pub const FILTER_PID_ENTRIES: u32 = 16_384;

/// Cgroups that one task can be limited to.
pub const FILTER_CGROUP_ENTRIES: u32 = 1024;

/// Bytes of the ring buffer for records (a power of two and a multiple of the page size) on a machine of up to 16 CPUs.
pub const RING_BUFFER_BYTES: u32 = 1 << 20;

/// Default and lower bound of the counting tables; the agent enlarges them to CPUs x rate.
pub const COUNT_TABLE_ENTRIES: u32 = 4096;

const _: () = assert!(MAX_KERNEL_FRAMES < MAX_RECORD_FRAMES);
const _: () = assert!(MAX_FRAME_POINTER_FRAMES < MAX_RECORD_FRAMES);
const _: () = assert!(ROOT_FRAMES.is_power_of_two() && LEAF_FRAMES.is_multiple_of(ROOT_FRAMES));
const _: () = assert!(MARKS.is_power_of_two() && KNOWN_WALKS.is_power_of_two());
const _: () = assert!(MAPPING_CHANGE_ENTRIES.is_power_of_two() && KERNEL_RULES.is_power_of_two());
const _: () =
    assert!(KERNEL_WALK_BYTES.is_power_of_two() && (MAX_KERNEL_FRAMES + 1).is_power_of_two());
const _: () = assert!(RUNS_OF_CPU.is_power_of_two() && CGROUP_VERDICTS.is_power_of_two());
const _: () = assert!(KNOWN_READS.is_power_of_two());
const _: () = assert!(KNOWN_SPAN_BYTES <= 8 * MAX_RECORD_FRAMES as u64);
const _: () = assert!(CAPTURE_BUFFER_BYTES.is_power_of_two());
const _: () = assert!(MAX_RECORD_FRAMES.is_power_of_two());
const _: () = assert!(RING_BUFFER_BYTES.is_power_of_two());
