//! The verdict: a sentence about latency, one about costs; and what these cannot know.

use profiler_model::{
    diagnosis::{Coverage, DiagnosedProcess, Finding, Matrix, Measurement, Severity},
    latency::Latency,
    printable::printable,
};

use super::{coverage::SUFFICIENT_PERCENT, interval::FEWEST};

/// What the sentence is made from.
pub(super) struct Summary<'a> {
    pub(super) processes: &'a [DiagnosedProcess],
    pub(super) coverage: &'a Coverage,
    pub(super) findings: &'a [Finding],
    pub(super) matrix: &'a Matrix,
    pub(super) threshold_percent: f64,
    pub(super) not_measured: &'a [Measurement],
    pub(super) latency: &'a [Latency],
    /// Why there is none, where requests were recorded.
    pub(super) no_latency: Option<&'a str>,
}

/// How long requests take and where, where they were recorded; then what costs most.
pub(super) fn verdict(summary: &Summary<'_>) -> String {
    let costs = costs(summary);
    match (summary.latency, summary.no_latency) {
        ([first, ..], _) => format!("{} {costs}", first.text),
        ([], Some(why)) => format!("How long requests take is not known: {why}. {costs}"),
        ([], None) => costs,
    }
}

/// What costs most CPU time, in one sentence.
fn costs(summary: &Summary<'_>) -> String {
    let Summary {
        processes,
        coverage,
        findings,
        matrix,
        threshold_percent,
        not_measured,
        latency: _,
        no_latency,
    } = summary;
    let who = who(processes);
    if coverage.samples < FEWEST {
        let samples = match coverage.samples {
            0 => "no samples on a CPU: it did not run, or was not sampled".to_owned(),
            1 => format!("one sample on a CPU; to say what costs most needs {FEWEST}"),
            samples => {
                format!("{samples} samples on a CPU; to say what costs most needs {FEWEST}")
            }
        };
        let mut real = findings
            .iter()
            .filter(|finding| finding.severity != Severity::Info);
        let beside = real.next().map_or_else(String::new, |finding| {
            format!(". Beside that stands out: {}", finding.title)
        });
        return format!("{who} has {samples}{beside}.");
    }
    if !coverage.sufficient {
        let most = findings.first().map_or_else(String::new, |finding| {
            format!(
                "; of what is known, {} takes at least {:.0} %",
                lower_first(&finding.title),
                finding.low
            )
        });
        return format!(
            "Only {:.0} % of the samples of {who} can be diagnosed ({SUFFICIENT_PERCENT:.0} % are needed): \
             the others have names for less than half of their user frames{most}.",
            coverage.named_percent
        );
    }
    let real: Vec<&Finding> = findings
        .iter()
        .filter(|finding| finding.severity != Severity::Info)
        .collect();
    // The largest saving that something can be done about.
    let actionable = real.iter().find(|finding| !finding.settings.is_empty());
    let Some(first) = actionable.or(real.first()) else {
        let most = most_of(matrix);
        let is_said = |part: &Measurement| *part == Measurement::Latency && no_latency.is_some();
        let others = not_measured.iter().filter(|part| !is_said(part));
        let parts: Vec<&str> = others.map(|part| part.title()).collect();
        let unknown = match parts.as_slice() {
            [] => String::new(),
            parts => format!("; not measured: {}", parts.join(", ")),
        };
        return format!(
            "No avoidable CPU cost of {who} is certain to be above {threshold_percent} %{most}{unknown}."
        );
    };
    let share = match &first.saving {
        Some(saving) => {
            let each = saving
                .us_per_request
                .map_or_else(String::new, |us| format!(", {us:.1} us of each request,"));
            format!(
                "{} of the CPU time of {who}; about {:.1} %{each} or more can be saved",
                first.share_text(),
                saving.percent
            )
        }
        None => format!("{} in {who}", first.share_text()),
    };
    let others: Vec<&str> = real
        .iter()
        .filter(|finding| finding.id != first.id)
        .map(|finding| finding.title.as_str())
        .collect();
    let more = match others.as_slice() {
        [] => String::new(),
        [one] => format!("; also found: {one}"),
        [one, rest @ ..] => format!("; also found: {one} and {} more", rest.len()),
    };
    format!("{}: {share}{more}.", first.title)
}

fn who(processes: &[DiagnosedProcess]) -> String {
    match processes {
        [] => "The target".to_owned(),
        [one] => format!("{} ({})", printable(&one.comm), one.pid),
        [first, rest @ ..] => {
            let more = rest.len();
            let plural = if more == 1 { "process" } else { "processes" };
            format!(
                "{} ({}) and {more} more {plural}",
                printable(&first.comm),
                first.pid
            )
        }
    }
}

fn most_of(matrix: &Matrix) -> String {
    let Some(feature) = matrix.features.first() else {
        return String::new();
    };
    let share: f64 = matrix
        .cells
        .iter()
        .filter(|cell| cell.feature == feature.id)
        .map(|cell| cell.share_percent)
        .sum();
    format!(
        "; most goes to {} ({share:.0} %)",
        lower_first(&feature.title)
    )
}

/// For the middle of a sentence; names like `HTTP` stay.
fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    match (characters.next(), characters.clone().next()) {
        (Some(first), Some(second)) if first.is_uppercase() && second.is_lowercase() => {
            first.to_lowercase().chain(characters).collect()
        }
        _ => text.to_owned(),
    }
}

/// What shares of samples cannot say, whatever was measured.
pub(super) fn limits(coverage: &Coverage, has_envoy: bool, limits: &mut Vec<String>) {
    if coverage.samples == 0 {
        limits.push("Which part costs what: there are no samples on a CPU.".to_owned());
        return;
    }
    if coverage.samples < FEWEST {
        limits.push(format!(
            "Which part costs what: {} samples on a CPU are too few; {} times the frequency or the duration \
             would give the {FEWEST} that this needs, or more load.",
            coverage.samples,
            FEWEST.div_ceil(coverage.samples)
        ));
    }
    if !coverage.sufficient {
        let supply = coverage
            .supply
            .as_deref()
            .map_or_else(String::new, |supply| format!(" Supply {supply}."));
        limits.push(format!(
            "Which part costs what: only {:.0} % of the samples have enough names, so every share is a \
             lower bound.{supply}",
            coverage.named_percent
        ));
    } else if coverage.no_symbols_percent >= 1.0 {
        limits.push(format!(
            "{:.1} % of the samples have no names and no rule holds for them: shares of features may \
             be larger by that much.",
            coverage.no_symbols_percent
        ));
    }
    if coverage.complete_percent < 95.0 {
        limits.push(format!(
            "{:.1} % of the stacks break off before the thread's start: who asked for that work may be \
             missing.",
            100.0 - coverage.complete_percent
        ));
    }
    if has_envoy {
        limits.push(
            "Work that a feature leaves to Envoy's event loop (connections to a collector or to an \
             authorization service) is not under its frames: it is counted as HTTP codec, pools or \
             connections, so what switching off saves can be more."
                .to_owned(),
        );
    }
}
