//! Which Envoys send their access logs, as lines for a terminal.

use profiler_model::{
    access_log_status::{AccessLogEnvoy, AccessLogStatus},
    printable::{columns, left, printable_within},
    short_time, thousands,
};

use serde::Serialize;

use super::text::Text;

/// What to do where nothing is received, and where nothing arrives.
const TO_RECEIVE: &str = "start the agent with `serve --access-logs ADDR:PORT`";
const TO_SEND: &str = "`profiler-agent access-logs snippet --for envoy|istio|envoy-gateway --address HOST:PORT` prints \
                       what to configure, with the agent's address as Envoys reach it";

/// Longest texts of a row and of a note, in columns; the JSON has all of them.
const LONGEST_NAME: usize = 48;
const LONGEST_NOTE: usize = 120;
const LONGEST_FAILURE: usize = 240;

/// A row for each Envoy; `now_ns` is the time by the wall clock.
pub fn access_log_table(status: &AccessLogStatus, now_ns: u64) -> Text {
    let mut text = Text::default();
    if !status.is_on {
        text.line(format_args!("access logs are not received: {TO_RECEIVE}"));
        return text;
    }
    let listen = status.listen.as_deref().unwrap_or("an unknown address");
    text.line(format_args!("access logs are received on {listen}"));
    if status.refused_connections > 0 {
        text.line(format_args!(
            "connections refused because there were too many: {}",
            thousands(status.refused_connections)
        ));
    }
    if let Some(failed) = failed(status) {
        text.line(format_args!("{failed}"));
    }
    if status.envoys.is_empty() {
        text.line(format_args!("no Envoy has sent any: {TO_SEND}"));
        return text;
    }
    let names: Vec<String> = status.envoys.iter().map(name).collect();
    let longest = names.iter().map(|name| columns(name)).max();
    let width = longest.unwrap_or(0).max("ENVOY".len());
    text.line(format_args!(
        "{} {:>14} {:>14} {:>9} {:>9} {:>9}  NEWEST",
        left("ENVOY", width),
        "REQUESTS",
        "COMPLETED",
        "RECEIVED",
        "DROPPED",
        "UNKNOWN"
    ));
    for (envoy, name) in status.envoys.iter().zip(names) {
        text.line(format_args!(
            "{} {:>14} {:>14} {:>9} {:>9} {:>9}  {}",
            left(&name, width),
            thousands(envoy.requests),
            counted(envoy.completed),
            envoy.received_percent.map_or_else(none, share),
            counted(envoy.dropped),
            counted(envoy.unknown),
            age(envoy.newest_ns, now_ns),
        ));
        for note in notes(envoy) {
            let note = printable_within(&note, LONGEST_NOTE);
            text.line(format_args!("  {note}"));
        }
    }
    text
}

/// Connections that failed, with the newest reason; `None`: none has.
fn failed(status: &AccessLogStatus) -> Option<String> {
    let newest = status.newest_failure.as_deref().unwrap_or("not known");
    (status.failed_connections > 0).then(|| {
        format!(
            "connections that failed before anything was received: {}, the newest from {}",
            thousands(status.failed_connections),
            printable_within(newest, LONGEST_FAILURE)
        )
    })
}

/// What the running agent answers about access logs, or why it does not.
#[derive(Debug, Serialize)]
pub struct AccessLogCheck {
    /// The URL that was asked.
    agent: String,
    status: Option<AccessLogStatus>,
    /// Why there is no status.
    unknown: Option<String>,
}

/// Envoys that a check names; `access-logs status` has all.
const MOST_NAMED: usize = 20;

impl AccessLogCheck {
    pub fn new(agent: &str, answer: Result<AccessLogStatus, String>) -> Self {
        let (status, unknown) = match answer {
            Ok(status) => (Some(status), None),
            Err(reason) => (None, Some(reason)),
        };
        Self {
            agent: agent.to_owned(),
            status,
            unknown,
        }
    }

    /// A line for each Envoy, or what to do where nothing arrives; each line but the first is moved in.
    pub fn text(&self, now_ns: u64) -> Text {
        let (first, lines) = self.lines(now_ns);
        let mut text = Text::default();
        text.paragraph(&format!("{:DETAIL$}{first}", "access logs"), DETAIL);
        for line in lines {
            text.line(format_args!("{:DETAIL$}{line}", ""));
        }
        text
    }

    fn lines(&self, now_ns: u64) -> (String, Vec<String>) {
        let Self {
            agent,
            status,
            unknown,
        } = self;
        let Some(status) = status else {
            let reason = unknown.as_deref().unwrap_or("the agent was not asked");
            return (format!("unknown: {reason}"), Vec::new());
        };
        if !status.is_on {
            let first = format!("the agent at {agent} does not receive any");
            return (first, vec![format!("-> {TO_RECEIVE}")]);
        }
        let listen = status.listen.as_deref().unwrap_or("an unknown address");
        let mut lines: Vec<String> = failed(status).into_iter().collect();
        if status.envoys.is_empty() {
            let first = format!("received on {listen}, and no Envoy has sent any");
            lines.push(format!("-> {TO_SEND}"));
            return (first, lines);
        }
        let named = status.envoys.iter().take(MOST_NAMED);
        lines.extend(named.map(|envoy| arriving(envoy, now_ns)));
        let more = status.envoys.len().saturating_sub(MOST_NAMED);
        if more > 0 {
            lines.push(format!("{more} more: `profiler-agent access-logs status`"));
        }
        (format!("received on {listen}"), lines)
    }
}

/// Where the texts of `doctor` begin that stand beside a name.
const DETAIL: usize = 24;

/// What arrives from an Envoy.
fn arriving(envoy: &AccessLogEnvoy, now_ns: u64) -> String {
    let claimed = if envoy.claimed { ", only claimed" } else { "" };
    let share = envoy.received_percent.map(share);
    let share = share.map_or_else(String::new, |share| format!(", {share} of its entries"));
    format!(
        "{}{claimed}: {} requests, {} connections{share}, newest {}",
        name(envoy),
        thousands(envoy.requests),
        thousands(envoy.connections),
        age(envoy.newest_ns, now_ns)
    )
}

/// Its process and pod, or what it calls itself.
fn name(envoy: &AccessLogEnvoy) -> String {
    let process = envoy.pid.map(|pid| {
        let program = envoy.program.as_deref().unwrap_or("process");
        format!("{program}[{pid}]")
    });
    let peer = envoy.peer.as_deref().unwrap_or("unknown");
    let name = match (process, &envoy.pod) {
        (Some(process), Some(pod)) => format!("{process} {pod}"),
        (Some(process), None) => process,
        (None, _) if envoy.node_id.is_empty() => peer.to_owned(),
        (None, _) => envoy.node_id.clone(),
    };
    printable_within(&name, LONGEST_NAME)
}

fn notes(envoy: &AccessLogEnvoy) -> Vec<String> {
    let mut notes = Vec::new();
    if envoy.claimed {
        let peer = envoy.peer.as_deref().unwrap_or("an unknown address");
        notes.push(format!(
            "only claimed: no process of this node is known to hold its connection from {peer}"
        ));
    }
    if envoy.node_id_differs {
        notes.push(format!("its node id names another pod: {}", envoy.node_id));
    }
    // That of a claimed one cannot be asked.
    if let Some(reason) = envoy.unknown_reason.as_ref().filter(|_| !envoy.claimed) {
        notes.push(format!("its own counts are not known: {reason}"));
    }
    for (count, what) in [
        (envoy.failed.unwrap_or(0), "entries that it could not send"),
        (envoy.unreadable, "entries that could not be decoded"),
        (envoy.refused_messages, "refused messages"),
        (
            envoy.unread,
            "entries that were counted and not read, as there were too many",
        ),
    ] {
        if count > 0 {
            notes.push(format!("{what}: {}", thousands(count)));
        }
    }
    notes
}

fn none() -> String {
    "-".to_owned()
}

fn counted(count: Option<u64>) -> String {
    count.map_or_else(none, thousands)
}

/// Rounded down: less than all is never 100 %.
fn share(percent: f64) -> String {
    format!("{:.2} %", (percent * 100.0).floor() / 100.0)
}

/// How long ago a message came. The clock of another machine may be ahead.
fn age(newest_ns: u64, now_ns: u64) -> String {
    if newest_ns == 0 {
        return none();
    }
    format!("{} ago", short_time(now_ns.saturating_sub(newest_ns)))
}

#[cfg(test)]
#[path = "access_logs_tests.rs"]
mod tests;
