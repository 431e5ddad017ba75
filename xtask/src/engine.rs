//! A Docker engine: the one that runs, or one of our own for as long as it is needed.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    debian::Package,
    exec,
    setup::{self, Part},
    workspace::Workspace,
};

pub(crate) const PACKAGES: &[Package] = &[
    Package {
        name: "docker.io",
        evidence: "/usr/sbin/dockerd",
    },
    Package {
        name: "iptables",
        evidence: "/usr/sbin/iptables",
    },
];
const START_LIMIT: Duration = Duration::from_mins(1);
const STOP_LIMIT: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(200);

/// Stops when dropped, if it is ours.
#[derive(Debug)]
pub(crate) struct Engine {
    /// `DOCKER_HOST` for its clients.
    pub(crate) host: String,
    own: Option<Own>,
}

#[derive(Debug)]
struct Own {
    daemon: Child,
    run: PathBuf,
}

impl Engine {
    /// Finds the engine of this machine, or starts one with its data below target/: no registry, no image of the
    /// machine's own, and a storage driver that works everywhere.
    pub(crate) fn start(workspace: &Workspace) -> Result<Self> {
        let given = std::env::var("DOCKER_HOST")
            .unwrap_or_else(|_unset| "unix:///var/run/docker.sock".to_owned());
        if answers(&given) {
            return Ok(Self {
                host: given,
                own: None,
            });
        }
        ensure!(
            rustix::process::geteuid().is_root(),
            "no Docker engine answers at {given}, and starting one needs root"
        );
        setup::run(workspace, &[Part::Packages(PACKAGES)])?;
        // Paths of sockets must be short.
        let run = PathBuf::from(format!("/run/profiler-engine-{}", std::process::id()));
        fs::create_dir_all(&run).with_context(|| format!("create {}", run.display()))?;
        let log = workspace.logs().join("dockerd.log");
        let daemon = launch(&run, &workspace.target.join("docker"), &log)?;
        let mut engine = Self {
            host: format!("unix://{}", run.join("docker.sock").display()),
            own: Some(Own { daemon, run }),
        };
        engine.wait(&log)?;
        Ok(engine)
    }

    /// A command of the client that talks to this engine.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new("docker");
        // The builder that needs no plugin.
        command
            .env("DOCKER_HOST", &self.host)
            .env("DOCKER_BUILDKIT", "0");
        command
    }

    fn wait(&mut self, log: &Path) -> Result<()> {
        let start = Instant::now();
        while !answers(&self.host) {
            if let Some(own) = &mut self.own
                && let Some(status) = own.daemon.try_wait().context("wait for dockerd")?
            {
                bail!("dockerd ended with {status}: see {}", log.display());
            }
            ensure!(
                start.elapsed() < START_LIMIT,
                "dockerd does not answer: see {}",
                log.display()
            );
            thread::sleep(PAUSE);
        }
        Ok(())
    }
}

fn answers(host: &str) -> bool {
    let mut command = Command::new("docker");
    command
        .args(["version", "--format", "{{.Server.Version}}"])
        .env("DOCKER_HOST", host);
    exec::output(&mut command).is_ok_and(|version| !version.trim().is_empty())
}

fn launch(run: &Path, data: &Path, log: &Path) -> Result<Child> {
    if let Some(folder) = log.parent() {
        fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    }
    let output = File::create(log).with_context(|| format!("create {}", log.display()))?;
    let errors = output.try_clone().context("share the log")?;
    let path = |name: &str| run.join(name).display().to_string();
    Command::new("/usr/sbin/dockerd")
        .arg("--storage-driver=vfs")
        .arg(format!("--data-root={}", data.display()))
        .arg(format!("--exec-root={}", path("exec")))
        .arg(format!("--pidfile={}", path("docker.pid")))
        .arg(format!("--host=unix://{}", path("docker.sock")))
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .spawn()
        .context("start dockerd")
}

impl Drop for Engine {
    fn drop(&mut self) {
        let Some(own) = &mut self.own else { return };
        if let Err(error) = stop(&mut own.daemon) {
            println!("note: stop dockerd: {error:#}");
        }
        drop(fs::remove_dir_all(&own.run));
    }
}

/// Lets it end its containers and its containerd.
fn stop(daemon: &mut Child) -> Result<()> {
    let pid = i32::try_from(daemon.id()).context("its number")?;
    let pid = Pid::from_raw(pid).context("its number")?;
    kill_process(pid, Signal::TERM).context("ask it")?;
    let start = Instant::now();
    while daemon.try_wait().context("wait for it")?.is_none() {
        if start.elapsed() > STOP_LIMIT {
            daemon.kill().context("kill it")?;
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}
