//! Which tasks are targets. Runs before any stack work.

use aya_ebpf::{
    macros::map,
    maps::{Array, HashMap},
};
use profiler_common::{
    config::{FILTER_ALL, FILTER_CGROUPS as MODE_CGROUPS, FILTER_PIDS as MODE_PIDS, HIERARCHY_V2},
    limits::{FILTER_CGROUP_ENTRIES, MARKS, MAX_CGROUP_DEPTH},
};

use crate::{
    config::config,
    kernel::{KernelPtr, TypedPtr},
    maps::FILTER_PIDS,
    task::TaskIds,
};

/// Target cgroups, by kernfs node id.
#[map]
static FILTER_CGROUPS: HashMap<u64, u8> = HashMap::with_max_entries(FILTER_CGROUP_ENTRIES, 0);

/// Set for every pid that was ever put into `FILTER_PIDS`: most processes of a node are told apart
/// from the targets without a lookup.
#[map]
static PROCESS_MARKS: Array<u32> = Array::with_max_entries(MARKS, 0);

/// Marks a process before it becomes a target.
#[inline(always)]
pub(crate) fn mark(pid: u32) {
    if let Some(mark) = PROCESS_MARKS.get_ptr_mut(pid & (MARKS - 1)) {
        // SAFETY: a map value; no other value is ever written.
        unsafe { *mark = 1 };
    }
}

/// False only for a task that is surely no target.
#[inline(always)]
pub(crate) fn may_want(task: TypedPtr) -> bool {
    if config!(filter) != MODE_PIDS || config!(pid_namespace_inum) != 0 {
        return true;
    }
    let pid: u32 = task.member(config!(offsets.task_tgid));
    PROCESS_MARKS
        .get(pid & (MARKS - 1))
        .is_some_and(|mark| *mark != 0)
}

/// Whether a task is a target.
#[inline(always)]
pub(crate) fn wants(task: KernelPtr, ids: TaskIds) -> bool {
    let mode = config!(filter);
    if mode == FILTER_ALL {
        return true;
    }
    if mode == MODE_CGROUPS {
        return in_target_cgroup(task).unwrap_or(false);
    }
    // SAFETY: the value is not read.
    unsafe { FILTER_PIDS.get(ids.pid) }.is_some()
}

/// Climbs from the task's cgroup to the root of its hierarchy, looking for a target.
///
/// Css by css: `css->cgroup->kn->id`, then `css->parent`, which every kernel since 5.15 has in both
/// kinds of hierarchy, while `cgroup->ancestors` changed its shape.
#[inline(always)]
fn in_target_cgroup(task: KernelPtr) -> Option<bool> {
    let set = task.follow(config!(offsets.task_cgroups))?;
    let mut css = if config!(hierarchy) == HIERARCHY_V2 {
        set.follow(config!(offsets.css_set_dfl_cgrp))?
            .at(config!(offsets.cgroup_self))
    } else {
        set.follow(config!(offsets.css_set_subsys))?
    };
    for _ in 0..MAX_CGROUP_DEPTH {
        let node = css
            .follow(config!(offsets.css_cgroup))?
            .follow(config!(offsets.cgroup_kn))?;
        let id: u64 = node.read(config!(offsets.kernfs_node_id))?;
        // SAFETY: the value is not read.
        if unsafe { FILTER_CGROUPS.get(id) }.is_some() {
            return Some(true);
        }
        css = css.follow(config!(offsets.css_parent))?;
    }
    None
}
