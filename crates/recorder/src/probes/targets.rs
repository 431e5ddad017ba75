//! From what a user asked for to what the kernel filters by.

use std::{
    collections::{BTreeSet, VecDeque},
    path::Path,
    time::{Duration, Instant},
};

use profiler_common::{
    config::{FILTER_ALL, FILTER_CGROUPS, FILTER_PIDS, HIERARCHY_V1, HIERARCHY_V2, ProbeConfig},
    limits::COMM_BYTES,
    process::{EVENT_EXIT, EVENT_FORK, ProcessRecord},
};
use profiler_host::{
    process::{ContainerHierarchy, FindContainerError, ProcessTable, is_below},
    sockets::NamespacePath,
};
use profiler_image::proc_dir::read_stat;
use profiler_model::{PodSelector, Target};
use profiler_recording::CollectError;

use super::timeline::{Origin, monotonic_ns};
use crate::bpf::{LoadError, LoadedObject};

/// How long a process may go on after its exit is reported: it gives its memory back.
const EXITING: Duration = Duration::from_secs(2);

/// Processes or containers that a note names.
const NAMED: usize = 8;

/// What a result says when nothing more can come.
pub(super) const TARGET_ENDED: &str = "every process of the target has ended";

/// A target in the kernel's terms.
#[derive(Debug, Default)]
pub(super) struct ResolvedTarget {
    pub(super) filter: u32,
    pub(super) hierarchy: u32,
    pub(super) v1_controller: Option<String>,
    pub(super) comm: [u8; COMM_BYTES],
    pub(super) pids: BTreeSet<u32>,
    pub(super) cgroup_ids: Vec<u64>,
    /// The same as paths in the container hierarchy.
    pub(super) cgroup_paths: Vec<String>,
    /// Inode of the network namespace of the target, when it is one.
    pub(super) network_namespace: u32,
    /// What the cgroups were found by; others may fit it later.
    pub(super) selector: Option<PodSelector>,
    /// Processes whose exit was reported, oldest first.
    exiting: VecDeque<(Instant, u32)>,
    /// When the last of them exited, on the kernel's clock.
    last_exit_ns: Option<u64>,
    /// Its end was said.
    has_ended: bool,
    pub(super) notes: Vec<String>,
}

impl ResolvedTarget {
    /// Finds the processes or cgroups now. Blocks: reads /proc and cgroup file systems.
    pub(super) fn resolve(target: &Target, table: &ProcessTable) -> Result<Self, CollectError> {
        match target {
            Target::All => Ok(Self {
                filter: FILTER_ALL,
                ..Self::default()
            }),
            Target::Pids(pids) => Self::of_pids(pids, table),
            Target::Comm(comm) => Ok(Self::of_comm(comm, table)),
            Target::NetworkNamespace(path) => Self::of_network_namespace(path),
            Target::Cgroup(path) => Self::of_cgroups(std::slice::from_ref(path)),
            Target::Pod(selector) => Self::of_pods(selector, table),
            Target::Container(id) => {
                table.refresh();
                let found = table.find_container(id).map_err(|error| match error {
                    FindContainerError::NotFound { .. } => {
                        CollectError::NoSuchContainer { id: id.clone() }
                    }
                    other => CollectError::Container {
                        reason: other.to_string(),
                    },
                })?;
                Self::of_cgroups(&found.cgroups)
            }
        }
    }

    fn of_pods(selector: &PodSelector, table: &ProcessTable) -> Result<Self, CollectError> {
        table.refresh();
        let found = table
            .find_pods(selector)
            .map_err(|error| CollectError::Pod {
                reason: error.to_string(),
            })?;
        let cgroups: Vec<String> = found.cgroups.into_iter().collect();
        let mut target = Self::of_cgroups(&cgroups)?;
        let titles: Vec<String> = found.titles.into_iter().collect();
        target
            .notes
            .push(format!("{selector} is {}", listed(&titles)));
        target.selector = Some(selector.clone());
        Ok(target)
    }

    fn of_network_namespace(path: &str) -> Result<Self, CollectError> {
        let refused = |reason: String| CollectError::NetworkNamespace {
            path: path.to_owned(),
            reason,
        };
        // Tasks are checked when they are made; this one may be older than the check.
        let found = match NamespacePath::parse(path) {
            Some(place) => place.inode().map_err(|error| refused(error.to_string()))?,
            None => None,
        };
        let network_namespace = found.ok_or_else(|| {
            refused("is not a namespace: take /run/netns/NAME or /proc/PID/ns/net".to_owned())
        })?;
        Ok(Self {
            filter: FILTER_ALL,
            network_namespace,
            ..Self::default()
        })
    }

    /// Follows exits, and numbers that are used again.
    pub(super) fn process_changed(&mut self, record: &ProcessRecord) {
        match record.event {
            EVENT_EXIT if self.filter == FILTER_PIDS => {
                self.exiting.push_back((Instant::now(), record.pid));
                self.last_exit_ns = Some(record.header.time_ns);
            }
            // The kernel side has seen to it.
            EVENT_FORK => self.exiting.retain(|(_, pid)| *pid != record.pid),
            _ => {}
        }
    }

    /// Targets that have surely ended at `now`.
    fn take_ended(&mut self, now: Instant) -> Vec<u32> {
        let over = |(since, _): &(Instant, u32)| now.saturating_duration_since(*since) >= EXITING;
        let ended = self.exiting.iter().take_while(|exit| over(exit)).count();
        self.exiting.drain(..ended).map(|(_, pid)| pid).collect()
    }

    /// Takes processes that have ended out of the filter, and adds pods that fit a selector by now and
    /// did not before. Blocks: reads /proc.
    pub(super) fn follow(
        &mut self,
        table: &ProcessTable,
        object: &mut LoadedObject,
    ) -> Vec<String> {
        for pid in self.take_ended(Instant::now()) {
            if let Err(error) = object.remove_pid(pid) {
                tracing::debug!(pid, %error, "take a process out of the filter");
            }
        }
        let Some(selector) = &self.selector else {
            return Vec::new();
        };
        table.refresh();
        // None is left, or none has come yet.
        let Ok(found) = table.find_pods(selector) else {
            return Vec::new();
        };
        let new: Vec<String> = found
            .cgroups
            .into_iter()
            .filter(|cgroup| !self.cgroup_paths.contains(cgroup))
            .collect();
        let mut notes = Vec::new();
        for cgroup in new {
            let added = Self::of_cgroups(std::slice::from_ref(&cgroup))
                .map_err(|error| error.to_string())
                .and_then(|more| {
                    let mut ids = more.cgroup_ids.iter();
                    ids.try_for_each(|id| object.add_cgroup(*id))
                        .map_err(|error| error.to_string())?;
                    Ok(more.cgroup_ids)
                });
            let name = cgroup_title(table, &cgroup);
            match added {
                Ok(ids) => {
                    self.cgroup_ids.extend(ids);
                    notes.push(format!(
                        "{name} has started and fits {selector}: it is watched from now on"
                    ));
                }
                Err(error) => notes.push(format!(
                    "{name} fits {selector} and is not watched: {error}"
                )),
            }
            self.cgroup_paths.push(cgroup);
        }
        notes
    }

    fn of_pids(pids: &[u32], table: &ProcessTable) -> Result<Self, CollectError> {
        for pid in pids {
            if !is_process(*pid) {
                return Err(CollectError::NoSuchProcess { pid: *pid });
            }
        }
        Ok(Self {
            filter: FILTER_PIDS,
            notes: left_out_children(pids, table),
            pids: pids.iter().copied().collect(),
            ..Self::default()
        })
    }

    fn of_comm(comm: &str, table: &ProcessTable) -> Self {
        table.refresh();
        let mut wanted = [0; COMM_BYTES];
        // The kernel cuts names to 15 bytes and a zero; so does the comparison.
        for (slot, byte) in wanted.iter_mut().take(COMM_BYTES - 1).zip(comm.bytes()) {
            *slot = byte;
        }
        let cut = String::from_utf8_lossy(&wanted)
            .trim_end_matches('\0')
            .to_owned();
        let pids: BTreeSet<u32> = table.pids_named(&cut).into_iter().collect();
        let mut notes = Vec::new();
        if pids.is_empty() {
            notes.push(format!(
                "no process is named {cut:?} yet; waiting for one to start"
            ));
        }
        Self {
            filter: FILTER_PIDS,
            comm: wanted,
            pids,
            notes,
            ..Self::default()
        }
    }

    fn of_cgroups(paths: &[String]) -> Result<Self, CollectError> {
        let Some(hierarchy) = ContainerHierarchy::detect() else {
            return Err(CollectError::Container {
                reason: "no cgroup file system is mounted".to_owned(),
            });
        };
        let cgroup_ids = paths
            .iter()
            .map(|path| {
                hierarchy
                    .kernfs_id(path)
                    .map_err(|error| CollectError::Cgroup {
                        path: path.clone(),
                        reason: error.to_string(),
                    })
            })
            .collect::<Result<_, _>>()?;
        let (hierarchy, v1_controller) = match hierarchy {
            ContainerHierarchy::V2 { .. } => (HIERARCHY_V2, None),
            ContainerHierarchy::V1 { controller, .. } => (HIERARCHY_V1, Some(controller)),
        };
        Ok(Self {
            filter: FILTER_CGROUPS,
            hierarchy,
            v1_controller,
            cgroup_ids,
            cgroup_paths: paths.to_vec(),
            ..Self::default()
        })
    }

    /// Writes the target into the globals.
    pub(super) fn configure(&self, config: &mut ProbeConfig) {
        config.filter = self.filter;
        config.hierarchy = self.hierarchy;
        config.target_comm = self.comm;
    }

    /// Whether it is over when its processes have ended: only their children join it.
    pub(super) fn can_end(&self) -> bool {
        self.filter == FILTER_PIDS && self.comm == [0; COMM_BYTES]
    }

    /// Says once that no process of the target is left, and when the last one exited. Blocks: reads /proc.
    pub(super) fn end_note(&mut self, object: &LoadedObject, origin: Origin) -> Option<String> {
        if self.has_ended || !self.can_end() {
            return None;
        }
        // Its children are in the kernel's table as well, and those that ended a moment ago still are.
        let pids = object.target_pids().ok()?;
        self.has_ended = pids.into_iter().all(has_ended);
        let ended_ns = self.last_exit_ns.unwrap_or_else(monotonic_ns);
        self.has_ended.then(|| ended_after(origin, ended_ns))
    }

    /// Fills the filter maps.
    pub(super) fn fill(&self, object: &mut LoadedObject) -> Result<(), LoadError> {
        for pid in &self.pids {
            object.add_pid(*pid)?;
        }
        for id in &self.cgroup_ids {
            object.add_cgroup(*id)?;
        }
        Ok(())
    }

    /// The fallback without fork or exec events: finds children of targets, and processes of the
    /// wanted name, in a fresh reading of /proc. Returns the pids that are new.
    pub(super) fn poll(&mut self, table: &ProcessTable) -> Vec<u32> {
        if self.filter != FILTER_PIDS {
            return Vec::new();
        }
        table.refresh();
        let wanted = String::from_utf8_lossy(&self.comm)
            .trim_end_matches('\0')
            .to_owned();
        let mut found = Vec::new();
        for process in table.snapshot() {
            let pid = process.key.pid;
            let named = !wanted.is_empty() && process.comm == wanted;
            if (named || self.pids.contains(&process.parent_pid)) && self.pids.insert(pid) {
                found.push(pid);
            }
        }
        found
    }
}

/// What runs in a cgroup, by its name.
fn cgroup_title(table: &ProcessTable, cgroup: &str) -> String {
    table
        .snapshot()
        .iter()
        .filter(|process| is_below(&process.cgroup, cgroup))
        .find_map(|process| table.names_of(process))
        .map_or_else(|| cgroup.to_owned(), |names| names.title())
}

/// The first of some names, and how many more there are.
fn listed(names: &[String]) -> String {
    let shown = names.iter().take(NAMED).cloned();
    let shown = shown.collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Says of processes that their children do not belong to the target: those of a server do its work.
fn left_out_children(pids: &[u32], table: &ProcessTable) -> Vec<String> {
    table.refresh();
    let processes = table.snapshot();
    let note = |parent: &u32| {
        let children: Vec<String> = processes
            .iter()
            .filter(|process| process.parent_pid == *parent && !pids.contains(&process.key.pid))
            .map(|process| process.key.pid.to_string())
            .collect();
        (!children.is_empty()).then(|| {
            format!(
                "process {parent} has children that run already and are not in the target: {}",
                listed(&children)
            )
        })
    };
    pids.iter().filter_map(note).collect()
}

fn ended_after(origin: Origin, ended_ns: u64) -> String {
    let after = Duration::from_nanos(ended_ns.saturating_sub(origin.kernel_ns));
    format!(
        "{TARGET_ENDED}, {:.1} s after the start",
        after.as_secs_f64()
    )
}

/// Whether nothing of a process can run any more, also while its parent has not asked how it ended.
fn has_ended(pid: u32) -> bool {
    match read_stat(pid) {
        // The first thread of a process may have ended before the others.
        Ok(stat) => stat.zombie && stat.threads <= 1,
        Err(error) => {
            let gone = rustix::io::Errno::from_io_error(&error);
            matches!(
                gone,
                Some(rustix::io::Errno::NOENT | rustix::io::Errno::SRCH)
            )
        }
    }
}

/// True for the pid of a process; /proc also answers for the tids of its other threads.
pub(super) fn is_process(pid: u32) -> bool {
    let path = format!("/proc/{pid}/status");
    // Bytes: the first line is the process's name, which need not be UTF-8.
    let Ok(status) = std::fs::read(Path::new(&path)) else {
        return false;
    };
    String::from_utf8_lossy(&status)
        .lines()
        .find_map(|line| line.strip_prefix("Tgid:"))
        .is_some_and(|tgid| tgid.trim() == pid.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_pid_is_named() {
        let error = ResolvedTarget::resolve(
            &Target::Pids(vec![std::process::id(), 4_194_305]),
            &ProcessTable::new(),
        )
        .expect_err("above the kernel's highest pid");
        assert_eq!(error.to_string(), "no such process: 4194305");
    }

    #[test]
    fn a_process_that_exits_is_a_target_until_it_has_ended() {
        let event = |event, pid| ProcessRecord {
            header: profiler_common::header::RecordHeader {
                kind: 0,
                bytes: 0,
                time_ns: 0,
            },
            event,
            pid,
            parent_pid: 0,
            generation: 0,
            start_boottime_ns: 0,
        };
        let mut target = ResolvedTarget {
            filter: FILTER_PIDS,
            ..ResolvedTarget::default()
        };
        target.process_changed(&event(EVENT_EXIT, 7));
        target.process_changed(&event(EVENT_EXIT, 8));
        target.process_changed(&event(EVENT_FORK, 8));
        let now = Instant::now();
        assert_eq!(target.take_ended(now), Vec::<u32>::new());
        assert_eq!(target.take_ended(now + EXITING), [7]);
        assert_eq!(target.take_ended(now + EXITING), Vec::<u32>::new());
    }

    #[test]
    fn a_process_has_ended_when_only_its_parent_has_still_to_ask() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .expect("start sleep");
        let runs = !has_ended(child.id());
        child.kill().expect("end sleep");
        let deadline = Instant::now() + Duration::from_secs(10);
        while !has_ended(child.id()) {
            assert!(Instant::now() < deadline, "a zombie counts as running");
            std::thread::yield_now();
        }
        assert!(is_process(child.id()), "it is not waited for yet");
        child.wait().expect("reap sleep");
        assert!(runs && has_ended(child.id()) && !has_ended(std::process::id()));
    }

    #[test]
    fn the_end_of_a_target_is_said_with_its_time() {
        let origin = Origin {
            kernel_ns: 5_000_000_000,
            epoch_ns: 1,
        };
        assert_eq!(
            ended_after(origin, 8_140_000_000),
            "every process of the target has ended, 3.1 s after the start"
        );
    }

    #[test]
    fn children_that_run_already_are_said_to_be_left_out() {
        let own = std::process::id();
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .expect("start sleep");
        let notes = |pids: Vec<u32>| {
            let found = ResolvedTarget::resolve(&Target::Pids(pids), &ProcessTable::new());
            found.expect("both run").notes
        };
        let (without, with) = (notes(vec![own]), notes(vec![own, child.id()]));
        child.kill().expect("end sleep");
        child.wait().expect("reap sleep");
        let named = child.id().to_string();
        assert!(
            without.iter().any(|note| note.contains(&named)),
            "{without:?}"
        );
        assert!(!with.iter().any(|note| note.contains(&named)), "{with:?}");
    }

    #[test]
    fn a_tid_is_not_a_process() {
        let tid = std::thread::spawn(|| {
            let tid = rustix::thread::gettid()
                .as_raw_nonzero()
                .get()
                .unsigned_abs();
            is_process(tid)
        });
        assert!(!tid.join().expect("thread"));
        assert!(is_process(std::process::id()));
    }

    #[test]
    fn a_name_that_is_no_text_does_not_hide_a_process() {
        let before = std::fs::read("/proc/self/comm").expect("own name");
        std::fs::write("/proc/self/comm", [0xff; 5]).expect("rename");
        let found = is_process(std::process::id());
        std::fs::write("/proc/self/comm", before.trim_ascii_end()).expect("rename back");
        assert!(found);
    }
}
