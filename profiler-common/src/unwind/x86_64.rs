//! x86-64: `rbp` is the frame pointer, return addresses are pushed by `call`.

use super::{
    rule::{Rule, cfa},
    state::{Memory, State},
    step::{Arch, CONTINUE, FpPlace, STACK_UNREADABLE},
};

/// DWARF register numbers (System V psABI, figure 3.36).
pub const RBP: u8 = 6;
pub const RSP: u8 = 7;
pub const RIP: u8 = 16;

/// `ret`.
const RET: u8 = 0xc3;
/// `pop rbp`.
const POP_RBP: u8 = 0x5d;
/// `jmp rel32`.
const JMP: u8 = 0xe9;
/// The first byte of `jmp` through a register or memory.
const JMP_INDIRECT: u8 = 0xff;

/// Bytes from `rsp` to `uc_mcontext.gregs` in a signal frame, after the handler's `ret`
/// (`struct rt_sigframe` without its first word, linux/arch/x86/include/asm/sigframe.h).
const UCONTEXT_REGISTERS: u64 = 40;

/// DWARF numbers of `gregs` in their order.
const UCONTEXT_ORDER: [u8; 16] = [8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7];

#[derive(Clone, Copy, Debug)]
pub struct X86_64;

impl Arch for X86_64 {
    const FP_TO_CFA: u64 = 16;

    #[inline(always)]
    fn in_fp_function<M: Memory>(memory: &M, state: &State, rule: &Rule, distance: u64) -> FpPlace {
        if rule.cfa_kind == cfa::FP_FUNCTION {
            let start = rule.cfa_offset as u64 & 0xff;
            if distance <= start {
                return FpPlace::Outside;
            }
            // `push rbp` has one byte and `mov rbp, rsp` three.
            if distance < start + 4 {
                return FpPlace::Pushed;
            }
        }
        match memory.byte(state.pc) {
            Some(RET) => FpPlace::Outside,
            // A tail call.
            Some(JMP | JMP_INDIRECT) if memory.byte(state.pc.wrapping_sub(1)) == Some(POP_RBP) => {
                FpPlace::Outside
            }
            _ => FpPlace::Inside,
        }
    }

    #[inline(always)]
    fn leave_signal<M: Memory>(memory: &M, state: &mut State) -> u32 {
        let base = state.sp.wrapping_add(UCONTEXT_REGISTERS);
        let mut index = 0;
        while index < UCONTEXT_ORDER.len() {
            let Some(value) = memory.word(base.wrapping_add(8 * index as u64)) else {
                return STACK_UNREADABLE;
            };
            state.registers[UCONTEXT_ORDER[index] as usize] = value;
            index += 1;
        }
        let Some(pc) = memory.word(base.wrapping_add(8 * 16)) else {
            return STACK_UNREADABLE;
        };
        state.pc = pc;
        // The handler may run on another stack, so nothing is known about the order.
        state.sp = state.registers[RSP as usize];
        state.fp = state.registers[RBP as usize];
        state.interrupted = 1;
        CONTINUE
    }

    #[inline(always)]
    fn strip(address: u64) -> u64 {
        address
    }
}
