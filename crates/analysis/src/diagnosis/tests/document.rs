//! What a diagnosis reports about evidence.

use profiler_model::{
    Clock, ConfigurationItem, Observed, ObservedConfiguration, ObservedProcess, ObservedRequests,
    ObservedThread, ObservedThrottling, ProcessKey, Profile, ProfileBuilder, ThreadState,
    TwoReadings,
    diagnosis::{
        Confidence, Diagnosis, EventLoopReport, Finding, LoopLengths, LoopStall, LoopThread,
        Severity,
    },
};

use super::{Sample, embedded, profile};
use crate::{
    diagnosis::{DiagnosisInput, diagnose},
    idle::IdleRules,
};

const TRACER: &str = "i:Envoy::Extensions::Tracers::Zipkin::Span [vslot 3]";
pub(super) const CODEC: &str = "i:Envoy::Http::Http1::ConnectionImpl [vslot 16]";
pub(super) const SECONDS: u64 = 10;

/// Ten seconds, each with `tracer` samples in the tracer, `codec` in the codec and `unnamed` without.
pub(super) fn mixed(tracer: u64, codec: u64, unnamed: u64) -> Profile {
    let mut samples = Vec::new();
    for second in 0..SECONDS {
        let bucket = u32::try_from(second * 50).unwrap();
        for (frames, count) in [
            (vec![TRACER, CODEC], tracer),
            (vec![CODEC], codec),
            (vec!["envoy+0x10", "envoy+0x20", "start_thread"], unnamed),
        ] {
            if count > 0 {
                samples.push(Sample {
                    bucket,
                    count,
                    ..Sample::of(&frames)
                });
            }
        }
    }
    profile(&samples, SECONDS)
}

pub(super) fn of(input: &DiagnosisInput<'_>) -> Diagnosis {
    diagnose(&embedded(), &IdleRules::new(None).unwrap(), input)
}

pub(super) fn of_samples(profile: &Profile) -> Diagnosis {
    of(&DiagnosisInput {
        on_cpu: Some(profile),
        ..DiagnosisInput::default()
    })
}

pub(super) fn finding<'a>(diagnosis: &'a Diagnosis, id: &str) -> &'a Finding {
    let found = diagnosis.findings.iter().find(|finding| finding.id == id);
    found.unwrap_or_else(|| panic!("no {id} in {:#?}", diagnosis.findings))
}

/// A second of CPU time in ten seconds, 100,000 requests, and a quota that was used up.
pub(super) fn observed() -> Observed {
    let counted = |last: u64| TwoReadings {
        first: 1_000,
        last: 1_000 + last,
    };
    Observed {
        from_ns: 0,
        to_ns: SECONDS * 1_000_000_000,
        gaps: Vec::new(),
        processes: vec![ObservedProcess {
            key: ProcessKey {
                pid: 7,
                start_ticks: 1,
            },
            from_ns: 0,
            to_ns: SECONDS * 1_000_000_000,
            cpu_ns: counted(1_000_000_000),
            threads: vec![ObservedThread {
                tid: 8,
                name: "wrk:worker_0".to_owned(),
                cpu_ns: counted(900_000_000),
                run_queue_ns: Some(counted(2_000_000_000)),
            }],
            throttled: Some(ObservedThrottling {
                periods: 100,
                throttled_periods: 30,
                throttled_ns: 700_000_000,
            }),
            requests: Some(ObservedRequests {
                count: 100_000,
                source: "Envoy's own counters".to_owned(),
            }),
            configuration: Some(ObservedConfiguration {
                source: "admin interface".to_owned(),
                version: Some("1.40.0".to_owned()),
                concurrency: Some(1),
                items: vec![ConfigurationItem {
                    key: "tracing.sampling".to_owned(),
                    value: "100 %".to_owned(),
                }],
            }),
        }],
    }
}

#[test]
fn the_largest_saving_is_first_with_evidence_and_settings() {
    let diagnosis = of_samples(&mixed(60, 40, 0));
    let tracing = &diagnosis.findings[0];
    assert_eq!(tracing.id, "tracing");
    assert_eq!(tracing.severity, Severity::High);
    assert!((tracing.share_percent - 60.0).abs() < 1e-9);
    assert!(tracing.low > 55.0 && tracing.high < 65.0, "{tracing:?}");
    let saving = tracing.saving.unwrap();
    assert!(saving.percent <= tracing.share_percent);
    assert_eq!(saving.us_per_request, None);
    assert_eq!(tracing.evidence[0].frame, &TRACER[2..]);
    assert_eq!(tracing.evidence[0].samples, 600);
    assert_eq!(tracing.confidence, Confidence::Inferred);
    let systems: Vec<&str> = tracing
        .settings
        .iter()
        .map(|setting| setting.system.as_str())
        .collect();
    assert_eq!(systems, ["istio", "istio", "envoy"]);
    assert!(
        diagnosis.verdict.starts_with("Tracing: 60.0 % ("),
        "{}",
        diagnosis.verdict
    );
    assert_eq!(diagnosis.processes[0].rule_set, "envoy");
}

#[test]
fn what_is_usual_is_no_finding() {
    let diagnosis = of_samples(&mixed(0, 100, 0));
    assert!(diagnosis.findings.is_empty(), "{:#?}", diagnosis.findings);
    assert!(
        diagnosis
            .verdict
            .starts_with("No avoidable CPU cost of envoy (7) is certain to be above 1 %"),
        "{}",
        diagnosis.verdict
    );
    assert!(
        diagnosis.verdict.contains("HTTP codec (100 %)"),
        "{}",
        diagnosis.verdict
    );
    let good: Vec<&str> = diagnosis.good.iter().map(|good| good.id.as_str()).collect();
    assert_eq!(good, ["tracing", "tls_handshake"]);
    assert_eq!(
        diagnosis.good[0].text,
        "None of 1,000 samples is in a tracer."
    );
}

#[test]
fn the_threshold_is_that_of_the_lower_end() {
    // One sample in a hundred is 1 %, but may be less.
    assert!(of_samples(&mixed(1, 99, 0)).findings.is_empty());
    let diagnosis = of_samples(&mixed(3, 97, 0));
    assert_eq!(finding(&diagnosis, "tracing").severity, Severity::Low);
}

#[test]
fn too_few_names_are_said_with_what_to_supply() {
    let diagnosis = of_samples(&mixed(10, 30, 60));
    assert!(!diagnosis.coverage.sufficient);
    assert!((diagnosis.coverage.named_percent - 40.0).abs() < 1e-9);
    assert!((diagnosis.coverage.no_symbols_percent - 60.0).abs() < 1e-9);
    assert!(
        diagnosis
            .verdict
            .starts_with("Only 40 % of the samples of envoy (7) can be diagnosed"),
        "{}",
        diagnosis.verdict
    );
    let supply = diagnosis.coverage.supply.as_deref().unwrap();
    assert!(
        supply.contains("/usr/bin/envoy (build-id abcd)"),
        "{supply}"
    );
    assert!(
        diagnosis
            .limits
            .iter()
            .any(|limit| limit.contains("only 40 %") && limit.contains(supply))
    );
    assert_eq!(
        diagnosis.coverage.unnamed_modules[0].build_id.as_deref(),
        Some("abcd")
    );
    // Code without names is never called good.
    assert!(diagnosis.good.is_empty());
    let enough = of_samples(&mixed(0, 61, 39));
    assert!(enough.coverage.sufficient && enough.coverage.supply.is_none());
}

#[test]
fn without_samples_nothing_is_made_up() {
    let diagnosis = of(&DiagnosisInput::default());
    assert_eq!(
        diagnosis.verdict,
        "The target has no samples on a CPU: it did not run, or was not sampled."
    );
    assert!(diagnosis.findings.is_empty() && diagnosis.matrix.cells.is_empty());
    assert_eq!(diagnosis.totals.cpu_ns, None);
    assert_eq!(diagnosis.totals.requests, None);
    assert!(diagnosis.network.is_none() && diagnosis.event_loop.is_none());
    for missing in [
        "accounting",
        "waits were not recorded",
        "connections were not watched",
        "Stalls",
        "no samples",
        "configured",
    ] {
        assert!(
            diagnosis.limits.iter().any(|limit| limit.contains(missing)),
            "{missing}: {:#?}",
            diagnosis.limits
        );
    }
}

#[test]
fn counters_give_the_cost_of_each_request() {
    let (profile, observed) = (mixed(60, 40, 0), observed());
    let diagnosis = of(&DiagnosisInput {
        on_cpu: Some(&profile),
        observed: Some(&observed),
        ..DiagnosisInput::default()
    });
    let totals = &diagnosis.totals;
    assert_eq!(totals.cpu_ns, Some(1_000_000_000));
    assert!((totals.cpu_cores.unwrap() - 0.1).abs() < 1e-9);
    let each = totals.cpu_us_per_request.unwrap();
    assert!((each.value - 10.0).abs() < 1e-9);
    assert!(each.low < each.value && each.value < each.high);
    let tracing = finding(&diagnosis, "tracing");
    assert!((tracing.saving.unwrap().us_per_request.unwrap() - 6.0).abs() < 1e-9);
    assert_eq!(
        tracing.configured.as_deref(),
        Some("tracing.sampling: 100 %")
    );
    let throttled = finding(&diagnosis, "throttled");
    assert!((throttled.share_percent - 30.0).abs() < 1e-9);
    assert_eq!(throttled.saving, None);
    assert!(
        throttled
            .reason
            .starts_with("The quota was used up in 30 of 100 periods"),
        "{}",
        throttled.reason
    );
    let thread = &diagnosis.workers.threads[0];
    assert!((thread.cpu_percent - 9.0).abs() < 1e-9);
    assert!((thread.run_queue_percent.unwrap() - 20.0).abs() < 1e-9);
    assert_eq!(
        finding(&diagnosis, "run_queue").confidence,
        Confidence::Exact
    );
}

#[test]
fn settings_are_those_of_systems_that_the_process_has() {
    let observed = observed();
    let of_process = |process| {
        let mut sample = Sample::of(&[CODEC]);
        sample.process = process;
        let samples = profile(&[sample], SECONDS);
        let diagnosis = of(&DiagnosisInput {
            on_cpu: Some(&samples),
            observed: Some(&observed),
            ..DiagnosisInput::default()
        });
        let found = finding(&diagnosis, "run_queue");
        let systems = found.settings.iter().map(|setting| setting.system.clone());
        systems.collect::<Vec<_>>()
    };
    assert_eq!(of_process("envoy"), ["istio"]);
    assert!(of_process("python3").is_empty());
}

#[test]
fn waits_give_context_switches_and_leave_idle_ones_out() {
    let on_cpu = mixed(0, 100, 0);
    let wait = |frames: &[&'static str], state, count| Sample {
        state,
        count,
        ..Sample::of(frames)
    };
    let waits = profile(
        &[
            wait(
                &["k:schedule", "k:do_epoll_wait", "libc.so.6!epoll_wait"],
                ThreadState::Interruptible,
                600,
            ),
            wait(
                &[
                    "k:schedule",
                    "k:pipe_write",
                    "i:Envoy::Extensions::AccessLoggers::File::FileAccessLog [vslot 3]",
                ],
                ThreadState::Interruptible,
                280,
            ),
            wait(
                &["k:schedule", "i:Envoy::Router::Filter [vslot 6]"],
                ThreadState::Preempted,
                120,
            ),
        ],
        SECONDS,
    );
    let diagnosis = of(&DiagnosisInput {
        on_cpu: Some(&on_cpu),
        off_cpu: Some(&waits),
        ..DiagnosisInput::default()
    });
    let switches = finding(&diagnosis, "access_log_switches");
    assert!((switches.share_percent - 28.0).abs() < 1e-9, "{switches:?}");
    assert!(switches.reason.starts_with("280 of 1000 context switches."));
    let thread = &diagnosis.workers.threads[0];
    let reasons: Vec<&str> = thread
        .waits
        .iter()
        .map(|wait| wait.reason.as_str())
        .collect();
    assert_eq!(reasons, ["pipe"], "the event loop's own waits are idle");
    assert!((thread.run_queue_percent.unwrap() - 1.2).abs() < 1e-9);
    assert!(
        !diagnosis
            .limits
            .iter()
            .any(|limit| limit.contains("waits were not recorded"))
    );
}

#[test]
fn stalls_are_reported_with_the_stack_that_held() {
    let samples = mixed(0, 100, 0);
    let report = EventLoopReport {
        lost: 0,
        threshold_ms: 20,
        threads: vec![LoopThread {
            tid: 8,
            name: "wrk:worker_0".to_owned(),
            loops: 1000,
            loop_ns: Some(LoopLengths {
                p50: 1,
                p99: 2,
                max: 3,
            }),
            stalls: 4,
            stalled_ns: 500_000_000,
        }],
        stalls: vec![LoopStall {
            tid: 8,
            name: "wrk:worker_0".to_owned(),
            start_ns: 5,
            duration_ns: 200_000_000,
            stack: vec!["hold\u{202e}cpu".to_owned()],
            samples: 3,
        }],
    };
    let input = DiagnosisInput {
        on_cpu: Some(&samples),
        event_loop: Some(&report),
        ..DiagnosisInput::default()
    };
    let diagnosis = of(&input);
    let stalls = finding(&diagnosis, "event_loop_stalls");
    assert!((stalls.share_percent - 5.0).abs() < 1e-9);
    assert_eq!(
        stalls.evidence[0].frame, "hold\\u{202e}cpu",
        "marks that turn text are seen"
    );
    assert_eq!(diagnosis.event_loop.as_ref(), Some(&report));
    let gappy = EventLoopReport {
        lost: 3,
        ..report.clone()
    };
    let said = of(&DiagnosisInput {
        event_loop: Some(&gappy),
        ..DiagnosisInput::default()
    })
    .limits;
    let missing = "Stalls of event loops: 3 threads or stalls are missing.";
    assert!(said.iter().any(|limit| limit == missing), "{said:?}");
    let calm = EventLoopReport {
        threads: vec![LoopThread {
            stalls: 0,
            stalled_ns: 0,
            ..report.threads[0].clone()
        }],
        stalls: Vec::new(),
        ..report
    };
    let diagnosis = of(&DiagnosisInput {
        event_loop: Some(&calm),
        ..input
    });
    let good = diagnosis
        .good
        .iter()
        .find(|good| good.id == "event_loop_stalls")
        .unwrap();
    assert_eq!(good.text, "No stall in 1,000 rounds of the event loops.");
}

#[test]
fn one_busy_worker_is_found_and_equal_ones_are_good() {
    let workers = |busy: u64, others: u64| {
        let mut samples = Vec::new();
        for second in 0..SECONDS {
            for (tid, count) in [(8, busy), (9, others), (10, others)] {
                samples.push(Sample {
                    tid,
                    count,
                    bucket: u32::try_from(second * 50).unwrap(),
                    ..Sample::of(&[CODEC])
                });
            }
        }
        of_samples(&profile(&samples, SECONDS))
    };
    let uneven = workers(400, 100);
    let imbalance = uneven.workers.imbalance.unwrap();
    assert!(
        imbalance.significant && (imbalance.ratio - 2.0).abs() < 1e-9,
        "{imbalance:?}"
    );
    assert!((finding(&uneven, "imbalance").share_percent - 100.0).abs() < 1e-9);
    let even = workers(200, 200);
    assert!(!even.workers.imbalance.unwrap().significant);
    let is_good = |diagnosis: &Diagnosis| diagnosis.good.iter().any(|good| good.id == "imbalance");
    assert!(is_good(&even));
    // Four times as busy, and idle for nine tenths of the time: neither a finding nor praise.
    let idle = workers(80, 20);
    assert!(idle.workers.imbalance.unwrap().significant);
    assert!(!idle.findings.iter().any(|found| found.id == "imbalance") && !is_good(&idle));
}

#[test]
fn each_filter_has_a_finding_of_its_own() {
    let samples: Vec<Sample<'_>> = ["RBACFilter::X", "Fault::FaultFilter", "Cors::CorsFilter"]
        .into_iter()
        .map(|class| format!("i:Envoy::Extensions::HttpFilters::{class} [vslot 2]"))
        .map(|name| Sample {
            count: 200,
            ..Sample::of(&[name.leak()])
        })
        .collect();
    let diagnosis = of_samples(&profile(&samples, 1));
    let ids: Vec<&str> = diagnosis
        .findings
        .iter()
        .map(|finding| finding.id.as_str())
        .collect();
    assert_eq!(ids, ["filter_cors", "filter_fault", "filter_rbac"]);
    let cors = finding(&diagnosis, "filter_cors");
    assert_eq!(cors.title, "Filter cors");
    assert!(cors.settings[0].yaml.contains("envoy.filters.http.cors"));
    assert_eq!(cors.cells[0].feature.as_deref(), Some("filter:cors"));
    let row = &diagnosis
        .matrix
        .features
        .iter()
        .find(|feature| feature.id == "filter:cors")
        .unwrap();
    assert!(row.settings && row.title == "Filter cors");
}

#[test]
fn connections_are_counted_at_the_ends_that_the_process_has() {
    use profiler_model::{
        Address, Edge, EdgeKey, EdgeNamespaces, EdgeTable, Endpoint, SideMetrics,
    };
    let end = |pid: u32| Endpoint {
        pid: Some(pid),
        start_ticks: Some(1),
        comm: "x".to_owned(),
        container: None,
        address: Address::Ip([127, 0, 0, 1].into()),
    };
    let mut client = SideMetrics {
        connections: 70,
        retransmits: 0,
        ..SideMetrics::default()
    };
    client.write.count = 5_000;
    for _connection in 0..60 {
        client.connect.add(1, 1_000);
    }
    let edge = |from: u32, to: u32| Edge {
        key: EdgeKey {
            client: end(from),
            server: end(to),
            server_port: Some(80),
            original_destination: None,
        },
        client_port: None,
        client_name: None,
        server_name: None,
        client: Some(client.clone()),
        server: None,
        namespaces: EdgeNamespaces::default(),
    };
    let table = EdgeTable {
        // The second is between others.
        edges: vec![edge(7, 99), edge(98, 99)],
        ..EdgeTable::default()
    };
    let (samples, observed) = (mixed(0, 100, 0), observed());
    let diagnosis = of(&DiagnosisInput {
        on_cpu: Some(&samples),
        edges: Some(&table),
        observed: Some(&observed),
        ..DiagnosisInput::default()
    });
    let network = diagnosis.network.as_ref().unwrap();
    assert_eq!(network.connections_opened, 60);
    assert!((network.connections_per_request.unwrap() - 0.0006).abs() < 1e-12);
    assert_eq!(
        network.retransmit_percent.unwrap().to_bits(),
        0.0_f64.to_bits()
    );
    let good = diagnosis
        .good
        .iter()
        .find(|good| good.id == "retransmits")
        .unwrap();
    assert_eq!(good.text, "No segment was retransmitted in 5,000 writes.");
}

/// A wall-clock profile in which 3 s of a worker were not observed, with other samples of `tid`.
fn unsampled(tid: u32) -> Profile {
    let rest = profile(
        &[Sample {
            count: 3_000,
            tid,
            ..Sample::of(&["m:[on CPU, not sampled]"])
        }],
        SECONDS,
    );
    let whole = mixed(0, 100, 0);
    let mut builder = ProfileBuilder::new(whole.origin_ns, whole.bucket_ns, Clock::Wall);
    builder.merge(&whole);
    builder.merge(&rest);
    builder.finish()
}

#[test]
fn cpu_time_between_two_samples_belongs_to_the_samples_of_the_thread() {
    let diagnosis = of_samples(&unsampled(8));
    assert_eq!(diagnosis.coverage.samples, 1000);
    assert!((diagnosis.coverage.named_percent - 100.0).abs() < 1e-9);
    assert_eq!(diagnosis.totals.sampled_ns, 4_000_000_000);
    let said = |limit: &String| limit.starts_with("75 % of the CPU time lies between two samples");
    assert!(diagnosis.limits.iter().any(said), "{:#?}", diagnosis.limits);
    let thread = &diagnosis.workers.threads[0];
    assert!((thread.cpu_percent - 40.0).abs() < 1e-9, "{thread:?}");
}

#[test]
fn cpu_time_of_threads_without_a_sample_is_not_in_the_matrix() {
    let diagnosis = of_samples(&unsampled(4711));
    assert_eq!(diagnosis.totals.sampled_ns, 1_000_000_000);
    assert!((diagnosis.coverage.named_percent - 100.0).abs() < 1e-9);
    let said = |limit: &String| limit.starts_with("75 % of the CPU time is that of threads");
    assert!(diagnosis.limits.iter().any(said), "{:#?}", diagnosis.limits);
}
