//! The API fuzzed from its OpenAPI document, with a token and without, and what the agent holds afterwards.
//!
//! `schemathesis` makes requests from the document, `odd` those that no document describes. `growth` compares what
//! the agent holds once everything is removed that a round has made.

mod growth;
mod odd;
mod odd_requests;
mod places;
mod results;
mod schemathesis;

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

pub use growth::Held;
use odd::Share;
use results::Results;
use schemathesis::{Asking, Phases};

use crate::{
    agent::{Agent, ServeOptions},
    api::Api,
    cleanup::scratch_directory,
    kernel_objects::KernelObjects,
    process::Launch,
    workload::Workload,
};

/// Rounds at most where requests are lacking.
const MOST_ROUNDS: usize = 6;
/// Name of the process that tasks look at.
const TARGET: &str = "api-fuzz-target";
/// The edges of the whole node have an answer too.
const SERVE: [&str; 2] = ["--network", "always"];
/// For the agent to end while the machine is busy; how fast it ends is another test's.
const STOP: Duration = Duration::from_mins(1);
/// For the kernel, which frees what a process held.
const GONE: Duration = Duration::from_secs(15);

/// How long each part lasts, without the starts of the programs and the pauses in which the agent settles.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Every run has this number and its own.
    pub seed: u32,
    /// The warm-up: each parameter of each operation with its limits and beyond, once.
    pub coverage: Duration,
    /// Of each round.
    pub with_token: Duration,
    /// Of each round.
    pub without_token: Duration,
    /// Fewest rounds after the warm-up; what is held after the first is what later ones are compared with.
    pub rounds: usize,
    /// Odd requests are sent in this many rounds, a share in each.
    pub odd_shares: usize,
    /// Rounds go on until this time is over.
    pub whole: Duration,
    /// Fewest requests with the token, and without: rounds are added until there are this many.
    pub least: [u64; 2],
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Fuzzed {
    /// Requests made from the document with the token, and without.
    pub with_token: u64,
    pub without_token: u64,
    /// Requests that no document describes.
    pub odd: u64,
    /// Operations of the document.
    pub operations: u64,
    /// What must not be, with the seed that repeats it.
    pub faults: Vec<String>,
    /// Answers that came late: a busy machine can do that.
    pub slow: Vec<String>,
    /// After each round but the warm-up.
    pub held: Vec<Held>,
    /// What grew.
    pub growth: Vec<String>,
}

/// What is found at any server by its document: by one run with the token, and by odd requests.
pub fn faults(api: &Api, document: &Value, folder: &Path, length: Duration) -> Result<Vec<String>> {
    let results = Results::named(["1"]);
    let run = schemathesis::Run {
        api,
        folder,
        document,
        results: &results,
        target: std::process::id(),
        seed: 1,
        asking: Asking::WithToken,
        phases: Phases::Coverage,
        length,
    };
    let mut faults = run.finish(1)?.faults;
    let places = places::of(document, &results)?;
    let all = Share { of: 1, number: 0 };
    faults.extend(odd::ask_all(api, &places, all)?.faults);
    Ok(faults)
}

/// One agent that is fuzzed, and its program to look at.
struct Fuzz<'a> {
    agent: Agent,
    target: u32,
    document: Value,
    options: &'a Options,
    began: Instant,
    found: Fuzzed,
    /// Runs so far: each has a seed and a folder of its own.
    runs: u32,
}

/// Fuzzes an agent of its own; `say` receives the progress.
pub fn run(options: &Options, mut say: impl FnMut(&str)) -> Result<Fuzzed> {
    ensure!(options.rounds >= 2, "growth shows from two rounds on");
    let (folder, _guard) = scratch_directory("api-fuzz")?;
    let program = Workload::SharesC.build(TARGET)?;
    let target = Launch::new(&program, TARGET, &folder).start()?;
    let before = KernelObjects::now()?;
    let agent = Agent::start_with(ServeOptions::with_arguments(SERVE))?;
    let document = agent.api.get_json("/api/v1/openapi.json")?;
    let mut fuzz = Fuzz {
        agent,
        target: target.pid(),
        document,
        options,
        began: Instant::now(),
        found: Fuzzed::default(),
        runs: 0,
    };
    fuzz.warm_up(&mut say)?;
    while fuzz.found.held.len() < options.rounds
        || fuzz.began.elapsed() < options.whole
        || fuzz.lacks_requests()
    {
        fuzz.round(&mut say)?;
    }
    fuzz.end(&before)
}

impl Fuzz<'_> {
    /// Fills the caches, and asks for everything once.
    fn warm_up(&mut self, say: &mut impl FnMut(&str)) -> Result<()> {
        let results = results::make(&self.agent.api, self.target)?;
        let coverage = self.options.coverage;
        // Symbols of every process, those that ask among them, stay in the caches: whichever round were the first to want them
        // would seem to grow.
        let all = json!({
            "kind": "on_cpu", "target": { "all": true }, "duration_s": coverage.as_secs().max(2), "frequency_hz": 199,
        });
        self.agent.api.create_task(&all)?;
        self.ask(&results, Asking::WithToken, Phases::Coverage, coverage, say)?;
        self.without_token(&results, say)?;
        self.odd(&results, 0, say)?;
        growth::settle(&self.agent, self.began, None).map(drop)
    }

    fn round(&mut self, say: &mut impl FnMut(&str)) -> Result<()> {
        let results = results::make(&self.agent.api, self.target)?;
        let length = self.options.with_token * self.longer();
        self.ask(&results, Asking::WithToken, Phases::Random, length, say)?;
        self.without_token(&results, say)?;
        let number = self.found.held.len() + 1;
        self.odd(&results, number, say)?;
        let held = growth::settle(&self.agent, self.began, self.found.held.first())?;
        say(&format!("round {number}: {held}"));
        self.found.held.push(held);
        Ok(())
    }

    /// Rounds that are added for want of requests ask for twice as long as the one before: on a slow machine what asks may take
    /// longer to begin than it has.
    fn longer(&self) -> u32 {
        let added = (self.found.held.len() + 1).saturating_sub(self.options.rounds);
        if self.lacks_requests() {
            1 << added.min(4)
        } else {
            1
        }
    }

    /// On a busy machine what asks has little of its time.
    fn lacks_requests(&self) -> bool {
        let [with_token, without_token] = self.options.least;
        let lacks = self.found.with_token < with_token || self.found.without_token < without_token;
        lacks && self.found.held.len() < MOST_ROUNDS
    }

    /// The limits of each parameter: random values would all be refused alike.
    fn without_token(&mut self, results: &Results, say: &mut impl FnMut(&str)) -> Result<()> {
        let length = self.options.without_token * self.longer();
        self.ask(results, Asking::WithoutToken, Phases::Coverage, length, say)
    }

    /// Requests from the document.
    fn ask(
        &mut self,
        results: &Results,
        asking: Asking,
        phases: Phases,
        length: Duration,
        say: &mut impl FnMut(&str),
    ) -> Result<()> {
        self.runs += 1;
        let run = schemathesis::Run {
            api: &self.agent.api,
            folder: self.agent.folder(),
            document: &self.document,
            results,
            target: self.target,
            seed: self.options.seed.wrapping_add(self.runs),
            asking,
            phases,
            length,
        };
        let answered = run.finish(self.runs)?;
        say(&answered.line);
        match asking {
            Asking::WithToken => self.found.with_token += answered.requests,
            Asking::WithoutToken => self.found.without_token += answered.requests,
        }
        self.found.operations = answered.operations;
        self.found.faults.extend(answered.faults);
        self.check()
    }

    /// A share of the requests that no document describes, another in each round.
    fn odd(&mut self, results: &Results, round: usize, say: &mut impl FnMut(&str)) -> Result<()> {
        let places = places::of(&self.document, results)?;
        let share = Share {
            of: self.options.odd_shares,
            number: round,
        };
        let answered = odd::ask_all(&self.agent.api, &places, share)?;
        say(&format!("odd: {} requests", answered.requests));
        self.found.odd += answered.requests;
        self.found.faults.extend(answered.faults);
        self.found.slow.extend(answered.slow);
        self.check()
    }

    fn check(&mut self) -> Result<()> {
        ensure!(
            self.agent.is_running(),
            "the agent ended: {}",
            self.agent.log()
        );
        Ok(())
    }

    fn end(mut self, before: &KernelObjects) -> Result<Fuzzed> {
        let status = self.agent.stop_within(STOP).context("stop the agent")?;
        let mut found = self.found;
        if !status.success() {
            found.faults.push(format!("the agent ended with {status}"));
        }
        let log = self.agent.log();
        let errors = log.lines().filter(|line| line.contains(" ERROR "));
        found
            .faults
            .extend(errors.map(|line| format!("logged: {line}")));
        let left = KernelObjects::left_behind(before, GONE)?;
        if !left.is_empty() {
            found.growth.push(format!("left in the kernel: {left:?}"));
        }
        found.growth.extend(growth::compare(&found.held));
        Ok(found)
    }
}
