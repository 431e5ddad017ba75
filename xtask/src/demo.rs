//! `cargo xtask demo`: a real mesh under load and the agent beside it, until Ctrl-C.

use std::{
    io::{BufRead as _, BufReader},
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::{
    build,
    compile::Output,
    debian::Package,
    exec,
    progress::{Outcome, Progress},
    setup::{self, Part},
    workspace::Workspace,
};

/// What the mesh is built with.
pub(crate) const PACKAGES: [Package; 2] = [
    Package {
        name: "iproute2",
        evidence: "/usr/sbin/ip",
    },
    Package {
        name: "iptables",
        evidence: "/usr/sbin/iptables",
    },
];

/// A load that leaves room on two cores for the browser, for as long as the demo runs.
const MESH: [&str; 6] = ["--workers", "2", "--rps", "1000", "--duration", "24h"];
/// The mesh starts two proxies and four programs; the agent loads its probes.
const START_LIMIT: Duration = Duration::from_mins(1);
/// The mesh removes its namespaces and rules in this time.
const STOP_LIMIT: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(100);

/// How the sidecars send their access logs to the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum AccessLog {
    Grpc,
    Otlp,
}

impl AccessLog {
    /// As the demo's own program has it.
    fn of_mesh(self) -> &'static str {
        match self {
            Self::Grpc => "--access-log=agent-grpc",
            Self::Otlp => "--access-log=agent-otlp",
        }
    }
}

/// What the demo's program prints once the mesh is up, as far as it is needed here.
#[derive(Deserialize)]
struct MeshReport {
    access_logs: Option<String>,
}

pub(crate) fn run(
    workspace: &Workspace,
    output: Output,
    access_log: Option<AccessLog>,
) -> Result<()> {
    ensure!(
        rustix::process::geteuid().is_root(),
        "the demo makes network namespaces and loads eBPF programs: run it as root"
    );
    setup::run(
        workspace,
        &[
            Part::Packages(&PACKAGES),
            Part::Ebpf,
            Part::Web,
            Part::Envoy,
        ],
    )?;
    let mut progress = Progress::new(4);
    progress.loud("build the agent", || build::agent(workspace, output))?;
    progress.loud("build the demo", || build::mesh_programs(workspace, output))?;

    // From here a signal ends the waiting below instead of this process, so that the children end first.
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&ended)).context("watch for Ctrl-C")?;
    }
    let mut running = None;
    progress.quiet("start the demo mesh", || {
        let mut mesh = Command::new(workspace.target.join("release/profiler-demo"));
        mesh.args(["mesh", "up"]).args(MESH);
        mesh.args(access_log.map(AccessLog::of_mesh));
        running = Some(Service::start("mesh", mesh, &ended)?);
        Ok(Outcome::Done)
    })?;
    let Some(mesh) = running else {
        bail!("the mesh did not start")
    };
    let report: MeshReport =
        serde_json::from_str(&mesh.first_line).context("read the report of the mesh")?;
    let data_dir = workspace.root.join("target/demo-data");
    let mut running = None;
    progress.quiet("start the agent", || {
        let mut agent = Command::new(workspace.agent());
        agent.arg("serve").arg("--data-dir").arg(&data_dir);
        if let Some(address) = &report.access_logs {
            // The address is that of a link to the mesh alone.
            agent.args(["--access-logs", address, "--access-logs-plaintext"]);
        }
        running = Some(Service::start("agent", agent, &ended)?);
        Ok(Outcome::Done)
    })?;
    let Some(agent) = running else {
        bail!("the agent did not start")
    };
    ensure!(
        agent.first_line.starts_with("listening on "),
        "the agent is not ready: {}",
        agent.first_line
    );
    // What it prints for programs is without the token.
    let mut url = Command::new(workspace.agent());
    url.arg("url").arg("--data-dir").arg(&data_dir);
    let url = exec::output(&mut url)?;
    let url = url.trim();
    println!(
        "\nThe demo mesh is under load. Open this page: it says how its pods do, and `Check up` says why:\n\n  {url}\n"
    );
    if access_log.is_some() {
        println!("{}", about_access_logs(workspace, &data_dir));
    }
    println!("Ctrl-C ends the demo and removes everything it made.");

    let mut services = [agent, mesh];
    let died = watch(&mut services, &ended)?;
    println!("\nending the demo");
    // In order: the agent first, while what it watches still exists.
    for service in services {
        service.stop()?;
    }
    match died {
        None => Ok(()),
        Some(name) => bail!("the {name} ended by itself"),
    }
}

/// Where what the sidecars send is to be seen.
fn about_access_logs(workspace: &Workspace, data_dir: &Path) -> String {
    let agent = workspace.agent();
    let token = data_dir.join("token");
    format!(
        "The sidecars send their access logs to the agent. What has come of which, and what is missing:\n\n\
         \x20 {} access-logs status --token-file {}\n\n\
         A task of requests takes its requests from them with \"source\": [\"access_log\"] in POST /api/v1/tasks.\n",
        agent.display(),
        token.display()
    )
}

/// Waits for a signal (None) or for a service to end by itself (its name).
fn watch(services: &mut [Service], ended: &AtomicBool) -> Result<Option<&'static str>> {
    while !ended.load(Ordering::Relaxed) {
        for service in services.iter_mut() {
            if service
                .child
                .try_wait()
                .context("watch the demo")?
                .is_some()
            {
                return Ok(Some(service.name));
            }
        }
        thread::sleep(POLL);
    }
    Ok(None)
}

/// A child in its own process group, so that the terminal's Ctrl-C reaches it only through us.
/// Dropping it ends it.
#[derive(Debug)]
struct Service {
    name: &'static str,
    child: Child,
    /// What it printed when it was ready.
    first_line: String,
}

impl Service {
    fn start(name: &'static str, mut command: Command, ended: &AtomicBool) -> Result<Self> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .process_group(0);
        let program = Path::new(command.get_program()).to_owned();
        let mut child = command
            .spawn()
            .with_context(|| format!("start {}", program.display()))?;
        let stdout = child
            .stdout
            .take()
            .context("a piped child has a standard output")?;
        let (sender, lines) = mpsc::sync_channel(1);
        // Reads to the end: a child whose output is not read would block.
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let Ok(line) = line else { break };
                // Only the first line is waited for.
                drop(sender.try_send(line));
            }
        });
        let mut service = Self {
            name,
            child,
            first_line: String::new(),
        };
        let deadline = Instant::now() + START_LIMIT;
        loop {
            ensure!(!ended.load(Ordering::Relaxed), "interrupted");
            ensure!(
                Instant::now() < deadline,
                "the {name} was not ready within {START_LIMIT:?}"
            );
            match lines.recv_timeout(POLL) {
                Ok(line) => {
                    service.first_line = line;
                    return Ok(service);
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    let status = service.child.wait().context("wait for a child")?;
                    bail!("the {name} ended before it was ready: {status}");
                }
            }
        }
    }

    /// SIGTERM, then SIGKILL when the time is over, which is an error.
    fn stop(mut self) -> Result<()> {
        ensure!(
            self.end()?,
            "the {} did not end within {STOP_LIMIT:?} and was killed",
            self.name
        );
        Ok(())
    }

    /// Whether it ended without being killed.
    fn end(&mut self) -> Result<bool> {
        if self.child.try_wait().context("look at a child")?.is_some() {
            return Ok(true);
        }
        if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
            kill_process(pid, Signal::TERM).with_context(|| format!("end the {}", self.name))?;
        }
        let deadline = Instant::now() + STOP_LIMIT;
        while Instant::now() < deadline {
            if self.child.try_wait().context("look at a child")?.is_some() {
                return Ok(true);
            }
            thread::sleep(POLL);
        }
        self.child
            .kill()
            .with_context(|| format!("kill the {}", self.name))?;
        self.child.wait().context("wait for a killed child")?;
        Ok(false)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            eprintln!("warning: {error:#}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn start(script: &str) -> Result<Service> {
        Service::start("child", shell(script), &AtomicBool::new(false))
    }

    fn exists(pid: u32) -> bool {
        Path::new(&format!("/proc/{pid}")).exists()
    }

    #[test]
    fn a_service_is_ready_at_its_first_line_and_ends_when_told() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("cleaned");
        let script = format!(
            "trap 'touch {}; exit 0' TERM; echo ready; echo more; while :; do sleep 0.05; done",
            mark.display()
        );
        let service = start(&script).unwrap();
        assert_eq!(service.first_line, "ready");
        let pid = service.child.id();
        service.stop().unwrap();
        assert!(mark.exists() && !exists(pid));
    }

    #[test]
    fn a_dropped_service_ends() {
        let service = start("echo ready; exec sleep 60").unwrap();
        let pid = service.child.id();
        drop(service);
        assert!(!exists(pid));
    }

    #[test]
    fn a_service_that_ends_before_it_is_ready_is_an_error() {
        let error = start("exit 3").unwrap_err().to_string();
        assert!(
            error.contains("before it was ready") && error.contains('3'),
            "{error}"
        );
    }

    #[test]
    fn a_signal_ends_the_wait_for_readiness() {
        let error =
            Service::start("child", shell("exec sleep 60"), &AtomicBool::new(true)).unwrap_err();
        assert_eq!(error.to_string(), "interrupted");
    }

    #[test]
    fn a_service_that_dies_is_named() {
        let mut services = [
            start("echo ready; exec sleep 60").unwrap(),
            start("echo ready").unwrap(),
        ];
        services[1].name = "second";
        assert_eq!(
            watch(&mut services, &AtomicBool::new(false)).unwrap(),
            Some("second")
        );
        assert_eq!(watch(&mut services, &AtomicBool::new(true)).unwrap(), None);
    }
}
