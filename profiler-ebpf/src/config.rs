//! Globals written by the agent before load.

use profiler_common::config::{KernelOffsets, OrcTables, ProbeConfig};

#[unsafe(no_mangle)]
pub(crate) static CONFIG: ProbeConfig = ProbeConfig {
    filter: 0,
    hierarchy: 0,
    pid_namespace_inum: 0,
    watch_all_processes: 0,
    bucket_ns: 1,
    buckets_per_epoch: 1,
    hash_seed: 0,
    target_comm: [0; 16],
    unwind: 0,
    capture_every: 0,
    wakers: 0,
    forgets_later: 0,
    min_wait_ns: 0,
    max_wait_ns: 0,
    stall_ns: 0,
    offsets: KernelOffsets {
        task_group_leader: 0,
        task_thread_pid: 0,
        task_start_boottime: 0,
        task_signal: 0,
        task_cgroups: 0,
        task_tgid: 0,
        task_pid: 0,
        signal_live: 0,
        pid_level: 0,
        pid_numbers: 0,
        upid_bytes: 0,
        upid_nr: 0,
        upid_ns: 0,
        pid_namespace_inum: 0,
        css_set_subsys: 0,
        css_set_dfl_cgrp: 0,
        cgroup_self: 0,
        cgroup_kn: 0,
        css_cgroup: 0,
        css_parent: 0,
        kernfs_node_id: 0,
        task_self_exec_id: 0,
        task_flags: 0,
        task_mm: 0,
        task_state: 0,
        task_in_iowait: 0,
        in_iowait_mask: 0,
        switch_arguments: 0,
        task_on_rq: 0,
        task_comm: 0,
        task_arrivals: 0,
        task_stack: 0,
        task_kernel_sp: 0,
        task_sched_delayed: 0,
        most_stack_frames: 0,
        orc_end_bit: 0,
    },
    orc: OrcTables {
        addresses: 0,
        entries: 0,
        count: 0,
        text_start: 0,
        text_end: 0,
        scheduler_start: 0,
        scheduler_end: 0,
        locks_start: 0,
        locks_end: 0,
        tracers: [0; 2],
    },
};

/// Reads one field of the configuration. The read is volatile because the compiler must not fold
/// the values above; the verifier folds those of the frozen map.
macro_rules! config {
    ($($field:tt)+) => {
        // SAFETY: the pointer is to a field of a static of this program.
        unsafe { core::ptr::read_volatile(&raw const $crate::config::CONFIG.$($field)+) }
    };
}

pub(crate) use config;

/// 1: what the kernel takes to call these programs is measured, and they do nothing.
#[unsafe(no_mangle)]
pub(crate) static FLOOR: u32 = 0;

/// The first line of a program that events call: it ends here at the floor. The verifier drops what follows, or this test.
macro_rules! leave_at_floor {
    () => {
        // SAFETY: a pointer to a static; volatile as that of `config!`.
        if unsafe { core::ptr::read_volatile(&raw const $crate::config::FLOOR) } != 0 {
            return 0;
        }
    };
}

pub(crate) use leave_at_floor;
