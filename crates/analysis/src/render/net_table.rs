//! The table that `net` prints.

use std::{
    collections::BTreeMap,
    fmt::{Display, Write as _},
    net::IpAddr,
};

use profiler_model::{
    Address, Edge, EdgeTable, Endpoint, Microseconds, SideMetrics,
    printable::{columns, left, printable, right},
};

use super::text::Text;

/// Longest name of an end; longer ones are cut in the middle, where addresses say least.
const LONGEST_END: usize = 44;

/// A column after the two ends.
struct Column {
    title: &'static str,
    /// The metric that it shows: `-` in every row where that is not available. Empty: it is `-` where there
    /// is no value.
    metric: &'static str,
    cell: fn(&SideMetrics) -> String,
}

const fn column(
    title: &'static str,
    metric: &'static str,
    cell: fn(&SideMetrics) -> String,
) -> Column {
    Column {
        title,
        metric,
        cell,
    }
}

const COLUMNS: [Column; 14] = [
    column("CONNS", "", |side| side.connections.to_string()),
    column("FAILED", "connect", |side| side.connects_failed.to_string()),
    column("SENT", "write", |side| bytes(side.write.bytes)),
    column("CALLS", "write", |side| side.write.count.to_string()),
    column("RECEIVED", "read", |side| bytes(side.read.bytes)),
    column("CALLS", "read", |side| side.read.count.to_string()),
    column("MIN RTT", "", |side| {
        known(side.min_rtt_us.map(Microseconds))
    }),
    column("SRTT p50", "", |side| known(side.write_rtt.percentile(500))),
    column("p99", "", |side| known(side.write_rtt.percentile(990))),
    column("WAIT p99", "", |side| {
        known(side.receive_wait.percentile(990))
    }),
    column("RETR", "retransmit", |side| side.retransmits.to_string()),
    column("DROP", "drop", |side| side.drops.to_string()),
    column("RESET", "reset", |side| {
        (side.resets_sent + side.resets_received).to_string()
    }),
    column("ERR", "error", |side| side.errors.to_string()),
];

/// What of a table is printed, and how.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    /// Pairs of unused unnamed Unix sockets: threads and libraries have many for themselves.
    pub idle_unix_pairs: bool,
    /// The process that watches, whose own sockets are marked.
    pub own_pid: u32,
    /// Whether no kernel reports a metric of Unix sockets: then its absence is expected.
    pub is_never_known: fn(&str) -> bool,
}

/// Edges with the most bytes first, totals, and below them what is missing.
pub fn text(table: &EdgeTable, shown: Shown) -> Text {
    let (mut edges, hidden): (Vec<&Edge>, Vec<&Edge>) = table
        .edges
        .iter()
        .partition(|edge| shown.idle_unix_pairs || !is_idle_pair(edge, table));
    edges.sort_by_key(|edge| std::cmp::Reverse(edge.bytes()));
    let mut rows = vec![header()];
    rows.extend(edges.iter().map(|edge| row(edge, table, shown)));
    let mut total = SideMetrics::default();
    let mut untold = SideMetrics::default();
    for edge in &edges {
        if is_untold(edge) {
            untold.merge(&view(edge));
        } else {
            total.merge(&view(edge));
        }
    }
    if table.folded.edges > 0 {
        total.merge(&table.folded.client);
        let name = format!("{} other edges", table.folded.edges);
        rows.push(cells(
            [name, String::new()],
            &table.folded.client,
            |metric| table.has(metric),
        ));
    }
    if rows.len() > 2 {
        let name = format!("total of {} edges", edges.len());
        rows.push(cells([name, String::new()], &total, |metric| {
            table.has(metric)
        }));
    }
    let mut text = aligned(&rows);
    if untold.connections > 0 {
        text.line(format_args!("not in the total: {} in {} reads of Unix sockets whose senders are not told; senders have what they wrote",
            bytes(untold.write.bytes),
            untold.write.count));
    }
    if table.edges.is_empty() {
        text.line(format_args!("no connections were seen"));
    }
    if !hidden.is_empty() {
        text.line(format_args!(
            "{} edges between unnamed Unix sockets that nobody used are not shown (--all-sockets)",
            hidden.len()
        ));
    }
    if let Some(window) = table.window {
        let counted_ms = window.to_ns.saturating_sub(window.from_ns) / 1_000_000;
        text.line(format_args!(
            "counted for {}.{:02} s",
            counted_ms / 1000,
            counted_ms % 1000 / 10
        ));
    }
    text.push(&remarks(table, shown));
    text
}

/// Whether it is what a Unix socket read from unknown peers: a sender that was watched has an edge of its
/// own with the same bytes.
fn is_untold(edge: &Edge) -> bool {
    let Endpoint { pid, address, .. } = &edge.key.client;
    let is_unknown = matches!(address, Address::Unix(name) if name == Address::UNKNOWN_PEER);
    is_unknown && pid.is_none() && edge.client.is_none()
}

/// Whether it is of unnamed Unix sockets, and it is known that nothing went through them.
fn is_idle_pair(edge: &Edge, table: &EdgeTable) -> bool {
    let is_unnamed =
        |end: &Endpoint| matches!(&end.address, Address::Unix(name) if name == Address::UNNAMED);
    let is_known = ["write", "read"]
        .iter()
        .all(|metric| table.has_of("unix", metric));
    let mut sides = [&edge.client, &edge.server].into_iter().flatten();
    is_known
        && is_unnamed(&edge.key.client)
        && is_unnamed(&edge.key.server)
        && sides.all(|side| side.write.count == 0 && side.read.count == 0)
}

fn header() -> Vec<String> {
    let titles = COLUMNS.iter().map(|column| column.title);
    ["CLIENT", "SERVER"]
        .into_iter()
        .chain(titles)
        .map(str::to_owned)
        .collect()
}

/// The client's view; the server's, turned round, where the client was not watched.
fn view(edge: &Edge) -> SideMetrics {
    let mut metrics = edge.client.clone().unwrap_or_default();
    if edge.client.is_none()
        && let Some(server) = &edge.server
    {
        metrics = server.clone();
        std::mem::swap(&mut metrics.write, &mut metrics.read);
    }
    // What the far end saw go wrong belongs to the edge as well.
    if let (Some(_), Some(server)) = (&edge.client, &edge.server) {
        metrics.retransmits += server.retransmits;
        metrics.drops += server.drops;
        metrics.errors += server.errors;
        // What one end has sent is the same that the other has received.
        metrics.resets_sent = metrics.resets_sent.max(server.resets_received);
        metrics.resets_received = metrics.resets_received.max(server.resets_sent);
        metrics.receive_wait.merge(&server.receive_wait);
    }
    metrics
}

fn row(edge: &Edge, table: &EdgeTable, shown: Shown) -> Vec<String> {
    let client = end(
        &edge.key.client,
        edge.client_name.as_deref(),
        edge.client_port,
        shown,
    );
    let mut server = end(
        &edge.key.server,
        edge.server_name.as_deref(),
        edge.key.server_port,
        shown,
    );
    if let Some((address, port)) = edge.key.original_destination {
        let asked = std::net::SocketAddr::new(address, port);
        // Writing to a String cannot fail.
        let _infallible = write!(server, " for {asked}");
    }
    let protocol = edge.key.server.address.protocol();
    cells([client, server], &view(edge), |metric| {
        table.has_of(protocol, metric)
    })
}

fn cells(ends: [String; 2], side: &SideMetrics, has: impl Fn(&str) -> bool) -> Vec<String> {
    let numbers = COLUMNS.iter().map(|column| {
        if has(column.metric) {
            (column.cell)(side)
        } else {
            "-".to_owned()
        }
    });
    ends.into_iter().chain(numbers).collect()
}

fn known(value: Option<impl Display>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// 1536 is `1.5 KiB`.
fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    // Tenths of the unit.
    let mut tenths = (u128::from(count) * 10 + 512) / 1024;
    let mut unit = 0;
    while tenths >= 10 * 1024 && unit + 1 < UNITS.len() {
        tenths = (tenths + 512) / 1024;
        unit += 1;
    }
    let unit = UNITS.get(unit).copied().unwrap_or_default();
    if tenths >= 1000 {
        format!("{} {unit}", (tenths + 5) / 10)
    } else {
        format!("{}.{} {unit}", tenths / 10, tenths % 10)
    }
}

fn end(endpoint: &Endpoint, name: Option<&str>, port: Option<u16>, shown: Shown) -> String {
    let process = endpoint.pid.map_or_else(String::new, |pid| {
        let comm = printable(&endpoint.comm);
        let mark = if pid == shown.own_pid {
            "(this command) "
        } else {
            ""
        };
        format!("{comm}[{pid}] {mark}")
    });
    let port = port.map_or_else(|| "*".to_owned(), |port| port.to_string());
    let name = name.map_or_else(String::new, |name| format!(" ({})", printable(name)));
    let text = match &endpoint.address {
        Address::Ip(IpAddr::V4(address)) => format!("{process}{address}:{port}{name}"),
        Address::Ip(IpAddr::V6(address)) => format!("{process}[{address}]:{port}{name}"),
        Address::Unix(path) => format!("{process}{}", printable(path)),
    };
    cut(&text)
}

/// Marks on letters take no column, and count here: thousands may follow one letter.
fn cut(text: &str) -> String {
    if columns(text).max(text.chars().count()) <= LONGEST_END {
        return text.to_owned();
    }
    let half = (LONGEST_END - 2) / 2;
    let first = start_of(text.chars(), half);
    let last: String = start_of(text.chars().rev(), half).chars().rev().collect();
    format!("{first}..{last}")
}

/// Letters that take at most so many columns together.
fn start_of(letters: impl Iterator<Item = char>, most: usize) -> String {
    let mut used = 0;
    letters
        .take_while(|letter| {
            used += columns(letter.encode_utf8(&mut [0; 4])).max(1);
            used <= most
        })
        .collect()
}

/// Text to the left, numbers to the right.
fn aligned(rows: &[Vec<String>]) -> Text {
    let most = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..most)
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| columns(cell)).max().unwrap_or(0)
        })
        .collect();
    let mut text = Text::default();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let padded = if column < 2 {
                left(cell, *width)
            } else {
                right(cell, *width)
            };
            line.push_str(&padded);
            line.push_str("  ");
        }
        text.line(format_args!("{}", line.trim_end()));
    }
    text
}

fn remarks(table: &EdgeTable, shown: Shown) -> Text {
    let mut text = Text::default();
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut never = Vec::new();
    for (metric, reason) in &table.unavailable {
        if (shown.is_never_known)(metric) {
            never.push(metric.trim_start_matches("unix."));
        } else {
            by_reason.entry(reason).or_default().push(metric);
        }
    }
    for (reason, metrics) in by_reason {
        text.line(format_args!(
            "unavailable: {}: {reason}",
            metrics.join(", ")
        ));
    }
    if !never.is_empty() {
        text.line(format_args!(
            "unavailable: {}: Unix sockets never have them (--json says why)",
            never.join(", ")
        ));
    }
    for (what, count) in &table.unresolved {
        text.line(format_args!("unresolved: {what}: {count}"));
    }
    if table.lost_events > 0 {
        text.line(format_args!(
            "lost: {} reads and writes, {}: the table of connections was full (--max-connections)",
            table.lost_events,
            bytes(table.lost_bytes)
        ));
    }
    let kernel = &table.kernel_table;
    if kernel.evicted > 0 {
        text.line(format_args!(
            "evicted: {} connections rested and made room in the kernel's table",
            kernel.evicted
        ));
    }
    let delayed = kernel.delayed;
    if delayed > 0 {
        text.line(format_args!(
            "delayed: the end of {delayed} connections waited in the kernel's table"
        ));
    }
    if kernel.swept > 0 {
        text.line(format_args!(
            "the end of {} connections was missed",
            kernel.swept
        ));
    }
    for (program, runs) in &kernel.missed_runs {
        text.line(format_args!(
            "lost: {runs} runs of {program}: it was at work already"
        ));
    }
    if text.is_empty() {
        return text;
    }
    let mut apart = Text::default();
    apart.blank();
    apart.push(&text);
    apart
}

#[cfg(test)]
#[path = "tests/net_table.rs"]
mod tests;
