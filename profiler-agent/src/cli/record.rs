//! `record`: one profile into a file, without a server and without its data directory.

use std::{
    fmt::Write as _,
    fs::{File, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::time::{Instant, MissedTickBehavior};

use super::{CliError, flags, record_loops};
use crate::cli::naming::named_table_for;
use crate::{
    api::offline_viewer,
    config::cli::{RecordArgs, RecordKind, RecordValue},
    idle::IdleRules,
    model::{
        Clock, EventLoopTable, LoopRules, MAX_STALL_MS, Profile, ProfileBuilder, StackQuality,
        TableCounts, TaskSpec, WaitCounts, WaitRules,
    },
    network::printable,
    probes::{CollectRequest, Collection, Collector, OnCpuCollector, OnCpuConfig, ProbeStatuses},
    render::{Format, Value, View, quality, render_view},
    symbolize::{SymbolPacks, SymbolizeConfig, SymbolizerService, build_id_text},
};

/// Share of frames without a name in one file from which on the remedy is said.
const HINT_PERCENT: f64 = 10.0;
/// How often the progress bar moves.
const TICK: Duration = Duration::from_millis(200);

/// Records until the duration is over or Ctrl-C, then writes what was collected.
pub fn run(args: &RecordArgs) -> Result<(), CliError> {
    let spec = TaskSpec {
        kind: args.kind.into(),
        target: args.target.to_target(),
        duration_s: Some(args.duration.as_secs()),
        frequency_hz: args.frequency,
        wakers: args.wakers,
        timed: false,
        event_loop: loop_rules(args)?,
        requests: None,
        waits: WaitRules {
            mode: Some(args.off_cpu_mode),
            min_ns: args.min_wait.map_or(0, nanoseconds),
            max_ns: args.max_wait.map(nanoseconds),
        },
    };
    if args.kind == RecordKind::Wall && args.value == Some(RecordValue::Count) {
        return Err(CliError::Config(anyhow::anyhow!(
            "--value count: a wall-clock profile counts time only"
        )));
    }
    flags::check(&spec)?;
    let rules = IdleRules::load(args.idle_rules.as_deref())
        .map_err(|error| CliError::Config(error.into()))?;
    let output = Output::open(&args.output)?;
    match record(args, spec, &rules) {
        Ok((bytes, summary)) => {
            output.write(&bytes)?;
            Ok(say(&summary)?)
        }
        Err(error) => {
            output.discard();
            Err(error.into())
        }
    }
}

/// The rendered profile and what to say about it.
fn record(args: &RecordArgs, spec: TaskSpec, rules: &IdleRules) -> Result<(Vec<u8>, String)> {
    let symbolize = SymbolizeConfig {
        packs: SymbolPacks::open(None, args.symbol_dir.clone(), 0),
        ..SymbolizeConfig::default()
    };
    let collector = Arc::new(OnCpuCollector::new(
        named_table_for(&args.names, &spec.target)?,
        SymbolizerService::start(symbolize).context("start the symbolizer")?,
        ProbeStatuses::default(),
        OnCpuConfig {
            denied: args.deny_probe.clone(),
            unwind: args.unwind,
            verify_every: args.verify_unwinding,
            ..OnCpuConfig::default()
        },
    ));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    let collection = collector.start(&CollectRequest { spec })?;
    let clock = collection.clock.map_or("", Clock::name);
    let mut recorded = runtime.block_on(collect(collection, args.duration))?;
    // What is said about the recording is about all of it.
    let mut summary = summary(&recorded, clock, args);
    if args.event_loop_stalls.is_some() {
        summary.push_str(&record_loops::lines(
            recorded.event_loop.take(),
            &recorded.profile,
        ));
    }
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
    let idle = idle.map_or(String::new(), |share| format!("{}\n", share.line()));
    Ok((bytes, summary + &idle))
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
    event_loop: Option<EventLoopTable>,
}

async fn collect(mut collection: Collection, duration: Duration) -> Result<Recorded> {
    let began = Instant::now();
    let bar = progress_bar(duration);
    let mut notes = std::mem::take(&mut collection.notes);
    let mut builder: Option<ProfileBuilder> = None;
    let mut samples = 0;
    let mut waits = WaitCounts::default();
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
                samples += chunk.profile.total_count();
                waits.merge(&chunk.waits);
                event_loop = chunk.event_loop.or(event_loop);
                for note in chunk.notes {
                    bar.suspend(|| say(&format!("note: {}\n", printable(note.as_bytes()))))?;
                    notes.push(note);
                }
                builder
                    .get_or_insert_with(|| ProfileBuilder::new(
                        chunk.profile.origin_ns,
                        chunk.profile.bucket_ns,
                        chunk.profile.clock,
                    ))
                    .merge(&chunk.profile);
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
        event_loop,
    })
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// On stderr; indicatif draws nothing when that is no terminal.
fn progress_bar(duration: Duration) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(
        Some(millis(duration)),
        ProgressDrawTarget::stderr_with_hz(5),
    );
    if let Ok(style) = ProgressStyle::with_template("recording {bar:40} {percent:>3} % {msg}") {
        bar.set_style(style);
    }
    bar
}

fn summary(recorded: &Recorded, clock: &str, args: &RecordArgs) -> String {
    let Recorded {
        profile,
        notes,
        interrupted,
        waits,
        event_loop: _,
    } = recorded;
    let mut text = String::new();
    let stopped = if *interrupted { ", stopped early" } else { "" };
    let samples = profile.total_count();
    // The time in which samples were taken; looking for names may last longer.
    let seconds =
        Duration::from_nanos(profile.to_ns - profile.from_ns.min(profile.to_ns)).as_secs_f64();
    let processes = profile.processes.len();
    let output = args.output.display();
    // Writing to a String cannot fail.
    let _infallible = match args.kind {
        RecordKind::OnCpu => writeln!(
            text,
            "{samples} samples of {processes} processes in {seconds:.1} s at {} Hz ({clock}){stopped} -> {output}",
            args.frequency,
        ),
        RecordKind::OffCpu => writeln!(
            text,
            "{samples} switches of {processes} processes, {:.3} s off the CPU, in {seconds:.1} s ({clock}){stopped} -> {output}",
            Duration::from_nanos(profile.total_ns()).as_secs_f64(),
        ),
        RecordKind::Wall => writeln!(
            text,
            "{:.3} s of {} threads of {processes} processes in {seconds:.1} s at {} Hz ({clock}){stopped} -> {output}",
            Duration::from_nanos(profile.total_ns()).as_secs_f64(),
            profile.threads.len(),
            args.frequency,
        ),
    };
    if samples == 0 {
        text.push_str(match args.kind {
            RecordKind::OnCpu => {
                "no samples: the target used no CPU time while it was recorded, or had ended\n"
            }
            RecordKind::OffCpu => {
                "no switches: the target ran or slept all the time, or had ended\n"
            }
            RecordKind::Wall => "no time: the target slept all the time, or had ended\n",
        });
    }
    text.push_str(&stack_lines(&profile.stack_quality));
    text.push_str(&names(profile));
    if let Some(line) = waits.line() {
        text.push_str(&line);
        text.push('\n');
    }
    for note in notes {
        let _infallible = writeln!(text, "note: {}", printable(note.as_bytes()));
    }
    for (kind, count) in profile.losses.iter() {
        let _infallible = writeln!(text, "loss: {} {count}: {}", kind.name(), kind.meaning());
    }
    text
}

/// How many user frames have names, and for which file names are missing most.
fn names(profile: &Profile) -> String {
    let names = quality::names(profile);
    if names.frames() == 0 {
        return String::new();
    }
    let mut text = format!(
        "names: {:.1} % of user frames exact, {:.1} % inferred, {:.1} % without a name\n",
        names.percent(names.exact),
        names.percent(names.inferred),
        names.percent(names.unnamed),
    );
    if let Some(poorest) = names.modules.first()
        && names.percent(poorest.unnamed) >= HINT_PERCENT
        && !poorest.build_id.is_empty()
    {
        // Writing to a String cannot fail.
        let _infallible = writeln!(
            text,
            "note: {:.1} % are in {} without a name; put its debug file (build-id {}) into a folder \
             and give that as --symbol-dir",
            names.percent(poorest.unnamed),
            printable(poorest.path.as_bytes()),
            build_id_text(&poorest.build_id),
        );
    }
    text
}

/// How complete the stacks are, and what it took.
fn stack_lines(quality: &StackQuality) -> String {
    let mut text = String::new();
    if let Some(line) = quality.line() {
        let _infallible = writeln!(text, "stacks: {line}");
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
        let _infallible = writeln!(
            text,
            "unwind tables: {pages_loaded} pages loaded, {pages_evicted} evicted, {blocks} KiB; \
             {captures} samples \
             walked by the agent, {repaired} of them to their end; {captures_dropped} dropped; \
             {processes_left_out} processes left out"
        );
    }
    if compared > 0 {
        let _infallible = writeln!(
            text,
            "unwinding verified: {compared} compared, {identical} identical"
        );
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
            Self::Stdout => {
                let mut out = std::io::stdout().lock();
                out.write_all(bytes)
                    .and_then(|()| out.flush())
                    .context("write to stdout")
            }
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

/// Writes to stderr, where the progress and the summary go.
fn say(text: &str) -> Result<()> {
    std::io::stderr()
        .lock()
        .write_all(text.as_bytes())
        .context("write to stderr")
}
