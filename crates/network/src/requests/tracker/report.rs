//! The table of everything so far.

use profiler_model::{RequestCounters, RequestTable, Window};

use super::Tracker;
use crate::requests::{
    decoded_stream::StopReason,
    operations::{Rows, Sampling},
    socket_requests::SocketRequests,
};

impl Tracker {
    pub(super) fn rows(&self, now_ns: u64) -> RequestTable {
        let counters = self.counted();
        let sampling = Sampling {
            fewest: counters.sampled_one_of,
            tls_is_steady: self.source.tls_is_steady,
        };
        let Rows {
            edges,
            mut operations,
            counted,
            places,
        } = self.operations.rows(sampling);
        if counters.lost_pieces > 0 || counters.refused_connections > 0 {
            // Each count is too low by an unknown amount.
            for operation in &mut operations {
                operation.tally.variance = None;
            }
        }
        RequestTable {
            window: Window {
                from_ns: self.epoch_ns.saturating_add(self.begin_ns),
                to_ns: self.epoch_ns.saturating_add(now_ns),
            },
            samples: self.samples.rows(&places, self.epoch_ns),
            samples_left_out: self.samples.left_out,
            timeline: self.timeline.rows(&places),
            counted,
            sidecars: self.sidecars.rows(),
            counters,
            tls: None,
            logged: None,
            is_damaged: false,
            edges,
            operations,
        }
    }

    fn counted(&self) -> RequestCounters {
        let mut counters = self.counters.clone();
        for socket in self.sockets.values() {
            add(&mut counters, socket);
        }
        counters.sampled_one_of = self.source.sampled_one_of.max(1);
        counters.unbound_bytes = self.source.unbound_bytes;
        counters.lost_pieces = counters.lost_pieces.saturating_add(self.source.lost_pieces);
        counters.other_operations = self.operations.folded;
        counters.other_edges = self.operations.of_other_edges;
        counters
    }
}

/// Adds what a connection has to report about itself.
pub(super) fn add(counters: &mut RequestCounters, socket: &SocketRequests) {
    if let Some(name) = socket.protocol_name() {
        *counters
            .connections_by_protocol
            .entry(name.to_owned())
            .or_default() += 1;
    }
    let gaps = socket.gaps();
    for stream in socket.streams() {
        let trouble = stream.trouble();
        counters.withdrawn_guesses += trouble.withdrawn_guesses;
        let bytes = trouble.not_understood;
        counters.undecoded_bytes = counters
            .undecoded_bytes
            .saturating_add(bytes.to_server)
            .saturating_add(bytes.to_client);
        match stream.stop_reason() {
            Some(StopReason::Unknown) => counters.undecoded_connections += 1,
            Some(StopReason::Undirected) if stream.protocol.is_none() => {
                counters.unknown_direction += 1;
            }
            Some(StopReason::Undirected | StopReason::Ended) | None => {}
        }
    }
    counters.gaps += gaps;
    counters.gap_connections += u64::from(gaps > 0 || socket.lost_pieces > 0);
}
