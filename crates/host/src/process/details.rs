//! Everything about one process, read from `/proc/PID`.

use std::io;

use profiler_image::proc_dir::{ProcDir, ProcessStat};
use profiler_model::{Process, ProcessKey};

use super::{
    cgroups::{CGROUP_LIMIT, ContainerHierarchy},
    containers::container_of,
    users::Users,
};

/// Bytes of the command line that are kept.
const CMDLINE_LIMIT: usize = 4096;
/// Arguments that are kept: 4 KiB could otherwise become 4096 empty strings.
const ARGUMENTS_LIMIT: usize = 256;

/// What the reading of a process needs to know about the host.
#[derive(Debug)]
pub(super) struct Host {
    pub hierarchy: Option<ContainerHierarchy>,
    pub users: Users,
    pub page_bytes: u64,
}

/// Reads all of a process. What the process or the kernel hides is left empty; an error means
/// that the process is gone or a zombie whose parent has not looked yet.
pub(super) fn read_process(pid: u32, host: &Host) -> io::Result<(Process, ProcessStat)> {
    let dir = ProcDir::open(pid)?;
    let stat = dir.stat()?;
    let uid = dir.status()?.uid;
    let cgroup_text = dir.read("cgroup", CGROUP_LIMIT).unwrap_or_default();
    let cgroup_text = String::from_utf8_lossy(&cgroup_text);
    let cgroup = host
        .hierarchy
        .as_ref()
        .and_then(|hierarchy| hierarchy.path_in(&cgroup_text))
        .unwrap_or_default();
    let cmdline = if stat.kernel_thread {
        Vec::new()
    } else {
        dir.read_memory("cmdline", CMDLINE_LIMIT)
            .map(|bytes| split_arguments(&bytes))
            .unwrap_or_default()
    };
    let exe = if stat.kernel_thread {
        None
    } else {
        dir.read_link("exe").ok()
    };
    let process = Process {
        key: ProcessKey {
            pid,
            start_ticks: stat.start_ticks,
        },
        parent_pid: stat.parent_pid,
        comm: stat.comm.clone(),
        exe,
        cmdline,
        uid,
        user: host.users.name(uid),
        cgroup: cgroup.to_owned(),
        container: container_of(cgroup).map(|seen| seen.container),
        network_namespace: dir.network_namespace(),
        threads: stat.threads,
        rss_bytes: stat.rss_pages.saturating_mul(host.page_bytes),
        cpu_percent: None,
        kernel_thread: stat.kernel_thread,
    };
    Ok((process, stat))
}

fn split_arguments(bytes: &[u8]) -> Vec<String> {
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    if bytes.is_empty() {
        return Vec::new();
    }
    bytes
        .split(|byte| *byte == 0)
        .take(ARGUMENTS_LIMIT)
        .map(|argument| String::from_utf8_lossy(argument).into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_split_and_bounded() {
        assert_eq!(split_arguments(b""), Vec::<String>::new());
        assert_eq!(split_arguments(b"a\0b c\0\0"), ["a", "b c", ""]);
        assert_eq!(split_arguments(b"changed title"), ["changed title"]);
        assert_eq!(split_arguments(b"\xff\0x\0"), ["\u{fffd}", "x"]);
        assert_eq!(split_arguments(&[0; 4096]).len(), ARGUMENTS_LIMIT);
    }
}
