//! aarch64: `x29` is the frame pointer, `x30` the link register.

use super::{
    capture::REGISTER_WORDS,
    rule::Rule,
    state::{Memory, State},
    step::{Arch, CONTINUE, FpPlace, STACK_UNREADABLE},
};

/// DWARF register numbers (DWARF for the Arm 64-bit architecture, table 1).
pub const X29: u8 = 29;
pub const X30: u8 = 30;
pub const SP: u8 = 31;

/// Bytes from `sp` to `uc_mcontext.regs` in a signal frame: `siginfo` of 128 bytes, then a
/// `ucontext` whose `mcontext` begins at byte 176 with one word before the registers.
const UCONTEXT_REGISTERS: u64 = 312;

/// Bits of a user address without pointer authentication and tags, with 48-bit addresses.
const ADDRESS_BITS: u64 = (1 << 48) - 1;

/// Words of `struct user_pt_regs`: x0 to x30, sp, pc, pstate.
pub const SAVED_WORDS: usize = 34;
const SAVED_PC: usize = 32;
const SAVED_PSTATE: usize = 33;

/// Bit of `pstate` that is set in 32-bit code.
const COMPAT_STATE: u64 = 0x10;

#[derive(Clone, Copy, Debug)]
pub struct Aarch64;

impl Arch for Aarch64 {
    const FP_TO_CFA: u64 = 16;
    const SAVED_WORDS: usize = SAVED_WORDS;

    #[inline(always)]
    fn begin(saved: &[u64; REGISTER_WORDS], state: &mut State) {
        let mut index = 0;
        while index < 32 {
            state.registers[index] = saved[index];
            index += 1;
        }
        state.pc = saved[SAVED_PC];
        state.sp = saved[SP as usize];
        state.fp = saved[X29 as usize];
        state.link = saved[X30 as usize];
        state.interrupted = 1;
    }

    #[inline(always)]
    fn is_compat(saved: &[u64; REGISTER_WORDS]) -> bool {
        saved[SAVED_PSTATE] & COMPAT_STATE != 0
    }

    /// Rows are exact on this machine; the rule that would need this is never made.
    #[inline(always)]
    fn in_fp_function<M: Memory>(_: &M, _: &State, _: &Rule, _: u64) -> FpPlace {
        FpPlace::Inside
    }

    /// Unknown on this machine: the direct caller is missing where the link register was not stored.
    #[inline(always)]
    fn in_code_without_rows<M: Memory>(_: &M, _: &State) -> FpPlace {
        FpPlace::Inside
    }

    #[inline(always)]
    fn leave_signal<M: Memory>(memory: &M, state: &mut State) -> u32 {
        let base = state.sp.wrapping_add(UCONTEXT_REGISTERS);
        let mut index = 0;
        // x0 to x30, then sp.
        while index < 32 {
            let Some(value) = memory.word(base.wrapping_add(8 * index as u64)) else {
                return STACK_UNREADABLE;
            };
            state.registers[index] = value;
            index += 1;
        }
        let Some(pc) = memory.word(base.wrapping_add(8 * 32)) else {
            return STACK_UNREADABLE;
        };
        state.pc = pc;
        state.link = state.registers[X30 as usize];
        state.sp = state.registers[SP as usize];
        state.fp = state.registers[X29 as usize];
        state.interrupted = 1;
        CONTINUE
    }

    #[inline(always)]
    fn strip(address: u64) -> u64 {
        address & ADDRESS_BITS
    }
}
