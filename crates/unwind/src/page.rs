//! The rows of one page, in the form that the kernel searches.

use profiler_common::unwind::{
    rule::{Rule, cfa},
    table::{
        BLOCK_ROWS, NO_ROW, PAGE_BLOCKS, PAGE_BYTES, PageEntry, RowBlock, row, row_offset, row_rule,
    },
};

use super::rules::{self, RuleTable};

/// Rows that a page may have.
pub const MAX_PAGE_ROWS: usize = BLOCK_ROWS * PAGE_BLOCKS;

/// What came up while rows of a page were made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCounts {
    pub functions: u64,
    /// Rows of the functions that touch the page, before anything was merged.
    pub raw_rows: u64,
    /// Rows of descriptions that cannot be followed.
    pub unsupported: u64,
    /// Rows that did not fit in the page; the code behind them is unsupported.
    pub beyond_limit: u64,
}

/// The rows of a page in ascending order, the first at offset 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageRows {
    pub rows: Vec<u32>,
    pub counts: PageCounts,
}

impl PageRows {
    /// A page of which nothing is known.
    pub fn without_descriptions() -> Self {
        Self {
            rows: vec![row(0, rules::NO_UNWIND_INFO)],
            counts: PageCounts::default(),
        }
    }

    /// True when no code of the page has a description.
    pub fn is_empty(&self) -> bool {
        self.rows == [row(0, rules::NO_UNWIND_INFO)]
    }

    /// The rule of the whole page, when it has only one.
    pub(crate) fn only_rule(&self) -> Option<u16> {
        match self.rows.as_slice() {
            [only] => u16::try_from(row_rule(*only)).ok(),
            _ => None,
        }
    }

    /// Blocks that the rows need.
    pub fn blocks(&self) -> usize {
        self.rows.len().div_ceil(BLOCK_ROWS)
    }

    /// The row that holds at an offset in the page, as the kernel finds it.
    pub fn find(&self, offset: u16) -> Option<u32> {
        let after = self
            .rows
            .partition_point(|row| row_offset(*row) <= u32::from(offset));
        self.rows.get(after.checked_sub(1)?).copied()
    }

    /// The rows as blocks, and the entry that names them. `indexes` are those of free blocks, at
    /// least [`Self::blocks`] of them.
    pub fn pack(&self, indexes: &[u16]) -> (PageEntry, Vec<(u16, RowBlock)>) {
        let mut entry = PageEntry {
            blocks: [0; PAGE_BLOCKS],
            starts: [u16::MAX; PAGE_BLOCKS],
        };
        let mut blocks = Vec::new();
        let chunks = self.rows.chunks(BLOCK_ROWS).take(PAGE_BLOCKS);
        for (nth, (chunk, index)) in chunks.zip(indexes).enumerate() {
            let mut block = RowBlock {
                rows: [chunk.last().copied().unwrap_or(NO_ROW); BLOCK_ROWS],
            };
            block.rows[..chunk.len()].copy_from_slice(chunk);
            let first = chunk.first().copied().map_or(0, row_offset);
            entry.starts[nth] = u16::try_from(first).unwrap_or(u16::MAX);
            // The last block also answers for the unused ones behind it.
            entry.blocks[nth..].fill(*index);
            blocks.push((*index, block));
        }
        (entry, blocks)
    }
}

/// Collects the rows of a page from rules in ascending order of their addresses.
#[derive(Debug)]
pub(crate) struct PageBuilder<'rules> {
    start: u64,
    rules: &'rules mut RuleTable,
    page: PageRows,
}

impl<'rules> PageBuilder<'rules> {
    pub(crate) fn new(start: u64, rules: &'rules mut RuleTable) -> Self {
        let page = PageRows::without_descriptions();
        Self { start, rules, page }
    }

    pub(crate) fn counts(&mut self) -> &mut PageCounts {
        &mut self.page.counts
    }

    /// From `address` on, `rule` holds. What lies before the page counts up to its beginning.
    pub(crate) fn push(&mut self, address: u64, rule: Rule) {
        let offset = address.saturating_sub(self.start);
        let Ok(offset) = u16::try_from(offset) else {
            return;
        };
        let index = self.rules.intern(rule);
        let rows = &mut self.page.rows;
        match rows.last().map(|last| row_offset(*last)) {
            Some(last) if last > u32::from(offset) => return,
            Some(last) if last == u32::from(offset) => {
                rows.pop();
            }
            Some(_) | None => {}
        }
        if let Some(last) = rows.last().copied() {
            let before = u16::try_from(row_rule(last)).unwrap_or(0);
            let same = before == index && rule.cfa_kind != cfa::FP_FUNCTION;
            // Behind its first bytes a function with a frame pointer is like the inside of one.
            let goes_on = rule.cfa_kind == cfa::FP_BODY
                && self.kind(before) == cfa::FP_FUNCTION
                && u32::from(offset) - row_offset(last) >= 8;
            if same || goes_on {
                return;
            }
        }
        let rows = &mut self.page.rows;
        if rows.len() >= MAX_PAGE_ROWS {
            self.page.counts.beyond_limit += 1;
            if let Some(last) = rows.last_mut() {
                let offset = u16::try_from(row_offset(*last)).unwrap_or(u16::MAX);
                *last = row(offset, rules::UNSUPPORTED);
            }
            return;
        }
        rows.push(row(offset, index));
    }

    pub(crate) fn finish(self) -> PageRows {
        self.page
    }

    fn kind(&self, index: u16) -> u8 {
        let rule = self.rules.rules().get(usize::from(index));
        rule.map_or(cfa::NO_UNWIND_INFO, |rule| rule.cfa_kind)
    }
}

/// The address of a page.
pub(crate) fn page_start(page: u32) -> u64 {
    u64::from(page) * PAGE_BYTES
}
