//! Follows the frames of HTTP/2 to count requests, whether their payload is captured or not ([`profiler_common::http2`]).
//!
//! Requests that are over are added to the table that those of HTTP/1 are in. Cost: a look-up for each piece; a short read of the
//! process's memory for each frame, and one for each three parts of a message; a look-up for each request. Bytes of a piece within
//! one frame's payload are not looked for.

use core::ffi::c_void;

use aya_ebpf::{
    bindings::{BPF_ANY, BPF_F_NO_PREALLOC},
    helpers::{
        bpf_probe_read_user,
        generated::{bpf_loop, bpf_probe_read_user as read_user},
    },
    macros::map,
    maps::{Array, HashMap},
};
use profiler_common::{
    http::{AT_SERVER, BROKEN, END, HTTP2 as SPEAKS, NONE, SWITCHED, UNSURE},
    http2::{Became, Frames, HEAD_BYTES, Http2, Next, Taken},
    network::Connection,
};

use super::{
    connection::{add_one, take_one},
    http,
    payload::{Part, Scratch},
    payload_bytes::PART_BYTES,
};

/// By the cookie of the connection.
#[map]
static HTTP2: HashMap<u64, Http2> = HashMap::with_max_entries(1, BPF_F_NO_PREALLOC);

/// A connection without streams: it is larger than the stack of a program.
#[map]
static EMPTY_HTTP2: Array<Http2> = Array::with_max_entries(1, 0);

/// Most steps through one piece. A frame takes one, and one more for each part of a message that it goes on in.
const MOST_STEPS: u32 = 4096;

#[inline(always)]
fn find(cookie: u64) -> Option<&'static mut Http2> {
    let found = HTTP2.get_ptr_mut(cookie)?;
    // SAFETY: a map value. Each direction is written by the threads that move it, one after the other. The place of a stream is
    // written by one side and then by the other; both may take the same free one within nanoseconds, where a request is noted
    // behind the beginning of its answer.
    Some(unsafe { &mut *found })
}

#[inline(always)]
fn is_answer(connection: &Connection, is_sent: bool) -> bool {
    is_sent == (connection.http & END == AT_SERVER)
}

/// Begins to follow a connection; `None`: there is no room.
#[inline(always)]
pub(super) fn begin(connection: &mut Connection) -> Option<&'static mut Http2> {
    if find(connection.cookie).is_some() {
        // Two threads have met its first pieces at once, and streams that the other one has noted are forgotten.
        connection.http |= UNSURE;
    }
    if let Some(empty) = EMPTY_HTTP2.get_ptr(0) {
        #[expect(
            clippy::needless_borrows_for_generic_args,
            reason = "a copy is larger than the stack"
        )]
        // SAFETY: a map value that is never written.
        let _made = HTTP2.insert(connection.cookie, unsafe { &*empty }, u64::from(BPF_ANY));
    }
    connection.http_took = 0;
    let http2 = find(connection.cookie);
    if http2.is_none() {
        connection.http |= UNSURE | SWITCHED;
    }
    http2
}

/// The connection has ended.
#[inline(always)]
pub(super) fn forget(connection: &Connection) {
    if connection.http & SPEAKS != 0 {
        // Fails only where there was no room for it.
        let _gone = HTTP2.remove(connection.cookie);
    }
}

/// What is to be given to [`follow`], where a frame may begin within what is moved now. Else it is done with the piece.
#[inline(always)]
pub(super) fn wants(
    connection: &mut Connection,
    part: &Part,
    is_sent: bool,
) -> Option<&'static mut Http2> {
    if connection.http & SWITCHED != 0 {
        return None;
    }
    let Some(http2) = find(connection.cookie) else {
        connection.http |= UNSURE | SWITCHED;
        return None;
    };
    let is_answer = is_answer(connection, is_sent);
    let frames = http2.frames(is_answer);
    if frames.have != 0 || u64::from(frames.rest) < part.bytes {
        return Some(http2);
    }
    frames.rest -= part.bytes as u32;
    note(connection, http2.passed(is_answer), part.at_ns);
    None
}

/// What is left of a piece, and where its bytes are. It lies in an area of the CPU, so that the verifier knows nothing of it and
/// walks each step once.
#[repr(C)]
pub(super) struct Walk {
    pub(super) left: u64,
    /// Of the part of a message that is under way.
    pub(super) address: u64,
    pub(super) in_part: u64,
    /// Parts behind it: where they are said to be, and their number.
    pub(super) parts: u64,
    pub(super) number: u64,
    /// Of them those that were read already, the next one first, with their number.
    pub(super) read: u64,
    ahead: [[u64; 2]; AHEAD],
    /// When it began to be moved, and when that was over.
    began_ns: u64,
    at_ns: u64,
}

/// Parts that are read at once: a copy for each would take longer.
const AHEAD: usize = 3;

impl Walk {
    #[inline(always)]
    fn pass(&mut self, bytes: u64) {
        self.left = self.left.wrapping_sub(bytes);
        self.in_part = self.in_part.wrapping_sub(bytes);
        self.address = self.address.wrapping_add(bytes);
    }

    /// False when there is no other part.
    #[inline(always)]
    fn next_part(&mut self) -> bool {
        if self.number == 0 {
            return false;
        }
        if self.read == 0 && !self.read_parts() {
            return false;
        }
        let [address, length] = self.ahead[0];
        self.ahead[0] = self.ahead[1];
        self.ahead[1] = self.ahead[2];
        self.read -= 1;
        self.number -= 1;
        self.address = address;
        self.in_part = length.min(self.left);
        true
    }

    /// Reads the next parts, as many as there are and there is room for. Straight to their place: the stack has no room for them.
    #[inline(always)]
    fn read_parts(&mut self) -> bool {
        let read = self.number.min(AHEAD as u64);
        let size = (read * PART_BYTES) as u32;
        let to = (&raw mut self.ahead).cast();
        // SAFETY: not more than there is room for, and the helper checks the source.
        if unsafe { read_user(to, size, self.parts as *const c_void) } != 0 {
            return false;
        }
        self.read = read;
        self.parts = self.parts.wrapping_add(u64::from(size));
        true
    }
}

/// What a step is given.
struct Following {
    connection: *mut Connection,
    http2: *mut Http2,
    scratch: *mut Scratch,
    is_answer: u64,
}

/// Takes in the frames of a piece, whose source was found.
#[inline(never)]
pub(super) fn follow(
    connection: &mut Connection,
    http2: &mut Http2,
    scratch: &mut Scratch,
    part: &Part,
    is_sent: u64,
) -> u64 {
    let is_answer = is_answer(connection, is_sent != 0);
    scratch.source.walk(&mut scratch.walk, part.bytes);
    let is_large = is_sent != 0 && part.since_ns != 0;
    scratch.walk.began_ns = if is_large { part.since_ns } else { part.at_ns };
    scratch.walk.at_ns = part.at_ns;
    let mut following = Following {
        connection,
        http2,
        scratch,
        is_answer: u64::from(is_answer),
    };
    // SAFETY: the callback gets the pointer to `following`, which outlives the call.
    unsafe {
        bpf_loop(
            MOST_STEPS,
            step as *mut c_void,
            (&raw mut following).cast(),
            0,
        )
    };
    if scratch.walk.left != 0 {
        // An answer to what was asked before: nothing that is counted is under way.
        let is_before = is_answer && connection.http_took == 0 && http2.answered.is_followed == 0;
        if http2.lose(is_answer) {
            forget(connection);
            connection.http = NONE;
            connection.http_took = 0;
        }
        if !is_before {
            connection.http |= UNSURE;
        }
    }
    0
}

/// 1 when there is nothing more to do; what is left of the piece could then not be followed.
extern "C" fn step(_index: u64, context: *mut c_void) -> u64 {
    // SAFETY: the pointer that `follow` gave, with pointers to map values.
    let following = unsafe { &*context.cast::<Following>() };
    let is_answer = following.is_answer != 0;
    // SAFETY: as above.
    let (connection, http2, walk) = unsafe {
        (
            &mut *following.connection,
            &mut *following.http2,
            &mut (*following.scratch).walk,
        )
    };
    if walk.left == 0 {
        return 1;
    }
    if walk.in_part == 0 && !walk.next_part() {
        return 1;
    }
    if walk.in_part == 0 {
        return 0;
    }
    let frames = http2.frames(is_answer);
    let (have, size) = match frames.next(walk.in_part) {
        Next::Payload(count) => {
            frames.rest -= count as u32;
            walk.pass(count);
            note(connection, http2.passed(is_answer), walk.at_ns);
            return 0;
        }
        Next::Head { have, size } => (have, size as u32),
        Next::None => return 1,
    };
    let Some(words) = head_words(frames, have, size, walk.address) else {
        return 1;
    };
    match http2.begin_frame(is_answer, words, have, size) {
        Taken::More => {
            keep(http2.frames(is_answer), have, words);
            walk.pass(u64::from(size));
        }
        Taken::Begun { head, header_bytes } => {
            walk.pass(u64::from(header_bytes));
            let began_ns = walk.began_ns;
            let became = http2.take(is_answer, head, words, began_ns);
            note(connection, became, walk.at_ns);
            // What of its payload is there, so that most frames take one step.
            let frames = http2.frames(is_answer);
            let there = u64::from(frames.rest).min(walk.in_part);
            frames.rest -= there as u32;
            walk.pass(there);
            note(connection, http2.passed(is_answer), walk.at_ns);
        }
        Taken::Garbage => return 1,
    }
    0
}

/// The first bytes of a frame, of which `have` were there and `size` are read now.
#[inline(always)]
fn head_words(frames: &mut Frames, have: u32, size: u32, address: u64) -> Option<[u64; 2]> {
    // For the verifier, which knows nothing of what was kept in memory.
    if have >= HEAD_BYTES || size > HEAD_BYTES {
        return None;
    }
    // Read onto the stack, which the kernel knows at once as a place that may be written (`CONFIG_HARDENED_USERCOPY`).
    if size == HEAD_BYTES && have == 0 {
        // SAFETY: the helper checks the source.
        return unsafe { bpf_probe_read_user(address as *const [u64; 2]) }.ok();
    }
    let mut words = [0_u64; 2];
    let from = address as *const c_void;
    if have == 0 {
        // SAFETY: not more than there is room for, and the helper checks the source.
        let failed = unsafe { read_user((&raw mut words).cast(), size, from) };
        return (failed == 0).then_some(words);
    }
    let first = (&raw mut frames.head).cast::<u8>();
    // SAFETY: `have` and `size` are each not more than half of the array.
    let failed = unsafe { read_user(first.add(have as usize).cast(), size, from) };
    // SAFETY: as where it is written.
    words = unsafe { (&raw const frames.head).cast::<[u64; 2]>().read() };
    (failed == 0).then_some(words)
}

/// Keeps the beginning of a frame that is not complete.
#[inline(always)]
fn keep(frames: &mut Frames, have: u32, words: [u64; 2]) {
    if have == 0 {
        // SAFETY: the beginning of an array that is longer and aligned for it.
        unsafe { (&raw mut frames.head).cast::<[u64; 2]>().write(words) };
    }
}

#[inline(always)]
fn note(connection: &mut Connection, became: Became, at_ns: u64) {
    match became {
        Became::Nothing => {}
        Became::Open => add_one(&mut connection.http_took),
        Became::Missed => connection.http |= UNSURE,
        Became::Over { began_ns, class } => {
            take_one(&mut connection.http_took);
            let time_ns = if began_ns == 0 || class == BROKEN {
                http::NO_TIME
            } else {
                at_ns.saturating_sub(began_ns)
            };
            let noted = http::count(connection.cookie, u64::from(class), time_ns) as u32;
            // Not written anew each time: another thread may set a bit meanwhile.
            if noted & !connection.http != 0 {
                connection.http |= noted;
            }
        }
    }
}
