//! The file system of a test machine: busybox, the agent and the integration tests with their
//! libraries, a workload, and a script.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

use super::guest_tests;
use crate::{debian, exec, pins, workspace::Workspace};

const INIT: &str = include_str!("guest/init.sh");
const WORKLOAD: &str = include_str!("guest/workload.c");

/// Leaves an archive for `qemu -initrd` in a folder.
pub(super) fn build(
    workspace: &Workspace,
    folder: &Path,
    agent: &Path,
    tests: &Path,
    modules: &Path,
) -> Result<PathBuf> {
    ensure!(
        agent.is_file(),
        "no agent at {}: run `cargo xtask build`",
        agent.display()
    );
    let root = folder.join("root");
    if root.exists() {
        fs::remove_dir_all(&root).with_context(|| format!("remove {}", root.display()))?;
    }
    for part in ["bin", "proc", "sys", "dev", "tmp", "run", "etc"] {
        let part = root.join(part);
        fs::create_dir_all(&part).with_context(|| format!("create {}", part.display()))?;
    }
    install(&busybox(workspace)?, &root.join("bin/busybox"))?;
    for (program, name) in [(agent, "profiler-agent"), (tests, "integration-tests")] {
        install(program, &root.join("bin").join(name))?;
        for library in shared_libraries(program)? {
            let below = library.strip_prefix("/").unwrap_or(&library);
            install(&library, &root.join(below))?;
        }
    }
    for module in fs::read_dir(modules).with_context(|| format!("list {}", modules.display()))? {
        let module = module?.path();
        let name = module.file_name().unwrap_or_default();
        install(&module, &root.join("etc/modules").join(name))?;
    }
    let names = root.join("etc/tests");
    fs::write(&names, guest_tests::NAMES.join("\n"))
        .with_context(|| format!("write {}", names.display()))?;
    compile_workload(folder, &root.join("bin/workload"))?;
    let init = root.join("init");
    fs::write(&init, INIT).with_context(|| format!("write {}", init.display()))?;
    make_executable(&init)?;
    let archive = folder.join("initramfs.cpio");
    let mut pack = Command::new("sh");
    pack.args([
        "-c",
        r#"find . -print0 | cpio --null --create --format=newc --quiet > "$1""#,
        "sh",
    ]);
    pack.arg(&archive).current_dir(&root);
    exec::output(&mut pack).context("pack the initramfs")?;
    Ok(archive)
}

/// Leaves target/tools/kernels/busybox/bin/busybox.
pub(super) fn busybox(workspace: &Workspace) -> Result<PathBuf> {
    let folder = workspace.tools.join("kernels/busybox");
    let program = folder.join("bin/busybox");
    if program.exists() {
        return Ok(program);
    }
    let package = debian::fetch(workspace, &pins::BUSYBOX, &folder).or_else(|error| {
        println!(
            "note: {error:#}; taking the newest busybox-static of {} instead",
            pins::BUSYBOX_SUITE
        );
        debian::fetch_newest(
            workspace,
            pins::BUSYBOX_SUITE,
            "busybox-static",
            None,
            &folder,
        )
    })?;
    debian::unpack(&package, &folder)?;
    ensure!(
        program.exists(),
        "{} holds no bin/busybox",
        package.display()
    );
    Ok(program)
}

/// What the dynamic linker would load for a program, the linker included.
fn shared_libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let listing = exec::output(Command::new("ldd").arg(program))?;
    ensure!(
        !listing.contains("not found"),
        "{} lacks a library:\n{listing}",
        program.display()
    );
    Ok(libraries_in(&listing))
}

/// Absolute paths in the output of `ldd`.
fn libraries_in(listing: &str) -> Vec<PathBuf> {
    listing
        .lines()
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')))
        .map(PathBuf::from)
        .collect()
}

/// Static, because the machine has no other use for a C library; with frame pointers and symbols.
fn compile_workload(folder: &Path, program: &Path) -> Result<()> {
    let source = folder.join("workload.c");
    fs::write(&source, WORKLOAD).with_context(|| format!("write {}", source.display()))?;
    let mut compile = Command::new("gcc");
    compile
        .args(["-O1", "-g", "-static", "-fno-omit-frame-pointer", "-o"])
        .arg(program)
        .arg(&source);
    exec::to_log(&mut compile, &folder.join("workload.log"))
}

fn install(original: &Path, target: &Path) -> Result<()> {
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    }
    fs::copy(original, target).with_context(|| format!("copy {}", original.display()))?;
    make_executable(target)
}

fn make_executable(path: &Path) -> Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        .with_context(|| format!("make {} executable", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_read_from_ldd() {
        let listing = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        let expected = [
            "/lib/x86_64-linux-gnu/libc.so.6",
            "/lib64/ld-linux-x86-64.so.2",
        ];
        assert_eq!(libraries_in(listing), expected.map(PathBuf::from));
        assert!(libraries_in("\tstatically linked\n").is_empty());
    }
}
