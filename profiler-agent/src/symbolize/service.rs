//! The symbolizer on a thread of its own.
//!
//! blazesym's caches are not `Send`, and all collections share them, so they live on one thread
//! that works through requests in order.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, TryRecvError, sync_channel},
    },
};

use super::{ImageKey, Mappings, Quality, SymbolizeConfig, Symbolizer, mapped_process::Snapshot};
use crate::{
    model::{FrameId, ProcessKey, Profile, ProfileBuilder},
    opener,
    unwind::ProcessCode,
};

/// Requests that may wait (a minute of one collection's drains); a collection that finds the queue
/// full waits with its own drain.
const QUEUE: usize = 256;

type Work = Box<dyn FnOnce(&mut Symbolizer) + Send>;

/// A stack as addresses, leaf first.
#[derive(Clone, Debug)]
pub struct AddressStack {
    pub image: ImageKey,
    pub kernel: Option<Arc<[u64]>>,
    pub user: Option<Arc<[u64]>>,
}

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
}

/// The answer that is being worked on.
#[derive(Debug)]
pub struct NamingInProgress {
    answer: Receiver<NamedStacks>,
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

    /// Waits for the end.
    pub fn wait(&self) -> Naming {
        self.answer
            .recv()
            .map_or(Naming::Failed, |named| Naming::Done(Box::new(named)))
    }
}

/// Handle on the symbolizer's thread, which ends with the last handle. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SymbolizerService {
    requests: SyncSender<Work>,
    max_file_bytes: u64,
}

impl SymbolizerService {
    /// Starts the thread.
    pub fn start(config: SymbolizeConfig) -> std::io::Result<Self> {
        let (requests, receiver) = sync_channel(QUEUE);
        let max_file_bytes = config.max_file_bytes;
        opener::start("symbolizer", move || {
            serve(&receiver, Symbolizer::new(config));
        })?;
        Ok(Self {
            requests,
            max_file_bytes,
        })
    }

    /// Reads the mappings of a process and opens its files now, on the caller's thread: the process
    /// may be gone before the symbolizer has time. With `wants_code` the result is what it executes, when that could be
    /// read.
    pub fn process_started(&self, image: ImageKey, wants_code: bool) -> Option<ProcessCode> {
        match Snapshot::read(image.process, self.max_file_bytes) {
            Ok(snapshot) => {
                let code = wants_code.then(|| ProcessCode::of_snapshot(&snapshot));
                self.tell(Box::new(move |symbolizer| {
                    symbolizer.adopt(image, snapshot);
                }));
                code.flatten()
            }
            Err(error) => {
                self.tell(Box::new(move |symbolizer| {
                    symbolizer.not_read(image, &error);
                }));
                None
            }
        }
    }

    /// See [`Symbolizer::process_exited`].
    pub fn process_exited(&self, process: ProcessKey) {
        self.tell(Box::new(move |symbolizer| {
            symbolizer.process_exited(process);
        }));
    }

    /// Starts naming stacks; `builder` is the empty profile that their frames are interned in.
    pub fn name(&self, stacks: Vec<AddressStack>, mut builder: ProfileBuilder) -> NamingInProgress {
        let (sender, answer) = sync_channel(1);
        self.tell(Box::new(move |symbolizer| {
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
        NamingInProgress { answer }
    }

    /// Drops what can be read again. Left out while too much waits.
    pub fn drop_caches(&self) {
        let _busy = self.requests.try_send(Box::new(Symbolizer::drop_caches));
    }

    /// Counters of the symbolizer; waits for the work that is queued before.
    pub fn quality(&self) -> Option<Quality> {
        let (sender, answer) = sync_channel(1);
        self.tell(Box::new(move |symbolizer| {
            let _unheard = sender.send(symbolizer.quality());
        }));
        answer.recv().ok()
    }

    fn tell(&self, work: Work) {
        if self.requests.send(work).is_err() {
            tracing::error!("the symbolizer has ended");
        }
    }
}

fn name(
    symbolizer: &mut Symbolizer,
    stack: &AddressStack,
    builder: &mut ProfileBuilder,
) -> NamedStack {
    let mut frames = Vec::new();
    if let Some(kernel) = &stack.kernel {
        frames = symbolizer.kernel_stack(kernel, builder);
    }
    if let Some(user) = &stack.user {
        frames.extend(symbolizer.user_stack(stack.image, user, builder));
    }
    NamedStack {
        frames,
        mappings: symbolizer.mappings(stack.image),
    }
}

/// A panic costs one request, not the thread.
fn serve(requests: &Receiver<Work>, mut symbolizer: Symbolizer) {
    while let Ok(work) = requests.recv() {
        if catch_unwind(AssertUnwindSafe(|| work(&mut symbolizer))).is_err() {
            tracing::error!("the symbolizer panicked; its answer is missing");
        }
    }
}
