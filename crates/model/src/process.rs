//! A process as the rest of the program sees it.

use serde::{Deserialize, Serialize};

/// Identity of a process: a pid alone is reused, a pid with its start time is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProcessKey {
    /// Thread-group id in the agent's own PID namespace.
    pub pid: u32,
    /// Start time in clock ticks (1/100 s) since boot, as in field 22 of `/proc/PID/stat`.
    pub start_ticks: u64,
}

impl std::fmt::Display for ProcessKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.pid, self.start_ticks)
    }
}

impl std::str::FromStr for ProcessKey {
    type Err = ();

    /// Parses `PID-START_TICKS`.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (pid, start) = text.split_once('-').ok_or(())?;
        Ok(Self {
            pid: pid.parse().map_err(drop)?,
            start_ticks: start.parse().map_err(drop)?,
        })
    }
}

/// The container that a process runs in, read from its cgroup path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Container {
    /// Full container id (usually 64 hex digits).
    pub id: String,
    /// `docker`, `containerd`, `cri-o`, `podman` or `kubepods` when only the pod is known.
    pub runtime: String,
    /// Unique id of its Kubernetes pod, where the path has it.
    #[serde(default)]
    pub pod_uid: Option<String>,
}

/// One process of the node. Text fields are untrusted: the process chooses them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Process {
    pub key: ProcessKey,
    pub parent_pid: u32,
    /// `/proc/PID/comm`: at most 15 bytes.
    pub comm: String,
    /// Target of `/proc/PID/exe`; `None` for kernel threads and where it cannot be read.
    pub exe: Option<String>,
    /// Arguments as the process shows them, bounded in length. Masked before they leave the agent.
    pub cmdline: Vec<String>,
    pub uid: u32,
    /// Name of `uid` on the agent's host, when known.
    pub user: Option<String>,
    /// Path of the cgroup in the hierarchy that carries the containers.
    pub cgroup: String,
    pub container: Option<Container>,
    /// Inode of the network namespace.
    pub network_namespace: Option<u64>,
    pub threads: u32,
    pub rss_bytes: u64,
    /// Share of one CPU over the last refresh interval, in percent (two busy threads: 200);
    /// `None` until there are two readings.
    pub cpu_percent: Option<f64>,
    pub kernel_thread: bool,
}

/// One thread of a process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadInfo {
    pub tid: u32,
    pub name: String,
    /// User plus system time so far, in nanoseconds.
    pub cpu_time_ns: u64,
}

/// What happened to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProcessEventKind {
    Fork,
    Exec,
    Exit,
}

/// A live event from the kernel. Pids are those of the agent's PID namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessEvent {
    pub kind: ProcessEventKind,
    pub pid: u32,
    /// Pid of the parent for `Fork`, otherwise 0.
    pub parent_pid: u32,
    /// Start time in clock ticks since boot, as in [`ProcessKey`].
    pub start_ticks: u64,
    /// Nanoseconds since the Unix epoch.
    pub time_ns: u64,
}
