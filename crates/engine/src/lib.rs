//! What runs on the agent, and what is kept of it.
//!
//! ```text
//! profiler_recording -> task, network_watch -> store
//!                       ^ checkup: several tasks on one target
//! overview: counts of the kernel and of Envoys, for every pod
//! ```

mod envoys;
pub mod access_logs;
pub mod checkup;
pub mod edge_metrics;
pub mod memory_watch;
pub mod network_watch;
pub mod overview;
pub mod store;
pub mod task;
