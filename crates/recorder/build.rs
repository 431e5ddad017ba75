//! Builds the eBPF object. Writes to `OUT_DIR` and `target/ebpf` only.

use std::{
    env, fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use flate2::{Compression, write::ZlibEncoder};
use object::build::elf::{Builder, SectionData};

/// The toolchain when `cargo xtask setup` has not written its own paths.
const EBPF_TOOLCHAIN: &str = "nightly-2026-05-20";

fn main() -> Result<()> {
    let manifest = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let root = manifest
        .ancestors()
        .nth(2)
        .context("the crate is not in a folder of the workspace")?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo:rerun-if-changed=build.rs");
    ebpf(root, &out)
}

/// Paths written by `cargo xtask setup`.
#[derive(serde::Deserialize)]
struct EbpfToolchain {
    cargo: PathBuf,
    rustc: PathBuf,
    bpf_linker: PathBuf,
}

/// Compiles `profiler-ebpf` into `OUT_DIR/profiler-ebpf.o.z`, compressed; with `PROFILER_SKIP_EBPF=1` an empty
/// file, which the loader recognises and names.
fn ebpf(root: &Path, out: &Path) -> Result<()> {
    println!("cargo:rerun-if-env-changed=PROFILER_SKIP_EBPF");
    let object = out.join("profiler-ebpf.o.z");
    if env::var("PROFILER_SKIP_EBPF").is_ok_and(|value| value == "1") {
        return fs::write(&object, []).context("write the empty eBPF object");
    }
    for source in [
        "profiler-ebpf/src",
        "profiler-ebpf/Cargo.toml",
        "profiler-common/src",
        "Cargo.lock",
    ] {
        println!("cargo:rerun-if-changed={}", root.join(source).display());
    }
    let toolchain = toolchain(root)?;
    let arch = env::var("CARGO_CFG_TARGET_ARCH")?;
    let flags = [
        format!("--cfg=bpf_target_arch=\"{arch}\""),
        "-Cdebuginfo=2".into(),
        "-Clink-arg=--btf".into(),
        format!("-Clinker={}", toolchain.bpf_linker.display()),
    ];
    // A target directory of its own: the outer cargo holds the lock of the other one.
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let target = root.join(target).join("ebpf");
    let mut command = Command::new(&toolchain.cargo);
    // Settings of the outer cargo must not leak into a build for another target.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO") || text.starts_with("RUST") {
            command.env_remove(&name);
        }
    }
    for kept in ["CARGO_HOME", "RUSTUP_HOME", "CARGO_NET_OFFLINE"] {
        if let Some(value) = env::var_os(kept) {
            command.env(kept, value);
        }
    }
    // bpf-linker finds libLLVM beside the rustc that PATH names; the outer cargo's library path
    // would give it another version.
    let bin = toolchain.rustc.parent().context("rustc has no folder")?;
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths(std::iter::once(bin.to_owned()).chain(env::split_paths(&path)))?;
    let status = command
        .env("PATH", path)
        .env_remove("LD_LIBRARY_PATH")
        .env("RUSTC", &toolchain.rustc)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
        .current_dir(root.join("profiler-ebpf"))
        .args([
            "build",
            "--release",
            "--locked",
            "-p",
            "profiler-ebpf",
            "--bin",
            "profiler-ebpf",
        ])
        .args([
            "--target",
            "bpfel-unknown-none",
            "-Z",
            "build-std=core",
            "--target-dir",
        ])
        .arg(&target)
        .status()
        .with_context(|| format!("run {}: {REMEDY}", toolchain.cargo.display()))?;
    if !status.success() {
        bail!("the eBPF object could not be built: {REMEDY}");
    }
    let built = target.join("bpfel-unknown-none/release/profiler-ebpf");
    let bytes = fs::read(&built).with_context(|| format!("read {}", built.display()))?;
    let slim = without_dwarf(&bytes).with_context(|| format!("slim {}", built.display()))?;
    let mut compressed = ZlibEncoder::new(Vec::new(), Compression::best());
    compressed.write_all(&slim)?;
    fs::write(&object, compressed.finish()?).with_context(|| format!("write {}", object.display()))
}

/// The object without DWARF, which is two thirds of it: bpf-linker has made BTF of it, and nothing else reads it.
fn without_dwarf(object: &[u8]) -> Result<Vec<u8>> {
    let mut builder = Builder::read(object)?;
    for section in &mut builder.sections {
        let name = section.name.to_string();
        section.delete = name.starts_with(".debug_") || name.starts_with(".rel.debug_");
    }
    builder.delete_orphans();
    // LLVM keeps the names of sections with those of symbols; the builder wants a section for them.
    let names = builder.sections.add();
    names.name = ".shstrtab".into();
    names.sh_type = object::elf::SHT_STRTAB;
    names.data = SectionData::SectionString;
    let mut slim = Vec::new();
    builder.write(&mut slim)?;
    Ok(slim)
}

const REMEDY: &str = "run `cargo xtask setup` to install the eBPF toolchain, \
                      or set PROFILER_SKIP_EBPF=1 to build an agent that cannot profile";

fn toolchain(root: &Path) -> Result<EbpfToolchain> {
    let written = root.join("target/tools/ebpf-toolchain.toml");
    println!("cargo:rerun-if-changed={}", written.display());
    if let Ok(text) = fs::read_to_string(&written) {
        return toml::from_str(&text).with_context(|| format!("parse {}", written.display()));
    }
    let which = |tool: &str| -> Result<PathBuf> {
        let output = Command::new("rustup")
            .args(["which", "--toolchain", EBPF_TOOLCHAIN, tool])
            .output()
            .with_context(|| format!("run rustup: {REMEDY}"))?;
        if !output.status.success() {
            bail!("toolchain {EBPF_TOOLCHAIN} is not installed: {REMEDY}");
        }
        Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
    };
    Ok(EbpfToolchain {
        cargo: which("cargo")?,
        rustc: which("rustc")?,
        bpf_linker: "bpf-linker".into(),
    })
}
