//! Which build this is.

/// Version of the package.
pub const NUMBER: &str = env!("CARGO_PKG_VERSION");

/// Commit that the program was built from; `unknown` outside a repository.
pub const REVISION: &str = env!("PROFILER_GIT_REVISION");

/// What `-V` prints behind the name.
pub const SHORT: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("PROFILER_GIT_REVISION"),
    ")"
);

/// What `--version` prints behind the name: also what a build can be without.
pub const LONG: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("PROFILER_GIT_REVISION"),
    ")\neBPF programs: ",
    env!("PROFILER_EBPF"),
    "\nweb UI: ",
    env!("PROFILER_UI"),
    "\ntarget: ",
    env!("PROFILER_TARGET"),
);
