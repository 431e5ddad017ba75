//! `record`: one profile into a file, without a server and without its data directory.

use std::{
    fmt::Write as _,
    fs::{File, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use profiler_analysis::{
    idle::IdleRules,
    render::{Format, Value, View, quality, render_view},
};
use profiler_image::build_id::hexadecimal as build_id_text;
use profiler_model::{
    Clock, CpuCoverage, EventLoopTable, LoopRules, MAX_STALL_MS, Profile, ProfileBuilder,
    Recording, SampleSpec, StackQuality, TableCounts, Target, TaskSpec, WaitCounts, WaitRules,
    short_time,
};
use profiler_recording::{Collection, Part};
use profiler_symbolize::{SymbolPacks, SymbolizeConfig, SymbolizerService};
use tokio::time::{Instant, MissedTickBehavior};

use super::{CliError, flags, record_command::Held, record_loops};
use crate::cli::naming::named_table_for;
use crate::{
    api::offline_viewer,
    config::cli::{RecordArgs, RecordKind, RecordValue},
    rule_files,
    terminal::{self, Text},
};
use profiler_recorder::probes::{ProbeStatuses, SampleRecorder, SampleRecorderConfig};

/// Processes that had the CPU and are named.
const HOLDERS: usize = 5;
/// Share of frames without a name in one file from which on the remedy is said.
const HINT_PERCENT: f64 = 10.0;
/// Share of frames of a runtime without names of functions from which on the remedy is said.
const RUNTIME_PERCENT: f64 = 1.0;
/// How often the progress bar moves.
const TICK: Duration = Duration::from_millis(200);

/// Records until the duration is over, the target has ended or Ctrl-C, then writes what was collected.
pub fn run(args: &RecordArgs) -> Result<(), CliError> {
    let samples = SampleSpec {
        kind: args.kind.into(),
        frequency_hz: args.frequency,
        wakers: args.wakers,
        waits: WaitRules {
            mode: Some(args.off_cpu_mode),
            min_ns: args.min_wait.map_or(0, nanoseconds),
            max_ns: args.max_wait.map(nanoseconds),
        },
        event_loop: loop_rules(args)?,
    };
    let mut spec = TaskSpec {
        target: args.target.to_target(),
        duration_s: Some(args.duration().as_secs()),
        recording: Recording::Samples(samples.clone()),
    };
    if args.kind == RecordKind::Wall && args.value == Some(RecordValue::Count) {
        return Err(CliError::Config(anyhow::anyhow!(
            "--value count: a wall-clock profile counts time only"
        )));
    }
    flags::check(&spec)?;
    let rules = rule_files::idle(args.idle_rules.as_deref())
        .map_err(|error| CliError::Config(error.into()))?;
    let output = Output::open(&args.output)?;
    // When everything else that can be wrong has been looked at.
    let mut held = match args.command.as_slice() {
        [] => None,
        command => Some(Held::start(command)?),
    };
    if let Some(held) = &held {
        spec.target = Target::Pids(vec![held.pid()]);
    }
    match record(args, (&spec.target, &samples), &rules, held.as_mut()) {
        Ok((bytes, mut summary)) => {
            if let Some(held) = &mut held {
                summary.line(format_args!("{}", held.ending()?));
            }
            output.write(&bytes)?;
            terminal::err(&summary);
            Ok(())
        }
        Err(error) => {
            output.discard();
            match held.as_mut().map(Held::ending) {
                Some(Ok(ending)) => terminal::err_line(format_args!("{ending}")),
                Some(Err(not_started)) => return Err(not_started.into()),
                None => {}
            }
            Err(error.into())
        }
    }
}

/// The rendered profile and what to report about it.
fn record(
    args: &RecordArgs,
    (target, samples): (&Target, &SampleSpec),
    rules: &IdleRules,
    held: Option<&mut Held>,
) -> Result<(Vec<u8>, Text)> {
    args.remote_files.choose();
    let symbolize = SymbolizeConfig {
        packs: SymbolPacks::open(None, args.symbol_dir.clone(), 0),
        ..SymbolizeConfig::default()
    };
    let collector = SampleRecorder::new(
        named_table_for(&args.names, target)?,
        SymbolizerService::start(symbolize).context("start the symbolizer")?,
        ProbeStatuses::default(),
        SampleRecorderConfig {
            denied: args.deny_probe.clone(),
            unwind: args.unwind,
            verify_every: args.verify_unwinding,
            ..SampleRecorderConfig::default()
        },
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    let collection = collector.start(target, samples)?;
    if let Some(held) = held {
        held.go()?;
    }
    let clock = collection.clock.map_or("", Clock::name);
    let mut recorded = runtime.block_on(collect(collection, args.duration()))?;
    if recorded.profile.samples.is_empty() && args.event_loop_stalls.is_none() {
        for note in &recorded.notes {
            terminal::err_line(format_args!("note: {note}"));
        }
        let output = args.output.display();
        bail!("no samples: the target did nothing, or is not there; {output} is left as it was");
    }
    // What is reported about the recording is about all of it.
    let mut summary = summary(&recorded, clock, args);
    if args.event_loop_stalls.is_some() {
        summary.push(&record_loops::lines(
            recorded.event_loop.take(),
            &recorded.profile,
        ));
    }
    // A note says how much it is.
    let _time = recorded.profile.share_out_unsampled();
    let idle = rules.apply(&mut recorded.profile, args.idle.into());
    let format = Format::from(args.format);
    let title = match args.kind {
        RecordKind::OnCpu => format!("on-CPU, {} at {} Hz", clock, args.frequency),
        RecordKind::OffCpu if recorded.waits.sampled => "off-CPU, sampled".to_owned(),
        RecordKind::OffCpu => "off-CPU, every switch".to_owned(),
        RecordKind::Wall => format!("wall-clock, {} Hz and every switch", args.frequency),
    };
    let value = args.value.map(Value::from);
    let template = (format == Format::Html).then(offline_viewer).flatten();
    let view = View {
        value,
        title: &title,
        idle: idle.as_ref(),
        wakers: args.wakers,
        template: template.as_deref(),
        ..View::default()
    };
    let bytes = render_view(&recorded.profile, format, &view)
        .with_context(|| format!("render as {}", format.name()))?;
    if let Some(share) = idle {
        summary.line(format_args!("{}", share.line()));
    }
    Ok((bytes, summary))
}

/// The threshold of stalls in whole milliseconds.
fn loop_rules(args: &RecordArgs) -> Result<Option<LoopRules>, CliError> {
    let Some(threshold) = args.event_loop_stalls else {
        return Ok(None);
    };
    let whole = threshold.subsec_nanos().is_multiple_of(1_000_000);
    let threshold_ms = u32::try_from(threshold.as_millis()).ok();
    match threshold_ms.filter(|ms| whole && (1..=MAX_STALL_MS).contains(ms)) {
        Some(threshold_ms) => Ok(Some(LoopRules { threshold_ms })),
        None => Err(CliError::Config(anyhow::anyhow!(
            "--event-loop-stalls must be whole milliseconds between 1ms and {} s, got {}",
            MAX_STALL_MS / 1000,
            humantime::format_duration(threshold)
        ))),
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// What came of a recording.
#[derive(Debug)]
struct Recorded {
    profile: Profile,
    notes: Vec<String>,
    interrupted: bool,
    waits: WaitCounts,
    coverage: Option<CpuCoverage>,
    event_loop: Option<EventLoopTable>,
}

async fn collect(mut collection: Collection, duration: Duration) -> Result<Recorded> {
    let began = Instant::now();
    let bar = progress_bar(duration);
    // Said at the end; what comes later is said at once.
    let notes = std::mem::take(&mut collection.notes);
    let mut builder: Option<ProfileBuilder> = None;
    let mut samples = 0;
    let mut waits = WaitCounts::default();
    let mut coverage = None;
    let mut event_loop = None;
    let mut interrupted = false;
    let mut ended = false;
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let end = tokio::time::sleep(duration);
    tokio::pin!(end);
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .context("listen for SIGTERM")?;
    loop {
        tokio::select! {
            chunk = collection.chunks.recv() => {
                let Some(chunk) = chunk else { break };
                if chunk.target_ended {
                    ended = true;
                    collection.stop.stop();
                }
                for note in chunk.notes {
                    bar.suspend(|| terminal::err_line(format_args!("note: {note}")));
                }
                let Part::Samples(part) = chunk.part else { continue };
                samples += part.profile.total_count();
                waits.merge(&part.waits);
                coverage = part.coverage.or(coverage);
                event_loop = part.event_loop.or(event_loop);
                builder
                    .get_or_insert_with(|| ProfileBuilder::new(
                        part.profile.origin_ns,
                        part.profile.bucket_ns,
                        part.profile.clock,
                    ))
                    .merge(&part.profile);
            }
            () = &mut end, if !ended => {
                ended = true;
                collection.stop.stop();
            }
            _ = tokio::signal::ctrl_c(), if !interrupted => {
                interrupted = true;
                collection.stop.stop();
            }
            _ = terminate.recv(), if !interrupted => {
                interrupted = true;
                collection.stop.stop();
            }
            _ = ticks.tick() => {
                bar.set_position(millis(began.elapsed()).min(millis(duration)));
                bar.set_message(format!("{samples} samples"));
            }
        }
    }
    bar.finish_and_clear();
    let profile = builder
        .context("the collection ended without a result")?
        .finish();
    Ok(Recorded {
        profile,
        notes,
        interrupted: interrupted || !ended,
        waits,
        coverage,
        event_loop,
    })
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// On stderr; indicatif draws nothing when that is not a terminal.
fn progress_bar(duration: Duration) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(millis(duration)), terminal::progress_target());
    if let Ok(style) = ProgressStyle::with_template("recording {bar:40} {percent:>3} % {msg}") {
        bar.set_style(style);
    }
    bar
}

fn summary(recorded: &Recorded, clock: &str, args: &RecordArgs) -> Text {
    let Recorded {
        profile,
        notes,
        interrupted,
        waits,
        coverage,
        event_loop: _,
    } = recorded;
    let mut text = Text::default();
    let stopped = if *interrupted { ", stopped early" } else { "" };
    let samples = profile.total_count();
    // The time in which samples were taken; looking for names may last longer.
    let seconds =
        Duration::from_nanos(profile.to_ns - profile.from_ns.min(profile.to_ns)).as_secs_f64();
    let processes = profile.processes.len();
    let output = args.output.display();
    match args.kind {
        RecordKind::OnCpu => text.line(format_args!(
            "{samples} samples of {processes} processes in {seconds:.1} s at {} Hz ({clock}){stopped} -> {output}",
            args.frequency
        )),
        RecordKind::OffCpu => text.line(format_args!(
            "{samples} switches of {processes} processes, {:.3} s off the CPU, in {seconds:.1} s ({clock}){stopped} -> {output}",
            Duration::from_nanos(profile.total_ns()).as_secs_f64()
        )),
        RecordKind::Wall => text.line(format_args!(
            "{:.3} s of {} threads of {processes} processes in {seconds:.1} s at {} Hz ({clock}){stopped} -> {output}",
            Duration::from_nanos(profile.total_ns()).as_secs_f64(),
            profile.threads.len(),
            args.frequency
        )),
    }
    let contention = profile.cpu_contention(|_| true);
    if contention.known_ns > 0 {
        text.line(format_args!(
            "waited {} for a CPU, which was with: {}",
            short_time(contention.waited_ns),
            contention.line(HOLDERS)
        ));
    }
    if let Some(coverage) = coverage {
        text.line(format_args!("{}", coverage.line()));
    }
    text.push(&stack_lines(&profile.stack_quality));
    text.push(&names(profile));
    if let Some(line) = waits.line() {
        text.line(format_args!("{line}"));
    }
    for note in notes {
        text.line(format_args!("note: {note}"));
    }
    for (kind, count) in profile.losses.iter() {
        text.line(format_args!(
            "loss: {} {count}: {}",
            kind.name(),
            kind.meaning()
        ));
    }
    text
}

/// How many user frames have names, and for which runtime and which file names are missing most.
fn names(profile: &Profile) -> Text {
    let mut text = Text::default();
    let names = quality::names(profile);
    if names.frames() == 0 {
        return text;
    }
    let mut line = format!(
        "names: {:.1} % of user frames exact, {:.1} % inferred",
        names.percent(names.exact),
        names.percent(names.inferred),
    );
    // Native programs have neither.
    for (frames, what) in [
        (
            names.interpreter,
            "the loop of an interpreter, whatever function it runs",
        ),
        (names.jit, "code made at run time without a perf map"),
    ] {
        if frames > 0 {
            let _infallible = write!(line, ", {:.1} % {what}", names.percent(frames));
        }
    }
    text.line(format_args!(
        "{line}, {:.1} % without a name",
        names.percent(names.unnamed)
    ));
    for gap in &names.runtimes {
        if names.percent(gap.frames) >= RUNTIME_PERCENT
            || names.sample_percent(gap.samples) >= HINT_PERCENT
        {
            text.line(format_args!(
                "note: {}: {:.1} % of user frames, in {:.1} % of samples, do not say which function ran; {}",
                gap.runtime.title(),
                names.percent(gap.frames),
                names.sample_percent(gap.samples),
                gap.runtime.remedy(),
            ));
        }
    }
    let mut files = names.modules.iter();
    if let Some(poorest) = files.find(|module| !module.build_id.is_empty())
        && names.percent(poorest.unnamed) >= HINT_PERCENT
    {
        text.line(format_args!(
            "note: {:.1} % are in {} without a name; put its debug file (build-id {}) into a folder \
             and give that as --symbol-dir",
            names.percent(poorest.unnamed),
            poorest.path,
            build_id_text(&poorest.build_id),
        ));
    }
    text
}

/// How complete the stacks are, and what it took.
fn stack_lines(quality: &StackQuality) -> Text {
    let mut text = Text::default();
    if let Some(line) = quality.line() {
        text.line(format_args!("stacks: {line}"));
    }
    let TableCounts {
        pages_loaded,
        pages_evicted,
        blocks,
        frames: _,
        captures,
        repaired,
        captures_dropped,
        processes_left_out,
        compared,
        identical,
    } = quality.tables;
    if pages_loaded > 0 || captures > 0 {
        text.line(format_args!(
            "unwind tables: {pages_loaded} pages loaded, {pages_evicted} evicted, {blocks} KiB; \
             {captures} samples \
             walked by the agent, {repaired} of them to their end; {captures_dropped} dropped; \
             {processes_left_out} processes left out"
        ));
    }
    if compared > 0 {
        text.line(format_args!(
            "unwinding verified: {compared} compared, {identical} identical"
        ));
    }
    text
}

/// Where the profile goes. Opened before recording, so that a wrong path costs no waiting.
#[derive(Debug)]
enum Output {
    Stdout,
    File {
        file: File,
        path: PathBuf,
        /// Removed again when nothing is recorded.
        created: bool,
    },
}

impl Output {
    fn open(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::Stdout);
        }
        let created = !path.exists();
        let file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(false)
            .open(path)
            .with_context(|| format!("open {} for writing", path.display()))?;
        Ok(Self::File {
            file,
            path: path.to_owned(),
            created,
        })
    }

    /// Removes the empty file that was made for a recording which failed.
    fn discard(self) {
        if let Self::File {
            path,
            created: true,
            ..
        } = self
            && let Err(error) = std::fs::remove_file(&path)
        {
            tracing::warn!(path = %path.display(), %error, "remove the empty output");
        }
    }

    fn write(self, bytes: &[u8]) -> Result<()> {
        match self {
            Self::Stdout => terminal::out_file(bytes),
            Self::File {
                mut file,
                path,
                created: _,
            } => {
                let path = path.display();
                // An earlier file of that name is replaced only now that there is a result.
                let regular = file.metadata().is_ok_and(|metadata| metadata.is_file());
                if regular {
                    file.set_len(0)
                        .with_context(|| format!("truncate {path}"))?;
                }
                file.write_all(bytes)
                    .with_context(|| format!("write {path}"))
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// What is reported about a recording.
    pub(in crate::cli) fn said(
        args: &RecordArgs,
        profile: Profile,
        notes: Vec<String>,
        event_loop: EventLoopTable,
    ) -> Text {
        let recorded = Recorded {
            profile,
            notes,
            interrupted: false,
            waits: WaitCounts::default(),
            coverage: None,
            event_loop: None,
        };
        let mut text = summary(&recorded, "cpu-clock", args);
        text.push(&record_loops::lines(Some(event_loop), &recorded.profile));
        text
    }
}
