//! User-space halves of the probes: attach, decode records, hand out chunks of results.

mod collector;
mod board;
mod comparison;
mod ended;
mod event_loop;
mod governor;
mod kernel_losses;
mod kinds;
mod network;
mod network_sources;
mod node_sockets;
mod on_cpu;
mod process_events;
mod requests;
mod requests_events;
mod requests_share;
mod rows;
mod session;
mod source;
mod stacks;
mod status;
mod targets;
mod throttling;
mod timeline;
mod unwinder;
mod unix_sockets;
mod wait_watch;

pub use board::ProbeStatuses;
pub use collector::{Chunk, CollectError, CollectRequest, Collection, Collector, StopHandle};
pub use kinds::KindCollector;
pub use network::{NetworkCollector, NetworkConfig, TARGET_ENDED};
pub use on_cpu::{OnCpuCollector, OnCpuConfig};
pub use process_events::ProcessEvents;
pub use status::{AbsentProbes, ProbeState, ProbeStatus, ProbeStatusSource, ProgramStats};
pub(crate) use timeline::{start_ns, start_ticks};
pub use unix_sockets::is_never_of_unix_sockets;
