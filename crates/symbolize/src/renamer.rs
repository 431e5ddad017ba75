//! Gives the frames of stored profiles the names of packs that came after them.
//!
//! A frame without an exact name keeps the build-id of its file and the offset in it. When a
//! profile is read, such frames are looked up in the pack for their build-id. The ELF library's
//! caches stay on one thread, so the work is done there, one profile at a time.

use std::{
    collections::HashMap,
    hash::RandomState,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
};

use parking_lot::Mutex;
use profiler_model::{Frame, Function, ModuleKind, NameClass, Profile, ProfileBuilder};
use profiler_sandbox::broker;

use super::{
    SymbolizeConfig,
    layers::{Layers, Parts},
    name_cache::NameCache,
    native::Names,
    packs::SymbolPacks,
    quality::Quality,
};

/// Profiles that wait; the API renders fewer at once.
const QUEUE: usize = 16;
/// Packs that are kept open.
const OPEN_LIMIT: usize = 8;

type Work = Box<dyn FnOnce(&mut Worker) + Send>;

/// Handle on the thread, which ends with the last handle. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Renamer {
    requests: Option<SyncSender<Work>>,
    packs: SymbolPacks,
}

impl Renamer {
    /// Starts the thread.
    pub fn start(packs: SymbolPacks) -> std::io::Result<Self> {
        let (requests, receiver) = sync_channel::<Work>(QUEUE);
        let own = packs.clone();
        broker::start("renamer", move || serve(&receiver, own))?;
        Ok(Self {
            requests: Some(requests),
            packs,
        })
    }

    /// Names nothing: profiles stay as they are.
    pub fn idle() -> Self {
        Self {
            requests: None,
            packs: SymbolPacks::none(),
        }
    }

    /// The profile with better names where packs have them. Blocks.
    pub fn rename(&self, profile: Profile) -> Profile {
        let Some(requests) = &self.requests else {
            return profile;
        };
        if !self.concerns(&profile) {
            return profile;
        }
        let empty = ProfileBuilder::new(profile.origin_ns, profile.bucket_ns, profile.clock);
        // Lent and not given, so that it comes back whatever happens to the worker.
        let lent = Arc::new(Mutex::new(profile));
        let (sender, answer) = sync_channel(1);
        let work: Work = Box::new({
            let lent = Arc::clone(&lent);
            move |worker| {
                worker.rename(&mut lent.lock());
                // Fails only when the asker is gone.
                let _unheard = sender.send(());
            }
        });
        if requests.send(work).is_ok() {
            // Also when the worker has failed, which is logged there.
            let _ended = answer.recv();
        } else {
            tracing::error!("the renamer has ended");
        }
        let mut lent = lent.lock();
        std::mem::replace(&mut lent, empty.finish())
    }

    /// Closes the packs that are open. Left out while too much waits.
    pub fn drop_caches(&self) {
        if let Some(requests) = &self.requests {
            let _busy = requests.try_send(Box::new(|worker| {
                *worker = Worker::new(worker.config.packs.clone());
            }));
        }
    }

    /// Whether some frame lacks an exact name that a pack may have.
    fn concerns(&self, profile: &Profile) -> bool {
        let wanted = wanted_modules(profile);
        (profile.modules.iter().zip(wanted))
            .any(|(module, wanted)| wanted && self.packs.has(&module.build_id).is_some())
    }
}

/// For each module whether a frame of it lacks an exact name.
fn wanted_modules(profile: &Profile) -> Vec<bool> {
    let mut wanted = vec![false; profile.modules.len()];
    for frame in &profile.frames {
        if lacks_name(frame)
            && let Some(wanted) = wanted.get_mut(frame.module as usize)
        {
            *wanted = true;
        }
    }
    for (module, wanted) in profile.modules.iter().zip(&mut wanted) {
        *wanted &= module.kind == ModuleKind::Elf && !module.build_id.is_empty();
    }
    wanted
}

fn lacks_name(frame: &Frame) -> bool {
    match frame.source.class() {
        NameClass::Exact => false,
        NameClass::Inferred | NameClass::Unnamed => true,
    }
}

fn serve(requests: &Receiver<Work>, packs: SymbolPacks) {
    let mut worker = Worker::new(packs);
    while let Ok(work) = requests.recv() {
        if catch_unwind(AssertUnwindSafe(|| work(&mut worker))).is_err() {
            tracing::error!("naming stored frames panicked; they stay as they were");
            worker = Worker::new(worker.config.packs);
        }
    }
}

struct Worker {
    config: SymbolizeConfig,
    keys: RandomState,
    open: HashMap<Vec<u8>, Option<Rc<Layers>>>,
    names: NameCache<(u64, u64)>,
    changes: u64,
    next_id: u64,
}

impl Worker {
    fn new(packs: SymbolPacks) -> Self {
        let config = SymbolizeConfig {
            packs,
            ..SymbolizeConfig::default()
        };
        Self {
            names: NameCache::new(config.max_name_bytes),
            changes: config.packs.changes(),
            config,
            keys: RandomState::new(),
            open: HashMap::new(),
            next_id: 0,
        }
    }

    fn rename(&mut self, profile: &mut Profile) {
        let changes = self.config.packs.changes();
        if changes != self.changes {
            self.changes = changes;
            self.open.clear();
        }
        let layers: Vec<Option<Rc<Layers>>> = wanted_modules(profile)
            .into_iter()
            .zip(&profile.modules)
            .map(|(wanted, module)| wanted.then(|| self.layers(&module.build_id)).flatten())
            .collect();
        let mut strings = Strings {
            strings: &mut profile.strings,
            added: HashMap::new(),
        };
        for frame in profile.frames.iter_mut().filter(|frame| lacks_name(frame)) {
            let Some(Some(layers)) = layers.get(frame.module as usize) else {
                continue;
            };
            let names = self.names(layers, frame.offset);
            if names.functions.is_empty() {
                continue;
            }
            frame.source = names.source;
            frame.functions = names
                .functions
                .iter()
                .map(|function| Function {
                    name: strings.add(&function.name),
                    file: strings.add(&function.file),
                    line: function.line,
                })
                .collect();
        }
    }

    fn names(&mut self, layers: &Layers, offset: u64) -> Rc<Names> {
        let key = (layers.id, offset);
        if let Some(names) = self.names.get(key) {
            return names;
        }
        let names = Rc::new(layers.names(offset).unwrap_or_else(|_| Names::none()));
        self.names.insert(key, Rc::clone(&names));
        names
    }

    fn layers(&mut self, build_id: &[u8]) -> Option<Rc<Layers>> {
        if let Some(known) = self.open.get(build_id) {
            return known.clone();
        }
        if self.open.len() >= OPEN_LIMIT {
            self.open.clear();
        }
        let layers = self.open_pack(build_id).map(Rc::new);
        self.open.insert(build_id.to_vec(), layers.clone());
        layers
    }

    fn open_pack(&mut self, build_id: &[u8]) -> Option<Layers> {
        let pack = self.config.packs.find(build_id)?;
        // What was seen when the program ran; else a pack that is a whole program says it itself.
        let segments = match self.config.packs.segments(build_id) {
            Some(segments) => segments,
            None => profiler_image::elf_layout::Layout::read(&pack.file)
                .ok()?
                .code_segments(),
        };
        self.next_id += 1;
        let mut quality = Quality::default();
        let parts = Parts::of_pack(
            &pack,
            build_id,
            &segments,
            &self.config,
            &self.keys,
            &mut quality,
        );
        parts.open(self.next_id).ok()
    }
}

/// Adds strings to a profile, each once.
struct Strings<'profile> {
    strings: &'profile mut Vec<String>,
    added: HashMap<String, u32>,
}

impl Strings<'_> {
    fn add(&mut self, text: &str) -> u32 {
        if text.is_empty() {
            return 0;
        }
        if let Some(id) = self.added.get(text) {
            return *id;
        }
        let Ok(id) = u32::try_from(self.strings.len()) else {
            return 0;
        };
        self.strings.push(text.to_owned());
        self.added.insert(text.to_owned(), id);
        id
    }
}

#[cfg(test)]
#[path = "renamer_tests.rs"]
mod tests;
