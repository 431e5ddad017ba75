//! A sysroot of our own around an installed nightly, with a library source from elsewhere.
//!
//! rustc takes its sysroot from where its own files really lie, so `rustc` and its driver library are
//! hard-linked (or copied) into the new place; everything else is linked symbolically. The user's
//! toolchain is only read.

use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};

use super::toolchain::installed_with_commit;
use crate::{debian, pins, workspace::Workspace};

/// A folder that holds `library/` of the Rust sources.
#[derive(Debug)]
pub(crate) struct LibrarySource(pub(crate) PathBuf);

impl LibrarySource {
    /// Debian's `rust-src`, by hash, unpacked under target/tools.
    pub(crate) fn fetch_from_debian(workspace: &Workspace) -> Result<Self> {
        let folder = workspace.tools.join("debian-rust-src");
        let source = folder.join(pins::RUST_SRC_FOLDER);
        if !source.join("library/core/src/lib.rs").exists() {
            let package = debian::fetch(
                workspace,
                &pins::RUST_SRC,
                &workspace.tools.join("downloads"),
            )?;
            debian::unpack(&package, &folder)?;
            fs::remove_file(&package).with_context(|| format!("remove {}", package.display()))?;
        }
        Ok(Self(source))
    }

    /// The source that belongs to an installed toolchain, where there is one.
    pub(crate) fn of_toolchain(rustc: &Path) -> Option<Self> {
        let source = rustc.parent()?.parent()?.join("lib/rustlib/src/rust");
        source
            .join("library/core/src/lib.rs")
            .exists()
            .then_some(Self(source))
    }
}

/// Builds the sysroot anew: (cargo, rustc).
pub(crate) fn build(workspace: &Workspace, library: &LibrarySource) -> Result<(PathBuf, PathBuf)> {
    let (cargo, rustc) = installed_with_commit()?;
    let toolchain = rustc
        .parent()
        .and_then(Path::parent)
        .context("rustc lies in no toolchain folder")?;
    let sysroot = workspace.tools.join("private-sysroot");
    if sysroot.exists() {
        fs::remove_dir_all(&sysroot).with_context(|| format!("remove {}", sysroot.display()))?;
    }
    for folder in ["bin", "lib/rustlib/src"] {
        let folder = sysroot.join(folder);
        fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    }
    link_or_copy(&rustc, &sysroot.join("bin/rustc"))?;
    link_or_copy(&cargo, &sysroot.join("bin/cargo"))?;
    for path in children(&toolchain.join("lib"))? {
        let Some(name) = path.file_name() else {
            continue;
        };
        let target = sysroot.join("lib").join(name);
        if name.to_string_lossy().starts_with("librustc_driver") {
            link_or_copy(&path, &target)?;
        } else if name != "rustlib" {
            link(&path, &target)?;
        }
    }
    for path in children(&toolchain.join("lib/rustlib"))? {
        let Some(name) = path.file_name() else {
            continue;
        };
        if name != "src" {
            link(&path, &sysroot.join("lib/rustlib").join(name))?;
        }
    }
    link(&library.0, &sysroot.join("lib/rustlib/src/rust"))?;
    let rustc = sysroot.join("bin/rustc");
    ensure!(rustc.exists(), "{} does not exist", rustc.display());
    Ok((sysroot.join("bin/cargo"), rustc))
}

fn children(folder: &Path) -> Result<Vec<PathBuf>> {
    fs::read_dir(folder)
        .and_then(|entries| {
            entries
                .map(|entry| Ok(entry?.path()))
                .collect::<io::Result<_>>()
        })
        .with_context(|| format!("list {}", folder.display()))
}

fn link(original: &Path, link: &Path) -> Result<()> {
    symlink(original, link)
        .with_context(|| format!("link {} to {}", link.display(), original.display()))
}

fn link_or_copy(original: &Path, target: &Path) -> Result<()> {
    let original = original
        .canonicalize()
        .with_context(|| format!("resolve {}", original.display()))?;
    if fs::hard_link(&original, target).is_ok() {
        return Ok(());
    }
    // Another file system.
    fs::copy(&original, target)
        .map(drop)
        .with_context(|| format!("copy {} to {}", original.display(), target.display()))
}
