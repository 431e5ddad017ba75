//! Connections of Envoys as they were seen last, for a minute: an entry comes a second after its request, and one of a long request when
//! its connection has ended.

use std::{
    collections::{HashMap, HashSet},
    net::SocketAddr,
    ops::RangeInclusive,
    time::{Duration, Instant},
};

use profiler_model::{ProcessKey, sockets::DiagSocket};
use profiler_network::requests::{OtherEnd, SocketNow};

use super::peers::{Listings, Sought, measured, plain};

/// For how long connections are remembered that have ended.
const REMEMBERED: Duration = Duration::from_mins(1);
/// Connections that are remembered, of all network namespaces and of one.
const MOST: usize = 16_384;
const MOST_OF_NAMESPACE: usize = MOST / 4;
/// Addresses whose connections are remembered, of each kind.
const MOST_ADDRESSES: usize = 4_096;
/// How often the process at an end is looked for: a connection may not have been accepted, and processes cannot all be read.
const TRIES: u8 = 3;
/// Network namespaces in which the same addresses of loopback are remembered.
const MOST_ALIKE: usize = 64;
/// Between a moment of Envoy's clock and the same one here.
const SLACK_NS: u64 = 50_000_000;

/// The address of a socket and the one at its other end.
type Ends = (SocketAddr, SocketAddr);

/// When sockets are looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) at: Instant,
    /// By the wall clock, as entries have it.
    pub(super) wall_ns: u64,
}

/// A socket whose process is looked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fresh {
    ends: Ends,
    pub(super) namespace: u32,
    pub(super) inode: u64,
}

/// Who held an end when a request was made.
#[derive(Clone, Debug)]
pub(super) enum Held {
    /// No such connection was seen.
    Unseen,
    /// Several may have had these addresses then.
    Unclear,
    By(OtherEnd),
}

#[derive(Debug)]
struct Kept {
    namespace: u32,
    inode: u64,
    holder: Option<OtherEnd>,
    tries: u8,
    /// What it was like at first, and last.
    socket: Option<[SocketNow; 2]>,
    seen: Instant,
    /// It was not there before, nor after; `None`: it may be there.
    from_ns: u64,
    until_ns: Option<u64>,
}

/// Addresses, each with when it was learned and when it was asked for, or a connection to it was seen, last.
#[derive(Debug, Default)]
struct Addresses(HashMap<SocketAddr, (u64, Instant)>);

/// Sockets that are connected to one of the addresses at which Envoys are asked, and which they ask.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    /// Here the clients' processes are wanted.
    served: Addresses,
    /// And here what sockets are like.
    upstreams: Addresses,
    /// Those of several network namespaces may have the same addresses.
    kept: HashMap<Ends, Vec<Kept>>,
    /// Number of them.
    held: usize,
    /// When sockets were looked at last, if nothing was forgotten for room then, and where not all were taken.
    looked_ns: u64,
    cut: HashSet<u32>,
    /// Some were forgotten for room in this look.
    has_forgotten: bool,
}

impl Addresses {
    fn learn(&mut self, address: SocketAddr, look: Look) {
        if self.0.len() >= MOST_ADDRESSES && !self.0.contains_key(&address) {
            let mut goes = oldest_eighth(self.0.values().map(|(_, used)| *used).collect());
            self.0.retain(|_, (_, used)| !goes(*used));
        }
        let (_, used) = self.0.entry(address).or_insert((look.wall_ns, look.at));
        *used = look.at;
    }

    /// When it was learned.
    fn meet(&mut self, address: SocketAddr, at: Instant) -> Option<u64> {
        let (learned_ns, used) = self.0.get_mut(&address)?;
        *used = at;
        Some(*learned_ns)
    }
}

impl Remembered {
    /// Remembers connections to these addresses from now on: those at which Envoys are asked, and those that they ask.
    pub(super) fn learn(
        &mut self,
        served: impl Iterator<Item = SocketAddr>,
        upstreams: impl Iterator<Item = SocketAddr>,
        look: Look,
    ) {
        for address in served {
            self.served.learn(plain(address), look);
        }
        for address in upstreams {
            self.upstreams.learn(plain(address), look);
        }
    }

    /// Takes what is there now, and forgets what ended long ago. Those whose processes have to be looked for.
    pub(super) fn see(
        &mut self,
        listings: &Listings,
        look: Look,
        alive: &HashSet<ProcessKey>,
    ) -> Vec<Fresh> {
        self.keep(|kept| look.at.saturating_duration_since(kept.seen) < REMEMBERED);
        let mut fresh = Vec::new();
        let mut cut: HashSet<u32> = HashSet::new();
        for (namespace, listing) in listings {
            let sockets = listing.sockets.iter().filter_map(|socket| {
                let is_connected = !socket.listening && socket.inode != 0;
                let ends = (plain(socket.local), plain(socket.remote));
                let served_ns = self.served.meet(ends.1, look.at);
                let learned_ns = served_ns.or(self.upstreams.meet(ends.1, look.at))?;
                is_connected.then_some((socket, ends, learned_ns, served_ns.is_some()))
            });
            let mut sockets: Vec<_> = sockets.take(MOST_OF_NAMESPACE + 1).collect();
            if sockets.len() > MOST_OF_NAMESPACE {
                sockets.truncate(MOST_OF_NAMESPACE);
                cut.insert(*namespace);
            }
            for (socket, ends, learned_ns, is_served) in sockets {
                let is_wanted = self.note(ends, *namespace, (socket, learned_ns), look, alive);
                if is_served && is_wanted {
                    fresh.push(Fresh {
                        ends,
                        namespace: *namespace,
                        inode: socket.inode,
                    });
                }
            }
        }
        for kept in self.kept.values_mut().flatten() {
            if kept.seen != look.at && !cut.contains(&kept.namespace) {
                kept.until_ns.get_or_insert(look.wall_ns);
            }
        }
        self.cut = cut;
        // What was forgotten for room may be open: what is new at the next look may have been there.
        let has_forgotten = std::mem::take(&mut self.has_forgotten);
        self.looked_ns = if has_forgotten { 0 } else { look.wall_ns };
        fresh
    }

    fn keep(&mut self, mut stays: impl FnMut(&Kept) -> bool) {
        self.kept.retain(|_, there| {
            there.retain(&mut stays);
            !there.is_empty()
        });
        self.held = self.kept.values().map(Vec::len).sum();
    }

    /// Forgets an eighth, those that ended longest ago.
    fn make_room(&mut self) {
        let mut goes = oldest_eighth(self.kept.values().flatten().map(|kept| kept.seen).collect());
        self.keep(|kept| !goes(kept.seen));
        self.has_forgotten = true;
    }

    /// Whether its process is not known, and was not looked for too often.
    fn note(
        &mut self,
        ends: Ends,
        namespace: u32,
        (socket, learned_ns): (&DiagSocket, u64),
        look: Look,
        alive: &HashSet<ProcessKey>,
    ) -> bool {
        if self.held >= MOST {
            self.make_room();
        }
        let there = self.kept.entry(ends).or_default();
        let before = there.len();
        there.retain(|kept| kept.namespace != namespace || kept.inode == socket.inode);
        let from_ns = if there.len() < before {
            // Another one had the same addresses since the look before.
            look.wall_ns
        } else if learned_ns < self.looked_ns && !self.cut.contains(&namespace) {
            self.looked_ns
        } else {
            0
        };
        let place = there.iter().position(|kept| kept.namespace == namespace);
        if place.is_none() && there.len() >= MOST_ALIKE {
            return false;
        }
        let place = place.unwrap_or_else(|| {
            self.held += 1;
            there.push(Kept {
                namespace,
                inode: socket.inode,
                holder: None,
                tries: 0,
                socket: None,
                seen: look.at,
                from_ns,
                until_ns: None,
            });
            there.len() - 1
        });
        let Some(kept) = there.get_mut(place) else {
            return false;
        };
        kept.seen = look.at;
        kept.until_ns = None;
        if let Some(now) = measured(socket) {
            let [first, _] = kept.socket.unwrap_or([now; 2]);
            kept.socket = Some([first, now]);
        }
        if kept
            .holder
            .as_ref()
            .and_then(key)
            .is_some_and(|key| !alive.contains(&key))
        {
            // Another process has it now.
            (kept.holder, kept.tries) = (None, 0);
        }
        let is_wanted = kept.holder.is_none() && kept.tries < TRIES;
        kept.tries += u8::from(is_wanted);
        is_wanted
    }

    /// The process of one that had to be looked for.
    pub(super) fn found(&mut self, fresh: &Fresh, holder: Option<OtherEnd>) {
        let there = self.kept.get_mut(&fresh.ends);
        let mut there = there.into_iter().flatten();
        if let Some(kept) = there.find(|kept| kept.namespace == fresh.namespace) {
            kept.holder = holder;
        }
    }

    /// Who held an end when a request was made, by the wall clock. Whoever has a network namespace can give himself any address, and those of loopback are in
    /// every one; ports are used again.
    pub(super) fn holder(&self, sought: &Sought, request: &RangeInclusive<u64>) -> Held {
        let ends = (plain(sought.end), plain(sought.other));
        let is_near = |kept: &&Kept| {
            !ends.0.ip().is_loopback() || Some(u64::from(kept.namespace)) == sought.namespace
        };
        let there = self.kept.get(&ends).into_iter().flatten();
        let near: Vec<&Kept> = there.filter(is_near).collect();
        let kept = match near[..] {
            [] => return Held::Unseen,
            [kept] => kept,
            _ => return Held::Unclear,
        };
        let is_before = request.start().saturating_add(SLACK_NS) < kept.from_ns;
        let is_after = |until_ns: u64| *request.end() > until_ns.saturating_add(SLACK_NS);
        if is_before || kept.until_ns.is_some_and(is_after) {
            return Held::Unclear;
        }
        kept.holder.clone().map_or(Held::Unseen, Held::By)
    }

    /// What an Envoy's own socket was like at first, and last.
    pub(super) fn socket(
        &self,
        (local, remote): Ends,
        namespace: Option<u64>,
    ) -> Option<[SocketNow; 2]> {
        let mut there = self.kept.get(&(plain(local), plain(remote)))?.iter();
        let own = there.find(|kept| Some(u64::from(kept.namespace)) == namespace)?;
        own.socket
    }
}

/// Tells of each in turn whether it is of the eighth that was used longest ago.
fn oldest_eighth(mut used: Vec<Instant>) -> impl FnMut(Instant) -> bool {
    let mut left = used.len() / 8 + 1;
    used.sort_unstable();
    let youngest = used.get(left - 1).copied();
    move |at| {
        let goes = left > 0 && youngest.is_some_and(|youngest| at <= youngest);
        left -= usize::from(goes);
        goes
    }
}

fn key(end: &OtherEnd) -> Option<ProcessKey> {
    let (pid, start_ticks) = end.process.pid.zip(end.process.start_ticks)?;
    Some(ProcessKey { pid, start_ticks })
}

#[cfg(test)]
#[path = "remembered_tests.rs"]
mod tests;
