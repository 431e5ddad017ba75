//! What Envoys report of requests by their access logs, below the tables of `requests`.

use profiler_model::{
    LoggedJoin, LoggedRequests, LoggedUpstream, LoggingEnvoy, RequestTable, percent,
    printable::printable_within, short_time, thousands,
};

use super::{
    requests_table::{aligned, end, line, percentile},
    text::Text,
};
use crate::logged_requests::{known_flag, most_first, places_text, received_percent, stand_out};

/// Longest name of an Envoy, of a cluster, of a host and of a detail, in columns; the JSON has all of them.
const LONGEST_NAME: usize = 64;
/// Names with a count in a line, and hosts that are listed of each Envoy; the JSON has all of them.
const MOST_NAMES: usize = 8;
const MOST_HOSTS: usize = 10;

/// A section for each Envoy, those with the most requests first; empty where access logs were not asked for.
pub(super) fn text(table: &RequestTable) -> Text {
    let mut text = Text::default();
    let Some(logged) = &table.logged else {
        return text;
    };
    let LoggedRequests {
        edges: _,
        envoys,
        seen_twice,
        without_entry,
        // Said with all else that is missing.
        left_out: _,
        of_other_envoys,
    } = logged;
    for envoy in envoys {
        text.blank();
        text.push(&section(envoy));
    }
    if envoys.is_empty() {
        line(
            &mut text,
            "no Envoy of the target has sent its access log: `profiler-agent access-logs snippet --for envoy|istio|envoy-gateway` prints what to \
             configure",
        );
    }
    for (count, what) in [
        (
            *seen_twice,
            "requests were seen at sockets as well, and are counted once",
        ),
        (
            *without_entry,
            "requests into these Envoys have no entry and are not counted: it was lost, or not all of them are logged",
        ),
        (
            *of_other_envoys,
            "requests are of further Envoys, for which there was no room: only the operations have them",
        ),
    ] {
        if count > 0 {
            line(&mut text, &format!("{} {what}", thousands(count)));
        }
    }
    text
}

fn section(envoy: &LoggingEnvoy) -> Text {
    let mut text = Text::default();
    let connections = match envoy.connections {
        0 => String::new(),
        count => format!(", {} TCP connections", thousands(count)),
    };
    line(
        &mut text,
        &format!(
            "access log of {}: {} requests{connections}",
            name(envoy),
            thousands(envoy.requests)
        ),
    );
    if envoy.process.pid.is_none() {
        line(
            &mut text,
            "  only claimed: no process of this node is known to be this Envoy",
        );
    }
    line(&mut text, &format!("  {}", received(envoy)));
    if let Some(joined) = &envoy.joined {
        line(&mut text, &format!("  {}", joined_text(joined)));
    }
    text.push(&phases(envoy));
    let is_local = envoy.process.pid.is_some();
    if is_local && envoy.joined.is_none() && !envoy.phases.is_empty() {
        line(
            &mut text,
            "  times start once Envoy has read a request; --source access-log,sockets also shows how long it waited in the socket",
        );
    }
    text.push(&flags(envoy));
    text.push(&details(envoy));
    text.push(&hosts(envoy));
    if envoy.retried > 0 {
        line(
            &mut text,
            &format!(
                "  retries: {} requests were sent again, {} attempts more in all",
                thousands(envoy.retried),
                thousands(envoy.retries)
            ),
        );
    }
    text.push(&tls(envoy));
    text
}

/// Its process, or what it calls itself.
fn name(envoy: &LoggingEnvoy) -> String {
    if envoy.process.pid.is_none() && !envoy.node_id.is_empty() {
        return printable_within(&envoy.node_id, LONGEST_NAME);
    }
    end(&envoy.process, None)
}

fn received(envoy: &LoggingEnvoy) -> String {
    let Some(missing) = envoy.missing else {
        return "how many requests are missing is not known: its own counters could not be read"
            .to_owned();
    };
    let all = thousands(envoy.requests.saturating_add(missing));
    match (missing, received_percent(envoy)) {
        (0, _) | (_, None) => "none of its requests are known to be missing".to_owned(),
        (missing, Some(percent)) => {
            let missing = thousands(missing);
            format!("received {percent:.2} % of {all} requests; {missing} are missing")
        }
    }
}

/// How many requests were found at sockets as well.
fn joined_text(joined: &LoggedJoin) -> String {
    let LoggedJoin {
        ends,
        joined,
        confirmed,
        requests,
        contradicted,
    } = *joined;
    if ends == 0 {
        return "no request was answered that could be found at a socket".to_owned();
    }
    let others = match contradicted {
        0 => String::new(),
        count => format!(
            "; the times of {} fit requests with other ids",
            thousands(count)
        ),
    };
    let both = match requests {
        0 => "no request".to_owned(),
        requests => format!("{} requests", thousands(requests)),
    };
    format!(
        "found at sockets: {:.2} % of {} ends, {} by the same x-request-id; both ends of {both}{others}",
        percent(joined, ends),
        thousands(ends),
        thousands(confirmed),
    )
}

fn phases(envoy: &LoggingEnvoy) -> Text {
    if envoy.phases.is_empty() {
        return Text::default();
    }
    let mut rows = vec![["  PHASE", "mean", "p50", "p99"].map(str::to_owned)];
    rows.extend(envoy.phases.iter().map(|phase| {
        let values = &phase.time_ns;
        [
            format!("  {}", printable_within(&phase.name, LONGEST_NAME)),
            values.mean().map_or_else(|| "-".to_owned(), short_time),
            percentile(values, 500),
            percentile(values, 990),
        ]
    }));
    aligned(&rows)
}

/// What went wrong, most first, each with its meaning and where to look.
fn flags(envoy: &LoggingEnvoy) -> Text {
    let mut text = Text::default();
    let all = envoy.requests.saturating_add(envoy.connections);
    for (name, count) in most_first(&envoy.flags) {
        let share = percent(count, all);
        let count = thousands(count);
        let known = known_flag(name);
        let long_name = known.map_or_else(String::new, |known| format!(" {}", known.long_name));
        let short_name = printable_within(name, LONGEST_NAME);
        line(
            &mut text,
            &format!("  {short_name}{long_name}: {count} ({share:.2} %)"),
        );
        if let Some(places) = places_text(envoy, name) {
            line(&mut text, &format!("    {places}"));
        }
        let Some(known) = known else {
            continue;
        };
        line(&mut text, &format!("    {}", known.meaning));
        line(&mut text, &format!("    usual cause: {}", known.cause));
    }
    text
}

fn details(envoy: &LoggingEnvoy) -> Text {
    listed("responses", &most_first(&envoy.details))
}

/// One line with names and counts; empty without any.
fn listed(title: &str, counts: &[(&str, u64)]) -> Text {
    let mut text = Text::default();
    let shown = counts.iter().take(MOST_NAMES).map(|(name, count)| {
        let name = printable_within(name, LONGEST_NAME);
        format!("{name} {}", thousands(*count))
    });
    let mut parts: Vec<String> = shown.collect();
    let hidden = counts.len().saturating_sub(MOST_NAMES);
    if hidden > 0 {
        parts.push(format!("{hidden} more"));
    }
    if !parts.is_empty() {
        line(&mut text, &format!("  {title}: {}", parts.join(", ")));
    }
    text
}

/// Hosts that differ from the others of their cluster.
fn hosts(envoy: &LoggingEnvoy) -> Text {
    let mut text = Text::default();
    let differences = stand_out(&envoy.upstreams);
    let hosts = envoy.upstreams.iter().zip(differences);
    let found: Vec<(&LoggedUpstream, String)> = hosts
        .filter_map(|(host, difference)| Some((host, difference?)))
        .collect();
    for (host, difference) in found.iter().take(MOST_HOSTS) {
        let address = printable_within(&host.address, LONGEST_NAME);
        let cluster = printable_within(&host.cluster, LONGEST_NAME);
        line(
            &mut text,
            &format!(
                "  host {address} of {cluster}: {difference}{}",
                connections(host)
            ),
        );
    }
    let hidden = found.len().saturating_sub(MOST_HOSTS);
    if hidden > 0 {
        line(
            &mut text,
            &format!("  and {hidden} more hosts that stand out"),
        );
    }
    text
}

/// What the kernel knows of the connections to a host, behind a sentence.
fn connections(host: &LoggedUpstream) -> String {
    if host.rtt_ns.count == 0 {
        return String::new();
    }
    format!(
        " Round trips take {} (median of {} connections), {} segments were sent again.",
        percentile(&host.rtt_ns, 500),
        host.rtt_ns.count,
        thousands(host.retransmits)
    )
}

fn tls(envoy: &LoggingEnvoy) -> Text {
    let mut versions = most_first(&envoy.tls);
    if versions.is_empty() {
        return Text::default();
    }
    let with: u64 = versions.iter().map(|(_, count)| *count).sum();
    let without = envoy.requests.saturating_sub(with);
    if without > 0 {
        versions.push(("without", without));
    }
    listed("TLS of clients", &versions)
}

#[cfg(test)]
#[path = "tests/access_log_requests.rs"]
mod tests;
