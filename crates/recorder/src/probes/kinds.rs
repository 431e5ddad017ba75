//! One collector for every kind of task.

use profiler_model::{Recording, TaskSpec};
use profiler_recording::{CollectError, Collection, Collector};

use super::{NetworkCollector, SampleRecorder};

/// Hands each task to the collector of its kind.
#[derive(Debug)]
pub struct KindCollector {
    pub samples: SampleRecorder,
    pub network: NetworkCollector,
}

impl Collector for KindCollector {
    fn start(&self, spec: &TaskSpec) -> Result<Collection, CollectError> {
        let TaskSpec {
            target,
            duration_s,
            recording,
        } = spec;
        match recording {
            Recording::Samples(samples) => self.samples.start(target, samples),
            Recording::Edges(edges) => self.network.start(target, *duration_s, *edges, None),
            Recording::Requests(requests) => {
                let options = Some(&requests.options);
                self.network
                    .start(target, *duration_s, requests.edges, options)
            }
        }
    }

    fn drop_caches(&self) {
        self.samples.drop_caches();
    }
}
