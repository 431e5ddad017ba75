//! The readers of untrusted bytes, of a profiled process or a client, each as a function of these bytes: for the
//! libFuzzer targets in `fuzz/` and for the test step `fuzz`, which runs the same without a nightly. The tests with files
//! of other programs are here too (`file_tests`). Nothing that is shipped depends on this crate.
//!
//! A reader fails its test by a panic, by memory or by time; what it answers is checked elsewhere.

mod readers;
mod payload;
mod http;
#[cfg(test)]
mod inputs;
#[cfg(test)]
mod file_tests;

/// A reader and its name.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
}

/// All of them.
pub const TARGETS: [Target; 22] = [
    Target {
        name: "unwind",
        run: readers::unwind,
    },
    Target {
        name: "names",
        run: readers::names,
    },
    Target {
        name: "inferred",
        run: readers::inferred,
    },
    Target {
        name: "tls_sites",
        run: readers::tls_sites,
    },
    Target {
        name: "perf_map",
        run: readers::perf_map,
    },
    Target {
        name: "maps",
        run: readers::maps,
    },
    Target {
        name: "name_answers",
        run: readers::name_answers,
    },
    Target {
        name: "socket_table",
        run: profiler_host::sockets::fuzz,
    },
    Target {
        name: "imports",
        run: readers::imports,
    },
    Target {
        name: "envoy_admin",
        run: profiler_host::envoy_admin::fuzz,
    },
    Target {
        name: "http1",
        run: http::http1,
    },
    Target {
        name: "http2",
        run: http::http2,
    },
    Target {
        name: "hpack",
        run: profiler_protocols::fuzzing::hpack,
    },
    Target {
        name: "connection",
        run: payload::connection,
    },
    Target {
        name: "tls",
        run: payload::tls,
    },
    Target {
        name: "dns",
        run: payload::dns,
    },
    Target {
        name: "redis",
        run: payload::redis,
    },
    Target {
        name: "postgresql",
        run: payload::postgresql,
    },
    Target {
        name: "mysql",
        run: payload::mysql,
    },
    Target {
        name: "kafka",
        run: payload::kafka,
    },
    Target {
        name: "mongodb",
        run: payload::mongodb,
    },
    Target {
        name: "access_logs",
        run: readers::access_logs,
    },
];

/// Gives bytes to the reader of a name; does nothing when there is none.
pub fn run(name: &str, bytes: &[u8]) {
    if let Some(target) = TARGETS.iter().find(|target| target.name == name) {
        (target.run)(bytes);
    }
}
