//! `requests`: what processes ask each other, without a server and without its data directory.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Instant,
};

use anyhow::{Context as _, Result, anyhow};
use profiler_analysis::render::requests_table;
use profiler_engine::access_logs::LogsCollector;
use profiler_host::process::ProcessTable;
use profiler_model::{
    EdgeSpec, Recording, RequestOptions, RequestSpec, RequestTable, SampleRule, TaskSpec, TaskState,
};
use profiler_recording::{self as recording, CollectError, Collection, Collector, Part};

use super::{
    CliError, flags,
    watching::{self, Watcher},
};
use crate::cli::naming::{ask_for, legend, named_table};
use crate::{
    access_log_socket::{AccessLogSocket, AccessLogSocketError, ReceivedAccessLogs},
    api,
    config::{
        AccessLogsConfig,
        cli::{RequestsArgs, SamplesKept, TakenFrom, USUAL_PORT},
    },
    terminal::{self, Redrawn, Text},
};
use profiler_recorder::probes::{NetworkCollector, NetworkConfig};

/// Looks until the duration is over, the target's last process has ended, or Ctrl-C; then prints. On a
/// terminal the table is shown as it grows.
pub fn run(args: &RequestsArgs) -> Result<(), CliError> {
    let listen = listen(args)?;
    let spec = TaskSpec {
        target: args.target.to_target(),
        duration_s: Some(args.duration.as_secs()),
        recording: Recording::Requests(RequestSpec {
            edges: EdgeSpec::default(),
            options: options(args)?,
        }),
    };
    flags::check(&spec)?;
    let processes = named_table(&args.names)?;
    let table = look(args, spec, listen, &processes)?;
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
    let has = |source| args.source.contains(&source);
    Ok(RequestOptions {
        access_log: has(TakenFrom::AccessLog),
        sockets: has(TakenFrom::Sockets),
        tls: args.tls || has(TakenFrom::Tls),
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

/// Where access logs are received; `None`: they are not asked for.
fn listen(args: &RequestsArgs) -> Result<Option<SocketAddr>, CliError> {
    let wrong = |text: String| Err(CliError::Config(anyhow!(text)));
    match (
        args.source.contains(&TakenFrom::AccessLog),
        args.access_logs,
    ) {
        (false, None) => Ok(None),
        (false, Some(address)) => wrong(format!(
            "--access-logs {address} is for requests of access logs: add --source access-log, or leave it out"
        )),
        (true, None) => Ok(Some((Ipv4Addr::LOCALHOST, USUAL_PORT).into())),
        (true, Some(address)) if address.ip().is_loopback() => Ok(Some(address)),
        (true, Some(address)) => wrong(format!(
            "--access-logs {address} is not loopback, where this command receives without TLS: take 127.0.0.1:{}, or start \
             `serve --access-logs {address}` with certificates and create a task with \"source\": [\"access_log\"]",
            address.port()
        )),
    }
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
    listen: Option<SocketAddr>,
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
    let table = processes.clone();
    let looked = watching::watch(
        config,
        processes.clone(),
        move |collector| {
            let sockets = Sockets(collector);
            match listen {
                None => sockets.start(&spec),
                Some(listen) => logged(listen, table, Arc::new(sockets), &spec),
            }
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

/// Looks for requests at sockets.
struct Sockets(NetworkCollector);

impl Collector for Sockets {
    fn start(&self, spec: &TaskSpec) -> Result<Collection, CollectError> {
        let TaskSpec {
            target, duration_s, ..
        } = spec;
        let edges = EdgeSpec::default();
        self.0.start(target, *duration_s, edges, spec.requests())
    }
}

/// Receives access logs while the command runs, and takes requests from them and, where `spec` asks for both, from `sockets`.
fn logged(
    listen: SocketAddr,
    table: ProcessTable,
    sockets: Arc<dyn Collector>,
    spec: &TaskSpec,
) -> Result<Collection, CollectError> {
    let failed = |error: AccessLogSocketError| CollectError::Probe {
        probe: "access_logs",
        reason: error.to_string(),
    };
    let config = AccessLogsConfig { listen, tls: None };
    let socket = AccessLogSocket::bind(&config).map_err(failed)?;
    let ReceivedAccessLogs { logs, .. } = socket.start(table.clone(), true).map_err(failed)?;
    LogsCollector::new(logs, table, sockets).start(spec)
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
    use clap::Parser as _;
    use profiler_model::{RequestSource, Target};

    use super::*;
    use crate::config::cli::{Cli, Command};

    fn args(more: &[&str]) -> RequestsArgs {
        let line = ["profiler-agent", "requests", "--all"];
        let cli = Cli::try_parse_from(line.iter().chain(more)).unwrap();
        let Command::Requests(args) = cli.command else {
            panic!("it is another command");
        };
        args
    }

    #[test]
    fn sources_are_those_of_the_api() {
        let sources = |more: &[&str]| {
            let options = options(&args(more)).unwrap();
            options
                .sources()
                .into_iter()
                .map(RequestSource::name)
                .collect::<Vec<_>>()
        };
        assert_eq!(sources(&[]), ["sockets"]);
        assert_eq!(sources(&["--tls"]), ["sockets", "tls"]);
        assert_eq!(sources(&["--source", "sockets,tls"]), ["sockets", "tls"]);
        assert_eq!(sources(&["--source", "access-log"]), ["access_log"]);
        assert_eq!(
            sources(&["--source", "sockets,access-log", "--tls"]),
            ["access_log", "sockets", "tls"]
        );
    }

    #[test]
    fn what_needs_sockets_is_refused_without_them_in_words_of_the_command_line() {
        let refused = |more: &[&str]| {
            let options = options(&args(more)).unwrap();
            let spec = TaskSpec {
                target: Target::All,
                duration_s: Some(1),
                recording: Recording::Requests(RequestSpec {
                    edges: EdgeSpec::default(),
                    options,
                }),
            };
            flags::check(&spec).err().map(|error| error.to_string())
        };
        let said = |flag: &str| {
            Some(format!(
                "{flag} is about what is read at sockets, which are not in --source: add sockets to --source, or leave it out"
            ))
        };
        assert_eq!(refused(&["--source", "access-log"]), None);
        assert_eq!(
            refused(&["--source", "access-log,sockets", "--bodies"]),
            None
        );
        assert_eq!(refused(&["--source", "access-log", "--tls"]), said("--tls"));
        assert_eq!(
            refused(&["--source", "access-log", "--bodies"]),
            said("--bodies")
        );
        assert_eq!(
            refused(&["--tls-duty", "10"]).unwrap(),
            "--tls-duty is for tasks that read TLS: add --tls, or leave it out"
        );
    }

    #[test]
    fn access_logs_are_received_on_loopback_alone() {
        let of = |more: &[&str]| listen(&args(more)).map_err(|error| error.to_string());
        let usual: SocketAddr = ([127, 0, 0, 1], 7118).into();
        assert_eq!(of(&[]), Ok(None));
        assert_eq!(of(&["--source", "access-log"]), Ok(Some(usual)));
        let other = of(&["--source", "access-log", "--access-logs", "[::1]:9000"]);
        assert_eq!(other.unwrap().unwrap().port(), 9000);
        let said = of(&["--source", "access-log", "--access-logs", "0.0.0.0:9000"]).unwrap_err();
        assert!(
            said.contains("take 127.0.0.1:9000, or start `serve"),
            "{said}"
        );
        let said = of(&["--access-logs", "127.0.0.1:9000"]).unwrap_err();
        assert!(said.contains("add --source access-log"), "{said}");
    }

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
