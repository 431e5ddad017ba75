//! The seam between the kernel side and everything after it: the engine, the API and the UI are tested over a fake recorder,
//! without root.

mod collector;
mod status;

pub use collector::{
    Chunk, CollectError, Collection, Collector, Part, Requests, Samples, StopHandle,
};
pub use status::{AbsentProbes, ProbeState, ProbeStatus, ProbeStatusSource, ProgramStats};
