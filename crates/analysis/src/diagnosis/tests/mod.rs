//! What the rules find in stacks, and what a diagnosis reports about evidence.

mod advice;
mod attribution;
mod document;
mod latency;
mod response_flags;
mod rule_files;
mod snippets;
mod sums;

use profiler_model::{
    Clock, Frame, FrameSpace, Function, ModuleKind, NameSource, ProcessKey, Profile,
    ProfileBuilder, ProfileProcess, ProfileThread, SampleRow, ThreadState,
};

use super::{DiagnosisRules, attribute::Attributions};

/// Samples with one stack, in words.
#[derive(Clone, Debug)]
struct Sample<'a> {
    process: &'a str,
    pid: u32,
    thread: &'a str,
    tid: u32,
    /// From the leaf on: `k:NAME` in the kernel, `i:NAME` inferred, `FILE+0xOFFSET` without a name, and
    /// `m:TEXT` a marker.
    frames: Vec<&'a str>,
    bucket: u32,
    state: ThreadState,
    count: u64,
}

const PERIOD_NS: u64 = 1_000_000;
const BUCKET_NS: u64 = 20_000_000;

impl<'a> Sample<'a> {
    /// A sample of an Envoy worker.
    fn of(frames: &[&'a str]) -> Self {
        Self {
            process: "envoy",
            pid: 7,
            thread: "wrk:worker_0",
            tid: 8,
            frames: frames.to_vec(),
            bucket: 0,
            state: ThreadState::OnCpu,
            count: 1,
        }
    }
}

/// A profile of `seconds`.
fn profile(samples: &[Sample<'_>], seconds: u64) -> Profile {
    let mut builder = ProfileBuilder::new(1_000, BUCKET_NS, Clock::CpuClock);
    for sample in samples {
        let frames = sample.frames.iter().map(|text| frame(&mut builder, text));
        let frames: Vec<u32> = frames.collect();
        let stack = builder.stack(frames);
        let comm = builder.string(sample.process);
        let exe = builder.string(&format!("/usr/bin/{}", sample.process));
        let process = builder.process(ProfileProcess {
            key: ProcessKey {
                pid: sample.pid,
                start_ticks: 1,
            },
            comm,
            exe,
            container: 0,
        });
        let name = builder.string(sample.thread);
        let thread = builder.thread(ProfileThread {
            process,
            tid: sample.tid,
            name,
        });
        builder.sample(SampleRow {
            thread,
            stack,
            cpu: 0,
            bucket: sample.bucket,
            state: sample.state,
            waker: None,
            count: sample.count,
            total_ns: sample.count * PERIOD_NS,
        });
    }
    let mut profile = builder.finish();
    profile.from_ns = 0;
    profile.to_ns = seconds * 1_000_000_000;
    profile
}

fn frame(builder: &mut ProfileBuilder, text: &str) -> u32 {
    let (space, name, source, kind) = match text.split_once(':') {
        Some(("k", name)) => (
            FrameSpace::Kernel,
            name,
            NameSource::Kallsyms,
            ModuleKind::Kernel,
        ),
        Some(("i", name)) => (
            FrameSpace::User,
            name,
            NameSource::Inferred,
            ModuleKind::Elf,
        ),
        Some(("m", name)) => (
            FrameSpace::Marker,
            name,
            NameSource::Marker,
            ModuleKind::Unknown,
        ),
        _ => (
            FrameSpace::User,
            text,
            NameSource::ElfSymbol,
            ModuleKind::Elf,
        ),
    };
    // `file!name` is a function of another file.
    let (file, name) = name.split_once('!').unwrap_or(("envoy", name));
    let unnamed = name
        .rsplit_once("+0x")
        .and_then(|(file, offset)| Some((file, u64::from_str_radix(offset, 16).ok()?)));
    let path = if space == FrameSpace::User {
        format!("/usr/bin/{}", unnamed.map_or(file, |(file, _)| file))
    } else {
        String::new()
    };
    let module = builder.module(&path, &[0xab, 0xcd], kind);
    let functions = match unnamed {
        Some(_) => Vec::new(),
        None => vec![Function {
            name: builder.string(name),
            file: 0,
            line: 0,
        }],
    };
    builder.frame(Frame {
        space,
        module,
        offset: unnamed.map_or(0, |(_, offset)| offset),
        source: if unnamed.is_some() {
            NameSource::None
        } else {
            source
        },
        functions,
    })
}

fn embedded() -> DiagnosisRules {
    DiagnosisRules::new(None).unwrap()
}

/// Feature, mechanism and rule of the feature of one sample.
fn attributed(rules: &DiagnosisRules, sample: Sample<'_>) -> (String, String, Option<String>) {
    let profile = profile(&[sample], 1);
    profile.check().unwrap();
    let attributions = Attributions::of(rules, &profile);
    let found = attributions.of_row(&profile.samples[0]);
    (
        attributions.feature_id(found.feature).to_owned(),
        attributions.mechanism_id(found.mechanism).to_owned(),
        found
            .feature_rule
            .map(|rule| rules.rules[rule].name().to_owned()),
    )
}

fn check(sample: Sample<'_>, feature: &str, mechanism: &str) {
    let words = format!("{sample:?}");
    let (found_feature, found_mechanism, _) = attributed(&embedded(), sample);
    assert_eq!(
        (found_feature.as_str(), found_mechanism.as_str()),
        (feature, mechanism),
        "{words}"
    );
}
