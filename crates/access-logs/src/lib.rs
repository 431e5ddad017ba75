//! Envoy's access logs to records of requests and connections, without input or output.
//!
//! [`decode()`] reads messages of Envoy's access log service, [`otlp`] log records of its OpenTelemetry logger; both give the same
//! [`Entry`]. [`count_entries`] counts entries without decoding them. [`flags`] and [`PHASES`] explain the parts of an entry, and
//! [`mod@snippet`] prints the configuration of the proxies.
//!
//! Parsing is bounded by [`Limits`]; [`Counts`] has what was cut, left out or malformed.

mod limits;
mod wire;
mod messages;
mod walk;
mod names;
pub mod flags;
mod values;
mod address;
mod cluster;
mod timing;
mod encoded;
mod entry;
mod decode;
pub mod otlp;
pub mod snippet;
#[cfg(test)]
mod declared;
#[cfg(test)]
mod document_tests;
#[cfg(test)]
mod recorded_tests;
#[cfg(test)]
mod testing;

pub use address::Address;
pub use cluster::{ClusterKind, Role, Side};
pub use decode::{DecodeError, Decoded, GRPC_STATUS, decode};
pub use entry::{Addresses, Entry, Identifier, Request, Response, Sizes, Tls, Upstream, text};
pub use limits::{Counts, Limits};
pub use names::{HttpVersion, Kind, LOG_TYPES, LogType, LogTypeRow, Stage, TlsVersion};
pub use timing::{PHASES, Phase, Timing};
pub use values::CUT_MARK;
pub use walk::{EntryCount, count_entries};
pub use wire::{WireError, WireProblem};
