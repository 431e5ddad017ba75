//! Walks that were made before: each with everything that it read.
//!
//! A walk is a function of the registers it begins with, of the words that it reads, and of the
//! tables. When all of them are what they were, it would give the same frames; so all of them are
//! compared, the words after reading them again in one piece. A thread that waits at one place again
//! and again costs one such comparison in place of a lookup in the tables for each frame.

use aya_ebpf::{
    helpers::generated::bpf_probe_read_user,
    macros::map,
    maps::{Array, PerCpuArray},
};
use profiler_common::{
    limits::{KNOWN_READS, KNOWN_SPAN_BYTES, KNOWN_WALKS, MAPPING_CHANGE_ENTRIES},
    unwind::state::Memory,
};

use super::{Walk, user_memory::UserMemory};
use crate::maps::rotation;

/// How often the agent has changed the mappings of the processes with these low bits of their pid.
#[map]
static MAPPING_CHANGES: Array<u32> = Array::with_max_entries(MAPPING_CHANGE_ENTRIES, 0);

/// Of each CPU, by a hash of where the walk begins; a later walk takes the place of an earlier one.
/// Only programs of the scheduler use them, and they do not interrupt each other.
#[map]
static KNOWN: PerCpuArray<KnownWalk> = PerCpuArray::with_max_entries(KNOWN_WALKS, 0);

/// One walk with what it depended on.
#[repr(C)]
pub(super) struct KnownWalk {
    pid: u32,
    generation: u32,
    pc: u64,
    sp: u64,
    fp: u64,
    /// The stack was sent in this one.
    rotation: u32,
    mapping_changes: u32,
    hash: u64,
    frames: u32,
    /// Words that were read; 0 when this is not a walk.
    words: u32,
    /// Not 0: a read was too far away, or not one of a word.
    elsewhere: u64,
    /// Bytes from `sp` on in which the words lie.
    span: u64,
    /// Number of the word, counted from `sp`.
    places: [u16; KNOWN_READS],
    values: [u64; KNOWN_READS],
}

/// The place where a walk that begins like this one is remembered.
#[inline(always)]
pub(super) fn place(walk: &Walk) -> Option<*mut KnownWalk> {
    let mixed = (walk.state.sp ^ walk.state.pc.rotate_left(20) ^ u64::from(walk.pid))
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    KNOWN.get_ptr_mut((mixed >> 32) as u32 & (KNOWN_WALKS - 1))
}

/// Whether the walk would be what is known: its hash and its number of frames.
#[inline(always)]
pub(super) fn find(walk: &mut Walk, known: *const KnownWalk) -> Option<(u64, u32)> {
    // SAFETY: a map value of this CPU.
    let known = unsafe { &*known };
    let same_start = known.words != 0
        && known.pc == walk.state.pc
        && known.sp == walk.state.sp
        && known.fp == walk.state.fp
        && known.pid == walk.pid
        && known.generation == walk.generation
        && known.rotation == rotation()
        && known.mapping_changes == mapping_changes(walk.pid);
    if same_start && same_words(walk, known) != 0 {
        return Some((known.hash, known.frames));
    }
    None
}

/// Reads the words again; 1 when all are what they were.
#[inline(never)]
fn same_words(walk: *mut Walk, known: *const KnownWalk) -> u64 {
    // SAFETY: map values of this CPU.
    let (walk, known) = unsafe { (&mut *walk, &*known) };
    let span = known.span.min(KNOWN_SPAN_BYTES);
    // The record is written by the walk that follows, if one does.
    let words = &raw mut walk.record.frames;
    // SAFETY: the destination has room for the span; the helper checks the source.
    let result =
        unsafe { bpf_probe_read_user(words.cast(), span as u32, walk.state.sp as *const _) };
    if result != 0 {
        return 0;
    }
    let mut difference = 0;
    for index in 0..KNOWN_READS {
        if index >= known.words as usize {
            break;
        }
        // SAFETY: the index is below the lengths of both arrays, and the place is masked to that of
        // the record.
        unsafe {
            let place = usize::from(*known.places.get_unchecked(index)) & (PLACES - 1);
            let value = *words.cast::<u64>().add(place);
            difference |= value ^ *known.values.get_unchecked(index);
        }
    }
    u64::from(difference == 0)
}

/// Words in the span.
const PLACES: usize = KNOWN_SPAN_BYTES as usize / size_of::<u64>();

/// Forgets what is known here, to remember the walk that begins.
#[inline(always)]
pub(super) fn begin(walk: &Walk, known: *mut KnownWalk) {
    // SAFETY: a map value of this CPU.
    let known = unsafe { &mut *known };
    known.words = 0;
    known.elsewhere = 0;
    known.span = 0;
    known.pc = walk.state.pc;
    known.sp = walk.state.sp;
    known.fp = walk.state.fp;
}

/// Remembers a walk that is complete and was sent.
#[inline(always)]
pub(super) fn remember(walk: &Walk, known: *mut KnownWalk, hash: u64) {
    // SAFETY: a map value of this CPU.
    let known = unsafe { &mut *known };
    if known.elsewhere != 0 || walk.state.registers_used != 0 || walk.words > KNOWN_READS as u32 {
        return;
    }
    known.pid = walk.pid;
    known.generation = walk.generation;
    known.rotation = rotation();
    known.mapping_changes = mapping_changes(walk.pid);
    known.hash = hash;
    known.frames = walk.walked;
    known.words = walk.words;
}

#[inline(always)]
fn mapping_changes(pid: u32) -> u32 {
    let place = pid & (MAPPING_CHANGE_ENTRIES - 1);
    MAPPING_CHANGES.get(place).copied().unwrap_or(0)
}

/// Memory of the process whose reads are written down.
pub(super) struct LoggedMemory {
    pub(super) walk: *mut Walk,
    pub(super) known: *mut KnownWalk,
}

impl Memory for LoggedMemory {
    #[inline(always)]
    fn word(&self, address: u64) -> Option<u64> {
        let value = UserMemory.word(address)?;
        // SAFETY: map values of this CPU; the step has the walk's state and nothing else of it.
        let (words, known) = unsafe { (&mut (*self.walk).words, &mut *self.known) };
        let offset = address.wrapping_sub(known.sp);
        known.elsewhere |= offset & !(KNOWN_SPAN_BYTES - size_of::<u64>() as u64);
        let index = *words as usize & (KNOWN_READS - 1);
        // SAFETY: masked to the length of the arrays.
        unsafe {
            *known.places.get_unchecked_mut(index) = (offset / 8) as u16;
            *known.values.get_unchecked_mut(index) = value;
        }
        *words += 1;
        known.span = known.span.max(offset.wrapping_add(8));
        Some(value)
    }

    #[inline(always)]
    fn byte(&self, address: u64) -> Option<u8> {
        // SAFETY: a map value of this CPU.
        unsafe { (*self.known).elsewhere = 1 };
        UserMemory.byte(address)
    }
}
