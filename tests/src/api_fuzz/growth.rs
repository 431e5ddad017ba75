//! What the agent holds when nothing is left that was asked for.

use std::{
    collections::BTreeMap,
    fmt, fs,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};

use super::results;
use crate::{
    agent::Agent,
    soak::{self, Reading},
    stats::median,
};

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(500);
/// For the agent to let go: threads for blocking work end after ten idle seconds, and requests that were cut off may
/// still start a task. On a machine that does other things it takes minutes.
const SETTLED: Duration = Duration::from_mins(5);
/// Looks in a row that must be alike.
const ALIKE: usize = 3;

/// More memory without files than that is growth, in MB. A run makes some ten thousand requests: a leak of a few kilobytes
/// for each is more. What the allocator keeps after large answers moves by less.
const MEMORY_MB: f64 = 32.0;
/// Threads that wait for work to block on come and go.
const THREADS: f64 = 8.0;
/// Connections that are being closed and files that are being read at the moment of the look. What a task opens is closed
/// with it: there were as many after each round when this was written.
const DESCRIPTORS: f64 = 24.0;
/// Programs, maps and links belong to tasks and to the collection that is always on: none may stay.
const KERNEL_OBJECTS: f64 = 0.0;

/// A figure, and by how much it may be larger at the end.
type Figure = (&'static str, fn(&Reading) -> f64, f64);

/// What was held after a round.
#[derive(Clone, Debug)]
pub struct Held {
    pub reading: Reading,
    /// Open files by what they are.
    files: BTreeMap<String, u32>,
    /// Threads by name.
    threads: BTreeMap<String, u32>,
}

impl fmt::Display for Held {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Reading {
            at_s,
            rss_mb,
            anonymous_mb,
            descriptors,
            threads,
            kernel_objects,
            ..
        } = self.reading;
        write!(
            formatter,
            "{at_s:.0} s, RSS {rss_mb:.1} MB ({anonymous_mb:.1} without files), {threads} threads, {descriptors} open \
             files, {kernel_objects} kernel objects"
        )
    }
}

/// Removes everything again and again until the agent holds the same three times in a row, no more of the kernel than
/// after the first round and hardly more threads; what it holds when that takes too long shows in the comparison.
pub(super) fn settle(agent: &Agent, began: Instant, first: Option<&Held>) -> Result<Held> {
    let since = Instant::now();
    let has_let_go = |held: &Held| {
        first.is_none_or(|first| {
            let (before, now) = (&first.reading, &held.reading);
            now.kernel_objects <= before.kernel_objects
                && f64::from(now.threads) <= f64::from(before.threads) + THREADS
        })
    };
    let mut alike = 0;
    let mut last = held(agent, began)?;
    loop {
        let left = results::remove_all(&agent.api).context("remove what a round made")?;
        thread::sleep(PAUSE);
        let now = held(agent, began)?;
        let key = |held: &Held| (held.reading.kernel_objects, held.reading.descriptors);
        let calm = left == 0 && has_let_go(&now) && key(&now) == key(&last);
        alike = if calm { alike + 1 } else { 0 };
        if alike >= ALIKE || since.elapsed() >= SETTLED {
            return Ok(now);
        }
        last = now;
    }
}

fn held(agent: &Agent, began: Instant) -> Result<Held> {
    Ok(Held {
        reading: soak::read(agent, began)?,
        files: open_files(agent.pid())?,
        threads: threads(agent.pid())?,
    })
}

/// Threads of a process by name, without numbers.
fn threads(pid: u32) -> Result<BTreeMap<String, u32>> {
    by_kind(&format!("/proc/{pid}/task"), |path| {
        fs::read_to_string(path.join("comm")).ok()
    })
}

/// Open files of a process by what they are, without numbers.
fn open_files(pid: u32) -> Result<BTreeMap<String, u32>> {
    by_kind(&format!("/proc/{pid}/fd"), |path| {
        let target = fs::read_link(path).ok()?;
        Some(target.to_string_lossy().into_owned())
    })
}

/// What is in a folder, by its [`kind`]. `name_of` has none for what is gone meanwhile, which does not count.
fn by_kind(
    folder: &str,
    name_of: impl Fn(&Path) -> Option<String>,
) -> Result<BTreeMap<String, u32>> {
    let mut kinds = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(|| format!("list {folder}"))? {
        let path = entry.with_context(|| format!("list {folder}"))?.path();
        if let Some(name) = name_of(&path) {
            *kinds.entry(kind(name.trim())).or_default() += 1;
        }
    }
    Ok(kinds)
}

/// A name without the numbers of processes and sockets.
fn kind(target: &str) -> String {
    let mut name = String::new();
    for letter in target.chars() {
        if !letter.is_ascii_digit() {
            name.push(letter);
        } else if !name.ends_with('N') {
            name.push('N');
        }
    }
    name
}

/// What grew from the first rounds to the last.
pub(super) fn compare(held: &[Held]) -> Vec<String> {
    let part = held.len().div_ceil(3);
    let (Some(first), Some(last)) = (held.get(..part), held.get(held.len() - part..)) else {
        return vec!["no round was measured".to_owned()];
    };
    let figures: [Figure; 4] = [
        (
            "memory without files, MB",
            |reading| reading.anonymous_mb,
            MEMORY_MB,
        ),
        ("threads", |reading| f64::from(reading.threads), THREADS),
        (
            "open files",
            |reading| f64::from(reading.descriptors),
            DESCRIPTORS,
        ),
        (
            "kernel objects",
            |reading| f64::from(reading.kernel_objects),
            KERNEL_OBJECTS,
        ),
    ];
    let middle = |held: &[Held], figure: fn(&Reading) -> f64| {
        let all: Vec<f64> = held.iter().map(|held| figure(&held.reading)).collect();
        median(&all)
    };
    let mut grown = Vec::new();
    for (name, figure, bound) in figures {
        let (before, after) = (middle(first, figure), middle(last, figure));
        if after > before + bound {
            let files = more(held, |held| &held.files);
            let threads = more(held, |held| &held.threads);
            grown.push(format!(
                "{name}: {before:.1}, then {after:.1}, more than {bound} above; open files that came: {files}; threads that \
                 came: {threads}"
            ));
        }
    }
    grown
}

/// What the last round has more of than the first.
fn more(held: &[Held], kinds: fn(&Held) -> &BTreeMap<String, u32>) -> String {
    let (Some(first), Some(last)) = (held.first(), held.last()) else {
        return String::new();
    };
    let more = kinds(last).iter().filter_map(|(name, &count)| {
        let before = kinds(first).get(name).copied().unwrap_or(0);
        (count > before).then(|| format!("{} {name}", count - before))
    });
    more.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_round(anonymous_mb: f64, descriptors: u32, kernel_objects: u32) -> Held {
        Held {
            reading: Reading {
                at_s: 0.0,
                rss_mb: anonymous_mb,
                anonymous_mb,
                descriptors,
                threads: 20,
                kernel_objects,
                cpu_s: 0.0,
                store_mb: 0.0,
            },
            files: BTreeMap::from([("socket:[N]".to_owned(), descriptors)]),
            threads: BTreeMap::new(),
        }
    }

    #[test]
    fn what_stays_within_its_bounds_has_not_grown() {
        let held = [after_round(100.0, 200, 90), after_round(120.0, 210, 90)];
        assert_eq!(compare(&held), [""; 0]);
    }

    #[test]
    fn a_kernel_object_that_stays_is_growth() {
        let held = [after_round(100.0, 200, 90), after_round(100.0, 200, 91)];
        let grown = compare(&held);
        assert_eq!(grown.len(), 1, "{grown:?}");
        assert!(grown[0].starts_with("kernel objects: 90.0, then 91.0"));
    }

    #[test]
    fn growth_of_memory_and_of_files_is_told_with_the_files() {
        let held = [after_round(100.0, 200, 90), after_round(140.0, 230, 90)];
        let grown = compare(&held);
        assert_eq!(grown.len(), 2, "{grown:?}");
        assert!(grown[1].contains("30 socket:[N]"), "{grown:?}");
    }

    #[test]
    fn one_round_of_many_is_no_growth() {
        let mut held = vec![after_round(100.0, 200, 90); 9];
        held[8] = after_round(300.0, 200, 90);
        assert_eq!(compare(&held), [""; 0]);
    }

    #[test]
    fn names_of_files_have_no_numbers() {
        assert_eq!(kind("socket:[12345]"), "socket:[N]");
        assert_eq!(kind("/proc/12/fd"), "/proc/N/fd");
    }
}
