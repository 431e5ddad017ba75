//! What the `waits` program reports, and what a profile must report about its call chains.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::folded::{Folded, FoldedStack, is_function};

/// Call chains of the mode `chains`; chain n is taken n + 1 times.
pub const CHAINS: u64 = 64;
/// Functions of a chain.
const STEPS: u32 = CHAINS.ilog2();

/// What the kernel reported to the program about its own threads.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct WaitsReport {
    /// Times that they blocked.
    pub voluntary: u64,
    /// Times that they were preempted.
    pub involuntary: u64,
    /// Time that passed and was not their CPU time.
    pub away_ns: u64,
    /// Times that a byte went to and fro in the mode `volley`.
    pub volleys: u64,
    pub lasted_ns: u64,
    /// CPU time of the whole program.
    pub spent_ns: u64,
}

impl WaitsReport {
    pub fn parse(line: &str) -> Result<Self> {
        serde_json::from_str(line).with_context(|| format!("parse report {line:?}"))
    }
}

/// Checks that `counts` has each of the [`CHAINS`] with its exact number of waits, from the start of
/// the thread to its system call, and no other wait of theirs. The kernel's part is missing where the
/// end of a wait was not seen.
///
/// When the machine stands still for longer than a nap takes, its timer runs out before the thread sleeps, and there is no wait. `blocked`,
/// the kernel's own count of how often the thread blocked, tells how many naps were such.
pub fn check_chains(counts: &Folded, blocked: u64) -> Result<()> {
    let mut seen = BTreeMap::new();
    for stack in counts.stacks.iter().filter(|stack| is_rest(stack)) {
        ensure!(stack.has("take_chains"), "incomplete: {stack:?}");
        let chain: Vec<&str> = stack
            .frames
            .iter()
            .map(String::as_str)
            .filter(|frame| frame.starts_with("left_") || frame.starts_with("right_"))
            .collect();
        *seen.entry(chain.join(";")).or_insert(0) += stack.count;
    }
    let expected: BTreeMap<String, u64> = (0..CHAINS)
        .map(|number| (chain(number), number + 1))
        .collect();
    let of = |chain: &String| seen.get(chain).copied().unwrap_or(0);
    let is_too_often = |(chain, count): (&String, &u64)| of(chain) > *count;
    let is_right =
        seen.keys().all(|chain| expected.contains_key(chain)) && !expected.iter().any(is_too_often);
    let (all, found) = (expected.values().sum::<u64>(), seen.values().sum::<u64>());
    let without = all.saturating_sub(blocked);
    ensure!(
        is_right && found + without == all,
        "{found} waits of {all}, {without} naps did not wait: {seen:?}"
    );
    Ok(())
}

/// A wait at the end of a chain, and not a moment without a CPU.
fn is_rest(stack: &FoldedStack) -> bool {
    stack.frames.iter().any(|frame| is_function(frame, "rest"))
        && !stack
            .frames
            .iter()
            .any(|frame| frame.starts_with("[runnable:"))
}

fn chain(number: u64) -> String {
    let step = |bit: u32| {
        let side = if number >> bit & 1 == 1 {
            "right"
        } else {
            "left"
        };
        format!("{side}_{bit}")
    };
    (0..STEPS).map(step).collect::<Vec<_>>().join(";")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAPS: u64 = CHAINS * (CHAINS + 1) / 2;

    fn profile(change: impl Fn(u64, u64) -> u64) -> Folded {
        let lines: Vec<String> = (0..CHAINS)
            .map(|number| {
                let count = change(number, number + 1);
                format!(
                    "waits;take_chains;{};rest;hrtimer_nanosleep {count}",
                    chain(number)
                )
            })
            .collect();
        Folded::parse(&lines.join("\n")).unwrap()
    }

    #[test]
    fn exact_counts_are_accepted() {
        check_chains(&profile(|_, count| count), NAPS).unwrap();
    }

    #[test]
    fn a_nap_that_did_not_wait_is_in_no_chain() {
        let without = profile(|number, count| count - u64::from(number == 7));
        check_chains(&without, NAPS - 1).unwrap();
        check_chains(&without, NAPS).unwrap_err();
        check_chains(&profile(|_, count| count), NAPS - 1).unwrap_err();
    }

    #[test]
    fn one_wait_in_a_wrong_chain_is_found() {
        let wrong = profile(|number, count| match number {
            7 => count - 1,
            8 => count + 1,
            _ => count,
        });
        check_chains(&wrong, NAPS).unwrap_err();
    }
}
