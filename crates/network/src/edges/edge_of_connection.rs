//! Which edge single connections belong to, for what is known of them and not of edges.
//!
//! Edges keep sums only. On request the aggregator remembers the edges of ended connections until they are
//! taken.

use core::ops::Add;
use std::collections::HashMap;

use profiler_model::EdgeKey;

use super::{
    aggregator::{EdgeAggregator, Pair},
    flow::Flow,
    http_end::HttpEnd,
};

/// Ended connections that may wait to be asked for; more are not told apart any more.
const MOST: usize = 262_144;

/// Bytes that a connection has moved, and those of them that were captured for requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    pub moved: u64,
    pub captured: u64,
}

impl Add for Traffic {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            moved: self.moved.saturating_add(other.moved),
            captured: self.captured.saturating_add(other.captured),
        }
    }
}

impl Traffic {
    /// What came to it since `before`.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            moved: self.moved.saturating_sub(before.moved),
            captured: self.captured.saturating_sub(before.captured),
        }
    }
}

/// What is known of one connection beside its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeOfConnection {
    pub edge: EdgeKey,
    /// `None`: not counted, or no requests are looked for in it.
    pub traffic: Option<Traffic>,
    /// Requests that the kernel counted; `None`: it speaks something else.
    pub http: Option<Box<HttpEnd>>,
    pub has_ended: bool,
}

/// A connection that is open or has just ended.
#[derive(Clone, Debug)]
pub struct Met {
    cookie: u64,
    pair: Pair,
    traffic: Option<Traffic>,
    http: Option<Box<HttpEnd>>,
}

impl Met {
    pub fn new(pair: Pair, flow: &Flow) -> Self {
        let moved = flow.bytes();
        let traffic = flow.captured_bytes.map(|captured| Traffic {
            moved,
            captured: captured.min(moved),
        });
        Self {
            cookie: flow.cookie,
            pair,
            traffic,
            http: flow.http.clone(),
        }
    }
}

/// Ended connections.
#[derive(Clone, Debug, Default)]
pub(super) struct EdgesOfConnections {
    ended: Vec<Met>,
}

impl EdgeAggregator {
    /// From now on the edges of ended connections are remembered.
    pub fn remember_edges(&mut self) {
        self.edge_of_connection.get_or_insert_default();
    }

    pub(super) fn note_edge(&mut self, pair: Pair, flow: &Flow) {
        if let Some(edge_of_connection) = &mut self.edge_of_connection
            && edge_of_connection.ended.len() < MOST
        {
            edge_of_connection.ended.push(Met::new(pair, flow));
        }
    }

    /// The edges of connections that ended since the last call, and of those that were met just now.
    pub fn take_edges_of_connections(&mut self, met: Vec<Met>) -> HashMap<u64, EdgeOfConnection> {
        let ended = self
            .edge_of_connection
            .as_mut()
            .map(|edge_of_connection| std::mem::take(&mut edge_of_connection.ended))
            .unwrap_or_default();
        let ended = ended.into_iter().map(|one| (one, true));
        let met = met.into_iter().map(|one| (one, false));
        let mut keys: HashMap<Pair, EdgeKey> = HashMap::new();
        met.chain(ended)
            .map(|(one, has_ended)| {
                let key = keys
                    .entry(one.pair)
                    .or_insert_with(|| self.key(one.pair))
                    .clone();
                let edge_of = EdgeOfConnection {
                    edge: key,
                    traffic: one.traffic,
                    http: one.http,
                    has_ended,
                };
                (one.cookie, edge_of)
            })
            .collect()
    }
}
