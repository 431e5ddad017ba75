//! Which tasks are targets. Runs before any stack work.

use core::ptr::{read_volatile, write_volatile};

use aya_ebpf::{
    macros::map,
    maps::{Array, HashMap},
};
use profiler_common::{
    config::{FILTER_ALL, FILTER_CGROUPS as MODE_CGROUPS, FILTER_PIDS as MODE_PIDS, HIERARCHY_V2},
    limits::{CGROUP_VERDICTS, FILTER_CGROUP_ENTRIES, MARKS, MAX_CGROUP_DEPTH},
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

/// Whether the cgroups that tasks are in are targets: most tasks of a node are told apart from the targets without
/// climbing. A place, by a cgroup's id and [`FILTER_CHANGES`], holds both and the verdict in one word ([`in_target_cgroup`]),
/// so that no lock is needed. A cgroup never gets another parent, nor its id another cgroup.
#[map]
static VERDICTS: Array<u64> = Array::with_max_entries(CGROUP_VERDICTS, 0);

/// How often the agent has added to [`FILTER_CGROUPS`].
#[map]
static FILTER_CHANGES: Array<u32> = Array::with_max_entries(1, 0);

/// The bit of a word of [`VERDICTS`] that says that the cgroup is a target.
const WANTED: u64 = 1;
/// Odd numbers without a pattern, by which an id and the number of changes become one word.
const OF_ID: u64 = 0x9E37_79B9_7F4A_7C15;
const OF_CHANGES: u64 = 0xD1B5_4A32_D192_ED03;

/// Set for every pid that was ever put into `FILTER_PIDS`: most processes of a node are told apart
/// from the targets without a lookup. Not filled in objects that neither measure waits nor watch connections.
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

/// False only for a task that is surely no target. It costs no helper.
#[inline(always)]
pub(crate) fn may_want(task: TypedPtr) -> bool {
    if config!(filter) == MODE_CGROUPS {
        return !is_known_outside(task).unwrap_or(false);
    }
    if config!(filter) != MODE_PIDS || config!(pid_namespace_inum) != 0 {
        return true;
    }
    let pid: u32 = task.member(config!(offsets.task_tgid));
    PROCESS_MARKS
        .get(pid & (MARKS - 1))
        .is_some_and(|mark| *mark != 0)
}

/// Whether it is remembered that a task's cgroup is no target, nor below one.
#[inline(always)]
fn is_known_outside(task: TypedPtr) -> Option<bool> {
    let set = task.follow(config!(offsets.task_cgroups))?;
    let cgroup = if config!(hierarchy) == HIERARCHY_V2 {
        set.follow(config!(offsets.css_set_dfl_cgrp))?
    } else {
        set.follow(config!(offsets.css_set_subsys))?
            .follow(config!(offsets.css_cgroup))?
    };
    let leaf: u64 = cgroup
        .follow(config!(offsets.cgroup_kn))?
        .member(config!(offsets.kernfs_node_id));
    let (verdict, mixed) = verdict_of(leaf, changes()?)?;
    // SAFETY: a map value of one word, which other CPUs write at any time.
    Some(unsafe { read_volatile(verdict) } == mixed & !WANTED)
}

#[inline(always)]
fn changes() -> Option<u32> {
    let changes = FILTER_CHANGES.get(0)?;
    // SAFETY: a map value, which the agent changes at any time.
    Some(unsafe { read_volatile(changes) })
}

/// The place of a cgroup's verdict, and what is there, but for the verdict, if it is about this cgroup.
#[inline(always)]
fn verdict_of(id: u64, changes: u32) -> Option<(*mut u64, u64)> {
    let mixed = (id.wrapping_mul(OF_ID)).wrapping_add(u64::from(changes).wrapping_mul(OF_CHANGES));
    let verdict = VERDICTS.get_ptr_mut((mixed >> 32) as u32 & (CGROUP_VERDICTS - 1))?;
    Some((verdict, mixed))
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

/// Whether a task's cgroup is a target or below one.
#[inline(always)]
fn in_target_cgroup(task: KernelPtr) -> Option<bool> {
    // Read first: a verdict from before a change is not kept as one from after it.
    let changes = changes()?;
    let set = task.follow(config!(offsets.task_cgroups))?;
    let css = if config!(hierarchy) == HIERARCHY_V2 {
        set.follow(config!(offsets.css_set_dfl_cgrp))?
            .at(config!(offsets.cgroup_self))
    } else {
        set.follow(config!(offsets.css_set_subsys))?
    };
    let leaf = node_id(css)?;
    let (verdict, mixed) = verdict_of(leaf, changes)?;
    // SAFETY: a map value of one word, which other CPUs write at any time.
    let known = unsafe { read_volatile(verdict) };
    if known & !WANTED == mixed & !WANTED {
        return Some(known & WANTED != 0);
    }
    let wanted = climb(css, leaf)?;
    // SAFETY: as above.
    unsafe { write_volatile(verdict, (mixed & !WANTED) | u64::from(wanted)) };
    Some(wanted)
}

/// Climbs from a cgroup to the root of its hierarchy, looking for a target; `None` where that cannot be read.
///
/// Css by css: `css->cgroup->kn->id`, then `css->parent`, which every kernel since 5.15 has in both
/// kinds of hierarchy, while `cgroup->ancestors` changed its shape.
#[inline(always)]
fn climb(mut css: KernelPtr, leaf: u64) -> Option<bool> {
    let mut id = leaf;
    for _ in 0..MAX_CGROUP_DEPTH {
        // SAFETY: the value is not read.
        if unsafe { FILTER_CGROUPS.get(id) }.is_some() {
            return Some(true);
        }
        let parent: u64 = css.read(config!(offsets.css_parent))?;
        if parent == 0 {
            return Some(false); // the root
        }
        css = KernelPtr(parent);
        id = node_id(css)?;
    }
    Some(false)
}

#[inline(always)]
fn node_id(css: KernelPtr) -> Option<u64> {
    css.follow(config!(offsets.css_cgroup))?
        .follow(config!(offsets.cgroup_kn))?
        .read(config!(offsets.kernfs_node_id))
}
