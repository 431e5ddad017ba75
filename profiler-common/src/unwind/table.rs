//! Rows by file and page.

/// Bytes of code that one page of rows covers.
pub const PAGE_BYTES: u64 = 1 << PAGE_SHIFT;
pub const PAGE_SHIFT: u32 = 16;

/// Rows in a block. A block is one element of a BPF array, 1 KiB: rows as elements of their own
/// would take 8 bytes each, because arrays round to that.
pub const BLOCK_ROWS: usize = 256;

/// Blocks that a page may use.
pub const PAGE_BLOCKS: usize = 32;

/// A page of a file's addresses.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PageKey {
    /// Number that the agent gave to the file.
    pub file: u32,
    /// Address in the file (as its program headers count) divided by [`PAGE_BYTES`].
    pub page: u32,
}

/// Where the rows of a page are.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageEntry {
    /// Indexes of its blocks in ascending order of their rows; unused ones repeat the last, because
    /// an offset of 0xffff finds the last of all.
    pub blocks: [u16; PAGE_BLOCKS],
    /// Offset of the first row of each block, ascending, the first 0; unused ones are 0xffff.
    pub starts: [u16; PAGE_BLOCKS],
}

/// Rows in ascending order; unused ones repeat the last row, because a search for the greatest key
/// finds the last of all. A block whose first row is [`NO_ROW`] has none.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowBlock {
    pub rows: [u32; BLOCK_ROWS],
}

/// Greater than every row.
pub const NO_ROW: u32 = u32::MAX;

/// A row: from this offset in its page on (high half), the rule with this index (low half) holds
/// until the next row. The first row of a page is at offset 0.
pub const fn row(offset: u16, rule: u16) -> u32 {
    ((offset as u32) << 16) | rule as u32
}

pub const fn row_offset(row: u32) -> u32 {
    row >> 16
}

pub const fn row_rule(row: u32) -> u32 {
    row & 0xffff
}

const _: () = assert!(size_of::<PageKey>() == 8);
const _: () = assert!(size_of::<PageEntry>() == 128);
const _: () = assert!(size_of::<RowBlock>() == 1024);
const _: () = assert!(BLOCK_ROWS.is_power_of_two() && PAGE_BLOCKS.is_power_of_two());
