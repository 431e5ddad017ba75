//! What commands have in common that watch connections without a server.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use profiler_host::process::ProcessTable;
use profiler_recording::{CollectError, Collection, Part};

use super::{Signals, say};
use crate::terminal;
use profiler_recorder::probes::{NetworkCollector, NetworkConfig, ProbeStatuses};

/// A command, in its own words.
pub(super) trait Watcher {
    /// `watch`, `watched`, `watching`: what it starts to do, what it has not done yet when it is stopped
    /// early, and what it says once it does it.
    const WORDS: [&'static str; 3];

    /// The collection has begun.
    fn begin(&mut self) {}

    /// The whole result so far; notes are printed afterwards.
    fn take(&mut self, part: Part);
}

/// Collects what `start` starts until the duration is over, the target's last process has ended, or a signal.
pub(super) fn watch(
    config: NetworkConfig,
    table: ProcessTable,
    start: impl FnOnce(NetworkCollector) -> Result<Collection, CollectError> + Send + 'static,
    duration: Duration,
    watcher: &mut impl Watcher,
) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    let watched = runtime.block_on(async {
        // Before anything that takes time, so that a signal never ends the command without a word.
        let signals = Signals::new()?;
        let statuses = ProbeStatuses::default();
        let denied = config.denied.clone();
        let collector = NetworkCollector::new(table, statuses.clone(), config);
        for name in statuses.unknown(&denied) {
            let known = statuses.names().join(", ");
            terminal::err_line(format_args!(
                "note: --deny-probe {name}: this command has no such probe, only {known}"
            ));
        }
        collect(move || start(collector), duration, signals, watcher).await
    });
    // Programs that are still being loaded end with the process.
    runtime.shutdown_background();
    watched
}

async fn collect<W: Watcher>(
    start: impl FnOnce() -> Result<Collection, CollectError> + Send + 'static,
    duration: Duration,
    mut signals: Signals,
    watcher: &mut W,
) -> Result<()> {
    let [verb, past, present] = W::WORDS;
    let start = tokio::task::spawn_blocking(start);
    let mut collection = tokio::select! {
        started = start => started.with_context(|| format!("start to {verb}"))??,
        () = signals.next() => bail!("stopped before it {past}: nothing was counted"),
    };
    let end = tokio::time::sleep(duration.saturating_sub(collection.already));
    tokio::pin!(end);
    let mut ended = false;
    watcher.begin();
    say(&collection.notes);
    terminal::err_line(format_args!("{present}"));
    loop {
        tokio::select! {
            chunk = collection.chunks.recv() => {
                let Some(chunk) = chunk else { break };
                watcher.take(chunk.part);
                say(&chunk.notes);
                if chunk.target_ended {
                    collection.stop.stop();
                }
            }
            () = &mut end, if !ended => {
                ended = true;
                collection.stop.stop();
            }
            () = signals.next() => collection.stop.stop(),
        }
    }
    Ok(())
}
