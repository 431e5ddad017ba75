//! A diagnosis that has everything and a comparison, for tests of what shows them.

use profiler_model::{
    comparison::{self, CheckupComparison},
    diagnosis::{self as model, Diagnosis},
    latency::{
        Latency, LatencyActivity, LatencyActivityKind, LatencyInside, LatencyPart, LatencyPlace,
        LatencyProcess,
    },
};

fn estimate(value: f64) -> model::Estimate {
    model::Estimate {
        value,
        low: value - 1.0,
        high: value + 1.0,
    }
}

/// A way of requests with one part and one activity.
fn latency(hostile: &str) -> Latency {
    let process = LatencyProcess {
        pid: Some(7),
        name: hostile.to_owned(),
    };
    Latency {
        requests: 100,
        mean_ns: 20_000_000,
        p50_ns: 19_000_000,
        p95_ns: 30_000_000,
        p99_ns: 40_000_000,
        parts: vec![LatencyPart {
            place: LatencyPlace::Server,
            process: Some(process.clone()),
            mean_ns: 20_000_000,
            p50_ns: Some(19_000_000),
            p95_ns: Some(30_000_000),
            share_percent: 100.0,
        }],
        inside: vec![LatencyInside {
            process: process.clone(),
            mean_ns: 20_000_000,
            threads: 1,
            activities: vec![LatencyActivity {
                kind: LatencyActivityKind::OwnRequests,
                what: Some(hostile.to_owned()),
                what_ns: None,
                mean_ns: 20_000_000,
                share_percent: 100.0,
                stack: vec![hostile.to_owned()],
            }],
        }],
        text: String::new(),
        process,
    }
}

/// `hostile` stands wherever text of the target stands.
pub fn rich(hostile: &str) -> Diagnosis {
    let text = || hostile.to_owned();
    Diagnosis {
        version: Diagnosis::VERSION,
        latency: vec![latency(hostile)],
        verdict: "Tracing takes 60 % of envoy.".into(),
        rules: model::RulesInForce {
            version: 1,
            user_file: None,
        },
        processes: [7, 8]
            .map(|pid| model::DiagnosedProcess {
                pid,
                start_ticks: 1,
                comm: text(),
                exe: text(),
                container: None,
                rule_set: "envoy".into(),
                samples: 500,
                share_percent: 50.0,
            })
            .to_vec(),
        other_processes: Vec::new(),
        window: model::DiagnosedWindow {
            from_ns: 0,
            to_ns: 10_000_000_000,
            duration_s: 10.0,
        },
        coverage: model::Coverage {
            samples: 1000,
            complete_percent: 99.0,
            named_percent: 87.0,
            named_frames_percent: Some(81.4),
            attributed_percent: 90.0,
            no_symbols_percent: 3.0,
            sufficient: true,
            unnamed_modules: Vec::new(),
            supply: Some(text()),
        },
        totals: model::Totals {
            cpu_cores: Some(0.84),
            cpu_ns: Some(8_400_000_000),
            sampled_ns: 8_000_000_000,
            requests: Some(model::Requests {
                count: 60_000,
                per_second: 6000.0,
                source: "Envoy's own counters".into(),
            }),
            cpu_us_per_request: Some(estimate(140.0)),
        },
        matrix: model::Matrix {
            features: vec![model::FeatureInfo {
                id: "tracing".into(),
                title: "Tracing".into(),
                about: String::new(),
                settings: true,
            }],
            mechanisms: ["parse", "copy"]
                .map(|id| model::MechanismInfo {
                    id: id.into(),
                    title: id.into(),
                })
                .to_vec(),
            rows: vec![model::MatrixRow {
                feature: "tracing".into(),
                samples: 600,
                share_percent: 60.0,
                low: 59.0,
                high: 61.0,
            }],
            cells: vec![model::MatrixCell {
                feature: "tracing".into(),
                mechanism: "parse".into(),
                samples: 600,
                ns: 1,
                share_percent: 60.0,
                low: 59.0,
                high: 61.0,
                rules: Vec::new(),
            }],
        },
        workers: model::Workers {
            threads: vec![model::WorkerThread {
                pid: 7,
                tid: 9,
                name: text(),
                role: model::ThreadRole::Worker,
                cpu_percent: 84.0,
                share_percent: 100.0,
                run_queue_percent: None,
                contention: None,
                waits: vec![model::WorkerWait {
                    reason: "pipe_write".into(),
                    count: 3,
                    ns: 1_000_000,
                    share_percent: 0.1,
                }],
                longest_wait_ns: Some(2_500_000),
            }],
            imbalance: Some(model::Imbalance {
                busiest_percent: 84.0,
                mean_percent: 42.0,
                ratio: 2.0,
                low: 1.9,
                high: 2.1,
                significant: true,
            }),
            throttled: Some(model::Throttled {
                periods: 100,
                throttled_periods: 7,
                throttled_ns: 1_500_000,
            }),
            contention: Some(contention(hostile)),
        },
        event_loop: Some(model::EventLoopReport {
            lost: 0,
            threshold_ms: 20,
            threads: Vec::new(),
            stalls: vec![model::LoopStall {
                tid: 9,
                name: text(),
                start_ns: 0,
                duration_ns: 60_000_000,
                stack: vec![text()],
                samples: 3,
            }],
        }),
        network: Some(model::NetworkReport {
            connections_opened: 12,
            connections_per_request: Some(0.5),
            retransmit_percent: None,
            resets: 0,
            receive_wait_ns: Some(model::WaitLengths {
                p50: 1_000_000,
                p99: 2_000_000,
            }),
        }),
        findings: vec![model::Finding {
            id: "tracing".into(),
            title: "Every request is traced".into(),
            severity: model::Severity::High,
            share_percent: 60.0,
            low: 59.0,
            high: 61.0,
            saving: Some(model::Saving {
                percent: 60.0,
                us_per_request: Some(84.0),
            }),
            evidence: vec![model::EvidenceFrame {
                frame: text(),
                share_percent: 41.0,
                samples: 410,
            }],
            reason: "Spans are made for every request.".into(),
            configured: Some(text()),
            settings: vec![model::FindingSetting {
                system: "istio".into(),
                key: "tracing.sampling".into(),
                yaml: "tracing:\n  sampling: 1.0".into(),
                scope: "mesh".into(),
                side_effects: "Fewer traces.".into(),
                undo: "Put it back.".into(),
            }],
            confidence: model::Confidence::Inferred,
            cells: Vec::new(),
        }],
        good: vec![model::GoodNews {
            id: "resets".into(),
            title: "No resets".into(),
            text: "none in 10 s".into(),
        }],
        not_measured: vec![model::Measurement::Latency],
        configuration: Some(model::Configuration {
            source: "Envoy".into(),
            version: Some(text()),
            concurrency: Some(2),
            items: vec![model::Configured {
                key: "tracing.sampling".into(),
                value: text(),
            }],
        }),
        limits: vec![format!("not known: {hostile}")],
    }
}

fn numbers(ns: u64) -> comparison::LatencyNumbers {
    comparison::LatencyNumbers {
        requests: 1000,
        mean_ns: ns,
        p50_ns: ns,
        p95_ns: ns,
        p99_ns: ns,
    }
}

pub fn changed() -> CheckupComparison {
    CheckupComparison {
        programs: vec!["envoy".into()],
        other_programs: vec!["mesh-server".into()],
        latency: Some(comparison::ComparedLatency {
            process: "envoy".into(),
            a: numbers(118_000_000),
            b: numbers(18_000_000),
        }),
        not_compared: None,
        totals: comparison::ComparedTotals {
            cpu_us_per_request: Some(comparison::ComparedTotal {
                a: 140.0,
                b: 56.0,
                change_percent: -60.0,
                low: -62.0,
                high: -58.0,
                significant: true,
            }),
            cpu_cores: None,
        },
        rows: vec![comparison::ComparedRow {
            feature: "tracing".into(),
            title: "Tracing".into(),
            a_percent: 60.0,
            b_percent: 0.0,
            a_us: Some(84.0),
            b_us: None,
            change: -60.0,
            low: -62.0,
            high: -58.0,
            p: Some(0.0),
            significant: true,
        }],
        findings: comparison::ComparedFindings {
            gone: vec![comparison::FindingName {
                id: "tracing".into(),
                title: "Every request is traced".into(),
            }],
            ..comparison::ComparedFindings::default()
        },
        verdict: "It fell.".into(),
    }
}

/// One process with a name that it chose, and what is not known.
fn contention(hostile: &str) -> profiler_model::CpuContention {
    profiler_model::CpuContention {
        waited_ns: 3_000_000,
        known_ns: 2_000_000,
        by_container: Vec::new(),
        by_pod: vec![profiler_model::CpuHolderGroup {
            kind: profiler_model::CpuHolderGroupKind::Pod,
            name: Some(hostile.to_owned()),
            ns: 2_000_000,
            share_percent: 66.7,
        }],
        holders: vec![profiler_model::CpuHolderTime {
            kind: profiler_model::CpuHolderKind::Process,
            title: hostile.to_owned(),
            name: Some("spin".to_owned()),
            pid: Some(8),
            container: None,
            container_name: Some("shop/cart/app".to_owned()),
            ns: 2_000_000,
            share_percent: 66.7,
        }],
    }
}
