//! The bytes that the running system call has moved, read where its arguments say.
//!
//! `sock_send_length` and `sock_recv_length` run within the call of the thread that moves, when the
//! data has been copied: the memory that it names holds what was sent or received. That these are the
//! call's own bytes is checked: the thread is in a system call that is not over (on x86-64 the place
//! of the result holds `-ENOSYS` until then, `arch/x86/entry/entry_64.S`), it is none of a 32-bit
//! program, and the socket has a file, so that it is none of the kernel's own. What goes through
//! `io_uring`, `splice` or `sendfile` has no bytes here.

use core::ffi::c_void;

use aya_ebpf::{
    bindings::pt_regs,
    helpers::{
        bpf_get_current_pid_tgid, bpf_probe_read_user,
        generated::{
            bpf_get_current_task_btf, bpf_loop, bpf_probe_read_user as read_user, bpf_task_pt_regs,
        },
    },
    macros::map,
    maps::{Array, LruHashMap},
};
use profiler_common::{
    http::{FIRST_BYTES, First},
    network_calls::SYSTEM_CALLS,
    payload::{
        MAX_PARTS, MAX_PIECE_BYTES, MESSAGE_CALL_ENTRIES, MessageCall, PLACE_BUFFER_FROM,
        PLACE_BUFFER_TO, PLACE_MESSAGE, PLACE_MESSAGES, PLACE_NONE, PLACE_PARTS,
    },
};

use super::{
    descriptor::{calls, is_compat},
    http2::Walk,
    payload::{Scratch, payload},
    socket::Socket,
};
use crate::kernel::TypedPtr;

/// Where system calls say what they move, by number.
#[map]
static PAYLOAD_PLACES: Array<u32> = Array::with_max_entries(SYSTEM_CALLS, 0);

/// Threads in calls that move several messages.
#[map]
static MESSAGE_CALLS: LruHashMap<u64, MessageCall> =
    LruHashMap::with_max_entries(MESSAGE_CALL_ENTRIES, 0);

/// `MSG_TRUNC`.
const TRUNCATED: u64 = 0x20;
/// `struct user_msghdr` of 64-bit programs: where the array of parts is; behind it is their number.
const MESSAGE_PARTS: u64 = 16;
/// `struct mmsghdr` of 64-bit programs: its size, and where the length of the message is.
const MESSAGE_BYTES: u64 = 64;
const MESSAGE_LENGTH: u64 = 56;
/// `struct iovec` of 64-bit programs.
pub(super) const PART_BYTES: u64 = 16;

/// Where the running system call says what it moves. It lies in an area of the CPU and not on the stack,
/// so that the verifier knows nothing of it and walks what follows once, not once for each kind of call.
#[repr(C)]
pub(super) struct Source {
    /// `PLACE_*`, but several messages: the one that is moved was found. `PLACE_NONE`: the bytes cannot
    /// be found.
    place: u32,
    /// Its second argument, or the message.
    memory: u64,
    /// Its third argument.
    number: u64,
    /// Its fifth argument.
    name: u64,
}

impl Source {
    /// Address of where a datagram goes that is sent.
    #[inline(always)]
    pub(super) fn name(&self) -> Option<u64> {
        let name = match self.place {
            PLACE_BUFFER_TO => self.name,
            // SAFETY: the helper checks the address.
            PLACE_MESSAGE => unsafe { bpf_probe_read_user(self.memory as *const u64) }.ok()?,
            _ => 0,
        };
        if name == 0 { None } else { Some(name) }
    }

    /// The beginning of a walk over as many bytes; over none where they cannot be found.
    #[inline(always)]
    pub(super) fn walk(&self, walk: &mut Walk, bytes: u64) {
        let place = self.place;
        walk.left = bytes;
        walk.address = self.memory;
        walk.in_part = bytes;
        walk.parts = self.memory;
        walk.number = 0;
        walk.read = 0;
        if place == PLACE_MESSAGE {
            let message = self.memory.wrapping_add(MESSAGE_PARTS) as *const [u64; 2];
            walk.in_part = 0;
            // SAFETY: the helper checks the address.
            if let Ok([parts, number]) = unsafe { bpf_probe_read_user(message) } {
                walk.parts = parts;
                walk.number = number;
            }
        } else if place == PLACE_PARTS {
            walk.in_part = 0;
            walk.number = self.number;
        } else if place == PLACE_NONE {
            walk.in_part = 0;
        }
    }

    /// The first words, where they lie in one part.
    #[inline(always)]
    pub(super) fn first<const WORDS: usize>(&self) -> Option<[u64; WORDS]> {
        let mut address = self.memory;
        if self.place == PLACE_MESSAGE {
            let message = address.wrapping_add(MESSAGE_PARTS) as *const u64;
            // SAFETY: the helper checks the address.
            address = unsafe { bpf_probe_read_user(message) }.ok()?;
        }
        if self.place == PLACE_MESSAGE || self.place == PLACE_PARTS {
            // SAFETY: as above.
            let part = unsafe { bpf_probe_read_user(address as *const [u64; 2]) }.ok()?;
            if part[1] < WORDS as u64 * 8 {
                return None;
            }
            address = part[0];
        } else if self.place == PLACE_NONE {
            return None;
        }
        // SAFETY: as above.
        unsafe { bpf_probe_read_user(address as *const [u64; WORDS]) }.ok()
    }
}

/// The first bytes of a piece that was just put together; none where it has none.
#[inline(always)]
pub(super) fn first_of_piece(scratch: &Scratch) -> First {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, ..] = scratch.bytes;
    First {
        words: [
            u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
            u64::from_ne_bytes([i, j, k, l, m, n, o, p]),
        ],
        known: captured(scratch).min(FIRST_BYTES as u32),
    }
}

/// The first bytes of what was moved, where that many lie in the first part; else the first eight.
///
/// They are read onto the stack, which the kernel knows at once as a place that may be written (`CONFIG_HARDENED_USERCOPY`).
#[inline(always)]
pub(super) fn first_bytes(source: &Source, bytes: u64) -> Option<First> {
    let (place, mut address) = (source.place, source.memory);
    if place == PLACE_NONE {
        return None;
    }
    let mut length = bytes;
    if place == PLACE_MESSAGE {
        let message = address.wrapping_add(MESSAGE_PARTS) as *const u64;
        // SAFETY: the helper checks the address.
        address = unsafe { bpf_probe_read_user(message) }.ok()?;
    }
    if place == PLACE_MESSAGE || place == PLACE_PARTS {
        // SAFETY: as above.
        let part = unsafe { bpf_probe_read_user(address as *const [u64; 2]) }.ok()?;
        address = part[0];
        length = length.min(part[1]);
    }
    if length >= FIRST_BYTES as u64 {
        // SAFETY: as above.
        let words = unsafe { bpf_probe_read_user(address as *const [u64; 2]) }.ok()?;
        return Some(First {
            words,
            known: FIRST_BYTES as u32,
        });
    }
    if length < 8 {
        return None;
    }
    // SAFETY: as above.
    let word = unsafe { bpf_probe_read_user(address as *const u64) }.ok()?;
    Some(First {
        words: [word, 0],
        known: 8,
    })
}

/// Finds where the bytes are that the socket has just moved by `bytes`.
#[inline(never)]
pub(super) fn find_source(source: &mut Source, socket: Socket, bytes: u64) -> u64 {
    source.place = PLACE_NONE;
    // SAFETY: helpers that give the place of the running task's registers.
    let registers: *const pt_regs =
        unsafe { bpf_task_pt_regs(bpf_get_current_task_btf()) as *const pt_regs };
    let registers = TypedPtr::new(registers);
    if !is_in_call(registers) || !socket.has_file() || is_compat() {
        return 0;
    }
    let place = place_of(registers);
    let memory: u64 = registers.member(calls!(registers_arguments[1]));
    let number: u64 = registers.member(calls!(registers_arguments[2]));
    source.memory = memory;
    source.number = number;
    source.name = registers.member(payload!(registers_fifth));
    let flags = match place {
        PLACE_NONE => return 0,
        PLACE_MESSAGE => number,
        PLACE_MESSAGES | PLACE_BUFFER_FROM => registers.member(calls!(registers_arguments[3])),
        _ => 0,
    };
    // It says how long the data is, which was not copied.
    if flags & TRUNCATED != 0 {
        return 0;
    }
    if place == PLACE_MESSAGES {
        source.memory = message_of(memory, number, bytes);
        source.place = PLACE_MESSAGE;
    } else {
        source.place = place;
    }
    1
}

/// Which of several messages has just been moved, with this many bytes.
///
/// They are moved in their order, and the kernel writes behind each how long it was before it goes on
/// with the next (`net/socket.c`, `__sys_sendmmsg`, `do_recvmmsg`): the thread is still in the call that
/// it was in when these are the same messages, and the last one that was moved has its length. Else
/// this is the first one of another call.
#[inline(never)]
fn message_of(messages: u64, number: u64, bytes: u64) -> u64 {
    let thread = bpf_get_current_pid_tgid();
    let mut index = 0;
    if let Some(call) = MESSAGE_CALLS.get_ptr(thread) {
        // SAFETY: a map value that only this thread writes.
        let call = unsafe { *call };
        if call.messages == messages && call.moved != 0 && call.moved < number {
            let last = messages.wrapping_add((call.moved - 1) * MESSAGE_BYTES + MESSAGE_LENGTH);
            // SAFETY: the helper checks the address.
            let length = unsafe { bpf_probe_read_user(last as *const u32) };
            if length.map(u64::from) == Ok(call.bytes) {
                index = call.moved;
            }
        }
    }
    let call = MessageCall {
        messages,
        moved: index + 1,
        bytes,
    };
    // Fails only for want of memory: then the next message is taken for the first one, as that of
    // another call would be.
    let _kept = MESSAGE_CALLS.insert(thread, call, 0);
    messages.wrapping_add(index * MESSAGE_BYTES)
}

/// Copies the first `wanted` bytes; the number of those that were copied, which is in the head, too.
#[inline(always)]
pub(super) fn copy(scratch: &mut Scratch, wanted: u64) -> u64 {
    let place = scratch.source.place;
    let mut copying = Copying {
        scratch,
        // SAFETY: a field of the area.
        parts: unsafe { (&raw const scratch.source.memory).read_volatile() },
        // SAFETY: as above.
        number: unsafe { (&raw const scratch.source.number).read_volatile() },
        wanted,
    };
    if place == PLACE_MESSAGE {
        let message = copying.parts.wrapping_add(MESSAGE_PARTS) as *const [u64; 2];
        // SAFETY: the helper checks the address.
        let Ok([parts, number]) = (unsafe { bpf_probe_read_user(message) }) else {
            return 0;
        };
        copying.parts = parts;
        copying.number = number;
    }
    if place == PLACE_MESSAGE || place == PLACE_PARTS {
        copy_parts(&mut copying);
    } else if place != PLACE_NONE {
        append(scratch, copying.parts, wanted, wanted);
    }
    u64::from(captured(scratch))
}

/// What the callback of the loop over parts is given.
struct Copying {
    scratch: *mut Scratch,
    parts: u64,
    number: u64,
    wanted: u64,
}

/// Copies the beginning of the parts of a message. In a loop of the kernel, whose body is verified once.
#[inline(always)]
fn copy_parts(copying: &mut Copying) {
    // SAFETY: the callback gets the pointer to `copying`, which outlives the call.
    unsafe {
        bpf_loop(
            MAX_PARTS,
            copy_part as *mut c_void,
            (&raw mut *copying).cast(),
            0,
        )
    };
}

/// 1 when there is nothing more to do.
extern "C" fn copy_part(index: u64, context: *mut c_void) -> u64 {
    // SAFETY: the pointer that `copy_parts` gave.
    let copying = unsafe { &*context.cast::<Copying>() };
    let index = index & 0xff;
    if index >= copying.number {
        return 1;
    }
    let part = copying.parts.wrapping_add(index * PART_BYTES) as *const [u64; 2];
    // SAFETY: the helper checks the address.
    let Ok([address, length]) = (unsafe { bpf_probe_read_user(part) }) else {
        return 1;
    };
    // SAFETY: the area of this CPU.
    let scratch = unsafe { &mut *copying.scratch };
    u64::from(append(scratch, address, length, copying.wanted) == 0)
}

/// Whether the thread is in a system call that has no result yet.
#[cfg(bpf_target_arch = "x86_64")]
#[inline(always)]
fn is_in_call(registers: TypedPtr) -> bool {
    /// `-ENOSYS`.
    const NO_RESULT: u64 = -38_i64 as u64;
    registers.member::<u64>(payload!(registers_result)) == NO_RESULT
}

/// The same: the result takes the place of the first argument, of which there is a copy
/// (`arch/arm64/kernel/syscall.c`).
#[cfg(bpf_target_arch = "aarch64")]
#[inline(always)]
fn is_in_call(registers: TypedPtr) -> bool {
    registers.member::<u64>(payload!(registers_result))
        == registers.member::<u64>(payload!(registers_first))
}

#[inline(always)]
fn place_of(registers: TypedPtr) -> u32 {
    let number: u64 = registers.member(calls!(registers_number));
    match PAYLOAD_PLACES.get(number.min(u64::from(u32::MAX)) as u32) {
        Some(place) => *place,
        None => PLACE_NONE,
    }
}

/// Copies from one part until there are `wanted` bytes; 0 when there are, or when it failed.
#[inline(always)]
fn append(scratch: &mut Scratch, address: u64, length: u64, wanted: u64) -> u64 {
    let have = u64::from(captured(scratch));
    if have >= wanted {
        return 0;
    }
    let size = length.min(wanted - have);
    // For the verifier: what was kept in memory it knows nothing about.
    if have >= MAX_PIECE_BYTES as u64 || size > MAX_PIECE_BYTES as u64 {
        return 0;
    }
    // SAFETY: within the area, by its size.
    let to = unsafe { scratch.bytes.as_mut_ptr().add(have as usize) };
    // SAFETY: the area has room for this many bytes from there on, and the helper checks the source.
    if unsafe { read_user(to.cast(), size as u32, address as *const _) } != 0 {
        return 0;
    }
    // SAFETY: a field of the area, which only this program writes.
    unsafe { (&raw mut scratch.head.captured).write_volatile((have + size) as u32) };
    1
}

/// Bytes that were copied so far; at most [`MAX_PIECE_BYTES`]. Read anew each time, so that the
/// verifier walks the parts of a message as one path.
#[inline(always)]
pub(super) fn captured(scratch: &Scratch) -> u32 {
    // SAFETY: a field of the area.
    let captured = unsafe { (&raw const scratch.head.captured).read_volatile() };
    if captured > MAX_PIECE_BYTES as u32 {
        MAX_PIECE_BYTES as u32
    } else {
        captured
    }
}
