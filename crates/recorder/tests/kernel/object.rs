//! The object as the agent keeps it.

use profiler_common::config::ProbeConfig;
use profiler_recorder::bpf::{Counting, LoadError, LoadedObject, ObjectRequest};

/// Loads what runs as long as the agent, and says what could not be attached.
pub(crate) fn standing(denied: &[&str]) -> (LoadedObject, Vec<LoadError>) {
    let request = ObjectRequest {
        config: ProbeConfig {
            bucket_ns: 1,
            buckets_per_epoch: 1,
            ..ProbeConfig::default()
        },
        v1_controller: None,
        counting: Counting::Nothing,
        denied: denied.iter().map(|&name| name.to_owned()).collect(),
    };
    LoadedObject::load(&request)
        .unwrap_or_else(|error| panic!("run as root, with the eBPF object: {error}"))
}
