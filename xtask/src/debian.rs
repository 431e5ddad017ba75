//! Debian's archive: packages of this machine, and single files fetched without installing them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail, ensure};

use crate::{exec, pins::DebianFile, stamp, workspace::Workspace};

const DEFAULT_MIRROR: &str = "http://deb.debian.org/debian/";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A package that a test needs, and a file that shows it is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: &'static str,
    pub(crate) evidence: &'static str,
}

/// Installs what is missing. Needs root; without it the error is the command to run.
pub(crate) fn install(workspace: &Workspace, packages: &[Package]) -> Result<bool> {
    let missing: Vec<&str> = packages
        .iter()
        .filter(|package| !Path::new(package.evidence).exists())
        .map(|package| package.name)
        .collect();
    if missing.is_empty() {
        return Ok(false);
    }
    let names = missing.join(" ");
    ensure!(
        exec::in_path("apt-get"),
        "missing on this machine: {names}; install them (the names are Debian's)"
    );
    ensure!(
        rustix::process::geteuid().is_root(),
        "missing on this machine: {names}; run: sudo apt-get install --no-install-recommends {names}"
    );
    let logs = workspace.logs();
    let mut update = Command::new("apt-get");
    exec::download(
        update.args(["update", "--quiet"]),
        &logs.join("apt-update.log"),
    )?;
    let mut install = Command::new("apt-get");
    install
        .args(["install", "--yes", "--quiet", "--no-install-recommends"])
        .args(&missing)
        .env("DEBIAN_FRONTEND", "noninteractive");
    exec::download(&mut install, &logs.join("apt-install.log"))?;
    for package in packages {
        ensure!(
            Path::new(package.evidence).exists(),
            "package {} is installed but {} does not exist",
            package.name,
            package.evidence
        );
    }
    Ok(true)
}

/// Fetches a pinned file into `folder` unless it is there; its hash is checked either way.
pub(crate) fn fetch(workspace: &Workspace, file: &DebianFile, folder: &Path) -> Result<PathBuf> {
    fetch_from(workspace, &mirror(), file, folder)
}

/// The same from another archive of that form, by its address with a slash at its end.
pub(crate) fn fetch_from(
    workspace: &Workspace,
    archive: &str,
    file: &DebianFile,
    folder: &Path,
) -> Result<PathBuf> {
    let name = file.pool.rsplit('/').next().unwrap_or(file.pool);
    let path = folder.join(name);
    if path.is_file() && stamp::file_hash(&path)? == file.sha256 {
        return Ok(path);
    }
    fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    let helper = Path::new("/usr/lib/apt/apt-helper");
    ensure!(
        helper.exists(),
        "{} does not exist: this step needs a Debian machine",
        helper.display()
    );
    let url = format!("{archive}{}", file.pool);
    let partial = folder.join(format!("{name}.partial"));
    let mut download = Command::new(helper);
    // Root without `_apt`'s sandbox: that user cannot write into a checkout.
    download
        .args(["-o", "APT::Sandbox::User=root", "download-file"])
        .arg(&url)
        .arg(&partial);
    download.arg(format!("SHA256:{}", file.sha256));
    exec::download(&mut download, &workspace.logs().join(format!("{name}.log"))).with_context(
        || format!("{url} is gone from the mirror, or the mirror cannot be reached"),
    )?;
    let found = stamp::file_hash(&partial)?;
    ensure!(
        found == file.sha256,
        "{url} has SHA-256 {found}, not the pinned {}",
        file.sha256
    );
    fs::rename(&partial, &path).with_context(|| format!("rename {}", partial.display()))?;
    Ok(path)
}

/// Fetches the newest package of a suite that `name` selects from `meta`'s dependencies (or `meta` itself
/// for `None`). apt checks signatures and hashes; this machine's own package lists are not touched.
pub(crate) fn fetch_newest(
    workspace: &Workspace,
    suite: &str,
    meta: &str,
    dependency_prefix: Option<&str>,
    folder: &Path,
) -> Result<PathBuf> {
    let apt = PrivateApt::update(workspace, suite)?;
    let package = match dependency_prefix {
        None => meta.to_owned(),
        Some(prefix) => {
            let shown = exec::output(apt.command("apt-cache").args(["depends", meta]))?;
            first_dependency(&shown, prefix).with_context(|| {
                format!("{meta} in {suite} depends on nothing that begins with {prefix}")
            })?
        }
    };
    apt.download(workspace, &package, folder)
}

/// Fetches the newest package `name` of a suite for another machine than this one.
pub(crate) fn fetch_newest_foreign(
    workspace: &Workspace,
    suite: &str,
    name: &str,
    architecture: &str,
    folder: &Path,
) -> Result<PathBuf> {
    let apt = PrivateApt::update_for(workspace, suite, Some(architecture))?;
    apt.download(workspace, &format!("{name}:{architecture}"), folder)
}

/// Unpacks a package's files below `folder` without installing it.
pub(crate) fn unpack(package: &Path, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    exec::output(
        Command::new("dpkg-deb")
            .arg("--extract")
            .arg(package)
            .arg(folder),
    )
    .map(drop)
}

/// The base address of the Debian mirror that this machine's apt uses.
fn mirror() -> String {
    let mut command = Command::new("apt-get");
    command.args([
        "indextargets",
        "--format",
        "$(REPO_URI)",
        "Created-By: Packages",
    ]);
    let Ok(targets) = exec::output(&mut command) else {
        return DEFAULT_MIRROR.to_owned();
    };
    mirror_among(&targets).unwrap_or_else(|| DEFAULT_MIRROR.to_owned())
}

/// The first repository that is Debian's main archive, with a slash at its end.
fn mirror_among(targets: &str) -> Option<String> {
    let uri = targets
        .lines()
        .map(str::trim)
        .find(|uri| uri.trim_end_matches('/').ends_with("/debian"))?;
    Some(format!("{}/", uri.trim_end_matches('/')))
}

fn first_dependency(depends: &str, prefix: &str) -> Option<String> {
    depends
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Depends: "))
        .find(|name| name.starts_with(prefix))
        .map(str::to_owned)
}

/// apt with lists of its own under target/tools.
struct PrivateApt {
    folder: PathBuf,
    /// Another machine whose packages are listed as well.
    foreign: Option<String>,
}

impl PrivateApt {
    fn update(workspace: &Workspace, suite: &str) -> Result<Self> {
        Self::update_for(workspace, suite, None)
    }

    fn update_for(workspace: &Workspace, suite: &str, foreign: Option<&str>) -> Result<Self> {
        let folder = workspace.tools.join("apt").join(suite);
        for part in ["lists/partial", "cache/archives/partial"] {
            let part = folder.join(part);
            fs::create_dir_all(&part).with_context(|| format!("create {}", part.display()))?;
        }
        let sources = format!("deb [signed-by={KEYRING}] {} {suite} main\n", mirror());
        fs::write(folder.join("sources.list"), sources).context("write apt's sources.list")?;
        let foreign = foreign.map(str::to_owned);
        let apt = Self { folder, foreign };
        exec::download(
            apt.command("apt-get").arg("update"),
            &workspace.logs().join("apt-private-update.log"),
        )?;
        Ok(apt)
    }

    fn command(&self, program: &str) -> Command {
        let folder = self.folder.display();
        let mut command = Command::new(program);
        for option in [
            format!("Dir::Etc::sourcelist={folder}/sources.list"),
            "Dir::Etc::sourceparts=-".to_owned(),
            format!("Dir::State::lists={folder}/lists"),
            format!("Dir::Cache={folder}/cache"),
            "Acquire::Languages=none".to_owned(),
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false".to_owned(),
            "APT::Sandbox::User=root".to_owned(),
        ] {
            command.arg("-o").arg(option);
        }
        if let Some(foreign) = &self.foreign {
            let option = format!("APT::Architectures::={foreign}");
            command.arg("-o").arg(option);
        }
        command
    }

    /// Downloads a package into a folder of its own below `folder`.
    fn download(&self, workspace: &Workspace, package: &str, folder: &Path) -> Result<PathBuf> {
        let scratch = folder.join("newest");
        drop(fs::remove_dir_all(&scratch));
        fs::create_dir_all(&scratch).with_context(|| format!("create {}", scratch.display()))?;
        let mut download = self.command("apt-get");
        download.args(["download", package]).current_dir(&scratch);
        exec::download(&mut download, &workspace.logs().join("apt-download.log"))?;
        let mut entries =
            fs::read_dir(&scratch).with_context(|| format!("list {}", scratch.display()))?;
        let Some(entry) = entries.next() else {
            bail!("apt-get download {package} left no file")
        };
        Ok(entry.context("list the downloaded package")?.path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_the_main_archive_and_not_the_security_one() {
        let targets = "http://mirror.test/debian-security/\nhttps://packages.test/apt/\nhttp://mirror.test/debian\n";
        assert_eq!(
            mirror_among(targets).as_deref(),
            Some("http://mirror.test/debian/")
        );
        assert_eq!(mirror_among("https://packages.test/apt/\n"), None);
    }

    #[test]
    fn the_kernel_is_found_among_the_meta_packages_dependencies() {
        let depends =
            "linux-image-cloud-amd64\n  Depends: linux-image-6.1.0-56-cloud-amd64\n  Suggests: x\n";
        assert_eq!(
            first_dependency(depends, "linux-image-6.1.").as_deref(),
            Some("linux-image-6.1.0-56-cloud-amd64")
        );
        assert_eq!(first_dependency(depends, "linux-image-6.12."), None);
    }
}
