//! The programs that watch event loops, and their table.

use std::{
    os::fd::{AsFd as _, AsRawFd as _},
    time::Instant,
};

use aya::{
    Btf,
    programs::{
        FEntry, FExit, ProgramError, fentry::FEntryLink, fexit::FExitLink,
        tp_btf::BtfTracePointLink,
    },
};
use profiler_common::event_loop::LoopThread;

use super::{
    loaded,
    loader::{LoadError, LoadedObject},
};

/// What one system call is watched with.
#[derive(Clone, Copy, Debug)]
struct Call {
    name: &'static str,
    entry: &'static str,
    end: &'static str,
}

const CALLS: [Call; 3] = [
    Call {
        name: "epoll_wait",
        entry: "event_loop_wait",
        end: "event_loop_wait_end",
    },
    Call {
        name: "epoll_pwait",
        entry: "event_loop_pwait",
        end: "event_loop_pwait_end",
    },
    Call {
        name: "epoll_pwait2",
        entry: "event_loop_pwait2",
        end: "event_loop_pwait2_end",
    },
];

/// The end of a thread, with the kernel's name of the hook.
const EXIT_PROGRAM: (&str, &str) = ("event_loop_exit", "sched_process_exit");

/// What the functions of system calls are called.
#[cfg(target_arch = "x86_64")]
const PREFIX: &str = "__x64_sys_";
/// The same.
#[cfg(target_arch = "aarch64")]
const PREFIX: &str = "__arm64_sys_";

const TABLE: &str = "LOOPS";

/// What became of loading the programs.
#[derive(Debug, Default)]
pub(super) struct EventLoopLoad {
    calls: Vec<Call>,
    failure: Option<LoadError>,
}

/// Attached programs; detached when dropped.
#[derive(Debug)]
pub struct EventLoopLinks {
    _ends: Vec<FExitLink>,
    _entries: Vec<FEntryLink>,
    _exit: BtfTracePointLink,
}

impl LoadedObject {
    /// Loads the programs of the calls that this kernel has. All of them or none: a thread that
    /// leaves by one call may come back by another.
    pub(super) fn load_event_loop(&mut self, btf: &Btf) -> EventLoopLoad {
        let mut load = EventLoopLoad::default();
        match self.try_load_event_loop(btf) {
            Ok(calls) => load.calls = calls,
            Err(error) => load.failure = Some(error),
        }
        load
    }

    fn try_load_event_loop(&mut self, btf: &Btf) -> Result<Vec<Call>, LoadError> {
        self.allow("event_loop")?;
        let mut calls = Vec::new();
        let mut missing = String::new();
        for call in CALLS {
            let function = format!("{PREFIX}{}", call.name);
            match self.load_call(call, &function, btf)? {
                Loaded::Yes => calls.push(call),
                Loaded::NoFunction(reason) => missing = reason,
            }
        }
        if calls.is_empty() {
            return Err(LoadError::NoEpoll(missing));
        }
        let (program, hook) = EXIT_PROGRAM;
        self.load_tracepoint(program, hook, btf)?;
        Ok(calls)
    }

    fn load_call(&mut self, call: Call, function: &str, btf: &Btf) -> Result<Loaded, LoadError> {
        let began = Instant::now();
        match self.entry(call.entry)?.load(function, btf) {
            Ok(()) => self.note_load_time(call.entry, began.elapsed()),
            Err(ProgramError::Btf(error)) => return Ok(Loaded::NoFunction(error.to_string())),
            Err(error) => return Err(load_failed(call.entry, error)),
        }
        let began = Instant::now();
        self.end(call.end)?
            .load(function, btf)
            .map_err(|error| load_failed(call.end, error))?;
        self.note_load_time(call.end, began.elapsed());
        Ok(Loaded::Yes)
    }

    /// Starts watching event loops; the object was loaded for it.
    pub fn attach_event_loop(&mut self) -> Result<EventLoopLinks, LoadError> {
        if let Some(error) = self.event_loop.failure.take() {
            return Err(error);
        }
        let (mut entries, mut ends) = (Vec::new(), Vec::new());
        let exit = self.attach_tracepoint(EXIT_PROGRAM.0)?;
        for call in self.event_loop.calls.clone() {
            let failed = |source| attach_failed(call.entry, source);
            let program = self.entry(call.entry)?;
            let link = program.attach().map_err(failed)?;
            entries.push(program.take_link(link).map_err(failed)?);
            let failed = |source| attach_failed(call.end, source);
            let program = self.end(call.end)?;
            let link = program.attach().map_err(failed)?;
            ends.push(program.take_link(link).map_err(failed)?);
        }
        Ok(EventLoopLinks {
            _ends: ends,
            _entries: entries,
            _exit: exit,
        })
    }

    /// Why event loops cannot be watched, once.
    pub(super) fn take_event_loop_failure(&mut self) -> Option<LoadError> {
        self.event_loop.failure.take()
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

    /// Calls that the kernel did not run the programs for, because they were at work on that CPU.
    pub fn missed_loop_calls(&self) -> u64 {
        let programs = self.event_loop.calls.iter();
        programs
            .flat_map(|call| [call.entry, call.end])
            .filter_map(|name| {
                let fd = self.program(name)?.fd().ok()?;
                loaded::missed_runs(fd.as_fd().as_raw_fd())
            })
            .sum()
    }

    fn entry(&mut self, name: &'static str) -> Result<&mut FEntry, LoadError> {
        let program = self.ebpf().program_mut(name);
        let program = program.ok_or(LoadError::NoProgram(name))?;
        program
            .try_into()
            .map_err(|source| load_failed(name, source))
    }

    fn end(&mut self, name: &'static str) -> Result<&mut FExit, LoadError> {
        let program = self.ebpf().program_mut(name);
        let program = program.ok_or(LoadError::NoProgram(name))?;
        program
            .try_into()
            .map_err(|source| load_failed(name, source))
    }
}

/// What became of a call's programs.
#[derive(Debug)]
enum Loaded {
    Yes,
    /// The kernel does not have the function, or does not describe it.
    NoFunction(String),
}

fn load_failed(program: &'static str, source: ProgramError) -> LoadError {
    LoadError::Program {
        program,
        source: source.into(),
    }
}

fn attach_failed(program: &'static str, source: ProgramError) -> LoadError {
    LoadError::Attach {
        program,
        source: source.into(),
    }
}
