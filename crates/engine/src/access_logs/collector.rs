//! Starts tasks that take requests from access logs, alone or beside what sockets show.

use std::{sync::Arc, time::Duration};

use profiler_clock::{monotonic_zero_ns, wall_ns};
use profiler_host::process::ProcessTable;
use profiler_model::{RequestOptions, Target, TaskSpec};
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
        if let Target::Pids(pids) = &spec.target {
            self.table.refresh();
            if let Some(pid) = pids.iter().find(|pid| self.table.get(**pid).is_none()) {
                return Err(CollectError::NoSuchProcess { pid: *pid });
            }
        }
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

#[cfg(test)]
mod tests {
    use profiler_model::{EdgeSpec, Recording, RequestSpec};

    use super::*;

    struct Nobody;

    impl Collector for Nobody {
        fn start(&self, _spec: &TaskSpec) -> Result<Collection, CollectError> {
            unreachable!("sockets are not looked at")
        }
    }

    #[test]
    fn a_process_that_does_not_exist_is_not_waited_for() {
        let collector =
            LogsCollector::new(AccessLogs::off(), ProcessTable::new(), Arc::new(Nobody));
        let started = |pid| {
            let options = RequestOptions {
                access_log: true,
                sockets: false,
                ..RequestOptions::default()
            };
            let spec = TaskSpec {
                target: Target::Pids(vec![pid]),
                duration_s: None,
                recording: Recording::Requests(RequestSpec {
                    edges: EdgeSpec::default(),
                    options,
                }),
            };
            collector.start(&spec).unwrap_err().to_string()
        };
        // Beyond what Linux gives.
        assert_eq!(started(5_000_000), "no such process: 5000000");
        let own = started(std::process::id());
        assert!(own.contains("no access logs are received here"), "{own}");
    }
}
