//! The parts of a report around its findings.

use profiler_model::{
    diagnosis::{
        Configuration, Coverage, Diagnosis, Estimate, EventLoopReport, Imbalance, LoopLengths,
        Matrix, NetworkReport, Totals, WorkerThread, Workers,
    },
    float, short_time,
};

use super::document::{Block, Inline, Piece, listed, plain, quoted};

/// Threads that are written.
const THREADS: usize = 16;
/// From this percentage on a part of the whole is as it should be.
const NEARLY_ALL: f64 = 95.0;
/// Processes that had the CPU and are named.
const HOLDERS: usize = 6;
/// Stalls that are written, and frames of each.
const STALLS: usize = 5;
const STALL_FRAMES: usize = 6;

/// Processes in the title; more are counted.
const TITLE_PROCESSES: usize = 3;

/// What was diagnosed; `source` is where its samples are.
pub(super) fn title(diagnosis: &Diagnosis, source: &str) -> Inline {
    let mut line = plain("Diagnosis of ");
    for process in diagnosis.processes.iter().take(TITLE_PROCESSES) {
        line.push(Piece::Quoted(process.comm.clone()));
        line.push(Piece::Plain(format!(" (pid {}), ", process.pid)));
    }
    let rest = diagnosis.processes.len().saturating_sub(TITLE_PROCESSES);
    if rest > 0 {
        line.push(Piece::Plain(format!("{rest} more, ")));
    }
    line.push(Piece::Plain(source.to_owned()));
    line
}

/// The verdict, and what it rests on.
pub(super) fn head(diagnosis: &Diagnosis) -> Vec<Block> {
    let Coverage {
        samples,
        complete_percent,
        named_percent,
        named_frames_percent,
        supply,
        ..
    } = &diagnosis.coverage;
    // What is as it should be needs no number.
    let few = |percent: Option<f64>, of: &str| {
        let percent = percent.filter(|percent| *percent < NEARLY_ALL);
        percent.map_or_else(String::new, |percent| format!(", {percent:.0} % of {of}"))
    };
    let frames = few(*named_frames_percent, "the user frames have names");
    let stacks = few(Some(*complete_percent), "the stacks are complete");
    let seconds = diagnosis.window.duration_s;
    let basis = if *samples == 0 {
        format!("No samples in {seconds:.1} s.")
    } else {
        format!(
            "{samples} samples in {seconds:.1} s: {named_percent:.0} % of them can be diagnosed{frames}{stacks}."
        )
    };
    let mut blocks = vec![
        Block::Lead(plain(diagnosis.verdict.clone())),
        Block::Paragraph(plain(totals(
            &diagnosis.totals,
            diagnosis.window.duration_s,
        ))),
        Block::Paragraph(plain(basis)),
    ];
    if let Some(supply) = supply {
        blocks.push(Block::Paragraph(quoted(supply.clone())));
    }
    if diagnosis.processes.len() > 1 {
        let lines = diagnosis.processes.iter().take(THREADS).map(|process| {
            vec![
                Piece::Quoted(process.comm.clone()),
                Piece::Plain(format!(
                    " (pid {}): {:.1} % of the samples' time",
                    process.pid, process.share_percent
                )),
            ]
        });
        blocks.push(Block::Bullets(lines.collect()));
    }
    if !diagnosis.other_processes.is_empty() {
        let mut line = plain(
            "CPU time, waits and findings cover the sidecar, or the process that was chosen. Not included: ",
        );
        let others = diagnosis.other_processes.iter().take(THREADS);
        line.extend(listed(others.map(|process| {
            vec![
                Piece::Quoted(process.comm.clone()),
                Piece::Plain(format!(" (pid {})", process.pid)),
            ]
        })));
        line.push(Piece::Plain(". The scope all includes them.".to_owned()));
        blocks.push(Block::Paragraph(line));
    }
    blocks
}

fn totals(totals: &Totals, duration_s: f64) -> String {
    let Totals {
        cpu_cores,
        cpu_ns: _,
        sampled_ns,
        requests,
        cpu_us_per_request,
    } = totals;
    let mut parts = vec![cpu_cores.map_or_else(
        || {
            let seconds = float(*sampled_ns) / 1e9;
            match seconds / duration_s {
                cores if cores.is_finite() && cores > 0.0 => {
                    format!("about {cores:.2} CPU cores by the samples")
                }
                _ => "CPU use: not known".to_owned(),
            }
        },
        |cores| format!("{cores:.3} CPU cores"),
    )];
    parts.push(requests.as_ref().map_or_else(
        || "requests: not known".to_owned(),
        |requests| {
            format!(
                "{:.0} requests/s ({})",
                requests.per_second, requests.source
            )
        },
    ));
    if let Some(Estimate { value, low, high }) = cpu_us_per_request {
        parts.push(format!(
            "{value:.1} us of CPU time per request ({low:.1} to {high:.1})"
        ));
    }
    parts.join(", ") + "."
}

pub(super) fn good(diagnosis: &Diagnosis) -> Vec<Block> {
    let lines: Vec<Inline> = diagnosis
        .good
        .iter()
        .map(|news| {
            vec![
                Piece::Strong(news.title.clone()),
                Piece::Plain(format!(": {}", news.text)),
            ]
        })
        .collect();
    section("As it should be", lines)
}

/// Features by mechanisms, in percent; columns without samples are left out.
pub(super) fn matrix(diagnosis: &Diagnosis) -> Vec<Block> {
    let Matrix {
        features: _,
        mechanisms,
        rows,
        cells,
    } = &diagnosis.matrix;
    if cells.is_empty() {
        return Vec::new();
    }
    let used: Vec<&str> = mechanisms
        .iter()
        .map(|mechanism| mechanism.id.as_str())
        .filter(|id| cells.iter().any(|cell| cell.mechanism == *id))
        .collect();
    let percent = |feature: &str, mechanism: &str| {
        let cell = cells
            .iter()
            .find(|cell| cell.feature == feature && cell.mechanism == mechanism);
        cell.map_or_else(String::new, |cell| format!("{:.1}", cell.share_percent))
    };
    let rows = rows.iter().map(|row| {
        let Estimate { value, low, high } = row.share();
        let mut line = vec![
            quoted(row.feature.clone()),
            plain(format!("{value:.1}")),
            plain(format!("{low:.1}-{high:.1}")),
        ];
        let cells = used
            .iter()
            .map(|mechanism| percent(&row.feature, mechanism));
        line.extend(cells.map(plain));
        line
    });
    let mut head = vec!["percent".to_owned(), "all".to_owned(), "95 %".to_owned()];
    head.extend(used.iter().map(|id| (*id).to_owned()));
    vec![
        Block::Heading("Where the CPU time goes".to_owned()),
        Block::Table {
            head,
            rows: rows.collect(),
        },
    ]
}

pub(super) fn workers(diagnosis: &Diagnosis) -> Vec<Block> {
    let Workers {
        threads,
        imbalance,
        throttled,
        contention,
    } = &diagnosis.workers;
    if threads.is_empty() {
        return Vec::new();
    }
    let head = [
        "thread",
        "role",
        "CPU %",
        "waits for CPU %",
        "longest time blocked, ms",
    ];
    let rows = threads.iter().take(THREADS).map(thread);
    let mut blocks = vec![
        Block::Heading("Threads".to_owned()),
        Block::Table {
            head: head.map(str::to_owned).to_vec(),
            rows: rows.collect(),
        },
    ];
    if threads.len() > THREADS {
        let more = threads.len() - THREADS;
        blocks.push(Block::Paragraph(plain(format!("and {more} more threads"))));
    }
    let waits: Vec<Inline> = threads.iter().take(THREADS).filter_map(waits_of).collect();
    if !waits.is_empty() {
        blocks.push(Block::Paragraph(plain("Waits that are not idle:")));
        blocks.push(Block::Bullets(waits));
    }
    if let Some(Imbalance {
        busiest_percent,
        mean_percent,
        ratio,
        low,
        high,
        significant,
    }) = imbalance
    {
        let sure = if *significant {
            "significant"
        } else {
            "not significant"
        };
        blocks.push(Block::Paragraph(plain(format!(
            "The busiest worker has {busiest_percent:.1} %, the mean is {mean_percent:.1} %: {ratio:.2} times \
             ({low:.2} to {high:.2}), {sure}."
        ))));
    }
    if let Some(contention) = contention.as_ref().filter(|found| found.known_ns > 0) {
        let waited = short_time(contention.waited_ns);
        blocks.push(Block::Paragraph(vec![
            Piece::Plain(format!(
                "All threads waited {waited} for a CPU. It was with: "
            )),
            Piece::Quoted(contention.line(HOLDERS)),
            Piece::Plain(".".to_owned()),
        ]));
        let pods = contention.pods_line(HOLDERS);
        if !pods.is_empty() {
            let line = vec![Piece::Plain("By pod: ".to_owned()), Piece::Quoted(pods)];
            blocks.push(Block::Paragraph(line));
        }
    }
    if let Some(throttled) = throttled {
        blocks.push(Block::Paragraph(plain(format!(
            "CPU quota: used up in {} of {} periods, {:.1} ms of standing still.",
            throttled.throttled_periods,
            throttled.periods,
            ms(throttled.throttled_ns)
        ))));
    }
    blocks
}

fn thread(thread: &WorkerThread) -> Vec<Inline> {
    let number =
        |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"));
    vec![
        vec![
            Piece::Quoted(thread.name.clone()),
            Piece::Plain(format!(" ({})", thread.tid)),
        ],
        plain(thread.role.name()),
        plain(format!("{:.1}", thread.cpu_percent)),
        plain(number(thread.run_queue_percent)),
        plain(number(thread.longest_wait_ns.map(ms))),
    ]
}

fn waits_of(thread: &WorkerThread) -> Option<Inline> {
    let waits: Vec<String> = thread
        .waits
        .iter()
        .map(|wait| {
            let times = if wait.count == 1 { "time" } else { "times" };
            format!(
                "{} {} {times}, {:.1} % of the time",
                wait.reason, wait.count, wait.share_percent
            )
        })
        .collect();
    (!waits.is_empty()).then(|| {
        vec![
            Piece::Quoted(thread.name.clone()),
            Piece::Plain(format!(" ({}): {}", thread.tid, waits.join("; "))),
        ]
    })
}

pub(super) fn event_loop(diagnosis: &Diagnosis) -> Vec<Block> {
    let Some(EventLoopReport {
        threshold_ms,
        threads,
        stalls,
        lost: _,
    }) = &diagnosis.event_loop
    else {
        return Vec::new();
    };
    let rows = threads.iter().take(THREADS).map(|thread| {
        let length = |of: fn(LoopLengths) -> u64| {
            let known = thread
                .loop_ns
                .map(|lengths| format!("{:.2}", ms(of(lengths))));
            plain(known.unwrap_or_else(|| "unknown".to_owned()))
        };
        vec![
            vec![
                Piece::Quoted(thread.name.clone()),
                Piece::Plain(format!(" ({})", thread.tid)),
            ],
            plain(thread.loops.to_string()),
            length(|lengths| lengths.p50),
            length(|lengths| lengths.p99),
            length(|lengths| lengths.max),
            plain(thread.stalls.to_string()),
        ]
    });
    let head = [
        "event loop",
        "loops",
        "p50 ms",
        "p99 ms",
        "max ms",
        "stalls",
    ];
    let mut blocks = vec![
        Block::Heading(format!(
            "Event loops (stalls of {threshold_ms} ms and more)"
        )),
        Block::Table {
            head: head.map(str::to_owned).to_vec(),
            rows: rows.collect(),
        },
    ];
    let lines = stalls.iter().take(STALLS).map(|stall| {
        let frames: Vec<&str> = stall
            .stack
            .iter()
            .take(STALL_FRAMES)
            .map(String::as_str)
            .collect();
        vec![
            Piece::Plain(format!("{:.1} ms in ", ms(stall.duration_ns))),
            Piece::Quoted(stall.name.clone()),
            Piece::Plain(": ".to_owned()),
            Piece::Quoted(frames.join(" < ")),
        ]
    });
    let lines: Vec<Inline> = lines.collect();
    if !lines.is_empty() {
        blocks.push(Block::Bullets(lines));
    }
    blocks
}

pub(super) fn network(diagnosis: &Diagnosis) -> Vec<Block> {
    let Some(NetworkReport {
        connections_opened,
        connections_per_request,
        retransmit_percent,
        resets,
        receive_wait_ns,
    }) = &diagnosis.network
    else {
        return Vec::new();
    };
    let each = connections_per_request
        .map_or_else(String::new, |each| format!(" ({each:.3} per request)"));
    let mut lines = vec![
        plain(format!("connections opened: {connections_opened}{each}")),
        plain(format!("resets: {resets}")),
        plain(retransmit_percent.map_or_else(
            || "segments retransmitted: not known".to_owned(),
            |percent| format!("{percent:.3} % of the segments retransmitted"),
        )),
    ];
    if let Some(waits) = receive_wait_ns {
        lines.push(plain(format!(
            "waits for data: half up to {:.2} ms, 99 % up to {:.2} ms",
            ms(waits.p50),
            ms(waits.p99)
        )));
    }
    section("Connections", lines)
}

pub(super) fn configuration(diagnosis: &Diagnosis) -> Vec<Block> {
    let Some(Configuration {
        source,
        version,
        concurrency,
        items,
    }) = &diagnosis.configuration
    else {
        return Vec::new();
    };
    let mut first = vec![
        Piece::Plain("from ".to_owned()),
        Piece::Quoted(source.clone()),
    ];
    if let Some(version) = version {
        first.push(Piece::Plain(", version ".to_owned()));
        first.push(Piece::Quoted(version.clone()));
    }
    if let Some(concurrency) = concurrency {
        first.push(Piece::Plain(format!(", {concurrency} workers")));
    }
    let mut lines = vec![first];
    lines.extend(items.iter().map(|item| {
        vec![
            Piece::Quoted(item.key.clone()),
            Piece::Plain(" = ".to_owned()),
            Piece::Quoted(item.value.clone()),
        ]
    }));
    section("What is configured", lines)
}

pub(super) fn limits(diagnosis: &Diagnosis) -> Vec<Block> {
    let lines = diagnosis.limits.iter();
    let lines = lines.map(|limit| vec![Piece::Plain(limit.clone())]);
    section("Limits", lines.collect())
}

fn section(title: &str, lines: Vec<Inline>) -> Vec<Block> {
    if lines.is_empty() {
        return Vec::new();
    }
    vec![Block::Heading(title.to_owned()), Block::Bullets(lines)]
}

fn ms(ns: u64) -> f64 {
    float(ns) / 1e6
}
