//! Containers of a Docker engine: images from files of this machine, without a registry.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail, ensure};

use crate::cleanup::{Guard, scratch_directory, unique_name};

/// Runs a command of the client, with the engine that `DOCKER_HOST` names, and returns what it printed.
pub fn docker<A: AsRef<std::ffi::OsStr>>(arguments: &[A]) -> Result<String> {
    let shown: Vec<_> = arguments
        .iter()
        .map(|argument| argument.as_ref().to_string_lossy())
        .collect();
    let output = Command::new("docker")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .context("run docker (Debian package docker.io)")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "docker {}: {}: {}",
        shown.join(" "),
        output.status,
        errors.trim()
    );
    // Both are logs of a container.
    Ok(String::from_utf8_lossy(&output.stdout).into_owned() + &errors)
}

/// An image that holds one program and its libraries; removed when dropped, if it was made here.
#[derive(Debug)]
pub struct Image {
    name: String,
    is_own: bool,
}

impl Image {
    pub fn of(program: &Path) -> Result<Self> {
        let stem = program.file_name().context("a program has a name")?;
        let name = unique_name(&stem.to_string_lossy().to_lowercase()).to_lowercase();
        let (folder, _guard) = root_of(program, "program")?;
        let mut tar = Command::new("tar")
            .args(["--create", "--directory"])
            .arg(&folder)
            .arg(".")
            .stdout(Stdio::piped())
            .spawn()
            .context("run tar")?;
        let archive = tar.stdout.take().context("tar's output")?;
        let imported = Command::new("docker")
            .args([
                "import",
                "--change",
                "ENTRYPOINT [\"/program\"]",
                "-",
                &name,
            ])
            .stdin(archive)
            .output()
            .context("run docker import")?;
        ensure!(tar.wait().context("wait for tar")?.success(), "tar failed");
        ensure!(
            imported.status.success(),
            "docker import: {}",
            String::from_utf8_lossy(&imported.stderr).trim()
        );
        Ok(Self { name, is_own: true })
    }

    /// One that the engine has.
    pub fn existing(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            is_own: false,
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        if self.is_own {
            report(docker(&["image", "rm", "--force", &self.name]));
        }
    }
}

/// A bridge network of containers; removed when dropped.
#[derive(Debug)]
pub struct Bridge {
    name: String,
}

impl Bridge {
    pub fn create() -> Result<Self> {
        Self::create_with(&[])
    }

    /// With options of `docker network create`.
    pub fn create_with(options: &[&str]) -> Result<Self> {
        let name = unique_name("bridge");
        docker(&[&["network", "create"], options, &[&name]].concat())?;
        Ok(Self { name })
    }

    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        report(docker(&["network", "rm", &self.name]));
    }
}

/// A running container; removed with its volumes when dropped.
#[derive(Debug)]
pub struct Container {
    /// All 64 digits.
    pub id: String,
}

impl Container {
    /// Starts `image` with options of `docker run` and arguments of its program.
    pub fn run(image: &Image, options: &[&str], arguments: &[&str]) -> Result<Self> {
        let mut command = vec!["run", "--detach"];
        command.extend(options);
        command.push(image.name());
        command.extend(arguments);
        let printed = docker(&command)?;
        // Warnings may stand around it.
        let id = printed
            .lines()
            .find(|line| line.len() == 64 && line.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .with_context(|| format!("no id in {printed}"))?;
        Ok(Self { id: id.to_owned() })
    }

    /// A field in the syntax of Go's templates.
    pub fn inspect(&self, field: &str) -> Result<String> {
        let printed = docker(&["inspect", "--format", field, &self.id])?;
        Ok(printed.trim().to_owned())
    }

    /// Its first process as this machine counts.
    pub fn pid(&self) -> Result<u32> {
        let pid: u32 = self.inspect("{{.State.Pid}}")?.parse()?;
        if pid == 0 {
            bail!("the container has ended: {}", self.logs()?);
        }
        Ok(pid)
    }

    pub fn logs(&self) -> Result<String> {
        docker(&["logs", &self.id])
    }

    /// Runs a program inside.
    pub fn exec(&self, command: &[&str]) -> Result<String> {
        docker(&[&["exec", &*self.id], command].concat())
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        report(docker(&["rm", "--force", "--volumes", &self.id]));
    }
}

/// What cannot be removed goes away with the engine's data.
fn report(removed: Result<String>) {
    if let Err(error) = removed {
        eprintln!("note: {error:#}");
    }
}

/// The root of an image: the program as `/NAME`, its libraries, `/tmp`.
pub(crate) fn root_of(program: &Path, name: &str) -> Result<(PathBuf, Guard)> {
    let (folder, guard) = scratch_directory("image")?;
    place(program, &folder.join(name))?;
    for library in libraries(program)? {
        place(&library, &folder.join(library.strip_prefix("/")?))?;
    }
    fs::create_dir_all(folder.join("tmp")).context("make /tmp")?;
    Ok((folder, guard))
}

/// Copies a file with its mode to where it shall be found; links are followed.
fn place(file: &Path, to: &Path) -> Result<()> {
    let folder = to.parent().context("a file lies in a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    fs::copy(file, to).with_context(|| format!("copy {}", file.display()))?;
    Ok(())
}

/// Libraries and loader of a program; none for a static one.
fn libraries(program: &Path) -> Result<BTreeSet<PathBuf>> {
    let output = Command::new("ldd")
        .arg(program)
        .output()
        .context("run ldd")?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text
        .split_whitespace()
        .filter(|word| word.starts_with('/') && !word.ends_with(':'))
        .map(PathBuf::from)
        .collect())
}
