//! Programs with known behaviour, compiled when first needed and kept under target/.

use std::{
    collections::BTreeMap,
    collections::hash_map::DefaultHasher,
    fs,
    hash::{Hash as _, Hasher as _},
    io::ErrorKind,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::paths;

/// Programs that this process has compiled or tried to.
static BUILDS: AtomicU32 = AtomicU32::new(0);

/// The functions of the `shares` programs in the order of their shares.
pub const HOT_FUNCTIONS: [&str; 3] = ["hot_sixty", "hot_thirty", "hot_ten"];

/// A program in tests/workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    SharesC,
    /// `SharesC` linked statically, so that it runs under any root.
    SharesStatic,
    SharesRust,
    Contain,
    Hostile,
    /// Calls itself as instructed; static and stripped, so that its functions have no names.
    HostileNames,
    /// An HTTP server in Go and its client, stripped (`-ldflags=-s -w`).
    GoServer,
    /// Go's HTTP server with the shortest answer.
    GoHello,
    /// A TLS server and client in Go, stripped.
    TlsPeerGo,
    /// Two programs that exec each other.
    ExecBusy,
    ExecIdle,
    /// HTTP/2 without TLS by Go's own library.
    Http2ServerGo,
    /// Known call chains without frame pointers, and the same program linked in other ways.
    Unwind,
    UnwindStatic,
    UnwindStaticPie,
    UnwindMusl,
    UnwindMuslStatic,
    Unwind32,
    /// A Rust release program without frame pointers.
    UnwindRust,
    /// A Go program.
    UnwindGo,
    /// A Go server with next to nothing to do.
    IdleServerGo,
    /// Sleeps in known ways, without frame pointers.
    Asleep,
    /// Waits in known ways, without frame pointers.
    Waits,
    /// Threads that measure the time that passes for them.
    Elapsed,
    /// Waits that are ended in known ways.
    Wakers,
    /// Event loops that are held in known ways.
    EventLoop,
    /// Uses TCP sockets in many ways and says what it did.
    Sockets,
    /// Passes sockets on, and dies with them.
    Descriptors,
    /// TCP connections at a known rate.
    Connections,
}

impl Workload {
    fn source(self) -> &'static str {
        match self {
            Self::SharesC | Self::SharesStatic => "shares.c",
            Self::SharesRust => "shares.rs",
            Self::Contain => "contain.c",
            Self::Hostile => "hostile.c",
            Self::HostileNames => "hostile_names.c",
            Self::GoServer => "go_server.go",
            Self::GoHello => "go_hello.go",
            Self::TlsPeerGo => "tls_peer.go",
            Self::Http2ServerGo => "http2_server.go",
            Self::ExecBusy | Self::ExecIdle => "exec_pair.c",
            Self::Unwind
            | Self::UnwindStatic
            | Self::UnwindStaticPie
            | Self::UnwindMusl
            | Self::UnwindMuslStatic
            | Self::Unwind32 => "unwind.c",
            Self::UnwindRust => "unwind.rs",
            Self::UnwindGo => "unwind.go",
            Self::IdleServerGo => "idle_server.go",
            Self::Asleep => "asleep.c",
            Self::Waits => "waits.c",
            Self::Elapsed => "elapsed.c",
            Self::Wakers => "wakers.c",
            Self::EventLoop => "event_loop.c",
            Self::Sockets => "sockets.c",
            Self::Descriptors => "descriptors.c",
            Self::Connections => "connections.c",
        }
    }

    fn compiler(self) -> (&'static str, Vec<&'static str>) {
        let c = vec![
            "-O2",
            "-g",
            "-fno-omit-frame-pointer",
            "-mno-omit-leaf-frame-pointer",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-pthread",
        ];
        match self {
            Self::SharesC | Self::Connections => ("gcc", c),
            Self::SharesStatic | Self::Contain | Self::Hostile => {
                ("gcc", c.into_iter().chain(["-static"]).collect())
            }
            Self::ExecBusy => ("gcc", c.into_iter().chain(["-static", "-no-pie"]).collect()),
            Self::ExecIdle => (
                "gcc",
                c.into_iter()
                    .chain(["-static", "-no-pie", "-DIDLE"])
                    .collect(),
            ),
            Self::HostileNames => (
                "gcc",
                vec![
                    "-O2", "-s", "-static", "-Wall", "-Wextra", "-Werror", "-pthread",
                ],
            ),
            Self::GoServer | Self::GoHello | Self::TlsPeerGo | Self::Http2ServerGo => {
                ("go", vec!["build", "-ldflags=-s -w"])
            }
            Self::Unwind => ("gcc", without_frame_pointers(&["-Wl,-z,lazy"])),
            Self::UnwindStatic => ("gcc", without_frame_pointers(&["-static", "-no-pie"])),
            Self::UnwindStaticPie => ("gcc", without_frame_pointers(&["-static-pie"])),
            Self::UnwindMusl => ("musl-gcc", without_frame_pointers(&[])),
            Self::UnwindMuslStatic => ("musl-gcc", without_frame_pointers(&["-static"])),
            Self::Unwind32 => ("gcc", without_frame_pointers(&["-m32"])),
            Self::UnwindRust => (
                "rustc",
                vec!["--edition=2024", "-O", "-g", "--crate-name=unwind"],
            ),
            Self::UnwindGo | Self::IdleServerGo => ("go", vec!["build"]),
            Self::Waits
            | Self::Elapsed
            | Self::Asleep
            | Self::Wakers
            | Self::EventLoop
            | Self::Sockets
            | Self::Descriptors => (
                "gcc",
                vec![
                    "-O2",
                    "-g",
                    "-fomit-frame-pointer",
                    "-Wall",
                    "-Wextra",
                    "-Werror",
                    "-pthread",
                ],
            ),
            Self::SharesRust => (
                "rustc",
                vec![
                    "--edition=2024",
                    "-O",
                    "-g",
                    "-Cforce-frame-pointers=yes",
                    "--crate-name=shares",
                ],
            ),
        }
    }

    /// Path of the compiled program, whose file name (and so its `comm`) is `name`.
    pub fn build(self, name: &str) -> Result<PathBuf> {
        let source = paths::workspace()
            .join("tests/workloads")
            .join(self.source());
        let text = fs::read(&source).with_context(|| format!("read {}", source.display()))?;
        let (compiler, flags) = self.compiler();
        let mut hasher = DefaultHasher::new();
        (&text, compiler, &flags).hash(&mut hasher);
        let folder = paths::workload_directory()?.join(format!("{:016x}", hasher.finish()));
        let built = folder.join(name);
        if built.is_file() {
            return Ok(built);
        }
        fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
        // Threads of a test may build it at once.
        let number = BUILDS.fetch_add(1, Ordering::Relaxed);
        let fresh = folder.join(format!("{name}.{}.{number}", std::process::id()));
        compile(compiler, &flags, &source, &fresh)?;
        // Another test process may have been faster, and run what it made: that file stays.
        let kept = fs::hard_link(&fresh, &built);
        fs::remove_file(&fresh).context("remove the other name of the compiled program")?;
        match kept {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                Err(error).context("keep the compiled program")
            }
            _ => Ok(built),
        }
    }
}

fn without_frame_pointers(more: &[&'static str]) -> Vec<&'static str> {
    let flags = [
        "-O2",
        "-g",
        "-fomit-frame-pointer",
        "-fno-optimize-sibling-calls",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-pthread",
    ];
    flags.iter().chain(more).copied().collect()
}

fn compile(compiler: &str, flags: &[&str], source: &Path, output: &Path) -> Result<()> {
    let result = Command::new(compiler)
        .args(flags)
        .arg("-o")
        .arg(output)
        .arg(source)
        // Go wants a place for its cache, which it derives from HOME otherwise.
        .env("GOCACHE", paths::workload_directory()?.join("go-cache"))
        .env("GOTOOLCHAIN", "local")
        .env("CGO_ENABLED", "0")
        // rustup picks the pinned toolchain by the working directory.
        .current_dir(paths::workspace())
        // Programs of tests need no module and no network.
        .env("GO111MODULE", "off")
        .output()
        .with_context(|| {
            format!(
                "run {compiler} (Debian packages: gcc, libc6-dev, musl-tools, gcc-multilib, golang-go)"
            )
        })?;
    ensure!(
        result.status.success(),
        "{compiler} {}: {}",
        source.display(),
        String::from_utf8_lossy(&result.stderr)
    );
    Ok(())
}

/// What a `shares` program measured about itself.
#[derive(Clone, Debug, Deserialize)]
pub struct SharesReport {
    pub pid: u32,
    #[serde(default)]
    pub wall_ns: u64,
    #[serde(default)]
    pub cpu_ns: u64,
    /// CPU nanoseconds of each function.
    pub functions: BTreeMap<String, u64>,
    /// Units of work that each function has done.
    #[serde(default)]
    pub units: BTreeMap<String, u64>,
    #[serde(default)]
    pub threads: Vec<ThreadReport>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct ThreadReport {
    pub tid: u32,
    pub name: String,
    pub functions: BTreeMap<String, u64>,
}

impl SharesReport {
    pub fn parse(output: &str) -> Result<Self> {
        serde_json::from_str(output).with_context(|| format!("parse workload report {output:?}"))
    }

    /// Share of each function in percent.
    pub fn shares(&self) -> BTreeMap<String, f64> {
        shares_of(&self.functions)
    }
}

impl ThreadReport {
    /// Share of each function in percent of the thread's time.
    pub fn shares(&self) -> BTreeMap<String, f64> {
        shares_of(&self.functions)
    }

    pub fn cpu_ns(&self) -> u64 {
        self.functions.values().sum()
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "nanoseconds of a test stay below 2^52"
)]
fn shares_of(functions: &BTreeMap<String, u64>) -> BTreeMap<String, f64> {
    let total = functions.values().sum::<u64>().max(1) as f64;
    functions
        .iter()
        .map(|(name, ns)| (name.clone(), *ns as f64 * 100.0 / total))
        .collect()
}

/// CPU time that all threads of a process have used, in nanoseconds (from schedstat, exact).
pub fn process_cpu_ns(pid: u32) -> Result<u64> {
    let folder = format!("/proc/{pid}/task");
    let mut total = 0;
    for entry in fs::read_dir(&folder)
        .with_context(|| format!("read {folder}"))?
        .flatten()
    {
        let text = fs::read_to_string(entry.path().join("schedstat")).unwrap_or_default();
        total += text
            .split_whitespace()
            .next()
            .and_then(|ns| ns.parse().ok())
            .unwrap_or(0);
    }
    Ok(total)
}
