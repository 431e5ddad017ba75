//! Event loops of a task: keeps what the kernel side counts and sends, and makes tables of it.

use std::{collections::BTreeMap, fs};

use profiler_common::event_loop::{LoopThread as Counted, StallRecord};
use profiler_model::{EventLoopTable, LoopRules, LoopThread, LoopTurn};

use super::{assembler::text_of, timeline::Origin};
use crate::bpf::{EventLoopLinks, LoadError, LoadedObject};

/// Stalls that are kept, the longest.
const MAX_STALLS: usize = 1000;
/// Ended threads that are kept, some 1.2 KB each.
const MAX_ENDED: usize = 4096;
const NS_PER_MS: u64 = 1_000_000;
/// A thread that seems to be away for this long is looked up. Others may have gone back since the end
/// of the task.
const LOOKED_UP_NS: u64 = 1_000_000_000;

/// Process and thread.
type Key = (u32, u32);

/// The event loops of one session.
#[derive(Debug)]
pub(super) struct EventLoopWatch {
    _links: EventLoopLinks,
    book: LoopLedger,
    /// Calls that the kernel did not report.
    missed: u64,
}

impl EventLoopWatch {
    /// The programs are attached; `origin` is when they have begun to count.
    pub(super) fn new(links: EventLoopLinks, rules: LoopRules, origin: Origin) -> Self {
        Self {
            _links: links,
            book: LoopLedger::new(rules, origin),
            missed: 0,
        }
    }

    pub(super) fn stalled(&mut self, record: &StallRecord) {
        self.book.stalled(record);
    }

    pub(super) fn ended(&mut self, thread: &Counted) {
        self.book.ended(thread);
    }

    /// Reads the threads that live. Returns the calls that were missed since the last time.
    pub(super) fn read(&mut self, object: &LoadedObject) -> Result<u64, LoadError> {
        self.book.live(object.loop_threads()?);
        let missed = object.missed_loop_calls();
        let new = missed.saturating_sub(self.missed);
        self.missed = missed;
        Ok(new)
    }

    /// Everything so far. Turns that are not over last until `now_ns` of the kernel's clock; `lost`
    /// counts what the kernel side could not keep or send.
    pub(super) fn table(&self, now_ns: u64, lost: u64) -> EventLoopTable {
        // A thread whose call was missed may seem to be away for ever, and not every kernel counts
        // these calls.
        let is_away = |(pid, tid): Key| !is_in_epoll(pid, tid);
        self.book.table(now_ns, lost + self.missed, is_away)
    }
}

/// Whether a thread sleeps in epoll now.
fn is_in_epoll(pid: u32, tid: u32) -> bool {
    #[cfg(target_arch = "x86_64")]
    const CALLS: [libc::c_long; 3] = [
        libc::SYS_epoll_wait,
        libc::SYS_epoll_pwait,
        libc::SYS_epoll_pwait2,
    ];
    #[cfg(not(target_arch = "x86_64"))]
    const CALLS: [libc::c_long; 2] = [libc::SYS_epoll_pwait, libc::SYS_epoll_pwait2];
    // One line that begins with the number of the call, or with "running".
    let Ok(text) = fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")) else {
        return false;
    };
    let call = text.split_whitespace().next();
    call.and_then(|number| number.parse().ok())
        .is_some_and(|number: libc::c_long| CALLS.contains(&number))
}

/// What is known of threads and stalls.
#[derive(Debug)]
struct LoopLedger {
    rules: LoopRules,
    origin: Origin,
    /// Threads that live, as last read.
    live: BTreeMap<Key, Counted>,
    /// Threads that have ended; those that had the same number one after the other are one.
    ended: BTreeMap<Key, Counted>,
    /// Ended threads that were not kept.
    left_out: u64,
    /// The longest turns that are over.
    stalls: Vec<LoopTurn>,
}

impl LoopLedger {
    fn new(rules: LoopRules, origin: Origin) -> Self {
        Self {
            rules,
            origin,
            live: BTreeMap::new(),
            ended: BTreeMap::new(),
            left_out: 0,
            stalls: Vec::new(),
        }
    }

    fn live(&mut self, threads: Vec<Counted>) {
        self.live = threads
            .into_iter()
            .map(|thread| ((thread.pid, thread.tid), thread))
            .collect();
    }

    fn stalled(&mut self, record: &StallRecord) {
        let StallRecord {
            header: _,
            pid,
            tid,
            began_ns,
            duration_ns,
            comm,
        } = *record;
        self.keep(LoopTurn {
            pid,
            tid,
            name: text_of(&comm),
            start_ns: self.origin.to_epoch_ns(began_ns),
            duration_ns,
            open: false,
        });
    }

    fn ended(&mut self, thread: &Counted) {
        let key = (thread.pid, thread.tid);
        self.live.remove(&key);
        let mut thread = *thread;
        let ended_ns = thread.header.time_ns;
        if let Some(turn) = self.open_turn(&mut thread, ended_ns) {
            self.keep(turn);
        }
        if let Some(earlier) = self.ended.get_mut(&key) {
            add(earlier, &thread);
        } else if self.ended.len() < MAX_ENDED {
            self.ended.insert(key, thread);
        } else {
            self.left_out += 1;
        }
    }

    /// The turn that a thread was in at `now_ns`, when it is a stall; counts it among these.
    fn open_turn(&self, thread: &mut Counted, now_ns: u64) -> Option<LoopTurn> {
        let duration_ns = now_ns.saturating_sub(thread.began_ns);
        let threshold_ns = u64::from(self.rules.threshold_ms) * NS_PER_MS;
        if thread.began_ns == 0 || duration_ns < threshold_ns {
            return None;
        }
        thread.stalls += 1;
        thread.stalls_ns = thread.stalls_ns.saturating_add(duration_ns);
        Some(LoopTurn {
            pid: thread.pid,
            tid: thread.tid,
            name: text_of(&thread.comm),
            start_ns: self.origin.to_epoch_ns(thread.began_ns),
            duration_ns,
            open: true,
        })
    }

    fn keep(&mut self, turn: LoopTurn) {
        self.stalls.push(turn);
        if self.stalls.len() >= 2 * MAX_STALLS {
            longest_first(&mut self.stalls);
        }
    }

    fn table(&self, now_ns: u64, lost: u64, is_away: impl Fn(Key) -> bool) -> EventLoopTable {
        let mut all = self.ended.clone();
        let mut stalls = self.stalls.clone();
        for (key, thread) in &self.live {
            let mut thread = *thread;
            let away_ns = now_ns.saturating_sub(thread.began_ns);
            if thread.began_ns != 0 && (away_ns < LOOKED_UP_NS || is_away(*key)) {
                stalls.extend(self.open_turn(&mut thread, now_ns));
            }
            match all.get_mut(key) {
                Some(earlier) => add(earlier, &thread),
                None => drop(all.insert(*key, thread)),
            }
        }
        longest_first(&mut stalls);
        EventLoopTable {
            threshold_ms: self.rules.threshold_ms,
            stall_count: all.values().map(|thread| thread.stalls).sum(),
            threads: all.values().map(thread).collect(),
            stalls,
            lost: lost + self.left_out,
        }
    }
}

/// Puts the longest first and forgets the shortest of too many.
fn longest_first(stalls: &mut Vec<LoopTurn>) {
    stalls.sort_by_key(|turn| (std::cmp::Reverse(turn.duration_ns), turn.start_ns));
    stalls.truncate(MAX_STALLS);
}

/// Adds what a later thread of the same number has counted.
fn add(earlier: &mut Counted, later: &Counted) {
    earlier.turns += later.turns;
    earlier.turns_ns = earlier.turns_ns.saturating_add(later.turns_ns);
    earlier.longest_ns = earlier.longest_ns.max(later.longest_ns);
    earlier.stalls += later.stalls;
    earlier.stalls_ns = earlier.stalls_ns.saturating_add(later.stalls_ns);
    earlier.comm = later.comm;
    for (sum, more) in earlier.counts.iter_mut().zip(&later.counts) {
        *sum += more;
    }
}

fn thread(counted: &Counted) -> LoopThread {
    let Counted {
        pid,
        tid,
        comm,
        turns,
        turns_ns,
        longest_ns,
        stalls,
        stalls_ns,
        counts,
        ..
    } = counted;
    LoopThread {
        pid: *pid,
        tid: *tid,
        name: text_of(comm),
        turns: *turns,
        turns_ns: *turns_ns,
        stalls: *stalls,
        stalls_ns: *stalls_ns,
        ..LoopThread::default()
    }
    .counted(counts, *longest_ns)
}

#[cfg(test)]
#[path = "event_loop_tests.rs"]
mod tests;
