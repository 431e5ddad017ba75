//! Walks kernel stacks of threads that wait, with the tables of the kernel's own walker (ORC), on x86-64.
//!
//! `bpf_get_task_stack` searches these tables anew for each frame, which is most of the cost of a switch. Here each CPU
//! remembers what it has found for a code address, which never changes. The result is the kernel's own: the same
//! frames without those of the scheduler (`stack_trace_consume_entry_nosched`). Whatever is met that is not a call and not the
//! entry from user mode is left to the kernel's walker.
//!
//! Facts: `arch/x86/kernel/unwind_orc.c` (`__unwind_start`, `unwind_next_frame`), `arch/x86/include/asm/orc_types.h`,
//! `struct inactive_task_frame` of `arch/x86/include/asm/switch_to.h`; kernel 5.17 (`bpf_loop`).
//!
//! Cost: one read of the stack's end, and a cache line for each frame.

use core::{ffi::c_void, ptr::read_volatile};

use aya_ebpf::{
    helpers::generated::{bpf_loop, bpf_probe_read_kernel},
    macros::map,
    maps::Array,
};
use profiler_common::{
    counter,
    limits::{
        CLASS_SCHEDULER, KERNEL_RULES, KERNEL_STACK_BYTES, KERNEL_WALK_BYTES, KERNEL_WALK_STEPS,
        MAX_KERNEL_FRAMES,
    },
    stack::{SPACE_KERNEL, StackRecord, hash_finish, hash_step},
};

use crate::{
    config::config,
    counters::count,
    kernel::{KernelPtr, TypedPtr},
    maps::area_of_cpu,
    stack,
};

const WORD: u64 = size_of::<u64>() as u64;
const WORDS: usize = KERNEL_WALK_BYTES / size_of::<u64>();

/// Where a task that does not run has left its frame pointer and the address at which it goes on, in words from its
/// stack pointer, and what lies above them.
const FRAME_POINTER: u64 = 5;
const CODE: u64 = 6;
const LEFT_WORDS: u64 = 7;

/// `struct pt_regs`: its size and where `cs` is.
const REGISTERS_BYTES: u64 = 168;
const REGISTERS_CS: u64 = 136;

/// `ORC_REG_*`.
const UNDEFINED: u64 = 0;
const PREVIOUS_SP: u64 = 1;
const BP: u64 = 4;
const SP: u64 = 5;

/// `ORC_TYPE_*` from kernel 6.4 on, and before, when an entry without a register for the stack and a bit had the meaning of [`END`].
const END: u64 = 1;
const CALL: u64 = 2;
const REGISTERS: u64 = 3;
const CALL_BEFORE: u64 = 0;
const REGISTERS_BEFORE: u64 = 1;

/// Bytes of `struct orc_entry`.
const ENTRY_BYTES: u64 = 6;

/// Halvings that search the largest table.
const MOST_HALVINGS: u32 = 32;

/// A rule that was looked up: `struct orc_entry`, and above it its type, as from 6.4 on.
#[repr(C)]
#[derive(Clone, Copy)]
struct KernelRule {
    code: u64,
    rule: u64,
}

/// Bits of `struct orc_entry`.
const SP_REGISTER: u64 = 32;
const BP_REGISTER: u64 = 36;
const TYPE: u64 = 40;
const TYPE_SHIFT: u64 = 48;
/// A rule of this address is not to be used.
const UNUSABLE: u64 = 0;

#[repr(C)]
struct KernelWalk {
    code: u64,
    sp: u64,
    bp: u64,
    hash: u64,
    frames: u32,
    /// 1: the stack was walked to its end.
    is_whole: u32,
    /// What is searched: the address, and the entries between which it is.
    wanted: u64,
    low: u64,
    high: u64,
    /// Where the words were read, and their bytes.
    start: u64,
    bytes: u64,
    words: [u64; WORDS],
    rules: [KernelRule; KERNEL_RULES],
}

/// One for each CPU; only programs of the scheduler use it, and they do not interrupt each other.
#[map]
static KERNEL_WALKS: Array<KernelWalk> = Array::with_max_entries(1, 0);

/// Takes the kernel stack of a thread that is on its way to this CPU and returns its hash; 0 when there is none. For
/// programs of the scheduler.
#[inline(always)]
pub(crate) fn kernel_stack_of(task: TypedPtr) -> u64 {
    if config!(orc.entries) == 0 {
        return stack::kernel_stack_of(task, CLASS_SCHEDULER);
    }
    let Some(record) = stack::scratch(CLASS_SCHEDULER) else {
        return 0;
    };
    let walked = walk(task.member(config!(offsets.task_kernel_sp)), record);
    if walked != 0 && config!(capture_every) == 0 {
        return walked;
    }
    let hash = stack::kernel_stack_into(task.as_ptr().cast_mut().cast(), record);
    if walked != 0 {
        count(counter::KERNEL_STACKS_COMPARED);
        if walked != hash {
            count(counter::KERNEL_STACKS_DIFFERENT);
        }
    }
    hash
}

/// What the loops are given: the helper takes pointers to the program's stack only.
struct OnStack {
    walk: *mut KernelWalk,
    record: *mut StackRecord,
}

/// The hash of the stack that a task has left with this stack pointer; 0 when the kernel's walker is to be asked.
#[inline(never)]
fn walk(sp: u64, record: *mut StackRecord) -> u64 {
    let Some(walk) = area_of_cpu(&KERNEL_WALKS, 1, 0) else {
        return 0;
    };
    // SAFETY: a map value of this CPU.
    let kept = unsafe { &mut *walk };
    kept.start = sp;
    kept.bytes = (top_of(sp) - sp).min(KERNEL_WALK_BYTES as u64);
    // SAFETY: there is room for the bytes; the helper checks the source.
    let result = unsafe {
        bpf_probe_read_kernel(
            (&raw mut kept.words).cast(),
            kept.bytes as u32,
            sp as *const _,
        )
    };
    if result != 0 || kept.bytes < LEFT_WORDS * WORD {
        return 0;
    }
    kept.bp = kept.words[FRAME_POINTER as usize];
    kept.code = kept.words[CODE as usize];
    kept.sp = sp + LEFT_WORDS * WORD;
    kept.hash = config!(hash_seed) ^ u64::from(SPACE_KERNEL);
    kept.frames = 0;
    kept.is_whole = 0;
    push(kept, record);
    let mut on_stack = OnStack { walk, record };
    // SAFETY: the callback gets the pointer to `on_stack`, which outlives the call.
    unsafe {
        bpf_loop(
            KERNEL_WALK_STEPS,
            next_frame as *mut c_void,
            (&raw mut on_stack).cast(),
            0,
        )
    };
    // SAFETY: a map value of this CPU.
    let (is_whole, frames, hash) = unsafe {
        (
            read_volatile(&raw const (*walk).is_whole),
            read_volatile(&raw const (*walk).frames),
            read_volatile(&raw const (*walk).hash),
        )
    };
    if is_whole == 0 || frames == 0 || frames > MAX_KERNEL_FRAMES as u32 {
        return 0;
    }
    let hash = hash_finish(hash);
    stack::intern_kernel(record, hash, frames);
    hash
}

/// Where the stack ends on which an address lies: stacks are aligned to their size.
#[inline(always)]
fn top_of(address: u64) -> u64 {
    (address | (KERNEL_STACK_BYTES - 1)) + 1
}

/// Adds the frame at which the walk is, unless it is one of the scheduler or of a lock.
#[inline(always)]
fn push(walk: &mut KernelWalk, record: *mut StackRecord) {
    let code = walk.code;
    let is_in = |start: u64, end: u64| code.wrapping_sub(start) < end.wrapping_sub(start);
    if is_in(config!(orc.scheduler_start), config!(orc.scheduler_end))
        || is_in(config!(orc.locks_start), config!(orc.locks_end))
    {
        return;
    }
    // SAFETY: masked to less than the length of the array.
    unsafe {
        let place = walk.frames as usize & MAX_KERNEL_FRAMES;
        (&raw mut (*record).frames)
            .cast::<u64>()
            .add(place)
            .write(code);
    }
    walk.hash = hash_step(walk.hash, code);
    walk.frames += 1;
}

extern "C" fn next_frame(_index: u64, context: *mut c_void) -> u64 {
    // SAFETY: the pointer that `walk` gave.
    let on_stack = unsafe { &*context.cast::<OnStack>() };
    // SAFETY: a map value of this CPU.
    let walk = unsafe { &mut *on_stack.walk };
    u64::from(advance(walk, on_stack.record).is_none())
}

/// Goes one frame up. `None`: it is over; whether the stack is whole is in the walk.
#[inline(always)]
fn advance(walk: &mut KernelWalk, record: *mut StackRecord) -> Option<()> {
    let rule = rule_of(walk);
    if rule == UNUSABLE {
        return None;
    }
    let kind = rule >> TYPE_SHIFT;
    if kind == END {
        walk.is_whole = 1;
        return None;
    }
    let base = match rule >> SP_REGISTER & 0xf {
        SP => walk.sp,
        BP => walk.bp,
        _ => return None,
    };
    let frame = base.wrapping_add(signed(rule));
    if kind == REGISTERS {
        // At the entry from user mode the walk ends; where the kernel was interrupted it would go on.
        if word(walk, frame.wrapping_add(REGISTERS_CS))? & 3 == 3 && is_last(walk, frame) {
            walk.is_whole = 1;
        }
        return None;
    }
    // The kernel's walker takes this for an error, too.
    if frame <= walk.sp || frame > top_of(walk.start) {
        return None;
    }
    let code = word(walk, frame.wrapping_sub(WORD))?;
    let moved = signed(rule >> 16);
    walk.bp = match rule >> BP_REGISTER & 0xf {
        UNDEFINED => walk.bp,
        PREVIOUS_SP => word(walk, frame.wrapping_add(moved))?,
        BP => word(walk, walk.bp.wrapping_add(moved))?,
        _ => return None,
    };
    walk.sp = frame;
    walk.code = code;
    push(walk, record);
    Some(())
}

/// Whether registers at this address are the last thing on the stack, but for padding (kernels with FRED).
#[inline(always)]
fn is_last(walk: &KernelWalk, registers: u64) -> bool {
    const PADDING: u64 = 16;
    let above = top_of(walk.start).wrapping_sub(registers.wrapping_add(REGISTERS_BYTES));
    above <= PADDING
}

/// The lowest 16 bits as a number with a sign.
#[inline(always)]
fn signed(bits: u64) -> u64 {
    (((bits << 48) as i64) >> 48) as u64
}

/// A word of the stack.
#[inline(always)]
fn word(walk: &KernelWalk, address: u64) -> Option<u64> {
    let offset = address.wrapping_sub(walk.start);
    if offset < walk.bytes && offset & (WORD - 1) == 0 {
        // SAFETY: masked to the length of the array.
        return Some(unsafe {
            read_volatile(
                (&raw const walk.words)
                    .cast::<u64>()
                    .add((offset / WORD) as usize & (WORDS - 1)),
            )
        });
    }
    KernelPtr(address).read(0)
}

/// The rule of the address at which the walk is.
#[inline(always)]
fn rule_of(walk: &mut KernelWalk) -> u64 {
    let code = walk.code;
    let place = ((code >> 2) ^ (code >> 11)) as usize & (KERNEL_RULES - 1);
    // SAFETY: masked to the length of the array.
    let known = unsafe { &mut *(&raw mut walk.rules).cast::<KernelRule>().add(place) };
    if known.code == code {
        return known.rule;
    }
    let rule = search(walk, code);
    known.code = code;
    known.rule = rule;
    rule
}

/// Searches the kernel's tables.
#[inline(never)]
fn search(walk: *mut KernelWalk, code: u64) -> u64 {
    // Of what lies elsewhere (modules, other programs) the tables are elsewhere. In place of the address of a traced
    // function's caller stands that of the tracer.
    if code.wrapping_sub(config!(orc.text_start))
        >= config!(orc.text_end).wrapping_sub(config!(orc.text_start))
        || code == config!(orc.tracers[0])
        || code == config!(orc.tracers[1])
    {
        return UNUSABLE;
    }
    // SAFETY: a map value of this CPU.
    let kept = unsafe { &mut *walk };
    // The call and not what follows it, which may be another function.
    kept.wanted = code - 1;
    kept.low = 0;
    kept.high = config!(orc.count);
    let mut on_stack = OnStack {
        walk,
        record: core::ptr::null_mut(),
    };
    // SAFETY: the callback gets the pointer to `on_stack`, which outlives the call.
    unsafe {
        bpf_loop(
            MOST_HALVINGS,
            halve as *mut c_void,
            (&raw mut on_stack).cast(),
            0,
        )
    };
    // SAFETY: a map value of this CPU.
    let found = unsafe { read_volatile(&raw const (*walk).low) };
    if found == 0 {
        return UNUSABLE;
    }
    let entry = KernelPtr(config!(orc.entries).wrapping_add((found - 1).wrapping_mul(ENTRY_BYTES)));
    // The last two bytes are of the next entry.
    let Some(entry) = entry.read::<u64>(0) else {
        return UNUSABLE;
    };
    let entry = entry & ((1 << TYPE_SHIFT) - 1);
    match kind_of(entry) {
        Some(kind) => entry | kind << TYPE_SHIFT,
        None => UNUSABLE,
    }
}

/// The type of an entry, if it is one that is understood.
#[inline(always)]
fn kind_of(entry: u64) -> Option<u64> {
    let end_bit = config!(offsets.orc_end_bit);
    if end_bit == 0 {
        let kind = entry >> TYPE & 7;
        return matches!(kind, END | CALL | REGISTERS).then_some(kind);
    }
    if entry >> SP_REGISTER & 0xf == UNDEFINED {
        return (entry >> (end_bit & 63) & 1 == 1).then_some(END);
    }
    match entry >> TYPE & 3 {
        CALL_BEFORE => Some(CALL),
        REGISTERS_BEFORE => Some(REGISTERS),
        _ => None,
    }
}

/// Halves the range in which the first entry behind the wanted address is; 1 when it is found.
extern "C" fn halve(_index: u64, context: *mut c_void) -> u64 {
    // SAFETY: the pointer that `search` gave.
    let on_stack = unsafe { &*context.cast::<OnStack>() };
    // SAFETY: a map value of this CPU.
    let walk = unsafe { &mut *on_stack.walk };
    let (low, high) = (walk.low, walk.high);
    if low >= high {
        return 1;
    }
    let middle = low + (high - low) / 2;
    // Each is the distance from itself.
    let place = config!(orc.addresses).wrapping_add(middle * size_of::<i32>() as u64);
    let Some(distance) = KernelPtr(place).read::<i32>(0) else {
        walk.low = 0;
        return 1;
    };
    if place.wrapping_add(i64::from(distance) as u64) <= walk.wanted {
        walk.low = middle + 1;
    } else {
        walk.high = middle;
    }
    0
}
