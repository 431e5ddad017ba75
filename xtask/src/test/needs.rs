//! What steps need before they can run.

use super::unwind_test;
use crate::{debian::Package, demo, engine, vm};

/// What must be there before a step can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    Root,
    /// The program that is shipped, and the integration tests.
    Agent,
    /// The integration tests alone.
    Tests,
    /// Unit tests, and tests that read files.
    CheckedTests,
    Ebpf,
    Web,
    Envoy,
    OlderEnvoys,
    /// Jars and wheels of what speaks Kafka's and MongoDB's protocols.
    Brokers,
    /// A wheel with OpenSSL 1.1.1.
    OldTls,
    /// What checks the supply chain.
    CargoDeny,
    /// Helm, and what checks manifests.
    Helm,
    /// An API server of Kubernetes with its store.
    Kubernetes,
    /// Peers of grpc-go.
    GrpcGo,
    /// What fuzzes the API.
    Schemathesis,
    /// Kernels of virtual machines.
    KernelImages,
    /// What lists the parts of the shipped program.
    SbomTool,
    Packages(&'static [Package]),
}

// Packages that several steps need.
pub(crate) const UI_PACKAGES: [Package; 1] = [Package {
    name: "chromium",
    evidence: "/usr/bin/chromium",
}];
const INFERRED_PACKAGES: [Package; 2] = [
    Package {
        name: "g++",
        evidence: "/usr/bin/g++",
    },
    Package {
        name: "binutils",
        evidence: "/usr/bin/strip",
    },
];
pub(super) const GO: Package = Package {
    name: "golang-go",
    evidence: "/usr/bin/go",
};
pub(super) const NGINX: Package = Package {
    name: "nginx-light",
    evidence: "/usr/sbin/nginx",
};
const PYTHON: Package = Package {
    name: "python3",
    evidence: "/usr/share/doc/python3",
};
pub(super) const REDIS: Package = Package {
    name: "redis-server",
    evidence: "/usr/bin/redis-server",
};

pub(super) const ROOT_AND_AGENT: &[Need] = &[Need::Root, Need::Agent];
/// The kernel's FUSE as well: its tests fail and say so where /dev/fuse is missing.
pub(super) const SILENT_FILES: &[Need] = ROOT_AND_AGENT;
/// File systems in files.
pub(super) const STORAGE: &[Need] = &[
    Need::Root,
    Need::Agent,
    Need::Packages(&[Package {
        name: "e2fsprogs",
        evidence: "/usr/sbin/mkfs.ext4",
    }]),
];
/// `go tool pprof` reads the exports.
pub(super) const PPROF: &[Need] = &[Need::Root, Need::Agent, Need::Packages(&[GO])];
pub(super) const MESH: &[Need] = &[
    Need::Root,
    Need::Agent,
    Need::Envoy,
    Need::Packages(&demo::PACKAGES),
];
pub(super) const MESHES: &[Need] = &[
    Need::Root,
    Need::Agent,
    Need::Envoy,
    Need::OlderEnvoys,
    Need::Packages(&demo::PACKAGES),
];
pub(crate) const ACCESS_LOG_PACKAGES: [Package; 2] = [NGINX, H2LOAD];
pub(super) const ACCESS_LOGS: &[Need] = &[
    Need::Root,
    Need::Agent,
    Need::Envoy,
    Need::OlderEnvoys,
    Need::Packages(&ACCESS_LOG_PACKAGES),
];
/// Network namespaces with packet loss.
pub(super) const NETWORK: &[Need] = &[Need::Root, Need::Agent, Need::Packages(&demo::PACKAGES)];
pub(super) const NETWORK_TCP: &[Need] = &[
    Need::Root,
    Need::Agent,
    Need::Packages(&demo::PACKAGES),
    Need::Packages(&[PYTHON]),
];
pub(super) const UNWINDING: &[Need] = &[
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
pub(super) const UNWINDING_PROGRAMS: &[Need] = &[
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
/// Programs and files of hostile people, of which one is compiled.
pub(super) const STRANGERS: &[Need] = &[
    Need::Root,
    Need::Agent,
    Need::Packages(&[INFERRED_PACKAGES[0]]),
];
/// Requests made from the OpenAPI document.
pub(super) const API_FUZZ: &[Need] = &[Need::Root, Need::Agent, Need::Schemathesis];
pub(super) const IDLE: &[Need] = &[
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
        PYTHON,
        Package {
            name: "default-jdk-headless",
            evidence: "/usr/bin/javac",
        },
    ]),
];
pub(super) const CURL: Package = Package {
    name: "curl",
    evidence: "/usr/bin/curl",
};
pub(super) const H2LOAD: Package = Package {
    name: "nghttp2-client",
    evidence: "/usr/bin/h2load",
};
pub(super) const POSTGRESQL: Package = Package {
    name: "postgresql",
    evidence: "/usr/lib/postgresql",
};
pub(super) const REQUESTS_HTTP: &[Need] = &[
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
pub(super) const REQUESTS_STORES: &[Need] = &[
    Need::Root,
    Need::Agent,
    Need::Packages(&demo::PACKAGES),
    Need::Packages(&[
        REDIS,
        Package {
            name: "redis-tools",
            evidence: "/usr/bin/redis-benchmark",
        },
        POSTGRESQL,
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
/// Peers of HTTP, gRPC and stores of which some connections are there before the task.
pub(crate) const REQUESTS_TRUTH_PACKAGES: [Package; 12] = [
    NGINX,
    GO,
    REDIS,
    POSTGRESQL,
    Package {
        name: "mariadb-server",
        evidence: "/usr/sbin/mariadbd",
    },
    Package {
        name: "python3-h2",
        evidence: "/usr/lib/python3/dist-packages/h2",
    },
    Package {
        name: "python3-grpcio",
        evidence: "/usr/lib/python3/dist-packages/grpc",
    },
    Package {
        name: "python3-pymysql",
        evidence: "/usr/lib/python3/dist-packages/pymysql",
    },
    Package {
        name: "libdbd-mariadb-perl",
        evidence: "/usr/share/doc/libdbd-mariadb-perl",
    },
    Package {
        name: "gunicorn",
        evidence: "/usr/bin/gunicorn",
    },
    Package {
        name: "haproxy",
        evidence: "/usr/sbin/haproxy",
    },
    Package {
        name: "default-jdk-headless",
        evidence: "/usr/bin/javac",
    },
];
pub(super) const REQUESTS_TRUTH: &[Need] = &[
    Need::Root,
    Need::Agent,
    Need::GrpcGo,
    Need::Packages(&REQUESTS_TRUTH_PACKAGES),
];
/// What comes from other places than Debian; `maven` is needed to fetch it.
pub(super) const REQUESTS_BROKERS: &[Need] = &[
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
pub(super) const REQUESTS_TLS: &[Need] = &[
    Need::Root,
    Need::Agent,
    Need::OldTls,
    Need::Packages(&[
        POSTGRESQL,
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
/// An API server; the agent comes in where names are tested.
pub(super) const KUBERNETES: &[Need] = &[Need::Root, Need::Agent, Need::Kubernetes];
/// A runtime of pods, without an engine.
pub(super) const PODS: &[Need] = &[
    Need::Root,
    Need::Agent,
    Need::Packages(&[
        Package {
            name: "containerd",
            evidence: "/usr/bin/containerd",
        },
        Package {
            name: "runc",
            evidence: "/usr/sbin/runc",
        },
        Package {
            name: "containernetworking-plugins",
            evidence: "/usr/lib/cni/bridge",
        },
        Package {
            name: "iproute2",
            evidence: "/usr/sbin/ip",
        },
    ]),
];
pub(super) const CONTAINERS: &[Need] = &[
    Need::Root,
    Need::Agent,
    Need::Envoy,
    Need::Packages(engine::PACKAGES),
];
pub(super) const KUBERNETES_NAMES: &[Need] = &[
    Need::Root,
    Need::Agent,
    Need::Kubernetes,
    Need::Packages(engine::PACKAGES),
];
/// The image of what is shipped, in an engine.
pub(super) const SHIPPED: &[Need] = &[
    Need::Root,
    Need::Agent,
    Need::Web,
    Need::Ebpf,
    Need::SbomTool,
    Need::Packages(engine::PACKAGES),
];
pub(super) const UI_STAND_IN: &[Need] = &[Need::Tests, Need::Web, Need::Packages(&UI_PACKAGES)];
pub(super) const UI: &[Need] = &[
    Need::Root,
    Need::Agent,
    Need::Web,
    Need::Envoy,
    Need::Packages(&UI_PACKAGES),
    Need::Packages(&demo::PACKAGES),
];
/// Programs that the tests of names compile, strip, compress and run.
pub(super) const NAME_TOOLS: [Package; 3] = [
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
pub(super) const NAMES: &[Need] = &[
    Need::Root,
    Need::Agent,
    Need::Packages(&NAME_TOOLS),
    Need::Packages(&[
        PYTHON,
        Package {
            name: "nodejs",
            evidence: "/usr/bin/node",
        },
        Package {
            name: "default-jdk-headless",
            evidence: "/usr/bin/javac",
        },
    ]),
];
pub(super) const KERNELS: &[Need] = &[
    Need::Root,
    Need::Agent,
    Need::KernelImages,
    Need::Packages(&vm::PACKAGES),
];

/// Programs that compile what is damaged.
pub(super) const FUZZ: &[Need] = &[
    Need::CheckedTests,
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

pub(super) const INFERRED: &[Need] = &[
    Need::CheckedTests,
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

pub(super) const TLS_SITES: &[Need] = &[
    Need::CheckedTests,
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

/// What the step `unwind` compiles its programs with.
pub(super) const UNWIND: &[Need] = &[
    Need::CheckedTests,
    Need::Envoy,
    Need::Packages(&unwind_test::PACKAGES),
];
