use super::*;

fn side(samples: u64, us: f64, rows: &[(&str, u64)]) -> Side {
    Side {
        samples,
        cpu_cores: Some(us / 100.0),
        cpu_us_per_request: Some(Estimate {
            value: us,
            low: us * 0.98,
            high: us * 1.02,
        }),
        rows: rows
            .iter()
            .map(|(feature, count)| SideRow {
                feature: (*feature).to_owned(),
                title: feature.to_uppercase(),
                samples: *count,
                share: share(*count, samples, 1.0),
            })
            .collect(),
        findings: Vec::new(),
        processes: Vec::new(),
        other_processes: Vec::new(),
        latency: None,
        not_measured: None,
    }
}

/// A share with the interval that its count gives, `wider` times as wide.
fn share(count: u64, all: u64, wider: f64) -> Estimate {
    let ratio = float(count) / float(all);
    let half = wider * HALF * (ratio * (1.0 - ratio) / float(all)).sqrt() * 100.0;
    Estimate {
        value: ratio * 100.0,
        low: (ratio * 100.0 - half).max(0.0),
        high: ratio * 100.0 + half,
    }
}

fn finding(id: &str) -> FindingName {
    FindingName {
        id: id.to_owned(),
        title: format!("the {id}"),
    }
}

fn row<'a>(comparison: &'a CheckupComparison, feature: &str) -> &'a ComparedRow {
    let mut rows = comparison.rows.iter();
    rows.find(|row| row.feature == feature).unwrap()
}

fn changes(a: &Side, b: &Side) -> CheckupComparison {
    compare(a, b).unwrap()
}

#[test]
fn with_few_samples_latency_alone_is_compared() {
    let numbers = |ns| LatencyNumbers {
        requests: 300,
        mean_ns: ns,
        p50_ns: ns,
        p95_ns: ns,
        p99_ns: ns,
    };
    let mut a = side(91, 54.0, &[("lua", 60), ("pools", 31)]);
    let mut b = side(4000, 54.0, &[("pools", 4000)]);
    a.findings = vec![finding("lua")];
    a.latency = Some(("envoy".to_owned(), numbers(118_000_000)));
    let few = NotComparable::FewSamples {
        which: crate::comparison::Which::Earlier,
        samples: 91,
    };
    assert_eq!(compare(&a, &b), Err(few.clone()));
    b.latency = Some(("mesh-server".to_owned(), numbers(18_000_000)));
    assert_eq!(compare(&a, &b), Err(few.clone()), "of another process");
    b.latency = Some(("envoy".to_owned(), numbers(18_000_000)));
    let found = compare(&a, &b).unwrap();
    assert_eq!(found.not_compared, Some(few.to_string()));
    assert_eq!(found.latency.unwrap().b.p95_ns, 18_000_000);
    assert_eq!(found.rows, []);
    assert_eq!(found.findings, ComparedFindings::default());
    let start = "Requests to envoy take 18.0 ms on average (p95 18.0 ms), before 118 ms (p95 118 ms); CPU time";
    assert!(found.verdict.starts_with(start), "{}", found.verdict);
    let end =
        "the earlier check-up has 91 samples on a CPU; to compare what costs CPU time needs 100.";
    assert!(found.verdict.ends_with(end), "{}", found.verdict);
}

#[test]
fn tracing_that_was_switched_off_is_the_change() {
    let mut a = side(4000, 137.0, &[("tracing", 2400), ("http_codec", 1600)]);
    let mut b = side(4000, 54.0, &[("http_codec", 4000)]);
    a.findings = vec![finding("tracing"), finding("lua")];
    b.findings = vec![finding("lua"), finding("rbac")];
    let found = changes(&a, &b);
    let tracing = row(&found, "tracing");
    assert!(tracing.significant && tracing.p.unwrap() < 1e-6);
    assert!((tracing.change + 60.0).abs() < 1e-9);
    assert!(tracing.low < -60.0 && tracing.high > -60.0 && tracing.high < -55.0);
    assert!((tracing.a_us.unwrap() - 82.2).abs() < 1e-9);
    assert_eq!(tracing.b_us, Some(0.0));
    let total = found.totals.cpu_us_per_request.unwrap();
    assert!(total.significant);
    assert!((total.change_percent + 60.58).abs() < 0.01);
    assert!(total.low < total.change_percent && total.change_percent < total.high);
    assert_eq!(found.findings.gone, [finding("tracing")]);
    assert_eq!(found.findings.new, [finding("rbac")]);
    assert_eq!(found.findings.still, [finding("lua")]);
    let verdict = &found.verdict;
    for part in ["fell by 60.6 %", "gone: the tracing", "new: the rbac"] {
        assert!(verdict.contains(part), "{verdict}");
    }
}

#[test]
fn the_same_twice_is_no_change() {
    let a = side(4000, 54.0, &[("http_codec", 2000), ("pools", 2000)]);
    let b = side(4100, 54.6, &[("http_codec", 2085), ("pools", 2015)]);
    let found = changes(&a, &b);
    assert!(found.rows.iter().all(|row| !row.significant));
    assert!(!found.totals.cpu_us_per_request.unwrap().significant);
    assert!(!found.totals.cpu_cores.unwrap().significant);
    assert!(
        found.verdict.contains("did not change significantly"),
        "{}",
        found.verdict
    );
    assert!(
        found.verdict.contains("no part of it changed"),
        "{}",
        found.verdict
    );
}

#[test]
fn bursts_make_a_change_doubtful_that_the_counts_alone_would_show() {
    let mut a = side(10_000, 54.0, &[("stats_flush", 500), ("rest", 9500)]);
    let mut b = side(10_000, 54.0, &[("stats_flush", 700), ("rest", 9300)]);
    assert!(row(&changes(&a, &b), "stats_flush").significant);
    a.rows[0].share = share(500, 10_000, 8.0);
    b.rows[0].share = share(700, 10_000, 8.0);
    let found = changes(&a, &b);
    let flush = row(&found, "stats_flush");
    assert!(!flush.significant && flush.p.unwrap() > 0.05, "{flush:?}");
    assert!(flush.low < 0.0 && flush.high > 0.0);
}

#[test]
fn a_change_that_is_sure_and_tiny_is_not_called_one() {
    let a = side(10_000_000, 54.0, &[("lua", 500_000), ("rest", 9_500_000)]);
    let b = side(10_000_000, 54.5, &[("lua", 550_000), ("rest", 9_450_000)]);
    let found = changes(&a, &b);
    let lua = row(&found, "lua");
    assert!(lua.p.unwrap() < 1e-9 && !lua.significant, "{lua:?}");
    assert!(!found.totals.cpu_us_per_request.unwrap().significant);
}

/// A difference between two identical runs is not a change, however certain each of them is.
#[test]
fn a_total_has_to_change_by_more_than_runs_of_the_same() {
    let sure = |us: f64| Estimate {
        value: us,
        low: us - 0.01,
        high: us + 0.01,
    };
    for (us, significant) in [
        (54.0, false),
        (60.0, false),
        (48.0, false),
        (62.5, true),
        (40.0, true),
    ] {
        let found = total(sure(54.0), sure(us)).unwrap();
        assert_eq!(found.significant, significant, "{found:?}");
    }
}

#[test]
fn what_is_not_known_is_not_compared() {
    let mut a = side(200, 54.0, &[("lua", 1), ("rest", 199)]);
    let b = side(300, 54.0, &[("rest", 300)]);
    a.cpu_us_per_request = None;
    a.cpu_cores = Some(0.0);
    let found = changes(&a, &b);
    assert_eq!(found.totals.cpu_us_per_request, None);
    assert_eq!(found.totals.cpu_cores, None);
    let lua = row(&found, "lua");
    assert_eq!((lua.p, lua.significant, lua.a_us), (None, false, None));
    assert!(lua.b_us.is_some());
    let nothing = side(100, 54.0, &[]);
    assert!(changes(&nothing, &nothing).rows.is_empty());
}

#[test]
fn rows_come_with_the_largest_change_first() {
    let a = side(1000, 50.0, &[("x", 100), ("y", 500), ("z", 400)]);
    let b = side(1000, 50.0, &[("x", 120), ("y", 300), ("z", 580)]);
    let found = changes(&a, &b);
    let order: Vec<&str> = found.rows.iter().map(|row| row.feature.as_str()).collect();
    assert_eq!(order, ["y", "z", "x"]);
}
