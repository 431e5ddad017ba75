//! Reports of a diagnosis that has everything, and of one that has nothing.

use super::{
    samples::{changed, rich},
    *,
};

#[test]
fn the_verdict_comes_first_then_what_to_change_and_the_limits_last() {
    let text = report(&rich("x"), Some(&changed()), ReportForm::Text);
    let order = [
        "Tracing takes 60 % of envoy.",
        "0.840 CPU cores, 6000 requests/s (Envoy's own counters), 140.0 us of CPU time per request",
        "WHAT CHANGED",
        "CPU per request, us",
        "Shares are of all CPU time, which has changed",
        "gone: Every request is traced",
        "FINDINGS",
        "1. [high] Every request is traced: 60.0 % (59.0 to 61.0); saves about 60.0 %, 84.0 us per",
        "Configured now: x",
        "To change (istio, mesh): tracing.sampling",
        "         sampling: 1.0",
        "Side effects: Fewer traces.",
        "41.0 % in x",
        "AS IT SHOULD BE",
        "WHERE THE CPU TIME GOES",
        "tracing  60.0  59.0-61.0   60.0",
        "THREADS",
        "x (9)",
        "pipe_write 3 times",
        "2.00 times (1.90 to 2.10), significant",
        "used up in 7 of 100 periods",
        "EVENT LOOPS (STALLS OF 20 MS AND MORE)",
        "60.0 ms in x: x",
        "CONNECTIONS",
        "segments retransmitted: not known",
        "WHAT IS CONFIGURED",
        "tracing.sampling = x",
        "LIMITS",
    ];
    let mut from = 0;
    for part in order {
        let found = text[from..].find(part);
        let at = found.unwrap_or_else(|| panic!("{part:?} is not after the one before in\n{text}"));
        from += at;
    }
    assert!(
        !text.contains("copy"),
        "columns without samples are left out:\n{text}"
    );
    assert!(text.lines().next().unwrap().starts_with("Tracing takes"));
}

#[test]
fn markdown_has_the_same_parts_and_its_yaml_in_a_fence() {
    let text = report(&rich("x"), None, ReportForm::Markdown);
    assert!(
        text.starts_with("**Tracing takes 60 % of envoy.**\n"),
        "{text}"
    );
    for part in [
        "\n## Findings\n",
        "1. **\\[high\\] Every request is traced**",
        "   ```yaml\n   tracing:\n     sampling: 1.0\n   ```\n",
        "| percent | all | 95 % | parse |",
        "\n## Limits\n",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn a_report_for_itself_says_what_was_diagnosed() {
    let mut diagnosis = rich("x");
    let text = titled(&diagnosis, "task 7");
    let title =
        "# Diagnosis of `x` (pid 7), `x` (pid 8), task 7\n\n**Tracing takes 60 % of envoy.**\n";
    assert!(text.starts_with(title), "{text}");
    let process = diagnosis.processes[0].clone();
    diagnosis.processes.extend([process.clone(), process]);
    let text = titled(&diagnosis, "check-up *a*");
    assert!(
        text.contains("`x` (pid 7), 1 more, check-up \\*a\\*\n"),
        "{text}"
    );
    diagnosis.processes.clear();
    let text = titled(&diagnosis, "task 7");
    assert!(text.starts_with("# Diagnosis of task 7\n"), "{text}");
}

#[test]
fn text_of_the_target_does_nothing() {
    let hostile = "\u{1b}]0;x\u{7}`</code><b>|\n## y\u{202e}";
    let diagnosis = rich(hostile);
    let text = titled(&diagnosis, "task 7");
    assert_eq!(
        text.matches("\n#").count(),
        text.matches("\n## ").count(),
        "{text}"
    );
    assert!(text.lines().next().unwrap().ends_with(", task 7"), "{text}");
    for form in [ReportForm::Text, ReportForm::Markdown] {
        let text = report(&diagnosis, None, form);
        let bad = |letter: char| (letter.is_control() && letter != '\n') || letter == '\u{202e}';
        assert!(!text.chars().any(bad), "{text:?}");
        assert!(!text.lines().any(|line| line.starts_with("## y")), "{text}");
    }
    let markdown = report(&diagnosis, None, ReportForm::Markdown);
    assert!(!markdown.contains("\n<b>"), "{markdown}");
}

#[test]
fn what_is_not_known_is_said_and_what_is_absent_is_left_out() {
    let mut diagnosis = rich("x");
    diagnosis.latency.clear();
    diagnosis.totals.cpu_cores = None;
    diagnosis.totals.requests = None;
    diagnosis.totals.cpu_us_per_request = None;
    diagnosis.findings.clear();
    diagnosis.good.clear();
    diagnosis.matrix.cells.clear();
    diagnosis.workers.threads.clear();
    diagnosis.event_loop = None;
    diagnosis.network = None;
    diagnosis.configuration = None;
    diagnosis.limits.clear();
    let text = report(&diagnosis, None, ReportForm::Text);
    assert!(
        text.contains(" CPU cores by the samples, requests: not known."),
        "{text}"
    );
    diagnosis.totals.sampled_ns = 0;
    let text = report(&diagnosis, None, ReportForm::Text);
    assert!(
        text.contains("CPU use: not known, requests: not known."),
        "{text}"
    );
    assert!(
        text.contains("FINDINGS\nNone: nothing that a setting changes"),
        "{text}"
    );
    for part in [
        "THREADS",
        "CONNECTIONS",
        "EVENT",
        "CONFIGURED",
        "CANNOT",
        "WHERE",
    ] {
        assert!(!text.contains(part), "{part} in\n{text}");
    }
}
