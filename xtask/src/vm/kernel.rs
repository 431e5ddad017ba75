//! Kernel images from Debian's packages.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

use crate::{debian, exec, pins::Kernel, setup, stamp::Stamp, workspace::Workspace};

/// What lists sockets; loaded in this order by `guest/init.sh`.
const MODULES: [&str; 3] = ["inet_diag", "tcp_diag", "unix_diag"];

/// A bootable image.
#[derive(Debug)]
pub(super) struct Image {
    pub(super) path: PathBuf,
    /// A folder of the modules that machines load.
    pub(super) modules: PathBuf,
    /// Its package, for people.
    pub(super) description: String,
}

/// The pinned kernel; when it has left the archive, the newest of its series, and that is said.
pub(super) fn fetch(workspace: &Workspace, kernel: &Kernel) -> Result<Image> {
    let folder = workspace.tools.join("kernels").join(kernel.series);
    let image = folder.join("vmlinuz");
    let modules = folder.join("modules");
    let stamp = Stamp::new(folder.join("stamp"), kernel.series, kernel.file.sha256);
    let origin = folder.join("package");
    setup::ensure_kept(&folder, &stamp, || {
        let package = download(workspace, kernel, &folder)?;
        extract(&package, &folder, &image, &modules)?;
        let name = package
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        fs::write(&origin, name).with_context(|| format!("write {}", origin.display()))?;
        fs::remove_file(&package).with_context(|| format!("remove {}", package.display()))
    })?;
    let description =
        fs::read_to_string(&origin).with_context(|| format!("read {}", origin.display()))?;
    Ok(Image {
        path: image,
        modules,
        description,
    })
}

fn download(workspace: &Workspace, kernel: &Kernel, folder: &Path) -> Result<PathBuf> {
    let error = match debian::fetch(workspace, &kernel.file, folder) {
        Ok(package) => return Ok(package),
        Err(error) => error,
    };
    println!(
        "note: {error:#}; taking the newest {} kernel of {} instead",
        kernel.series, kernel.suite
    );
    let prefix = format!("linux-image-{}.", kernel.series);
    debian::fetch_newest(
        workspace,
        kernel.suite,
        "linux-image-cloud-amd64",
        Some(&prefix),
        folder,
    )
}

/// Takes the image and a few modules out of the package.
fn extract(package: &Path, folder: &Path, image: &Path, modules: &Path) -> Result<()> {
    let unpacked = folder.join("unpacked");
    debian::unpack(package, &unpacked)?;
    if modules.exists() {
        fs::remove_dir_all(modules).with_context(|| format!("remove {}", modules.display()))?;
    }
    fs::create_dir_all(modules).with_context(|| format!("create {}", modules.display()))?;
    let mut copy = Command::new("find");
    copy.arg(&unpacked).args(["-type", "f", "("]);
    for (index, module) in MODULES.iter().enumerate() {
        if index > 0 {
            copy.arg("-o");
        }
        // Some series are compressed.
        copy.args(["-name", &format!("{module}.ko*")]);
    }
    copy.args([")", "-exec", "cp", "--target-directory"])
        .arg(modules)
        .args(["{}", "+"]);
    exec::output(&mut copy).context("copy modules")?;
    let copied = fs::read_dir(modules).map_or(0, Iterator::count);
    ensure!(
        copied == MODULES.len(),
        "{} holds {copied} of the modules {MODULES:?}",
        package.display()
    );
    let boot = unpacked.join("boot");
    let found = fs::read_dir(&boot)
        .with_context(|| format!("list {}", boot.display()))?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz-"))
        })
        .with_context(|| format!("{} holds no kernel image", package.display()))?;
    fs::rename(&found, image).with_context(|| format!("rename {}", found.display()))?;
    fs::remove_dir_all(&unpacked).with_context(|| format!("remove {}", unpacked.display()))
}
