//! Pods of Kubernetes' API as the runtime gets them: what the kubelet's `kuberuntime` does.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::messages::{
    Capability, ContainerConfig, ContainerMetadata, ImageSpec, Int64Value, KeyValue,
    LinuxContainerConfig, LinuxContainerResources, LinuxContainerSecurityContext,
    LinuxPodSandboxConfig, LinuxSandboxSecurityContext, Mount, NamespaceMode, NamespaceOption,
    PodSandboxConfig, PodSandboxMetadata, ProfileType, SecurityProfile,
};

/// Paths that a container does not see, and those that it cannot change (the kubelet's default `procMount`).
const MASKED: [&str; 9] = [
    "/proc/asound",
    "/proc/acpi",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/sys/firmware",
];
const READ_ONLY: [&str; 5] = [
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sys",
    "/proc/sysrq-trigger",
];

/// A pod, and what of the node goes into it.
#[derive(Debug)]
pub(super) struct Translation<'a> {
    pub(super) pod: &'a Value,
    /// Of the pod alone: logs and empty volumes.
    pub(super) folder: &'a Path,
    pub(super) cgroup: &'a str,
    pub(super) replaced: &'a [(String, PathBuf)],
    /// More files for each container: (path inside, path of the host).
    pub(super) mounts: &'a [(String, PathBuf)],
    /// More variables for each container.
    pub(super) variables: &'a [(String, String)],
}

impl Translation<'_> {
    fn metadata(&self, key: &str) -> String {
        text(&self.pod["metadata"][key]).unwrap_or_default()
    }

    pub(super) fn sandbox(&self) -> PodSandboxConfig {
        let annotations = strings(&self.pod["metadata"]["annotations"]);
        let mut labels = strings(&self.pod["metadata"]["labels"]);
        labels.extend(self.own_labels());
        PodSandboxConfig {
            metadata: Some(PodSandboxMetadata {
                name: self.metadata("name"),
                uid: self.metadata("uid"),
                namespace: self.metadata("namespace"),
            }),
            hostname: self.metadata("name"),
            log_directory: self.folder.display().to_string(),
            labels,
            annotations,
            linux: Some(LinuxPodSandboxConfig {
                // As the kubelet's cgroupfs driver names it.
                cgroup_parent: format!("{}/besteffort/pod{}", self.cgroup, self.metadata("uid")),
                security_context: Some(LinuxSandboxSecurityContext {
                    namespace_options: Some(self.namespaces()),
                    seccomp: Some(SecurityProfile {
                        profile_type: ProfileType::RuntimeDefault.into(),
                    }),
                }),
            }),
        }
    }

    /// Labels by which the kubelet finds what it started.
    fn own_labels(&self) -> HashMap<String, String> {
        let label = |name: &str, value: String| (format!("io.kubernetes.pod.{name}"), value);
        HashMap::from([
            label("name", self.metadata("name")),
            label("namespace", self.metadata("namespace")),
            label("uid", self.metadata("uid")),
        ])
    }

    fn namespaces(&self) -> NamespaceOption {
        let spec = &self.pod["spec"];
        let mode = |key: &str, otherwise| {
            let mode = if spec[key] == true {
                NamespaceMode::Node
            } else {
                otherwise
            };
            mode.into()
        };
        let own = if spec["shareProcessNamespace"] == true {
            NamespaceMode::Pod
        } else {
            NamespaceMode::Container
        };
        NamespaceOption {
            network: mode("hostNetwork", NamespaceMode::Pod),
            pid: mode("hostPID", own),
            ipc: mode("hostIPC", NamespaceMode::Pod),
        }
    }

    pub(super) fn container(&self, container: &Value) -> Result<ContainerConfig> {
        let name = text(&container["name"]).context("a container has a name")?;
        let mut labels = self.own_labels();
        labels.insert("io.kubernetes.container.name".to_owned(), name.clone());
        let annotations = HashMap::from([(
            "io.kubernetes.container.restartCount".to_owned(),
            "0".to_owned(),
        )]);
        Ok(ContainerConfig {
            log_path: format!("{name}.log"),
            metadata: Some(ContainerMetadata { name, attempt: 0 }),
            image: Some(ImageSpec {
                image: text(&container["image"]).context("a container has an image")?,
            }),
            command: texts(&container["command"]),
            args: texts(&container["args"]),
            envs: self.variables(container)?,
            mounts: self.mounts(container)?,
            labels,
            annotations,
            linux: Some(LinuxContainerConfig {
                resources: Some(resources(container)?),
                security_context: Some(self.security(container)?),
            }),
        })
    }

    fn variables(&self, container: &Value) -> Result<Vec<KeyValue>> {
        let mut variables: Vec<KeyValue> = self
            .variables
            .iter()
            .map(|(key, value)| KeyValue {
                key: key.clone(),
                value: value.clone(),
            })
            .collect();
        for variable in list(&container["env"]) {
            let key = text(&variable["name"]).context("a variable has a name")?;
            let field = &variable["valueFrom"]["fieldRef"]["fieldPath"];
            let value = match field.as_str() {
                None => text(&variable["value"]).unwrap_or_default(),
                Some("spec.nodeName") => text(&self.pod["spec"]["nodeName"]).unwrap_or_default(),
                Some(other) => match other.strip_prefix("metadata.") {
                    Some(key) => self.metadata(key),
                    None => bail!("the variable {key} is {other}, which is not known here"),
                },
            };
            variables.push(KeyValue { key, value });
        }
        Ok(variables)
    }

    fn mounts(&self, container: &Value) -> Result<Vec<Mount>> {
        let mut mounts: Vec<Mount> = self
            .mounts
            .iter()
            .map(|(inside, path)| Mount {
                container_path: inside.clone(),
                host_path: path.display().to_string(),
                readonly: true,
            })
            .collect();
        for mount in list(&container["volumeMounts"]) {
            let name = text(&mount["name"]).context("a mount names a volume")?;
            let volume = list(&self.pod["spec"]["volumes"])
                .iter()
                .find(|volume| volume["name"] == *name)
                .with_context(|| format!("no volume {name}"))?;
            mounts.push(Mount {
                container_path: text(&mount["mountPath"]).context("a mount has a path")?,
                host_path: self.source(&name, volume)?.display().to_string(),
                readonly: mount["readOnly"] == true,
            });
        }
        Ok(mounts)
    }

    /// Where a volume is on the node.
    fn source(&self, name: &str, volume: &Value) -> Result<PathBuf> {
        if let Some(path) = volume["hostPath"]["path"].as_str() {
            let replaced = self.replaced.iter().find(|(replaced, _)| replaced == path);
            let path = replaced.map_or_else(|| PathBuf::from(path), |(_, with)| with.clone());
            ensure!(path.exists(), "{} is not there", path.display());
            return Ok(path);
        }
        ensure!(volume["emptyDir"].is_object(), "{volume} is not known here");
        let folder = self.folder.join("volumes").join(name);
        fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
        Ok(folder)
    }

    fn security(&self, container: &Value) -> Result<LinuxContainerSecurityContext> {
        let context = &container["securityContext"];
        let capabilities = &context["capabilities"];
        Ok(LinuxContainerSecurityContext {
            capabilities: Some(Capability {
                add_capabilities: texts(&capabilities["add"]),
                drop_capabilities: texts(&capabilities["drop"]),
            }),
            privileged: context["privileged"] == true,
            namespace_options: Some(self.namespaces()),
            run_as_user: context["runAsUser"]
                .as_i64()
                .map(|value| Int64Value { value }),
            readonly_rootfs: context["readOnlyRootFilesystem"] == true,
            no_new_privs: context["allowPrivilegeEscalation"] == false,
            masked_paths: MASKED.map(str::to_owned).into(),
            readonly_paths: READ_ONLY.map(str::to_owned).into(),
            seccomp: profile(&context["seccompProfile"], Some(ProfileType::Unconfined))?,
            // The runtime takes its own where there is any.
            apparmor: profile(&context["appArmorProfile"], None)?,
        })
    }
}

/// The profile that a pod specifies, or the kubelet's default.
fn profile(profile: &Value, otherwise: Option<ProfileType>) -> Result<Option<SecurityProfile>> {
    let kind = match profile["type"].as_str() {
        None => otherwise,
        Some("RuntimeDefault") => Some(ProfileType::RuntimeDefault),
        Some("Unconfined") => Some(ProfileType::Unconfined),
        Some(other) => bail!("the profile {other} is not known here"),
    };
    Ok(kind.map(|kind| SecurityProfile {
        profile_type: kind.into(),
    }))
}

fn resources(container: &Value) -> Result<LinuxContainerResources> {
    let memory = match container["resources"]["limits"]["memory"].as_str() {
        None => 0,
        Some(limit) => {
            let mebibytes = limit.strip_suffix("Mi").context("a limit in Mi")?;
            mebibytes.parse::<i64>().context("parse a limit")? << 20
        }
    };
    Ok(LinuxContainerResources {
        memory_limit_in_bytes: memory,
    })
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn texts(value: &Value) -> Vec<String> {
    list(value).iter().filter_map(text).collect()
}

fn strings(value: &Value) -> HashMap<String, String> {
    let entries = value.as_object().into_iter().flatten();
    entries
        .filter_map(|(key, value)| Some((key.clone(), text(value)?)))
        .collect()
}
