//! One step from a frame to its caller.

use super::{
    capture::REGISTER_WORDS,
    mapping::{MAPPING_FRAME_POINTERS, Mapping, USER_ADDRESS_LIMIT},
    rule::{Rule, cfa, fp, ra},
    search::{last_offset_at_most, last_row_at_most, last_start_at_most},
    state::{Memory, REGISTERS, State, Tables},
    table::{NO_ROW, PAGE_BLOCKS, PAGE_BYTES, PAGE_SHIFT, PageKey, row_offset, row_rule},
};

/// The state is that of the caller; go on.
pub const CONTINUE: u32 = 0;
/// The frame was the outermost: the stack is complete.
pub const COMPLETE: u32 = 1;
/// The address is in no executable mapping of the process.
pub const NO_MAPPING: u32 = 2;
/// The rows of the page are not loaded yet; `State::missing` names it.
pub const TABLE_MISSING: u32 = 3;
/// No function description covers the address.
pub const NO_UNWIND_INFO: u32 = 4;
/// The description is one that this unwinder cannot follow.
pub const UNSUPPORTED_RULE: u32 = 5;
/// The stack could not be read.
pub const STACK_UNREADABLE: u32 = 6;
/// The caller's frame would not be above this one.
pub const STACK_NOT_GROWING: u32 = 7;
/// The rule needs a register that is not known in a frame that made a call.
pub const REGISTER_UNKNOWN: u32 = 8;
/// The mappings of the process are not known yet.
pub const PROCESS_UNKNOWN: u32 = 9;
/// A 32-bit process.
pub const COMPAT_PROCESS: u32 = 10;
/// The registers of user mode could not be read.
pub const NO_REGISTERS: u32 = 11;
/// More frames than are walked.
pub const TOO_DEEP: u32 = 12;
/// The chain of frame pointers broke in code that keeps them.
pub const FRAME_POINTER_BROKEN: u32 = 13;
/// No stack was taken, because the wait was longer than expected.
pub const NOT_TAKEN: u32 = 14;
/// No stack belongs to it: what was left when sampling ended.
pub const NOT_SAMPLED: u32 = 15;
/// The thread ran while its stack was to be read.
pub const STACK_CHANGED: u32 = 16;

/// Number of outcomes.
pub const OUTCOMES: u32 = 17;

/// What differs between machines.
pub trait Arch {
    /// Leaves a function whose frame-pointer rule holds only in part: its first bytes, its `ret`.
    /// `distance` is the number of bytes since the row.
    fn in_fp_function<M: Memory>(memory: &M, state: &State, rule: &Rule, distance: u64) -> FpPlace;
    /// The same in code without rows, as a just-in-time compiler makes it: only what the interrupted
    /// instruction says for sure.
    fn in_code_without_rows<M: Memory>(memory: &M, state: &State) -> FpPlace;
    /// Replaces the state by the registers that a signal interrupted.
    fn leave_signal<M: Memory>(memory: &M, state: &mut State) -> u32;
    /// An address without what pointer authentication adds.
    fn strip(address: u64) -> u64;
    /// Sets the state to the interrupted frame, given the kernel's `struct pt_regs`.
    fn begin(saved: &[u64; REGISTER_WORDS], state: &mut State);
    /// Whether these are the registers of 32-bit code.
    fn is_compat(saved: &[u64; REGISTER_WORDS]) -> bool;
    /// Words of the kernel's `struct pt_regs` that [`Self::begin`] reads.
    const SAVED_WORDS: usize;
    /// Bytes between the stored frame pointer and the CFA.
    const FP_TO_CFA: u64;
}

/// Where in a function with a frame pointer the interrupted instruction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FpPlace {
    /// Nothing was pushed yet, or all was popped.
    Outside,
    /// The frame pointer was pushed and not set yet.
    Pushed,
    Inside,
}

/// Leaves the frame in `state`. The state is that of the caller when the result is [`CONTINUE`] and
/// unchanged in its addresses otherwise.
#[inline(always)]
pub fn step<A: Arch, M: Memory, T: Tables>(memory: &M, tables: &T, state: &mut State) -> u32 {
    let interrupted = state.interrupted & 1;
    // A return address may be the first byte of the next function, when the call was the last
    // instruction of one that never returns; the byte before belongs to the call.
    let pc = state.pc.wrapping_sub(u64::from(1 - interrupted));
    if pc >= USER_ADDRESS_LIMIT {
        return NO_MAPPING;
    }
    // The place in an interrupted function matters, so only the rules of callers are remembered.
    let remembered = if interrupted == 0 {
        tables.remembered(pc)
    } else {
        None
    };
    let index = if let Some(index) = remembered {
        state.offset = 0;
        state.distance = 0;
        index
    } else {
        match search(tables, state, pc) {
            TableEntry::Rule(index) => index,
            TableEntry::FramePointers => {
                let place = if interrupted == 1 {
                    A::in_code_without_rows(memory, state)
                } else {
                    FpPlace::Inside
                };
                return leave_fp_function::<A, M>(memory, state, place, Order::Any);
            }
            TableEntry::Nothing(outcome) => return outcome,
        }
    };
    let Some(rule) = tables.rule(index) else {
        return NO_UNWIND_INFO;
    };
    // What a PLT entry does depends on the place in it.
    if interrupted == 0 && remembered.is_none() && rule.cfa_kind != cfa::PLT {
        tables.remember(pc, index);
    }
    apply::<A, M>(memory, rule, state)
}

/// What the tables hold for an address.
enum TableEntry {
    /// The index of a rule; the place of the address in its row is in the state.
    Rule(u32),
    /// Code without rows, which keeps frame pointers.
    FramePointers,
    Nothing(u32),
}

/// Searches mapping, page, block and row of an address below [`USER_ADDRESS_LIMIT`].
#[inline(always)]
fn search<T: Tables>(tables: &T, state: &mut State, pc: u64) -> TableEntry {
    let Some(mapping) = find_mapping(tables, state.slot, pc) else {
        return TableEntry::Nothing(PROCESS_UNKNOWN);
    };
    if pc >= mapping.end {
        return TableEntry::Nothing(NO_MAPPING);
    }
    if mapping.flags & MAPPING_FRAME_POINTERS != 0 {
        return TableEntry::FramePointers;
    }
    let address = pc.wrapping_sub(mapping.bias);
    let key = PageKey {
        file: mapping.file,
        page: (address >> PAGE_SHIFT) as u32,
    };
    let offset = (address & (PAGE_BYTES - 1)) as u32;
    let Some(entry) = tables.page(&key) else {
        state.missing = key;
        return TableEntry::Nothing(TABLE_MISSING);
    };
    let nth = last_offset_at_most(&entry.starts, offset as u16) & (PAGE_BLOCKS - 1);
    // SAFETY: masked to the length of the array.
    let block = unsafe { *entry.blocks.get_unchecked(nth) };
    let Some(block) = tables.block(u32::from(block)) else {
        return TableEntry::Nothing(NO_UNWIND_INFO);
    };
    let row = last_row_at_most(&block.rows, (offset << 16) | 0xffff);
    // SAFETY: a masked index.
    let row = unsafe { *block.rows.get_unchecked(row) };
    if row == NO_ROW {
        return TableEntry::Nothing(NO_UNWIND_INFO);
    }
    state.offset = offset;
    state.distance = offset.wrapping_sub(row_offset(row));
    TableEntry::Rule(row_rule(row))
}

#[inline(always)]
fn find_mapping<T: Tables>(tables: &T, slot: u32, pc: u64) -> Option<Mapping> {
    let all = tables.mappings(slot)?;
    let index = last_start_at_most(&all.starts, pc);
    // SAFETY: a masked index; both arrays have one length.
    Some(unsafe { *all.mappings.get_unchecked(index) })
}

/// Applies `rule` to the state.
#[inline(always)]
pub fn apply<A: Arch, M: Memory>(memory: &M, rule: &Rule, state: &mut State) -> u32 {
    let interrupted = state.interrupted & 1 == 1;
    let word = A::FP_TO_CFA / 2;
    let sp = state.sp;
    // SAFETY: masked to the length of the array.
    let register = unsafe {
        *state
            .registers
            .get_unchecked(usize::from(rule.cfa_register) & (REGISTERS - 1))
    };
    let plus = |base: u64| base.wrapping_add(i64::from(rule.cfa_offset) as u64);
    let add = i64::from(rule.cfa_add) as u64;
    let base = match rule.cfa_kind {
        cfa::SP => plus(sp),
        cfa::FP => plus(state.fp),
        cfa::FP_FUNCTION | cfa::FP_BODY => {
            let place = if interrupted {
                A::in_fp_function(memory, state, rule, u64::from(state.distance))
            } else {
                FpPlace::Inside
            };
            return leave_fp_function::<A, M>(memory, state, place, Order::Upwards);
        }
        cfa::DEREF_SP => match memory.word(plus(sp)) {
            Some(value) => value.wrapping_add(add),
            None => return STACK_UNREADABLE,
        },
        cfa::DEREF_FP => match memory.word(plus(state.fp)) {
            Some(value) => value.wrapping_add(add),
            None => return STACK_UNREADABLE,
        },
        cfa::REGISTER | cfa::DEREF_REGISTER | cfa::DEREF_SP_SCALED if !interrupted => {
            return REGISTER_UNKNOWN;
        }
        cfa::REGISTER => {
            state.registers_used = 1;
            plus(register)
        }
        cfa::DEREF_REGISTER => {
            state.registers_used = 1;
            match memory.word(plus(register)) {
                Some(value) => value.wrapping_add(add),
                None => return STACK_UNREADABLE,
            }
        }
        cfa::DEREF_SP_SCALED => {
            state.registers_used = 1;
            match memory.word(plus(sp).wrapping_add(register.wrapping_mul(8))) {
                Some(value) => value.wrapping_add(add),
                None => return STACK_UNREADABLE,
            }
        }
        cfa::PLT => {
            let pushed = u64::from(state.offset & 15 >= rule.cfa_offset as u32);
            sp.wrapping_add(word + word * pushed)
        }
        cfa::GO => {
            if !interrupted {
                return follow_frame_pointer::<A, M>(memory, state, Order::Any);
            }
            let frame = plus(sp).wrapping_add(word);
            // The prologue makes room first and sets the frame pointer two instructions later.
            let mut fp = state.fp;
            if fp.wrapping_add(A::FP_TO_CFA) == frame {
                match memory.word(fp) {
                    Some(value) => fp = value,
                    None => return STACK_UNREADABLE,
                }
            }
            return leave::<A, M>(memory, state, frame, fp);
        }
        cfa::SIGNAL => return A::leave_signal(memory, state),
        cfa::OUTERMOST => return COMPLETE,
        cfa::UNSUPPORTED => return UNSUPPORTED_RULE,
        _ => return NO_UNWIND_INFO,
    };
    let next_pc = match rule.ra_kind {
        ra::AT_CFA => match memory.word(base.wrapping_add(i64::from(rule.ra_offset) as u64)) {
            Some(value) => value,
            None => return STACK_UNREADABLE,
        },
        _ if !interrupted => return REGISTER_UNKNOWN,
        ra::LINK => {
            state.registers_used = 1;
            state.link
        }
        _ => {
            state.registers_used = 1;
            // SAFETY: masked to the length of the array.
            unsafe {
                *state
                    .registers
                    .get_unchecked(rule.ra_offset as usize & (REGISTERS - 1))
            }
        }
    };
    let fp_offset = i64::from(rule.fp_offset) as u64;
    let saved_at = match rule.fp_kind {
        fp::SAME | fp::UNDEFINED | fp::REGISTER => 0,
        fp::AT_FP => state.fp.wrapping_add(fp_offset),
        fp::AT_SP => sp.wrapping_add(fp_offset),
        _ => base.wrapping_add(fp_offset),
    };
    let next_fp = match rule.fp_kind {
        fp::SAME => state.fp,
        fp::UNDEFINED => 0,
        fp::REGISTER if interrupted => {
            state.registers_used = 1;
            // SAFETY: masked to the length of the array.
            unsafe {
                *state
                    .registers
                    .get_unchecked(rule.fp_offset as usize & (REGISTERS - 1))
            }
        }
        fp::REGISTER => return REGISTER_UNKNOWN,
        _ => match memory.word(saved_at) {
            Some(value) => value,
            None => return STACK_UNREADABLE,
        },
    };
    arrive(state, A::strip(next_pc), base, next_fp)
}

/// Leaves a function that keeps a frame pointer, from this place in it.
#[inline(always)]
fn leave_fp_function<A: Arch, M: Memory>(
    memory: &M,
    state: &mut State,
    place: FpPlace,
    order: Order,
) -> u32 {
    let word = A::FP_TO_CFA / 2;
    let (sp, fp) = (state.sp, state.fp);
    match place {
        FpPlace::Outside => leave::<A, M>(memory, state, sp.wrapping_add(word), fp),
        FpPlace::Pushed => leave::<A, M>(memory, state, sp.wrapping_add(2 * word), fp),
        FpPlace::Inside => follow_frame_pointer::<A, M>(memory, state, order),
    }
}

/// Goes to the caller whose frame begins at `cfa`, with the return address right below it (or in
/// the link register, on machines that have one).
#[inline(always)]
fn leave<A: Arch, M: Memory>(memory: &M, state: &mut State, cfa: u64, fp: u64) -> u32 {
    let Some(pc) = memory.word(cfa.wrapping_sub(A::FP_TO_CFA / 2)) else {
        return STACK_UNREADABLE;
    };
    arrive(state, A::strip(pc), cfa, fp)
}

/// Where the caller's frame may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Upwards,
    /// Code that switches stacks and keeps the chain of frame pointers whole, as Go's runtime does.
    Any,
}

/// The frame-pointer rule: the caller's frame pointer lies at `*fp` and the return address above.
#[inline(always)]
fn follow_frame_pointer<A: Arch, M: Memory>(memory: &M, state: &mut State, order: Order) -> u32 {
    let fp = state.fp;
    if fp == 0 {
        return COMPLETE;
    }
    if fp & 7 != 0 || (order == Order::Upwards && fp < state.sp) {
        return FRAME_POINTER_BROKEN;
    }
    // The return address lies right behind on all machines.
    let Some([next_fp, pc]) = memory.pair(fp) else {
        return FRAME_POINTER_BROKEN;
    };
    if order == Order::Any && next_fp == fp {
        return STACK_NOT_GROWING;
    }
    if pc == 0 {
        return COMPLETE;
    }
    state.pc = A::strip(pc);
    state.sp = fp.wrapping_add(A::FP_TO_CFA);
    state.fp = next_fp;
    state.interrupted = 0;
    CONTINUE
}

#[inline(always)]
fn arrive(state: &mut State, pc: u64, sp: u64, fp: u64) -> u32 {
    if pc == 0 {
        // By convention of all supported systems no function returns to 0.
        return COMPLETE;
    }
    // A leaf of a machine with a link register may have no frame at all.
    if sp < state.sp || (sp == state.sp && state.interrupted & 1 == 0) {
        return STACK_NOT_GROWING;
    }
    state.pc = pc;
    state.sp = sp;
    state.fp = fp;
    state.interrupted = 0;
    CONTINUE
}
