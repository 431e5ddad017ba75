//! The programs that watch event loops, and their table.

use std::{
    io,
    os::fd::{AsFd as _, AsRawFd as _},
    time::Instant,
};

use aya::{
    Btf,
    programs::{ProgramError, TracePoint, tp_btf::BtfTracePointLink},
};
use profiler_common::event_loop::LoopThread;

use super::{
    features::online_cpus,
    load_error::LoadError,
    loaded,
    loaded_object::LoadedObject,
    perf_event::{EventKind, PerfEvent},
    programs::{Group, Hook, ProgramRow, programs_of, row},
    tracefs::TraceFs,
};

/// The system calls, behind `epoll_`; no kernel lacks all of them.
const CALLS: [&str; 3] = ["wait", "pwait", "pwait2"];
/// The programs at their entries and returns, and the prefix of the tracepoints of each.
fn call_programs() -> impl Iterator<Item = (&'static ProgramRow, &'static str)> {
    programs_of(&[Group::EventLoops]).filter_map(|row| match row.hook {
        Hook::SystemCalls(prefix) => Some((row, prefix)),
        Hook::TracepointBtf(_)
        | Hook::PerfEvent
        | Hook::Iterator(_)
        | Hook::Uprobe
        | Hook::Command => None,
    })
}

/// The end of a thread.
const EXIT_PROGRAM: &ProgramRow = row("event_loop_exit");

const TABLE: &str = "LOOPS";

/// What to do where the tracepoints cannot be found.
const REMEDY: &str = "mount tracefs at /sys/kernel/tracing, or run with CAP_SYS_ADMIN";

/// Attached programs; detached when dropped.
#[derive(Debug)]
pub struct EventLoopLinks {
    _calls: Vec<PerfEvent>,
    _exit: BtfTracePointLink,
}

impl LoadedObject {
    /// Loads the programs, without attaching them.
    pub(super) fn load_event_loop(&mut self, btf: &Btf) -> Result<(), LoadError> {
        self.allow_group(Group::EventLoops)?;
        for (row, _prefix) in call_programs() {
            self.allow_program(row)?;
            let name = row.name;
            let began = Instant::now();
            self.call_program(name)?
                .load()
                .map_err(|source| load_failed(name, source))?;
            self.note_load_time(name, began.elapsed());
        }
        self.load_tracepoint(EXIT_PROGRAM, btf).map(drop)
    }

    /// Starts watching event loops; the object was loaded for it. All the calls that this kernel has
    /// or none: a thread that leaves by one of them may come back by another.
    pub fn attach_event_loop(&mut self) -> Result<EventLoopLinks, LoadError> {
        if let Some(error) = self.take_event_loop_failure() {
            return Err(error);
        }
        let failed = |error: io::Error| LoadError::NoEpoll(format!("{error} ({REMEDY})"));
        let tracefs = TraceFs::open().map_err(failed)?;
        let exit = self.attach_tracepoint(EXIT_PROGRAM)?;
        // The events are of one CPU; their programs are of the tracepoints.
        let cpu = online_cpus().first().copied().unwrap_or(0);
        let mut calls = Vec::new();
        for (row, prefix) in call_programs() {
            let name = row.name;
            let program = self.call_program(name)?.fd();
            let program = program.map_err(|source| load_failed(name, source))?;
            let program = program.as_fd();
            for call in CALLS {
                let number = tracefs.system_call(&format!("{prefix}{call}"));
                if let Some(number) = number.map_err(failed)? {
                    let event = PerfEvent::attach(EventKind::Tracepoint { number }, cpu, program);
                    calls.push(event.map_err(|error| {
                        LoadError::NoEpoll(format!(
                            "attach {name} to {prefix}{call}: {error}: {}",
                            error.io_error
                        ))
                    })?);
                }
            }
        }
        if calls.is_empty() {
            return Err(LoadError::NoEpoll(
                "this kernel has none of them (CONFIG_FTRACE_SYSCALLS)".to_owned(),
            ));
        }
        Ok(EventLoopLinks {
            _calls: calls,
            _exit: exit,
        })
    }

    /// Threads that have returned from epoll and have not ended; others write the table meanwhile.
    pub fn loop_threads(&self) -> Result<Vec<LoopThread>, LoadError> {
        let mut threads = Vec::new();
        self.read_map(TABLE, |_tid: u32, thread: LoopThread| {
            // One that is being made has no number yet; one that ended has been sent.
            if thread.pid != 0 && thread.header.kind == 0 {
                threads.push(thread);
            }
        })?;
        Ok(threads)
    }

    /// Calls that the kernel did not run the programs for, because another one was at work on that
    /// CPU; kernels that do not count them tell 0.
    pub fn missed_loop_calls(&self) -> u64 {
        call_programs()
            .filter_map(|(row, _prefix)| {
                let fd = self.program(row.name)?.fd().ok()?;
                loaded::missed_runs(fd.as_fd().as_raw_fd())
            })
            .sum()
    }

    fn call_program(&mut self, name: &'static str) -> Result<&mut TracePoint, LoadError> {
        let program = self.ebpf().program_mut(name);
        let program = program.ok_or(LoadError::NoProgram(name))?;
        program
            .try_into()
            .map_err(|source| load_failed(name, source))
    }
}

fn load_failed(program: &'static str, source: ProgramError) -> LoadError {
    LoadError::Program {
        program,
        source: source.into(),
    }
}
