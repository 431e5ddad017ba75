//! The list of steps, cheapest first.

use anyhow::Result;

use super::{
    INFERRED_PACKAGES, Tally, UI_PACKAGES, cargo_test, toolchain_fallback, unwind_test, web_test,
};
use crate::{check, debian::Package, demo, manifests, vm, workspace::Workspace};

/// What must be there before a step can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    Root,
    /// The release agent.
    Agent,
    Ebpf,
    Web,
    Envoy,
    OlderEnvoys,
    /// Jars and wheels of what speaks Kafka's and MongoDB's protocols.
    Brokers,
    Packages(&'static [Package]),
}

/// One name that `cargo xtask test` knows.
pub(super) struct Step {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) needs: &'static [Need],
    pub(super) run: fn(&Workspace, &mut Tally) -> Result<()>,
}

// Packages that several steps need.
const GO: Package = Package {
    name: "golang-go",
    evidence: "/usr/bin/go",
};
const NGINX: Package = Package {
    name: "nginx-light",
    evidence: "/usr/sbin/nginx",
};
const REDIS: Package = Package {
    name: "redis-server",
    evidence: "/usr/bin/redis-server",
};

const ROOT_AND_AGENT: &[Need] = &[Need::Root, Need::Agent];
/// `go tool pprof` reads the exports.
const PPROF: &[Need] = &[Need::Root, Need::Agent, Need::Packages(&[GO])];
const MESH: &[Need] = &[
    Need::Root,
    Need::Agent,
    Need::Envoy,
    Need::Packages(&demo::PACKAGES),
];
const MESHES: &[Need] = &[
    Need::Root,
    Need::Agent,
    Need::Envoy,
    Need::OlderEnvoys,
    Need::Packages(&demo::PACKAGES),
];
/// Network namespaces with packet loss.
const NETWORK: &[Need] = &[Need::Root, Need::Agent, Need::Packages(&demo::PACKAGES)];
const UNWINDING: &[Need] = &[
    Need::Root,
    Need::Agent,
    Need::Packages(&[
        Package {
            name: "musl-tools",
            evidence: "/usr/bin/musl-gcc",
        },
        Package {
            name: "gcc-multilib",
            evidence: "/usr/include/asm",
        },
    ]),
];
const UNWINDING_PROGRAMS: &[Need] = &[
    Need::Root,
    Need::Agent,
    Need::Envoy,
    Need::Packages(&demo::PACKAGES),
    Need::Packages(&[
        GO,
        NGINX,
        REDIS,
        Package {
            name: "redis-tools",
            evidence: "/usr/bin/redis-benchmark",
        },
        Package {
            name: "python3-minimal",
            evidence: "/usr/bin/python3",
        },
    ]),
];
const IDLE: &[Need] = &[
    Need::Root,
    Need::Agent,
    Need::Envoy,
    Need::Packages(&demo::PACKAGES),
    Need::Packages(&[
        Package {
            name: "binutils",
            evidence: "/usr/bin/strip",
        },
        GO,
        NGINX,
        REDIS,
        Package {
            name: "python3",
            evidence: "/usr/share/doc/python3",
        },
        Package {
            name: "default-jdk-headless",
            evidence: "/usr/bin/javac",
        },
    ]),
];
const CURL: Package = Package {
    name: "curl",
    evidence: "/usr/bin/curl",
};
const H2LOAD: Package = Package {
    name: "nghttp2-client",
    evidence: "/usr/bin/h2load",
};
const REQUESTS_HTTP: &[Need] = &[
    Need::Root,
    Need::Agent,
    Need::Packages(&[
        NGINX,
        CURL,
        H2LOAD,
        Package {
            name: "nghttp2-server",
            evidence: "/usr/sbin/nghttpd",
        },
        Package {
            name: "python3-h2",
            evidence: "/usr/lib/python3/dist-packages/h2",
        },
        Package {
            name: "python3-websockets",
            evidence: "/usr/lib/python3/dist-packages/websockets",
        },
    ]),
];
/// Databases and name servers with their own clients.
const REQUESTS_STORES: &[Need] = &[
    Need::Root,
    Need::Agent,
    Need::Packages(&demo::PACKAGES),
    Need::Packages(&[
        REDIS,
        Package {
            name: "redis-tools",
            evidence: "/usr/bin/redis-benchmark",
        },
        Package {
            name: "postgresql",
            evidence: "/usr/lib/postgresql",
        },
        Package {
            name: "mariadb-server",
            evidence: "/usr/sbin/mariadbd",
        },
        Package {
            name: "mariadb-client",
            evidence: "/usr/bin/mariadb",
        },
        Package {
            name: "dnsmasq-base",
            evidence: "/usr/sbin/dnsmasq",
        },
        Package {
            name: "bind9-dnsutils",
            evidence: "/usr/bin/dig",
        },
    ]),
];
/// What comes from other places than Debian; `maven` is needed to fetch it.
const REQUESTS_BROKERS: &[Need] = &[
    Need::Root,
    Need::Agent,
    Need::Packages(&[
        Package {
            name: "default-jdk-headless",
            evidence: "/usr/bin/javac",
        },
        Package {
            name: "maven",
            evidence: "/usr/bin/mvn",
        },
    ]),
    Need::Brokers,
];
/// TLS libraries.
const REQUESTS_TLS: &[Need] = &[
    Need::Root,
    Need::Agent,
    Need::Packages(&[
        NGINX,
        CURL,
        H2LOAD,
        GO,
        Package {
            name: "nodejs",
            evidence: "/usr/bin/node",
        },
        Package {
            name: "python3-requests",
            evidence: "/usr/lib/python3/dist-packages/requests",
        },
        Package {
            name: "python3-aiohttp",
            evidence: "/usr/lib/python3/dist-packages/aiohttp",
        },
        Package {
            name: "gnutls-bin",
            evidence: "/usr/bin/gnutls-serv",
        },
        Package {
            name: "binutils",
            evidence: "/usr/bin/strip",
        },
    ]),
];
/// The engine's own packages come with it.
const CONTAINERS: &[Need] = &[Need::Root, Need::Agent, Need::Envoy];
const UI: &[Need] = &[
    Need::Root,
    Need::Agent,
    Need::Web,
    Need::Envoy,
    Need::Packages(&UI_PACKAGES),
    Need::Packages(&demo::PACKAGES),
];
/// Programs that the tests of names compile, strip and compress.
const NAME_TOOLS: [Package; 3] = [
    Package {
        name: "binutils",
        evidence: "/usr/bin/objcopy",
    },
    Package {
        name: "xz-utils",
        evidence: "/usr/bin/xz",
    },
    GO,
];
const NAMES: &[Need] = &[Need::Root, Need::Agent, Need::Packages(&NAME_TOOLS)];
const KERNELS: &[Need] = &[Need::Root, Need::Agent, Need::Packages(&vm::PACKAGES)];

/// Programs that compile what is damaged.
const FUZZ: &[Need] = &[
    Need::Packages(&INFERRED_PACKAGES),
    Need::Packages(&[Package {
        name: "libssl3",
        evidence: "/usr/lib/x86_64-linux-gnu/libssl.so.3",
    }]),
    Need::Packages(&[Package {
        name: "musl-tools",
        evidence: "/usr/bin/musl-gcc",
    }]),
    Need::Packages(&[Package {
        name: "binutils",
        evidence: "/usr/bin/objcopy",
    }]),
];

const INFERRED: &[Need] = &[
    Need::Envoy,
    Need::Packages(&INFERRED_PACKAGES),
    // Rules of diagnoses are tried on their names.
    Need::Packages(&[
        NGINX,
        Package {
            name: "libssl3",
            evidence: "/usr/lib/x86_64-linux-gnu/libssl.so.3",
        },
    ]),
];

const TLS_SITES: &[Need] = &[
    Need::Envoy,
    Need::OlderEnvoys,
    Need::Packages(&[
        GO,
        Package {
            name: "libssl-dev",
            evidence: "/usr/lib/x86_64-linux-gnu/libssl.a",
        },
        Package {
            name: "libgnutls30",
            evidence: "/usr/lib/x86_64-linux-gnu/libgnutls.so.30",
        },
        Package {
            name: "binutils",
            evidence: "/usr/bin/strip",
        },
        Package {
            name: "nodejs",
            evidence: "/usr/bin/node",
        },
    ]),
];

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
        "lifecycle",
        ROOT_AND_AGENT,
        "restarts, crashes and second agents"
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
    Step {
        name: "containers",
        about: "Envoy, an app and the profiler as containers of a Docker engine, with the manifest's privileges",
        needs: CONTAINERS,
        run: cargo_test::containers,
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
