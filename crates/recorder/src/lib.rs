//! The kernel side as seen from user space.
//!
//! ```text
//! kernel hook -> ring buffer / maps -> bpf -> probes -> profiler_recording
//! ```

pub mod bpf;
pub mod features;
pub mod probes;
