//! `cargo xtask test --repeat N NAME..`: how often each test fails, also beside busy loops.

use std::{
    collections::BTreeMap,
    hint::spin_loop,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use anyhow::Result;

use super::{jobs::Run, steps::Step};

/// How often a test failed, and what it said the last time.
#[derive(Debug, Default)]
struct Failed {
    times: u32,
    output: Vec<String>,
}

/// Runs the steps in their lanes, `times` times; whether nothing failed. Budgets are not judged, and nothing is run a
/// second time.
pub(super) fn run(
    run: &mut Run<'_>,
    steps: &[&'static Step],
    times: u32,
    loaded: bool,
) -> Result<bool> {
    run.prepare(steps)?;
    let load = loaded.then(Load::begin);
    let mut failed: BTreeMap<String, Failed> = BTreeMap::new();
    let mut passed = 0;
    for round in 1..=times {
        println!("round {round} of {times}");
        for row in run.round(steps)? {
            passed += row.tally.passed;
            if row.tally.failures.is_empty()
                && let Some(error) = row.error
            {
                note(&mut failed, row.name, vec![error]);
            }
            for failure in row.tally.failures {
                note(&mut failed, &failure.test, failure.output);
            }
        }
    }
    drop(load);
    for (
        test,
        Failed {
            times: often,
            output,
        },
    ) in &failed
    {
        println!("\n---- {test} failed {often} times of {times}; the last time:");
        for line in output {
            println!("{line}");
        }
    }
    println!("\n{:60} failed of {times}", "test");
    for (test, Failed { times: often, .. }) in &failed {
        println!("{test:60} {often}");
    }
    let all: u32 = failed.values().map(|failed| failed.times).sum();
    println!("{passed} passed, {all} failed");
    Ok(all == 0)
}

fn note(failed: &mut BTreeMap<String, Failed>, test: &str, output: Vec<String>) {
    let entry = failed.entry(test.to_owned()).or_default();
    entry.times += 1;
    entry.output = output;
}

/// Busy loops, on every second processor.
struct Load {
    over: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Load {
    fn begin() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let threads = (0..processors.div_ceil(2))
            .map(|_| {
                let over = over.clone();
                thread::spawn(move || {
                    while !over.load(Ordering::Relaxed) {
                        spin_loop();
                    }
                })
            })
            .collect();
        Self { over, threads }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            drop(thread.join());
        }
    }
}
