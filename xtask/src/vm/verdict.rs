//! What a machine's transcript must show, and the record of verified instructions that later runs are held to.

use std::{collections::BTreeMap, fs, path::PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

use super::{Trial, guest_tests, machine::Tries, transcript::Transcript};
use crate::workspace::Workspace;

/// Set to 1 to write the counts of this run into tests/vm/verified.json.
const BLESS: &str = "PROFILER_BLESS";
/// Verified instructions may grow by this much before a person must look: verifiers differ between point releases.
const MAX_GROWTH_PERCENT: u64 = 20;
/// The workload does nothing else; the rest are ticks of the kernel inside it.
const MIN_SHARE_PERCENT: u64 = 80;
/// 10 s at 99 Hz are 990. Emulation loses ticks: on a busy machine two of three, and more where one thread emulates many
/// CPUs.
const MIN_SAMPLES: u64 = 100;
const MIN_SAMPLES_OF_MANY_CPUS: u64 = 30;
const HOT_FUNCTION: &str = "hot_function";
/// Sleeps for 5 ms again and again: 3 s have 600 at most.
const NAP_FUNCTION: &str = "nap_function";
const SLEEP_FUNCTION: &str = "hrtimer_nanosleep_[k]";

/// Verified instructions by program, by kernel series.
type Counts = BTreeMap<String, BTreeMap<String, u64>>;

/// The part of `profiler-agent doctor --json` that is judged here.
#[derive(Deserialize)]
struct Doctor {
    cpus: u32,
    maps: Vec<Map>,
    programs: Vec<Program>,
}

/// One map of these programs.
#[derive(Deserialize)]
struct Map {
    name: String,
    kind: String,
    entries: u32,
}

/// One program that `doctor` loaded.
#[derive(Deserialize)]
struct Program {
    name: String,
    verified_instructions: Option<u64>,
    load_ms: Option<f64>,
    error: Option<String>,
}

/// What the agent must make of a kernel.
#[derive(Clone, Copy, Debug)]
pub(super) enum Expected {
    /// Every program is loaded, with as many verified instructions as were recorded.
    Recorded,
    /// Every program is loaded but these, for a reason with this word. A profile by one of them fails with that reason.
    Refused {
        programs: &'static [&'static str],
        reason: &'static str,
    },
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
    pub(super) fn checks(&mut self, trial: &Trial, transcript: &Transcript) -> Vec<Check> {
        let series = trial.kernel.series;
        let mut checks = vec![
            ("kernel", kernel(series, transcript)),
            (
                "BTF",
                transcript.succeeded("btf").map(|_| "readable".to_owned()),
            ),
            ("programs", self.programs(trial, transcript)),
        ];
        match trial.expected {
            Expected::Refused { programs, reason } if programs.contains(&"on_cpu") => {
                checks.push(("on-CPU task", fails_for(transcript, "record", reason)));
                checks.push(("off-CPU task", fails_for(transcript, "waits", reason)));
            }
            Expected::Recorded | Expected::Refused { .. } => {
                let least = match trial.guest.tries {
                    Tries::Everything => MIN_SAMPLES,
                    Tries::Profiles => MIN_SAMPLES_OF_MANY_CPUS,
                };
                checks.push(("on-CPU task", on_cpu(transcript, least)));
                checks.push(("off-CPU task", off_cpu(transcript, least)));
                checks.push(("kernel stacks", kernel_stacks(transcript)));
            }
        }
        if trial.guest.tries == Tries::Everything {
            checks.push(("connections", guest_tests::verdict(transcript)));
        }
        checks
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

    fn programs(&mut self, trial: &Trial, transcript: &Transcript) -> Result<String> {
        let series = trial.kernel.series;
        // Its status says what the machine lacks (no perf counters, say); the programs are judged one by one.
        // Where that fails, its reason follows the document.
        let mut documents =
            serde_json::Deserializer::from_str(transcript.output("doctor")?).into_iter();
        let doctor: Doctor = documents
            .next()
            .context("doctor --json printed nothing")?
            .context("parse the output of doctor --json")?;
        ensure!(!doctor.programs.is_empty(), "no program was loaded");
        ensure!(
            doctor.cpus == trial.guest.cpus,
            "the machine has {} CPUs and not {}",
            doctor.cpus,
            trial.guest.cpus
        );
        forgetting_maps(&doctor)?;
        let (refused, reason) = match trial.expected {
            Expected::Recorded => (&[][..], ""),
            Expected::Refused { programs, reason } => (programs, reason),
        };
        let mut left: Vec<&str> = refused.to_vec();
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
                let expected = refused.contains(&name.as_str()) && error.contains(reason);
                ensure!(expected, "{name} was refused: {error}");
                left.retain(|program| *program != name);
                details.push(format!("{name} refused"));
                continue;
            }
            let load_ms = load_ms.with_context(|| format!("{name} has no load time"))?;
            let Some(count) = verified_instructions else {
                // Kernels before 5.16 do not tell.
                let is_recorded = matches!(trial.expected, Expected::Recorded);
                ensure!(!is_recorded, "{name} has no verified instructions");
                details.push(format!("{name} in {load_ms:.1} ms"));
                continue;
            };
            details.push(format!("{name} {count} instructions in {load_ms:.1} ms"));
            counts.insert(name, count);
        }
        ensure!(left.is_empty(), "not refused: {left:?}");
        if matches!(trial.expected, Expected::Recorded) {
            self.measured.insert(series.to_owned(), counts.clone());
            if !self.blessing {
                compare(self.recorded.get(series), &counts)?;
            }
        }
        Ok(details.join(", "))
    }
}

/// A CPU that inserts into an LRU map keeps 128 entries to itself: with fewer for each, the kernel evicts entries that
/// are in use (`kernel/bpf/bpf_lru_list.c`).
fn forgetting_maps(doctor: &Doctor) -> Result<()> {
    let mut lru = doctor.maps.iter().filter(|map| map.kind == "lru_hash");
    if let Some(small) = lru.find(|map| map.entries < doctor.cpus * 4 * 128) {
        bail!(
            "map {} has {} entries for {} CPUs",
            small.name,
            small.entries,
            doctor.cpus
        );
    }
    Ok(())
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
        release.starts_with(&format!("{}.", series.trim_end_matches("-rt"))),
        "release {release} is not of the series {series}"
    );
    Ok(release.to_owned())
}

fn on_cpu(transcript: &Transcript, least: u64) -> Result<String> {
    let (hot, total) = shares(transcript.succeeded("record")?, HOT_FUNCTION)?;
    ensure!(total >= least, "only {total} samples");
    ensure!(
        hot * 100 >= total * MIN_SHARE_PERCENT,
        "{HOT_FUNCTION} has only {hot} of {total} samples"
    );
    Ok(format!("{HOT_FUNCTION} has {hot} of {total} samples"))
}

/// A command must have failed, with a word of the reason.
fn fails_for(transcript: &Transcript, section: &str, reason: &str) -> Result<String> {
    let failure = match transcript.succeeded(section) {
        Ok(_) => bail!("it succeeded"),
        Err(error) => format!("{error:#}"),
    };
    ensure!(failure.contains(reason), "another reason: {failure}");
    Ok(format!("refused with the reason ({reason})"))
}

fn off_cpu(transcript: &Transcript, least: u64) -> Result<String> {
    let waits = transcript.succeeded("waits")?;
    let (naps, total) = shares(waits, NAP_FUNCTION)?;
    let (asleep, _) = shares(waits, SLEEP_FUNCTION)?;
    ensure!(
        naps >= least,
        "only {naps} of {total} switches in {NAP_FUNCTION}"
    );
    ensure!(
        asleep >= least,
        "only {asleep} of {total} switches in {SLEEP_FUNCTION}"
    );
    Ok(format!(
        "{NAP_FUNCTION} has {naps} of {total} switches, {asleep} of them asleep"
    ))
}

/// All waits of the machine have the kernel stacks that the kernel's own walker finds, and nearly all were walked without it.
fn kernel_stacks(transcript: &Transcript) -> Result<String> {
    let said = transcript.succeeded("walks")?;
    let line = said
        .lines()
        .find_map(|line| line.strip_prefix("note: kernel stacks verified: "))
        .with_context(|| format!("no kernel stack was compared: {said}"))?;
    let numbers: Vec<u64> = line
        .split([' ', ','])
        .filter_map(|word| word.parse().ok())
        .collect();
    let &[compared, waits, different] = numbers.as_slice() else {
        bail!("{line:?} has not three numbers");
    };
    ensure!(different == 0, "{line}");
    ensure!(
        compared * 100 >= waits * MIN_SHARE_PERCENT,
        "few were walked by the program: {line}"
    );
    Ok(line.to_owned())
}

/// Samples with a function on the stack, and all samples, of folded stacks (`a;b;c 12`).
fn shares(folded: &str, function: &str) -> Result<(u64, u64)> {
    let (mut hot, mut total) = (0, 0);
    for line in folded.lines().filter(|line| !line.trim().is_empty()) {
        let (stack, count) = line
            .rsplit_once(' ')
            .with_context(|| format!("{line:?} is not a folded stack"))?;
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
    use super::{super::SMALL, *};
    use crate::pins;

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
        let trial = |expected| Trial {
            kernel: &pins::KERNELS[0],
            guest: SMALL,
            expected,
        };
        let recorded = trial(Expected::Recorded);
        let transcript = |doctor: &str| {
            Transcript::parse(&format!("@@@ begin doctor\n{doctor}\n@@@ end doctor 0\n")).unwrap()
        };
        let mut judge = Judge {
            recorded: Counts::new(),
            measured: Counts::new(),
            blessing: true,
        };
        let loaded = r#"{"cpus":2,"maps":[],"programs":[{"name":"sample","verified_instructions":7,"load_ms":1.25,"error":null}]}"#;
        assert_eq!(
            judge.programs(&recorded, &transcript(loaded)).unwrap(),
            "sample 7 instructions in 1.2 ms"
        );
        let refused = r#"{"cpus":2,"maps":[],"programs":[{"name":"sample","verified_instructions":null,"load_ms":null,"error":"EPERM"}]}"#;
        assert!(judge.programs(&recorded, &transcript(refused)).is_err());
        assert!(
            judge
                .programs(
                    &recorded,
                    &transcript(r#"{"cpus":2,"maps":[],"programs":[]}"#)
                )
                .is_err()
        );
        let by_name = trial(Expected::Refused {
            programs: &["sample"],
            reason: "EPERM",
        });
        judge.programs(&by_name, &transcript(refused)).unwrap();
        let with_reason = format!("{refused}\nprofiler-agent: this machine cannot be profiled");
        judge.programs(&by_name, &transcript(&with_reason)).unwrap();
        let uncounted = loaded.replace(":7,", ":null,");
        assert!(judge.programs(&recorded, &transcript(&uncounted)).is_err());
        let none = trial(Expected::Refused {
            programs: &[],
            reason: "",
        });
        judge.programs(&none, &transcript(&uncounted)).unwrap();
        assert!(judge.programs(&by_name, &transcript(loaded)).is_err());
        let small_map = loaded.replace(
            "[]",
            r#"[{"name":"CALLS","kind":"lru_hash","entries":512}]"#,
        );
        assert!(judge.programs(&recorded, &transcript(&small_map)).is_err());
        let large = Trial {
            guest: super::super::LARGE,
            ..recorded
        };
        assert!(judge.programs(&large, &transcript(loaded)).is_err());
    }
}
