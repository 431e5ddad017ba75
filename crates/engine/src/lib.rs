//! What runs on the agent, and what is kept of it.
//!
//! ```text
//! profiler_recording -> task, network_watch -> store
//!                       ^ checkup: several tasks on one target
//! overview: counts of the kernel and of Envoys, for every pod
//! ```

pub mod checkup;
pub mod memory_watch;
pub mod network_watch;
pub mod overview;
pub mod store;
pub mod task;
