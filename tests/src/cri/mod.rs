//! A real containerd with its interface for Kubernetes (CRI), and pods on it: what a kubelet does with them, as far as
//! tests need it. Needs Debian's containerd, runc and containernetworking-plugins.

mod archive;
mod client;
mod messages;
mod pod;
mod translation;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use client::Client;
pub use pod::Pod;

use crate::{
    cgroup::Cgroup,
    cleanup::{Guard, scratch_directory},
    netns::ip,
    paths,
    process::{Launch, Running},
    wait::wait_until,
};

const START_LIMIT: Duration = Duration::from_mins(1);
/// What keeps the namespaces of a pod; it does nothing.
const PAUSE: &str = "profiler.test/pause:1";
const PLUGINS: &str = "/usr/lib/cni";
/// Pods are on a bridge of this name with these addresses, one run at a time.
const BRIDGE: &str = "pfl-pods";
const SUBNET: &str = "10.245.0.0/24";
const TRACEFS: &str = "/sys/kernel/tracing";

/// A node with its runtime; ends when dropped. Drop its pods before.
#[derive(Debug)]
pub struct Node {
    client: Client,
    containerd: Running,
    socket: PathBuf,
    folder: PathBuf,
    /// Files of the host that pods get in place of others.
    replaced: Vec<(String, PathBuf)>,
    cgroups: Vec<Cgroup>,
    _tracefs: Option<Mounted>,
    _folder_guard: Guard,
}

impl Node {
    /// Starts containerd and returns when it takes pods.
    pub fn start() -> Result<Self> {
        paths::require_root()?;
        let (folder, folder_guard) = scratch_directory("node")?;
        let cgroups = cgroups()?;
        let inside = cgroups.first().context("a cgroup hierarchy")?.inside();
        let socket = folder.join("containerd.sock");
        let configuration = folder.join("config.toml");
        write(&configuration, &settings(&folder, &inside))?;
        let network = folder.join("net.d");
        fs::create_dir(&network).context("make a folder")?;
        write(
            &network.join("10-pods.conflist"),
            &pod_network(&folder).to_string(),
        )?;
        let mut containerd = Launch::new(Path::new("/usr/bin/containerd"), "containerd", &folder)
            .args([Path::new("--config"), &configuration])
            .start()?;
        wait_until("containerd listens", START_LIMIT, || {
            socket.exists() || !containerd.is_running()
        })
        .with_context(|| last_lines(&containerd.errors()))?;
        let client = Client::connect(&socket).with_context(|| last_lines(&containerd.errors()))?;
        let node = Self {
            client,
            containerd,
            socket,
            folder,
            replaced: Vec::new(),
            cgroups,
            _tracefs: Mounted::tracefs()?,
            _folder_guard: folder_guard,
        };
        node.import(PAUSE, Path::new("/usr/bin/sleep"), &["infinity"])?;
        Ok(node)
    }

    /// Where the runtime listens.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Pods that want `path` of the host get `with`: what lies elsewhere on a real node.
    pub fn replace(&mut self, path: &str, with: &Path) {
        self.replaced.push((path.to_owned(), with.to_owned()));
    }

    /// Makes an image of one program, under the name by which pods ask for it.
    pub fn import(&self, name: &str, program: &Path, arguments: &[&str]) -> Result<()> {
        let file = self.folder.join("image.tar");
        let full = full_name(name);
        archive::write(&file, &full, program, arguments)?;
        let mut import = Command::new("ctr");
        import
            .arg("--address")
            .arg(&self.socket)
            .args(["--namespace", "k8s.io", "images", "import"])
            .args(["--snapshotter", "native"])
            .arg(&file);
        let output = import
            .output()
            .context("run ctr (Debian package containerd)")?;
        ensure!(
            output.status.success(),
            "import {full}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        fs::remove_file(&file).context("remove the archive")
    }

    /// What containerd has logged, for messages.
    pub fn log(&self) -> String {
        self.containerd.errors()
    }

    /// Path of the pods' cgroup inside each hierarchy.
    fn cgroup(&self) -> String {
        self.cgroups.first().map(Cgroup::inside).unwrap_or_default()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Err(error) = self.containerd.stop() {
            eprintln!("note: stop containerd: {error:#}");
        }
        // Only where a pod had a network of its own.
        drop(ip(&["link", "del", BRIDGE]));
    }
}

/// As the runtime keeps names of images.
fn full_name(name: &str) -> String {
    match name.split_once('/') {
        Some((host, _)) if host.contains('.') => name.to_owned(),
        Some(_) => format!("docker.io/{name}"),
        None => format!("docker.io/library/{name}"),
    }
}

/// A folder for pods in each hierarchy that processes are in, with one for what serves them.
fn cgroups() -> Result<Vec<Cgroup>> {
    let root = Path::new("/sys/fs/cgroup");
    let hierarchies = if root.join("cgroup.controllers").exists() {
        vec![root.to_owned()]
    } else {
        let entries = fs::read_dir(root).context("list the cgroup hierarchies")?;
        let folders = entries.flatten().map(|entry| entry.path());
        // v1: the v2 tree of hybrid hosts has no controllers.
        folders.filter(|path| path.join("tasks").exists()).collect()
    };
    let made = hierarchies.iter().map(|hierarchy| {
        let cgroup = Cgroup::create(hierarchy, "kubepods", "")?;
        // v1: nothing may run in a cgroup that has no CPUs of its own.
        for file in ["cpuset.cpus", "cpuset.mems"] {
            if let Ok(all) = fs::read_to_string(hierarchy.join(file)) {
                write(&cgroup.path().join(file), all.trim())?;
            }
        }
        Ok(cgroup)
    });
    made.collect()
}

fn settings(folder: &Path, cgroup: &str) -> String {
    let folder = folder.display();
    format!(
        r#"version = 2
root = "{folder}/root"
state = "{folder}/state"
disabled_plugins = ["io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs"]
[grpc]
address = "{folder}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{PAUSE}"
# The test has no CAP_SYS_RESOURCE where it runs in a container itself.
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{PLUGINS}"
conf_dir = "{folder}/net.d"
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "native"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
ShimCgroup = "{cgroup}"
"#
    )
}

fn pod_network(folder: &Path) -> serde_json::Value {
    json!({
        "cniVersion": "0.4.0",
        "name": "pods",
        "plugins": [{
            "type": "bridge",
            "bridge": BRIDGE,
            "isGateway": true,
            "ipam": { "type": "host-local", "ranges": [[{ "subnet": SUBNET }]], "dataDir": folder.join("addresses") },
        }],
    })
}

/// Something mounted by us; unmounted when dropped.
#[derive(Debug)]
struct Mounted(&'static str);

impl Mounted {
    /// Every node has it there; `None` where it is mounted already.
    fn tracefs() -> Result<Option<Self>> {
        if Path::new(TRACEFS).join("events").exists() {
            return Ok(None);
        }
        let output = Command::new("mount")
            .args(["-t", "tracefs", "tracefs", TRACEFS])
            .output()
            .context("run mount")?;
        ensure!(
            output.status.success(),
            "mount tracefs: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(Some(Self(TRACEFS)))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // A container that is just ending may still hold it.
        let unmounted = wait_until("it is unmounted", Duration::from_secs(2), || {
            let output = Command::new("umount").arg(self.0).output();
            output.is_ok_and(|output| output.status.success())
        });
        if let Err(error) = unmounted {
            eprintln!("note: {}: {error:#}", self.0);
        }
    }
}

/// The end of a log, for messages.
fn last_lines(log: &str) -> String {
    let lines: Vec<&str> = log.lines().rev().take(10).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("\n")
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("write {}", path.display()))
}
