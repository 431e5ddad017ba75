//! Counts requests once it is known where they belong.

use std::collections::HashSet;

use profiler_model::SeenBy;

use super::{FORGOTTEN_AT_ONCE, PATIENCE, Patience, REMEMBERED, Tracker};
use crate::requests::{
    observed_request::ObservedRequest, operations::Counted, shared_edge::SharedEdge,
    socket_requests::SocketRequests,
};

impl Tracker {
    /// Counts requests that came before the last report: by now the other end of their connection has
    /// seen them, too.
    pub(super) fn settle(&mut self, patience: Patience) {
        // In place: another queue would grow from nothing at each report.
        for _ in 0..self.waiting.len() {
            let Some((since, seen)) = self.waiting.pop_front() else {
                break;
            };
            let age = self.reports - since;
            let socket = self.sockets.get(&seen.cookie);
            let has_edge = socket.is_none_or(|socket| socket.edge.is_some());
            let is_due = match patience {
                Patience::Some => age >= 2 && (has_edge || age >= PATIENCE),
                Patience::None => true,
            };
            if is_due {
                self.count(seen);
            } else {
                self.waiting.push_back((since, seen));
            }
        }
        self.sidecars.pair(patience == Patience::None);
        self.greet(patience);
    }

    /// Counts a request at once where nothing can be learnt by waiting, or has it wait.
    pub(super) fn count_or_wait(&mut self, seen: ObservedRequest) {
        let (cookie, end_ns) = (seen.cookie, seen.exchange.end_ns);
        let socket = self.sockets.get(&cookie);
        // Where all requests are kept, each waits as long, so that none is missing before others.
        let known = socket
            .filter(|socket| self.is_edge_settled(socket))
            .filter(|_| !self.samples.keeps_all());
        let has_other = known.is_some_and(|socket| socket.counting_end.is_some());
        let is_alone =
            !has_other && known.is_some_and(|socket| socket.is_counted && self.is_alone(socket));
        if !has_other && !is_alone {
            self.waiting.push_back((self.reports, seen));
            return;
        }
        self.count(seen);
        if is_alone && let Some(socket) = self.sockets.get_mut(&cookie) {
            socket.counted_until_ns = socket.counted_until_ns.max(end_ns);
        }
    }

    /// Whether no more will be known of a connection's edge: the process at its other end is found within some reports, or is on
    /// another node.
    fn is_edge_settled(&self, socket: &SocketRequests) -> bool {
        let Some(edge) = socket.edge.as_ref().filter(|_| !socket.is_guess) else {
            return false;
        };
        let is_complete = edge.ends().iter().all(|end| end.pid.is_some());
        is_complete || self.reports - socket.met >= PATIENCE
    }

    /// Counts a request where it belongs as far as that is known now.
    pub(super) fn count(&mut self, seen: ObservedRequest) {
        let Some(socket) = self.sockets.get(&seen.cookie) else {
            return;
        };
        let other_end = self.other_end(socket, &seen);
        let known = socket.edge.clone();
        let edge = known
            .or_else(|| other_end.and_then(|(_, other_end)| other_end.edge.clone()))
            .unwrap_or_else(|| SharedEdge::new(socket.own_edge(seen.seen_by)));
        let settled = other_end
            .map(|(cookie, other_end)| (cookie, counting_end(socket, seen.seen_by, other_end)));
        // Where the other end is forgotten by now, what was settled with it stays so.
        let alone = socket.counting_end.filter(|_| self.is_alone(socket));
        // An end that was thought to be alone counts what began until the other one showed.
        let begin_ns = seen.exchange.begin_ns;
        let is_counted_here = begin_ns <= socket.counted_until_ns;
        let is_counted_there =
            other_end.is_some_and(|(_, other_end)| begin_ns <= other_end.counted_until_ns);
        let counted = match settled.map(|(_, counting_end)| counting_end).or(alone) {
            _ if is_counted_here => Counted::Here,
            _ if is_counted_there => Counted::AtOtherEnd,
            Some(counting_end) if counting_end != seen.seen_by => Counted::AtOtherEnd,
            Some(_) | None => Counted::Here,
        };
        if let Some((other_end, counting_end)) = settled {
            for cookie in [seen.cookie, other_end] {
                if let Some(socket) = self.sockets.get_mut(&cookie) {
                    socket.counting_end = Some(counting_end);
                }
            }
        }
        self.operations.add(&edge, &seen, counted);
        self.sidecars.name(&edge, &seen);
        if seen.tls {
            for cookie in self.ends.get(&seen.client).into_iter().flatten() {
                if let Some(socket) = self.sockets.get_mut(cookie) {
                    socket.is_read_at_other_end |= *cookie != seen.cookie;
                }
            }
        }
        let Some(socket) = self.sockets.get_mut(&seen.cookie) else {
            return;
        };
        if counted == Counted::Here {
            if !socket.is_counted {
                socket.is_counted = true;
                self.operations.connected(&edge, seen.client.port());
            }
            self.timeline.add(&edge, &seen);
            self.samples.add(&edge, seen);
        }
        if socket.edge.is_none() {
            socket.edge = Some(edge);
            socket.is_guess = true;
        }
    }

    /// The socket at the other end of the same connection, when that sees requests as well.
    fn other_end(
        &self,
        socket: &SocketRequests,
        seen: &ObservedRequest,
    ) -> Option<(u64, &SocketRequests)> {
        let same = self.ends.get(&socket.client()?)?;
        let mut others = same
            .iter()
            .filter_map(|cookie| Some((*cookie, self.sockets.get(cookie)?)));
        // Addresses are the same in several network namespaces; edges from the table of connections are not.
        others.find(|(_, other)| {
            let is_end = other.seen_by().is_some_and(|end| end != seen.seen_by);
            let is_other = match (&socket.edge, &other.edge) {
                (Some(own), Some(its)) => !socket.is_guess && !other.is_guess && own != its,
                _ => false,
            };
            is_end && other.exchanges() > 0 && !is_other
        })
    }

    /// Whether no other socket of the connection is remembered.
    fn is_alone(&self, socket: &SocketRequests) -> bool {
        let same = socket.client().and_then(|client| self.ends.get(&client));
        same.is_none_or(|same| same.len() <= 1)
    }

    /// Whether the client's end of a server's connection is watched as well.
    fn is_client_seen(&self, server: &SocketRequests) -> bool {
        let same = self.ends.get(&server.facts.remote).into_iter().flatten();
        let mut sockets = same.filter_map(|cookie| self.sockets.get(cookie));
        sockets.any(|socket| socket.seen_by() == Some(SeenBy::Client))
    }

    /// Requests that would end with their connections, each counted at one end. Decoders are of no use behind it.
    pub(super) fn under_way(&mut self, now_ns: u64) -> u64 {
        let is_counted = |socket: &&SocketRequests| match socket.seen_by() {
            Some(SeenBy::Client) => socket.gone.is_none(),
            Some(SeenBy::Server) => socket.gone.is_none() && !self.is_client_seen(socket),
            None => false,
        };
        let counted = self.sockets.iter().filter(|(_, socket)| is_counted(socket));
        let cookies: Vec<u64> = counted.map(|(cookie, _)| *cookie).collect();
        let mut open = Vec::new();
        for cookie in cookies {
            if let Some(socket) = self.sockets.get_mut(&cookie) {
                socket.end_all(now_ns, &mut open);
            }
        }
        open.len() as u64
    }

    /// Counts what was sent before encryption began.
    fn greet(&mut self, patience: Patience) {
        let mut greetings = Vec::new();
        for socket in self.sockets.values() {
            let Some(edge) = socket.edge.as_ref().filter(|_| !socket.is_greeted) else {
                continue;
            };
            let is_mine = match socket.seen_by() {
                Some(SeenBy::Client) => true,
                Some(SeenBy::Server) => !self.is_client_seen(socket),
                None => false,
            };
            let greeting = socket.greeting(patience == Patience::None);
            if let Some(greeting) = greeting.filter(|_| is_mine) {
                greetings.push((edge.clone(), greeting));
            }
        }
        for (edge, greeting) in greetings {
            self.operations.greeted(&edge, greeting);
        }
        let last = patience == Patience::None;
        for socket in self
            .sockets
            .values_mut()
            .filter(|socket| socket.edge.is_some())
        {
            socket.is_greeted |= socket.greeting(last).is_some();
        }
    }

    /// Forgets connections that ended some reports ago.
    pub(super) fn forget(&mut self) {
        while let Some(cookie) = self.gone.front().copied() {
            let gone = self.sockets.get(&cookie).and_then(|socket| socket.gone);
            if gone.is_some_and(|gone| gone + REMEMBERED > self.reports) {
                return;
            }
            self.gone.pop_front();
            self.remove(cookie);
        }
    }

    /// Forgets the oldest connections that have ended before it is time, because there are too many: their requests
    /// are counted with what is known by now.
    pub(super) fn make_room(&mut self) {
        let number = FORGOTTEN_AT_ONCE.min(self.gone.len());
        let oldest: HashSet<u64> = self.gone.drain(..number).collect();
        for (since, seen) in std::mem::take(&mut self.waiting) {
            if oldest.contains(&seen.cookie) {
                self.count(seen);
            } else {
                self.waiting.push_back((since, seen));
            }
        }
        for cookie in oldest {
            self.remove(cookie);
        }
    }

    fn remove(&mut self, cookie: u64) {
        let Some(socket) = self.sockets.remove(&cookie) else {
            return;
        };
        super::report::add(&mut self.counters, &socket);
        for client in [socket.facts.local, socket.facts.remote] {
            if let Some(same) = self.ends.get_mut(&client) {
                same.retain(|known| *known != cookie);
                if same.is_empty() {
                    self.ends.remove(&client);
                }
            }
        }
    }
}

/// The end of a connection whose requests are counted: settled once, so that none is counted twice.
fn counting_end(socket: &SocketRequests, seen_by: SeenBy, other_end: &SocketRequests) -> SeenBy {
    let (client, server) = match seen_by {
        SeenBy::Client => (socket, other_end),
        SeenBy::Server => (other_end, socket),
    };
    let settled = client.counting_end.or(server.counting_end);
    settled.unwrap_or_else(|| match (client.holes(), server.holes()) {
        (0, _) => SeenBy::Client,
        (_, 0) => SeenBy::Server,
        (_, _) if server.exchanges() > client.exchanges() => SeenBy::Server,
        (_, _) => SeenBy::Client,
    })
}
