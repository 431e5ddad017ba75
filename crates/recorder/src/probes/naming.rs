//! Rows whose stacks are being named, in the order of their drains.
//!
//! The symbolizer may come to wait for a file that does not answer. Its rows are then asked for once more, of the thread that
//! takes its place, and where that waits as well they keep their addresses: no sample is lost for want of a name.

use std::collections::{HashSet, VecDeque};

use profiler_model::{Clock, ProcessKey};
use profiler_symbolize::{
    AddressStack, Naming, NamingInProgress, Prospect, SymbolizerService, unnamed,
};

use super::timeline::{Origin, new_builder};

/// How often the same rows are asked for.
const MOST_TRIES: u8 = 2;

/// What was asked for at once.
#[derive(Debug)]
struct Asked<R> {
    rows: Vec<R>,
    stacks: Vec<AddressStack>,
    naming: NamingInProgress,
    tries: u8,
}

#[derive(Debug)]
pub(super) struct NamingQueue<R> {
    symbolizer: SymbolizerService,
    origin: Origin,
    clock: Clock,
    waiting: VecDeque<Asked<R>>,
    /// Processes whose names did not come.
    unnamed: HashSet<ProcessKey>,
}

impl<R> NamingQueue<R> {
    pub(super) fn new(symbolizer: SymbolizerService, origin: Origin, clock: Clock) -> Self {
        Self {
            symbolizer,
            origin,
            clock,
            waiting: VecDeque::new(),
            unnamed: HashSet::new(),
        }
    }

    /// Asks for the names of rows.
    pub(super) fn ask(&mut self, rows: Vec<R>, stacks: Vec<AddressStack>) {
        let naming = self.name(stacks.clone());
        self.waiting.push_back(Asked {
            rows,
            stacks,
            naming,
            tries: 1,
        });
    }

    fn name(&self, stacks: Vec<AddressStack>) -> NamingInProgress {
        let empty = new_builder(self.origin, self.clock);
        self.symbolizer.name(stacks, empty)
    }

    /// The next rows, if they are named.
    pub(super) fn next(&mut self) -> Option<(Vec<R>, Naming)> {
        self.next_by(NamingInProgress::look)
    }

    /// The next rows, for which it waits; `None`: there are no more.
    pub(super) fn await_next(&mut self) -> Option<(Vec<R>, Naming)> {
        while !self.waiting.is_empty() {
            if let Some(next) = self.next_by(NamingInProgress::wait) {
                return Some(next);
            }
        }
        None
    }

    fn next_by(&mut self, look: impl Fn(&NamingInProgress) -> Naming) -> Option<(Vec<R>, Naming)> {
        let asked = self.waiting.front()?;
        let named = look(&asked.naming);
        if !matches!(named, Naming::Working) {
            return Some((self.waiting.pop_front()?.rows, named));
        }
        let tries = asked.tries;
        match self.symbolizer.prospect(&asked.naming) {
            Prospect::Working => None,
            Prospect::AskAgain if tries < MOST_TRIES => self.ask_again(),
            Prospect::AskAgain | Prospect::None => self.give_up(),
        }
    }

    /// There is a new symbolizer, which was asked for nothing.
    fn ask_again(&mut self) -> Option<(Vec<R>, Naming)> {
        let asked = self.waiting.pop_front()?;
        let naming = self.name(asked.stacks.clone());
        self.waiting.push_front(Asked {
            naming,
            tries: asked.tries + 1,
            ..asked
        });
        None
    }

    fn give_up(&mut self) -> Option<(Vec<R>, Naming)> {
        let Asked { rows, stacks, .. } = self.waiting.pop_front()?;
        let processes = stacks.iter().map(|stack| stack.image.process);
        self.unnamed.extend(processes);
        let named = unnamed(&stacks, new_builder(self.origin, self.clock));
        Some((rows, Naming::Done(Box::new(named))))
    }

    /// What to report about names that did not come.
    pub(super) fn note(&self) -> Option<String> {
        let count = self.unnamed.len();
        (count > 0).then(|| {
            format!("names of {count} programs are missing: their files did not answer; the samples are kept with addresses")
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc::channel, time::Instant};

    use profiler_image::proc_dir::read_stat;
    use profiler_symbolize::{ImageKey, SymbolizeConfig};

    use super::*;

    /// A stack of this test in its own process.
    fn own_stack() -> AddressStack {
        let pid = std::process::id();
        let start_ticks = read_stat(pid).unwrap().start_ticks;
        let address = own_stack as *const () as u64;
        AddressStack {
            image: ImageKey::from(ProcessKey { pid, start_ticks }),
            kernel: None,
            user: Some([address + 1].into()),
        }
    }

    fn queue(symbolizer: &SymbolizerService) -> NamingQueue<u32> {
        NamingQueue::new(symbolizer.clone(), Origin::now(), Clock::CpuClock)
    }

    /// Names of the functions of the only stack.
    fn names(naming: Naming) -> Vec<String> {
        let Naming::Done(named) = naming else {
            panic!("not named: {naming:?}");
        };
        assert_eq!(named.stacks.len(), 1);
        let frames = &named.stacks[0].frames;
        assert_eq!(frames.len(), 1);
        let mut builder = new_builder(Origin::now(), Clock::CpuClock);
        let frames = builder.import_frames(&named.profile);
        let names = frames
            .iter()
            .map(|frame| builder.function_name(*frame).to_owned());
        names.collect()
    }

    #[test]
    fn another_symbolizer_names_what_one_that_hangs_was_asked_for() {
        let symbolizer = SymbolizerService::start(SymbolizeConfig::default()).unwrap();
        let mut queue = queue(&symbolizer);
        let (keep, until) = channel();
        symbolizer.hold(until);
        queue.ask(vec![7], vec![own_stack()]);
        assert!(queue.next().is_none());
        let (rows, naming) = queue.await_next().unwrap();
        assert_eq!(rows, [7]);
        let found = names(naming);
        assert!(
            found.iter().any(|name| name.contains("own_stack")),
            "{found:?}"
        );
        assert_eq!(queue.note(), None);
        drop(keep);
    }

    #[test]
    fn rows_keep_their_addresses_where_nobody_names_them() {
        let symbolizer = SymbolizerService::start(SymbolizeConfig::default()).unwrap();
        let mut queue = queue(&symbolizer);
        let begun = Instant::now();
        let (keep, until) = channel();
        symbolizer.hold(until);
        queue.ask(vec![7], vec![own_stack()]);
        queue.waiting[0].tries = MOST_TRIES;
        let (rows, naming) = queue.await_next().unwrap();
        assert!(begun.elapsed().as_secs() < 60);
        assert_eq!(rows, [7]);
        let found = names(naming);
        assert!(
            !found.iter().any(|name| name.contains("own_stack")),
            "{found:?}"
        );
        let note = queue.note().unwrap();
        assert!(
            note.starts_with("names of 1 programs are missing"),
            "{note}"
        );
        drop(keep);
    }
}
