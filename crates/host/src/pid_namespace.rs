//! The agent's own PID namespace.

use std::{fs, os::linux::fs::MetadataExt as _};

/// Inode of the initial PID namespace (`PROC_PID_INIT_INO` in `include/linux/proc_ns.h`).
const INITIAL_PID_NAMESPACE: u64 = 0xEFFF_FFFC;

/// Inode of the agent's own PID namespace.
pub fn pid_namespace_inode() -> std::io::Result<u64> {
    fs::metadata("/proc/self/ns/pid").map(|metadata| metadata.st_ino())
}

/// Whether the agent runs in the initial PID namespace, whose numbers need no translation.
pub fn is_initial_pid_namespace() -> std::io::Result<bool> {
    Ok(pid_namespace_inode()? == INITIAL_PID_NAMESPACE)
}
