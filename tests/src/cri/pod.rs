//! A pod on the node: its sandbox first, then its containers one by one.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::{
    Node, last_lines,
    messages::{
        ContainerId, CreateContainerRequest, ExecSyncRequest, ExecSyncResponse, Nothing,
        PodSandboxId, RunPodSandboxRequest,
    },
    translation::Translation,
};

/// Seconds that a command in a container may take.
const EXEC_LIMIT_S: i64 = 40;

/// A running pod; removed with its containers when dropped.
#[derive(Debug)]
pub struct Pod<'a> {
    node: &'a Node,
    /// As the API server has it: with a uid.
    object: Value,
    /// The sandbox's.
    pub id: String,
    folder: PathBuf,
    cgroup: String,
    started: Vec<Container>,
    mounts: Vec<(String, PathBuf)>,
    variables: Vec<(String, String)>,
}

/// A container that has been started.
#[derive(Clone, Debug)]
pub struct Container {
    pub name: String,
    /// All 64 digits.
    pub id: String,
    /// Its first process as this machine counts.
    pub pid: u32,
}

impl Node {
    /// Makes a pod's namespaces; its containers are not there yet.
    pub fn sandbox(&self, object: &Value) -> Result<Pod<'_>> {
        let uid = object["metadata"]["uid"].as_str();
        let folder = self
            .folder
            .join("pods")
            .join(uid.context("a pod has a uid")?);
        fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
        let mut pod = Pod {
            node: self,
            object: object.clone(),
            id: String::new(),
            folder,
            cgroup: self.cgroup(),
            started: Vec::new(),
            mounts: Vec::new(),
            variables: Vec::new(),
        };
        let question = RunPodSandboxRequest {
            config: Some(pod.translation().sandbox()),
        };
        let sandbox: PodSandboxId = self
            .client
            .call("RunPodSandbox", question)
            .with_context(|| format!("its log: {}", last_lines(&self.log())))?;
        pod.id = sandbox.id;
        Ok(pod)
    }

    /// Makes a pod and starts all of its containers, init containers first.
    pub fn run(&self, object: &Value) -> Result<Pod<'_>> {
        let mut pod = self.sandbox(object)?;
        for key in ["initContainers", "containers"] {
            for container in object["spec"][key].as_array().into_iter().flatten() {
                let name = container["name"].as_str().context("it has a name")?;
                pod.start(name)?;
            }
        }
        Ok(pod)
    }
}

impl Pod<'_> {
    fn translation(&self) -> Translation<'_> {
        Translation {
            pod: &self.object,
            folder: &self.folder,
            cgroup: &self.cgroup,
            replaced: &self.node.replaced,
            mounts: &self.mounts,
            variables: &self.variables,
        }
    }

    /// Shows a file or a folder of the host to the containers that are started from now on.
    pub fn mount(&mut self, inside: &str, path: PathBuf) {
        self.mounts.push((inside.to_owned(), path));
    }

    /// Sets a variable in the containers that are started from now on.
    pub fn variable(&mut self, name: &str, value: &str) {
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    /// Starts one of its containers.
    pub fn start(&mut self, name: &str) -> Result<Container> {
        let spec = &self.object["spec"];
        let found = ["initContainers", "containers"]
            .iter()
            .flat_map(|key| spec[*key].as_array().into_iter().flatten())
            .find(|container| container["name"] == name);
        let container = found.with_context(|| format!("the pod has no container {name}"))?;
        let translation = self.translation();
        let question = CreateContainerRequest {
            pod_sandbox_id: self.id.clone(),
            config: Some(translation.container(container)?),
            sandbox_config: Some(translation.sandbox()),
        };
        let client = &self.node.client;
        let created: ContainerId = client.call("CreateContainer", question)?;
        let id = created.id.clone();
        client.call::<_, Nothing>("StartContainer", created)?;
        let info = client.info("ContainerStatus", &id)?;
        let pid = info["pid"].as_u64().context("a container has a process")?;
        let container = Container {
            name: name.to_owned(),
            id,
            pid: u32::try_from(pid).context("its number")?,
        };
        self.started.push(container.clone());
        Ok(container)
    }

    /// Containers that have been started.
    pub fn containers(&self) -> &[Container] {
        &self.started
    }

    /// One of these.
    pub fn container(&self, name: &str) -> Result<&Container> {
        let mut started = self.started.iter();
        started
            .find(|container| container.name == name)
            .with_context(|| format!("{name} has not been started"))
    }

    /// The file of its network namespace.
    pub fn network(&self) -> Result<PathBuf> {
        let info = self.node.client.info("PodSandboxStatus", &self.id)?;
        let pid = info["pid"].as_u64().context("a sandbox has a process")?;
        Ok(format!("/proc/{pid}/ns/net").into())
    }

    /// What a container has written, line by line without the runtime's time and stream.
    pub fn log(&self, name: &str) -> Result<Vec<String>> {
        let path = self.folder.join(format!("{name}.log"));
        let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        let lines = text.lines().filter_map(|line| line.splitn(4, ' ').nth(3));
        Ok(lines.map(str::to_owned).collect())
    }

    /// Runs a command in a container, as probes do; its standard output.
    pub fn exec(&self, name: &str, command: &[&str]) -> Result<String> {
        let question = ExecSyncRequest {
            container_id: self.container(name)?.id.clone(),
            cmd: command.iter().map(|&word| word.to_owned()).collect(),
            timeout: EXEC_LIMIT_S,
        };
        let answer: ExecSyncResponse = self.node.client.call("ExecSync", question)?;
        let output = String::from_utf8_lossy(&answer.stdout).into_owned();
        ensure!(
            answer.exit_code == 0,
            "{command:?} in {name}: exit code {}: {output}{}",
            answer.exit_code,
            String::from_utf8_lossy(&answer.stderr)
        );
        Ok(output)
    }

    /// Ends all of it.
    fn remove(&self) -> Result<()> {
        if self.id.is_empty() {
            return Ok(());
        }
        for method in ["StopPodSandbox", "RemovePodSandbox"] {
            let question = PodSandboxId {
                id: self.id.clone(),
            };
            self.node.client.call::<_, Nothing>(method, question)?;
        }
        Ok(())
    }
}

impl Drop for Pod<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.remove() {
            eprintln!("note: remove a pod: {error:#}");
        }
    }
}
