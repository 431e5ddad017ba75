//! `requests`: what processes ask each other, without a server and without its data directory.

use std::time::Instant;

use anyhow::{Context as _, Result};
use profiler_analysis::render::requests_table;
use profiler_host::process::ProcessTable;
use profiler_model::{
    EdgeSpec, Recording, RequestOptions, RequestSpec, RequestTable, SampleRule, TaskSpec, TaskState,
};
use profiler_recording::{self as recording, Part};

use super::{
    CliError, flags,
    watching::{self, Watcher},
};
use crate::cli::naming::{ask_for, legend, named_table};
use crate::{
    api,
    config::cli::{RequestsArgs, SamplesKept},
    terminal::{self, Redrawn, Text},
};
use profiler_recorder::probes::NetworkConfig;

/// Looks until the duration is over, the target's last process has ended, or Ctrl-C; then prints. On a
/// terminal the table is shown as it grows.
pub fn run(args: &RequestsArgs) -> Result<(), CliError> {
    let options = options(args)?;
    let spec = TaskSpec {
        target: args.target.to_target(),
        duration_s: Some(args.duration.as_secs()),
        recording: Recording::Requests(RequestSpec {
            edges: EdgeSpec::default(),
            options: options.clone(),
        }),
    };
    flags::check(&spec)?;
    let processes = named_table(&args.names)?;
    let table = look(args, spec, options, &processes)?;
    let ends = || table.edges.iter().flat_map(|edge| edge.key.ends());
    ask_for(&args.names, ends(), &processes)?;
    let text = if args.json {
        let result = api::TaskRequests::new(&TaskState::Finished, Some(&table), processes.names());
        Text::json(&result).context("encode the requests")?
    } else {
        let mut text = requests_table::text(&table);
        text.push(&legend(ends(), &processes));
        text
    };
    Ok(terminal::out(&text)?)
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

fn look(
    args: &RequestsArgs,
    spec: TaskSpec,
    options: RequestOptions,
    processes: &ProcessTable,
) -> Result<RequestTable> {
    let config = NetworkConfig {
        denied: args.deny_probe.clone(),
        ..NetworkConfig::default()
    };
    let mut requests = Requests {
        is_live: !args.json && terminal::err_is_terminal(),
        live: None,
        newest: None,
    };
    let looked = watching::watch(
        config,
        processes.clone(),
        move |collector| {
            let edges = EdgeSpec::default();
            collector.start(&spec.target, spec.duration_s, edges, Some(&options))
        },
        args.duration,
        &mut requests,
    );
    if let Some(mut live) = requests.live {
        live.screen.erase();
    }
    looked?;
    requests
        .newest
        .context("the collection ended without a result")
}

/// The requests so far.
struct Requests {
    is_live: bool,
    live: Option<Live>,
    newest: Option<RequestTable>,
}

impl Watcher for Requests {
    const WORDS: [&'static str; 3] = ["look", "looked", "looking for requests"];

    fn begin(&mut self) {
        self.live = self.is_live.then(Live::new);
    }

    fn take(&mut self, part: Part) {
        let Part::Requests(recording::Requests { table, .. }) = part else {
            return;
        };
        if let Some(live) = &mut self.live {
            live.show(&table);
        }
        self.newest = Some(table);
    }
}

/// The table as it grows, drawn over the one before. It goes to stderr, so that stdout has the result alone.
struct Live {
    screen: Redrawn,
    began: Instant,
}

/// Operations that fit a screen.
const LIVE_ROWS: usize = 20;

impl Live {
    fn new() -> Self {
        Self {
            screen: Redrawn::default(),
            began: Instant::now(),
        }
    }

    fn show(&mut self, table: &RequestTable) {
        let seconds = self.began.elapsed().as_secs();
        let mut text = requests_table::live(table, LIVE_ROWS);
        text.line(format_args!("{seconds} s"));
        self.screen.show(&text);
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
