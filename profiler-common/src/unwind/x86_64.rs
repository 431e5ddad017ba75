//! x86-64: `rbp` is the frame pointer, return addresses are pushed by `call`.

use super::{
    capture::REGISTER_WORDS,
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
/// `ret imm16`, which takes the arguments away.
const RET_ARGUMENTS: u8 = 0xc2;
/// `push rbp`.
const PUSH_RBP: u8 = 0x55;
/// The first byte of instructions on whole registers, and the second of some.
const REX_W: u8 = 0x48;
const MOV_STORE: u8 = 0x89;
const MOV_LOAD: u8 = 0x8b;
const COMPARE: u8 = 0x83;
/// `test r/m8, imm8`.
const TEST_BYTE: u8 = 0xf6;
/// `jg rel8`.
const JG: u8 = 0x7f;
/// The first bytes of `jne rel32`.
const TWO_BYTES: u8 = 0x0f;
const JNE: u8 = 0x85;
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

/// Words of `struct pt_regs` (linux/arch/x86/include/uapi/asm/ptrace.h).
pub const SAVED_WORDS: usize = 21;
const SAVED_IP: usize = 16;
const SAVED_CS: usize = 17;

/// DWARF numbers of the first 15 words of `struct pt_regs`, and where `sp` is.
const SAVED_ORDER: [u8; 15] = [15, 14, 13, 12, 6, 3, 11, 10, 9, 8, 0, 2, 1, 4, 5];
const SAVED_SP: usize = 19;

/// Code segment of 32-bit code (`__USER32_CS`).
const COMPAT_CS: u64 = 0x23;

#[derive(Clone, Copy, Debug)]
pub struct X86_64;

impl Arch for X86_64 {
    const FP_TO_CFA: u64 = 16;
    const SAVED_WORDS: usize = SAVED_WORDS;

    #[inline(always)]
    fn begin(saved: &[u64; REGISTER_WORDS], state: &mut State) {
        let mut index = 0;
        while index < SAVED_ORDER.len() {
            state.registers[SAVED_ORDER[index] as usize] = saved[index];
            index += 1;
        }
        state.registers[RSP as usize] = saved[SAVED_SP];
        state.registers[RIP as usize] = saved[SAVED_IP];
        state.pc = saved[SAVED_IP];
        state.sp = saved[SAVED_SP];
        state.fp = state.registers[RBP as usize];
        state.link = 0;
        state.interrupted = 1;
    }

    #[inline(always)]
    fn is_compat(saved: &[u64; REGISTER_WORDS]) -> bool {
        saved[SAVED_CS] & 0xffff == COMPAT_CS
    }

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
    fn in_code_without_rows<M: Memory>(memory: &M, state: &State) -> FpPlace {
        let pc = state.pc;
        let byte = |offset: u64| memory.byte(pc.wrapping_add(offset));
        let before = || memory.byte(pc.wrapping_sub(1));
        let outside = match byte(0) {
            Some(RET | RET_ARGUMENTS) => true,
            Some(PUSH_RBP) => sets_rbp(memory, pc.wrapping_add(1)),
            // V8 looks first whether the code is still valid: mov rbx, [rcx-8]; test byte [rbx+n], 1;
            // jne.
            Some(TWO_BYTES) => jumps_before_prologue(memory, pc),
            Some(TEST_BYTE) => jumps_before_prologue(memory, pc.wrapping_add(4)),
            Some(REX_W) => match byte(1) {
                Some(MOV_LOAD) if byte(2) == Some(0x59) => {
                    jumps_before_prologue(memory, pc.wrapping_add(8))
                }
                Some(MOV_LOAD | MOV_STORE) => {
                    return if sets_rbp(memory, pc) && before() == Some(PUSH_RBP) {
                        FpPlace::Pushed
                    } else {
                        FpPlace::Inside
                    };
                }
                // And last how many arguments there are: pop rbp; cmp rcx, n; jg; ret n.
                Some(COMPARE) => byte(2) == Some(0xf9) && before() == Some(POP_RBP),
                _ => false,
            },
            Some(JG) => byte(1) == Some(3) && byte(2) == Some(RET_ARGUMENTS),
            _ => false,
        };
        if outside {
            FpPlace::Outside
        } else {
            FpPlace::Inside
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

/// Whether the instruction at `address` is `mov rbp, rsp`, in one of its two encodings.
#[inline(always)]
fn sets_rbp<M: Memory>(memory: &M, address: u64) -> bool {
    let byte = |offset| memory.byte(address.wrapping_add(offset));
    byte(0) == Some(REX_W)
        && match byte(1) {
            Some(MOV_STORE) => byte(2) == Some(0xe5),
            Some(MOV_LOAD) => byte(2) == Some(0xec),
            _ => false,
        }
}

/// Whether at `address` a `jne` leads away right before a function makes its frame.
#[inline(always)]
fn jumps_before_prologue<M: Memory>(memory: &M, address: u64) -> bool {
    let byte = |offset| memory.byte(address.wrapping_add(offset));
    byte(0) == Some(TWO_BYTES)
        && byte(1) == Some(JNE)
        && byte(6) == Some(PUSH_RBP)
        && sets_rbp(memory, address.wrapping_add(7))
}
