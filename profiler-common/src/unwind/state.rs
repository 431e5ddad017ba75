//! Registers of the frame being left, and what a step needs from outside.

use super::{
    mapping::Mappings,
    rule::Rule,
    table::{PageEntry, PageKey, RowBlock},
};

/// Registers kept for an interrupted frame, by DWARF number.
pub const REGISTERS: usize = 32;

/// The frame being left. Lives in a map value in the kernel: no verifier follows this much on the
/// stack of a program.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    pub pc: u64,
    pub sp: u64,
    pub fp: u64,
    /// Link register (aarch64); valid while `interrupted` is 1.
    pub link: u64,
    /// 1: `pc` is the instruction to be executed next and `registers` hold; 0: `pc` is a return
    /// address.
    pub interrupted: u32,
    /// Slot of the process in the table of mappings.
    pub slot: u32,
    /// Not 0: a rule asked for a register beyond `pc`, `sp` and `fp`.
    pub registers_used: u64,
    /// With [`super::step::TABLE_MISSING`]: the page that is missing.
    pub missing: PageKey,
    /// Of the row that was found: bytes from it to `pc`, and the address in its page. They lie here
    /// so that the verifier sees the same values however the rule was found.
    pub distance: u32,
    pub offset: u32,
    /// General registers by DWARF number; valid while `interrupted` is 1.
    pub registers: [u64; REGISTERS],
}

impl Default for State {
    fn default() -> Self {
        Self {
            pc: 0,
            sp: 0,
            fp: 0,
            link: 0,
            interrupted: 1,
            slot: 0,
            registers_used: 0,
            missing: PageKey::default(),
            distance: 0,
            offset: 0,
            registers: [0; REGISTERS],
        }
    }
}

/// Reads the stack (and one or two bytes of code) of the process.
pub trait Memory {
    /// The 8 bytes at `address`.
    fn word(&self, address: u64) -> Option<u64>;
    /// The byte at `address`.
    fn byte(&self, address: u64) -> Option<u8>;
    /// The 8 bytes at `address` and the 8 bytes behind them.
    #[expect(
        clippy::inline_always,
        reason = "part of a step, which is one function"
    )]
    #[inline(always)]
    fn pair(&self, address: u64) -> Option<[u64; 2]> {
        Some([self.word(address)?, self.word(address.wrapping_add(8))?])
    }
}

/// The tables that the agent fills.
pub trait Tables {
    fn mappings(&self, slot: u32) -> Option<&Mappings>;
    fn page(&self, key: &PageKey) -> Option<&PageEntry>;
    fn block(&self, index: u32) -> Option<&RowBlock>;
    fn rule(&self, index: u32) -> Option<&Rule>;

    /// The index of the rule that [`Self::remember`] was told for the return address `pc`, by a
    /// machine that keeps what its searches found.
    #[expect(
        clippy::inline_always,
        reason = "part of a step, which is one function"
    )]
    #[inline(always)]
    fn remembered(&self, pc: u64) -> Option<u32> {
        let _ = pc;
        None
    }

    /// A search found this rule for the return address `pc`.
    #[expect(
        clippy::inline_always,
        reason = "part of a step, which is one function"
    )]
    #[inline(always)]
    fn remember(&self, pc: u64, rule: u32) {
        let _ = (pc, rule);
    }
}
