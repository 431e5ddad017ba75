//! The two ends of a connection, when both were seen.

use core::net::SocketAddr;
use std::collections::HashMap;

use super::{
    flow::{Direction, Flow},
    socket_table::SocketTable,
};

/// For each connection the index of its other end.
///
/// First those whose addresses are the same on both sides, then those that connection tracking has
/// translated. The rest may have been redirected by something conntrack does not record: there both
/// sides know the client by its address and port.
pub(super) fn match_peers(flows: &[&Flow], socket_table: &SocketTable) -> Vec<Option<usize>> {
    let mut by_ends: HashMap<(SocketAddr, SocketAddr), Vec<usize>> = HashMap::new();
    for (index, flow) in flows.iter().enumerate() {
        by_ends
            .entry((flow.local, flow.remote))
            .or_default()
            .push(index);
    }
    let mut other_ends = vec![None; flows.len()];
    join(flows, &mut other_ends, |index, flow| {
        let candidates = by_ends.get(&(flow.remote, flow.local))?;
        nearest(flows, index, candidates, |other| can_meet(flow, other))
    });
    let translated = translated(flows, &other_ends, socket_table);
    join(flows, &mut other_ends, |index, flow| {
        let other_end = translated.get(index).copied().flatten()?;
        let candidates = by_ends.get(&other_end)?;
        nearest(flows, index, candidates, |other| can_meet(flow, other))
    });
    join_redirected(flows, &mut other_ends, &translated);
    other_ends
}

/// What the other end of each connection that was not joined is called by itself, when connection
/// tracking knows: its own address, and the address that it knows this end by.
fn translated(
    flows: &[&Flow],
    other_ends: &[Option<usize>],
    socket_table: &SocketTable,
) -> Vec<Option<(SocketAddr, SocketAddr)>> {
    let as_seen_there = |flow: &&Flow, other_end: &Option<usize>| {
        if other_end.is_some() {
            return None;
        }
        let as_client = || {
            let seen = socket_table.server_view(flow).ends()?;
            Some((seen.server, seen.client))
        };
        let as_server = || {
            let seen = socket_table.client_view(flow).ends()?;
            Some((seen.client, seen.server))
        };
        match flow.direction {
            Some(Direction::Client) => as_client(),
            Some(Direction::Server) => as_server(),
            None => as_client().or_else(as_server),
        }
    };
    flows
        .iter()
        .zip(other_ends)
        .map(|(flow, other_end)| as_seen_there(flow, other_end))
        .collect()
}

fn join_redirected(
    flows: &[&Flow],
    other_ends: &mut [Option<usize>],
    translated: &[Option<(SocketAddr, SocketAddr)>],
) {
    let mut servers: HashMap<SocketAddr, Vec<usize>> = HashMap::new();
    let mut clients: HashMap<SocketAddr, Vec<usize>> = HashMap::new();
    let is_explained = |index: usize| {
        // It is known to lead elsewhere.
        other_ends.get(index).copied().flatten().is_some()
            || translated.get(index).copied().flatten().is_some()
    };
    for (index, flow) in flows.iter().enumerate() {
        if is_explained(index) {
            continue;
        }
        if flow.direction != Some(Direction::Server) {
            clients.entry(flow.local).or_default().push(index);
        }
        if flow.direction != Some(Direction::Client) {
            servers.entry(flow.remote).or_default().push(index);
        }
    }
    join(flows, other_ends, |index, flow| {
        if translated.get(index).copied().flatten().is_some() {
            return None;
        }
        let to_server = || {
            nearest(flows, index, servers.get(&flow.local)?, |server| {
                is_redirection(flow, server)
            })
        };
        let to_client = || {
            nearest(flows, index, clients.get(&flow.remote)?, |client| {
                is_redirection(client, flow)
            })
        };
        match flow.direction {
            Some(Direction::Client) => to_server(),
            Some(Direction::Server) => to_client(),
            None => to_server().or_else(to_client),
        }
    });
}

/// Joins connections that choose each other.
fn join(
    flows: &[&Flow],
    other_ends: &mut [Option<usize>],
    choose: impl Fn(usize, &Flow) -> Option<usize>,
) {
    let chosen: Vec<Option<usize>> = flows
        .iter()
        .enumerate()
        .map(|(index, flow)| {
            let free = other_ends.get(index).copied().flatten().is_none();
            if free { choose(index, flow) } else { None }
        })
        .collect();
    for (index, other) in chosen.iter().enumerate() {
        if let Some(other) = *other
            && chosen.get(other).copied().flatten() == Some(index)
            && let Some(slot) = other_ends.get_mut(index)
        {
            *slot = Some(other);
        }
    }
}

/// Connections over loopback stay in their namespace.
fn can_meet(one: &Flow, other: &Flow) -> bool {
    let confined = [one.local, one.remote, other.local, other.remote]
        .iter()
        .any(|address| address.ip().is_loopback());
    let opposite = one.direction.is_none() || one.direction != other.direction;
    opposite && (!confined || one.network_namespace == other.network_namespace)
}

/// A redirection stays in the namespace (an app and its sidecar), or keeps the address and changes
/// the port (a sidecar in front of what was asked for).
fn is_redirection(client: &Flow, server: &Flow) -> bool {
    client.network_namespace == server.network_namespace || client.remote.ip() == server.local.ip()
}

/// Of those that fit, the one that was first seen at about the same time: a port may be used again.
fn nearest(
    flows: &[&Flow],
    own: usize,
    candidates: &[usize],
    fits: impl Fn(&Flow) -> bool,
) -> Option<usize> {
    let seen_ns = flows.get(own)?.seen_ns;
    candidates
        .iter()
        .copied()
        .filter(|index| *index != own && flows.get(*index).is_some_and(|flow| fits(flow)))
        .min_by_key(|index| {
            flows
                .get(*index)
                .map_or(u64::MAX, |flow| flow.seen_ns.abs_diff(seen_ns))
        })
}
