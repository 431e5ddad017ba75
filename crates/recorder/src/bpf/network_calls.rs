//! System calls on sockets: which they are, and where the kernel keeps what their programs read. Whether they are watched
//! is said by `call_plan`.

use std::collections::HashMap;

use btf_rs::Btf;
use profiler_common::network_calls::{
    CALL_ACCEPT, CALL_COUNTERS, CALL_READ, CALL_RECVFROM, CALL_RECVMMSG, CALL_RECVMSG,
    CALL_SENDMMSG, CALL_SPLICE, CALL_WRITE, CallTimes, NetworkCallConfig,
};

use super::{
    call_plan::CallPlan,
    load_error::LoadError,
    loaded_object::LoadedObject,
    offsets::{OffsetError, member_offset},
};

const CALL_TIMES: &str = "CALL_TIMES";

/// The global of the programs.
pub(super) fn config(btf: &Btf, plan: CallPlan) -> Result<NetworkCallConfig, OffsetError> {
    let at = |structure, path: &[&'static str]| member_offset(btf, structure, path);
    let (registers_number, registers_arguments) = registers(&at)?;
    let (task_compat, compat_mask) = compat(&at)?;
    Ok(NetworkCallConfig {
        timed: u32::from(plan.timed),
        counts_writes: u32::from(plan.counts_writes),
        counts_reads: u32::from(plan.counts_reads),
        task_compat,
        compat_mask,
        task_files: at("task_struct", &["files"])?,
        files_fdt: at("files_struct", &["fdt"])?,
        fdt_max_fds: at("fdtable", &["max_fds"])?,
        fdt_fd: at("fdtable", &["fd"])?,
        file_inode: at("file", &["f_inode"])?,
        file_private_data: at("file", &["private_data"])?,
        inode_mode: at("inode", &["i_mode"])?,
        socket_sk: at("socket", &["sk"])?,
        registers_number,
        registers_arguments,
    })
}

/// Where the number and the first four arguments of a system call are.
#[cfg(target_arch = "x86_64")]
fn registers(
    at: &impl Fn(&'static str, &[&'static str]) -> Result<u32, OffsetError>,
) -> Result<(u32, [u32; 4]), OffsetError> {
    let register = |name| at("pt_regs", &[name]);
    Ok((
        register("orig_ax")?,
        [
            register("di")?,
            register("si")?,
            register("dx")?,
            register("r10")?,
        ],
    ))
}

/// The same.
#[cfg(target_arch = "aarch64")]
fn registers(
    at: &impl Fn(&'static str, &[&'static str]) -> Result<u32, OffsetError>,
) -> Result<(u32, [u32; 4]), OffsetError> {
    let first = at("pt_regs", &["regs"])?;
    Ok((
        at("pt_regs", &["syscallno"])?,
        [first, first + 8, first + 16, first + 24],
    ))
}

/// Where a thread says that it is in a call of a 32-bit program (`TS_COMPAT`).
#[cfg(target_arch = "x86_64")]
fn compat(
    at: &impl Fn(&'static str, &[&'static str]) -> Result<u32, OffsetError>,
) -> Result<(u32, u32), OffsetError> {
    Ok((at("task_struct", &["thread_info", "status"])?, 2))
}

/// The same (`TIF_32BIT`).
#[cfg(target_arch = "aarch64")]
fn compat(
    at: &impl Fn(&'static str, &[&'static str]) -> Result<u32, OffsetError>,
) -> Result<(u32, u32), OffsetError> {
    Ok((at("task_struct", &["thread_info", "flags"])?, 1 << 22))
}

/// The calls that are watched, by number, with what each is.
const KINDS: [(libc::c_long, u32); 16] = [
    (libc::SYS_read, CALL_READ),
    (libc::SYS_readv, CALL_READ),
    (libc::SYS_preadv2, CALL_READ),
    (libc::SYS_recvfrom, CALL_RECVFROM),
    (libc::SYS_recvmsg, CALL_RECVMSG),
    (libc::SYS_recvmmsg, CALL_RECVMMSG),
    (libc::SYS_splice, CALL_SPLICE),
    (libc::SYS_write, CALL_WRITE),
    (libc::SYS_writev, CALL_WRITE),
    (libc::SYS_pwritev2, CALL_WRITE),
    (libc::SYS_sendto, CALL_WRITE),
    (libc::SYS_sendmsg, CALL_WRITE),
    (libc::SYS_sendfile, CALL_WRITE),
    (libc::SYS_sendmmsg, CALL_SENDMMSG),
    (libc::SYS_accept, CALL_ACCEPT),
    (libc::SYS_accept4, CALL_ACCEPT),
];

impl LoadedObject {
    /// Tells the programs which system calls are which; before they are attached.
    pub(super) fn fill_call_kinds(&mut self) -> Result<(), LoadError> {
        for (number, kind) in KINDS {
            if let Ok(number) = u32::try_from(number) {
                self.set_number("SYSTEM_CALL_KINDS", number, kind)?;
            }
        }
        Ok(())
    }

    /// Times of calls by the cookie of their connection.
    pub fn call_times(&self) -> Result<HashMap<u64, CallTimes>, LoadError> {
        self.by_cookie(CALL_TIMES)
    }

    /// Takes out the times of a connection that has ended.
    pub fn forget_call_times(&mut self, cookie: u64) -> Result<(), LoadError> {
        self.remove(CALL_TIMES, &cookie.to_ne_bytes())
    }

    /// Calls that could not be counted or timed, by `profiler_common::network_calls`.
    pub fn call_counters(&self) -> Result<[u64; CALL_COUNTERS as usize], LoadError> {
        self.sums("CALL_COUNTS")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::offsets::kernel_btf;

    #[test]
    fn programs_of_calls_are_needed_for_times_or_where_lengths_are_missing() {
        let light = CallPlan::new(false, |_program| true);
        let timed = CallPlan::new(true, |_program| true);
        let old = CallPlan::new(false, |program| {
            !["network_send", "network_receive", "network_ready"].contains(&program)
        });
        for (plan, calls, segments) in [
            (light, false, false),
            (timed, true, false),
            (old, true, true),
        ] {
            assert_eq!(plan.needs("network_call"), calls, "{plan:?}");
            assert_eq!(plan.needs("network_call_end"), calls, "{plan:?}");
            assert_eq!(plan.needs("network_segment"), segments, "{plan:?}");
            assert!(plan.needs("network_state"));
        }
        assert!(old.counts_reads && old.counts_writes && !timed.counts_writes);
    }

    #[test]
    fn resolves_every_offset_on_this_kernel() {
        let btf = kernel_btf().expect("this kernel has BTF");
        let config = config(&btf, CallPlan::EVERYTHING).expect("every member is there");
        assert!(config.task_files > 0 && config.socket_sk > 0);
        let [first, second, ..] = config.registers_arguments;
        assert_ne!(first, second);
    }
}
