//! The API fuzzed for as long as one likes.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use profiler_tests::api_fuzz::{self, Fuzzed, Options as Fuzz};
use serde_json::{Value, json};

/// The warm-up goes through every parameter of every operation once.
const COVERAGE: Duration = Duration::from_mins(4);
/// Of each round.
const WITH_TOKEN: Duration = Duration::from_secs(100);
const WITHOUT_TOKEN: Duration = Duration::from_secs(30);
/// Fewest rounds that growth is judged by.
const ROUNDS: usize = 3;
/// Of odd requests; all of them are more than five thousand.
const ODD_SHARES: usize = 3;
/// Where the runs begin to count when nothing is said.
const SEED: u32 = 1;

#[derive(Args)]
pub(crate) struct Options {
    /// Length in minutes; ten at least, for rounds to compare
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=1440))]
    minutes: u32,
    /// Number that makes the same requests again
    #[arg(long, default_value_t = SEED)]
    seed: u32,
}

/// What was found, and whether anything of it must not be.
pub(crate) fn document(options: &Options, machine: &Value) -> Result<(Value, bool)> {
    let whole = Duration::from_mins(u64::from(options.minutes));
    let found = api_fuzz::run(
        &Fuzz {
            seed: options.seed,
            // A short one still has its rounds.
            coverage: COVERAGE.min(whole / 6),
            with_token: WITH_TOKEN.min(whole / 6),
            without_token: WITHOUT_TOKEN.min(whole / 20),
            rounds: ROUNDS,
            odd_shares: ODD_SHARES,
            whole,
            least: [0, 0],
        },
        |line| eprintln!("{line}"),
    )?;
    let Fuzzed {
        with_token,
        without_token,
        odd,
        operations,
        faults,
        slow,
        held,
        growth,
    } = found;
    for line in faults.iter().chain(&slow).chain(&growth) {
        eprintln!("{line}");
    }
    // What is late on a machine that does nothing else has a cause.
    let failed = !(faults.is_empty() && growth.is_empty() && slow.is_empty());
    let readings: Vec<_> = held.iter().map(|held| held.reading).collect();
    let document = json!({
        "bench": "api-fuzz",
        "machine": machine,
        "minutes": options.minutes,
        "seed": options.seed,
        "operations": operations,
        "requests_with_token": with_token,
        "requests_without_token": without_token,
        "odd_requests": odd,
        "rounds": readings.len(),
        "faults": faults,
        "slow": slow,
        "growth": growth,
        "readings": readings,
    });
    Ok((document, failed))
}
