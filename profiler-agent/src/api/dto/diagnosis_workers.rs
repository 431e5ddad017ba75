//! Threads, event loops and connections of a diagnosis.

use profiler_model::diagnosis as model;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The threads that do the work.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct DiagnosedWorkers {
    /// Most CPU time first.
    pub(crate) threads: Vec<WorkerThread>,
    /// Null: fewer than two workers, or too few samples.
    #[schema(required)]
    pub(crate) imbalance: Option<WorkerImbalance>,
    /// Null: no quota, or not observed.
    #[schema(required)]
    pub(crate) throttled: Option<CpuThrottling>,
}

impl From<model::Workers> for DiagnosedWorkers {
    fn from(value: model::Workers) -> Self {
        let model::Workers {
            threads,
            imbalance,
            throttled,
        } = value;
        Self {
            threads: threads.into_iter().map(Into::into).collect(),
            imbalance: imbalance.map(Into::into),
            throttled: throttled.map(Into::into),
        }
    }
}

/// One thread.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct WorkerThread {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) name: String,
    pub(crate) role: ThreadRole,
    /// Of one CPU: the kernel's accounting where it was observed, otherwise from samples.
    pub(crate) cpu_percent: f64,
    /// Of all samples.
    pub(crate) share_percent: f64,
    /// Of the window, ready to run without a CPU; Null when nobody measured it.
    #[schema(required)]
    pub(crate) run_queue_percent: Option<f64>,
    /// Waits that are not idle, most time first; empty also when waits were not watched.
    pub(crate) waits: Vec<WorkerWait>,
    #[schema(required)]
    pub(crate) longest_wait_ns: Option<u64>,
}

impl From<model::WorkerThread> for WorkerThread {
    fn from(value: model::WorkerThread) -> Self {
        let model::WorkerThread {
            pid,
            tid,
            name,
            role,
            cpu_percent,
            share_percent,
            run_queue_percent,
            waits,
            longest_wait_ns,
        } = value;
        Self {
            pid,
            tid,
            name,
            role: role.into(),
            cpu_percent,
            share_percent,
            run_queue_percent,
            waits: waits.into_iter().map(Into::into).collect(),
            longest_wait_ns,
        }
    }
}

/// Waits of one reason.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct WorkerWait {
    pub(crate) reason: String,
    pub(crate) count: u64,
    pub(crate) ns: u64,
    /// Of the window.
    pub(crate) share_percent: f64,
}

impl From<model::WorkerWait> for WorkerWait {
    fn from(value: model::WorkerWait) -> Self {
        let model::WorkerWait {
            reason,
            count,
            ns,
            share_percent,
        } = value;
        Self {
            reason,
            count,
            ns,
            share_percent,
        }
    }
}

/// Whether one worker has more to do than the others.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct WorkerImbalance {
    /// Percent of one CPU.
    pub(crate) busiest_percent: f64,
    pub(crate) mean_percent: f64,
    /// Busiest to mean, with its 95 % interval.
    pub(crate) ratio: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// More than chance.
    pub(crate) significant: bool,
}

impl From<model::Imbalance> for WorkerImbalance {
    fn from(value: model::Imbalance) -> Self {
        let model::Imbalance {
            busiest_percent,
            mean_percent,
            ratio,
            low,
            high,
            significant,
        } = value;
        Self {
            busiest_percent,
            mean_percent,
            ratio,
            low,
            high,
            significant,
        }
    }
}

/// What a CPU quota did.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct CpuThrottling {
    pub(crate) periods: u64,
    pub(crate) throttled_periods: u64,
    pub(crate) throttled_ns: u64,
}

impl From<model::Throttled> for CpuThrottling {
    fn from(value: model::Throttled) -> Self {
        let model::Throttled {
            periods,
            throttled_periods,
            throttled_ns,
        } = value;
        Self {
            periods,
            throttled_periods,
            throttled_ns,
        }
    }
}

/// How long threads stayed away from their event loop.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct DiagnosedEventLoop {
    pub(crate) threshold_ms: u64,
    pub(crate) threads: Vec<LoopThread>,
    /// Longest first.
    pub(crate) stalls: Vec<LoopStall>,
}

impl From<model::EventLoopReport> for DiagnosedEventLoop {
    fn from(value: model::EventLoopReport) -> Self {
        let model::EventLoopReport {
            threshold_ms,
            threads,
            stalls,
            // The limits say it.
            lost: _,
        } = value;
        Self {
            threshold_ms,
            threads: threads.into_iter().map(Into::into).collect(),
            stalls: stalls.into_iter().map(Into::into).collect(),
        }
    }
}

/// The event loop of one thread.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct LoopThread {
    pub(crate) tid: u32,
    pub(crate) name: String,
    pub(crate) loops: u64,
    /// Null: no loop has ended yet.
    #[schema(required)]
    pub(crate) loop_ns: Option<LoopLengths>,
    /// Loops that took longer than the threshold, and their time.
    pub(crate) stalls: u64,
    pub(crate) stalled_ns: u64,
}

impl From<model::LoopThread> for LoopThread {
    fn from(value: model::LoopThread) -> Self {
        let model::LoopThread {
            tid,
            name,
            loops,
            loop_ns,
            stalls,
            stalled_ns,
        } = value;
        Self {
            tid,
            name,
            loops,
            loop_ns: loop_ns.map(LoopLengths::from),
            stalls,
            stalled_ns,
        }
    }
}

/// Lengths of loops; upper bounds of the buckets that they were counted in.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct LoopLengths {
    pub(crate) p50: u64,
    pub(crate) p99: u64,
    pub(crate) max: u64,
}

impl From<model::LoopLengths> for LoopLengths {
    fn from(value: model::LoopLengths) -> Self {
        let model::LoopLengths { p50, p99, max } = value;
        Self { p50, p99, max }
    }
}

/// One loop that took long.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct LoopStall {
    pub(crate) tid: u32,
    pub(crate) name: String,
    /// Nanoseconds since the Unix epoch.
    pub(crate) start_ns: u64,
    pub(crate) duration_ns: u64,
    /// Where the thread was most, from the leaf on; empty when no sample fell into it.
    pub(crate) stack: Vec<String>,
    pub(crate) samples: u64,
}

impl From<model::LoopStall> for LoopStall {
    fn from(value: model::LoopStall) -> Self {
        let model::LoopStall {
            tid,
            name,
            start_ns,
            duration_ns,
            stack,
            samples,
        } = value;
        Self {
            tid,
            name,
            start_ns,
            duration_ns,
            stack,
            samples,
        }
    }
}

/// What the connections of the processes show.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct DiagnosedNetwork {
    pub(crate) connections_opened: u64,
    /// Null: requests are not known.
    #[schema(required)]
    pub(crate) connections_per_request: Option<f64>,
    /// Null: not measured, or nothing was sent.
    #[schema(required)]
    pub(crate) retransmit_percent: Option<f64>,
    pub(crate) resets: u64,
    /// Null: not measured.
    #[schema(required)]
    pub(crate) receive_wait_ns: Option<WaitLengths>,
    /// How the time of a request divides between the proxies and the application; null: not measured.
    #[schema(required)]
    pub(crate) sidecar_time: Option<u64>,
}

impl From<model::NetworkReport> for DiagnosedNetwork {
    fn from(value: model::NetworkReport) -> Self {
        let model::NetworkReport {
            connections_opened,
            connections_per_request,
            retransmit_percent,
            resets,
            receive_wait_ns,
        } = value;
        Self {
            connections_opened,
            connections_per_request,
            retransmit_percent,
            resets,
            receive_wait_ns: receive_wait_ns.map(Into::into),
            sidecar_time: None,
        }
    }
}

/// Lengths of waits.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct WaitLengths {
    pub(crate) p50: u64,
    pub(crate) p99: u64,
}

impl From<model::WaitLengths> for WaitLengths {
    fn from(value: model::WaitLengths) -> Self {
        let model::WaitLengths { p50, p99 } = value;
        Self { p50, p99 }
    }
}

/// What a thread is for, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ThreadRole {
    Worker,
    Main,
    Helper,
    Other,
}

impl From<model::ThreadRole> for ThreadRole {
    fn from(value: model::ThreadRole) -> Self {
        match value {
            model::ThreadRole::Worker => Self::Worker,
            model::ThreadRole::Main => Self::Main,
            model::ThreadRole::Helper => Self::Helper,
            model::ThreadRole::Other => Self::Other,
        }
    }
}
