//! Another process in the place of the server's sidecar: after the old one was killed, or by Envoy's hot restart.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;

use super::{Launched, Mesh, START_LIMIT, sidecar};
use crate::{process::Running, wait::wait_until};

/// How the old process goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By SIGKILL, before the new one starts.
    Killed,
    /// By SIGTERM, before the new one starts.
    Ended,
    /// By itself, after it has handed its sockets to the new one.
    HotRestart,
}

impl Mesh {
    /// Replaces the server's sidecar by a process of `envoy`, and returns when it answers. For a hot restart the mesh
    /// must have been started with a base id, and the old process is returned: it ends by itself some seconds later.
    pub fn replace_server(&mut self, envoy: &Path, way: Way) -> Result<Option<Running>> {
        let envoy = sidecar::usable_binary(envoy, &self.folder)?;
        let pod = &mut self.server;
        match way {
            Way::Killed => drop(pod.envoy.interrupt(Signal::KILL)?),
            Way::Ended => drop(pod.envoy.stop()?),
            Way::HotRestart => ensure!(
                self.options.base_id.is_some(),
                "a hot restart needs a base id"
            ),
        }
        let launched = &mut pod.launched;
        launched.generation += 1;
        launched.epoch = match way {
            Way::Killed | Way::Ended => 0,
            Way::HotRestart => launched.epoch + 1,
        };
        let new = launched.start(&envoy, &self.folder, &pod.netns, &self.options)?;
        let old = std::mem::replace(&mut pod.envoy, new);
        let label = pod.envoy.label().to_owned();
        let epoch = format!("\"restart_epoch\": {}", pod.launched.epoch);
        let ready = wait_until(&format!("{label} is ready"), START_LIMIT, || {
            !pod.envoy.is_running()
                || pod.admin("/ready").is_ok_and(|text| text.trim() == "LIVE")
                    && pod
                        .admin("/server_info")
                        .is_ok_and(|text| text.contains(&epoch))
        });
        ready.with_context(|| format!("its log: {}", pod.envoy.errors()))?;
        ensure!(
            pod.envoy.is_running(),
            "{label} ended: {}",
            pod.envoy.errors()
        );
        Ok((way == Way::HotRestart).then_some(old))
    }
}

impl Launched {
    /// What Envoy needs to hand over to its successor, or to be alone.
    pub(super) fn restart_arguments(&self, base_id: Option<u32>) -> Vec<String> {
        let Some(base_id) = base_id else {
            return vec!["--use-dynamic-base-id".to_owned()];
        };
        let (id, epoch) = (base_id.to_string(), self.epoch.to_string());
        let arguments = [
            ["--base-id", &id],
            ["--restart-epoch", &epoch],
            ["--drain-time-s", "1"],
            ["--parent-shutdown-time-s", "3"],
        ];
        arguments
            .as_flattened()
            .iter()
            .map(|&text| text.to_owned())
            .collect()
    }
}

/// Removes what processes with a base id share, which Envoy leaves behind.
pub(super) fn remove_shared_memory(base_id: u32) {
    // `HotRestartImpl` takes ten ids for each base id (source/server/hot_restart_impl.cc).
    drop(fs::remove_file(format!(
        "/dev/shm/envoy_shared_memory_{}",
        base_id * 10
    )));
}
