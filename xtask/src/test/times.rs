//! How long each job took when it last passed, and the table of `--list`.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::PathBuf, time::Duration};

use anyhow::{Context as _, Result};

use super::{preparations::PREPARATIONS, schedule::Lane, steps::STEPS};
use crate::workspace::Workspace;

/// Seconds by job.
#[derive(Debug, Default)]
pub(super) struct Times(BTreeMap<String, u64>);

impl Times {
    /// Those of earlier runs in this checkout; none where there are none.
    pub(super) fn read(workspace: &Workspace) -> Self {
        let text = fs::read(path(workspace)).unwrap_or_default();
        Self(serde_json::from_slice(&text).unwrap_or_default())
    }

    pub(super) fn note(&mut self, job: &str, took: Duration) {
        let rounded = took + Duration::from_millis(500);
        self.0.insert(job.to_owned(), rounded.as_secs());
    }

    pub(super) fn write(&self, workspace: &Workspace) -> Result<()> {
        let path = path(workspace);
        let text = serde_json::to_vec_pretty(&self.0).context("encode times")?;
        fs::write(&path, text).with_context(|| format!("write {}", path.display()))
    }
}

fn path(workspace: &Workspace) -> PathBuf {
    workspace.target.join("test-times.json")
}

/// The table of `cargo xtask test --list`.
pub(super) fn list(workspace: &Workspace) -> String {
    let times = Times::read(workspace);
    let mut text = format!(
        "{:20} {:8} {:>7} {:>7}  {}\n",
        "step", "lane", "budget", "last", "what"
    );
    let mut row = |name: &str, lane: Lane, budget: u32, about: &str| {
        let last = times
            .0
            .get(name)
            .map_or_else(|| "-".to_owned(), |seconds| format!("{seconds} s"));
        let budget = format!("{budget} s");
        // Writing to a text cannot fail.
        writeln!(text, "{name:20} {lane:8} {budget:>7} {last:>7}  {about}").ok();
    };
    for step in STEPS {
        row(step.name, step.lane, step.budget, step.about);
    }
    row_of_preparations(&mut row);
    text
}

fn row_of_preparations(row: &mut impl FnMut(&str, Lane, u32, &str)) {
    for job in PREPARATIONS {
        row(
            job.name,
            job.lane,
            job.budget,
            &format!("(before steps) {}", job.about),
        );
    }
}
