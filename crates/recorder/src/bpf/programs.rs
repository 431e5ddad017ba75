//! The table of eBPF programs: one row for each program of the object. The loader walks it, the status board, `doctor`
//! and docs/kernel-support.md list it.

/// One program of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramRow {
    /// The name in the object, and the one that `--deny-probe` takes.
    pub name: &'static str,
    pub hook: Hook,
    /// Oldest kernel that has what the program needs, not older than the floor of 5.15.
    pub minimum_kernel: &'static str,
    pub group: Group,
    /// Kernels on which it is refused although they could run it.
    pub hazard: Hazard,
    /// What is missing where it cannot run: half a sentence without a final period.
    pub without: &'static str,
}

/// Where a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// A tracepoint by its BTF type (`tp_btf`), with the kernel's name.
    TracepointBtf(&'static str),
    /// Tracepoints of system calls, with how their names begin in tracefs.
    SystemCalls(&'static str),
    /// A perf event on each CPU.
    PerfEvent,
    /// A BPF iterator, with what it visits. The agent runs it.
    Iterator(&'static str),
    /// An instruction of a program in user space.
    Uprobe,
    /// None: the agent runs it (`BPF_PROG_TEST_RUN` of a raw tracepoint).
    Command,
}

/// Programs that are loaded for the same plan. They are attached in the order of their rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Forks, execs and exits, in every object.
    ProcessEvents,
    /// Samples of on-CPU tasks.
    Samples,
    /// Samples of wall-clock tasks.
    WallSamples,
    /// Who ends waits.
    Wakers,
    /// Time on the CPU between two switches, in wall-clock tasks.
    Slices,
    /// Waits of off-CPU and wall-clock tasks.
    Waits,
    /// Passes over threads that sleep.
    SleepingThreads,
    /// Names of kernel code, in tasks of samples and waits.
    KernelNames,
    EventLoops,
    /// Connections, including those of Unix sockets.
    Connections,
    /// Received segments, where the kernel does not announce that data has arrived.
    Segments,
    /// System calls on sockets: their times, and their bytes where the kernel does not announce them.
    Calls,
    /// Room in the table of connections.
    Eviction,
    /// How much payload of which connection is captured, in tasks of requests.
    PayloadControl,
    /// Plaintext of TLS libraries.
    Tls,
    /// Probes that run as long as the agent, in the object of process events. Each is read by a file of its own.
    Standing,
}

/// Why a kernel must not be asked to load a program (`kernel_faults`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hazard {
    None,
    /// It uses maps that take memory as it is needed (`BPF_F_NO_PREALLOC`): kernels before 6.1 write a warning.
    GrowingMaps,
    /// It fills a ring buffer in an interrupt or under the lock of a run queue: with `PREEMPT_RT` that may sleep before
    /// 6.12 and 6.6.84.
    RingBufferInScheduler,
}

impl Group {
    /// The entry of the status board that stands for all programs of the group, and by which they can be denied;
    /// none where each has its own.
    pub const fn probe(self) -> Option<&'static str> {
        match self {
            Self::Samples => Some("on_cpu"),
            Self::WallSamples => Some("wall"),
            Self::Slices | Self::Waits => Some("off_cpu"),
            Self::Wakers => Some("wakers"),
            Self::EventLoops => Some("event_loop"),
            Self::ProcessEvents
            | Self::SleepingThreads
            | Self::KernelNames
            | Self::Connections
            | Self::Segments
            | Self::Calls
            | Self::Eviction
            | Self::PayloadControl
            | Self::Tls
            | Self::Standing => None,
        }
    }

    /// What needs the group, for `doctor` and docs/kernel-support.md.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ProcessEvents => "process_events",
            Self::Samples => "samples",
            Self::WallSamples => "wall_samples",
            Self::Wakers => "wakers",
            Self::Slices => "slices",
            Self::Waits => "waits",
            Self::SleepingThreads => "sleeping_threads",
            Self::KernelNames => "kernel_names",
            Self::EventLoops => "event_loops",
            Self::Connections => "connections",
            Self::Segments => "segments",
            Self::Calls => "calls",
            Self::Eviction => "eviction",
            Self::PayloadControl => "payload_control",
            Self::Tls => "tls",
            Self::Standing => "standing",
        }
    }
}

impl Hook {
    /// The kernel's name of what the program is attached to; none where it has no name of its own.
    pub const fn target(self) -> Option<&'static str> {
        match self {
            Self::TracepointBtf(target) | Self::SystemCalls(target) | Self::Iterator(target) => {
                Some(target)
            }
            Self::PerfEvent | Self::Uprobe | Self::Command => None,
        }
    }

    /// The kind of hook, as kernel documentation calls it.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::TracepointBtf(_) => "tp_btf",
            Self::SystemCalls(_) => "tracepoint",
            Self::PerfEvent => "perf_event",
            Self::Iterator(_) => "iter",
            Self::Uprobe => "uprobe",
            Self::Command => "raw_tp, run by the agent",
        }
    }
}

impl std::fmt::Display for Hook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::SystemCalls(prefix) => write!(f, "tracepoint {prefix}*"),
            Self::Iterator(visited) => write!(f, "iter/{visited}"),
            Self::TracepointBtf(target) => write!(f, "tp_btf {target}"),
            Self::PerfEvent | Self::Uprobe | Self::Command => f.write_str(self.kind()),
        }
    }
}

/// The rows of some groups, in the order of the table.
pub fn programs_of(groups: &[Group]) -> impl Iterator<Item = &'static ProgramRow> {
    PROGRAMS
        .iter()
        .filter(move |row| groups.contains(&row.group))
}

/// Programs that watch connections and have an entry of their own in the status board.
pub fn network_programs() -> impl Iterator<Item = &'static ProgramRow> {
    programs_of(&[Group::Connections, Group::Segments, Group::Calls])
}

/// The row of a program; none for another name.
pub fn find(program: &str) -> Option<&'static ProgramRow> {
    PROGRAMS.iter().find(|row| row.name == program)
}

/// Whether a program of the object belongs to a group.
pub fn is_of(group: Group, program: &str) -> bool {
    programs_of(&[group]).any(|row| row.name == program)
}

/// The oldest kernel for a group of programs.
pub fn minimum_kernel(group: Group) -> &'static str {
    programs_of(&[group])
        .next()
        .map_or(FLOOR, |row| row.minimum_kernel)
}

/// The row of a program, for constants: there, a name without a row is an error of the compiler.
pub(crate) const fn row(name: &str) -> &'static ProgramRow {
    let mut index = 0;
    while !is_same(PROGRAMS[index].name, name) {
        index += 1;
    }
    &PROGRAMS[index]
}

const fn is_same(left: &str, right: &str) -> bool {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    if left.len() != right.len() {
        return false;
    }
    let mut at = 0;
    while at < left.len() {
        if left[at] != right[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// Older kernels are not supported.
const FLOOR: &str = "5.15";

use Group::{
    Calls, Connections, EventLoops, Eviction, KernelNames, PayloadControl, ProcessEvents, Samples,
    Segments, SleepingThreads, Slices, Tls, Waits, Wakers, WallSamples,
};
use Hook::{Command, PerfEvent, SystemCalls, TracepointBtf, Uprobe};

const fn program(
    name: &'static str,
    hook: Hook,
    minimum_kernel: &'static str,
    group: Group,
    without: &'static str,
) -> ProgramRow {
    ProgramRow {
        name,
        hook,
        minimum_kernel,
        group,
        hazard: Hazard::None,
        without,
    }
}

impl ProgramRow {
    const fn grows_maps(self) -> Self {
        Self {
            hazard: Hazard::GrowingMaps,
            ..self
        }
    }

    const fn in_scheduler(self) -> Self {
        Self {
            hazard: Hazard::RingBufferInScheduler,
            ..self
        }
    }
}

/// Each program of the object. Within a plan they are attached from top to bottom.
#[rustfmt::skip]
pub static PROGRAMS: &[ProgramRow] = &[
    program("process_fork", TracepointBtf("sched_process_fork"), FLOOR, ProcessEvents, "children of targets are looked for in /proc once a second"),
    program("process_exec", TracepointBtf("sched_process_exec"), FLOOR, ProcessEvents, "new programs are looked for in /proc once a second"),
    program("process_exit", TracepointBtf("sched_process_exit"), FLOOR, ProcessEvents, "pids of exited targets stay in the filter until the task ends"),

    program("on_cpu", PerfEvent, FLOOR, Samples, "on-CPU tasks fail with the reason").in_scheduler(),
    program("wall_sample", PerfEvent, FLOOR, WallSamples, "wall-clock tasks fail with the reason").in_scheduler(),

    // Before what ends waits: no wait is seen to end whose waker would be missed.
    program("wakers_waking", TracepointBtf("sched_waking"), FLOOR, Wakers, "who ended the waits is not known").in_scheduler(),
    // Before the program that takes stacks, whose time is then no time of the thread that leaves.
    program("wall_switch", TracepointBtf("sched_switch"), FLOOR, Slices, "wall-clock tasks fail with the reason").in_scheduler(),
    // The wake-up comes first, so that no wait is seen to begin whose wake-up would be missed.
    program("off_cpu_wakeup", TracepointBtf("sched_wakeup"), FLOOR, Waits, "off-CPU and wall-clock tasks fail with the reason").in_scheduler(),
    program("off_cpu_switch", TracepointBtf("sched_switch"), FLOOR, Waits, "off-CPU and wall-clock tasks fail with the reason").in_scheduler(),
    program("off_cpu_asleep", Hook::Iterator("task"), FLOOR, SleepingThreads, "threads that sleep when a task begins are counted from their next wait on"),
    program("off_cpu_sleepers", Hook::Iterator("task"), FLOOR, SleepingThreads, "threads that still sleep at the end of a task have no kernel stack"),

    program("kernel_names", Command, FLOOR, KernelNames, "names of kernel functions are read from /proc/kallsyms, which takes longer and more memory"),

    program("event_loop_call", SystemCalls("sys_enter_epoll_"), FLOOR, EventLoops, "event loops are not watched, and the task says so").grows_maps(),
    program("event_loop_return", SystemCalls("sys_exit_epoll_"), FLOOR, EventLoops, "event loops are not watched, and the task says so").grows_maps(),
    program("event_loop_exit", TracepointBtf("sched_process_exit"), FLOOR, EventLoops, "event loops are not watched, and the task says so"),

    // The end of connections comes first, so that no entry is made that would stay for ever.
    program("network_destroy", TracepointBtf("tcp_destroy_sock"), FLOOR, Connections, "the end of a connection is not seen"),
    program("network_state", TracepointBtf("inet_sock_set_state"), FLOOR, Connections, "no times to connect and to close; the end that asks may be unknown"),
    program("network_ready", TracepointBtf("sk_data_ready"), "6.3", Connections, "the arrival of data is taken from received segments; no answers of name servers"),
    program("network_retransmit", TracepointBtf("tcp_retransmit_skb"), FLOOR, Connections, "no retransmits"),
    program("network_drop", TracepointBtf("kfree_skb"), FLOOR, Connections, "no dropped packets"),
    program("network_reset_sent", TracepointBtf("tcp_send_reset"), FLOOR, Connections, "no resets"),
    program("network_reset_received", TracepointBtf("tcp_receive_reset"), FLOOR, Connections, "no resets"),
    program("network_error", TracepointBtf("inet_sk_error_report"), FLOOR, Connections, "no errors of sockets"),
    program("network_receive", TracepointBtf("sock_recv_length"), "6.3", Connections, "reads are counted at system calls; no requests"),
    program("network_send", TracepointBtf("sock_send_length"), "6.3", Connections, "writes and RTT are counted at system calls; no requests"),
    program("network_segment", TracepointBtf("tcp_probe"), FLOOR, Segments, "below 6.3, how long data waits to be read is not known"),
    // The ends of calls before their beginnings.
    program("network_call_end", TracepointBtf("sys_exit"), FLOOR, Calls, "no times of calls; below 6.3 also no reads and writes"),
    program("network_call", TracepointBtf("sys_enter"), FLOOR, Calls, "no times of calls; below 6.3 also no reads and writes"),
    program("network_evict", Command, FLOOR, Eviction, "connections that rest are not taken out of a table that is nearly full").grows_maps(),

    program("network_capture", Command, "6.3", PayloadControl, "no requests").grows_maps(),

    program("tls_call", Uprobe, FLOOR, Tls, "no requests inside TLS").grows_maps(),
    program("tls_result", Uprobe, FLOOR, Tls, "no requests inside TLS").grows_maps(),
    program("tls_ciphertext", Uprobe, FLOOR, Tls, "no requests inside TLS").grows_maps(),
    program("tls_rustls", Uprobe, FLOOR, Tls, "no requests inside TLS").grows_maps(),
    program("tls_rustls_result", Uprobe, FLOOR, Tls, "no requests inside TLS").grows_maps(),
];

#[cfg(test)]
#[path = "programs_tests.rs"]
mod tests;
