//! The HTTP API, its security, and the embedded web UI.
//!
//! A request passes, from the outside in: security headers, request counting, a look at its token with bounds for those
//! without, guard (Host, Origin), what the token is enough for, size, load and time limit, router. Handlers are thin: they
//! parse, ask a stage, and map the answer to the wire types of `dto`.

mod access;
mod addressing;
mod auth;
mod connections;
mod dto;
mod edge_stream;
mod error;
mod extract;
mod guard;
mod headers;
mod http;
mod http_metrics;
mod inspection;
mod live_pump;
mod mask;
mod metrics;
mod needs;
mod parameters;
mod router;
mod server;
mod state;
mod strangers;
mod stream;
mod ui;
mod unsent;
mod verdicts;

#[cfg(test)]
mod tests;

pub use addressing::{Origin, Reached};
pub use auth::{AuthError, Token, Tokens, prepare_data_dir};
pub use dto::{
    Diff, EdgeConnections, EdgeSeries, EdgeTable, PodList, Process, ProcessList, TaskRequests,
    parse_sample_rule,
};
pub use inspection::{Inspection, Statistics};
pub use live_pump::LivePump;
pub use mask::{MASK, masked};
pub use router::{RouterError, openapi_json, router};
pub use server::{Server, ServerError};
pub use state::{ApiParts, ApiState, NodeInfo};
pub(crate) use ui::offline_viewer;
