//! The list of steps, cheapest first.

use anyhow::Result;

use super::{
    Tally, cargo_test,
    needs::{
        CONTAINERS, FUZZ, IDLE, INFERRED, KERNELS, KUBERNETES, MESH, MESHES, NAMES, NETWORK, Need,
        PODS, PPROF, REQUESTS_BROKERS, REQUESTS_HTTP, REQUESTS_STORES, REQUESTS_TLS,
        ROOT_AND_AGENT, STORAGE, TLS_SITES, UI, UNWINDING, UNWINDING_PROGRAMS,
    },
    toolchain_fallback, unwind_test, web_test,
};
use crate::{check, manifests, shipped, vm, workspace::Workspace};

/// One name that `cargo xtask test` knows.
pub(super) struct Step {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) needs: &'static [Need],
    pub(super) run: fn(&Workspace, &mut Tally) -> Result<()>,
}

/// A step for one module of tests/it: its name with `-` for `_`.
macro_rules! integration {
    ($name:literal, $needs:expr, $about:literal) => {
        Step {
            name: $name,
            about: $about,
            needs: $needs,
            run: |workspace, tally| cargo_test::integration(workspace, $name, tally),
        }
    };
}

pub(super) const STEPS: &[Step] = &[
    Step {
        name: "check",
        about: "formatting, lints, documentation, house rules",
        needs: &[Need::Web, Need::Ebpf],
        run: |workspace, tally| {
            check::run(workspace)?;
            tally.passed += check::STEPS;
            Ok(())
        },
    },
    Step {
        name: "unit",
        about: "unit tests of the Rust crates, without root",
        needs: &[],
        run: cargo_test::unit,
    },
    Step {
        name: "inferred",
        about: "names inferred for stripped C++ programs, against their symbols",
        needs: INFERRED,
        run: cargo_test::inferred,
    },
    Step {
        name: "tls-sites",
        about: "TLS functions of libraries and stripped programs, and places for probes",
        needs: TLS_SITES,
        run: cargo_test::tls_sites,
    },
    Step {
        name: "unwind",
        about: "unwind tables of real files against gimli, and of hostile ones",
        needs: &[
            Need::Root,
            Need::Agent,
            Need::Envoy,
            Need::Packages(&unwind_test::PACKAGES),
        ],
        run: unwind_test::run,
    },
    Step {
        name: "fuzz",
        about: "seeded damage to files for every reader of bytes that a target chooses",
        needs: FUZZ,
        // Sums that overflow are found only with the checks of a debug build.
        run: |workspace, tally| {
            cargo_test::checked_target(workspace, "profiler-agent", "fuzz", tally)
        },
    },
    Step {
        name: "web",
        about: "unit tests and lints of the web UI",
        needs: &[Need::Web],
        run: web_test::run,
    },
    Step {
        name: "manifests",
        about: "deploy/ against the schemas of Kubernetes and of Compose, offline",
        needs: &[],
        run: manifests::run,
    },
    integration!("api", PPROF, "the HTTP contract and its refusals"),
    integration!("cli", ROOT_AND_AGENT, "record, ps, doctor, configuration"),
    integration!("events", ROOT_AND_AGENT, "live updates"),
    integration!(
        "privileges",
        ROOT_AND_AGENT,
        "what every thread keeps, and what works without SYS_ADMIN"
    ),
    integration!(
        "memory",
        ROOT_AND_AGENT,
        "a ceiling for the agent's memory: what is given up, and in which order"
    ),
    integration!(
        "lifecycle",
        ROOT_AND_AGENT,
        "restarts, crashes and second agents"
    ),
    integration!(
        "chaos",
        MESH,
        "the agent killed fifty times under load: nothing is left, nobody notices"
    ),
    integration!(
        "chaos-clock",
        ROOT_AND_AGENT,
        "a wall clock that jumps by ten days: no result is lost, no time is wrong"
    ),
    integration!(
        "chaos-storage",
        STORAGE,
        "a data directory that is full or cannot be written: said, survived, left behind"
    ),
    integration!(
        "chaos-envoy",
        MESHES,
        "a sidecar killed, replaced by other releases and restarted hot while it is watched"
    ),
    integration!(
        "workloads",
        ROOT_AND_AGENT,
        "the workloads keep the shares they promise"
    ),
    integration!(
        "on-cpu",
        ROOT_AND_AGENT,
        "known shares, threads, births and exits"
    ),
    integration!(
        "off-cpu",
        PPROF,
        "known waits: counts, times, reasons, states"
    ),
    integration!(
        "off-cpu-sampling",
        ROOT_AND_AGENT,
        "thresholds, and waits that are sampled because there are too many"
    ),
    integration!(
        "wall",
        PPROF,
        "all time of threads adds up to what has passed"
    ),
    integration!(
        "wakers",
        ROOT_AND_AGENT,
        "who ended a wait: threads, and never whom an interrupt came upon"
    ),
    integration!(
        "event-loop",
        MESH,
        "stalls of event loops by the program's own clock, and loops of real Envoys"
    ),
    integration!(
        "throttling",
        ROOT_AND_AGENT,
        "CPU quotas: how often they stopped the target"
    ),
    integration!(
        "network",
        NETWORK,
        "connections of known bytes, resets, losses"
    ),
    integration!("network-cli", NETWORK, "how the command ends"),
    integration!(
        "network-tcp",
        NETWORK,
        "simultaneous open, round-trip times, a server that closes without reading"
    ),
    integration!(
        "network-capabilities",
        NETWORK,
        "sockets of the node without the right to enter namespaces"
    ),
    integration!(
        "network-calls",
        ROOT_AND_AGENT,
        "every way to write and read a socket, against the socket itself"
    ),
    integration!(
        "network-trouble",
        NETWORK,
        "refusals, timeouts, resets, losses, deaths"
    ),
    integration!(
        "network-unix",
        ROOT_AND_AGENT,
        "Unix sockets as edges between processes"
    ),
    integration!(
        "network-serve",
        ROOT_AND_AGENT,
        "the always-on collection, tables live, Prometheus metrics of edges"
    ),
    integration!(
        "network-timed",
        ROOT_AND_AGENT,
        "times of calls by the test's own clock, and what is counted from calls"
    ),
    integration!(
        "requests-payload",
        ROOT_AND_AGENT,
        "the bytes of requests from every way to write and read a socket"
    ),
    integration!(
        "network-load",
        NETWORK,
        "20,000 open connections, 5,000 new a second, and a table that is too small"
    ),
    integration!(
        "requests-http",
        REQUESTS_HTTP,
        "requests of HTTP/1, HTTP/2, gRPC and WebSocket, against what real clients asked"
    ),
    integration!(
        "requests-stores",
        REQUESTS_STORES,
        "statements, commands and questions, against what real clients asked"
    ),
    integration!(
        "requests-brokers",
        REQUESTS_BROKERS,
        "requests of Kafka and MongoDB, against what the broker logged and the client asked"
    ),
    integration!(
        "requests-tls",
        REQUESTS_TLS,
        "requests inside TLS of every library that is read, against what real clients asked"
    ),
    integration!("requests-mesh", MESH, "requests on every hop of the mesh"),
    integration!(
        "requests-mesh-tls",
        MESHES,
        "requests inside TLS between the sidecars of three releases"
    ),
    integration!(
        "requests-sidecar",
        MESH,
        "time that real Envoys add, against delays of known size"
    ),
    integration!(
        "requests-pairs",
        MESH,
        "which request out belongs to which request in, against numbered requests"
    ),
    integration!(
        "namespaces",
        ROOT_AND_AGENT,
        "targets behind namespaces and cgroups"
    ),
    integration!("hostile", ROOT_AND_AGENT, "targets whose files are traps"),
    integration!(
        "degraded",
        ROOT_AND_AGENT,
        "denied probes and the CPU budget"
    ),
    integration!(
        "names",
        NAMES,
        "names of stripped programs: debug files, packs, Go"
    ),
    integration!(
        "unwinding",
        UNWINDING,
        "whole stacks of programs without frame pointers"
    ),
    integration!(
        "unwinding-programs",
        UNWINDING_PROGRAMS,
        "whole stacks of real programs, and of the mesh under load"
    ),
    integration!(
        "off-cpu-asleep",
        IDLE,
        "threads that sleep already when a task begins"
    ),
    integration!(
        "idle",
        IDLE,
        "idle rules on real programs, each with next to nothing to do"
    ),
    integration!("ui", UI, "the page in headless Chromium"),
    integration!(
        "ui-shell",
        UI,
        "pods, check-up, node page and support bundle"
    ),
    integration!("compare", UI, "two results of a known difference"),
    integration!(
        "ui-topology",
        UI,
        "the map of a pod and the page of an edge, over the mesh"
    ),
    integration!(
        "kubernetes",
        KUBERNETES,
        "a real API server: pods, owners, watches that break, rights of the manifests"
    ),
    integration!(
        "pods",
        PODS,
        "the DaemonSet's pod on a real containerd: the base tier's capabilities, other pods profiled"
    ),
    Step {
        name: "containers",
        about: "Envoy, an app and the profiler as containers of a Docker engine, with the manifest's privileges",
        needs: CONTAINERS,
        run: |workspace, tally| cargo_test::with_engine(workspace, "containers", tally),
    },
    Step {
        name: "kubernetes-names",
        about: "what live containers are called, by a real API server, Docker and its renames; targets by pod and label",
        needs: KUBERNETES,
        run: |workspace, tally| cargo_test::with_engine(workspace, "kubernetes-names", tally),
    },
    Step {
        name: "shipped",
        about: "what `cargo xtask dist` builds, and the image of it with the options of deploy/compose.yaml",
        needs: &[Need::Root, Need::Web, Need::Ebpf],
        run: shipped::run,
    },
    integration!("mesh", MESH, "traffic through two real Envoys"),
    integration!("mesh-profile", MESH, "the agent on the mesh under load"),
    integration!(
        "checkup",
        MESH,
        "check-ups of a sidecar: requests, configuration, CPU time, the command diagnose"
    ),
    integration!(
        "stripped-mesh",
        MESHES,
        "names in stripped Envoys of three releases"
    ),
    integration!(
        "off-cpu-mesh",
        MESH,
        "waits of real Envoys under load, with complete stacks"
    ),
    integration!(
        "network-topology",
        NETWORK,
        "redirected and translated connections, names, numbers used again"
    ),
    integration!("network-mesh", MESH, "every hop of the mesh"),
    integration!(
        "access-log",
        MESH,
        "what writing the access log costs a real Envoy, seen off the CPU"
    ),
    integration!(
        "diagnosis",
        MESH,
        "what the diagnosis puts down to settings of Envoy, against what switching them off saves"
    ),
    integration!(
        "soak",
        MESH,
        "five minutes of check-ups in a loop: memory, open files and kernel objects stay what they were"
    ),
    integration!(
        "demo",
        MESH,
        "the demo leaves nothing behind, however it ends"
    ),
    Step {
        name: "toolchain-fallback",
        about: "the eBPF object built with the private sysroot",
        needs: &[Need::Ebpf],
        run: toolchain_fallback::run,
    },
    Step {
        name: "kernels",
        about: "every program, one task of each kind and exact connections on Debian's 6.1 and 6.12 under qemu",
        needs: KERNELS,
        run: vm::run,
    },
];
