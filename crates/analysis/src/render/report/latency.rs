//! Where requests spend their time.

use profiler_model::{
    diagnosis::Diagnosis,
    latency::{Latency, LatencyActivity, LatencyInside, LatencyPart, LatencyPlace, LatencyProcess},
    short_time,
};

use super::document::{Block, Inline, Piece, plain};

/// Functions of a stack that are shown.
const FUNCTIONS: usize = 4;
/// Of the time in a process, what takes less is left out.
const LEAST_PERCENT: f64 = 1.0;

/// A table for each process that requests came to, and what was done meanwhile.
pub(super) fn blocks(diagnosis: &Diagnosis) -> Vec<Block> {
    let mut blocks = Vec::new();
    for latency in &diagnosis.latency {
        if blocks.is_empty() {
            blocks.push(Block::Heading("Where requests spend their time".to_owned()));
        }
        blocks.push(Block::Paragraph(title(latency)));
        let head = ["part", "process", "mean", "p95", "share %"];
        blocks.push(Block::Table {
            head: head.map(str::to_owned).to_vec(),
            rows: latency.parts.iter().map(row).collect(),
        });
        let activities = latency.inside.iter().flat_map(|inside| {
            let wanted = inside.activities.iter();
            let wanted = wanted.filter(|activity| activity.share_percent >= LEAST_PERCENT);
            wanted.map(|activity| line(inside, activity))
        });
        let activities: Vec<Inline> = activities.collect();
        if !activities.is_empty() {
            blocks.push(Block::Bullets(activities));
        }
    }
    blocks
}

fn title(latency: &Latency) -> Inline {
    let Latency {
        process,
        requests,
        p50_ns,
        p95_ns,
        p99_ns,
        ..
    } = latency;
    let [p50, p95, p99] = [p50_ns, p95_ns, p99_ns].map(|ns| short_time(*ns));
    vec![
        named(process),
        Piece::Plain(format!(
            ": {requests} requests, half of them within {p50}, 95 % within {p95}, 99 % within {p99}"
        )),
    ]
}

fn row(part: &LatencyPart) -> Vec<Inline> {
    let LatencyPart {
        place,
        process,
        mean_ns,
        p50_ns: _,
        p95_ns,
        share_percent,
    } = part;
    vec![
        plain(place_title(*place)),
        process
            .as_ref()
            .map_or_else(|| plain("-"), |process| vec![named(process)]),
        plain(short_time(*mean_ns)),
        plain(p95_ns.map_or_else(|| "-".to_owned(), short_time)),
        plain(format!("{share_percent:.1}")),
    ]
}

fn place_title(place: LatencyPlace) -> &'static str {
    match place {
        LatencyPlace::InboundQueue => "inbound socket queue",
        LatencyPlace::RequestPath => "request path",
        LatencyPlace::Network => "network",
        LatencyPlace::Upstream => "network and server",
        LatencyPlace::Server => "server",
        LatencyPlace::ResponseQueue => "response socket queue",
        LatencyPlace::ResponsePath => "response path",
        LatencyPlace::ResponseBody => "until the response has ended",
    }
}

fn line(inside: &LatencyInside, activity: &LatencyActivity) -> Inline {
    let LatencyActivity {
        kind,
        what,
        what_ns,
        mean_ns,
        share_percent,
        stack,
    } = activity;
    let title = kind.title();
    let mut line = vec![
        named(&inside.process),
        Piece::Plain(format!(
            ": {title} {} ({share_percent:.0} %)",
            short_time(*mean_ns)
        )),
    ];
    if let Some(what) = what {
        let of_it = what_ns.map_or_else(String::new, |ns| format!("{} of it ", short_time(ns)));
        line.push(Piece::Plain(format!(", {of_it}")));
        line.push(Piece::Quoted(what.clone()));
    }
    if !stack.is_empty() {
        let functions: Vec<&str> = stack.iter().take(FUNCTIONS).map(String::as_str).collect();
        line.push(Piece::Plain(", most in ".to_owned()));
        line.push(Piece::Quoted(functions.join(" < ")));
    }
    line
}

fn named(process: &LatencyProcess) -> Piece {
    let LatencyProcess { pid, name } = process;
    let pid = pid.map_or_else(String::new, |pid| format!(" ({pid})"));
    Piece::Quoted(format!("{name}{pid}"))
}
