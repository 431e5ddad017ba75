//! The files that code came from: open while their process runs, copied when first asked about.

use std::{
    collections::HashMap,
    fs::File,
    hash::RandomState,
    rc::{Rc, Weak},
};

use profiler_image::{
    elf_layout::{Layout, Segment},
    module_file::{FileKey, ModuleFile, Origin, Refusal},
};
use profiler_model::NameSource;
use profiler_sandbox::broker;

use super::{
    SymbolizeConfig,
    inferred::{InferredCache, Stripped},
    layers::{ContentKey, Layers, PackChange, Parts},
    name_cache::NameCache,
    native::{Fault, Names},
    quality::Quality,
};

/// What is known of a file.
#[derive(Debug)]
enum Content {
    /// Open and not yet read.
    Unread(File, Option<Origin>),
    /// Read; there may be no name in it.
    Read(Rc<Layers>),
    /// Not a file that can be read.
    Unreadable,
}

#[derive(Debug)]
struct Module {
    content: Content,
    build_id: Rc<[u8]>,
    /// Where names are inferred when the file has none for an address.
    stripped: Option<Inferable>,
    /// When it was last used, in uses of the cache.
    used: u64,
}

/// A file without symbols of its own for its functions.
#[derive(Debug)]
struct Inferable {
    /// Unique among these and the images, as a key of names.
    id: u64,
    stripped: Stripped,
    segments: Vec<Segment>,
}

/// Modules by file, at most `max_modules` of them, least recently used first to go.
///
/// Two files are the same module only when the file system says that they are one unchanged file;
/// a build-id is the file's own claim, and a container could claim that of another's library. The
/// copied content is shared between files when build-id and all copied bytes are equal.
#[derive(Debug)]
pub(crate) struct Modules {
    config: SymbolizeConfig,
    by_file: HashMap<FileKey, Module>,
    layers: HashMap<ContentKey, Weak<Layers>>,
    inferred: InferredCache,
    names: NameCache<(u64, u64)>,
    digest_keys: RandomState,
    uses: u64,
    next_layers: u64,
    /// Change of the packs that was last looked at.
    packs_seen: u64,
}

impl Modules {
    pub(crate) fn new(config: SymbolizeConfig) -> Self {
        let names = NameCache::new(config.max_name_bytes);
        let inferred = InferredCache::new(config.max_inferred_bytes);
        Self {
            packs_seen: config.packs.changes(),
            config,
            by_file: HashMap::new(),
            layers: HashMap::new(),
            inferred,
            names,
            digest_keys: RandomState::new(),
            uses: 0,
            next_layers: 0,
        }
    }

    pub(crate) fn contains(&self, key: &FileKey) -> bool {
        self.by_file.contains_key(key)
    }

    /// Keeps an open file until it is asked about.
    pub(crate) fn insert(&mut self, file: ModuleFile) {
        let used = self.tick();
        if let Some(known) = self.by_file.get_mut(&file.key) {
            known.used = used;
            return;
        }
        while self.by_file.len() >= self.config.max_modules.max(1) {
            self.evict_oldest(|_| true);
        }
        let module = Module {
            content: Content::Unread(file.file, file.origin),
            build_id: Rc::from([]),
            stripped: None,
            used,
        };
        self.by_file.insert(file.key, module);
    }

    /// Closes files that were never asked about and that no process maps any more.
    pub(crate) fn close_unused(&mut self, is_mapped: impl Fn(&FileKey) -> bool) {
        self.by_file
            .retain(|key, module| !matches!(module.content, Content::Unread(..)) || is_mapped(key));
    }

    /// Forgets names and what they are made from, of the files that can be opened again.
    pub(crate) fn drop_caches(&mut self, again: impl Fn(&FileKey) -> bool) {
        self.names = NameCache::new(self.config.max_name_bytes);
        self.inferred.clear();
        self.by_file
            .retain(|key, module| !matches!(module.content, Content::Read(_)) || !again(key));
        self.layers.retain(|_, layers| layers.strong_count() > 0);
    }

    /// Build-id and names of the code at a file offset; `None` when the file is not kept any more.
    pub(crate) fn names(
        &mut self,
        key: &FileKey,
        offset: u64,
        quality: &mut Quality,
    ) -> Option<(Rc<[u8]>, Rc<Names>)> {
        let _reading = broker::reading(key.device);
        self.follow_packs(quality);
        let used = self.tick();
        let module = self.by_file.get_mut(key)?;
        module.used = used;
        if matches!(module.content, Content::Unread(..)) {
            self.read(key, quality);
        }
        let build_id = Rc::clone(&self.by_file.get(key)?.build_id);
        let exact = self.exact_names(key, offset, quality);
        let names = exact.or_else(|| self.inferred_names(key, offset));
        Some((build_id, names.unwrap_or_else(|| Rc::new(Names::none()))))
    }

    /// Names that a table gives; `None` when none does.
    fn exact_names(
        &mut self,
        key: &FileKey,
        offset: u64,
        quality: &mut Quality,
    ) -> Option<Rc<Names>> {
        let Content::Read(layers) = &self.by_file.get(key)?.content else {
            return None;
        };
        let names = self.names.get((layers.id, offset)).unwrap_or_else(|| {
            let names = Rc::new(layers.names(offset).unwrap_or_else(|fault| {
                quality.fault(fault);
                Names::none()
            }));
            self.names.insert((layers.id, offset), Rc::clone(&names));
            names
        });
        (names.source != NameSource::None).then_some(names)
    }

    /// What can be inferred where no table gives a name.
    fn inferred_names(&mut self, key: &FileKey, offset: u64) -> Option<Rc<Names>> {
        let module = self.by_file.get(key)?;
        if let Content::Read(layers) = &module.content
            && layers.has_names_of_the_whole_program()
        {
            return None;
        }
        let from = module.stripped.as_ref()?;
        if let Some(names) = self.names.get((from.id, offset)) {
            return Some(names);
        }
        let segment = Layout::segment_of_offset(&from.segments, offset)?;
        let address = offset - segment.offset + segment.address;
        let found = self.inferred.name(key, &from.stripped, address);
        let names = Rc::new(found.map_or_else(Names::none, Names::inferred));
        self.names.insert((from.id, offset), Rc::clone(&names));
        Some(names)
    }

    /// Fills in the numbers of now.
    pub(crate) fn report(&self, quality: &mut Quality) {
        quality.modules = self.by_file.len() as u64;
        quality.image_bytes = self.image_bytes();
        quality.inferred_bytes = self.inferred.bytes() as u64;
        quality.name_bytes = self.names.bytes() as u64;
    }

    fn tick(&mut self) -> u64 {
        self.uses += 1;
        self.uses
    }

    /// Copies what names the file's code and closes the file.
    fn read(&mut self, key: &FileKey, quality: &mut Quality) {
        let Some(module) = self.by_file.get_mut(key) else {
            return;
        };
        let Content::Unread(file, origin) =
            std::mem::replace(&mut module.content, Content::Unreadable)
        else {
            return;
        };
        let Ok(layout) = Layout::read(&file) else {
            return quality.refusal(Refusal::NotElf);
        };
        module.build_id = Rc::from(layout.build_id.as_slice());
        if layout.is_stripped()
            && let Ok(file) = file.try_clone()
        {
            let id = self.next_layers + 1;
            self.next_layers = id;
            module.stripped = Some(Inferable {
                id,
                stripped: Stripped {
                    file,
                    build_id: Rc::clone(&module.build_id),
                },
                segments: layout.segments.clone(),
            });
        }
        let (config, keys) = (&self.config, &self.digest_keys);
        let Ok(parts) = Parts::read(&file, &layout, origin.as_ref(), config, keys, quality) else {
            return quality.refusal(Refusal::NotElf);
        };
        if parts.weight() > self.config.max_image_bytes {
            return quality.refusal(Refusal::OverBudget);
        }
        match self.open(parts) {
            Ok(layers) => {
                if let Some(module) = self.by_file.get_mut(key) {
                    module.content = Content::Read(layers);
                }
                self.shrink_to_budget(key);
            }
            Err(fault) => {
                quality.fault(fault);
                quality.refusal(match fault {
                    Fault::Panicked => Refusal::Panicked,
                    Fault::Failed => Refusal::NotElf,
                });
            }
        }
    }

    fn open(&mut self, parts: Parts) -> Result<Rc<Layers>, Fault> {
        let key = parts.key();
        if let Some(layers) = self.layers.get(&key).and_then(Weak::upgrade) {
            return Ok(layers);
        }
        let layers = Rc::new(parts.open(self.next_id())?);
        self.layers.retain(|_, layers| layers.strong_count() > 0);
        self.layers.insert(key, Rc::downgrade(&layers));
        Ok(layers)
    }

    fn next_id(&mut self) -> u64 {
        self.next_layers += 1;
        self.next_layers
    }

    /// Takes in packs that were added, and drops those that were removed.
    fn follow_packs(&mut self, quality: &mut Quality) {
        let changes = self.config.packs.changes();
        if changes == self.packs_seen {
            return;
        }
        self.packs_seen = changes;
        let keys: Vec<FileKey> = self.by_file.keys().copied().collect();
        for key in keys {
            let Some(Content::Read(layers)) = self.by_file.get(&key).map(|module| &module.content)
            else {
                continue;
            };
            let layers = Rc::clone(layers);
            let id = self.next_id();
            let changed = match layers.change(&self.config.packs) {
                PackChange::None => continue,
                PackChange::Removed => Some(layers.without_packs(id)),
                PackChange::Added => layers.with_pack(id, &self.config, &self.digest_keys, quality),
            };
            let Some(changed) = changed else { continue };
            let shared = self.layers.get(&changed.key).and_then(Weak::upgrade);
            let layers = shared.unwrap_or_else(|| Rc::new(changed));
            self.layers
                .insert(layers.key.clone(), Rc::downgrade(&layers));
            if let Some(module) = self.by_file.get_mut(&key) {
                module.content = Content::Read(layers);
            }
            self.shrink_to_budget(&key);
        }
    }

    fn image_bytes(&self) -> u64 {
        self.layers
            .values()
            .filter_map(Weak::upgrade)
            .map(|layers| layers.bytes)
            .sum()
    }

    /// Drops images, least recently used first, but never the one just made.
    fn shrink_to_budget(&mut self, keep: &FileKey) {
        while self.image_bytes() > self.config.max_image_bytes {
            let evicted = self.evict_oldest(|(key, module)| {
                key != keep && matches!(module.content, Content::Read(_))
            });
            if !evicted {
                return;
            }
        }
    }

    fn evict_oldest(&mut self, may: impl Fn((&FileKey, &Module)) -> bool) -> bool {
        let candidates = self
            .by_file
            .iter()
            .filter(|(key, module)| may((key, module)));
        let oldest = candidates
            .min_by_key(|(_, module)| module.used)
            .map(|(key, _)| *key);
        oldest.is_some_and(|key| self.by_file.remove(&key).is_some())
    }
}
