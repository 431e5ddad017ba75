//! `cargo xtask dist`: one static program with everything inside, to copy to a machine or into an image.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use object::read::elf::{ElfFile64, FileHeader as _, ProgramHeader as _};

use crate::{
    debian::Package,
    exec, notice,
    setup::{self, BINARY, Part},
    stamp,
    workspace::Workspace,
};

/// Largest program that is shipped.
pub(crate) const BUDGET_BYTES: u64 = 25_000_000;
const MUSL: &str = "x86_64-unknown-linux-musl";
const GLIBC: &str = "x86_64-unknown-linux-gnu";
/// Relative relocations in an eighth of the room: some 50,000 in a program that can be loaded anywhere.
const SHORT_RELOCATIONS: &str = "-Clink-arg=-Wl,-z,pack-relative-relocs";
/// rustup gets this long to fetch the library of a target (4 s on a good line).
const RUSTUP_LIMIT: Duration = Duration::from_mins(2);
/// zstd and ring are partly C.
pub(crate) const PACKAGES: &[Package] = &[Package {
    name: "musl-tools",
    evidence: "/usr/bin/musl-gcc",
}];

#[derive(Args, Debug, Default)]
pub(crate) struct DistArgs {
    /// Build although files differ from the commit that the program will name
    #[arg(long)]
    pub(crate) allow_dirty: bool,
}

/// A program that passed every check.
pub(crate) struct Shipped {
    pub(crate) program: PathBuf,
    pub(crate) target: &'static str,
}

pub(crate) fn run(workspace: &Workspace, args: &DistArgs) -> Result<()> {
    build(workspace, args).map(drop)
}

/// Builds and checks the program, and prints its size.
pub(crate) fn build(workspace: &Workspace, args: &DistArgs) -> Result<Shipped> {
    if !args.allow_dirty {
        ensure_committed(workspace)?;
    }
    setup::run(workspace, &BINARY)?;
    let target = target(workspace)?;
    compile(workspace, &target)?;
    let built = workspace
        .target
        .join(target.triple)
        .join("dist/profiler-agent");
    // A checkout without its history cannot be named: what is made of one is tested, and not shipped.
    let may_be_nameless = args.allow_dirty && !workspace.has_history();
    check(&built, may_be_nameless)?;
    let folder = folder(workspace);
    fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    let program = program(workspace);
    let bytes = fs::metadata(&built).context("its size")?.len();
    // The one that is there may run, and stays when it is the same.
    if stamp::file_hash(&program).ok() != Some(stamp::file_hash(&built)?) {
        fs::copy(&built, &program).with_context(|| format!("copy {}", built.display()))?;
    }
    notice::write(workspace, &folder)?;
    println!(
        "{}: {bytes} bytes of at most {BUDGET_BYTES}, beside {}",
        program.display(),
        notice::FILES.join(", ")
    );
    Ok(Shipped {
        program,
        target: target.triple,
    })
}

/// Where everything lies that is shipped.
pub(crate) fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target.join("dist-files")
}

/// The program that is shipped, and that tests run.
pub(crate) fn program(workspace: &Workspace) -> PathBuf {
    folder(workspace).join("profiler-agent")
}

/// The program says which commit it is; it must be true.
fn ensure_committed(workspace: &Workspace) -> Result<()> {
    let changed = exec::output(
        Command::new("git")
            .args(["status", "--porcelain", "--untracked-files=no"])
            .current_dir(&workspace.root),
    )?;
    ensure!(
        changed.trim().is_empty(),
        "these files differ from the commit that the program will name; commit them, or give --allow-dirty:\n{}",
        changed.trim_end()
    );
    Ok(())
}

/// What a static program is built for.
struct Target {
    triple: &'static str,
    flags: String,
    compiler: Option<&'static str>,
}

/// musl, which is made to be linked statically; glibc where rustup cannot fetch it.
fn target(workspace: &Workspace) -> Result<Target> {
    let mut add = exec::limited(RUSTUP_LIMIT, "rustup");
    add.args(["target", "add", MUSL])
        .current_dir(&workspace.root);
    match exec::to_log(&mut add, &workspace.logs().join("rustup-musl.log")) {
        Ok(()) => {
            setup::run(workspace, &[Part::Packages(PACKAGES)])?;
            Ok(Target {
                triple: MUSL,
                flags: SHORT_RELOCATIONS.to_owned(),
                compiler: Some("musl-gcc"),
            })
        }
        Err(error) => {
            println!(
                "note: {MUSL} cannot be fetched, so that glibc is linked statically: {error:#}"
            );
            Ok(Target {
                triple: GLIBC,
                flags: format!("-Ctarget-feature=+crt-static\x1f{SHORT_RELOCATIONS}"),
                compiler: None,
            })
        }
    }
}

fn compile(workspace: &Workspace, target: &Target) -> Result<()> {
    let mut build = exec::cargo(&workspace.root);
    build
        .args(["build", "--profile", "dist", "--locked"])
        .args(["--package", "profiler-agent", "--target", target.triple])
        .env("CARGO_ENCODED_RUSTFLAGS", &target.flags)
        .env_remove("PROFILER_SKIP_EBPF");
    if let Some(compiler) = target.compiler {
        build.env(format!("CC_{}", target.triple.replace('-', "_")), compiler);
    }
    exec::on_terminal(&mut build)
}

const NAMELESS: &str = "its commit is unknown";

/// Static, complete and small, or it is not shipped.
fn check(program: &Path, may_be_nameless: bool) -> Result<()> {
    let bytes = fs::read(program).with_context(|| format!("read {}", program.display()))?;
    ensure!(
        is_static(&bytes)?,
        "{} needs a dynamic loader or libraries",
        program.display()
    );
    let said = exec::output(Command::new(program).arg("--version"))?;
    let mut missing = left_out(&said);
    missing.retain(|part| !(may_be_nameless && *part == NAMELESS));
    ensure!(
        missing.is_empty(),
        "{} is a stub: {}",
        program.display(),
        missing.join(", ")
    );
    let size = u64::try_from(bytes.len()).context("its size")?;
    ensure!(
        size <= BUDGET_BYTES,
        "{}: {size} bytes, more than {BUDGET_BYTES}",
        program.display()
    );
    Ok(())
}

/// Whether nothing else is needed to run it: no loader, and so no libraries.
fn is_static(program: &[u8]) -> Result<bool> {
    let file = ElfFile64::<object::Endianness>::parse(program).context("parse the program")?;
    let endian = file.endian();
    let headers = file
        .elf_header()
        .program_headers(endian, program)
        .context("read its program headers")?;
    Ok(headers
        .iter()
        .all(|header| header.p_type(endian) != object::elf::PT_INTERP))
}

/// Lines of `--version` that say what this build is without.
fn left_out(version: &str) -> Vec<&str> {
    let parts = ["eBPF programs: embedded", "web UI: embedded"];
    let mut missing: Vec<&str> = parts
        .into_iter()
        .filter(|part| !version.lines().any(|line| line == *part))
        .collect();
    let first = version.lines().next().unwrap_or_default();
    if first.is_empty() || first.ends_with("(unknown)") {
        missing.push(NAMELESS);
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stub_is_named() {
        let whole =
            "profiler-agent 0.1.0 (00ff)\neBPF programs: embedded\nweb UI: embedded\ntarget: x\n";
        assert_eq!(left_out(whole), [""; 0]);
        let stub = whole.replace("eBPF programs: embedded", "eBPF programs: left out");
        assert_eq!(left_out(&stub), ["eBPF programs: embedded"]);
        let nowhere = whole.replace("00ff", "unknown");
        assert_eq!(left_out(&nowhere), [NAMELESS]);
    }

    #[test]
    fn a_program_with_a_loader_is_not_static() {
        let own = fs::read("/proc/self/exe").unwrap();
        assert!(!is_static(&own).unwrap());
    }
}
