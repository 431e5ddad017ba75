//! Makes room in the kernel's table of connections, and counts the runs that the kernel left out.

use std::{
    collections::BTreeMap,
    os::fd::{AsFd as _, AsRawFd as _},
};

use aya::programs::{RawTracePointRunOptions, TestRun as _};

use super::{
    load_error::LoadError,
    loaded_object::LoadedObject,
    programs::{ProgramRow, network_programs, row},
};

const EVICT: &ProgramRow = row("network_evict");

/// Command number in `enum bpf_cmd`.
const BPF_OBJ_GET_INFO_BY_FD: libc::c_long = 15;
/// `struct bpf_prog_info` up to `recursion_misses`, in numbers of eight bytes.
const INFO_NUMBERS: usize = 27;

/// Attributes of that command in `union bpf_attr`.
#[repr(C)]
struct InfoAttributes {
    bpf_fd: u32,
    info_len: u32,
    info: u64,
}

impl LoadedObject {
    /// Loads the program of [`Self::evict`].
    pub(super) fn load_evictor(&mut self) -> Result<(), LoadError> {
        self.load_command(EVICT)
    }

    /// Marks a connection that rests, or takes out one that was marked and not used since
    /// (`EVICTION_*`); what it has counted comes as a record. False when it was not done.
    pub fn evict(&mut self, cookie: u64, action: u64) -> Result<bool, LoadError> {
        let mut options = RawTracePointRunOptions::new();
        let [first, second, ..] = &mut options.args;
        (*first, *second) = (cookie, action);
        let result = self
            .command(EVICT)?
            .test_run(options)
            .map_err(|source| LoadError::Run {
                program: EVICT.name,
                source: std::io::Error::other(source),
            })?;
        Ok(result.return_value == 1)
    }

    /// Returns when every program that was at work at the call has ended. On kernels with CPUs that
    /// have no ticks (`nohz_full`) it returns at once: there the time between two looks has to do.
    pub fn let_programs_end() {
        const MEMBARRIER_CMD_GLOBAL: libc::c_long = 1;
        // SAFETY: a system call without pointers. Programs run with preemption off, which the grace
        // period behind this command waits for.
        let result = unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) };
        if result < 0 {
            tracing::debug!(error = %std::io::Error::last_os_error(), "membarrier");
        }
    }

    /// Runs of the network programs that the kernel left out because the same program was at work on
    /// that CPU, by program; only those that have some (kernel 5.12).
    pub fn missed_runs(&mut self) -> BTreeMap<String, u64> {
        let mut missed = BTreeMap::new();
        for program in network_programs() {
            let loaded = self.ebpf().program(program.name);
            let Some(fd) = loaded.and_then(|program| program.fd().ok()) else {
                continue;
            };
            match recursion_misses(fd.as_fd().as_raw_fd()) {
                Ok(0) => {}
                Ok(number) => {
                    missed.insert(program.name.to_owned(), number);
                }
                Err(error) => tracing::debug!(program = program.name, %error, "missed runs"),
            }
        }
        missed
    }
}

fn recursion_misses(program: std::os::fd::RawFd) -> std::io::Result<u64> {
    let mut info = [0_u64; INFO_NUMBERS];
    let mut attributes = InfoAttributes {
        bpf_fd: u32::try_from(program).unwrap_or(u32::MAX),
        info_len: u32::try_from(size_of_val(&info)).unwrap_or(0),
        info: info.as_mut_ptr() as u64,
    };
    // SAFETY: the kernel writes at most `info_len` bytes to `info`, which outlives the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_OBJ_GET_INFO_BY_FD,
            &raw mut attributes,
            size_of::<InfoAttributes>(),
        )
    };
    if result < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // An older kernel leaves it as it was.
    Ok(info.last().copied().unwrap_or(0))
}
