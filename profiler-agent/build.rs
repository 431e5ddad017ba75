//! Tells the crate where the built UI is and which revision it is built from, and builds the
//! eBPF object. Writes to `OUT_DIR` and
//! `target/ebpf` only.

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

const STUB_PAGE: &str = "<!doctype html>
<html lang=\"en\">
<head><meta charset=\"utf-8\"><title>profiler-agent: UI not built</title></head>
<body>
<h1>The web UI is not part of this build</h1>
<p>The agent was built without <code>web/dist</code>. Its API works as usual.</p>
<p>To build the UI and the agent together run <code>cargo xtask build</code> (needs Node 20).</p>
</body>
</html>
";

/// What `--version` says of the UI and of the eBPF programs.
const EMBEDDED: &str = "embedded";
const LEFT_OUT: &str = "left out";

fn main() -> Result<()> {
    let manifest = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let root = manifest
        .parent()
        .context("the agent's folder has no parent")?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo:rerun-if-changed=build.rs");
    ui(root, &out)?;
    git_revision(root);
    ebpf(root, &out)
}

/// Points `PROFILER_UI_DIST` at the built UI, or at a page that says how to build it.
fn ui(root: &Path, out: &Path) -> Result<()> {
    let built = root.join("web/dist");
    let dist = if built.join("index.html").is_file() {
        println!("cargo:rustc-env=PROFILER_UI={EMBEDDED}");
        built.clone()
    } else {
        println!("cargo:rustc-env=PROFILER_UI={LEFT_OUT}");
        let stub = out.join("ui-stub");
        fs::create_dir_all(&stub).with_context(|| format!("create {}", stub.display()))?;
        let page = stub.join("index.html");
        fs::write(&page, STUB_PAGE).with_context(|| format!("write {}", page.display()))?;
        stub
    };
    // A watched path that does not exist makes cargo run this script each time, so the folder
    // itself is watched only when it is there; its parent tells when it appears.
    let watched = [built, root.join("web"), root.to_path_buf()];
    if let Some(path) = watched
        .iter()
        .find(|path| path.exists())
        .filter(|path| *path != root)
    {
        println!("cargo:rerun-if-changed={}", path.display());
    }
    println!("cargo:rustc-env=PROFILER_UI_DIST={}", dist.display());
    Ok(())
}

/// Sets `PROFILER_GIT_REVISION` from the files of the repository, without running git.
fn git_revision(root: &Path) {
    let revision = read_revision(&root.join(".git")).unwrap_or_else(|| "unknown".into());
    println!("cargo:rustc-env=PROFILER_GIT_REVISION={revision}");
}

/// The commit that HEAD points to; `None` outside a repository or when its files are odd.
fn read_revision(dot_git: &Path) -> Option<String> {
    // In a linked work tree `.git` is a file that names the real folder.
    let git_dir = if dot_git.is_file() {
        let text = fs::read_to_string(dot_git).ok()?;
        dot_git
            .parent()?
            .join(text.trim().strip_prefix("gitdir: ")?)
    } else {
        dot_git.to_path_buf()
    };
    let common = fs::read_to_string(git_dir.join("commondir"))
        .map_or_else(|_| git_dir.clone(), |text| git_dir.join(text.trim()));
    let head = watched_text(&git_dir.join("HEAD"))?;
    let Some(reference) = head.trim().strip_prefix("ref: ") else {
        return as_commit(&head);
    };
    if let Some(text) = watched_text(&common.join(reference)) {
        return as_commit(&text);
    }
    let packed = watched_text(&common.join("packed-refs"))?;
    let line = packed
        .lines()
        .find(|line| line.ends_with(&format!(" {reference}")))?;
    as_commit(line.split_once(' ')?.0)
}

fn watched_text(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    println!("cargo:rerun-if-changed={}", path.display());
    Some(text)
}

fn as_commit(text: &str) -> Option<String> {
    let text = text.trim();
    let is_hash = text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| text.to_owned())
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
    println!("cargo:rustc-env=PROFILER_TARGET={}", env::var("TARGET")?);
    if env::var("PROFILER_SKIP_EBPF").is_ok_and(|value| value == "1") {
        println!("cargo:rustc-env=PROFILER_EBPF={LEFT_OUT}");
        return fs::write(&object, []).context("write the empty eBPF object");
    }
    println!("cargo:rustc-env=PROFILER_EBPF={EMBEDDED}");
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

/// The object without DWARF, which is two thirds of it: bpf-linker has made BTF of it, and nobody else reads it.
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
