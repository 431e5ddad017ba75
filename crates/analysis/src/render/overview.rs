//! The overview as lines for a terminal.

use profiler_model::{
    float,
    overview::{Overview, OverviewRequests, OverviewRow},
    printable::{left, printable_within},
};

use super::text::Text;

/// Columns of titles and of what needs attention.
const TITLE: usize = 36;
const TROUBLE: usize = 110;
const UNKNOWN: &str = "-";

/// At most `rows` rows, in their order.
pub fn overview_table(overview: &Overview, rows: usize) -> Text {
    let mut text = Text::default();
    text.line(format_args!(
        "{}",
        printable_within(&overview.summary, 4 * TROUBLE)
    ));
    // Of a row that neither needs attention nor answers there is nothing to ask.
    let first = overview.rows.first().filter(|row| {
        !row.troubles.is_empty() || row.answered.is_some_and(|answered| answered.p95.is_some())
    });
    if let Some(target) = first.and_then(target) {
        text.line(format_args!(
            "to look closer: profiler-agent diagnose {target}"
        ));
    }
    text.blank();
    text.line(format_args!(
        "{} {:>8} {:>6} {:>7} {:>6} {:>10} {:>5} {:>5} {:>8}  ATTENTION",
        left("POD", TITLE),
        "REQ/S",
        "5xx %",
        "p95 ms",
        "CPU",
        "LIMIT",
        "THR %",
        "WAIT",
        "RETRANS"
    ));
    for row in overview.rows.iter().take(rows) {
        text.line(format_args!("{}", line(row)));
        for trouble in row.troubles.iter().skip(1) {
            text.line(format_args!(
                "{:width$}{}",
                "",
                printable_within(&trouble.text, TROUBLE),
                width = TITLE + 2
            ));
        }
    }
    let left_out = overview.rows.len().saturating_sub(rows);
    if left_out > 0 {
        text.line(format_args!("and {left_out} more (--rows)"));
    }
    for note in &overview.notes {
        text.line(format_args!(
            "note: {}",
            printable_within(note, 2 * TROUBLE)
        ));
    }
    text
}

/// What `diagnose` is told to look into a row.
fn target(row: &OverviewRow) -> Option<String> {
    match (&row.pod, row.pids.as_slice()) {
        (Some(pod), _) => {
            let name = format!("{}/{}", pod.namespace, pod.name);
            Some(format!("--pod {}", printable_within(&name, TROUBLE)))
        }
        (None, []) => None,
        (None, pids) => {
            let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
            Some(format!("--pid {}", pids.join(",")))
        }
    }
}

fn line(row: &OverviewRow) -> String {
    let number = |value: Option<f64>, digits: usize| {
        value.map_or_else(|| UNKNOWN.to_owned(), |value| format!("{value:.digits$}"))
    };
    let requests = row.answered.or(row.sent);
    let of = |value: fn(OverviewRequests) -> Option<f64>| requests.and_then(value);
    let rate = number(of(|requests| Some(requests.per_s)), 0);
    // What it sent to others is not what it answered.
    let rate = if row.answered.is_none() && row.sent.is_some() {
        format!("out {rate}")
    } else {
        rate
    };
    let errors = of(|requests| {
        (requests.count > 0).then(|| 100.0 * float(requests.errors) / float(requests.count))
    });
    let p95 = of(|requests| requests.p95.map(|time| time.to_ms));
    let p95 = p95.map_or_else(|| UNKNOWN.to_owned(), |ms| format!("<{ms:.0}"));
    let limit = row.cpu.limit;
    let throttled = limit.and_then(|limit| {
        let (periods, throttled) = (limit.periods?, limit.throttled_periods?);
        (periods > 0).then(|| 100.0 * float(throttled) / float(periods))
    });
    let trouble = row.troubles.first().map_or("", |trouble| &trouble.text);
    format!(
        "{} {rate:>8} {:>6} {p95:>7} {:>6} {:>10} {:>5} {:>5} {:>8}  {}",
        left(&printable_within(&row.title, TITLE), TITLE),
        number(errors, 1),
        number(row.cpu.cores, 2),
        limit.map_or_else(
            || UNKNOWN.to_owned(),
            |limit| format!("{:.2}/{:.2}", limit.used_cores, limit.cores)
        ),
        number(throttled, 0),
        number(row.cpu.waiting, 2),
        number(row.segments.map(|segments| segments.retransmitted_per_s), 1),
        printable_within(trouble, TROUBLE),
    )
    .trim_end()
    .to_owned()
}
