//! Why an object, a program or a map of the kernel's BPF side is not there.

use aya::{EbpfError, maps::MapError, programs::ProgramError};

use super::{batch::BatchError, offsets::OffsetError};
use profiler_memory::MemoryShort;

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(
        "this agent was built without its eBPF object (PROFILER_SKIP_EBPF=1); build it with `cargo xtask build`"
    )]
    NotEmbedded,
    #[error(transparent)]
    Offsets(#[from] OffsetError),
    #[error("read the agent's PID namespace: {0}")]
    Namespace(std::io::Error),
    #[error("start a thread: {0}")]
    Thread(std::io::Error),
    #[error("load eBPF object: {}", chain(.0))]
    Load(#[source] Box<EbpfError>),
    #[error("program {0} is missing in the eBPF object")]
    NoProgram(&'static str),
    #[error("map {0} is missing in the eBPF object")]
    NoMap(&'static str),
    #[error("load program {program}: {}", chain(.source))]
    Program {
        program: &'static str,
        source: Box<ProgramError>,
    },
    #[error("attach program {program}: {}", chain(.source))]
    Attach {
        program: &'static str,
        source: Box<ProgramError>,
    },
    #[error("map {map}: {}", chain(.source))]
    Map {
        map: &'static str,
        source: Box<MapError>,
    },
    #[error("run program {program}: {source}")]
    Run {
        program: &'static str,
        source: std::io::Error,
    },
    #[error("this kernel has no tracepoint {hook} (Linux {minimum_kernel})")]
    NoHook {
        program: &'static str,
        hook: &'static str,
        minimum_kernel: &'static str,
    },
    #[error(
        "program {program} needs Linux 6.1: kernels before it write a warning when it is loaded, and stop if they are set to (panic_on_warn)"
    )]
    Warns { program: &'static str },
    #[error(
        "program {program} needs Linux 6.12 or 6.6.84 where the kernel is PREEMPT_RT: before, a ring buffer may sleep under the lock of a run queue"
    )]
    Realtime { program: &'static str },
    #[error("the kernel's tracepoints of epoll cannot be used: {0}")]
    NoEpoll(String),
    #[error("program {0}: this kernel's sched_switch has arguments that the agent does not know")]
    Switch(&'static str),
    #[error("{0} is denied by --deny-probe")]
    Denied(&'static str),
    #[error(transparent)]
    Drain(#[from] BatchError),
    #[error(transparent)]
    Memory(#[from] MemoryShort),
}

impl LoadError {
    /// The program that failed, when it was one.
    pub fn program(&self) -> Option<&'static str> {
        match self {
            Self::NoProgram(program)
            | Self::Program { program, .. }
            | Self::Attach { program, .. }
            | Self::Run { program, .. }
            | Self::NoHook { program, .. }
            | Self::Warns { program }
            | Self::Realtime { program }
            | Self::Switch(program)
            | Self::Denied(program) => Some(program),
            Self::NotEmbedded
            | Self::NoEpoll(_)
            | Self::Offsets(_)
            | Self::Namespace(_)
            | Self::Thread(_)
            | Self::Load(_)
            | Self::NoMap(_)
            | Self::Map { .. }
            | Self::Drain(_)
            | Self::Memory(_) => None,
        }
    }
}

/// The whole chain of causes in one line: aya puts the reason (errno, verifier) in the sources.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    if text.contains("Operation not permitted") {
        text.push_str(" (needs CAP_BPF and CAP_PERFMON, or root)");
    }
    text
}
