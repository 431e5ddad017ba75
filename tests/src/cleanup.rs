//! Everything a run creates outside its own memory, and how it goes away again.
//!
//! Each resource is registered with a [`Guard`]. It is released when the guard is dropped (also by
//! the unwinding of a panic) or when SIGINT, SIGTERM or SIGHUP arrives. What a killed run left
//! behind carries the run's pid and start time in its name and is removed by the next run.

use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions},
    path::{Path, PathBuf},
    process::Command,
    sync::{Mutex, MutexGuard, Once, OnceLock, PoisonError},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result};
use rustix::{
    fs::{FlockOperation, flock},
    process::{Pid, Signal},
};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
    low_level::emulate_default_handler,
};

use crate::wait::wait_until;

/// First part of every name that a run makes up.
const PREFIX: &str = "pfl";
/// Looks in a row that must find nothing before a signalled run may end.
const SETTLED_ROUNDS: u32 = 20;
const NETNS_FOLDER: &str = "/run/netns";
const CGROUP_ROOT: &str = "/sys/fs/cgroup";

/// Something to release; in the order in which a signal releases them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// Killed with everything that still belongs to it.
    ProcessGroup(i32),
    Netns(String),
    Cgroup(PathBuf),
    /// With what is mounted in it.
    Directory(PathBuf),
}

impl Resource {
    fn release(&self) {
        match self {
            Self::ProcessGroup(group) => {
                if let Some(group) = Pid::from_raw(*group) {
                    // The group may be gone already, and that is what we want.
                    rustix::process::kill_process_group(group, Signal::KILL).ok();
                }
            }
            Self::Netns(name) => remove_netns(name),
            Self::Cgroup(path) => remove_cgroup(path),
            Self::Directory(path) => remove_directory(path),
        }
    }
}

/// Releases its resource when dropped.
#[derive(Debug)]
pub struct Guard(u64);

impl Guard {
    /// The resource is gone by itself: its name may be another's by now.
    pub(crate) fn disarm(self) {
        registry().entries.remove(&self.0);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut registry = registry();
        if registry.closing {
            leave_the_rest_to_the_handler(registry);
        }
        let resource = registry.entries.remove(&self.0);
        drop(registry);
        if let Some(resource) = resource {
            resource.release();
        }
    }
}

#[derive(Debug, Default)]
struct Registry {
    next: u64,
    entries: BTreeMap<u64, Resource>,
    /// A signal has arrived: the handler removes everything and nothing may be added.
    closing: bool,
}

fn registry() -> MutexGuard<'static, Registry> {
    static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
        next: 0,
        entries: BTreeMap::new(),
        closing: false,
    });
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers `resource`. The first call also installs the signal handler (unless
/// [`handle_signals_yourself`] was called) and removes what dead runs left behind.
pub fn guard(resource: Resource) -> Guard {
    static FIRST: Once = Once::new();
    FIRST.call_once(|| {
        remove_leftovers();
        install_handler();
    });
    let mut registry = registry();
    if registry.closing {
        leave_the_rest_to_the_handler(registry);
    }
    registry.next += 1;
    let key = registry.next;
    registry.entries.insert(key, resource);
    Guard(key)
}

/// Blocks for ever: the handler ends the program when it is done.
fn leave_the_rest_to_the_handler(registry: MutexGuard<'static, Registry>) -> ! {
    drop(registry);
    loop {
        thread::park();
    }
}

static OWN_SIGNALS: OnceLock<()> = OnceLock::new();

/// Says that the caller handles signals and drops all guards itself. Call it before [`guard`].
pub fn handle_signals_yourself() {
    OWN_SIGNALS.get_or_init(|| ());
}

fn install_handler() {
    if OWN_SIGNALS.get().is_some() {
        return;
    }
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM, SIGHUP]) else {
        return;
    };
    thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            release_all();
            drop(emulate_default_handler(signal));
        }
    });
}

/// Releases everything, and what a thread was just making when the signal came.
fn release_all() {
    let mut resources: Vec<Resource> = {
        let mut registry = registry();
        registry.closing = true;
        std::mem::take(&mut registry.entries)
            .into_values()
            .collect()
    };
    resources.sort();
    let mut clean_rounds = 0;
    let settled = || {
        for resource in resources.drain(..) {
            resource.release();
        }
        resources = leftovers_of(Some(std::process::id()));
        clean_rounds = if resources.is_empty() {
            clean_rounds + 1
        } else {
            0
        };
        clean_rounds >= SETTLED_ROUNDS
    };
    wait_until("everything is gone", Duration::from_secs(10), settled).ok();
}

/// Name for a resource of this run: `pfl-PID-STARTTICKS-what`.
pub fn unique_name(what: &str) -> String {
    static RUN: OnceLock<String> = OnceLock::new();
    let run = RUN.get_or_init(|| {
        let pid = std::process::id();
        format!("{PREFIX}-{pid}-{}", start_ticks(pid).unwrap_or(0))
    });
    format!("{run}-{what}")
}

/// A fresh directory that everybody may enter.
pub fn scratch_directory(what: &str) -> Result<(PathBuf, Guard)> {
    let directory = tempfile::Builder::new()
        .prefix(&format!("{}-", unique_name(what)))
        .tempdir()
        .context("create scratch directory")?
        .keep();
    let guard = guard(Resource::Directory(directory.clone()));
    rustix::fs::chmod(&directory, rustix::fs::Mode::from_raw_mode(0o755))
        .context("open up scratch directory")?;
    Ok((directory, guard))
}

/// Names of namespaces, cgroups and directories of runs whose process is gone, and of `owner`.
pub fn leftovers_of(owner: Option<u32>) -> Vec<Resource> {
    let dead = |name: &str| {
        parse_owner(name).is_some_and(|(pid, start)| {
            owner.map_or_else(|| start_ticks(pid) != Some(start), |owner| owner == pid)
        })
    };
    let mut found = Vec::new();
    for path in children(Path::new(NETNS_FOLDER)) {
        if let Some(name) = name_of(&path).filter(|name| dead(name)) {
            found.push(Resource::Netns(name.to_owned()));
        }
    }
    for hierarchy in children(Path::new(CGROUP_ROOT)) {
        for path in children(&hierarchy)
            .into_iter()
            .filter(|path| path.is_dir())
        {
            if name_of(&path).is_some_and(dead) {
                found.push(Resource::Cgroup(path));
            }
        }
    }
    for path in children(&std::env::temp_dir()) {
        if name_of(&path).is_some_and(dead) {
            found.push(Resource::Directory(path));
        }
    }
    found
}

/// Removes what runs that were killed could not remove.
pub fn remove_leftovers() {
    // Without the lock there is no other run that it could disturb.
    let _lock = leftovers_lock();
    for resource in leftovers_of(None) {
        resource.release();
    }
}

/// While it is held, no test process removes what a killed one has left.
pub fn leftovers_lock() -> Result<File> {
    let path = std::env::temp_dir().join(format!("{PREFIX}-leftovers"));
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .with_context(|| format!("open {}", path.display()))?;
    flock(&file, FlockOperation::LockExclusive)
        .with_context(|| format!("lock {}", path.display()))?;
    Ok(file)
}

fn children(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default()
}

fn name_of(path: &Path) -> Option<&str> {
    path.file_name().and_then(|name| name.to_str())
}

fn parse_owner(name: &str) -> Option<(u32, u64)> {
    let mut parts = name.strip_prefix(PREFIX)?.strip_prefix('-')?.splitn(3, '-');
    let pid = parts.next()?.parse().ok()?;
    let start = parts.next()?.parse().ok()?;
    parts.next()?;
    Some((pid, start))
}

/// Start time of a process in clock ticks since boot; `None` when there is no such process.
pub fn start_ticks(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let after_name = stat.rsplit_once(')')?.1;
    after_name.split_whitespace().nth(19)?.parse().ok()
}

fn remove_netns(name: &str) {
    if let Ok(output) = Command::new("ip").args(["netns", "pids", name]).output() {
        kill_all(&String::from_utf8_lossy(&output.stdout));
    }
    drop(Command::new("ip").args(["netns", "del", name]).output());
}

fn remove_directory(path: &Path) {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    // Later mounts may lie on earlier ones.
    for mount in mounts.lines().rev() {
        let place = mount.split(' ').nth(4).map(Path::new);
        if let Some(place) = place.filter(|place| place.starts_with(path)) {
            // Lazily: what is still open there goes on.
            drop(Command::new("umount").arg("--lazy").arg(place).output());
        }
    }
    drop(std::fs::remove_dir_all(path));
}

/// Kills what still runs in the cgroup and its children, then removes them all.
fn remove_cgroup(path: &Path) {
    for child in children(path).iter().filter(|child| child.is_dir()) {
        remove_cgroup(child);
    }
    let gone = || {
        let pids = std::fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
        kill_all(&pids);
        !path.exists() || std::fs::remove_dir(path).is_ok()
    };
    drop(wait_until("cgroup is empty", Duration::from_secs(5), gone));
}

fn kill_all(pids: &str) {
    let own = rustix::process::getpid();
    for pid in pids
        .lines()
        .filter_map(|line| line.trim().parse().ok())
        .filter_map(Pid::from_raw)
    {
        if pid != own {
            rustix::process::kill_process(pid, Signal::KILL).ok();
        }
    }
}
