//! The table that `net` prints.

use std::{fmt::Write as _, net::IpAddr};

use crate::model::{Address, Edge, EdgeTable, Endpoint, SideMetrics, Transfer, Values};

/// Longest name of an end; longer ones are cut in the middle, where addresses say least.
const LONGEST_END: usize = 44;

/// Columns after the two ends; a metric that is not available is `-` in every row.
const COLUMNS: [&str; 13] = [
    "CONNS", "FAILED", "SENT", "CALLS", "RECEIVED", "CALLS", "RTT p50", "p99", "WAIT p99", "RETR",
    "DROP", "RESET", "ERR",
];

/// Edges with the most bytes first, totals, and below them what is missing.
pub(super) fn text(table: &EdgeTable) -> String {
    let mut edges: Vec<&Edge> = table.edges.iter().collect();
    edges.sort_by_key(|edge| std::cmp::Reverse(edge.bytes()));
    let mut rows = vec![header()];
    rows.extend(edges.iter().map(|edge| row(edge, table)));
    let mut total = SideMetrics::default();
    for edge in &edges {
        total.merge(&view(edge));
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
    if edges.is_empty() {
        text.push_str("no connections were seen\n");
    }
    text.push_str(&remarks(table));
    text
}

fn header() -> Vec<String> {
    ["CLIENT", "SERVER"]
        .into_iter()
        .chain(COLUMNS)
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

fn row(edge: &Edge, table: &EdgeTable) -> Vec<String> {
    let client = end(
        &edge.key.client,
        edge.client_name.as_deref(),
        edge.client_port,
    );
    let mut server = end(
        &edge.key.server,
        edge.server_name.as_deref(),
        edge.key.server_port,
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

fn cells(
    [client, server]: [String; 2],
    metrics: &SideMetrics,
    has: impl Fn(&str) -> bool,
) -> Vec<String> {
    let known = |metric: &str, text: String| {
        if has(metric) { text } else { "-".to_owned() }
    };
    let transfer = |metric: &str, found: &Transfer| {
        [
            known(metric, bytes(found.bytes)),
            known(metric, found.count.to_string()),
        ]
    };
    let [sent, sent_calls] = transfer("write", &metrics.write);
    let [received, received_calls] = transfer("read", &metrics.read);
    let resets = metrics.resets_sent + metrics.resets_received;
    vec![
        client,
        server,
        metrics.connections.to_string(),
        known("connect", metrics.connects_failed.to_string()),
        sent,
        sent_calls,
        received,
        received_calls,
        percentile(&metrics.write_rtt, 500),
        percentile(&metrics.write_rtt, 990),
        percentile(&metrics.receive_wait, 990),
        known("retransmit", metrics.retransmits.to_string()),
        known("drop", metrics.drops.to_string()),
        known("reset", resets.to_string()),
        known("error", metrics.errors.to_string()),
    ]
}

fn percentile(values: &Values, thousandths: u64) -> String {
    let found = values.percentile(thousandths);
    found.map_or_else(|| "-".to_owned(), |found| found.to_string())
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

fn end(endpoint: &Endpoint, name: Option<&str>, port: Option<u16>) -> String {
    let process = endpoint.pid.map_or_else(String::new, |pid| {
        // A name may hold control characters, which a terminal would follow.
        let comm: String = endpoint.comm.escape_default().collect();
        format!("{comm}[{pid}] ")
    });
    let port = port.map_or_else(|| "*".to_owned(), |port| port.to_string());
    let name = name.map_or_else(String::new, |name| format!(" ({})", name.escape_default()));
    let text = match &endpoint.address {
        Address::Ip(IpAddr::V4(address)) => format!("{process}{address}:{port}{name}"),
        Address::Ip(IpAddr::V6(address)) => format!("{process}[{address}]:{port}{name}"),
        Address::Unix(path) => format!("{process}{path}"),
    };
    cut(&text)
}

/// Every letter is ASCII, so that a letter is a column.
fn cut(text: &str) -> String {
    let length = text.chars().count();
    if length <= LONGEST_END {
        return text.to_owned();
    }
    let half = (LONGEST_END - 2) / 2;
    let first: String = text.chars().take(half).collect();
    let last: String = text.chars().skip(length - half).collect();
    format!("{first}..{last}")
}

/// Text to the left, numbers to the right.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            // Writing to a String cannot fail.
            let _infallible = if column < 2 {
                write!(line, "{cell:<width$}  ")
            } else {
                write!(line, "{cell:>width$}  ")
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn remarks(table: &EdgeTable) -> String {
    let mut text = String::new();
    for (metric, reason) in &table.unavailable {
        // Writing to a String cannot fail.
        let _infallible = writeln!(text, "unavailable: {metric}: {reason}");
    }
    for (what, count) in &table.unresolved {
        let _infallible = writeln!(text, "unresolved: {what}: {count}");
    }
    if table.lost_events > 0 {
        let _infallible = writeln!(
            text,
            "lost: {} reads and writes, {}: the table of connections was full (--max-connections)",
            table.lost_events,
            bytes(table.lost_bytes)
        );
    }
    let kernel = &table.kernel_table;
    if kernel.evicted > 0 {
        let _infallible = writeln!(
            text,
            "evicted: {} connections rested and made room in the kernel's table",
            kernel.evicted
        );
    }
    if let Some(delayed @ 1..) = kernel.delayed {
        let _infallible = writeln!(
            text,
            "delayed: the end of {delayed} connections waited in the kernel's table"
        );
    }
    if kernel.swept > 0 {
        let _infallible = writeln!(text, "the end of {} connections was missed", kernel.swept);
    }
    for (program, runs) in &kernel.missed_runs {
        let _infallible = writeln!(
            text,
            "lost: {runs} runs of {program}: it was at work already"
        );
    }
    if text.is_empty() {
        text
    } else {
        format!("\n{text}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::EdgeKey;

    fn edge(comm: &str, bytes: u64) -> Edge {
        let end = |comm: &str, pid| Endpoint {
            pid,
            start_ticks: Some(1),
            comm: comm.to_owned(),
            container: None,
            address: Address::Ip([10, 0, 0, 1].into()),
        };
        let mut write_rtt = Values::default();
        write_rtt.add(4, 300);
        Edge {
            key: EdgeKey {
                client: end(comm, Some(7)),
                server: end("", None),
                server_port: Some(80),
                original_destination: None,
            },
            client_port: None,
            client_name: None,
            server_name: None,
            client: Some(SideMetrics {
                connections: 1,
                write: Transfer { count: 3, bytes },
                write_rtt,
                ..SideMetrics::default()
            }),
            server: None,
        }
    }

    #[test]
    fn columns_are_aligned_and_the_largest_edge_is_first() {
        let mut table = EdgeTable {
            edges: vec![edge("small", 900), edge("large", 5 << 20)],
            lost_events: 2,
            lost_bytes: 4096,
            ..EdgeTable::default()
        };
        table.kernel_table.delayed = Some(7);
        table.unavailable.insert("drop".into(), "no hook".into());
        table.unresolved.insert("owner".into(), 3);
        let expected = "\
CLIENT               SERVER       CONNS  FAILED     SENT  CALLS  RECEIVED  CALLS     RTT p50         p99  WAIT p99  RETR  DROP  RESET  ERR
large[7] 10.0.0.1:*  10.0.0.1:80      1       0  5.0 MiB      3       0 B      0  100-500 us  100-500 us         -     0     -      0    0
small[7] 10.0.0.1:*  10.0.0.1:80      1       0    900 B      3       0 B      0  100-500 us  100-500 us         -     0     -      0    0
total of 2 edges                      2       0  5.0 MiB      6       0 B      0  100-500 us  100-500 us         -     0     -      0    0

unavailable: drop: no hook
unresolved: owner: 3
lost: 2 reads and writes, 4.0 KiB: the table of connections was full (--max-connections)
delayed: the end of 7 connections waited in the kernel's table
";
        assert_eq!(text(&table), expected);
    }

    #[test]
    fn names_cannot_reach_the_terminal_and_long_ends_are_cut() {
        let mut table = EdgeTable::default();
        table
            .edges
            .push(edge("\u{1b}[31mx\n\u{202e}evil\u{1b}[0m and more", 1));
        let text = text(&table);
        let row = text.lines().nth(1).unwrap();
        assert!(row.is_ascii() && !row.contains('\u{1b}'), "{row}");
        let client = row.split("  ").next().unwrap();
        assert_eq!(client.len(), LONGEST_END, "{client}");
        assert!(client.contains("..") && client.ends_with(":*"), "{client}");
    }

    #[test]
    fn bytes_have_units() {
        for (count, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (200 << 10, "200 KiB"),
            (1 << 40, "1.0 TiB"),
            (u64::MAX, "16384 PiB"),
        ] {
            assert_eq!(bytes(count), expected);
        }
    }

    #[test]
    fn nothing_is_said() {
        let text = text(&EdgeTable::default());
        assert!(text.ends_with("no connections were seen\n"), "{text}");
    }
}
