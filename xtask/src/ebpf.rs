//! `cargo xtask ebpf`: the eBPF object alone.

use std::{
    env, fs, iter,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

use crate::{
    exec,
    setup::{self, EbpfToolchain, Part},
    workspace::Workspace,
};

/// `e_machine` of an eBPF object.
const EM_BPF: u16 = 247;
const TARGET: &str = "bpfel-unknown-none";

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    setup::run(workspace, &[Part::Ebpf])?;
    let toolchain = EbpfToolchain::read(workspace)?;
    let object = build(workspace, &toolchain, "ebpf")?;
    let size = fs::metadata(&object)
        .with_context(|| format!("read {}", object.display()))?
        .len();
    println!("{}: {size} bytes", object.display());
    Ok(())
}

/// Builds the object with its own target folder below cargo's, so that it shares nothing with the host build.
pub(crate) fn build(
    workspace: &Workspace,
    toolchain: &EbpfToolchain,
    purpose: &str,
) -> Result<PathBuf> {
    let target = workspace.target.join(purpose);
    let mut build = command(workspace, toolchain)?;
    build.args(["--release", "--target-dir"]).arg(&target);
    exec::on_terminal(&mut build)?;
    let object = target.join(TARGET).join("release/profiler-ebpf");
    ensure_is_bpf(&object)?;
    Ok(object)
}

/// `cargo build` for the eBPF crate with the nightly, independent of rustup's settings.
fn command(workspace: &Workspace, toolchain: &EbpfToolchain) -> Result<Command> {
    let mut command = Command::new(&toolchain.cargo);
    // bpf-linker looks for the toolchain's libLLVM in ../lib of each folder in PATH; it must find this one first.
    let programs = toolchain
        .rustc
        .parent()
        .context("rustc lies in no folder")?
        .to_owned();
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths(iter::once(programs).chain(env::split_paths(&path)))
        .context("compose PATH")?;
    let architecture = env::consts::ARCH;
    command
        .args([
            "build",
            "--package",
            "profiler-ebpf",
            "--target",
            TARGET,
            "-Z",
            "build-std=core",
        ])
        .env("PATH", path)
        .env("RUSTC", &toolchain.rustc)
        .env(
            "CARGO_ENCODED_RUSTFLAGS",
            [
                format!("--cfg=bpf_target_arch=\"{architecture}\""),
                "-Cdebuginfo=2".to_owned(),
                "-Clink-arg=--btf".to_owned(),
                format!("-Clinker={}", toolchain.bpf_linker.display()),
            ]
            .join("\u{1f}"),
        )
        // Set by `cargo run` for the stable toolchain, whose libLLVM bpf-linker would take.
        .env_remove("LD_LIBRARY_PATH")
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("RUSTC_WRAPPER")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .current_dir(&workspace.root);
    Ok(command)
}

fn ensure_is_bpf(object: &Path) -> Result<()> {
    let bytes = fs::read(object).with_context(|| format!("read {}", object.display()))?;
    let machine = bytes
        .get(18..20)
        .and_then(|field| <[u8; 2]>::try_from(field).ok())
        .map(u16::from_le_bytes);
    ensure!(
        bytes.starts_with(b"\x7fELF") && machine == Some(EM_BPF),
        "{} is not an eBPF object",
        object.display()
    );
    Ok(())
}
