//! Idle connections make room in the kernel's table, which is bounded.
//!
//! When the table is nearly full, idle connections leave it. Their counts stay here and are added to what
//! the kernel counts when they are used again, so that a connection looks the same wherever its numbers
//! are. A connection is taken out at the second look if it has not been used since the first.

use std::collections::{HashMap, HashSet};

use profiler_common::{
    header::KIND_CONNECTION,
    network::{Connection, EVICTION_MARK, EVICTION_TAKE, FLAG_EVICTED},
};

/// Connections that may rest here; about 55 MB.
const MAX_RESTING: usize = 65_536;

/// A closed socket that no process gives back is forgotten after this time.
const CLOSED_LONG_NS: u64 = 60_000_000_000;

/// A socket that is younger than this may not have been listed yet.
const TOO_YOUNG_NS: u64 = 1_000_000_000;

/// See the module.
#[derive(Debug, Default)]
pub struct EvictedConnections {
    /// Entries that the kernel's table has.
    capacity: usize,
    /// Looked at once.
    marked: Vec<u64>,
    kept: HashMap<u64, Connection>,
    /// Connections that left the table, each time.
    pub evicted: u64,
    /// Entries whose end was missed.
    pub swept: u64,
}

impl EvictedConnections {
    pub fn new(capacity: u32) -> Self {
        Self {
            capacity: capacity as usize,
            ..Self::default()
        }
    }

    /// Takes what a connection had counted when it left the table.
    pub fn rest(&mut self, mut connection: Connection) {
        connection.flags &= !FLAG_EVICTED;
        connection.header.kind = 0;
        self.evicted += 1;
        let whole = self.end(&connection);
        self.kept.insert(whole.cookie, whole);
    }

    /// A connection of the table with what it had counted before.
    pub fn whole(&self, connection: &Connection) -> Connection {
        match self.kept.get(&connection.cookie) {
            Some(earlier) => earlier.joined(connection),
            None => *connection,
        }
    }

    /// The same for one that has ended.
    pub fn end(&mut self, connection: &Connection) -> Connection {
        match self.kept.remove(&connection.cookie) {
            Some(earlier) => earlier.joined(connection),
            None => *connection,
        }
    }

    /// Connections that are nowhere but here.
    pub fn outside(&self, table: &HashSet<u64>) -> Vec<Connection> {
        self.kept
            .values()
            .filter(|connection| !table.contains(&connection.cookie))
            .copied()
            .collect()
    }

    /// Whether the next call of [`Self::make`] may take connections out: only when no program is still
    /// at work that met one before it was marked.
    pub fn has_marked(&self) -> bool {
        !self.marked.is_empty()
    }

    /// Makes room when the table is nearly full, and says how many entries have left.
    /// `evict` does one step for one connection.
    pub fn make<E>(
        &mut self,
        table: &HashSet<u64>,
        mut evict: impl FnMut(u64, u64) -> Result<bool, E>,
    ) -> Result<usize, E> {
        let marked = std::mem::take(&mut self.marked);
        if table.len() <= self.capacity / 4 * 3 {
            return Ok(0);
        }
        let surplus = table.len() - self.capacity / 2;
        let free = MAX_RESTING.saturating_sub(self.kept.len());
        let mut left = 0;
        for cookie in marked {
            if left >= surplus.min(free) {
                break;
            }
            if evict(cookie, EVICTION_TAKE)? {
                left += 1;
            }
        }
        if left < surplus {
            for cookie in table {
                if evict(*cookie, EVICTION_MARK)? {
                    self.marked.push(*cookie);
                }
            }
        }
        Ok(left)
    }

    /// Connections whose end was missed: those that the kernel does not list any more. `listed` are
    /// the cookies of all sockets at `listed_ns`, of the namespaces for which `is_known`.
    pub fn gone<'a>(
        &'a self,
        table: impl Iterator<Item = &'a Connection>,
        listed: &HashSet<u64>,
        listed_ns: u64,
        is_known: impl Fn(u32) -> bool,
    ) -> HashSet<u64> {
        let is_gone = |connection: &&Connection| {
            if connection.closed_ns != 0 {
                // The kernel lists no closed sockets, although a process may keep one.
                return connection.closed_ns.saturating_add(CLOSED_LONG_NS) < listed_ns;
            }
            connection.seen_ns.saturating_add(TOO_YOUNG_NS) < listed_ns
                && is_known(connection.network_namespace)
                && !listed.contains(&connection.cookie)
        };
        table
            .chain(self.kept.values())
            .filter(is_gone)
            .map(|connection| connection.cookie)
            .collect()
    }

    /// Ends a connection whose end was missed; `entry` is what the table had of it.
    pub fn sweep(&mut self, cookie: u64, entry: Option<&Connection>) -> Option<Connection> {
        if entry.is_some() {
            self.swept += 1;
        }
        let mut connection = match entry {
            Some(entry) => self.end(entry),
            None => self.kept.remove(&cookie)?,
        };
        connection.header.kind = KIND_CONNECTION;
        Some(connection)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use profiler_common::network::{DIRECTION_CLIENT, FLAG_COMPLETE, FLAG_JOINED, FLAG_SHARED};

    use super::*;

    fn connection(cookie: u64) -> Connection {
        Connection {
            cookie,
            flags: FLAG_COMPLETE,
            direction: DIRECTION_CLIENT,
            seen_ns: 1,
            sent_bytes: 100,
            sent_without_rtt: 2,
            srtt_min_us: 7,
            min_rtt_us: 3,
            pid: 42,
            network_namespace: 1,
            ..Connection::default()
        }
    }

    #[test]
    fn a_connection_that_comes_back_has_all_of_its_counts() {
        let mut evicted = EvictedConnections::new(8);
        evicted.rest(Connection {
            flags: FLAG_COMPLETE | FLAG_EVICTED,
            ..connection(5)
        });
        assert_eq!(evicted.outside(&HashSet::new()).len(), 1);
        let mut again = Connection {
            cookie: 5,
            flags: FLAG_COMPLETE | FLAG_JOINED,
            sent_bytes: 11,
            sent_without_rtt: 1,
            srtt_min_us: 9,
            min_rtt_us: 2,
            first_sent: 100,
            last_sent: 111,
            pid: 43,
            ..Connection::default()
        };
        again.rtt.counts[3] = 1;
        let whole = evicted.whole(&again);
        assert_eq!((whole.sent_bytes, whole.sent_count()), (111, 4));
        assert_eq!((whole.srtt_min_us, whole.rtt.counts[3]), (7, 1));
        assert_eq!(whole.min_rtt_us, 2);
        assert_eq!((whole.direction, whole.pid), (DIRECTION_CLIENT, 43));
        // Its beginning was seen, so that it is compared with all that the socket has sent.
        assert_eq!(whole.flags, FLAG_COMPLETE | FLAG_SHARED);
        assert_eq!((whole.first_sent, whole.last_sent), (0, 111));
        assert!(evicted.outside(&HashSet::from([5])).is_empty());
        // Once more, and then to its end.
        evicted.rest(again);
        let ended = evicted.end(&again);
        assert_eq!((ended.sent_bytes, ended.sent_count()), (122, 6));
        assert!(evicted.outside(&HashSet::new()).is_empty());
        assert_eq!(evicted.evicted, 2);
    }

    #[test]
    fn only_what_was_not_used_between_two_looks_leaves_a_table_that_is_nearly_full() {
        let mut evicted = EvictedConnections::new(8);
        let table: HashSet<u64> = (1..=6).collect();
        let mut asked = Vec::new();
        let mut nothing = |cookie, action| {
            asked.push((cookie, action));
            Ok::<_, Infallible>(true)
        };
        assert_eq!(evicted.make(&table, &mut nothing), Ok(0));
        assert!(asked.is_empty());
        let table: HashSet<u64> = (1..=8).collect();
        let mut marked = 0;
        let first = evicted.make(&table, |cookie, action| {
            assert_eq!(action, EVICTION_MARK);
            marked += 1;
            Ok::<_, Infallible>(cookie != 3)
        });
        assert_eq!((first, marked), (Ok(0), 8));
        let second = evicted.make(&table, |cookie, action| {
            assert_ne!((cookie, action), (3, EVICTION_TAKE), "it was not marked");
            Ok::<_, Infallible>(action == EVICTION_TAKE)
        });
        assert_eq!(second, Ok(4), "down to half of the table");
    }

    #[test]
    fn what_the_kernel_does_not_list_has_ended() {
        const SECOND: u64 = 1_000_000_000;
        let mut evicted = EvictedConnections::new(8);
        let young = Connection {
            seen_ns: 100 * SECOND,
            ..connection(3)
        };
        let closed = |seconds| Connection {
            closed_ns: seconds * SECOND,
            ..connection(seconds)
        };
        let elsewhere = Connection {
            network_namespace: 2,
            ..connection(4)
        };
        let table = [
            connection(1),
            connection(2),
            young,
            elsewhere,
            closed(10),
            closed(90),
        ];
        evicted.rest(connection(6));
        let gone = evicted.gone(
            table.iter(),
            &HashSet::from([1]),
            100 * SECOND,
            |namespace| namespace == 1,
        );
        assert_eq!(gone, HashSet::from([2, 6, 10]));
        let ended = evicted.sweep(2, Some(&table[1])).unwrap();
        assert_ne!(ended.header.kind, 0);
        assert_eq!(evicted.sweep(6, None).map(|ended| ended.cookie), Some(6));
        assert_eq!(evicted.sweep(6, None), None);
        assert_eq!(evicted.swept, 1);
    }
}
