//! What changed since an earlier diagnosis.

use profiler_model::{
    comparison::{
        CheckupComparison, ComparedFindings, ComparedLatency, ComparedRow, ComparedTotal,
        ComparedTotals, FindingName, LatencyNumbers,
    },
    short_time,
};

use super::document::{Block, Inline, Piece, listed, plain, quoted};

pub(super) fn blocks(comparison: &CheckupComparison) -> Vec<Block> {
    let CheckupComparison {
        programs,
        other_programs,
        latency,
        totals,
        not_compared: _,
        rows,
        findings,
        verdict,
    } = comparison;
    let mut blocks = vec![
        Block::Heading("What changed".to_owned()),
        Block::Paragraph(plain(verdict.clone())),
    ];
    if !other_programs.is_empty() {
        let named = |programs: &[String]| {
            let each = programs.iter();
            listed(each.map(|program| quoted(program.clone())))
        };
        let mut line = plain("CPU time is that of ");
        line.extend(named(programs));
        line.extend(plain("; not compared: "));
        line.extend(named(other_programs));
        blocks.push(Block::Paragraph(line));
    }
    blocks.extend(latency.as_ref().map(of_latency));
    blocks.extend(of_totals(totals));
    blocks.extend(of_rows(rows));
    blocks.extend(of_whole(totals, rows));
    blocks.extend(of_findings(findings));
    blocks
}

fn of_latency(latency: &ComparedLatency) -> Block {
    let ComparedLatency { process, a, b } = latency;
    let row = |what: &str, of: fn(&LatencyNumbers) -> u64| {
        let mut name = plain(format!("{what} of requests to "));
        name.push(Piece::Quoted(process.clone()));
        vec![name, plain(short_time(of(a))), plain(short_time(of(b)))]
    };
    Block::Table {
        head: ["latency", "before", "now"].map(str::to_owned).to_vec(),
        rows: vec![
            row("mean", |numbers| numbers.mean_ns),
            row("p50", |numbers| numbers.p50_ns),
            row("p95", |numbers| numbers.p95_ns),
            row("p99", |numbers| numbers.p99_ns),
        ],
    }
}

fn of_totals(totals: &ComparedTotals) -> Option<Block> {
    let all = [
        ("CPU per request, us", totals.cpu_us_per_request),
        ("CPU cores", totals.cpu_cores),
    ];
    let rows: Vec<Vec<Inline>> = all
        .into_iter()
        .filter_map(|(name, total)| {
            let ComparedTotal {
                a,
                b,
                change_percent,
                low,
                high,
                significant,
            } = total?;
            Some(vec![
                plain(name),
                plain(format!("{a:.3}")),
                plain(format!("{b:.3}")),
                plain(format!("{change_percent:+.1} %")),
                plain(format!("{low:+.1} to {high:+.1} %")),
                plain(yes(significant)),
            ])
        })
        .collect();
    let head = ["total", "before", "now", "change", "95 %", "significant"];
    (!rows.is_empty()).then(|| Block::Table {
        head: head.map(str::to_owned).to_vec(),
        rows,
    })
}

fn of_rows(rows: &[ComparedRow]) -> Option<Block> {
    let us = |us: Option<f64>| us.map_or_else(|| "?".to_owned(), |us| format!("{us:.1}"));
    let lines: Vec<Vec<Inline>> = rows
        .iter()
        .map(|row| {
            let ComparedRow {
                feature: _,
                title,
                a_percent,
                b_percent,
                a_us,
                b_us,
                change,
                low,
                high,
                p: _,
                significant,
            } = row;
            vec![
                plain(title.clone()),
                plain(format!("{a_percent:.1}")),
                plain(format!("{b_percent:.1}")),
                plain(format!("{change:+.1}")),
                plain(format!("{low:+.1} to {high:+.1}")),
                plain(format!("{} -> {}", us(*a_us), us(*b_us))),
                plain(yes(*significant)),
            ]
        })
        .collect();
    let head = [
        "share of CPU, %",
        "before",
        "now",
        "change",
        "95 %",
        "us per request",
        "significant",
    ];
    (!lines.is_empty()).then(|| Block::Table {
        head: head.map(str::to_owned).to_vec(),
        rows: lines,
    })
}

/// Shares of a whole that has changed are no amounts.
fn of_whole(totals: &ComparedTotals, rows: &[ComparedRow]) -> Option<Block> {
    let changed = totals
        .cpu_us_per_request
        .is_some_and(|total| total.significant)
        && rows.iter().any(|row| row.significant);
    changed.then(|| {
        Block::Paragraph(plain(
            "Shares are of all CPU time, which has changed: a part with a larger share may cost no more. What it costs is in \
             the microseconds.",
        ))
    })
}

fn of_findings(findings: &ComparedFindings) -> Option<Block> {
    let ComparedFindings { gone, new, still } = findings;
    let line = |word: &str, list: &[FindingName]| {
        let titles: Vec<&str> = list.iter().map(|finding| finding.title.as_str()).collect();
        (!titles.is_empty()).then(|| plain(format!("{word}: {}", titles.join("; "))))
    };
    let lines: Vec<Inline> = [
        line("gone", gone),
        line("new", new),
        line("still there", still),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!lines.is_empty()).then_some(Block::Bullets(lines))
}

fn yes(significant: bool) -> &'static str {
    if significant { "yes" } else { "no" }
}
