//! The nightly that compiles the eBPF crate: by rustup, else an installed one with Debian's library source.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use super::private_sysroot::{self, LibrarySource};
use crate::{exec, pins, progress::Outcome, workspace::Workspace};

/// rustup gets this long to fetch the nightly (9 s on a good line).
const RUSTUP_LIMIT: Duration = Duration::from_mins(2);
/// Set to 1 to take the fallback although rustup works.
const FORCE_PRIVATE: &str = "PROFILER_FORCE_PRIVATE_SYSROOT";

/// target/tools/ebpf-toolchain.toml: read by the agent's build script.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EbpfToolchain {
    pub(crate) cargo: PathBuf,
    pub(crate) rustc: PathBuf,
    pub(crate) bpf_linker: PathBuf,
}

impl EbpfToolchain {
    pub(crate) fn read(workspace: &Workspace) -> Result<Self> {
        let path = Self::path(workspace);
        let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        toml::from_str(&text).with_context(|| format!("parse {}", path.display()))
    }

    fn write(&self, workspace: &Workspace) -> Result<()> {
        let path = Self::path(workspace);
        let text = toml::to_string(self).context("encode ebpf-toolchain.toml")?;
        fs::write(&path, text).with_context(|| format!("write {}", path.display()))
    }

    fn path(workspace: &Workspace) -> PathBuf {
        workspace.tools.join("ebpf-toolchain.toml")
    }

    fn is_usable(&self) -> bool {
        has_commit(&self.rustc) && has_library_source(&self.rustc) && self.cargo.exists()
    }
}

pub(crate) fn label() -> String {
    format!("eBPF toolchain {}", pins::NIGHTLY)
}

/// Finds or fetches the nightly and writes ebpf-toolchain.toml.
pub(crate) fn ensure(workspace: &Workspace) -> Result<(EbpfToolchain, Outcome)> {
    fs::create_dir_all(&workspace.tools).context("create target/tools")?;
    let forced = std::env::var_os(FORCE_PRIVATE).is_some_and(|value| value == "1");
    if !forced
        && let Ok(found) = EbpfToolchain::read(workspace)
        && found.is_usable()
        && found.bpf_linker == super::bpf_linker::path(workspace)
    {
        return Ok((found, Outcome::Cached));
    }
    let (cargo, rustc, outcome) = if forced {
        private(
            workspace,
            format!("private sysroot, because {FORCE_PRIVATE}=1"),
        )?
    } else {
        match by_rustup(workspace) {
            Ok((cargo, rustc)) => (cargo, rustc, Outcome::Done),
            Err(reason) => private(
                workspace,
                "private sysroot, because rustup could not fetch it".to_owned(),
            )
            .with_context(|| format!("rustup failed ({reason:#}), and so did the fallback"))?,
        }
    };
    let toolchain = EbpfToolchain {
        cargo,
        rustc,
        bpf_linker: super::bpf_linker::path(workspace),
    };
    ensure!(
        toolchain.is_usable(),
        "{} is not commit {} with a library source",
        toolchain.rustc.display(),
        pins::NIGHTLY_COMMIT
    );
    toolchain.write(workspace)?;
    Ok((toolchain, outcome))
}

/// An installed toolchain, under whatever name, whose compiler is the pinned commit: (cargo, rustc).
pub(crate) fn installed_with_commit() -> Result<(PathBuf, PathBuf)> {
    let names = exec::output(Command::new("rustup").args(["toolchain", "list", "--quiet"]))?;
    for name in names.split_whitespace() {
        let Ok((cargo, rustc)) = programs(name) else {
            continue;
        };
        if has_commit(&rustc) {
            return Ok((cargo, rustc));
        }
    }
    anyhow::bail!(
        "no installed toolchain is commit {}: run `rustup toolchain install {} --profile minimal -c rust-src` where rustup works",
        pins::NIGHTLY_COMMIT,
        pins::NIGHTLY
    )
}

fn by_rustup(workspace: &Workspace) -> Result<(PathBuf, PathBuf)> {
    if let Ok((cargo, rustc)) = programs(pins::NIGHTLY)
        && has_commit(&rustc)
        && has_library_source(&rustc)
    {
        return Ok((cargo, rustc));
    }
    let mut install = exec::limited(RUSTUP_LIMIT, "rustup");
    install.args([
        "toolchain",
        "install",
        pins::NIGHTLY,
        "--profile",
        "minimal",
        "-c",
        "rust-src",
    ]);
    install.arg("--no-self-update");
    exec::to_log(&mut install, &workspace.logs().join("rustup.log"))?;
    programs(pins::NIGHTLY)
}

fn private(workspace: &Workspace, remark: String) -> Result<(PathBuf, PathBuf, Outcome)> {
    let library = LibrarySource::fetch_from_debian(workspace)?;
    let (cargo, rustc) = private_sysroot::build(workspace, &library)?;
    Ok((cargo, rustc, Outcome::Remark(remark)))
}

/// The real programs of a toolchain (not rustup's proxies).
fn programs(toolchain: &str) -> Result<(PathBuf, PathBuf)> {
    let which = |program: &str| -> Result<PathBuf> {
        let path = exec::output(Command::new("rustup").args([
            "which",
            "--toolchain",
            toolchain,
            program,
        ]))?;
        Ok(PathBuf::from(path.trim()))
    };
    Ok((which("cargo")?, which("rustc")?))
}

fn has_commit(rustc: &Path) -> bool {
    exec::output(Command::new(rustc).arg("-vV")).is_ok_and(|version| {
        version
            .lines()
            .any(|line| line == format!("commit-hash: {}", pins::NIGHTLY_COMMIT))
    })
}

fn has_library_source(rustc: &Path) -> bool {
    exec::output(Command::new(rustc).args(["--print", "sysroot"])).is_ok_and(|sysroot| {
        Path::new(sysroot.trim())
            .join("lib/rustlib/src/rust/library/core/src/lib.rs")
            .exists()
    })
}
