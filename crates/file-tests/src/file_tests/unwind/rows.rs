//! The tables under test, as the kernel holds them.

use std::{collections::HashMap, fs::File, path::Path};

use profiler_unwind::{RuleTable, UnwindFile};

use profiler_common::unwind::{
    mapping::{MAX_MAPPINGS, Mapping, Mappings, NO_START},
    rule::Rule,
    search::{last_offset_at_most, last_row_at_most},
    state::Tables,
    table::{PAGE_SHIFT, PageEntry, PageKey, RowBlock, row_rule},
};

/// The number of the one file.
const FILE: u32 = 1;

/// All pages of a file; addresses of the process are those of the file.
#[derive(Debug)]
pub(crate) struct Rows {
    mappings: Box<Mappings>,
    pages: HashMap<u32, PageEntry>,
    blocks: Vec<RowBlock>,
    rules: RuleTable,
    pub(crate) file: UnwindFile,
    pub(crate) count: usize,
    pub(crate) beyond_limit: u64,
}

impl Rows {
    pub(crate) fn of(path: &Path) -> Self {
        let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let file =
            UnwindFile::open(file).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut mappings = Box::new(Mappings {
            starts: [NO_START; MAX_MAPPINGS],
            mappings: [Mapping::default(); MAX_MAPPINGS],
        });
        mappings.starts[0] = 0;
        mappings.mappings[0] = Mapping {
            end: 1 << 47,
            file: FILE,
            ..Mapping::default()
        };
        let mut rows = Self {
            mappings,
            pages: HashMap::new(),
            blocks: Vec::new(),
            rules: RuleTable::default(),
            file,
            count: 0,
            beyond_limit: 0,
        };
        for page in rows.file.code_pages() {
            rows.load(page);
        }
        rows
    }

    fn load(&mut self, page: u32) {
        let decoded = self
            .file
            .decode_page(page, &mut self.rules)
            .expect("an unchanged file");
        self.count += decoded.rows.len();
        self.beyond_limit += decoded.counts.beyond_limit;
        let first = self.blocks.len();
        let indexes: Vec<u16> = (first..first + decoded.blocks())
            .map(|index| u16::try_from(index).expect("fewer blocks than indexes"))
            .collect();
        let (entry, blocks) = decoded.pack(&indexes);
        self.blocks
            .extend(blocks.into_iter().map(|(_, block)| block));
        self.pages.insert(page, entry);
    }

    pub(crate) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    pub(crate) fn pages(&self) -> usize {
        self.pages.len()
    }

    pub(crate) fn rules(&self) -> &[Rule] {
        self.rules.rules()
    }

    /// The rule that holds at an address.
    pub(crate) fn rule_at(&self, address: u64) -> Option<Rule> {
        let entry = self
            .pages
            .get(&u32::try_from(address >> PAGE_SHIFT).ok()?)?;
        let offset = u16::try_from(address & 0xffff).ok()?;
        let block = entry.blocks[last_offset_at_most(&entry.starts, offset)];
        let rows = &self.blocks.get(usize::from(block))?.rows;
        let row = rows[last_row_at_most(rows, (u32::from(offset) << 16) | 0xffff)];
        self.rule(row_rule(row)).copied()
    }

    pub(crate) fn has(&self, address: u64) -> bool {
        u32::try_from(address >> PAGE_SHIFT).is_ok_and(|page| self.pages.contains_key(&page))
    }
}

impl Tables for Rows {
    fn mappings(&self, _: u32) -> Option<&Mappings> {
        Some(&self.mappings)
    }

    fn page(&self, key: &PageKey) -> Option<&PageEntry> {
        self.pages.get(&key.page)
    }

    fn block(&self, index: u32) -> Option<&RowBlock> {
        self.blocks.get(usize::try_from(index).ok()?)
    }

    fn rule(&self, index: u32) -> Option<&Rule> {
        self.rules.rules().get(usize::try_from(index).ok()?)
    }
}
