//! The tables of a task: made on demand, bounded, and the same in the kernel and here.
//!
//! Nothing in this module talks to the kernel. Whatever changes is written down as an
//! [`Operation`]; the session applies them in their order.

use std::{
    cell::Cell,
    collections::{HashMap, VecDeque},
    time::Instant,
};

use profiler_common::unwind::{
    mapping::Mappings,
    rule::Rule,
    search::last_start_at_most,
    state::Tables,
    table::{PAGE_BLOCKS, PageEntry, PageKey, RowBlock},
};

use super::{
    block_pool::{BlockPool, SHARED, is_shared, shared_index},
    file::UnwindFile,
    files::{FileTable, REFUSED},
    page::PageRows,
    processes::{CodeMapping, Content, ProcessCode, build_mappings},
    rules::RuleTable,
};

/// Blocks for pages that find no room in the kernel's tables and are used here only.
const NATIVE_BLOCKS: usize = 256;
/// When fewer blocks than these are free, pages that were not used for the longest time are evicted,
/// so that their blocks have rested when they are needed.
const RESERVE_BLOCKS: usize = 2 * PAGE_BLOCKS;
/// Pages that wait until blocks have rested.
const WAITING_PAGES: usize = 1024;

/// A change of the kernel's tables. They are to be applied in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    WriteRule { index: u16, rule: Rule },
    WriteBlock { index: u16, block: Box<RowBlock> },
    WritePage { key: PageKey, entry: Box<PageEntry> },
    DeletePage { key: PageKey },
}

/// Sizes of the kernel's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableSizes {
    /// At least `PAGE_BLOCKS`, or some pages never fit.
    pub blocks: usize,
    pub pages: usize,
}

/// What happened to the tables since they were made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableCounts {
    /// Pages loaded, those without descriptions included.
    pub loaded: u64,
    /// Pages removed to make room for others.
    pub evicted: u64,
    /// Requests for pages that found no room at once.
    pub waited: u64,
    /// Pages of files that changed or are no longer mapped.
    pub refused: u64,
    /// Rows of descriptions that this unwinder cannot follow.
    pub unsupported_rows: u64,
    /// Rows that did not fit in their page.
    pub rows_beyond_limit: u64,
    /// Mappings that did not fit in their process's table.
    pub mappings_left_out: u64,
}

/// What became of a request for a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loaded {
    /// It was there.
    Already,
    /// It was made now; the operations bring it into the kernel.
    Now,
    /// It can be used here; the kernel gets it when blocks have rested.
    Waiting,
}

#[derive(Debug)]
struct Page {
    entry: Box<PageEntry>,
    blocks: Vec<u16>,
    /// Second of the last use here or, as far as it was read, in the kernel.
    used: Cell<u32>,
    /// Number of the load, which orders pages of one second.
    loaded: u64,
}

#[derive(Debug)]
struct Process {
    mappings: Box<Mappings>,
    files: Vec<u32>,
}

/// The tables of one task.
#[derive(Debug)]
pub struct TableCache {
    sizes: TableSizes,
    rules: RuleTable,
    rules_written: usize,
    files: FileTable,
    processes: HashMap<u32, Process>,
    pages: HashMap<PageKey, Page>,
    pool: BlockPool,
    native_pages: HashMap<PageKey, Page>,
    native_order: VecDeque<PageKey>,
    native_pool: BlockPool,
    waiting: VecDeque<PageKey>,
    loads: u64,
    /// See [`Self::set_clock`].
    clock: u32,
    operations: Vec<Operation>,
    counts: TableCounts,
}

impl TableCache {
    pub fn new(sizes: TableSizes) -> Self {
        let mut cache = Self {
            sizes,
            rules: RuleTable::default(),
            rules_written: 0,
            files: FileTable::default(),
            processes: HashMap::new(),
            pages: HashMap::new(),
            pool: BlockPool::new(sizes.blocks),
            native_pages: HashMap::new(),
            native_order: VecDeque::new(),
            native_pool: BlockPool::new(NATIVE_BLOCKS),
            waiting: VecDeque::new(),
            loads: 0,
            clock: 0,
            operations: Vec::new(),
            counts: TableCounts::default(),
        };
        cache.write_rules();
        for index in SHARED.iter().filter_map(|rule| shared_index(*rule)) {
            if let Some(block) = cache.pool.get(u32::from(index)) {
                let block = Box::new(*block);
                cache
                    .operations
                    .push(Operation::WriteBlock { index, block });
            }
        }
        cache
    }

    /// Takes over the code of a process; `slot` is its place in the kernel's table of mappings,
    /// and the result what to write there.
    pub fn set_process(&mut self, slot: u32, code: ProcessCode, now: Instant) -> &Mappings {
        let mut files = Vec::new();
        let ProcessCode {
            mappings,
            files: opened,
        } = code;
        for file in opened {
            files.push(self.files.acquire(file));
        }
        let table = &mut self.files;
        let (mappings, left_out) = build_mappings(&mappings, |mapping| {
            if mapping.content == Content::Vdso {
                table.place_vdso(mapping)
            } else {
                table.place(mapping)
            }
        });
        self.counts.mappings_left_out += left_out;
        self.remove_process(slot, now);
        let process = Process { mappings, files };
        &self
            .processes
            .entry(slot)
            .insert_entry(process)
            .into_mut()
            .mappings
    }

    /// Forgets a process. Its files stay for a while, for the next one that uses them.
    pub fn remove_process(&mut self, slot: u32, now: Instant) {
        let Some(process) = self.processes.remove(&slot) else {
            return;
        };
        for number in process.files {
            for closed in self.files.release(number) {
                self.drop_pages_of(closed, now);
            }
        }
    }

    /// Makes sure that a page's rows are known here, and brings them into the kernel if there is
    /// room.
    pub fn load(&mut self, key: PageKey, now: Instant) -> Loaded {
        if let Some(page) = self.pages.get(&key) {
            page.used.set(self.clock);
            return Loaded::Already;
        }
        if self.native_pages.contains_key(&key) {
            return Loaded::Waiting;
        }
        let rows = self.decode(key);
        self.write_rules();
        self.make_room(now);
        if self.insert(key, &rows, now) {
            return Loaded::Now;
        }
        self.counts.waited += 1;
        self.insert_native(key, &rows, now);
        if self.waiting.len() < WAITING_PAGES {
            self.waiting.push_back(key);
        }
        Loaded::Waiting
    }

    /// Loads the pages that waited and for which there is room by now. To be called some times per
    /// second.
    pub fn load_waiting(&mut self, now: Instant) {
        for _ in 0..self.waiting.len() {
            let Some(key) = self.waiting.pop_front() else {
                return;
            };
            if self.pages.contains_key(&key) {
                continue;
            }
            let rows = self.decode(key);
            self.write_rules();
            self.make_room(now);
            if !self.insert(key, &rows, now) {
                self.waiting.push_front(key);
                return;
            }
            if let Some(page) = self.native_pages.remove(&key) {
                self.native_order.retain(|other| *other != key);
                // Programs in the kernel do not read these.
                self.native_pool.give_back(&page.blocks, now);
            }
        }
    }

    /// Loads all code of the files of a process that have at most `pages` pages of it. Larger ones
    /// come page by page.
    pub fn load_small_files(&mut self, slot: u32, pages: usize, now: Instant) {
        let Some(process) = self.processes.get(&slot) else {
            return;
        };
        let mapped = process.mappings.mappings.iter();
        let mut numbers: Vec<u32> = mapped
            .filter(|mapping| mapping.flags == 0 && mapping.file != REFUSED)
            .map(|mapping| mapping.file)
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        for number in numbers {
            let code = self.files.get(number).map(UnwindFile::code_pages);
            let code = code.filter(|code| code.len() <= pages);
            for page in code.unwrap_or_default() {
                self.load(PageKey { file: number, page }, now);
            }
        }
    }

    /// The time by which use is judged, in seconds.
    pub fn set_clock(&mut self, seconds: u32) {
        self.clock = seconds;
    }

    /// Whether some page may have to go soon: [`Self::note_uses`] helps to choose it.
    pub fn will_evict(&self) -> bool {
        self.pool.soon_available() < 2 * RESERVE_BLOCKS || self.pages.len() >= self.sizes.pages
    }

    /// Learns which pages the kernel has used: for each block, the time of the last search in it.
    pub fn note_uses(&self, blocks: &[u32]) {
        for page in self.pages.values() {
            let uses = page.blocks.iter();
            let last = uses
                .filter_map(|index| blocks.get(usize::from(*index)))
                .max();
            let used = last.copied().unwrap_or(0).max(page.used.get());
            page.used.set(used);
        }
    }

    /// The changes since the last call.
    pub fn take_operations(&mut self) -> Vec<Operation> {
        std::mem::take(&mut self.operations)
    }

    pub fn counts(&self) -> TableCounts {
        self.counts
    }

    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    /// Blocks that hold rows.
    pub fn blocks_used(&self) -> usize {
        self.pool.used()
    }

    pub fn rules(&self) -> &RuleTable {
        &self.rules
    }

    /// The byte of code at an address of a process.
    pub fn code_byte(&self, slot: u32, address: u64) -> Option<u8> {
        let all = &self.processes.get(&slot)?.mappings;
        let mapping = all.mappings[last_start_at_most(&all.starts, address)];
        let _reading = self.files.reading(mapping.file);
        let file = self
            .files
            .get(mapping.file)
            .filter(|_| address < mapping.end)?;
        file.code_byte(address.wrapping_sub(mapping.bias))
    }

    fn decode(&mut self, key: PageKey) -> PageRows {
        let _reading = self.files.reading(key.file);
        let Some(file) = self.files.get(key.file) else {
            self.counts.refused += u64::from(key.file != REFUSED);
            return PageRows::without_descriptions();
        };
        match file.decode_page(key.page, &mut self.rules) {
            Ok(rows) => {
                self.counts.unsupported_rows += rows.counts.unsupported;
                self.counts.rows_beyond_limit += rows.counts.beyond_limit;
                rows
            }
            Err(error) => {
                tracing::debug!(file = key.file, page = key.page, %error, "no rows for a page");
                self.counts.refused += 1;
                PageRows::without_descriptions()
            }
        }
    }

    fn write_rules(&mut self) {
        for (index, rule) in self
            .rules
            .rules()
            .iter()
            .enumerate()
            .skip(self.rules_written)
        {
            if let Ok(index) = u16::try_from(index) {
                let rule = *rule;
                self.operations.push(Operation::WriteRule { index, rule });
            }
        }
        self.rules_written = self.rules.rules().len();
    }

    fn insert(&mut self, key: PageKey, rows: &PageRows, now: Instant) -> bool {
        let shared = rows.only_rule().and_then(shared_index);
        let count = if shared.is_some() { 0 } else { rows.blocks() };
        if self.pages.len() >= self.sizes.pages {
            return false;
        }
        let Some(blocks) = self.pool.take(count, now) else {
            return false;
        };
        let indexes = shared.as_ref().map_or(&blocks[..], std::slice::from_ref);
        let (entry, packed) = rows.pack(indexes);
        let entry = Box::new(entry);
        for (index, block) in packed {
            if is_shared(index) {
                continue;
            }
            self.pool.set(index, &block);
            let block = Box::new(block);
            self.operations.push(Operation::WriteBlock { index, block });
        }
        self.operations.push(Operation::WritePage {
            key,
            entry: entry.clone(),
        });
        let page = self.new_page(entry, blocks);
        self.pages.insert(key, page);
        self.counts.loaded += 1;
        true
    }

    fn insert_native(&mut self, key: PageKey, rows: &PageRows, now: Instant) {
        let count = rows.blocks();
        let rested = now + super::block_pool::REST;
        let blocks = loop {
            if let Some(blocks) = self.native_pool.take(count, rested) {
                break blocks;
            }
            let Some(oldest) = self.native_order.pop_front() else {
                return;
            };
            if let Some(page) = self.native_pages.remove(&oldest) {
                self.native_pool.give_back(&page.blocks, now);
            }
        };
        // Indexes of blocks here go on where those of the kernel end.
        let base = u16::try_from(self.pool.capacity()).unwrap_or(u16::MAX);
        let shifted: Vec<u16> = blocks
            .iter()
            .map(|index| index.saturating_add(base))
            .collect();
        let (entry, packed) = rows.pack(&shifted);
        for ((_, block), index) in packed.into_iter().zip(&blocks) {
            self.native_pool.set(*index, &block);
        }
        self.native_order.push_back(key);
        let page = self.new_page(Box::new(entry), blocks);
        self.native_pages.insert(key, page);
    }

    fn new_page(&mut self, entry: Box<PageEntry>, blocks: Vec<u16>) -> Page {
        self.loads += 1;
        Page {
            entry,
            blocks,
            used: Cell::new(self.clock),
            loaded: self.loads,
        }
    }

    /// Evicts the pages that were not used for the longest time, until there is a reserve.
    fn make_room(&mut self, now: Instant) {
        loop {
            let needs_blocks = self.is_short_of_blocks();
            if !needs_blocks && self.pages.len() < self.sizes.pages {
                return;
            }
            // A page of shared blocks has none to give.
            let candidates = self.pages.iter();
            let candidates =
                candidates.filter(|(_, page)| !needs_blocks || !page.blocks.is_empty());
            let by_age = candidates.min_by_key(|(_, page)| (page.used.get(), page.loaded));
            let Some(oldest) = by_age.map(|(key, _)| *key) else {
                return;
            };
            self.counts.evicted += 1;
            self.drop_page(oldest, now);
        }
    }

    /// Whether pages must go before others come.
    fn is_short_of_blocks(&self) -> bool {
        self.pool.soon_available() < RESERVE_BLOCKS.min(self.sizes.blocks / 2)
    }

    fn drop_page(&mut self, key: PageKey, now: Instant) {
        if let Some(page) = self.pages.remove(&key) {
            self.pool.give_back(&page.blocks, now);
            self.operations.push(Operation::DeletePage { key });
        }
    }

    fn drop_pages_of(&mut self, file: u32, now: Instant) {
        let keys: Vec<PageKey> = self
            .pages
            .keys()
            .filter(|key| key.file == file)
            .copied()
            .collect();
        for key in keys {
            self.drop_page(key, now);
        }
        self.waiting.retain(|key| key.file != file);
    }
}

impl Tables for TableCache {
    fn mappings(&self, slot: u32) -> Option<&Mappings> {
        Some(&self.processes.get(&slot)?.mappings)
    }

    fn page(&self, key: &PageKey) -> Option<&PageEntry> {
        let page = self.pages.get(key).or_else(|| self.native_pages.get(key))?;
        page.used.set(self.clock);
        Some(&page.entry)
    }

    fn block(&self, index: u32) -> Option<&RowBlock> {
        let native = usize::try_from(index)
            .ok()?
            .checked_sub(self.pool.capacity());
        match native {
            None => self.pool.get(index),
            Some(native) => self.native_pool.get(u32::try_from(native).ok()?),
        }
    }

    fn rule(&self, index: u32) -> Option<&Rule> {
        self.rules.rules().get(usize::try_from(index).ok()?)
    }
}

/// A mapping that files can be placed in.
pub(crate) fn bias_of(file: &UnwindFile, mapping: &CodeMapping) -> Option<u64> {
    file.bias(mapping.start, mapping.end - mapping.start, mapping.offset)
}

#[cfg(test)]
#[path = "tables_tests.rs"]
mod tests;
