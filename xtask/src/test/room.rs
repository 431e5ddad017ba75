//! What is looked at before anything else: a run that cannot end well does not begin.

use std::fs;

use anyhow::{Context as _, Result, ensure};

use super::{
    needs::Need,
    steps::{STEPS, Step},
};
use crate::{
    setup::{self, Part},
    workspace::Workspace,
};

/// What a run of all steps writes: 11 GB below target/ by `du` at its end, and 2.7 GB of caches while API server and
/// etcd are built.
const ALL_BYTES: u64 = 14_000_000_000;
/// The same for some steps.
const SOME_BYTES: u64 = 6_000_000_000;

/// Rights, programs of this machine, space.
pub(super) fn check(workspace: &Workspace, steps: &[&Step]) -> Result<()> {
    if let Some(step) = steps.iter().find(|step| step.needs.contains(&Need::Root)) {
        ensure!(
            rustix::process::geteuid().is_root(),
            "the test step {} needs root (eBPF, network namespaces): run `sudo -E env PATH=$PATH cargo xtask test`",
            step.name
        );
    }
    let needed = [
        (Need::Ebpf, Part::Ebpf),
        (Need::Agent, Part::Ebpf),
        (Need::Agent, Part::Web),
        (Need::Web, Part::Web),
        (Need::Envoy, Part::Envoy),
    ];
    let parts: Vec<Part> = needed
        .into_iter()
        .filter(|(need, _)| steps.iter().any(|step| step.needs.contains(need)))
        .map(|(_, part)| part)
        .collect();
    setup::check_prerequisites(&parts)?;
    fs::create_dir_all(&workspace.tools)
        .with_context(|| format!("create {}", workspace.tools.display()))?;
    let needed = if steps.len() == STEPS.len() {
        ALL_BYTES
    } else {
        SOME_BYTES
    };
    let status = rustix::fs::statvfs(&workspace.target)
        .with_context(|| format!("look at the space in {}", workspace.target.display()))?;
    let free = status.f_bavail * status.f_frsize;
    // What is built already needs no space again.
    let there = if workspace.target.join("release").exists() {
        needed
    } else {
        0
    };
    ensure!(
        free + there >= needed,
        "{} has {:.1} GB of free space, and these steps need {:.0} GB: free some, or set CARGO_TARGET_DIR",
        workspace.target.display(),
        gigabytes(free),
        gigabytes(needed)
    );
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "printed with one digit")]
fn gigabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e9
}
