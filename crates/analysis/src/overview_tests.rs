use profiler_model::overview::{OverviewCpu, OverviewKind, OverviewTime};

use super::*;

fn row(title: &str) -> OverviewRow {
    OverviewRow {
        id: title.to_owned(),
        kind: OverviewKind::Pod,
        title: title.to_owned(),
        pod: None,
        workload: None,
        network_namespace: None,
        processes: 2,
        pids: vec![1, 2],
        window_s: Some(10.0),
        cpu: OverviewCpu {
            cores: Some(0.5),
            waiting: Some(0.01),
            limit: None,
        },
        answered: Some(requests(1_000, 0, 20.0)),
        sent: None,
        requests_unknown: None,
        segments: None,
        troubles: Vec::new(),
        history: Vec::new(),
    }
}

fn requests(count: u64, errors: u64, p95_ms: f64) -> OverviewRequests {
    let time = OverviewTime {
        from_ms: p95_ms,
        to_ms: p95_ms + 1.0,
    };
    OverviewRequests {
        window_s: 10.0,
        count,
        per_s: float(count) / 10.0,
        errors,
        p50: Some(time),
        p95: Some(time),
    }
}

fn with(title: &str, change: impl FnOnce(&mut OverviewRow)) -> OverviewRow {
    let mut row = row(title);
    change(&mut row);
    row.troubles = troubles(&row, None);
    row
}

fn texts(row: &OverviewRow) -> Vec<(TroubleLevel, &str)> {
    let troubles = row.troubles.iter();
    troubles
        .map(|trouble| (trouble.level, trouble.text.as_str()))
        .collect()
}

fn limit(used_cores: f64, throttled_periods: u64) -> OverviewLimit {
    OverviewLimit {
        cores: 1.0,
        used_cores,
        periods: Some(100),
        throttled_periods: Some(throttled_periods),
    }
}

fn points(p95_ms: f64, count: usize) -> Vec<OverviewPoint> {
    let point = |number: usize| OverviewPoint {
        at_ns: number as u64 * 10_000_000_000,
        cores: None,
        requests_per_s: None,
        p95_ms: Some(p95_ms),
    };
    (0..count).map(point).collect()
}

#[test]
fn a_healthy_pod_is_not_accused() {
    let rows = [
        with("quiet", |_| {}),
        with("few errors", |row| {
            row.answered = Some(requests(20, 1, 20.0));
        }),
        with("half of its limit", |row| {
            row.cpu.limit = Some(limit(0.5, 4));
        }),
        with("two periods, of which one was used up", |row| {
            row.cpu.limit = Some(OverviewLimit {
                periods: Some(2),
                throttled_periods: Some(1),
                ..limit(0.01, 0)
            });
        }),
        with("one late segment", |row| {
            row.segments = Some(OverviewSegments {
                sent: 30,
                retransmitted: 1,
                retransmitted_per_s: 0.1,
            });
        }),
        with("one thread that waits a little", |row| {
            row.cpu.cores = Some(0.1);
            row.cpu.waiting = Some(0.2);
        }),
        with("as slow as always", |row| {
            row.answered = Some(requests(1_000, 0, 120.0));
            row.history = points(118.0, 30);
        }),
        with("not long enough known", |row| {
            row.answered = Some(requests(1_000, 0, 120.0));
            row.history = points(10.0, 5);
        }),
    ];
    for row in &rows {
        assert_eq!(texts(row), [], "{}", row.title);
    }
    assert_eq!(
        summary(&rows),
        "Nothing needs attention: 8 pods, 702 requests/s answered; slowest of 8 is as slow as always, p95 up to 121 ms."
    );
}

#[test]
fn each_trouble_has_its_numbers() {
    use TroubleLevel::{Bad, Elsewhere, Warning};
    let found = with("all at once", |row| {
        row.answered = Some(requests(600, 60, 240.0));
        row.sent = Some(requests(200, 40, 5.0));
        row.history = points(80.0, 12);
        row.cpu = OverviewCpu {
            cores: Some(0.5),
            waiting: Some(0.4),
            limit: Some(limit(0.97, 41)),
        };
        row.segments = Some(OverviewSegments {
            sent: 980,
            retransmitted: 20,
            retransmitted_per_s: 2.0,
        });
    });
    assert_eq!(
        texts(&found),
        [
            (
                Bad,
                "10.0 % of its responses are errors (5xx): 60 of 600 in 10 s"
            ),
            (
                Bad,
                "a CPU limit stops it in 41 % of the periods in which it runs (0.97 of 1.00 cores are used)"
            ),
            (
                Warning,
                "its responses take longer: p95 is 241 ms, and was 80 ms over the last minutes"
            ),
            (
                Warning,
                "its threads wait for a CPU 44 % of the time that they are runnable (0.40 threads on average)"
            ),
            (
                Warning,
                "2.0 % of its TCP segments are retransmitted: 20 of 1000"
            ),
            (
                Elsewhere,
                "20.0 % of the responses that it gets are errors (5xx): 40 of 200 in 10 s"
            ),
        ]
    );
    let near = with("near", |row| row.cpu.limit = Some(limit(0.95, 0)));
    assert_eq!(
        texts(&near),
        [(
            Warning,
            "it is near a CPU limit: 0.95 of 1.00 cores are used"
        )]
    );
}

#[test]
fn the_worst_comes_first_and_then_the_slowest() {
    let mut rows = [
        with("slow", |row| row.answered = Some(requests(1_000, 0, 110.0))),
        with("quick", |_| {}),
        with("caller", |row| row.sent = Some(requests(200, 40, 5.0))),
        with("failing", |row| {
            row.answered = Some(requests(600, 60, 2.0));
        }),
        with("node", |row| {
            row.kind = OverviewKind::Program;
            row.answered = None;
            row.cpu.cores = Some(1.9);
        }),
        with("unknown", |row| row.answered = None),
    ];
    arrange(&mut rows);
    let order: Vec<&str> = rows.iter().map(|row| row.title.as_str()).collect();
    assert_eq!(
        order,
        ["failing", "caller", "slow", "quick", "unknown", "node"]
    );
    assert_eq!(
        summary(&rows),
        "failing: 10.0 % of its responses are errors (5xx): 60 of 600 in 10 s. One more of 5 pods and \
         1 group of processes on the node needs attention. Requests of 1 pod are not known."
    );
}

#[test]
fn work_of_the_node_that_waits_is_never_bad() {
    let waits = |kind| {
        with("waits", |row| {
            row.kind = kind;
            row.cpu.waiting = Some(3.0);
        })
    };
    assert_eq!(texts(&waits(OverviewKind::Pod))[0].0, TroubleLevel::Bad);
    assert_eq!(
        texts(&waits(OverviewKind::Service))[0].0,
        TroubleLevel::Warning
    );
}

#[test]
fn a_wait_names_the_row_that_uses_most_cpu() {
    let uses = |title, cores| with(title, |row| row.cpu.cores = Some(cores));
    let mut waits = uses("waits", 0.9);
    waits.cpu.waiting = Some(0.4);
    let said = |row: &OverviewRow, others: &[OverviewRow]| {
        let rows = [others, std::slice::from_ref(row)].concat();
        troubles(row, busiest(&rows).as_ref()).remove(0).text
    };
    let wait = "its threads wait for a CPU 31 % of the time that they are runnable (0.40 threads on average)";
    let noisy = uses("chromium\n", 1.2);
    assert_eq!(
        said(&waits, &[uses("quiet", 0.3), noisy.clone()]),
        format!("{wait}; most CPU on this machine: chromium\\x0a, 1.20 cores")
    );
    assert_eq!(
        said(&waits, &[uses("quiet", 0.3)]),
        format!("{wait}; nothing on this machine uses more CPU: 0.90 cores")
    );
    let mut limited = waits;
    limited.cpu.limit = Some(limit(0.95, 0));
    let of_limited = troubles(&limited, busiest(&[noisy]).as_ref());
    assert!(
        of_limited.iter().any(|trouble| trouble.text == wait),
        "a limit of its own is in the way: {of_limited:?}"
    );
    let mut unknown = uses("unknown", 1.2);
    unknown.cpu.cores = None;
    assert!(busiest(&[uses("little", 0.05), unknown]).is_none());
}

#[test]
fn nothing_is_said_before_there_are_rates() {
    let mut first = row("new");
    first.window_s = None;
    assert_eq!(
        summary(&[first]),
        "There is one reading so far: rates follow after the second."
    );
    assert_eq!(summary(&[]), "No process can be seen.");
}

#[test]
fn few_are_held_to_less() {
    assert!(at_least(1, 20) < 0.01);
    assert!(at_least(60, 600) > 0.07);
    assert!((at_least(5, 5) - 0.566).abs() < 0.01);
    assert!(at_least(0, 0).abs() < f64::EPSILON);
    assert!(at_least(9, 5) <= 1.0);
}
