//! One collector for every kind of task.

use profiler_model::TaskKind;
use profiler_recording::{CollectError, CollectRequest, Collection, Collector};

use super::{NetworkCollector, SampleRecorder};

/// Hands each request to the collector of its kind.
#[derive(Debug)]
pub struct KindCollector {
    pub samples: SampleRecorder,
    pub network: NetworkCollector,
}

impl Collector for KindCollector {
    fn start(&self, request: &CollectRequest) -> Result<Collection, CollectError> {
        match request.spec.kind {
            TaskKind::OnCpu | TaskKind::OffCpu | TaskKind::Wall => self.samples.start(request),
            TaskKind::Network | TaskKind::Requests => self.network.start(request),
            // Refused when a task is created.
            TaskKind::Imported => Err(CollectError::Probe {
                probe: "import",
                reason: "an imported profile is not recorded".to_owned(),
            }),
        }
    }

    fn drop_caches(&self) {
        self.samples.drop_caches();
    }
}
