//! Starts tasks that take requests from access logs, alone or beside what sockets show.

use std::{sync::Arc, time::Duration};

use profiler_clock::{monotonic_zero_ns, wall_ns};
use profiler_host::process::ProcessTable;
use profiler_model::{RequestOptions, TaskSpec};
use profiler_network::requests::{LogTracker, TrackerOptions};
use profiler_recording::{CollectError, Collection, Collector, StopHandle};
use profiler_sandbox::broker;
use tokio::sync::mpsc;

use super::{
    AccessLogs,
    lookups::Lookups,
    reading::{Reading, Sockets},
};

/// Results that wait for the task.
const CHUNKS: usize = 4;
const OFF: &str =
    "no access logs are received here: start the agent with --access-logs ADDRESS:PORT";

/// Starts tasks that read access logs; others are left to another collector.
pub struct LogsCollector {
    logs: AccessLogs,
    table: ProcessTable,
    others: Arc<dyn Collector>,
}

impl std::fmt::Debug for LogsCollector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogsCollector")
            .field("logs", &self.logs)
            .finish_non_exhaustive()
    }
}

impl LogsCollector {
    pub fn new(logs: AccessLogs, table: ProcessTable, others: Arc<dyn Collector>) -> Self {
        Self {
            logs,
            table,
            others,
        }
    }
}

impl Collector for LogsCollector {
    fn start(&self, spec: &TaskSpec) -> Result<Collection, CollectError> {
        let Some(options) = spec.requests().filter(|options| options.access_log) else {
            return self.others.start(spec);
        };
        let failed = |reason: String| CollectError::Probe {
            probe: "access_logs",
            reason,
        };
        let begun = |error: std::io::Error| failed(format!("start a thread: {error}"));
        let subscription = self.logs.subscribe();
        let subscription = subscription.ok_or_else(|| failed(OFF.to_owned()))?;
        let sockets = options
            .sockets
            .then(|| self.others.start(spec))
            .transpose()?;
        let origin_ns = sockets
            .as_ref()
            .map_or_else(wall_ns, |sockets| sockets.origin_ns);
        let tracker = tracker(options, origin_ns).map_err(failed)?;
        let (stop, flag) = StopHandle::new();
        let (to, chunks) = mpsc::channel(CHUNKS);
        let mut collection = Collection {
            origin_ns,
            already: Duration::ZERO,
            clock: None,
            effective_frequency_hz: None,
            notes: Vec::new(),
            chunks,
            stop,
        };
        let sockets = sockets.map(|sockets| {
            collection.already = sockets.already;
            collection.notes = sockets.notes;
            Sockets::new(sockets.chunks, sockets.stop)
        });
        let lookups = Lookups::start(spec.target.clone(), self.table.clone()).map_err(begun)?;
        let logs = self.logs.clone();
        // It understands what Envoys have written.
        broker::start("log-requests", move || {
            Reading::new(logs, lookups, (subscription, sockets), tracker, to).run(&flag);
        })
        .map_err(begun)?;
        Ok(collection)
    }

    fn drop_caches(&self) {
        self.others.drop_caches();
    }

    fn refuses_tasks(&self) -> Option<&'static str> {
        self.others.refuses_tasks()
    }
}

fn tracker(options: &RequestOptions, origin_ns: u64) -> Result<LogTracker, String> {
    let epoch_ns = monotonic_zero_ns();
    let begin_ns = origin_ns.saturating_sub(epoch_ns);
    let options = TrackerOptions::of(options, epoch_ns, begin_ns);
    Ok(LogTracker::new(options.map_err(|error| error.to_string())?))
}
