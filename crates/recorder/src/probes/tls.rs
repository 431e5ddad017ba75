//! Probes in the TLS functions of a task's processes: puts them there, takes them away, and says what
//! they cost.
//!
//! Files are looked at by a thread of its own, because that may take a second; probes are attached by
//! the session, for one process at a time or, where many run a file, for all of them. With a duty below
//! the whole, probes are there for a part of each period and nothing of them is left in between.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs::File,
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel},
    },
    time::{Duration, Instant},
};

use profiler_common::tls::{
    PROCESS_EPOCH, PROCESS_SINCE, PROCESS_WORDS, STATE_CIPHERTEXT, STATE_GOROUTINES, STATE_PAUSED,
    TLS_CALLS_MET, TLS_PIECES, TLS_RESULTS_MET, TLS_STEPPED_MET, TLS_UNBOUND_READ,
    TLS_UNBOUND_WRITTEN, TLS_UNREADABLE,
};
use profiler_host::process::ProcessTable;
use profiler_image::{
    module_file::FileKey,
    proc_dir::{is_running, read_stat},
};
use profiler_model::{ProcessKey, TlsFileReport, TlsReport};
use profiler_sandbox::broker;
use profiler_symbolize::SymbolizeConfig;
use profiler_tls_sites::{
    Finding, Library, ProcessTls, TlsContent, TlsFinder, TlsFunction, TlsMapping,
};

use super::{
    timeline::monotonic_ns,
    tls_ciphertext::{self, Ciphertext},
    tls_duty::{Duty, DutyStep},
    tls_report::{add_ciphertext, file_report, left_out_reason, program_ns, spent_ns},
    tls_shared::{Half, Shared},
    tls_targets::TlsTargets,
    tls_turns::{LOOK_SOON, ProbeRoom, Waiting, due},
};
use crate::bpf::{LoadError, LoadedObject, TlsLink, TlsProbe};

/// How long a task waits for the processes that run when it begins, and how often it looks. A stripped
/// program of 100 MB takes half a second.
const SETTLE_LIMIT: Duration = Duration::from_secs(10);
const SETTLE_PAUSE: Duration = Duration::from_millis(5);
/// Processes that may wait to be looked at.
const WAITING_LIMIT: usize = 64;

/// A process of the target; most have no TLS.
#[derive(Debug)]
struct TlsProcess {
    key: ProcessKey,
    seen: Instant,
    /// When it was asked for last; not answered yet.
    asked: Option<Instant>,
    looked: Option<Instant>,
    files: Vec<TlsMapping>,
    /// By file; empty while probes are away.
    links: HashMap<FileKey, Vec<TlsLink>>,
    ciphertext: Ciphertext,
    /// There is no room for its probes.
    is_left_out: bool,
}

impl TlsProcess {
    fn is_looked_at(&self) -> bool {
        self.looked.is_some() || !self.files.is_empty()
    }

    /// Those that are to have probes.
    fn wanted(&self, half: Half) -> Vec<&TlsMapping> {
        let has_plaintext = |mapping: &&TlsMapping| match &mapping.content.finding {
            Finding::Found(found) => found.has_plaintext(),
            Finding::None | Finding::Refused(_) => false,
        };
        match half {
            Half::Plaintext => self.files.iter().filter(has_plaintext).collect(),
            Half::Ciphertext => self.ciphertext.wanted(&self.files),
        }
    }

    /// Its files with a TLS library that can be read.
    fn found(&self) -> impl Iterator<Item = &TlsMapping> {
        let is_found = |mapping: &&TlsMapping| matches!(mapping.content.finding, Finding::Found(_));
        self.files.iter().filter(is_found)
    }
}

/// What the finder's thread answers.
#[derive(Debug)]
struct Answer {
    key: ProcessKey,
    found: Option<ProcessTls>,
}

/// Probes of one task.
#[derive(Debug)]
pub(super) struct TlsProbes {
    duty: Duty,
    /// Since when the processes that ran at the beginning are being looked at; `None`: they were.
    settling: Option<Instant>,
    cpu_percent: u32,
    was_limited: bool,
    processes: BTreeMap<u32, TlsProcess>,
    shared: Shared,
    questions: SyncSender<ProcessKey>,
    answers: Receiver<Answer>,
    /// Every file that was found, for the report.
    files: HashMap<FileKey, TlsFileReport>,
    has_goroutines: bool,
    has_ciphertext: bool,
    epoch: u64,
    /// Why nothing is captured.
    unavailable: Option<String>,
    targets: TlsTargets,
    /// The processes that were listed last.
    wanted: BTreeSet<u32>,
    listed: Option<Instant>,
}

impl TlsProbes {
    /// Starts the thread that looks at files. Probes are there for `duty_percent` of the time, and may cost
    /// `cpu_percent` of one CPU. `failure`: why the programs are not loaded.
    pub(super) fn start(
        (duty_percent, cpu_percent): (u8, u32),
        targets: TlsTargets,
        failure: Option<String>,
    ) -> std::io::Result<Self> {
        let (questions, asked) = sync_channel(WAITING_LIMIT);
        let (answer, answers) = sync_channel(WAITING_LIMIT);
        broker::start("tls-finder", move || look(&asked, &answer))?;
        Ok(Self {
            duty: Duty::new(duty_percent, cpu_percent),
            settling: Some(Instant::now()),
            cpu_percent,
            was_limited: false,
            processes: BTreeMap::new(),
            shared: Shared::default(),
            questions,
            answers,
            files: HashMap::new(),
            has_goroutines: false,
            has_ciphertext: false,
            epoch: 0,
            unavailable: failure,
            targets,
            wanted: BTreeSet::new(),
            listed: None,
        })
    }

    /// Does what is due: for all processes of the target as they are now. Called some times a second.
    pub(super) fn turn(&mut self, object: &mut LoadedObject, table: &ProcessTable) {
        if self.unavailable.is_some() {
            return;
        }
        if self
            .listed
            .is_none_or(|listed| listed.elapsed() >= LOOK_SOON)
        {
            self.listed = Some(Instant::now());
            match self.targets.pids(object, table) {
                Ok(pids) => self.wanted = pids,
                Err(error) => tracing::debug!(%error, "list the processes of the target"),
            }
            self.judge(object);
        }
        let wanted = std::mem::take(&mut self.wanted);
        self.follow(object, &wanted);
        self.wanted = wanted;
    }

    /// Waits until the processes that run now were looked at and have their probes.
    pub(super) fn settle(&mut self, object: &mut LoadedObject, table: &ProcessTable) {
        let began = Instant::now();
        while self.unavailable.is_none() && began.elapsed() < SETTLE_LIMIT {
            self.turn(object, table);
            if !self.processes.is_empty() && self.processes.values().all(TlsProcess::is_looked_at) {
                break;
            }
            std::thread::sleep(SETTLE_PAUSE);
        }
    }

    fn follow(&mut self, object: &mut LoadedObject, wanted: &BTreeSet<u32>) {
        let gone = |pid: &&u32| !wanted.contains(pid);
        let gone: Vec<u32> = self.processes.keys().filter(gone).copied().collect();
        for pid in gone {
            self.processes.remove(&pid);
            forget(object, pid);
        }
        let Self {
            processes, shared, ..
        } = self;
        let any = |runs: &dyn Fn(&TlsProcess) -> bool| processes.values().any(runs);
        shared
            .plaintext
            .keep(|key| any(&|process| process.links.contains_key(key)));
        shared
            .ciphertext
            .keep(|key| any(&|process| process.ciphertext.has(key)));
        for pid in wanted {
            self.meet(*pid);
        }
        self.ask();
        self.take_answers(object);
        let was_attached = self.duty.is_attached();
        if was_attached {
            match spent_ns(object) {
                Ok(spent_ns) => self.duty.spent(spent_ns, Instant::now()),
                Err(error) => tracing::debug!(%error, "read what probes have cost"),
            }
        }
        let done = match self.duty.turn(Instant::now()) {
            DutyStep::Attach => self.attach(object).and_then(|()| self.go_on(object)),
            DutyStep::Detach if was_attached || !self.probed().is_empty() => {
                self.was_limited |= self.duty.is_limited();
                self.detach(object)
            }
            DutyStep::Detach => Ok(()),
        };
        if let Err(error) = done {
            tracing::warn!(%error, "TLS is not captured");
            self.unavailable = Some(error.to_string());
            self.drop_links();
        }
    }

    /// Every probe is there: from now on plaintext is captured.
    fn go_on(&mut self, object: &mut LoadedObject) -> Result<(), LoadError> {
        if !self.duty.is_attached() {
            let spent_ns = spent_ns(object)?;
            // What was opened while they were put in was not seen from its beginning.
            for pid in self.probed() {
                let mut words = object.tls_process(pid)?.unwrap_or([0; PROCESS_WORDS]);
                words[PROCESS_SINCE] = monotonic_ns();
                object.set_tls_process(pid, words)?;
            }
            object.set_tls_state(STATE_PAUSED, 0)?;
            let is_settled = self.settling.is_none_or(|began| {
                self.processes.values().all(TlsProcess::is_looked_at)
                    || began.elapsed() >= SETTLE_LIMIT
            });
            // Of programs that are still being looked at nothing is read.
            if is_settled {
                self.settling = None;
                self.duty.attached(Instant::now(), spent_ns);
            }
        }
        Ok(())
    }

    /// What probes may cost in percent of one CPU, once that keeps them away for a part of the time.
    pub(super) fn limited_to_percent(&self) -> Option<u32> {
        self.was_limited.then_some(self.cpu_percent)
    }

    /// Processes in which probes are.
    fn probed(&self) -> Vec<u32> {
        let has_links = |process: &&TlsProcess| {
            let mut all = process.links.iter();
            all.any(|(key, links)| !links.is_empty() || self.shared.plaintext.has(key))
        };
        let probed = self.processes.values().filter(has_links);
        probed.map(|process| process.key.pid).collect()
    }

    /// Probes are there all the time, so far.
    pub(super) fn is_steady(&self) -> bool {
        self.unavailable.is_none() && self.duty.is_whole()
    }

    /// Takes all probes away. What they reported since `ended` is dropped.
    pub(super) fn stop(&mut self, object: &mut LoadedObject, ended: Instant) {
        self.duty.end(ended);
        if let Err(error) = self.detach(object) {
            tracing::debug!(%error, "stop to capture TLS");
            self.drop_links();
        }
    }

    /// Looks in which processes ciphertext need not be probed.
    fn judge(&mut self, object: &mut LoadedObject) {
        let is_probed = |process: &&mut TlsProcess| !process.links.is_empty();
        for process in self.processes.values_mut().filter(is_probed) {
            let pid = process.key.pid;
            match object.tls_process(pid) {
                Ok(Some(words)) => process.ciphertext.judge(&words),
                Ok(None) => {}
                Err(error) => tracing::debug!(%error, pid, "read what a process calls"),
            }
        }
    }

    /// Takes all probes away. Nothing is captured from the first one on: what the others would tell alone makes
    /// no sense.
    fn detach(&mut self, object: &mut LoadedObject) -> Result<(), LoadError> {
        object.set_tls_state(STATE_PAUSED, 1)?;
        let began = Instant::now();
        self.drop_links();
        self.duty.left(began.elapsed());
        Ok(())
    }

    /// Until no CPU can be in a probe the kernel waits a tenth of a second for each link, one after the other, regardless of
    /// the threads that ask for it. Where it can, one link holds all probes of a program in a file.
    fn drop_links(&mut self) {
        self.shared.clear();
        for process in self.processes.values_mut() {
            process.links.clear();
            process.ciphertext.detach();
        }
    }

    /// Remembers a process of the target.
    fn meet(&mut self, pid: u32) {
        if self.processes.contains_key(&pid) {
            return;
        }
        let Ok(stat) = read_stat(pid) else { return };
        let key = ProcessKey {
            pid,
            start_ticks: stat.start_ticks,
        };
        let process = TlsProcess {
            key,
            seen: Instant::now(),
            asked: None,
            looked: None,
            files: Vec::new(),
            links: HashMap::new(),
            ciphertext: Ciphertext::default(),
            is_left_out: false,
        };
        self.processes.insert(pid, process);
    }

    /// Has processes looked at that are due, as many as may wait.
    fn ask(&mut self) {
        let now = Instant::now();
        let waiting = self
            .processes
            .values()
            .filter(|process| process.asked.is_none());
        let waiting = waiting.map(|process| Waiting {
            pid: process.key.pid,
            seen: process.seen,
            looked: process.looked,
        });
        for pid in due(waiting, self.processes.len(), now) {
            let Some(process) = self.processes.get_mut(&pid) else {
                continue;
            };
            match self.questions.try_send(process.key) {
                Ok(()) => process.asked = Some(now),
                // Later.
                Err(TrySendError::Full(_)) => return,
                Err(TrySendError::Disconnected(_)) => {
                    self.unavailable = Some("the thread that looks at files has ended".to_owned());
                    return;
                }
            }
        }
    }

    fn take_answers(&mut self, object: &mut LoadedObject) {
        loop {
            let answer = match self.answers.try_recv() {
                Ok(answer) => answer,
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return,
            };
            let Some(process) = self.processes.get_mut(&answer.key.pid) else {
                continue;
            };
            process.asked = None;
            process.looked = Some(Instant::now());
            let Some(found) = answer.found else {
                // It has ended, or runs another program by now: then it is another process.
                self.processes.remove(&answer.key.pid);
                forget(object, answer.key.pid);
                continue;
            };
            // The other half of a library is reported when it is probed.
            let is_told = |mapping: &&TlsMapping| match &mapping.content.finding {
                Finding::Found(found) => found.has_plaintext(),
                Finding::None | Finding::Refused(_) => true,
            };
            for mapping in found.files.iter().filter(is_told) {
                self.files
                    .entry(mapping.key)
                    .or_insert_with(|| file_report(mapping));
            }
            let still = |key: &FileKey| found.files.iter().any(|mapping| mapping.key == *key);
            process.links.retain(|key, _| still(key));
            process.files = found.files;
        }
    }

    /// Puts probes into files that many processes run, in place of those that these have: two sets would tell everything
    /// twice.
    fn share(&mut self, object: &mut LoadedObject) {
        for half in [Half::Plaintext, Half::Ciphertext] {
            let has_room = |process: &&TlsProcess| !process.is_left_out;
            let all = self.processes.values().filter(has_room);
            let wanted: Vec<&TlsMapping> = all.flat_map(|process| process.wanted(half)).collect();
            let due = self
                .shared
                .of(half)
                .due(wanted.iter().map(|mapping| &mapping.key));
            let files: Vec<(FileKey, File, Vec<TlsProbe>)> = due
                .into_iter()
                .filter_map(|key| {
                    let mapping = wanted.iter().find(|mapping| mapping.key == key)?;
                    let probes = match half {
                        Half::Plaintext => probes(&mapping.content),
                        Half::Ciphertext => tls_ciphertext::probes(&mapping.content),
                    };
                    Some((key, mapping.file.try_clone().ok()?, probes))
                })
                .collect();
            for (key, file, probes) in files {
                for process in self.processes.values_mut() {
                    match half {
                        Half::Plaintext => drop(process.links.remove(&key)),
                        Half::Ciphertext => process.ciphertext.forget(&key),
                    }
                }
                if let Err(error) = self.shared.of(half).attach(object, key, &file, &probes) {
                    tracing::debug!(%error, "put probes into a file for all processes");
                }
            }
        }
    }

    /// Puts probes into every file of every process that has none there, as long as there is room.
    fn attach(&mut self, object: &mut LoadedObject) -> Result<(), LoadError> {
        self.share(object);
        let probed = self
            .processes
            .values()
            .filter(|process| !process.links.is_empty());
        let mut room = ProbeRoom::beside(probed.count());
        for process in self.processes.values_mut() {
            let is_new = process.links.is_empty() && process.found().next().is_some();
            process.is_left_out = is_new && !room.take();
            if process.is_left_out {
                continue;
            }
            let ciphertext = &mut process.ciphertext;
            let shared = &self.shared.ciphertext;
            for (key, result) in ciphertext.attach(object, process.key, &process.files, shared) {
                if !self.has_ciphertext {
                    object.set_tls_state(STATE_CIPHERTEXT, 1)?;
                    self.has_ciphertext = true;
                }
                let Some(mapping) = process.files.iter().find(|mapping| mapping.key == key) else {
                    continue;
                };
                let report = self
                    .files
                    .entry(key)
                    .or_insert_with(|| file_report(mapping));
                add_ciphertext(report, mapping, result.err());
            }
            let mut is_new = false;
            for mapping in &process.files {
                if process.links.contains_key(&mapping.key) {
                    continue;
                }
                let Finding::Found(found) = &mapping.content.finding else {
                    continue;
                };
                if found.library == Library::Go && !self.has_goroutines {
                    object.set_tls_state(STATE_GOROUTINES, 1)?;
                    self.has_goroutines = true;
                }
                let report = self.files.get_mut(&mapping.key);
                let is_shared = self.shared.plaintext.has(&mapping.key);
                let own = if is_shared {
                    Vec::new()
                } else {
                    probes(&mapping.content)
                };
                let pid = Some(process.key.pid);
                let (links, failure) = object.attach_tls(&own, &mapping.file, pid);
                let reason = failure.map(|error| error.to_string());
                if let Some(report) = report
                    && let Some(reason) = reason
                    && is_running(process.key)
                    && !report.reasons.contains(&reason)
                {
                    report.reasons.push(reason);
                }
                is_new |= is_shared || !links.is_empty();
                process.links.insert(mapping.key, links);
            }
            if is_new {
                self.epoch += 1;
                let known = object.tls_process(process.key.pid)?;
                let mut words = known.unwrap_or([0; PROCESS_WORDS]);
                words[PROCESS_EPOCH] = self.epoch;
                words[PROCESS_SINCE] = monotonic_ns();
                object.set_tls_process(process.key.pid, words)?;
            }
        }
        Ok(())
    }

    /// Processes that run a file whose probes are known, and those of them that have no room for probes.
    fn processes_with(&self, key: FileKey) -> (u64, u64) {
        let runs = |process: &&TlsProcess| process.found().any(|mapping| mapping.key == key);
        let all = self.processes.values().filter(runs);
        let left_out = all.clone().filter(|process| process.is_left_out);
        (all.count() as u64, left_out.count() as u64)
    }

    /// Processes with a TLS library that have no room for probes.
    pub(super) fn left_out(&self) -> usize {
        let all = self.processes.values();
        all.filter(|process| process.is_left_out).count()
    }

    pub(super) fn report(&self, object: &LoadedObject) -> Result<TlsReport, LoadError> {
        let counters = object.tls_counters()?;
        let of = |counter: u32| counters.get(counter as usize).copied().unwrap_or(0);
        let mut files: Vec<TlsFileReport> = self
            .files
            .iter()
            .map(|(key, file)| {
                let (all, left_out) = self.processes_with(*key);
                let mut file = file.clone();
                file.processes = all - left_out;
                file.reasons.extend(left_out_reason(left_out));
                file
            })
            .collect();
        files.sort_by(|one, other| one.path.cmp(&other.path));
        let now = Instant::now();
        Ok(TlsReport {
            files,
            unavailable: self.unavailable.clone(),
            attached_percent: self.duty.attached_percent(now),
            attached_ns: u64::try_from(self.duty.attached_time(now).as_nanos()).unwrap_or(u64::MAX),
            limited_to_percent: self.limited_to_percent(),
            hits: of(TLS_CALLS_MET) + of(TLS_RESULTS_MET),
            stepped_hits: of(TLS_STEPPED_MET),
            program_ns_per_hit: program_ns(object),
            pieces: of(TLS_PIECES),
            unbound_written_bytes: of(TLS_UNBOUND_WRITTEN),
            unbound_read_bytes: of(TLS_UNBOUND_READ),
            unreadable: of(TLS_UNREADABLE),
        })
    }
}

fn forget(object: &mut LoadedObject, pid: u32) {
    if let Err(error) = object.forget_tls_process(pid) {
        tracing::debug!(%error, pid, "forget the probes of a process");
    }
}

/// Looks at processes until no sender is left.
fn look(asked: &Receiver<ProcessKey>, answer: &SyncSender<Answer>) {
    let config = SymbolizeConfig::default();
    let mut finder = TlsFinder::new(config.max_file_bytes, config.packs);
    while let Ok(key) = asked.recv() {
        let found = finder.find(key).ok();
        if answer.send(Answer { key, found }).is_err() {
            return;
        }
    }
}

/// The probes of a file, results first: no call is remembered whose result would not be seen.
fn probes(content: &Arc<TlsContent>) -> Vec<TlsProbe> {
    let Finding::Found(found) = &content.finding else {
        return Vec::new();
    };
    let of = |function: &TlsFunction| -> Option<Vec<TlsProbe>> {
        let mut probes = Vec::new();
        for site in &function.returns {
            let offset = content.offset(site.site.address)?;
            probes.push(TlsProbe::result(function.call, site, offset)?);
        }
        let offset = content.offset(function.entry.site.address)?;
        probes.push(TlsProbe::arguments(function.call, &function.entry, offset)?);
        Some(probes)
    };
    found.plaintext().filter_map(of).flatten().collect()
}
