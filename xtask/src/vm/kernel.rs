//! Kernel images from packages.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

use crate::{
    debian, exec,
    pins::{Kernel, KernelArchive},
    setup,
    stamp::Stamp,
    workspace::Workspace,
};

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
    let hashes: Vec<&str> = kernel.files.iter().map(|file| file.sha256).collect();
    let stamp = Stamp::new(folder.join("stamp"), kernel.series, &hashes.join(" "));
    let origin = folder.join("package");
    setup::ensure_kept(&folder, &stamp, || {
        let packages = download(workspace, kernel, &folder)?;
        extract(&packages, &folder, &image, &modules)?;
        let name = packages
            .first()
            .and_then(|package| package.file_name())
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        fs::write(&origin, name).with_context(|| format!("write {}", origin.display()))?;
        for package in &packages {
            fs::remove_file(package).with_context(|| format!("remove {}", package.display()))?;
        }
        Ok(())
    })?;
    let description =
        fs::read_to_string(&origin).with_context(|| format!("read {}", origin.display()))?;
    Ok(Image {
        path: image,
        modules,
        description,
    })
}

fn download(workspace: &Workspace, kernel: &Kernel, folder: &Path) -> Result<Vec<PathBuf>> {
    let pinned = kernel.files.iter().map(|file| match kernel.archive {
        KernelArchive::Debian { .. } => debian::fetch(workspace, file, folder),
        KernelArchive::Other { base } => debian::fetch_from(workspace, base, file, folder),
    });
    let error = match pinned.collect() {
        Ok(packages) => return Ok(packages),
        Err(error) => error,
    };
    let KernelArchive::Debian { suite } = kernel.archive else {
        return Err(error);
    };
    println!(
        "note: {error:#}; taking the newest {} kernel of {suite} instead",
        kernel.series
    );
    let (series, flavour) = match kernel.series.strip_suffix("-rt") {
        Some(series) => (series, "rt"),
        None => (kernel.series, "cloud"),
    };
    let meta = format!("linux-image-{flavour}-amd64");
    let prefix = format!("linux-image-{series}.");
    debian::fetch_newest(workspace, suite, &meta, Some(&prefix), folder)
        .map(|package| vec![package])
}

/// Takes the image and a few modules out of the packages.
fn extract(packages: &[PathBuf], folder: &Path, image: &Path, modules: &Path) -> Result<()> {
    let unpacked = folder.join("unpacked");
    for package in packages {
        debian::unpack(package, &unpacked)?;
    }
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
        "{packages:?} hold {copied} of the modules {MODULES:?}"
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
        .with_context(|| format!("{packages:?} hold no kernel image"))?;
    fs::rename(&found, image).with_context(|| format!("rename {}", found.display()))?;
    fs::remove_dir_all(&unpacked).with_context(|| format!("remove {}", unpacked.display()))
}
