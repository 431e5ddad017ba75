//! The step `toolchain-fallback`: what the set-up does where rustup cannot fetch the nightly's library source.

use std::{fs, process::Command};

use anyhow::{Context as _, Result, ensure};

use super::Tally;
use crate::{
    ebpf, exec,
    setup::{EbpfToolchain, LibrarySource, build_private_sysroot, installed_with_commit},
    workspace::Workspace,
};

pub(super) fn run(workspace: &Workspace, tally: &mut Tally) -> Result<()> {
    let library = library(workspace)?;
    println!("library source: {}", library.0.display());
    let (cargo, rustc) = build_private_sysroot(workspace, &library)?;
    let sysroot = exec::output(Command::new(&rustc).args(["--print", "sysroot"]))?;
    let expected = workspace.tools.join("private-sysroot");
    ensure!(
        sysroot.trim() == expected.to_string_lossy(),
        "the private compiler's sysroot is {}, not {}",
        sysroot.trim(),
        expected.display()
    );
    tally.count(true);
    let bpf_linker = EbpfToolchain::read(workspace)?.bpf_linker;
    let purpose = "ebpf-fallback";
    let target = workspace.target.join(purpose);
    if target.exists() {
        // A compilation from nothing is the proof.
        fs::remove_dir_all(&target).with_context(|| format!("remove {}", target.display()))?;
    }
    ebpf::build(
        workspace,
        &EbpfToolchain {
            cargo,
            rustc,
            bpf_linker,
        },
        purpose,
    )?;
    tally.count(true);
    fs::remove_dir_all(&target).with_context(|| format!("remove {}", target.display()))
}

/// Debian's source; when the pinned package has left the archive, that of an installed nightly, so that the
/// private sysroot is tested in any case.
fn library(workspace: &Workspace) -> Result<LibrarySource> {
    let error = match LibrarySource::fetch_from_debian(workspace) {
        Ok(library) => return Ok(library),
        Err(error) => error,
    };
    println!("note: {error:#}");
    let (_, rustc) = installed_with_commit()?;
    LibrarySource::of_toolchain(&rustc)
        .with_context(|| format!("no library source: {} has none either", rustc.display()))
}
