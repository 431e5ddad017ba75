//! Counts requests once it is known where they belong.

use super::{PATIENCE, Patience, REMEMBERED, Tracker};
use crate::{
    model::SeenBy,
    requests::{line::Line, operations::Counted, seen::Seen},
};

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
        let mate = self.client_of(line, &seen);
        let known = line.edge.clone();
        let edge = known
            .or_else(|| mate.and_then(|client| client.edge.clone()))
            .unwrap_or_else(|| line.own_edge(seen.seen_by));
        let counted = match mate {
            Some(_) => Counted::ByClient,
            None => Counted::Here,
        };
        self.operations.add(&edge, &seen, counted);
        self.sidecars.add(&edge, &seen);
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

    /// The client's socket of the same connection, when that sees requests as well.
    fn client_of(&self, line: &Line, seen: &Seen) -> Option<&Line> {
        if seen.seen_by == SeenBy::Client {
            return None;
        }
        let same = self.clients.get(&line.facts.remote)?;
        let mut clients = same.iter().filter_map(|cookie| self.lines.get(cookie));
        // Addresses are the same in several network namespaces; edges that were told are not.
        clients.find(|client| {
            let is_other = match (&line.edge, &client.edge) {
                (Some(own), Some(its)) => !line.is_guess && !client.is_guess && own != its,
                _ => false,
            };
            client.exchanges() > 0 && !is_other
        })
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
                Some(SeenBy::Server) => !self.clients.contains_key(&line.facts.remote),
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
        let reports = self.reports;
        let is_over = |line: &Line| line.gone.is_some_and(|gone| gone + REMEMBERED <= reports);
        let over: Vec<u64> = self
            .lines
            .iter()
            .filter(|(_, line)| is_over(line))
            .map(|(cookie, _)| *cookie)
            .collect();
        for cookie in over {
            let Some(line) = self.lines.remove(&cookie) else {
                continue;
            };
            super::report::add(&mut self.counters, &line);
            if let Some(same) = self.clients.get_mut(&line.facts.local) {
                same.retain(|known| *known != cookie);
                if same.is_empty() {
                    self.clients.remove(&line.facts.local);
                }
            }
        }
    }
}
