//! The tables that `requests` prints.

use std::fmt::Write as _;

use profiler_model::{
    Bounds, EdgeCount, Endpoint, MatchClass, Operation, Outcomes, RequestCounters, RequestEdge,
    RequestSource, RequestTable, Sidecar, SidecarTimes, Spread, Tally, TlsReport,
    printable::{columns, left, printable_within, right},
    short_time,
};

use super::{access_log_requests, text::Text};
use crate::latency::latencies;

/// What connections of TLS speak as long as nothing inside is read.
const TLS: &str = "tls";

/// Longest text of an end and of an operation; longer ones are cut, and say so.
const LONGEST_END: usize = 32;
const LONGEST_OPERATION: usize = 56;

/// Columns of the table of operations, and of that of edges.
const WIDE: usize = 10;
const COUNTED: usize = 9;
const HEADER: [&str; WIDE] = [
    "CLIENT",
    "SERVER",
    "PROTOCOL",
    "OPERATION",
    "COUNT",
    "RATE/s",
    "ERRORS",
    "p50",
    "p90",
    "p99",
];

/// The column of the protocol, and what stands behind it where some requests come from access logs.
const PROTOCOL: usize = 2;
const LOGGED: &str = "+log";

const COUNTED_HEADER: [&str; COUNTED] = [
    "CLIENT", "SERVER", "PROTOCOL", "COUNT", "RATE/s", "ERRORS", "p50", "p90", "p99",
];

/// Where the time goes, operations with the most requests first, sidecars, what access logs say, and below them what is missing.
pub fn text(table: &RequestTable) -> Text {
    let mut text = Text::default();
    for latency in latencies(table) {
        line(&mut text, &latency.text);
    }
    text.push(&operations(table, usize::MAX));
    if table.operations.is_empty() {
        line(&mut text, "no requests were seen");
    }
    text.push(&counted(table));
    if !table.sidecars.is_empty() {
        line(
            &mut text,
            "each hop counts: a request that passes through a sidecar is counted on the way to it and on the way on",
        );
    }
    text.push(&samples(table));
    text.push(&sidecars(&table.sidecars));
    text.push(&access_log_requests::text(table));
    text.push(&remarks(table));
    text
}

/// What fits a screen while the table grows.
pub fn live(table: &RequestTable, most: usize) -> Text {
    operations(table, most)
}

fn operations(table: &RequestTable, most: usize) -> Text {
    let mut sorted: Vec<&Operation> = table.operations.iter().collect();
    sorted.sort_by_key(|operation| std::cmp::Reverse(operation.tally.count));
    let window_ns = table.window.to_ns.saturating_sub(table.window.from_ns);
    let is_mixed = sorted.iter().any(|one| is_logged(one, table))
        && !sorted.iter().all(|one| is_logged(one, table));
    let mut rows = vec![HEADER.map(str::to_owned)];
    rows.extend(sorted.iter().take(most).map(|operation| {
        let mut row = row(operation, table, window_ns);
        if is_mixed && is_logged(operation, table) {
            row[PROTOCOL].push_str(LOGGED);
        }
        row
    }));
    let mut text = aligned(&rows);
    if is_mixed {
        line(
            &mut text,
            &format!(
                "{LOGGED} marks requests from access logs of Envoys; the others were seen at sockets"
            ),
        );
    }
    let hidden = sorted.len().saturating_sub(most);
    if hidden > 0 {
        line(&mut text, &format!("and {hidden} more operations"));
    }
    text
}

fn is_logged(operation: &Operation, table: &RequestTable) -> bool {
    table.source_of(operation.edge, operation.tls) == RequestSource::AccessLog
}

fn row(operation: &Operation, table: &RequestTable, window_ns: u64) -> [String; 10] {
    let [client, server] = ends(table.edge_of(operation));
    let (_end, timings) = operation.timed_by();
    let percentile = |thousandths| percentile(&timings.latency_ns, thousandths);
    let tls = if operation.tls { "+tls" } else { "" };
    [
        client,
        server,
        format!("{}{tls}", operation.protocol.name()),
        name(operation),
        count(&operation.tally),
        rate(
            operation.tally.count,
            counted_ns(operation, table, window_ns),
        ),
        operation.tally.outcomes.errors().to_string(),
        percentile(500),
        percentile(900),
        percentile(990),
    ]
}

/// What the kernel counted of each edge, where operations are estimates.
fn counted(table: &RequestTable) -> Text {
    let mut text = Text::default();
    if table.counters.sampled_one_of <= 1 || table.counted.is_empty() {
        return text;
    }
    let window_ns = table.window.to_ns.saturating_sub(table.window.from_ns);
    let mut sorted: Vec<&EdgeCount> = table.counted.iter().collect();
    sorted.sort_by_key(|edge| std::cmp::Reverse(edge.outcomes.all()));
    let mut rows = vec![COUNTED_HEADER.map(str::to_owned)];
    rows.extend(sorted.into_iter().map(|counted| {
        let place = usize::try_from(counted.edge).unwrap_or(usize::MAX);
        let [client, server] = ends(table.edges.get(place));
        let count = counted.outcomes.all();
        let percentile = |thousandths| percentile(&counted.latency_ns, thousandths);
        [
            client,
            server,
            counted.protocol.name().to_owned(),
            if counted.is_exact {
                count.to_string()
            } else {
                format!("{count} or more")
            },
            rate(count, window_ns),
            errors(counted.outcomes),
            percentile(500),
            percentile(900),
            percentile(990),
        ]
    }));
    text.blank();
    line(
        &mut text,
        "all requests of HTTP without TLS by edge, counted in the kernel (calls of gRPC as http2; the status of an answer with trailers is unknown):",
    );
    text.push(&aligned(&rows));
    text
}

/// Requests that failed, and those whose status is not known.
fn errors(outcomes: Outcomes) -> String {
    let failed = outcomes.errors();
    match outcomes.unknown {
        0 => failed.to_string(),
        unknown if unknown == outcomes.all() => "unknown".to_owned(),
        unknown => format!("{failed}, {unknown} unknown"),
    }
}

/// How many there were; where that is an estimate, between which numbers.
fn count(tally: &Tally) -> String {
    if tally.is_certain() {
        return tally.count.to_string();
    }
    match tally.interval() {
        (low, None) if low == tally.count => format!("{low} or more"),
        (low, Some(high)) => format!("~{} ({low} to {high})", tally.count),
        (low, None) => format!("~{} ({low} or more)", tally.count),
    }
}

fn ends(edge: Option<&RequestEdge>) -> [String; 2] {
    let Some(RequestEdge {
        key, client_port, ..
    }) = edge
    else {
        return ["other edges".to_owned(), "-".to_owned()];
    };
    [
        end(&key.client, *client_port),
        end(&key.server, key.server_port),
    ]
}

pub(super) fn end(endpoint: &Endpoint, port: Option<u16>) -> String {
    let mut text = match endpoint.pid {
        Some(pid) if endpoint.comm.is_empty() => format!("[{pid}] "),
        Some(pid) => format!("{}[{pid}] ", endpoint.comm),
        None => String::new(),
    };
    text.push_str(&endpoint.address.to_string());
    if let Some(port) = port {
        // Writing to a String cannot fail.
        let _infallible = write!(text, ":{port}");
    }
    printable_within(&text, LONGEST_END)
}

fn name(operation: &Operation) -> String {
    if operation.is_other {
        return "other".to_owned();
    }
    let method = operation.method.as_deref().unwrap_or("?");
    let route = operation.route.as_deref().unwrap_or("?");
    // A statement begins with its first word.
    let has_method = route
        .strip_prefix(method)
        .is_some_and(|rest| rest.starts_with(' '));
    if has_method {
        return printable_within(route, LONGEST_OPERATION);
    }
    printable_within(&format!("{method} {route}"), LONGEST_OPERATION)
}

/// For how long requests of an operation were counted.
fn counted_ns(operation: &Operation, table: &RequestTable, window_ns: u64) -> u64 {
    match &table.tls {
        Some(report) if operation.tls && report.attached_percent < 100 => report.attached_ns,
        _ => window_ns,
    }
}

/// Requests for each second, with a tenth below 100.
fn rate(count: u64, window_ns: u64) -> String {
    let tenths = (u128::from(count) * 10_000_000_000).checked_div(window_ns.into());
    match tenths {
        None => "-".to_owned(),
        Some(tenths @ 0..1000) => format!("{}.{}", tenths / 10, tenths % 10),
        Some(tenths) => (tenths / 10).to_string(),
    }
}

/// The upper bound of where the percentile lies.
pub(super) fn percentile(values: &Spread, thousandths: u64) -> String {
    let found = values.percentile(thousandths);
    found.map_or_else(|| "-".to_owned(), |Bounds { to, .. }| short_time(to))
}

/// The slowest and failing requests are in the JSON; here is how many.
fn samples(table: &RequestTable) -> Text {
    let mut text = Text::default();
    if !table.samples.is_empty() {
        let count = table.samples.len();
        line(
            &mut text,
            &format!("{count} requests were kept one by one (--json)"),
        );
    }
    if table.samples_left_out > 0 {
        let count = table.samples_left_out;
        line(
            &mut text,
            &format!("{count} more were not: the limit was reached"),
        );
    }
    text
}

fn sidecars(sidecars: &[Sidecar]) -> Text {
    let mut text = Text::default();
    for sidecar in sidecars {
        let process = end(&sidecar.process, None);
        let mean = sidecar.mean_ns().map_or_else(|| "-".to_owned(), short_time);
        let (came, went) = (sidecar.requests_in, sidecar.requests_out);
        text.blank();
        line(
            &mut text,
            &format!(
                "time in {process}, socket queues left out: {mean} per request (mean; {came} requests in, {went} out)"
            ),
        );
        let all = sidecar.pairs();
        if all == 0 {
            continue;
        }
        let shares: Vec<String> = MatchClass::ALL
            .into_iter()
            .filter_map(|class| {
                let pairs = sidecar.pairs.get(&class)?.pairs;
                let percent = pairs * 100 / all;
                Some(format!("{} {percent} %", class.name().replace('_', " ")))
            })
            .collect();
        line(&mut text, &format!("  {all} pairs: {}", shares.join(", ")));
        text.push(&parts(&sidecar.trusted()));
        let header = sidecar.upstream_header;
        if header.pairs > 0 {
            let (agreeing, pairs) = (header.agreeing, header.pairs);
            line(
                &mut text,
                &format!(
                    "  x-envoy-upstream-service-time agrees within 2 ms for {agreeing} of {pairs}"
                ),
            );
        }
    }
    text
}

fn parts(times: &SidecarTimes) -> Text {
    let SidecarTimes {
        pairs: _,
        whole_ns: _,
        inside_ns,
        read_wait_ns,
        to_upstream_ns,
        upstream_ns,
        answer_wait_ns,
        to_client_ns,
    } = times;
    let row = |name: &str, values: &Spread| {
        [
            format!("  {name}"),
            values.mean().map_or_else(|| "-".to_owned(), short_time),
            percentile(values, 500),
            percentile(values, 990),
        ]
    };
    aligned(&[
        ["  PART", "mean", "p50", "p99"].map(str::to_owned),
        row("inbound socket queue", read_wait_ns),
        row("request path", to_upstream_ns),
        row("upstream", upstream_ns),
        row("  of which response socket queue", answer_wait_ns),
        row("response path", to_client_ns),
        row("in the sidecar, socket queues left out", inside_ns),
    ])
}

/// Whether it is known of all access logs of a table what of them is missing.
fn logs_are_counted(table: &RequestTable) -> bool {
    let logged = table.logged.as_ref();
    logged.is_none_or(|logged| {
        !logged.envoys.is_empty() && logged.envoys.iter().all(|envoy| envoy.missing.is_some())
    })
}

/// What is missing in one line, then what there is to report about sampling and TLS.
fn remarks(table: &RequestTable) -> Text {
    let mut text = Text::default();
    let parts = missing(table);
    let one_of = table.counters.sampled_one_of;
    if !parts.is_empty() {
        line(&mut text, &format!("missing: {}", parts.join("; ")));
    } else if one_of <= 1 && logs_are_counted(table) {
        line(&mut text, "nothing is known to be missing");
    }
    if let Some(report) = &table.tls {
        let window_ns = table.window.to_ns.saturating_sub(table.window.from_ns);
        text.push(&plaintext(report, window_ns));
    }
    if one_of > 1 {
        line(
            &mut text,
            &format!(
                "not all was captured, at the busiest time one connection in {one_of}: counts are estimates, and operations of the \
                 others may be missing"
            ),
        );
    }
    text
}

/// Everything that could not be determined, each with its number.
fn missing(table: &RequestTable) -> Vec<String> {
    let RequestCounters {
        connections_by_protocol,
        // Said in a line of its own.
        sampled_one_of: _,
        unbound_bytes,
        lost_pieces,
        gaps,
        gap_connections,
        undecoded_connections,
        undecoded_bytes,
        // Their connections were read as something else, or are among the undecoded ones.
        withdrawn_guesses: _,
        unknown_direction,
        refused_connections,
        refused_bytes,
        other_operations,
        other_edges,
        under_way,
    } = &table.counters;
    let outcomes = table.operations.iter();
    let unknown: u64 = outcomes.map(|known| known.tally.outcomes.unknown).sum();
    let mut parts = Vec::new();
    let mut say = |number: u64, one: &str, more: &str| match number {
        0 => {}
        1 => parts.push(format!("1 {one}")),
        _ => parts.push(format!("{number} {more}")),
    };
    say(
        unknown,
        "request whose status or end was not seen",
        "requests whose status or end was not seen",
    );
    let encrypted = connections_by_protocol.get(TLS);
    say(
        encrypted.copied().unwrap_or(0),
        "encrypted connection whose plaintext was not read",
        "encrypted connections whose plaintext was not read",
    );
    say(
        *lost_pieces,
        "piece of payload that was lost",
        "pieces of payload that were lost",
    );
    let on = if *gap_connections == 1 {
        "1 connection".to_owned()
    } else {
        format!("{gap_connections} connections")
    };
    say(
        *gaps,
        &format!("gap in the payload of {on}"),
        &format!("gaps in the payload of {on}"),
    );
    say(
        *unbound_bytes,
        "byte of TLS that belongs to no known socket",
        "bytes of TLS that belong to no known socket",
    );
    say(
        *undecoded_connections,
        "connection that speaks nothing known here",
        "connections that speak nothing known here",
    );
    say(
        *undecoded_bytes,
        "byte that could not be decoded",
        "bytes that could not be decoded",
    );
    say(
        *unknown_direction,
        "connection from before the task, for which it is unknown which end is the client",
        "connections from before the task, for which it is unknown which end is the client",
    );
    say(
        *refused_connections,
        "connection that was not looked at, as 8,192 are followed at once",
        "connections that were not looked at, as 8,192 are followed at once",
    );
    say(
        *refused_bytes,
        "byte of connections that are not known",
        "bytes of connections that are not known",
    );
    say(
        *other_operations,
        "request counted as another operation",
        "requests counted as other operations",
    );
    say(
        *other_edges,
        "request of an edge that found no room",
        "requests of edges that found no room",
    );
    if let Some(logged) = &table.logged {
        say(
            logged.envoys.iter().filter_map(|envoy| envoy.missing).sum(),
            "request that an Envoy logged and that did not arrive",
            "requests that Envoys logged and that did not arrive",
        );
        say(
            logged.left_out,
            "entry of an access log that arrived faster than it could be read",
            "entries of access logs that arrived faster than they could be read",
        );
    }
    say(
        *under_way,
        "request that had not ended",
        "requests that had not ended",
    );
    parts
}

/// Two clocks say when a task ended.
const TOLD_NS: u64 = 10_000_000;

/// What became of TLS libraries.
fn plaintext(report: &TlsReport, window_ns: u64) -> Text {
    let mut text = Text::default();
    if let Some(reason) = &report.unavailable {
        line(&mut text, &format!("TLS is not captured: {reason}"));
    }
    for file in &report.files {
        let library = file.library.as_deref().unwrap_or("a TLS library");
        for reason in &file.reasons {
            line(&mut text, &format!("{library} in {}: {reason}", file.path));
        }
    }
    let percent = report.attached_percent;
    if report.unavailable.is_none() && percent < 100 {
        line(
            &mut text,
            &format!(
                "TLS was read for {percent} % of the time: counts and rates of it are of that part"
            ),
        );
    }
    let before_ns = window_ns.saturating_sub(report.attached_ns);
    let is_late = report.unavailable.is_none() && percent == 100 && before_ns >= TOLD_NS;
    if is_late && !report.files.is_empty() {
        line(
            &mut text,
            &format!(
                "TLS was read from {} on, when the probes were in: requests before are missing",
                short_time(before_ns)
            ),
        );
    }
    if let Some(percent) = report.limited_to_percent {
        line(
            &mut text,
            &format!(
                "all the time its probes would cost the processes more than {percent} % of a CPU \
                 (--cpu-percent)"
            ),
        );
    }
    let hits = report.hits;
    if let Some(ns) = report.cost_ns().checked_div(hits) {
        line(
            &mut text,
            &format!("probes of TLS were met {hits} times, at about {ns} ns"),
        );
    }
    text
}

pub(super) fn line(text: &mut Text, content: &str) {
    text.line(format_args!("{content}"));
}

/// Columns as wide as their widest cell; numbers, which follow the first text columns, to the right.
pub(super) fn aligned<const N: usize>(rows: &[[String; N]]) -> Text {
    let texts = match N {
        WIDE => 4,
        COUNTED => 2,
        _ => 1,
    };
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| columns(cell)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut text = Text::default();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(column, (cell, width))| {
            if column < texts {
                left(cell, *width)
            } else {
                right(cell, *width)
            }
        });
        let cells: Vec<String> = cells.collect();
        line(&mut text, cells.join("  ").trim_end());
    }
    text
}

#[cfg(test)]
#[path = "tests/requests_table.rs"]
mod tests;
