//! The table of processes and what is kept up to date in it.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use profiler_image::proc_dir::{ProcDir, ProcessStat, list_pids, read_stat};
use profiler_model::{Process, ProcessEvent, ProcessEventKind, ProcessKey, ThreadInfo, float};
use tokio::sync::broadcast;

use super::{
    cgroups::ContainerHierarchy,
    containers::{ContainerCgroup, containers_in},
    details::{Host, read_process},
    users::Users,
};
use crate::container_names::ContainerDirectory;

/// Changes that a slow subscriber may lag behind.
const CHANGES_KEPT: usize = 1024;
/// Threads that are listed for one process.
const THREADS_LIMIT: usize = 32_768;
/// Readings further apart than this give no CPU share: it would be an average over times that
/// were not observed.
const LONGEST_INTERVAL: Duration = Duration::from_secs(30);
/// Readings closer than this give no new share: with ticks of 10 ms it would be noise.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(200);
/// At each refresh one process in this many has its details read again, so that a changed title
/// and a move to another cgroup are seen in the end.
const DETAILS_ROUND: u32 = 16;
/// Refreshes between two looks for containers on a host that has shown none so far.
const DETECT_ROUND: u64 = 32;
/// A change that subscribers hear of.
#[derive(Clone, Debug)]
pub enum ProcessChange {
    /// A new process, or one that called exec.
    Started(Arc<Process>),
    Exited(ProcessKey),
    /// CPU, memory and thread counts were read again.
    Refreshed,
}

/// CPU ticks of a process at a moment.
#[derive(Clone, Copy, Debug)]
struct Reading {
    ticks: u64,
    at: Instant,
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) process: Arc<Process>,
    reading: Option<Reading>,
    /// Made from a fork event and not yet read from /proc.
    inherited: bool,
}

#[derive(Debug)]
struct Shared {
    entries: RwLock<HashMap<u32, Entry>>,
    /// Also serialises refreshes and events, so that readers never wait for /proc.
    host: Mutex<HostState>,
    ticks_per_second: f64,
    /// What containers are called.
    names: ContainerDirectory,
    /// Threads of processes that were recorded elsewhere; then /proc is never read.
    recorded: Option<HashMap<ProcessKey, Vec<ThreadInfo>>>,
}

#[derive(Debug)]
struct HostState {
    host: Host,
    refreshes: u64,
    hierarchy_known: bool,
}

/// Shared handle on the table. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ProcessTable {
    shared: Arc<Shared>,
    changes: broadcast::Sender<ProcessChange>,
}

impl Default for ProcessTable {
    fn default() -> Self {
        Self::new()
    }
}

impl ProcessTable {
    /// An empty table; [`Self::refresh`] fills it.
    pub fn new() -> Self {
        let (changes, _) = broadcast::channel(CHANGES_KEPT);
        let host = Host {
            hierarchy: None,
            users: Users::default(),
            page_bytes: rustix::param::page_size() as u64,
        };
        let shared = Shared {
            entries: RwLock::default(),
            host: Mutex::new(HostState {
                host,
                refreshes: 0,
                hierarchy_known: false,
            }),
            ticks_per_second: float(rustix::param::clock_ticks_per_second()),
            names: ContainerDirectory::default(),
            recorded: None,
        };
        Self {
            shared: Arc::new(shared),
            changes,
        }
    }

    /// A table of processes that were recorded elsewhere, which never changes.
    pub fn recorded(processes: impl IntoIterator<Item = (Process, Vec<ThreadInfo>)>) -> Self {
        let mut threads = HashMap::new();
        let mut entries = HashMap::new();
        for (process, of_process) in processes {
            threads.insert(process.key, of_process);
            let entry = Entry {
                process: Arc::new(process),
                reading: None,
                inherited: false,
            };
            entries.insert(entry.process.key.pid, entry);
        }
        let empty = Self::new();
        Self {
            shared: Arc::new(Shared {
                entries: RwLock::new(entries),
                host: Mutex::new(HostState {
                    host: Host {
                        hierarchy: None,
                        users: Users::default(),
                        page_bytes: rustix::param::page_size() as u64,
                    },
                    refreshes: 0,
                    hierarchy_known: true,
                }),
                ticks_per_second: empty.shared.ticks_per_second,
                names: ContainerDirectory::default(),
                recorded: Some(threads),
            }),
            changes: empty.changes,
        }
    }

    /// What the containers of these processes are called.
    pub fn names(&self) -> &ContainerDirectory {
        &self.shared.names
    }

    /// Reads all of /proc again (blocking) and computes CPU shares since the previous call.
    ///
    /// A process that is known costs one read of its `stat`; new ones are read in full.
    pub fn refresh(&self) {
        if self.shared.recorded.is_some() {
            return self.publish(ProcessChange::Refreshed);
        }
        let mut state = self.lock_host();
        self.prepare(&mut state);
        let round = u32::try_from(state.refreshes % u64::from(DETAILS_ROUND)).unwrap_or(0);
        let mut known = self.read_entries().clone();
        let mut fresh = HashMap::with_capacity(known.len());
        let mut changes = Vec::new();
        let mut started = Vec::new();
        for pid in list_pids() {
            let Ok(stat) = read_stat(pid) else { continue };
            let old = known.remove(&pid);
            let same = old.filter(|entry| entry.process.key.start_ticks == stat.start_ticks);
            let is_new = same.is_none();
            let Some(entry) = self.updated(pid, &stat, same, round, &state.host) else {
                continue;
            };
            if is_new {
                started.push(pid);
            }
            fresh.insert(pid, entry);
        }
        self.confirm_nested(&mut fresh);
        let started = started.iter().filter_map(|pid| fresh.get(pid));
        changes.extend(started.map(|entry| ProcessChange::Started(Arc::clone(&entry.process))));
        {
            let mut entries = self.write_entries();
            for (pid, entry) in entries.drain() {
                let still = fresh
                    .get(&pid)
                    .is_some_and(|new| new.process.key == entry.process.key);
                if !still {
                    changes.push(ProcessChange::Exited(entry.process.key));
                }
            }
            *entries = fresh;
        }
        drop(state);
        changes.push(ProcessChange::Refreshed);
        for change in changes {
            self.publish(change);
        }
    }

    /// Gives processes in containers inside of containers the inner one, where a runtime knows it and it is nowhere
    /// the outer one: a container can give a cgroup the name of another container, but not take that one's away.
    fn confirm_nested(&self, entries: &mut HashMap<u32, Entry>) {
        let is_nested = |entry: &Entry| containers_in(&entry.process.cgroup).nth(1).is_some();
        if !entries.values().any(is_nested) {
            return;
        }
        let outer: HashSet<String> = entries
            .values()
            .filter_map(|entry| containers_in(&entry.process.cgroup).next())
            .map(|seen| seen.container.id)
            .collect();
        for entry in entries.values_mut() {
            let mut all = containers_in(&entry.process.cgroup);
            let Some(outermost) = all.next() else {
                continue;
            };
            let is_confirmed = |seen: &ContainerCgroup<'_>| {
                let id = &seen.container.id;
                !outer.contains(id) && self.shared.names.by_id(id).is_some()
            };
            let chosen = all.filter(is_confirmed).last().unwrap_or(outermost);
            let chosen = Some(chosen.container);
            if entry.process.container != chosen {
                Arc::make_mut(&mut entry.process).container = chosen;
            }
        }
    }

    /// All processes, ordered by pid.
    pub fn snapshot(&self) -> Vec<Arc<Process>> {
        let mut all: Vec<_> = self
            .read_entries()
            .values()
            .map(|entry| Arc::clone(&entry.process))
            .collect();
        all.sort_unstable_by_key(|process| process.key.pid);
        all
    }

    pub fn get(&self, pid: u32) -> Option<Arc<Process>> {
        self.read_entries()
            .get(&pid)
            .map(|entry| Arc::clone(&entry.process))
    }

    /// The process with this pid, if it is still the same.
    pub fn process(&self, key: ProcessKey) -> Option<Arc<Process>> {
        self.get(key.pid).filter(|process| process.key == key)
    }

    /// Threads of a process (blocking); empty when it has exited. Ordered by tid.
    pub fn threads(&self, key: ProcessKey) -> Vec<ThreadInfo> {
        if let Some(recorded) = &self.shared.recorded {
            return recorded.get(&key).cloned().unwrap_or_default();
        }
        let Ok(dir) = ProcDir::open(key.pid) else {
            return Vec::new();
        };
        if dir
            .stat()
            .ok()
            .is_none_or(|stat| stat.start_ticks != key.start_ticks)
        {
            return Vec::new();
        }
        let ticks_per_second = rustix::param::clock_ticks_per_second().max(1);
        let mut threads: Vec<_> = dir
            .thread_stats(THREADS_LIMIT)
            .into_iter()
            .map(|(tid, stat)| ThreadInfo {
                tid,
                name: stat.comm,
                cpu_time_ns: stat
                    .cpu_ticks
                    .saturating_mul(1_000_000_000 / ticks_per_second),
            })
            .collect();
        threads.sort_unstable_by_key(|thread| thread.tid);
        threads
    }

    /// Applies a live event (blocking: reads /proc/PID after exec, and after a fork whose parent
    /// is not known).
    pub fn observe(&self, event: &ProcessEvent) {
        match event.kind {
            ProcessEventKind::Fork => self.observe_fork(event),
            ProcessEventKind::Exec => self.observe_exec(event),
            ProcessEventKind::Exit => self.observe_exit(event),
        }
    }

    pub fn subscribe(&self) -> broadcast::Receiver<ProcessChange> {
        self.changes.subscribe()
    }

    /// The hierarchy that carries the containers (blocking when not detected yet); `None` when no
    /// cgroup file system is mounted.
    pub fn container_hierarchy(&self) -> Option<ContainerHierarchy> {
        let mut state = self.lock_host();
        Self::detect_once(&mut state);
        state.host.hierarchy.clone()
    }

    /// Reads again what the host says: users, and where containers are.
    fn prepare(&self, state: &mut HostState) {
        state.host.users.reload_if_changed();
        Self::detect_once(state);
        state.refreshes += 1;
        if state.refreshes.is_multiple_of(DETECT_ROUND) {
            let contained = self
                .read_entries()
                .values()
                .any(|entry| entry.process.container.is_some());
            let detected = if contained {
                None
            } else {
                ContainerHierarchy::detect()
            };
            if let Some(detected) = detected
                && state.host.hierarchy.as_ref() != Some(&detected)
            {
                tracing::info!(hierarchy = ?detected, "containers moved to another cgroup hierarchy");
                state.host.hierarchy = Some(detected);
                // Every path has to be read again.
                self.write_entries()
                    .values_mut()
                    .for_each(|entry| entry.inherited = true);
            }
        }
    }

    fn detect_once(state: &mut HostState) {
        if !state.hierarchy_known {
            state.hierarchy_known = true;
            state.host.hierarchy = ContainerHierarchy::detect();
            tracing::debug!(hierarchy = ?state.host.hierarchy, "cgroup hierarchy of the containers");
        }
    }

    /// The entry of a process with a new reading; `None` when it has exited meanwhile.
    fn updated(
        &self,
        pid: u32,
        stat: &ProcessStat,
        old: Option<Entry>,
        round: u32,
        host: &Host,
    ) -> Option<Entry> {
        let now = Instant::now();
        let reading = Reading {
            ticks: stat.cpu_ticks,
            at: now,
        };
        let Some(old) = old else {
            let (process, stat) = read_process(pid, host).ok()?;
            let reading = Reading {
                ticks: stat.cpu_ticks,
                at: now,
            };
            return Some(Entry {
                process: Arc::new(process),
                reading: Some(reading),
                inherited: false,
            });
        };
        let (cpu_percent, reading) = self.cpu_share(old.process.cpu_percent, old.reading, reading);
        let reread = old.inherited
            || old.process.comm != stat.comm
            || (pid % DETAILS_ROUND == round && !stat.kernel_thread);
        let mut process = if reread {
            let (process, _) = read_process(pid, host).ok()?;
            process
        } else {
            Process::clone(&old.process)
        };
        process.parent_pid = stat.parent_pid;
        process.threads = stat.threads;
        process.rss_bytes = stat.rss_pages.saturating_mul(host.page_bytes);
        process.cpu_percent = cpu_percent;
        // Most processes sleep: an unchanged one keeps its allocation.
        let process = if process == *old.process {
            old.process
        } else {
            Arc::new(process)
        };
        Some(Entry {
            process,
            reading: Some(reading),
            inherited: false,
        })
    }

    /// CPU share between two readings, and the reading to compare with next time.
    fn cpu_share(
        &self,
        previous: Option<f64>,
        old: Option<Reading>,
        new: Reading,
    ) -> (Option<f64>, Reading) {
        let Some(old) = old else { return (None, new) };
        let elapsed = new.at.saturating_duration_since(old.at);
        if elapsed < SHORTEST_INTERVAL {
            return (previous, old);
        }
        if elapsed > LONGEST_INTERVAL {
            return (None, new);
        }
        let ticks = float(new.ticks.saturating_sub(old.ticks));
        let share = ticks / self.shared.ticks_per_second / elapsed.as_secs_f64() * 100.0;
        (Some(share), new)
    }

    /// A forked process is its parent until it calls exec: nothing has to be read.
    fn observe_fork(&self, event: &ProcessEvent) {
        let state = self.lock_host();
        let key = ProcessKey {
            pid: event.pid,
            start_ticks: event.start_ticks,
        };
        let parent = {
            let entries = self.read_entries();
            if entries
                .get(&event.pid)
                .is_some_and(|entry| entry.process.key == key)
            {
                return;
            }
            entries
                .get(&event.parent_pid)
                .map(|entry| Arc::clone(&entry.process))
        };
        let Some(parent) = parent else {
            return self.read_and_insert(event.pid, state);
        };
        let process = Arc::new(Process {
            key,
            parent_pid: event.parent_pid,
            threads: 1,
            cpu_percent: None,
            ..Process::clone(&parent)
        });
        let reading = Some(Reading {
            ticks: 0,
            at: Instant::now(),
        });
        self.insert(Entry {
            process,
            reading,
            inherited: true,
        });
    }

    fn observe_exec(&self, event: &ProcessEvent) {
        let state = self.lock_host();
        self.read_and_insert(event.pid, state);
    }

    fn observe_exit(&self, event: &ProcessEvent) {
        let _state = self.lock_host();
        let removed = {
            let mut entries = self.write_entries();
            let same = entries.get(&event.pid).is_some_and(|entry| {
                event.start_ticks == 0 || entry.process.key.start_ticks == event.start_ticks
            });
            if same {
                entries.remove(&event.pid)
            } else {
                None
            }
        };
        if let Some(entry) = removed {
            self.publish(ProcessChange::Exited(entry.process.key));
        }
    }

    fn read_and_insert(&self, pid: u32, mut state: MutexGuard<'_, HostState>) {
        Self::detect_once(&mut state);
        // A process that is gone already is left as it was: its exit event follows.
        let Ok((mut process, stat)) = read_process(pid, &state.host) else {
            return;
        };
        let old = self.read_entries().get(&pid).cloned();
        let same = old.filter(|entry| entry.process.key == process.key);
        let reading = Reading {
            ticks: stat.cpu_ticks,
            at: Instant::now(),
        };
        process.cpu_percent = same.as_ref().and_then(|entry| entry.process.cpu_percent);
        let reading = same.and_then(|entry| entry.reading).unwrap_or(reading);
        self.insert(Entry {
            process: Arc::new(process),
            reading: Some(reading),
            inherited: false,
        });
    }

    fn insert(&self, entry: Entry) {
        let process = Arc::clone(&entry.process);
        let replaced = self.write_entries().insert(process.key.pid, entry);
        if let Some(old) = replaced.filter(|old| old.process.key != process.key) {
            self.publish(ProcessChange::Exited(old.process.key));
        }
        self.publish(ProcessChange::Started(process));
    }

    fn publish(&self, change: ProcessChange) {
        // Fails without subscribers, which is fine.
        drop(self.changes.send(change));
    }

    // A poisoned lock only says that another thread panicked; the map is valid at every await of
    // the lock because entries are replaced whole.
    fn lock_host(&self) -> MutexGuard<'_, HostState> {
        self.shared.host.lock()
    }

    pub(super) fn read_entries(&self) -> RwLockReadGuard<'_, HashMap<u32, Entry>> {
        self.shared.entries.read()
    }

    fn write_entries(&self) -> RwLockWriteGuard<'_, HashMap<u32, Entry>> {
        self.shared.entries.write()
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
