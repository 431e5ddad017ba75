//! `requests`: what processes ask each other, without a server and without its data directory.

use std::{
    io::{IsTerminal as _, Write as _},
    time::Instant,
};

use anyhow::{Context as _, Result, bail};

use super::{CliError, Signals, print, requests_table, say};
use crate::{
    api,
    config::cli::{RequestsArgs, SamplesKept},
    model::{
        DEFAULT_FREQUENCY_HZ, RequestOptions, RequestTable, SampleRule, TaskKind, TaskSpec,
        TaskState, WaitRules,
    },
    probes::{
        CollectRequest, Collector as _, NetworkCollector, NetworkConfig, ProbeStatuses,
        TARGET_ENDED,
    },
    process::ProcessTable,
    task,
};

/// Looks until the duration is over, the target's last process has ended, or Ctrl-C; then prints. On a
/// terminal the table is shown as it grows.
pub fn run(args: &RequestsArgs) -> Result<(), CliError> {
    let spec = TaskSpec {
        kind: TaskKind::Requests,
        target: args.target.to_target(),
        duration_s: Some(args.duration.as_secs()),
        frequency_hz: DEFAULT_FREQUENCY_HZ,
        wakers: false,
        event_loop: None,
        requests: Some(options(args)?),
        timed: false,
        waits: WaitRules::default(),
    };
    task::validate(&spec).map_err(|error| CliError::Config(error.into()))?;
    let table = look(args, spec)?;
    let text = if args.json {
        let result = api::TaskRequests::new(&TaskState::Finished, Some(&table));
        serde_json::to_string_pretty(&result).context("encode the requests")? + "\n"
    } else {
        requests_table::text(&table)
    };
    Ok(print(&text)?)
}

fn options(args: &RequestsArgs) -> Result<RequestOptions, CliError> {
    let usual = RequestOptions::default();
    Ok(RequestOptions {
        tls: args.tls,
        tls_duty_percent: args.tls_duty,
        bodies: args.bodies,
        raw_paths: args.raw_paths,
        samples_all: args.samples == SamplesKept::All,
        rules: rules(&args.rule)?,
        capture_bytes: args
            .capture_bytes
            .unwrap_or(RequestOptions::usual_capture_bytes(args.bodies)),
        cpu_percent: args.cpu_percent.unwrap_or(usual.cpu_percent),
    })
}

fn rules(texts: &[String]) -> Result<Vec<SampleRule>, CliError> {
    let parsed = texts.iter().map(|text| {
        let rule = api::parse_sample_rule(text).with_context(|| {
            format!(
                "--rule {text}: no rule; its fields are operation, min_duration_ns, min_bytes, status ([\"4xx\", \
                 \"5xx\"]) and grpc_status ([14])"
            )
        });
        rule.map_err(CliError::Config)
    });
    parsed.collect()
}

fn look(args: &RequestsArgs, spec: TaskSpec) -> Result<RequestTable> {
    let config = NetworkConfig {
        denied: args.deny_probe.clone(),
        ..NetworkConfig::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    let table = runtime.block_on(async {
        // Before anything that takes time, so that a signal never ends the command without a word.
        let signals = Signals::new()?;
        let collector =
            NetworkCollector::new(ProcessTable::new(), ProbeStatuses::default(), config);
        collect(collector, spec, args, signals).await
    });
    // Programs that are still being loaded end with the process.
    runtime.shutdown_background();
    table
}

async fn collect(
    collector: NetworkCollector,
    spec: TaskSpec,
    args: &RequestsArgs,
    mut signals: Signals,
) -> Result<RequestTable> {
    let start = tokio::task::spawn_blocking(move || collector.start(&CollectRequest { spec }));
    let mut collection = tokio::select! {
        started = start => started.context("start to look")??,
        () = signals.next() => bail!("stopped before it looked: nothing was counted"),
    };
    let end = tokio::time::sleep(args.duration.saturating_sub(collection.already));
    tokio::pin!(end);
    let mut live = (!args.json && std::io::stderr().is_terminal()).then(Live::new);
    let mut newest = None;
    let mut ended = false;
    say(&collection.notes);
    eprintln!("looking for requests");
    loop {
        tokio::select! {
            chunk = collection.chunks.recv() => {
                let Some(chunk) = chunk else { break };
                if let Some(table) = chunk.requests {
                    if let Some(live) = &mut live {
                        live.show(&table);
                    }
                    newest = Some(table);
                }
                say(&chunk.notes);
                if chunk.notes.iter().any(|note| note == TARGET_ENDED) {
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
    if let Some(live) = live {
        live.clear();
    }
    newest.context("the collection ended without a result")
}

/// The table as it grows, drawn over the one before. It goes to stderr, so that stdout has the result alone.
struct Live {
    /// Lines of what is on the screen.
    lines: usize,
    began: Instant,
}

/// Operations that fit a screen.
const LIVE_ROWS: usize = 20;

impl Live {
    fn new() -> Self {
        Self {
            lines: 0,
            began: Instant::now(),
        }
    }

    fn show(&mut self, table: &RequestTable) {
        let seconds = self.began.elapsed().as_secs();
        let text = requests_table::live(table, LIVE_ROWS);
        let text = format!("{text}{seconds} s\n");
        self.erase();
        // A terminal that is gone does not end the collection.
        let _gone = std::io::stderr().write_all(text.as_bytes());
        self.lines = text.lines().count();
    }

    fn clear(mut self) {
        self.erase();
    }

    /// Goes up to the first line and erases everything below (ECMA-48, CPL and ED).
    fn erase(&mut self) {
        if self.lines > 0 {
            let _gone = write!(std::io::stderr(), "\x1b[{}F\x1b[0J", self.lines);
            self.lines = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_read_as_the_api_has_it_and_what_is_none_is_said() {
        let good = r#"{"operation":"^GET","min_duration_ns":5,"status":["5xx"]}"#.to_owned();
        let parsed = rules(&[good]).expect("it is a rule");
        assert_eq!(parsed[0].operation.as_deref(), Some("^GET"));
        assert_eq!(
            (parsed[0].min_duration_ns, parsed[0].statuses.len()),
            (5, 1)
        );
        for bad in ["status=5xx", r#"{"slow":true}"#] {
            let Err(CliError::Config(error)) = rules(&[bad.to_owned()]) else {
                panic!("{bad} was taken for a rule");
            };
            let said = format!("{error:#}");
            assert!(
                said.contains("min_duration_ns") && said.contains(bad),
                "{said}"
            );
        }
    }
}
