//! Targets of commands.

use clap::Args;
use profiler_model::Target;

use super::pods::target_of;

/// What to record; exactly one kind.
#[derive(Clone, Debug, Args)]
#[group(required = true, multiple = false)]
pub struct RecordTarget {
    /// These processes and the children they fork (repeat it, or separate by commas)
    #[arg(long, value_name = "PID", value_delimiter = ',')]
    pub pid: Vec<u32>,
    /// Every process of this container: full id, a prefix of at least 12 digits, or its name
    #[arg(long, value_name = "ID|NAME")]
    pub container: Option<String>,
    /// Every process of this pod, or of one of its containers
    #[arg(long, value_name = "[NAMESPACE/]POD[/CONTAINER]")]
    pub pod: Option<String>,
    /// Every process of the pods with these labels, written as for kubectl; also of those that start later
    #[arg(long, value_name = "SELECTOR")]
    pub labels: Option<String>,
    /// Every process with this name
    #[arg(long, value_name = "NAME")]
    pub comm: Option<String>,
    /// Every process in this cgroup or below
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<String>,
    /// Every process of the machine
    #[arg(long)]
    pub all: bool,
}

/// What to diagnose; exactly one kind.
#[derive(Clone, Debug, Args)]
#[group(required = true, multiple = false)]
pub struct DiagnoseTarget {
    /// These processes and the children they fork (repeat it, or separate by commas)
    #[arg(long, value_name = "PID", value_delimiter = ',')]
    pub pid: Vec<u32>,
    /// Every process of this container: full id, a prefix of at least 12 digits, or its name
    #[arg(long, value_name = "ID|NAME")]
    pub container: Option<String>,
    /// Every process of this pod, or of one of its containers
    #[arg(long, value_name = "[NAMESPACE/]POD[/CONTAINER]")]
    pub pod: Option<String>,
    /// Every process of the pods with these labels, written as for kubectl; also of those that start later
    #[arg(long, value_name = "SELECTOR")]
    pub labels: Option<String>,
    /// Every process with this name
    #[arg(long, value_name = "NAME")]
    pub comm: Option<String>,
}

impl RecordTarget {
    pub fn to_target(&self) -> Target {
        let Self {
            pid,
            container,
            pod,
            labels,
            comm,
            cgroup,
            all: _,
        } = self;
        if let Some(named) = target_of(pod.as_ref(), labels.as_ref(), container.as_ref()) {
            named
        } else if let Some(comm) = comm {
            Target::Comm(comm.clone())
        } else if let Some(path) = cgroup {
            Target::Cgroup(path.clone())
        } else if pid.is_empty() {
            Target::All
        } else {
            Target::Pids(pid.clone())
        }
    }
}

impl DiagnoseTarget {
    pub fn to_target(&self) -> Target {
        let Self {
            pid,
            container,
            pod,
            labels,
            comm,
        } = self;
        if let Some(named) = target_of(pod.as_ref(), labels.as_ref(), container.as_ref()) {
            named
        } else if let Some(comm) = comm {
            Target::Comm(comm.clone())
        } else {
            Target::Pids(pid.clone())
        }
    }
}
