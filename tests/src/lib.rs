//! What integration tests, the demo and the benches share: everything that is started here is
//! registered in [`cleanup`] and is gone when its owner is, also after a panic or a signal.

mod certificates;
pub mod cgroup;
pub mod breakpoints;
pub mod cleanup;
pub mod demo_data;
pub mod docker;
pub mod forwarder;
pub mod kubernetes;
pub mod cri;
pub mod netns;
pub mod measured;
pub mod paths;
pub mod process;
pub mod silent_server;
pub mod wait;
pub mod wall_clock;

pub mod mesh;
pub mod waits;
pub mod workload;

pub mod access_logs;
pub mod agent;
pub mod api;
pub mod api_fuzz;
pub mod folded;
pub mod kernel_objects;
pub mod soak;
pub mod stats;
pub mod truth;

pub mod peers;
pub mod request_truth;
