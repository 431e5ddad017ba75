//! Counts requests once it is known where they belong.

use std::collections::HashSet;

use profiler_model::SeenBy;

use super::{FORGOTTEN_AT_ONCE, PATIENCE, Patience, REMEMBERED, Tracker};
use crate::requests::{line::Line, operations::Counted, seen::Seen};

impl Tracker {
    /// Counts requests that came before the last report: by now the other end of their connection has
    /// seen them, too.
    pub(super) fn settle(&mut self, patience: Patience) {
        for (since, seen) in std::mem::take(&mut self.waiting) {
            let age = self.reports - since;
            let line = self.lines.get(&seen.cookie);
            let has_edge = line.is_none_or(|line| line.edge.is_some());
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

    /// Counts a request where it belongs as far as that is known now.
    pub(super) fn count(&mut self, seen: Seen) {
        let Some(line) = self.lines.get(&seen.cookie) else {
            return;
        };
        let mate = self.other_end(line, &seen);
        let known = line.edge.clone();
        let edge = known
            .or_else(|| mate.and_then(|(_, mate)| mate.edge.clone()))
            .unwrap_or_else(|| line.own_edge(seen.seen_by));
        let settled = mate.map(|(cookie, mate)| (cookie, teller(line, seen.seen_by, mate)));
        // Where the other end is forgotten by now, what was settled with it stays so.
        let alone = line.teller.filter(|_| self.is_alone(line));
        let counted = match settled.map(|(_, teller)| teller).or(alone) {
            Some(teller) if teller != seen.seen_by => Counted::AtOtherEnd,
            Some(_) | None => Counted::Here,
        };
        if let Some((mate, teller)) = settled {
            for cookie in [seen.cookie, mate] {
                if let Some(line) = self.lines.get_mut(&cookie) {
                    line.teller = Some(teller);
                }
            }
        }
        self.operations.add(&edge, &seen, counted);
        self.sidecars.add(&edge, &seen);
        if seen.tls {
            for cookie in self.ends.get(&seen.client).into_iter().flatten() {
                if let Some(line) = self.lines.get_mut(cookie) {
                    line.is_read_at_other_end |= *cookie != seen.cookie;
                }
            }
        }
        let Some(line) = self.lines.get_mut(&seen.cookie) else {
            return;
        };
        if counted == Counted::Here {
            if !line.is_counted {
                line.is_counted = true;
                self.operations.connected(&edge, seen.client.port());
            }
            self.samples.add(&edge, seen);
        }
        if line.edge.is_none() {
            line.edge = Some(edge);
            line.is_guess = true;
        }
    }

    /// The socket at the other end of the same connection, when that sees requests as well.
    fn other_end(&self, line: &Line, seen: &Seen) -> Option<(u64, &Line)> {
        let same = self.ends.get(&line.client()?)?;
        let mut others = same
            .iter()
            .filter_map(|cookie| Some((*cookie, self.lines.get(cookie)?)));
        // Addresses are the same in several network namespaces; edges that were told are not.
        others.find(|(_, other)| {
            let is_end = other.seen_by().is_some_and(|end| end != seen.seen_by);
            let is_other = match (&line.edge, &other.edge) {
                (Some(own), Some(its)) => !line.is_guess && !other.is_guess && own != its,
                _ => false,
            };
            is_end && other.exchanges() > 0 && !is_other
        })
    }

    /// Whether no other socket of the connection is remembered.
    fn is_alone(&self, line: &Line) -> bool {
        let same = line.client().and_then(|client| self.ends.get(&client));
        same.is_none_or(|same| same.len() <= 1)
    }

    /// Whether the client's end of a server's connection is watched as well.
    fn is_client_seen(&self, server: &Line) -> bool {
        let same = self.ends.get(&server.facts.remote).into_iter().flatten();
        let mut lines = same.filter_map(|cookie| self.lines.get(cookie));
        lines.any(|line| line.seen_by() == Some(SeenBy::Client))
    }

    /// Requests that would end with their connections, each counted at one end. Decoders are of no use behind it.
    pub(super) fn under_way(&mut self, now_ns: u64) -> u64 {
        let is_counted = |line: &&Line| match line.seen_by() {
            Some(SeenBy::Client) => line.gone.is_none(),
            Some(SeenBy::Server) => line.gone.is_none() && !self.is_client_seen(line),
            None => false,
        };
        let counted = self.lines.iter().filter(|(_, line)| is_counted(line));
        let cookies: Vec<u64> = counted.map(|(cookie, _)| *cookie).collect();
        let mut open = Vec::new();
        for cookie in cookies {
            if let Some(line) = self.lines.get_mut(&cookie) {
                line.end_all(now_ns, &mut open);
            }
        }
        open.len() as u64
    }

    /// Counts what was said before encryption began.
    fn greet(&mut self, patience: Patience) {
        let mut greetings = Vec::new();
        for line in self.lines.values() {
            let Some(edge) = line.edge.as_ref().filter(|_| !line.is_greeted) else {
                continue;
            };
            let is_mine = match line.seen_by() {
                Some(SeenBy::Client) => true,
                Some(SeenBy::Server) => !self.is_client_seen(line),
                None => false,
            };
            let greeting = line.greeting(patience == Patience::None);
            if let Some(greeting) = greeting.filter(|_| is_mine) {
                greetings.push((edge.clone(), greeting));
            }
        }
        for (edge, greeting) in greetings {
            self.operations.greeted(&edge, greeting);
        }
        let last = patience == Patience::None;
        for line in self.lines.values_mut().filter(|line| line.edge.is_some()) {
            line.is_greeted |= line.greeting(last).is_some();
        }
    }

    /// Forgets connections that ended some reports ago.
    pub(super) fn forget(&mut self) {
        while let Some(cookie) = self.gone.front().copied() {
            let gone = self.lines.get(&cookie).and_then(|line| line.gone);
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
        let Some(line) = self.lines.remove(&cookie) else {
            return;
        };
        super::report::add(&mut self.counters, &line);
        for client in [line.facts.local, line.facts.remote] {
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
fn teller(line: &Line, seen_by: SeenBy, mate: &Line) -> SeenBy {
    let (client, server) = match seen_by {
        SeenBy::Client => (line, mate),
        SeenBy::Server => (mate, line),
    };
    let settled = client.teller.or(server.teller);
    settled.unwrap_or_else(|| match (client.holes(), server.holes()) {
        (0, _) => SeenBy::Client,
        (_, 0) => SeenBy::Server,
        (_, _) if server.exchanges() > client.exchanges() => SeenBy::Server,
        (_, _) => SeenBy::Client,
    })
}
