//! All that names the code of one file, in the order in which it is believed.
//!
//! ```text
//! the file itself > a separate debug file > the user's symbol pack > .gnu_debugdata > debuginfod
//! ```
//!
//! The first that knows source lines for an address answers; otherwise the first that knows a
//! name. Go's own table, which knows lines, comes last. What none of them names has no exact name,
//! which is where `modules` may ask what can be deduced.

use std::{fs::File, hash::RandomState, rc::Rc};

use profiler_image::{
    debug_file,
    elf_copy::{self, ElfCopy},
    elf_layout::{ElfError, Layout, Segment},
    elf_symbols::Bounds,
    mini_debug,
    module_file::Origin,
};
use profiler_model::NameSource;

use super::{
    SymbolizeConfig,
    go_table::GoTable,
    native::{Fault, Image, Names},
    packs::{PackFile, SymbolPacks},
    quality::Quality,
};

/// Content of the layers: equal files of several containers share one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ContentKey {
    build_id: Vec<u8>,
    segments: Vec<Segment>,
    /// Digest and size of each part, and where it came from.
    parts: Vec<(u64, u64, NameSource)>,
}

/// A copy that is not yet open. The file's own one says itself where its names come from.
#[derive(Debug)]
struct Part {
    source: NameSource,
    copy: ElfCopy,
}

/// What was copied of a file and of those that belong to it.
#[derive(Debug)]
pub(crate) struct Parts {
    build_id: Vec<u8>,
    segments: Vec<Segment>,
    copies: Vec<Part>,
    go: Option<GoTable>,
}

/// How much is copied.
struct Budget<'config> {
    config: &'config SymbolizeConfig,
    keys: &'config RandomState,
    used: u64,
}

impl Budget<'_> {
    /// Copies one more file; `None` when it names nothing, cannot be read, or weighs too much.
    fn copy(
        &mut self,
        file: &File,
        layout: &Layout,
        bounds: &mut Bounds<'_>,
        quality: &mut Quality,
    ) -> Option<ElfCopy> {
        let limit = self.config.max_debug_bytes;
        let copy = elf_copy::copy(file, layout, bounds, limit, self.keys).ok()?;
        quality.debug_too_large += u64::from(copy.debug_too_large);
        let used = self.used.saturating_add(copy.weight());
        if copy.is_empty() || used > self.config.max_image_bytes {
            return None;
        }
        self.used = used;
        Some(copy)
    }
}

impl Parts {
    /// Copies what names the code of a file. Only the file itself has to be readable.
    pub(crate) fn read(
        file: &File,
        layout: &Layout,
        origin: Option<&Origin>,
        config: &SymbolizeConfig,
        keys: &RandomState,
        quality: &mut Quality,
    ) -> Result<Self, ElfError> {
        let mut bounds = Bounds::of(file, layout);
        let mut budget = Budget {
            config,
            keys,
            used: 0,
        };
        let own = elf_copy::copy(file, layout, &mut bounds, config.max_debug_bytes, keys)?;
        quality.debug_too_large += u64::from(own.debug_too_large);
        budget.used = own.weight();
        let mut parts = Self {
            build_id: layout.build_id.clone(),
            segments: layout.segments.clone(),
            copies: Vec::new(),
            go: None,
        };
        parts.push(NameSource::ElfSymbol, Some(own));
        if !parts.has_lines()
            && let Some(found) = origin
                .and_then(|origin| debug_file::find(origin, file, layout, config.max_file_bytes))
        {
            let found_layout = parts.of_the_program(found.layout);
            let copy = budget.copy(&found.file, &found_layout, &mut bounds, quality);
            parts.push(NameSource::DebugFile, copy);
        }
        if !parts.has_lines()
            && let Some(pack) = config.packs.find(&layout.build_id)
        {
            let copy = parts.copy_pack(&pack, &mut budget, &mut bounds, quality);
            parts.push(pack.source, copy);
        }
        if !parts.has_static_functions()
            && let Some(inner) = mini_debug::open(file, layout)
            && let Ok(inner_layout) = Layout::read(&inner)
        {
            let inner_layout = parts.of_the_program(inner_layout);
            let copy = budget.copy(&inner, &inner_layout, &mut bounds, quality);
            parts.push(NameSource::MiniDebug, copy);
        }
        if !parts.has_lines() {
            parts.go = GoTable::read(file, layout, keys)
                .filter(|go| budget.used.saturating_add(go.bytes()) <= config.max_image_bytes);
        }
        if !layout.build_id.is_empty() && !parts.has_lines() && parts.go.is_none() {
            config.packs.want(&layout.build_id);
        }
        if !layout.build_id.is_empty() && !parts.has_static_functions() {
            config.packs.remember(&layout.build_id, &layout.segments);
        }
        Ok(parts)
    }

    /// Names for a pack alone, whose program ran earlier.
    pub(crate) fn of_pack(
        pack: &PackFile,
        build_id: &[u8],
        segments: &[Segment],
        config: &SymbolizeConfig,
        keys: &RandomState,
        quality: &mut Quality,
    ) -> Self {
        let mut budget = Budget {
            config,
            keys,
            used: 0,
        };
        let mut parts = Self {
            build_id: build_id.to_vec(),
            segments: segments.to_vec(),
            copies: Vec::new(),
            go: None,
        };
        let copy = parts.copy_pack(pack, &mut budget, &mut Bounds::none(), quality);
        parts.push(pack.source, copy);
        parts
    }

    fn copy_pack(
        &self,
        pack: &PackFile,
        budget: &mut Budget<'_>,
        bounds: &mut Bounds<'_>,
        quality: &mut Quality,
    ) -> Option<ElfCopy> {
        let layout = Layout::read(&pack.file).ok()?;
        let layout = self.of_the_program(layout);
        budget.copy(&pack.file, &layout, bounds, quality)
    }

    /// The sections of another file with the segments of the program: a debug file has addresses
    /// but no code, and its own segments are no longer where the program's are.
    fn of_the_program(&self, other: Layout) -> Layout {
        Layout {
            segments: self.segments.clone(),
            ..other
        }
    }

    fn push(&mut self, source: NameSource, copy: Option<ElfCopy>) {
        if let Some(copy) = copy.filter(|copy| !copy.is_empty()) {
            self.copies.push(Part { source, copy });
        }
    }

    /// Some part has debug information.
    fn has_lines(&self) -> bool {
        self.copies.iter().any(|part| !part.copy.debug.is_empty())
    }

    /// Some part has a complete symbol table.
    pub(crate) fn has_static_functions(&self) -> bool {
        self.copies.iter().any(|part| part.copy.complete_symbols)
    }

    /// Where names can come from, and whether lines can as well.
    pub(crate) fn sources(&self) -> (Vec<NameSource>, bool) {
        let mut sources = Vec::new();
        for Part { source, copy } in &self.copies {
            let own_lines = *source == NameSource::ElfSymbol && !copy.debug.is_empty();
            sources.push(if own_lines {
                NameSource::Dwarf
            } else {
                *source
            });
        }
        sources.extend(self.go.iter().map(|_| NameSource::GoTable));
        (sources, self.has_lines() || self.go.is_some())
    }

    /// Memory that the layers may come to use, about.
    pub(crate) fn weight(&self) -> u64 {
        let copies: u64 = self.copies.iter().map(|part| part.copy.weight()).sum();
        copies.saturating_add(self.go.as_ref().map_or(0, GoTable::bytes))
    }

    pub(crate) fn key(&self) -> ContentKey {
        let copies = self
            .copies
            .iter()
            .map(|part| (part.copy.digest, part.copy.bytes, part.source));
        let go = self
            .go
            .iter()
            .map(|go| (go.digest(), go.bytes(), NameSource::GoTable));
        ContentKey {
            build_id: self.build_id.clone(),
            segments: self.segments.clone(),
            parts: copies.chain(go).collect(),
        }
    }

    /// Opens all copies. A copy of another file that makes the library fail is left away; a fault
    /// of the file's own is the caller's.
    pub(crate) fn open(self, id: u64) -> Result<Layers, Fault> {
        let bytes = self.weight();
        let has_lines = self.has_lines();
        let key = self.key();
        let mut layers = Vec::with_capacity(self.copies.len());
        for part in &self.copies {
            match Image::open(&part.copy, &self.segments) {
                Ok(image) => layers.push(Layer {
                    source: part.source,
                    image: Rc::new(image),
                }),
                Err(fault) if part.source == NameSource::ElfSymbol => return Err(fault),
                Err(fault) => {
                    tracing::debug!(?fault, source = part.source.name(), "a layer is not used");
                }
            }
        }
        Ok(Layers {
            id,
            bytes,
            key,
            ordered: layers,
            go: self.go.map(Rc::new),
            has_lines,
        })
    }
}

#[derive(Clone, Debug)]
struct Layer {
    source: NameSource,
    image: Rc<Image>,
}

/// See the module's description.
#[derive(Debug)]
pub(crate) struct Layers {
    /// Unique in this run of the agent.
    pub(crate) id: u64,
    /// Memory that it may come to use, about.
    pub(crate) bytes: u64,
    pub(crate) key: ContentKey,
    ordered: Vec<Layer>,
    go: Option<Rc<GoTable>>,
    has_lines: bool,
}

/// What a change of the packs means for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PackChange {
    None,
    Added,
    Removed,
}

impl Layers {
    /// Names of the code at a file offset.
    pub(crate) fn names(&self, offset: u64) -> Result<Names, Fault> {
        let Some(segment) = Layout::segment_of_offset(&self.key.segments, offset) else {
            return Ok(Names::none());
        };
        let mut named: Option<Names> = None;
        let mut failed = None;
        for Layer { source, image } in &self.ordered {
            match image.names(offset) {
                Ok(mut names) if !names.functions.is_empty() => {
                    let placed = names.source == NameSource::Dwarf;
                    if *source != NameSource::ElfSymbol {
                        names.source = *source;
                    }
                    if placed {
                        return Ok(names);
                    }
                    named.get_or_insert(names);
                }
                Ok(_) => {}
                Err(fault) => failed = Some(fault),
            }
        }
        let address = offset - segment.offset + segment.address;
        if let Some(names) = self.go.as_ref().and_then(|go| go.names(address)) {
            return Ok(names);
        }
        match (named, failed) {
            (Some(names), _) => Ok(names),
            (None, Some(fault)) => Err(fault),
            (None, None) => Ok(Names::none()),
        }
    }

    /// Whether a table is there that was made for the whole program: what it does not name has no
    /// name, and nothing need be inferred.
    pub(crate) fn has_names_of_the_whole_program(&self) -> bool {
        let is_whole =
            |layer: &Layer| layer.source == NameSource::DebugFile || is_pack(layer.source);
        self.go.is_some() || self.ordered.iter().any(is_whole)
    }

    /// Compares with what the packs have now.
    pub(crate) fn change(&self, packs: &SymbolPacks) -> PackChange {
        let build_id = &self.key.build_id;
        if build_id.is_empty() {
            return PackChange::None;
        }
        let now = packs.has(build_id);
        let then = self.ordered.iter().any(|layer| is_pack(layer.source));
        match (then, now) {
            (true, None) => PackChange::Removed,
            (false, Some(_)) if !self.has_lines => PackChange::Added,
            (true | false, _) => PackChange::None,
        }
    }

    /// The same without packs.
    pub(crate) fn without_packs(&self, id: u64) -> Self {
        let kept = |source: NameSource| !is_pack(source);
        let mut key = self.key.clone();
        key.parts.retain(|(_, _, source)| kept(*source));
        let mut layers = self.ordered.clone();
        layers.retain(|layer| kept(layer.source));
        Self {
            id,
            bytes: self.bytes,
            key,
            ordered: layers,
            go: self.go.clone(),
            has_lines: false,
        }
    }

    /// The same with the pack that came later; `None` when that cannot be read.
    pub(crate) fn with_pack(
        &self,
        id: u64,
        config: &SymbolizeConfig,
        keys: &RandomState,
        quality: &mut Quality,
    ) -> Option<Self> {
        let pack = config.packs.find(&self.key.build_id)?;
        let ContentKey {
            build_id, segments, ..
        } = &self.key;
        let opened = Parts::of_pack(&pack, build_id, segments, config, keys, quality)
            .open(id)
            .ok()?;
        let mut key = self.key.clone();
        key.parts.extend(opened.key.parts);
        let mut layers = self.ordered.clone();
        layers.extend(opened.ordered);
        Some(Self {
            id,
            bytes: self.bytes.saturating_add(opened.bytes),
            key,
            ordered: layers,
            go: self.go.clone(),
            has_lines: opened.has_lines,
        })
    }
}

fn is_pack(source: NameSource) -> bool {
    matches!(source, NameSource::SymbolPack | NameSource::Debuginfod)
}
