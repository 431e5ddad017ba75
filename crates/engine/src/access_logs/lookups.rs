//! Finds out for a task whose entries are of its target, and which processes are at the other ends of connections: on a thread that may
//! look into namespaces and processes. What it is asked are addresses and identities, and no text that Envoys have sent.

use std::{
    io,
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::{Duration, Instant},
};

use profiler_clock::wall_ns;
use profiler_host::{
    process::ProcessTable,
    sockets::{NamespacePath, Owners},
};
use profiler_model::{Endpoint, ProcessKey, Target};
use profiler_network::requests::{OtherEnd, OwnSocket, SocketNow, UnknownEnd};

use super::{
    COST_FACTOR,
    book::Owner,
    ends::{self, NOWHERE},
    peers::{self, Listings, Sought},
    remembered::{Held, Look, Remembered},
};
use crate::checkup::Targets;

/// By how much the time may be exceeded for which looking was paid.
const CREDIT: Duration = Duration::from_secs(15);

/// Looking only to remember takes a hundredth of a CPU at most.
const REMEMBER_FACTOR: u32 = 100;

#[derive(Debug)]
enum Question {
    Owner(Owner),
    /// Of connections: whose ends they are, and what sockets are like.
    Connections(Vec<UnknownEnd>, Vec<OwnSocket>),
}

#[derive(Debug)]
pub(super) enum Answer {
    /// `None`: it is not of the target.
    Owner(Owner, Option<Found>),
    Connections(Connections),
}

/// What was found of those that were asked for.
#[derive(Debug)]
pub(super) struct Connections {
    pub(super) ends: Vec<(UnknownEnd, OtherEnd)>,
    pub(super) sockets: Vec<(OwnSocket, SocketNow)>,
    /// How long it took, without what was remembered, and that with the reading of the sockets.
    took: Duration,
    remembering: Duration,
}

/// An Envoy of the target.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// Without a pid: it is no process of this node.
    pub(super) process: Endpoint,
    /// Inode of its network namespace.
    pub(super) namespace: Option<u64>,
}

/// The thread that is asked; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Lookups {
    questions: Sender<Question>,
    answers: Receiver<Answer>,
    /// Connections were asked for and not answered.
    is_looking: bool,
    not_before: Instant,
    /// When sockets are looked at only to remember them; `None`: no connection was asked for.
    remembers_at: Option<Instant>,
}

impl Lookups {
    pub(super) fn start(target: Target, table: ProcessTable) -> io::Result<Self> {
        let (questions, asked) = channel();
        let (answer, answers) = channel();
        thread::Builder::new()
            .name("log-lookups".to_owned())
            .spawn(move || serve(&asked, &answer, Filter::new(target), &table))?;
        Ok(Self {
            questions,
            answers,
            is_looking: false,
            not_before: Instant::now(),
            remembers_at: None,
        })
    }

    /// An answer comes later, unless the thread has failed.
    pub(super) fn ask_owner(&self, owner: Owner) {
        // Fails only with the thread.
        let _unheard = self.questions.send(Question::Owner(owner));
    }

    /// Whether an answer about connections is to come.
    pub(super) fn is_looking(&self) -> bool {
        self.is_looking
    }

    /// Whether connections may be asked for: reading the sockets of the node takes a twentieth of a CPU at most. What was not taken for a while
    /// may be taken at once: connections that are new together are seldom known together.
    pub(super) fn is_free(&self) -> bool {
        !self.is_looking && Instant::now() + CREDIT >= self.not_before
    }

    /// Whether sockets are looked at though nothing is asked for: what has ended before it is asked for must have been seen.
    pub(super) fn remembers(&self) -> bool {
        self.remembers_at.is_some_and(|due| Instant::now() >= due)
    }

    /// Asks for the processes at ends, and for what sockets are like.
    pub(super) fn ask(&mut self, ends: Vec<UnknownEnd>, sockets: Vec<OwnSocket>) {
        let question = Question::Connections(ends, sockets);
        self.is_looking = self.questions.send(question).is_ok();
    }

    /// The next answer, if there is one.
    pub(super) fn answer(&mut self) -> Option<Answer> {
        let answer = self.answers.try_recv();
        if let Ok(Answer::Connections(found)) = &answer {
            self.is_looking = false;
            let now = Instant::now();
            self.not_before = self.not_before.max(now) + found.took * COST_FACTOR;
            self.remembers_at = Some(now + found.remembering * REMEMBER_FACTOR);
        }
        answer.ok()
    }
}

fn serve(
    asked: &Receiver<Question>,
    answers: &Sender<Answer>,
    mut filter: Filter,
    table: &ProcessTable,
) {
    let mut finder = Finder::default();
    while let Ok(question) = asked.recv() {
        let answer = match question {
            Question::Owner(owner) => {
                let found = filter.find(&owner, table);
                Answer::Owner(owner, found)
            }
            Question::Connections(ends, sockets) => {
                Answer::Connections(finder.find(ends, sockets, table))
            }
        };
        if answers.send(answer).is_err() {
            return;
        }
    }
}

/// Finds out about connections.
#[derive(Debug, Default)]
struct Finder {
    owners: Owners,
    remembered: Remembered,
    /// Of those that are remembered.
    near: Owners,
}

impl Finder {
    /// By one reading of the node's sockets, and what earlier ones have shown. Blocks.
    fn find(
        &mut self,
        ends: Vec<UnknownEnd>,
        sockets: Vec<OwnSocket>,
        table: &ProcessTable,
    ) -> Connections {
        let look = Look {
            at: Instant::now(),
            wall_ns: wall_ns(),
        };
        let listings = peers::list(table);
        let listed = look.at.elapsed();
        self.remember(&ends, &sockets, (look, &listings), table);
        let remembering = look.at.elapsed();
        let Self {
            owners, remembered, ..
        } = self;
        let sought: Vec<Sought> = ends.iter().map(ends::sought).collect();
        let found = ends::find(&sought, &listings, table, owners);
        let ends = ends.into_iter().zip(&sought).zip(found);
        let ends = ends.filter_map(|((end, sought), found)| {
            let holder = match remembered.holder(sought, &(end.begin_ns..=end.end_ns)) {
                Held::By(holder) => Some(holder),
                Held::Unseen => found,
                Held::Unclear => None,
            };
            Some((end, holder?))
        });
        let ends = ends.collect();
        let now = peers::sockets(&sockets, &listings);
        let sockets = sockets.into_iter().zip(now).flat_map(|(socket, now)| {
            let seen = remembered.socket((socket.local, socket.remote), socket.namespace);
            let seen = seen.map(Vec::from);
            let seen = seen.or_else(|| Some(vec![now?])).unwrap_or_default();
            seen.into_iter().map(move |now| (socket, now))
        });
        Connections {
            ends,
            sockets: sockets.collect(),
            took: listed + look.at.elapsed().saturating_sub(remembering),
            remembering,
        }
    }

    /// Remembers the connections of Envoys that are there.
    fn remember(
        &mut self,
        ends: &[UnknownEnd],
        sockets: &[OwnSocket],
        (look, listings): (Look, &Listings),
        table: &ProcessTable,
    ) {
        let Self {
            remembered, near, ..
        } = self;
        let served = ends.iter().filter(|end| end.is_client);
        remembered.learn(
            served.map(|end| end.envoy),
            sockets.iter().map(|socket| socket.remote),
            look,
        );
        let processes = table.snapshot();
        let alive = processes.iter().map(|process| process.key).collect();
        let fresh = remembered.see(listings, look, &alive);
        let wanted = fresh.iter().map(|one| (one.inode, one.namespace));
        near.find_near(&wanted.collect(), table);
        for one in &fresh {
            let holder = near.holder(one.inode);
            let end = holder.and_then(|holder| ends::other_end(holder.process, table));
            remembered.found(one, end);
        }
    }
}

/// Which processes belong to the target.
#[derive(Debug)]
enum Filter {
    Everybody,
    /// Of processes by their pids one that has ended is known as well.
    Some(Targets, Vec<u32>),
    /// Those of a network namespace, by its path.
    Namespace(String),
}

impl Filter {
    fn new(target: Target) -> Self {
        match target {
            Target::All => Self::Everybody,
            Target::NetworkNamespace(path) => Self::Namespace(path),
            Target::Pids(ref pids) => {
                let pids = pids.clone();
                Self::Some(Targets::new(target), pids)
            }
            Target::Container(_) | Target::Pod(_) | Target::Cgroup(_) | Target::Comm(_) => {
                Self::Some(Targets::new(target), Vec::new())
            }
        }
    }

    fn find(&mut self, owner: &Owner, table: &ProcessTable) -> Option<Found> {
        let key = match owner {
            Owner::Process(key) => Some(*key),
            Owner::Claimed(_) | Owner::Other => None,
        };
        let process = key.and_then(|key| table.process(key));
        let namespace = process
            .as_ref()
            .and_then(|process| process.network_namespace);
        if !self.has(key, namespace, table) {
            return None;
        }
        let process = match process {
            Some(process) => ends::endpoint(&process),
            // It has ended, or is on another node.
            None => Endpoint {
                pid: key.map(|key| key.pid),
                start_ticks: key.map(|key| key.start_ticks),
                comm: String::new(),
                container: None,
                address: NOWHERE,
            },
        };
        Some(Found { process, namespace })
    }

    fn has(
        &mut self,
        process: Option<ProcessKey>,
        namespace: Option<u64>,
        table: &ProcessTable,
    ) -> bool {
        match self {
            Self::Everybody => true,
            Self::Some(targets, pids) => process.is_some_and(|key| {
                // It reads the table anew.
                let found = targets.find(table);
                let has_ended = || table.get(key.pid).is_none();
                found.iter().any(|process| process.key == key)
                    || pids.contains(&key.pid) && has_ended()
            }),
            Self::Namespace(path) => {
                let place = NamespacePath::parse(path);
                let inode = place.and_then(|place| place.inode().ok().flatten());
                inode.is_some_and(|inode| Some(u64::from(inode)) == namespace)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(lookups: &mut Lookups) -> Answer {
        for _ in 0..500 {
            if let Some(answer) = lookups.answer() {
                return answer;
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("no answer");
    }

    /// It has sent entries, and ended before it was looked for.
    #[test]
    fn a_process_of_the_target_that_has_ended_is_found() {
        let table = ProcessTable::new();
        table.refresh();
        // Beyond what Linux gives.
        let gone = ProcessKey {
            pid: 5_000_000,
            start_ticks: 7,
        };
        for (pids, is_found) in [(vec![gone.pid], true), (vec![1], false)] {
            let mut filter = Filter::new(Target::Pids(pids));
            let found = filter.find(&Owner::Process(gone), &table);
            assert_eq!(found.is_some(), is_found);
        }
    }

    #[test]
    fn only_processes_of_the_target_are_found() {
        let table = ProcessTable::new();
        table.refresh();
        let own = table.get(std::process::id()).unwrap().key;
        let first = table.get(1).unwrap().key;
        for (target, finds_first) in [(Target::All, true), (Target::Pids(vec![own.pid]), false)] {
            let mut lookups = Lookups::start(target, table.clone()).unwrap();
            for (owner, is_found) in [
                (Owner::Process(own), true),
                (Owner::Process(first), finds_first),
                (Owner::Claimed("elsewhere".to_owned()), finds_first),
            ] {
                lookups.ask_owner(owner.clone());
                let Answer::Owner(answered, found) = answer(&mut lookups) else {
                    panic!("{owner:?}");
                };
                assert_eq!((answered, found.is_some()), (owner, is_found));
            }
            lookups.ask(Vec::new(), Vec::new());
            assert!(!lookups.is_free());
            assert!(matches!(answer(&mut lookups), Answer::Connections(_)));
            assert!(!lookups.is_looking);
        }
    }
}
