//! The files that code came from: open while their process runs, copied when first asked about.

use std::{
    collections::HashMap,
    fs::File,
    hash::RandomState,
    rc::{Rc, Weak},
};

use super::{
    SymbolizeConfig,
    elf_copy::{self, ElfCopy},
    elf_layout::{Layout, Segment},
    inferred::{InferredCache, Stripped},
    module_file::{FileKey, ModuleFile, Refusal},
    name_cache::NameCache,
    native::{Fault, Image, Names},
    quality::Quality,
};
use crate::model::NameSource;

/// Content of an image: equal files of several containers share one.
type ContentKey = (Vec<u8>, u64, u64);

/// What is known of a file.
#[derive(Debug)]
enum Content {
    /// Open and not yet read.
    Unread(File),
    Named(Rc<Image>),
    /// Read, and without usable names.
    Unnamed,
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
    images: HashMap<ContentKey, Weak<Image>>,
    inferred: InferredCache,
    names: NameCache<(u64, u64)>,
    digest_keys: RandomState,
    uses: u64,
    next_image: u64,
}

impl Modules {
    pub(crate) fn new(config: SymbolizeConfig) -> Self {
        let names = NameCache::new(config.max_name_bytes);
        let inferred = InferredCache::new(config.max_inferred_bytes);
        Self {
            config,
            by_file: HashMap::new(),
            images: HashMap::new(),
            inferred,
            names,
            digest_keys: RandomState::new(),
            uses: 0,
            next_image: 0,
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
            content: Content::Unread(file.file),
            build_id: Rc::from([]),
            stripped: None,
            used,
        };
        self.by_file.insert(file.key, module);
    }

    /// Closes files that were never asked about and that no process maps any more.
    pub(crate) fn close_unused(&mut self, is_mapped: impl Fn(&FileKey) -> bool) {
        self.by_file
            .retain(|key, module| !matches!(module.content, Content::Unread(_)) || is_mapped(key));
    }

    /// Build-id and names of the code at a file offset; `None` when the file is not kept any more.
    pub(crate) fn names(
        &mut self,
        key: &FileKey,
        offset: u64,
        quality: &mut Quality,
    ) -> Option<(Rc<[u8]>, Rc<Names>)> {
        let used = self.tick();
        let module = self.by_file.get_mut(key)?;
        module.used = used;
        if matches!(module.content, Content::Unread(_)) {
            self.read(key, quality);
        }
        let build_id = Rc::clone(&self.by_file.get(key)?.build_id);
        let exact = self.exact_names(key, offset, quality);
        let names = exact.or_else(|| self.inferred_names(key, offset));
        Some((build_id, names.unwrap_or_else(|| Rc::new(Names::none()))))
    }

    /// Names that the file itself gives; `None` when it gives none.
    fn exact_names(
        &mut self,
        key: &FileKey,
        offset: u64,
        quality: &mut Quality,
    ) -> Option<Rc<Names>> {
        let Content::Named(image) = &self.by_file.get(key)?.content else {
            return None;
        };
        let names = self.names.get((image.id, offset)).unwrap_or_else(|| {
            let names = Rc::new(image.names(offset).unwrap_or_else(|fault| {
                quality.fault(fault);
                Names::none()
            }));
            self.names.insert((image.id, offset), Rc::clone(&names));
            names
        });
        (names.source != NameSource::None).then_some(names)
    }

    /// What can be inferred where the file gives no name.
    fn inferred_names(&mut self, key: &FileKey, offset: u64) -> Option<Rc<Names>> {
        let from = self.by_file.get(key)?.stripped.as_ref()?;
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
        let Content::Unread(file) = std::mem::replace(&mut module.content, Content::Unnamed) else {
            return;
        };
        let Ok(layout) = Layout::read(&file) else {
            return quality.refusal(Refusal::NotElf);
        };
        module.build_id = Rc::from(layout.build_id.as_slice());
        if layout.is_stripped()
            && let Ok(file) = file.try_clone()
        {
            self.next_image += 1;
            module.stripped = Some(Inferable {
                id: self.next_image,
                stripped: Stripped {
                    file,
                    build_id: Rc::clone(&module.build_id),
                },
                segments: layout.segments.clone(),
            });
        }
        let limit = self.config.max_debug_bytes;
        let Ok(copy) = elf_copy::copy(&file, &layout, limit, &self.digest_keys) else {
            return quality.refusal(Refusal::NotElf);
        };
        quality.debug_too_large += u64::from(copy.debug_too_large);
        if copy.symbols == 0 && copy.debug.is_empty() {
            return;
        }
        if copy.weight() > self.config.max_image_bytes {
            return quality.refusal(Refusal::OverBudget);
        }
        match self.image(&layout, &copy) {
            Ok(image) => {
                if let Some(module) = self.by_file.get_mut(key) {
                    module.content = Content::Named(image);
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

    fn image(&mut self, layout: &Layout, copy: &ElfCopy) -> Result<Rc<Image>, Fault> {
        let content = (layout.build_id.clone(), copy.digest, copy.bytes);
        if let Some(image) = self.images.get(&content).and_then(Weak::upgrade) {
            return Ok(image);
        }
        self.next_image += 1;
        let image = Rc::new(Image::open(self.next_image, copy, &layout.segments)?);
        self.images.retain(|_, image| image.strong_count() > 0);
        self.images.insert(content, Rc::downgrade(&image));
        Ok(image)
    }

    fn image_bytes(&self) -> u64 {
        self.images
            .values()
            .filter_map(Weak::upgrade)
            .map(|image| image.bytes)
            .sum()
    }

    /// Drops images, least recently used first, but never the one just made.
    fn shrink_to_budget(&mut self, keep: &FileKey) {
        while self.image_bytes() > self.config.max_image_bytes {
            let evicted = self.evict_oldest(|(key, module)| {
                key != keep && matches!(module.content, Content::Named(_))
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
