//! Windows in an order in which a change of the machine's speed meets all settings alike.

use std::{
    fs::{File, OpenOptions},
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
};

use anyhow::{Context as _, Result};

use super::{Load, Setting, Window, measure};
use crate::agent::Agent;

/// Measures `rounds` rounds of all `settings`, numbered from `first`. In each round the base comes at the
/// beginning and in the middle, and every other round runs backwards. `done` gets each window as it ends.
pub fn run(
    agent: &Agent,
    settings: &[&'static Setting],
    rounds: std::ops::Range<u32>,
    load: &Load,
    mut done: impl FnMut(Window) -> Result<()>,
) -> Result<()> {
    for round in rounds {
        for setting in order(settings, round) {
            done(measure(agent, setting, round, load)?)?;
        }
    }
    Ok(())
}

/// `None` is the base.
fn order(settings: &[&'static Setting], round: u32) -> Vec<Option<&'static Setting>> {
    let mut order: Vec<Option<&Setting>> = settings.iter().copied().map(Some).collect();
    if round % 2 == 1 {
        order.reverse();
    }
    let middle = order.len() / 2;
    // A second one only where it is not next to the first.
    if middle > 1 {
        order.insert(middle, None);
    }
    order.insert(0, None);
    order
}

/// Windows that earlier runs have kept in a file; none when there is no file.
pub fn recorded(path: &Path) -> Result<Vec<Window>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let file = File::open(path).with_context(|| format!("open {}", path.display()))?;
    let lines = BufReader::new(file).lines();
    let window = |line: std::io::Result<String>| -> Result<Window> {
        let line = line.context("read a window")?;
        serde_json::from_str(&line).with_context(|| format!("parse a window: {line:?}"))
    };
    lines
        .map(window)
        .collect::<Result<_>>()
        .with_context(|| format!("{} is not a record of windows", path.display()))
}

/// Keeps a window at the end of the file, as one line of JSON.
pub fn record(path: &Path, window: &Window) -> Result<()> {
    let keep = || -> Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        let line = format!("{}\n", serde_json::to_string(window)?);
        Ok(file.write_all(line.as_bytes())?)
    };
    keep().with_context(|| format!("keep a window in {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truth::SETTINGS;

    #[test]
    fn every_round_has_all_settings_and_two_bases() {
        let settings: Vec<&Setting> = SETTINGS.iter().collect();
        for round in 0..2 {
            let order = order(&settings, round);
            assert_eq!(order.len(), settings.len() + 2);
            assert_eq!(order.iter().filter(|entry| entry.is_none()).count(), 2);
            assert!(order[0].is_none() && order[1].is_some());
        }
        let first = |round| order(&settings, round)[1].unwrap().name;
        assert_ne!(first(0), first(1));
    }

    #[test]
    fn few_settings_have_one_base() {
        let settings: Vec<&Setting> = SETTINGS.iter().take(3).collect();
        assert_eq!(order(&settings, 0).len(), 4);
    }
}
