//! What a machine's transcript must show, and the record of verified instructions that later runs are held to.

use std::{collections::BTreeMap, fs, path::PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

use super::{guest_tests, transcript::Transcript};
use crate::workspace::Workspace;

/// Set to 1 to write the counts of this run into tests/vm/verified.json.
const BLESS: &str = "PROFILER_BLESS";
/// Verified instructions may grow by this much before somebody must look: verifiers differ between point releases.
const MAX_GROWTH_PERCENT: u64 = 20;
/// The workload does nothing else; the rest are ticks of the kernel inside it.
const MIN_SHARE_PERCENT: u64 = 80;
/// 3 s at 99 Hz are 297; emulation on a busy machine loses some.
const MIN_SAMPLES: u64 = 100;
const HOT_FUNCTION: &str = "hot_function";
/// Sleeps for 5 ms again and again: 3 s have 600 at most.
const NAP_FUNCTION: &str = "nap_function";
const SLEEP_FUNCTION: &str = "hrtimer_nanosleep_[k]";

/// Verified instructions by program, by kernel series.
type Counts = BTreeMap<String, BTreeMap<String, u64>>;

/// The part of `profiler-agent doctor --json` that is judged here.
#[derive(Deserialize)]
struct Doctor {
    programs: Vec<Program>,
}

/// One program that `doctor` loaded.
#[derive(Deserialize)]
struct Program {
    name: String,
    verified_instructions: Option<u64>,
    load_ms: Option<f64>,
    error: Option<String>,
}

/// A check's name, and its detail or why it failed.
pub(super) type Check = (&'static str, Result<String>);

/// Holds machines to the record.
#[derive(Debug)]
pub(super) struct Judge {
    recorded: Counts,
    measured: Counts,
    blessing: bool,
}

impl Judge {
    pub(super) fn read(workspace: &Workspace) -> Result<Self> {
        let blessing = std::env::var_os(BLESS).is_some_and(|value| value == "1");
        let path = path(workspace);
        let recorded = match fs::read_to_string(&path) {
            Ok(text) => {
                serde_json::from_str(&text).with_context(|| format!("parse {}", path.display()))?
            }
            Err(_) if blessing => Counts::new(),
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("read {} (make it with {BLESS}=1)", path.display()));
            }
        };
        Ok(Self {
            recorded,
            measured: Counts::new(),
            blessing,
        })
    }

    /// Everything that one kernel must show.
    pub(super) fn checks(&mut self, series: &str, transcript: &Transcript) -> Vec<Check> {
        vec![
            ("kernel", kernel(series, transcript)),
            (
                "BTF",
                transcript.succeeded("btf").map(|_| "readable".to_owned()),
            ),
            ("programs", self.programs(series, transcript)),
            ("on-CPU task", on_cpu(transcript)),
            ("off-CPU task", off_cpu(transcript)),
            ("connections", guest_tests::verdict(transcript)),
        ]
    }

    /// Writes the measured counts when asked to.
    pub(super) fn bless(&self, workspace: &Workspace) -> Result<()> {
        if !self.blessing {
            return Ok(());
        }
        let path = path(workspace);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
        }
        let text =
            serde_json::to_string_pretty(&self.measured).context("encode verified instructions")?;
        fs::write(&path, text + "\n").with_context(|| format!("write {}", path.display()))?;
        println!("wrote {}", path.display());
        Ok(())
    }

    fn programs(&mut self, series: &str, transcript: &Transcript) -> Result<String> {
        // Its status says what the machine lacks (no perf counters, say); the programs are judged one by one.
        let doctor: Doctor = serde_json::from_str(transcript.output("doctor")?)
            .context("parse the output of doctor --json")?;
        ensure!(!doctor.programs.is_empty(), "no program was loaded");
        let mut details = Vec::new();
        let mut counts = BTreeMap::new();
        for Program {
            name,
            verified_instructions,
            load_ms,
            error,
        } in doctor.programs
        {
            if let Some(error) = error {
                bail!("{name} was refused: {error}");
            }
            let count = verified_instructions
                .with_context(|| format!("{name} has no verified instructions"))?;
            let load_ms = load_ms.with_context(|| format!("{name} has no load time"))?;
            details.push(format!("{name} {count} instructions in {load_ms:.1} ms"));
            counts.insert(name, count);
        }
        self.measured.insert(series.to_owned(), counts.clone());
        if !self.blessing {
            compare(self.recorded.get(series), &counts)?;
        }
        Ok(details.join(", "))
    }
}

fn compare(
    recorded: Option<&BTreeMap<String, u64>>,
    measured: &BTreeMap<String, u64>,
) -> Result<()> {
    let remedy = format!("if this is meant, run `{BLESS}=1 cargo xtask test kernels`");
    let recorded =
        recorded.with_context(|| format!("nothing is recorded for this kernel; {remedy}"))?;
    for (name, &count) in measured {
        let &before = recorded
            .get(name)
            .with_context(|| format!("{name} is not recorded; {remedy}"))?;
        ensure!(
            count * 100 <= before * (100 + MAX_GROWTH_PERCENT),
            "{name} grew from {before} to {count} verified instructions; {remedy}"
        );
    }
    if let Some(name) = recorded.keys().find(|name| !measured.contains_key(*name)) {
        bail!("{name} is recorded but was not loaded; {remedy}");
    }
    Ok(())
}

fn kernel(series: &str, transcript: &Transcript) -> Result<String> {
    let release = transcript.succeeded("kernel")?.trim();
    ensure!(
        release.starts_with(&format!("{series}.")),
        "release {release} is not of the series {series}"
    );
    Ok(release.to_owned())
}

fn on_cpu(transcript: &Transcript) -> Result<String> {
    let (hot, total) = shares(transcript.succeeded("record")?, HOT_FUNCTION)?;
    ensure!(total >= MIN_SAMPLES, "only {total} samples");
    ensure!(
        hot * 100 >= total * MIN_SHARE_PERCENT,
        "{HOT_FUNCTION} has only {hot} of {total} samples"
    );
    Ok(format!("{HOT_FUNCTION} has {hot} of {total} samples"))
}

fn off_cpu(transcript: &Transcript) -> Result<String> {
    let waits = transcript.succeeded("waits")?;
    let (naps, total) = shares(waits, NAP_FUNCTION)?;
    let (asleep, _) = shares(waits, SLEEP_FUNCTION)?;
    ensure!(
        naps >= MIN_SAMPLES,
        "only {naps} of {total} switches in {NAP_FUNCTION}"
    );
    ensure!(
        asleep >= MIN_SAMPLES,
        "only {asleep} of {total} switches in {SLEEP_FUNCTION}"
    );
    Ok(format!(
        "{NAP_FUNCTION} has {naps} of {total} switches, {asleep} of them asleep"
    ))
}

/// Samples with a function on the stack, and all samples, of folded stacks (`a;b;c 12`).
fn shares(folded: &str, function: &str) -> Result<(u64, u64)> {
    let (mut hot, mut total) = (0, 0);
    for line in folded.lines().filter(|line| !line.trim().is_empty()) {
        let (stack, count) = line
            .rsplit_once(' ')
            .with_context(|| format!("{line:?} is no folded stack"))?;
        let count: u64 = count
            .parse()
            .with_context(|| format!("{line:?} ends in no count"))?;
        total += count;
        if stack.split(';').any(|frame| frame == function) {
            hot += count;
        }
    }
    Ok((hot, total))
}

fn path(workspace: &Workspace) -> PathBuf {
    workspace.root.join("tests/vm/verified.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(pairs: &[(&str, u64)]) -> BTreeMap<String, u64> {
        pairs
            .iter()
            .map(|&(name, count)| (name.to_owned(), count))
            .collect()
    }

    #[test]
    fn growth_within_the_limit_passes_and_beyond_it_fails() {
        let recorded = counts(&[("sample", 100)]);
        compare(Some(&recorded), &counts(&[("sample", 120)])).unwrap();
        compare(Some(&recorded), &counts(&[("sample", 10)])).unwrap();
        assert!(compare(Some(&recorded), &counts(&[("sample", 121)])).is_err());
    }

    #[test]
    fn new_and_missing_programs_must_be_recorded() {
        let recorded = counts(&[("sample", 100)]);
        assert!(compare(Some(&recorded), &counts(&[("sample", 100), ("fork", 5)])).is_err());
        assert!(compare(Some(&recorded), &counts(&[])).is_err());
        assert!(compare(None, &recorded).is_err());
    }

    #[test]
    fn shares_of_folded_stacks() {
        let folded = "workload;main;hot_function 90\nworkload;main;hot_function;asm_sysvec_apic_timer_interrupt 5\nworkload;[unknown frame] 5\n\n";
        assert_eq!(shares(folded, HOT_FUNCTION).unwrap(), (95, 100));
        assert!(shares("no count", HOT_FUNCTION).is_err());
    }

    #[test]
    fn a_refused_program_fails_the_kernel() {
        let transcript = |doctor: &str| {
            Transcript::parse(&format!("@@@ begin doctor\n{doctor}\n@@@ end doctor 0\n")).unwrap()
        };
        let mut judge = Judge {
            recorded: Counts::new(),
            measured: Counts::new(),
            blessing: true,
        };
        let loaded = r#"{"programs":[{"name":"sample","verified_instructions":7,"load_ms":1.25,"error":null}]}"#;
        assert_eq!(
            judge.programs("6.1", &transcript(loaded)).unwrap(),
            "sample 7 instructions in 1.2 ms"
        );
        let refused = r#"{"programs":[{"name":"sample","verified_instructions":null,"load_ms":null,"error":"EPERM"}]}"#;
        assert!(judge.programs("6.1", &transcript(refused)).is_err());
        assert!(
            judge
                .programs("6.1", &transcript(r#"{"programs":[]}"#))
                .is_err()
        );
    }
}
