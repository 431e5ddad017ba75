//! The single connections of an edge.

use profiler_model::{EdgeConnection as Model, EdgeId, EdgeTable};
use serde::Serialize;
use utoipa::ToSchema;

use super::requests::RequestEnd;

/// The connections of an edge with most bytes, largest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct EdgeConnections {
    edge: String,
    items: Vec<EdgeConnection>,
    /// Why none are listed although there may be some.
    #[schema(required)]
    reason: Option<&'static str>,
    /// Most that are listed at each end; fewer when other edges have larger ones.
    most: usize,
}

/// One connection as one end saw it.
#[derive(Debug, Serialize, ToSchema)]
struct EdgeConnection {
    /// The end that saw it.
    side: RequestEnd,
    /// `ADDRESS:PORT` of this end.
    local: String,
    /// `ADDRESS:PORT` of the other end, as this one sees it.
    remote: String,
    #[schema(required)]
    pid: Option<u32>,
    /// Since it was first seen.
    age_ms: u64,
    /// False: it has ended, and its other end is waited for.
    open: bool,
    write_calls: u64,
    write_bytes: u64,
    read_calls: u64,
    read_bytes: u64,
    /// Mean of the smoothed round-trip times at its writes, microseconds; null before the first. As
    /// `write_rtt_us` of edges.
    #[schema(required)]
    rtt_mean_us: Option<u64>,
    /// As `min_rtt_us` of edges.
    #[schema(required)]
    min_rtt_us: Option<u64>,
    #[schema(required)]
    retransmits: Option<u64>,
    #[schema(required)]
    drops: Option<u64>,
}

impl EdgeConnections {
    /// `is_live`: the measurement runs.
    pub fn new(id: EdgeId, table: &EdgeTable, is_live: bool) -> Self {
        let known = table.edges.iter().find(|edge| EdgeId::of(&edge.key) == id);
        let protocol = known.map_or("", |edge| edge.key.server.address.protocol());
        let has = |metric: &str| table.has_of(protocol, metric);
        let reason = match (is_live, protocol) {
            (false, _) => Some("single connections are listed only while the measurement runs"),
            (true, "unix") => Some("connections of Unix sockets are not listed one by one"),
            (true, _) => None,
        };
        let own = table.connections.iter().filter(|(edge, _)| *edge == id);
        Self {
            edge: id.to_string(),
            items: own.map(|(_, found)| connection(found, has)).collect(),
            reason,
            most: profiler_network::edges::MOST_OF_EDGE,
        }
    }
}

fn connection(found: &Model, has: impl Fn(&str) -> bool) -> EdgeConnection {
    let Model {
        is_client,
        local,
        remote,
        pid,
        age_ns,
        is_open,
        write,
        read,
        rtt_us,
        min_rtt_us,
        retransmits,
        drops,
    } = found;
    EdgeConnection {
        side: if *is_client {
            RequestEnd::Client
        } else {
            RequestEnd::Server
        },
        local: local.to_string(),
        remote: remote.to_string(),
        pid: *pid,
        age_ms: age_ns / 1_000_000,
        open: *is_open,
        write_calls: write.count,
        write_bytes: write.bytes,
        read_calls: read.count,
        read_bytes: read.bytes,
        rtt_mean_us: *rtt_us,
        min_rtt_us: *min_rtt_us,
        retransmits: has("retransmit").then_some(*retransmits),
        drops: has("drop").then_some(*drops),
    }
}
