//! The symbolizer on a thread of its own.
//!
//! blazesym's caches are not `Send`, and all collections share them, so they live on one thread
//! that works through requests in order.
//!
//! It reads files of targets, which may never answer. Whoever waits for it looks now and then whether it still works; a
//! thread that does not is left behind, and another takes its place, to which that file system is refused.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError, sync_channel},
    },
    thread,
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use profiler_image::{module_file::Refusal, snapshot::Snapshot};
use profiler_model::{FrameId, ProcessKey, Profile, ProfileBuilder};
use profiler_sandbox::broker::{self, ThreadWatch};
use profiler_unwind::ProcessCode;

use super::{
    AddressStack, ImageKey, Mappings, Quality, SymbolizeConfig, Symbolizer,
    symbolizer::unnamed_stack,
};

/// Requests that may wait (a minute of one collection's drains); a collection that finds the queue
/// full waits with its own drain.
const QUEUE: usize = 256;

/// Between two tries to find room in the queue.
const PAUSE: Duration = Duration::from_millis(2);

/// Between two looks at whether the thread works.
const LOOK: Duration = Duration::from_millis(50);

type Work = Box<dyn FnOnce(&mut Symbolizer) + Send>;

/// Frames of each asked stack in the same order, as ids into the tables of `profile`.
#[derive(Debug)]
pub struct NamedStacks {
    pub profile: Profile,
    pub stacks: Vec<NamedStack>,
}

#[derive(Debug)]
pub struct NamedStack {
    pub frames: Vec<FrameId>,
    /// Whether the process's mappings were known, without which its frames have no names.
    pub mappings: Mappings,
    /// Whether a frame has no name because the process's perf map is older than the process.
    pub has_old_perf_map: bool,
}

/// The answer that is being worked on.
#[derive(Debug)]
pub struct NamingInProgress {
    answer: Receiver<NamedStacks>,
    /// Over the thread that was asked.
    watch: Arc<ThreadWatch>,
}

/// State of a [`NamingInProgress`].
#[derive(Debug)]
pub enum Naming {
    Done(Box<NamedStacks>),
    Working,
    /// The symbolizer failed, which is logged; the caller keeps the samples.
    Failed,
}

impl NamingInProgress {
    /// Looks without waiting.
    pub fn look(&self) -> Naming {
        match self.answer.try_recv() {
            Ok(named) => Naming::Done(Box::new(named)),
            Err(TryRecvError::Empty) => Naming::Working,
            Err(TryRecvError::Disconnected) => Naming::Failed,
        }
    }

    /// Waits a moment for the end.
    pub fn wait(&self) -> Naming {
        match self.answer.recv_timeout(LOOK) {
            Ok(named) => Naming::Done(Box::new(named)),
            Err(RecvTimeoutError::Timeout) => Naming::Working,
            Err(RecvTimeoutError::Disconnected) => Naming::Failed,
        }
    }
}

/// What can be expected of a [`NamingInProgress`] without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prospect {
    Working,
    /// Another thread has taken the place of the one that was asked.
    AskAgain,
    None,
}

/// What the reading of a process has brought, beside its names.
#[derive(Debug, Default)]
pub struct ProcessRead {
    /// What it executes, when that was wanted and could be read.
    pub code: Option<ProcessCode>,
    /// Files that were left alone, and why.
    pub unread: Vec<(Arc<str>, Refusal)>,
    /// The process itself did not answer.
    pub is_silent: bool,
}

/// Handle on the symbolizer's thread, which ends with the last handle. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SymbolizerService {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    config: SymbolizeConfig,
    running: Mutex<Running>,
}

/// The thread that works.
#[derive(Clone, Debug)]
struct Running {
    requests: SyncSender<Work>,
    watch: Arc<ThreadWatch>,
}

impl Running {
    fn start(make: impl FnOnce() -> Symbolizer + Send + 'static) -> io::Result<Self> {
        let (requests, receiver) = sync_channel(QUEUE);
        let watch = Arc::new(ThreadWatch::default());
        let own = Arc::clone(&watch);
        broker::start("symbolizer", move || {
            ThreadWatch::begin(&own);
            serve(&receiver, &own, make());
        })?;
        Ok(Self { requests, watch })
    }
}

impl SymbolizerService {
    /// Starts the thread.
    pub fn start(config: SymbolizeConfig) -> io::Result<Self> {
        let own = config.clone();
        let running = Running::start(move || Symbolizer::new(own))?;
        let shared = Shared {
            config,
            running: Mutex::new(running),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        let running = &self.shared.running;
        running.lock()
    }

    /// Whether an answer can still come. Lets another thread take the place of one that waits for a file which does not
    /// answer.
    pub fn prospect(&self, asked: &NamingInProgress) -> Prospect {
        let mut running = self.running();
        if !Arc::ptr_eq(&running.watch, &asked.watch) {
            return Prospect::AskAgain;
        }
        self.replace(&mut running)
    }

    fn replace(&self, running: &mut Running) -> Prospect {
        if !running.watch.is_stuck() {
            return Prospect::Working;
        }
        if broker::is_left_behind_too_often() {
            return Prospect::None;
        }
        let config = self.shared.config.clone();
        match Running::start(move || Symbolizer::successor(config)) {
            Ok(fresh) => {
                tracing::warn!(
                    "the symbolizer waits for a file that does not answer; another one begins"
                );
                *running = fresh;
                Prospect::AskAgain
            }
            Err(error) => {
                tracing::error!(%error, "start another symbolizer");
                Prospect::None
            }
        }
    }

    /// Reads the mappings of a process and opens its files now, on the caller's thread: the process
    /// may be gone before the symbolizer has time.
    pub fn process_started(&self, image: ImageKey, wants_code: bool) -> ProcessRead {
        match Snapshot::read(image.process, self.shared.config.max_file_bytes) {
            Ok(snapshot) => {
                let code = wants_code.then(|| ProcessCode::of_snapshot(&snapshot));
                let unread = snapshot.refused.clone();
                self.tell(Box::new(move |symbolizer| {
                    symbolizer.adopt(image, snapshot);
                }));
                ProcessRead {
                    code: code.flatten(),
                    unread,
                    is_silent: false,
                }
            }
            Err(error) => {
                let is_silent = broker::is_silence(&error);
                self.tell(Box::new(move |symbolizer| {
                    symbolizer.not_read(image, &error);
                }));
                ProcessRead {
                    is_silent,
                    ..ProcessRead::default()
                }
            }
        }
    }

    /// See [`Symbolizer::process_exited`].
    pub fn process_exited(&self, process: ProcessKey) {
        self.tell(Box::new(move |symbolizer| {
            symbolizer.process_exited(process);
        }));
    }

    /// Tells of kernel code what the kernel itself prints for its addresses (`%ps`): `NAME`, `NAME [MODULE]`, or a number
    /// where it has no name.
    pub fn know_kernel(&self, printed: Vec<(u64, String)>) {
        self.tell(Box::new(move |symbolizer| symbolizer.know_kernel(&printed)));
    }

    /// Starts naming stacks; `builder` is the empty profile that their frames are interned in.
    pub fn name(&self, stacks: Vec<AddressStack>, mut builder: ProfileBuilder) -> NamingInProgress {
        let (sender, answer) = sync_channel(1);
        let watch = self.tell(Box::new(move |symbolizer| {
            let stacks = stacks
                .iter()
                .map(|stack| name(symbolizer, stack, &mut builder))
                .collect();
            // Fails only when the asker is gone.
            let _unheard = sender.send(NamedStacks {
                profile: builder.finish(),
                stacks,
            });
        }));
        NamingInProgress { answer, watch }
    }

    /// Keeps the thread where nothing comes back until the other end of `until` is dropped.
    #[cfg(any(test, feature = "held"))]
    pub fn hold(&self, until: Receiver<()>) {
        self.tell(Box::new(move |_| {
            until.recv().ok();
        }));
    }

    /// Drops what can be read again. Left out while too much waits.
    pub fn drop_caches(&self) {
        let requests = self.running().requests.clone();
        let _busy = requests.try_send(Box::new(Symbolizer::drop_caches));
    }

    /// Counters of the symbolizer; waits for the work that is queued before. `None` when that does not end.
    pub fn quality(&self) -> Option<Quality> {
        let (sender, answer) = sync_channel(1);
        let watch = self.tell(Box::new(move |symbolizer| {
            let _unheard = sender.send(symbolizer.quality());
        }));
        loop {
            match answer.recv_timeout(LOOK) {
                Ok(quality) => return Some(quality),
                Err(RecvTimeoutError::Timeout) if watch.is_stuck() => return None,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// Waits while the queue is full and the thread works. The result is the watch over the thread that takes the work.
    fn tell(&self, mut work: Work) -> Arc<ThreadWatch> {
        loop {
            let Running { requests, watch } = self.running().clone();
            match requests.try_send(work) {
                Ok(()) => return watch,
                Err(TrySendError::Disconnected(_)) => {
                    tracing::error!("the symbolizer has ended");
                    return watch;
                }
                Err(TrySendError::Full(again)) => work = again,
            }
            let mut running = self.running();
            if Arc::ptr_eq(&running.watch, &watch) && self.replace(&mut running) == Prospect::None {
                // What was asked gets no answer.
                return watch;
            }
            drop(running);
            thread::sleep(PAUSE);
        }
    }
}

/// The same stacks with addresses in place of names, where names are not available.
pub fn unnamed(stacks: &[AddressStack], mut builder: ProfileBuilder) -> NamedStacks {
    let stacks = stacks
        .iter()
        .map(|stack| NamedStack {
            frames: unnamed_stack(stack, &mut builder),
            // The loss of names is said otherwise.
            mappings: Mappings::Known,
            has_old_perf_map: false,
        })
        .collect();
    NamedStacks {
        profile: builder.finish(),
        stacks,
    }
}

fn name(
    symbolizer: &mut Symbolizer,
    stack: &AddressStack,
    builder: &mut ProfileBuilder,
) -> NamedStack {
    let mut frames = Vec::new();
    symbolizer.catch_up(stack.image);
    if let Some(kernel) = &stack.kernel {
        frames = symbolizer.kernel_stack(kernel, builder);
    }
    if let Some(user) = &stack.user {
        frames.extend(symbolizer.user_stack(stack.image, user, builder));
    }
    NamedStack {
        frames,
        mappings: symbolizer.mappings(stack.image),
        has_old_perf_map: symbolizer.has_old_perf_map(stack.image),
    }
}

/// A panic costs one request, not the thread.
fn serve(requests: &Receiver<Work>, watch: &ThreadWatch, mut symbolizer: Symbolizer) {
    while let Ok(work) = requests.recv() {
        let _working = watch.work();
        if catch_unwind(AssertUnwindSafe(|| work(&mut symbolizer))).is_err() {
            tracing::error!("the symbolizer panicked; its answer is missing");
        }
    }
}
