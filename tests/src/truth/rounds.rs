//! Groups of windows in an order in which every setting meets others from round to round, and their record.

use std::{
    fs::{File, OpenOptions},
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
};

use anyhow::{Context as _, Result};

use super::{Load, Recorded, Setting, record};
use crate::agent::Agent;

/// Settings that are measured together, beside one base.
const TOGETHER: usize = 3;

/// Measures `rounds` rounds of all `settings` in groups numbered from `first`. `done` gets each group as it ends.
pub fn run(
    agent: &Agent,
    settings: &[&'static Setting],
    rounds: u32,
    first: u32,
    load: &Load,
    mut done: impl FnMut(Vec<Recorded>) -> Result<()>,
) -> Result<()> {
    let groups = (0..rounds).flat_map(|round| groups(settings, round));
    for (group, settings) in (first..).zip(groups) {
        done(record(agent, &settings, group, load).with_context(|| format!("group {group}"))?)?;
    }
    Ok(())
}

/// `None` is the base.
fn groups(settings: &[&'static Setting], round: u32) -> Vec<Vec<Option<&'static Setting>>> {
    let mut order: Vec<Option<&Setting>> = settings.iter().copied().map(Some).collect();
    if round % 2 == 1 {
        order.reverse();
    }
    let count = order.len().max(1);
    order.rotate_left(round as usize % count);
    let with_base = |group: &[Option<&'static Setting>]| {
        let mut group = group.to_vec();
        // In the middle: as far from the one as from the other.
        group.insert(group.len() / 2, None);
        group
    };
    order.chunks(TOGETHER).map(with_base).collect()
}

/// Windows that earlier runs have kept in a file; none when there is no file.
pub fn kept(path: &Path) -> Result<Vec<Recorded>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let file = File::open(path).with_context(|| format!("open {}", path.display()))?;
    let lines = BufReader::new(file).lines();
    let window = |line: std::io::Result<String>| -> Result<Recorded> {
        let line = line.context("read a window")?;
        serde_json::from_str(&line).with_context(|| format!("parse a window: {line:?}"))
    };
    lines
        .map(window)
        .collect::<Result<_>>()
        .with_context(|| format!("{} is not a record of windows", path.display()))
}

/// Keeps windows at the end of the file, each as one line of JSON.
pub fn keep(path: &Path, windows: &[Recorded]) -> Result<()> {
    let write = || -> Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        for window in windows {
            let line = format!("{}\n", serde_json::to_string(window)?);
            file.write_all(line.as_bytes())?;
        }
        Ok(())
    };
    write().with_context(|| format!("keep windows in {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truth::SETTINGS;

    #[test]
    fn every_round_has_each_setting_once_and_a_base_beside_it() {
        let settings: Vec<&Setting> = SETTINGS.iter().collect();
        for round in 0..4 {
            let groups = groups(&settings, round);
            let mut names: Vec<&str> = groups.iter().flatten().flatten().map(|s| s.name).collect();
            names.sort_unstable();
            let mut all: Vec<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
            all.sort_unstable();
            assert_eq!(names, all);
            for group in groups {
                assert_eq!(group.iter().filter(|entry| entry.is_none()).count(), 1);
                assert!(group.len() <= TOGETHER + 1);
            }
        }
    }
}
