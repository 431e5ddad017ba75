//! Globals that the agent writes before load (`.rodata`), so that the verifier knows them.

use crate::limits::COMM_BYTES;

/// Every task of the node.
pub const FILTER_ALL: u32 = 0;
/// Processes in the `FILTER_PIDS` map.
pub const FILTER_PIDS: u32 = 1;
/// Tasks in a cgroup of the `FILTER_CGROUPS` map or below one.
pub const FILTER_CGROUPS: u32 = 2;

/// The cgroup is read from the unified (v2) hierarchy.
pub const HIERARCHY_V2: u32 = 0;
/// The cgroup is read from a v1 controller's hierarchy.
pub const HIERARCHY_V1: u32 = 1;

/// User stacks are walked by the kernel, by frame pointers.
pub const UNWIND_FRAME_POINTERS: u32 = 0;
/// User stacks are walked with the tables of [`crate::unwind`]; needs `bpf_loop` (kernel 5.17).
pub const UNWIND_TABLES: u32 = 1;

/// In [`KernelOffsets::orc_end_bit`].
pub const NO_ORC: u32 = u32::MAX;

/// Byte offsets of kernel struct members, resolved from the running kernel's BTF.
///
/// Rust emits no CO-RE relocations, so the agent looks every member up by name.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelOffsets {
    pub task_group_leader: u32,
    pub task_thread_pid: u32,
    pub task_start_boottime: u32,
    pub task_signal: u32,
    pub task_cgroups: u32,
    pub task_tgid: u32,
    pub task_pid: u32,
    pub signal_live: u32,
    pub pid_level: u32,
    pub pid_numbers: u32,
    pub upid_bytes: u32,
    pub upid_nr: u32,
    pub upid_ns: u32,
    /// `pid_namespace.ns.inum`.
    pub pid_namespace_inum: u32,
    /// `css_set.subsys[i]` of the chosen v1 controller.
    pub css_set_subsys: u32,
    pub css_set_dfl_cgrp: u32,
    /// `cgroup.self`, the css that stands for the cgroup in the unified hierarchy.
    pub cgroup_self: u32,
    pub cgroup_kn: u32,
    pub css_cgroup: u32,
    pub css_parent: u32,
    pub kernfs_node_id: u32,
    /// Counts the execs of a process.
    pub task_self_exec_id: u32,
    pub task_flags: u32,
    pub task_mm: u32,
    /// `task_struct.__state`, `state` before 5.14; 32 bits are read.
    pub task_state: u32,
    /// The byte with the bit `task_struct.in_iowait`, and the bit.
    pub task_in_iowait: u32,
    pub in_iowait_mask: u32,
    /// `crate::off_cpu::SWITCH_*`.
    pub switch_arguments: u32,
    /// Whether a task is in a run queue.
    pub task_on_rq: u32,
    pub task_comm: u32,
    /// `task_struct.sched_info.pcount`: how often a task has arrived on a CPU. 0: not known.
    pub task_arrivals: u32,
    /// The kernel stack.
    pub task_stack: u32,
    /// `task_struct.thread.sp` of x86-64: where the kernel stack of a task ends that does not run. 0: another architecture.
    pub task_kernel_sp: u32,
    /// `task_struct.se.sched_delayed` (kernel 6.12): the thread sleeps, and stays in its run queue
    /// until its turn. 0: this kernel leaves no sleeper there.
    pub task_sched_delayed: u32,
    /// No offset: the frames that the kernel's own walker gives at most. A stack with as many is cut.
    pub most_stack_frames: u32,
    /// No offset: the bit of `struct orc_entry` that ends a stack, in kernels before 6.4. 0: it has a type for that.
    /// [`NO_ORC`]: there is no such structure, or another one.
    pub orc_end_bit: u32,
}

/// The tables of the kernel's own walker on x86-64, and what is to be known of its code.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrcTables {
    /// `__start_orc_unwind_ip`: addresses, each as its distance from itself.
    pub addresses: u64,
    /// `__start_orc_unwind`: `struct orc_entry` for each of them. 0: the kernel walks its stacks itself.
    pub entries: u64,
    /// Number of both.
    pub count: u64,
    pub text_start: u64,
    pub text_end: u64,
    /// Functions that the kernel's walker leaves out (`in_sched_functions`).
    pub scheduler_start: u64,
    pub scheduler_end: u64,
    pub locks_start: u64,
    pub locks_end: u64,
    /// Where functions return to whose return is traced.
    pub tracers: [u64; 2],
}

/// What a loaded object does; one object is loaded for each task.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeConfig {
    /// `FILTER_*`.
    pub filter: u32,
    /// `HIERARCHY_*`, for [`FILTER_CGROUPS`].
    pub hierarchy: u32,
    /// Inode of the agent's PID namespace; 0 when it is the initial one, whose numbers need no
    /// translation.
    pub pid_namespace_inum: u32,
    /// 1: report every fork, exec and exit, whatever the filter.
    pub watch_all_processes: u32,
    pub bucket_ns: u64,
    /// Buckets in an epoch; the counting table alternates with the parity of the epoch.
    pub buckets_per_epoch: u64,
    /// Seed of the stack hash, random for each task so that collisions cannot be prepared.
    pub hash_seed: u64,
    /// With [`FILTER_PIDS`]: a process that calls exec and then has this name becomes a target.
    /// All zero: none does.
    pub target_comm: [u8; COMM_BYTES],
    /// `UNWIND_*`.
    pub unwind: u32,
    /// A capture is sent with every n-th complete user stack, for comparison; 0: with none.
    pub capture_every: u32,
    /// 1: the waker is counted with a wait.
    pub wakers: u32,
    /// 1: the agent forgets targets that exit. Otherwise the kernel does when it reports their exit.
    pub forgets_later: u32,
    /// Waits that are shorter or longer are left out.
    pub min_wait_ns: u64,
    pub max_wait_ns: u64,
    /// Turns of event loops from this length on are stalls; 0: event loops are not watched.
    pub stall_ns: u64,
    pub offsets: KernelOffsets,
    pub orc: OrcTables,
}

const _: () = assert!(size_of::<KernelOffsets>() == 36 * 4);
const _: () = assert!(size_of::<OrcTables>() == 11 * 8);
const _: () = assert!(size_of::<ProbeConfig>() == 16 + 24 + 16 + 16 + 24 + 144 + 88);
const _: () = assert!(size_of::<ProbeConfig>().is_multiple_of(8));

#[cfg(feature = "user")]
impl ProbeConfig {
    /// The bytes of the global, as the loader writes them into `.rodata`.
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: repr(C) integers with explicit padding (asserted above): every byte is
        // initialised, and the slice lives as long as `self`.
        unsafe { core::slice::from_raw_parts(core::ptr::from_ref(self).cast(), size_of::<Self>()) }
    }
}
