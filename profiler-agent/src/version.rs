//! Which build this is.

use std::sync::LazyLock;

use profiler_recorder::bpf::is_embedded;

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
pub static LONG: LazyLock<String> = LazyLock::new(|| {
    let programs = if is_embedded() {
        "embedded"
    } else {
        "left out"
    };
    let (ui, target) = (env!("PROFILER_UI"), env!("PROFILER_TARGET"));
    format!("{SHORT}\neBPF programs: {programs}\nweb UI: {ui}\ntarget: {target}")
});
