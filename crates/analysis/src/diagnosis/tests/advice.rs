//! Which findings a diagnosis gives, in which order, and what it advises.

use profiler_model::{
    Address, ConfigurationItem, Edge, EdgeKey, EdgeNamespaces, EdgeTable, Endpoint, Observed,
    SideMetrics, TwoReadings,
    diagnosis::{Diagnosis, EventLoopReport, Finding, LoopStall, LoopThread},
};

use super::{
    Sample,
    document::{CODEC, SECONDS, finding, mixed, observed, of, of_samples},
    profile,
};
use crate::diagnosis::DiagnosisInput;

const HANDSHAKE: &str = "i:external/boringssl+/ssl/handshake_server.cc";

/// The observed process with other workers and tracing.
fn configured(concurrency: u64, sampling: &[&str]) -> Observed {
    let mut observed = observed();
    let configuration = observed.processes[0].configuration.as_mut().unwrap();
    configuration.concurrency = Some(concurrency);
    configuration.items = sampling
        .iter()
        .map(|value| ConfigurationItem {
            key: "tracing.sampling".to_owned(),
            value: (*value).to_owned(),
        })
        .collect();
    observed
}

fn keys_of(diagnosis: &Diagnosis, id: &str) -> Vec<String> {
    let settings = finding(diagnosis, id).settings.iter();
    settings.map(|setting| setting.key.clone()).collect()
}

#[test]
fn advice_that_is_in_force_already_is_not_given() {
    let samples = mixed(60, 40, 0);
    let diagnosed = |observed: &Observed| {
        of(&DiagnosisInput {
            on_cpu: Some(&samples),
            observed: Some(observed),
            ..DiagnosisInput::default()
        })
    };
    let two = diagnosed(&configured(2, &["1 % (2 times)", "off"]));
    let queue = finding(&two, "run_queue");
    assert_eq!(queue.configured.as_deref(), Some("concurrency: 2"));
    assert!(queue.settings.is_empty(), "{:?}", queue.settings);
    assert_eq!(keys_of(&two, "tracing"), [""; 0]);

    let four = diagnosed(&configured(4, &["1 %", "100 %"]));
    assert_eq!(keys_of(&four, "run_queue"), ["ProxyConfig concurrency"]);
    assert_eq!(keys_of(&four, "tracing").len(), 3);
    let flushing = "Envoy::Server::MetricSnapshotImpl::snapCounters(Envoy::Stats::Store&)";
    let seconds = (0..10).map(|second| Sample {
        bucket: second * 50,
        count: 100,
        ..Sample::of(&[flushing])
    });
    let flushed = profile(&seconds.collect::<Vec<_>>(), SECONDS);
    let intervals = |value: &str| {
        let mut observed = configured(2, &[]);
        let configuration = observed.processes[0].configuration.as_mut().unwrap();
        configuration.items.push(ConfigurationItem {
            key: "stats.flush_interval".to_owned(),
            value: value.to_owned(),
        });
        let diagnosis = of(&DiagnosisInput {
            on_cpu: Some(&flushed),
            observed: Some(&observed),
            ..DiagnosisInput::default()
        });
        keys_of(&diagnosis, "stats_flush")
    };
    let hosts = "Sidecar spec.egress[].hosts";
    assert_eq!(intervals("60s"), [hosts]);
    assert_eq!(intervals("5s"), [hosts, "stats_flush_interval"]);
    // A setting that is not reported is not in force.
    let mut unknown = observed();
    unknown.processes[0].configuration = None;
    assert_eq!(keys_of(&diagnosed(&unknown), "run_queue").len(), 1);
}

#[test]
fn the_headline_is_the_largest_saving_that_something_can_be_done_about() {
    let samples = mixed(20, 80, 0);
    let mut waits = configured(2, &["100 %"]);
    // Four seconds of ten without a CPU, and nothing to change about it.
    waits.processes[0].threads[0].run_queue_ns = Some(TwoReadings {
        first: 0,
        last: 4_000_000_000,
    });
    let diagnosis = of(&DiagnosisInput {
        on_cpu: Some(&samples),
        observed: Some(&waits),
        ..DiagnosisInput::default()
    });
    let ids: Vec<&str> = diagnosis
        .findings
        .iter()
        .map(|finding| finding.id.as_str())
        .collect();
    assert_eq!(ids, ["tracing", "run_queue", "throttled"]);
    assert!(
        diagnosis.verdict.starts_with("Tracing: 20.0 % (")
            && diagnosis
                .verdict
                .ends_with("; also found: Threads wait for a CPU and 1 more."),
        "{}",
        diagnosis.verdict
    );
}

#[test]
fn stalls_that_wait_for_a_cpu_are_told_once() {
    let samples = mixed(0, 100, 0);
    let stall = |leaf: &str, ms: u64| LoopStall {
        tid: 8,
        name: "wrk:worker_0".to_owned(),
        start_ns: 5,
        duration_ns: ms * 1_000_000,
        stack: vec![leaf.to_owned()],
        samples: 1,
    };
    let report = |stalls: Vec<LoopStall>| EventLoopReport {
        lost: 0,
        threshold_ms: 20,
        threads: vec![LoopThread {
            tid: 8,
            name: "wrk:worker_0".to_owned(),
            loops: 1000,
            loop_ns: None,
            stalls: stalls.len() as u64,
            stalled_ns: stalls.iter().map(|stall| stall.duration_ns).sum(),
        }],
        stalls,
    };
    let queued = vec![
        stall("[runnable: preempted]", 400),
        stall("[runnable: preempted]", 300),
        stall("[runnable: woken]", 200),
    ];
    let waits = configured(4, &[]);
    let diagnosed = |report: &EventLoopReport, observed: Option<&Observed>| {
        of(&DiagnosisInput {
            on_cpu: Some(&samples),
            event_loop: Some(report),
            observed,
            ..DiagnosisInput::default()
        })
    };
    let only_queued = report(queued.clone());
    let found = diagnosed(&only_queued, Some(&waits));
    assert!(found.findings.iter().any(|found| found.id == "run_queue"));
    let is_stall = |found: &Finding| found.id == "event_loop_stalls";
    assert!(
        !found.findings.iter().any(is_stall),
        "{:#?}",
        found.findings
    );
    // Without other evidence of them they are stalls like others, each frame once.
    let found = diagnosed(&only_queued, None);
    let stalls = finding(&found, "event_loop_stalls");
    let frames: Vec<(&str, u64)> = stalls
        .evidence
        .iter()
        .map(|frame| (frame.frame.as_str(), frame.samples))
        .collect();
    assert_eq!(
        frames,
        [("[runnable: preempted]", 2), ("[runnable: woken]", 1)]
    );
    assert!((stalls.share_percent - 9.0).abs() < 1e-9);
    // Others stay a finding beside the wait for a CPU.
    let mut all = queued;
    all.push(stall("hold_cpu", 500));
    let found = diagnosed(&report(all), Some(&waits));
    let stalls = finding(&found, "event_loop_stalls");
    assert!((stalls.share_percent - 5.0).abs() < 1e-9, "{stalls:?}");
    assert!(
        stalls.reason.contains("20 ms 1 times, 500 ms in all"),
        "{}",
        stalls.reason
    );
    assert_eq!(stalls.evidence.len(), 1);
}

#[test]
fn a_clean_verdict_says_what_was_not_measured() {
    let samples = mixed(0, 100, 0);
    let diagnosis = of_samples(&samples);
    assert!(
        diagnosis.verdict.ends_with(
            "; not measured: request latency, waits, connections, event-loop stalls, accounted CPU \
             time, request counts, configuration."
        ),
        "{}",
        diagnosis.verdict
    );
    let mut calm = configured(2, &[]);
    calm.processes[0].throttled = None;
    calm.processes[0].threads[0].run_queue_ns = None;
    let diagnosis = of(&DiagnosisInput {
        on_cpu: Some(&samples),
        observed: Some(&calm),
        ..DiagnosisInput::default()
    });
    assert!(
        diagnosis
            .verdict
            .ends_with("; not measured: request latency, waits, connections, event-loop stalls."),
        "{}",
        diagnosis.verdict
    );
}

#[test]
fn connections_that_do_not_last_are_told_once_with_their_handshakes() {
    let end = |pid: u32| Endpoint {
        pid: Some(pid),
        start_ticks: Some(1),
        comm: "x".to_owned(),
        container: None,
        address: Address::Ip([127, 0, 0, 1].into()),
    };
    let mut client = SideMetrics::default();
    for _connection in 0..20_000 {
        client.connect.add(1, 1_000);
    }
    let table = EdgeTable {
        edges: vec![Edge {
            key: EdgeKey {
                client: end(7),
                server: end(99),
                server_port: Some(443),
                original_destination: None,
            },
            client_port: None,
            client_name: None,
            server_name: None,
            client: Some(client),
            server: None,
            namespaces: EdgeNamespaces::default(),
        }],
        ..EdgeTable::default()
    };
    let observed = observed();
    let diagnosed = |handshakes: u64| {
        let mut samples = Vec::new();
        for second in 0..SECONDS {
            let bucket = u32::try_from(second * 50).unwrap();
            for (frame, count) in [(HANDSHAKE, handshakes), (CODEC, 100)] {
                if count > 0 {
                    samples.push(Sample {
                        bucket,
                        count,
                        ..Sample::of(&[frame])
                    });
                }
            }
        }
        let samples = profile(&samples, SECONDS);
        of(&DiagnosisInput {
            on_cpu: Some(&samples),
            edges: Some(&table),
            observed: Some(&observed),
            ..DiagnosisInput::default()
        })
    };
    let numbers = "20,000 new connections for 100,000 requests.";
    let both = diagnosed(40);
    let handshakes = finding(&both, "tls_handshake");
    assert!(
        handshakes.reason.ends_with(numbers),
        "{}",
        handshakes.reason
    );
    let is_connections = |found: &Finding| found.id == "new_connections";
    assert!(!both.findings.iter().any(is_connections));
    // Without TLS it is a finding of its own.
    let alone = diagnosed(0);
    assert!(
        finding(&alone, "new_connections")
            .reason
            .starts_with(numbers)
    );
}

#[test]
fn the_busiest_worker_has_the_number_that_the_threads_have() {
    let mut samples = Vec::new();
    for second in 0..SECONDS {
        for (tid, count) in [(8, 80), (9, 60)] {
            samples.push(Sample {
                tid,
                count,
                bucket: u32::try_from(second * 50).unwrap(),
                ..Sample::of(&[CODEC])
            });
        }
    }
    let samples = profile(&samples, SECONDS);
    let mut observed = observed();
    let threads = &mut observed.processes[0].threads;
    threads.push(threads[0].clone());
    threads[1].tid = 9;
    // The kernel accounts more than was sampled: 9.4 and 6.6 % of ten seconds.
    for (thread, ms) in threads.iter_mut().zip([940, 660]) {
        thread.cpu_ns = TwoReadings {
            first: 0,
            last: ms * 1_000_000,
        };
    }
    let diagnosis = of(&DiagnosisInput {
        on_cpu: Some(&samples),
        observed: Some(&observed),
        ..DiagnosisInput::default()
    });
    let used: Vec<f64> = diagnosis
        .workers
        .threads
        .iter()
        .map(|thread| thread.cpu_percent)
        .collect();
    let found = diagnosis.workers.imbalance.unwrap();
    assert_eq!(used, [9.4, 6.6]);
    assert_eq!(found.busiest_percent.to_bits(), used[0].to_bits());
    assert!((found.mean_percent - 8.0).abs() < 1e-9, "{found:?}");
    assert!((found.ratio - 9.4 / 8.0).abs() < 1e-9, "{found:?}");
    assert!(
        found.low < found.ratio && found.ratio < found.high,
        "{found:?}"
    );
}

#[test]
fn names_are_counted_as_for_the_result_of_a_task() {
    let samples = mixed(20, 20, 60);
    let coverage = of_samples(&samples).coverage;
    let names = crate::render::quality::names(&samples);
    let expected = names.percent(names.exact + names.inferred);
    let found = coverage.named_frames_percent.unwrap();
    assert_eq!(found.to_bits(), expected.to_bits());
    // Of 240 frames in a second 120 have names; of 100 samples 40 can be diagnosed.
    assert!((found - 50.0).abs() < 1e-9 && (coverage.named_percent - 40.0).abs() < 1e-9);
}
