//! What this kernel and these privileges allow, checked one by one: for `doctor`, and for the node page.

pub use profiler_host::features::{Feature, Verdict, feature};
use profiler_host::features::{
    btf, capabilities, containers, kernel_names, landlock, pid_namespace, seccomp,
};

use crate::bpf::{self, ClockCheck};

/// Everything that can be determined without loading the programs. Blocks for some milliseconds.
pub fn examine() -> Vec<Feature> {
    vec![
        object(),
        btf(),
        stack_tables(),
        kernel_names(),
        containers(),
        pid_namespace(),
        capabilities(),
        statistics(),
        seccomp(),
        landlock(),
    ]
}

fn object() -> Feature {
    let embedded = bpf::is_embedded();
    feature(
        "ebpf_object",
        if embedded {
            Verdict::Ok
        } else {
            Verdict::Missing
        },
        if embedded {
            "embedded"
        } else {
            "this agent was built with PROFILER_SKIP_EBPF=1"
        },
        "build it with `cargo xtask build`",
    )
}

fn stack_tables() -> Feature {
    match bpf::has_loop_helper() {
        Ok(true) => feature(
            "stack_tables",
            Verdict::Ok,
            "user stacks are walked with unwind tables (bpf_loop)",
            "",
        ),
        Ok(false) => feature(
            "stack_tables",
            Verdict::Degraded,
            "this kernel has no bpf_loop: user stacks are walked by frame pointers alone",
            "use kernel 5.17 or later",
        ),
        Err(error) => feature(
            "stack_tables",
            Verdict::Degraded,
            format!("whether this kernel has bpf_loop cannot be told: {error}"),
            "run as root, or with CAP_BPF and CAP_PERFMON",
        ),
    }
}

/// Whether and by what clock samples can be taken. Loads the programs, which takes a while.
pub fn clock(denied: &[String]) -> Feature {
    let check = bpf::check_clock(denied);
    match check {
        ClockCheck::Cycles => feature("sampling_clock", Verdict::Ok, "hardware cycles", ""),
        ClockCheck::CpuClock { cycles_error } => feature(
            "sampling_clock",
            Verdict::Ok,
            format!("cpu-clock; hardware cycles are not offered: {cycles_error}"),
            "",
        ),
        ClockCheck::None { error } => feature(
            "sampling_clock",
            Verdict::Missing,
            error,
            "run as root or with CAP_PERFMON, or set kernel.perf_event_paranoid to 1 or less",
        ),
    }
}

fn statistics() -> Feature {
    match bpf::enable_statistics() {
        Ok(_disabled_when_dropped) => feature(
            "bpf_statistics",
            Verdict::Ok,
            "can be enabled (serve --bpf-stats)",
            "",
        ),
        Err(error) => feature(
            "bpf_statistics",
            Verdict::Degraded,
            format!("{error}: the agent's cost in the kernel is estimated, not measured"),
            "run with CAP_SYS_ADMIN",
        ),
    }
}
