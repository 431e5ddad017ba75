//! The table of steps. In each lane what takes long comes first, so that nothing long is left for the end.

use anyhow::Result;

use super::{
    binaries, broken,
    needs::{
        ACCESS_LOGS, API_FUZZ, CONTAINERS, FUZZ, IDLE, INFERRED, KERNELS, KUBERNETES,
        KUBERNETES_NAMES, MESH, MESHES, NAMES, NETWORK, NETWORK_TCP, Need, PODS, PPROF,
        REQUESTS_BROKERS, REQUESTS_HTTP, REQUESTS_STORES, REQUESTS_TLS, REQUESTS_TRUTH,
        ROOT_AND_AGENT, SHIPPED, SILENT_FILES, STORAGE, STRANGERS, TLS_SITES, UI, UI_STAND_IN,
        UNWIND, UNWINDING, UNWINDING_PROGRAMS,
    },
    new_probe_test,
    schedule::Lane,
    tally::Tally,
    toolchain_fallback, unwind_test, web_test,
};
use crate::{check, engine::Engine, manifests, shipped, supply_chain, vm, workspace::Workspace};

/// One name that `cargo xtask test` knows.
pub(super) struct Step {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) lane: Lane,
    /// It is expected to take at most this many seconds (of CPU time, where it computes); half as many more fail it.
    pub(super) budget: u32,
    /// Steps with the same word do not run beside each other.
    pub(super) lock: Option<&'static str>,
    pub(super) needs: &'static [Need],
    pub(super) run: fn(&Workspace, &mut Tally) -> Result<()>,
}

/// A Docker engine of our own has one bridge and one folder, and containerd rules of the same kind.
const ENGINE: Option<&str> = Some("engine");
/// Loads that would take all processors from each other.
const BUSY: Option<&str> = Some("busy");
/// Chromium draws in software.
const BROWSER: Option<&str> = Some("browser");

/// A step for one module of tests/it: its name with `-` for `_`. With `-alone` behind it: for its tests in `mod alone`,
/// which the other step leaves out.
macro_rules! integration {
    ($name:literal, $lane:ident, $budget:literal, $lock:ident, $needs:expr, $about:literal) => {
        Step {
            name: $name,
            about: $about,
            lane: Lane::$lane,
            budget: $budget,
            lock: $lock,
            needs: $needs,
            run: |workspace, tally| binaries::integration(workspace, $name, tally),
        }
    };
}

/// A module of `crates/file-tests`: it needs files of other programs, and no kernel.
macro_rules! checked {
    ($name:literal, $module:literal, $budget:literal, $needs:expr, $about:literal) => {
        Step {
            name: $name,
            about: $about,
            lane: Lane::Spare,
            budget: $budget,
            lock: None,
            needs: $needs,
            run: |workspace, tally| binaries::in_one_thread(workspace, $module, tally),
        }
    };
}

#[rustfmt::skip]
pub(super) const STEPS: &[Step] = &[
    integration!("ui-stand-in", Compute, 400, None, UI_STAND_IN, "the page in headless Chromium against a stand-in of the agent"),
    Step {
        name: "check",
        about: "formatting, lints, documentation, house rules",
        lane: Lane::Compute,
        budget: 500,
        lock: None,
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
        lane: Lane::Compute,
        budget: 200,
        lock: None,
        needs: &[Need::CheckedTests],
        run: binaries::unit,
    },
    Step {
        name: "kernels",
        about: "every program, one task of each kind and exact connections on Debian's 6.1 and 6.12 under qemu, and 6.12 with 64 CPUs",
        lane: Lane::Compute,
        budget: 500,
        lock: None,
        needs: KERNELS,
        run: vm::run,
    },
    Step {
        name: "unwind",
        about: "unwind tables of real files against gimli, and of hostile ones",
        lane: Lane::Compute,
        budget: 100,
        lock: None,
        needs: UNWIND,
        run: unwind_test::run,
    },
    Step {
        name: "fuzz",
        about: "seeded damage to files for every reader of bytes that a target chooses",
        lane: Lane::Compute,
        budget: 400,
        lock: None,
        needs: FUZZ,
        run: |workspace, tally| binaries::checked(workspace, "fuzz", &[], tally),
    },
    Step {
        name: "web",
        about: "unit tests and lints of the web UI",
        lane: Lane::Compute,
        budget: 60,
        lock: None,
        needs: &[Need::Web],
        run: web_test::run,
    },
    checked!("inferred", "inferred", 120, INFERRED, "names inferred for stripped C++ programs, against their symbols"),
    checked!("tls-sites", "tls_sites", 30, TLS_SITES, "TLS functions of libraries and stripped programs, and places for probes"),
    Step {
        name: "manifests",
        about: "deploy/ against the schemas of Kubernetes and of Compose, offline",
        lane: Lane::Compute,
        budget: 50,
        lock: None,
        needs: &[Need::Helm],
        run: manifests::run,
    },
    Step {
        name: "supply-chain",
        about: "advisories, licences, sources and duplicates of crates; packages of the page; NOTICE",
        lane: Lane::Compute,
        budget: 30,
        lock: None,
        needs: &[Need::CargoDeny, Need::Web],
        run: supply_chain::run,
    },
    Step {
        name: "toolchain-fallback",
        about: "the eBPF object built with the private sysroot",
        lane: Lane::Compute,
        budget: 120,
        lock: None,
        needs: &[Need::Ebpf],
        run: toolchain_fallback::run,
    },
    Step {
        name: "new-probe",
        about: "a probe added to a copy of the sources by `cargo xtask new-probe`; the table of programs and single probes on this kernel",
        lane: Lane::Compute,
        budget: 120,
        lock: None,
        // The agent first: both builds of the eBPF object use one folder.
        needs: &[Need::Root, Need::Ebpf, Need::CheckedTests, Need::Agent],
        run: new_probe_test::run,
    },
    Step {
        name: "runner",
        about: "what is told of tests that fail, hang or take too long, by tests that do; what tests judge with",
        lane: Lane::Beside,
        budget: 120,
        lock: None,
        needs: ROOT_AND_AGENT,
        run: |workspace, tally| {
            binaries::of_judges(workspace, tally)?;
            broken::run(workspace, tally)
        },
    },
    integration!("requests-tls", Beside, 240, None, REQUESTS_TLS, "requests inside TLS of every library that is read, against what real clients asked"),
    integration!("requests-truth", Beside, 240, None, REQUESTS_TRUTH, "answers that may be wrong are unknown, and what is missing is said: late connections, large answers"),
    integration!("chaos", Beside, 300, None, MESH, "the agent killed fifty times under load: nothing is left, programs do not notice"),
    Step {
        name: "kubernetes-names",
        about: "what live containers are called, by a real API server, Docker and its renames; targets by pod and label",
        lane: Lane::Beside,
        budget: 240,
        lock: ENGINE,
        needs: KUBERNETES_NAMES,
        run: |workspace, tally| with_engine(workspace, "kubernetes-names", tally),
    },
    integration!("ui", Beside, 240, BROWSER, UI, "the page in headless Chromium"),
    integration!("requests-brokers", Beside, 200, None, REQUESTS_BROKERS, "requests of Kafka and MongoDB, against what the broker logged and the client asked"),
    integration!("unwinding", Beside, 150, None, UNWINDING, "whole stacks of programs without frame pointers"),
    Step {
        name: "containers",
        about: "Envoy, an app and the profiler as containers of a Docker engine, with the manifest's privileges",
        lane: Lane::Beside,
        budget: 150,
        lock: ENGINE,
        needs: CONTAINERS,
        run: |workspace, tally| with_engine(workspace, "containers", tally),
    },
    integration!("idle", Beside, 180, None, IDLE, "idle rules on real programs, each with next to nothing to do"),
    integration!("api-fuzz", Beside, 180, None, API_FUZZ, "the API fuzzed for a minute from its OpenAPI document, with and without a token: no 5xx, no growth"),
    integration!("unwinding-programs", Beside, 120, BUSY, UNWINDING_PROGRAMS, "whole stacks of real programs, and of the mesh under load"),
    integration!("requests-mesh-tls", Beside, 150, None, MESHES, "requests inside TLS between the sidecars of three releases"),
    integration!("chaos-envoy", Beside, 150, BUSY, MESHES, "a sidecar killed, replaced by other releases and restarted hot while it is watched"),
    integration!("requests-http", Beside, 120, BUSY, REQUESTS_HTTP, "requests of HTTP/1, HTTP/2, gRPC and WebSocket, against what real clients asked"),
    integration!("ui-shell", Beside, 120, BROWSER, UI, "pods, check-up, node page and support bundle"),
    integration!("pods", Beside, 100, ENGINE, PODS, "the DaemonSet's pod on a real containerd: the base tier's capabilities, other pods profiled"),
    integration!("mesh", Beside, 120, BUSY, MESH, "traffic through two real Envoys"),
    integration!("compare", Beside, 100, BROWSER, UI, "two results of a known difference"),
    integration!("ui-journeys", Beside, 150, BROWSER, UI, "from the first page to the cause in two clicks, over meshes with a trouble each"),
    integration!("ui-topology", Beside, 90, BROWSER, UI, "the map of a pod and the page of an edge, over the mesh"),
    integration!("stripped-mesh", Beside, 90, BUSY, MESHES, "names in stripped Envoys of three releases"),
    integration!("requests-pairs", Beside, 90, BUSY, MESH, "which request out belongs to which request in, against numbered requests"),
    integration!("requests-mesh", Beside, 60, BUSY, MESH, "requests on every hop of the mesh"),
    integration!("network-mesh", Beside, 60, BUSY, MESH, "every hop of the mesh"),
    integration!("mesh-profile", Beside, 60, BUSY, MESH, "the agent on the mesh under load"),
    Step {
        name: "shipped",
        about: "what `cargo xtask dist` builds, and the image of it with the options of deploy/compose.yaml",
        lane: Lane::Beside,
        budget: 120,
        lock: ENGINE,
        needs: SHIPPED,
        run: shipped::run,
    },
    integration!("kubernetes", Beside, 120, None, KUBERNETES, "a real API server: pods, owners, watches that break, rights of the manifests"),
    integration!("requests-stores", Beside, 150, None, REQUESTS_STORES, "statements, commands and questions, against what real clients asked"),
    integration!("chaos-storage", Beside, 120, None, STORAGE, "a data directory that is full or cannot be written: said, survived, left behind"),
    integration!("off-cpu-asleep", Beside, 100, None, IDLE, "threads that sleep already when a task begins"),
    integration!("names", Beside, 100, None, NAMES, "names of stripped programs: debug files, packs, Go"),
    integration!("strangers", Beside, 120, BUSY, STRANGERS, "people without a token, files and programs that mean harm, against an agent with 512 MiB"),
    integration!("silent-files", Beside, 120, None, SILENT_FILES, "programs on a file system whose server does not answer"),
    integration!("lifecycle", Beside, 90, None, ROOT_AND_AGENT, "restarts, crashes and second agents"),
    integration!("checkup", Beside, 120, None, MESH, "check-ups of a sidecar: requests, configuration, CPU time, the command diagnose"),
    integration!("demo", Beside, 120, None, MESH, "the demo leaves nothing behind, however it ends"),
    integration!("access-logs", Beside, 200, BUSY, ACCESS_LOGS, "access logs of three releases of Envoy: every request once, and what is missing"),
    integration!("access-log-lines", Beside, 60, BUSY, ACCESS_LOGS, "messages of three releases of Envoy, entry by entry against its own file"),
    integration!("access-log-mesh", Beside, 60, None, MESH, "access logs of both sidecars of the mesh: each request once on each hop"),
    integration!("access-log", Beside, 90, None, MESH, "what writing the access log costs a real Envoy, seen off the CPU"),
    integration!("cli", Beside, 90, None, ROOT_AND_AGENT, "record, ps, doctor, configuration"),
    integration!("privileges", Beside, 90, None, ROOT_AND_AGENT, "what every thread keeps, and what works without SYS_ADMIN"),
    integration!("network-topology", Beside, 90, None, NETWORK, "redirected and translated connections, names, numbers used again"),
    integration!("network-serve", Beside, 90, None, ROOT_AND_AGENT, "the always-on collection, tables live, Prometheus metrics of edges"),
    integration!("namespaces", Beside, 90, None, ROOT_AND_AGENT, "targets behind namespaces and cgroups"),
    integration!("network-trouble", Beside, 90, None, NETWORK, "refusals, timeouts, resets, losses, deaths"),
    integration!("network-unix", Beside, 60, None, ROOT_AND_AGENT, "Unix sockets as edges between processes"),
    integration!("network-load", Beside, 120, None, NETWORK, "20,000 open connections, 5,000 new a second, and a table that is too small"),
    integration!("degraded", Beside, 60, None, ROOT_AND_AGENT, "denied probes and the CPU budget"),
    integration!("off-cpu", Beside, 60, None, PPROF, "known waits: counts, times, reasons, states"),
    integration!("cpu-contention", Alone, 60, None, ROOT_AND_AGENT, "who had the CPU while threads waited for one, by the kernel's account"),
    integration!("network", Beside, 60, None, NETWORK, "connections of known bytes, resets, losses"),
    integration!("network-timed", Beside, 60, None, ROOT_AND_AGENT, "times of calls by the test's own clock, and what is counted from calls"),
    integration!("api", Beside, 60, None, PPROF, "the HTTP contract and its refusals"),
    integration!("requests-payload", Beside, 60, None, ROOT_AND_AGENT, "the bytes of requests from every way to write and read a socket"),
    integration!("hostile", Beside, 60, None, ROOT_AND_AGENT, "targets whose files are traps, and whose names steer terminals"),
    integration!("memory", Beside, 60, None, ROOT_AND_AGENT, "a ceiling for the agent's memory: what is given up, and in which order"),
    integration!("event-loop", Beside, 60, None, MESH, "stalls of event loops by the program's own clock, and loops of real Envoys"),
    integration!("on-cpu", Alone, 60, None, ROOT_AND_AGENT, "known shares, threads, births and exits"),
    integration!("off-cpu-sampling", Beside, 60, None, ROOT_AND_AGENT, "thresholds, and waits that are sampled because there are too many"),
    integration!("wall", Alone, 40, None, PPROF, "all time of threads adds up to what has passed"),
    integration!("throttling", Beside, 40, None, ROOT_AND_AGENT, "CPU quotas: how often they stopped the target"),
    integration!("network-tcp", Beside, 40, None, NETWORK_TCP, "simultaneous open, round-trip times, a server that closes without reading, a port that goes to another program"),
    integration!("wakers", Beside, 40, None, ROOT_AND_AGENT, "who ended a wait: threads, and never the task that an interrupt hit"),
    integration!("network-cli", Beside, 40, None, NETWORK, "how the command ends"),
    integration!("workloads", Beside, 40, None, ROOT_AND_AGENT, "the workloads keep the shares they promise"),
    integration!("network-calls", Beside, 30, None, ROOT_AND_AGENT, "every way to write and read a socket, against the socket itself"),
    integration!("network-capabilities", Beside, 30, None, NETWORK, "sockets of the node without the right to enter namespaces"),
    integration!("events", Beside, 30, None, ROOT_AND_AGENT, "live updates"),
    integration!("diagnosis", Alone, 300, None, MESH, "what the diagnosis puts down to settings of Envoy, against what switching them off saves"),
    integration!("soak", Alone, 180, None, MESH, "check-ups in a loop: memory, open files and kernel objects stay what they were"),
    integration!("chaos-clock", Alone, 60, None, ROOT_AND_AGENT, "a wall clock that jumps by ten days: no result is lost, no time is wrong"),
    integration!("cli-alone", Alone, 30, None, ROOT_AND_AGENT, "the tests of cli that need the machine for themselves"),
    integration!("memory-alone", Alone, 200, None, ROOT_AND_AGENT, "the tests of memory that need the machine for themselves"),
    integration!("network-load-alone", Alone, 120, None, NETWORK, "the tests of network-load that need the machine for themselves"),
    integration!("on-cpu-alone", Alone, 100, None, ROOT_AND_AGENT, "the tests of on-cpu that need the machine for themselves"),
    integration!("unwinding-programs-alone", Alone, 30, None, MESH, "the tests of unwinding-programs that need the machine for themselves"),
    integration!("event-loop-alone", Alone, 60, None, MESH, "the tests of event-loop that need the machine for themselves"),
    integration!("checkup-alone", Alone, 60, None, MESH, "the tests of checkup that need the machine for themselves"),
    integration!("requests-tls-alone", Alone, 120, None, REQUESTS_TLS, "the tests of requests-tls that need the machine for themselves"),
    integration!("off-cpu-sampling-alone", Alone, 40, None, ROOT_AND_AGENT, "the tests of off-cpu-sampling that need the machine for themselves"),
    integration!("requests-truth-alone", Alone, 120, None, REQUESTS_TRUTH, "the tests of requests-truth that need the machine for themselves"),
    integration!("answers", Alone, 150, None, MESH, "the sentence of a check-up names where requests spend their time, against causes that the test makes"),
    integration!("overview", Alone, 120, None, MESH, "the overview of all pods: requests, errors, times, quotas and lost segments that the test makes"),
    integration!("requests-sidecar", Alone, 40, None, MESH, "time that real Envoys add, against delays of known size"),
    integration!("off-cpu-mesh", Alone, 40, None, MESH, "waits of real Envoys under load, with complete stacks"),
    integration!("wall-alone", Alone, 40, None, PPROF, "the tests of wall that need the machine for themselves"),
    integration!("lifecycle-alone", Alone, 40, None, ROOT_AND_AGENT, "the tests of lifecycle that need the machine for themselves"),
    integration!("off-cpu-alone", Alone, 30, None, PPROF, "the tests of off-cpu that need the machine for themselves"),
    integration!("requests-payload-alone", Alone, 60, None, NETWORK, "the tests of requests-payload that need the machine for themselves"),
    integration!("mesh-alone", Alone, 30, None, MESH, "the tests of mesh that need the machine for themselves"),
    integration!("network-cli-alone", Alone, 30, None, NETWORK, "the tests of network-cli that need the machine for themselves"),
];

/// A module that needs a Docker engine: the machine's, or one for as long as the tests run.
fn with_engine(workspace: &Workspace, name: &str, tally: &mut Tally) -> Result<()> {
    let engine = Engine::start(workspace)?;
    binaries::integration_with(workspace, name, &[("DOCKER_HOST", &engine.host)], tally)
}
