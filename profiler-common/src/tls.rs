//! Plaintext of TLS libraries: what probes in their functions know of a call, and what connections
//! their sessions belong to.

use crate::payload::{MAX_PIECE_BYTES, PieceHead};

/// What the programs need to know. Global of the network programs.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TlsConfig {
    /// 1: plaintext is captured. The verifier takes the code away where it is 0.
    pub watched: u32,
    /// First bytes of each call that are captured.
    pub capture_bytes: u32,
}

/// Words of `TLS_STATE`. 1: calls of Go programs are among those that are watched.
pub const STATE_GOROUTINES: u32 = 0;
/// 1: there are probes where libraries hand out ciphertext.
pub const STATE_CIPHERTEXT: u32 = 1;
/// 1: nothing is captured, while probes are put in and taken out one by one.
pub const STATE_PAUSED: u32 = 2;
/// Number of these words.
pub const STATE_WORDS: u32 = 3;

/// Words of a value of `TLS_PROCESSES`, by pid in the agent's namespace: how often probes were attached
/// to the process. What was moved in between is not known.
pub const PROCESS_EPOCH: usize = 0;
/// Since when they have been there, on the clock of the kernel.
pub const PROCESS_SINCE: usize = 1;
/// Calls that were bound by a socket's event inside of them, while there is [`STATE_CIPHERTEXT`].
pub const PROCESS_NESTED: usize = 2;
/// Sockets that sent ciphertext which a call had handed out.
pub const PROCESS_MATCHED: usize = 3;
/// Calls that were not bound.
pub const PROCESS_UNBOUND: usize = 4;
/// Distances inside of connections of rustls, which see `tls_rustls`; 0: none.
pub const PROCESS_DISTANCE: usize = 5;
/// How many: its clients and its servers differ.
pub const PROCESS_DISTANCES: usize = 2;
/// Number of these words.
pub const PROCESS_WORDS: usize = PROCESS_DISTANCE + PROCESS_DISTANCES;
/// Processes that have probes.
pub const TLS_PROCESS_ENTRIES: u32 = 1024;

/// Threads that are in a call, or were in one last; the oldest go first.
pub const TLS_CALL_ENTRIES: u32 = 16_384;
/// Sessions of libraries whose connection is known; the oldest go first.
pub const TLS_SESSION_ENTRIES: u32 = 32_768;
/// Beginnings of ciphertext that was handed out and not sent yet; the oldest go first.
pub const TLS_CIPHERTEXT_ENTRIES: u32 = 8192;
/// Connections of which plaintext was captured; the oldest go first.
pub const TLS_CONNECTION_ENTRIES: u32 = 32_768;

/// What a probe learns from its cookie, [`SiteCookie::kind`]: the call reads, else it writes.
pub const SITE_READS: u8 = 1;
/// The length is an `int`, and the result.
pub const SITE_INT: u8 = 2;
/// The result is one when it worked; how much was moved is at an address that is an argument.
pub const SITE_MOVED: u8 = 4;
/// A call is known by its goroutine, not by its thread.
pub const SITE_GOROUTINE: u8 = 8;

/// The call is a handshake: nothing is moved for the process, but the socket is used.
pub const SITE_HANDSHAKE: u8 = 16;
/// A method of rustls; with [`SITE_HANDSHAKE`] the one that takes ciphertext from the socket.
pub const SITE_RUSTLS: u8 = 32;
/// With [`SITE_RUSTLS`]: it makes plaintext of what was taken; with [`SITE_HANDSHAKE`] as well: it gives
/// ciphertext to the socket.
pub const SITE_PROCESSES: u8 = 64;
/// The instruction is one that the kernel cannot carry out itself.
pub const SITE_STEPPED: u8 = 128;

/// [`SiteCookie`] places: a word of the stack, in the lower bits; else a word of `struct pt_regs`.
pub const PLACE_STACK: u8 = 0x80;
/// [`SiteCookie::frame_words`]: not known.
pub const FRAME_UNKNOWN: u16 = u16::MAX;

/// What a probe knows of its place, in the 64 bits that the kernel hands to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiteCookie {
    /// `SITE_*`.
    pub kind: u8,
    /// Where the session is, or the result.
    pub first: u8,
    pub buffer: u8,
    pub length: u8,
    /// Where the address for the moved length is, with [`SITE_MOVED`].
    pub moved: u8,
    /// Words from the stack pointer to the return address.
    pub frame_words: u16,
}

impl SiteCookie {
    /// As the kernel keeps it beside a probe.
    #[inline]
    pub const fn to_bits(self) -> u64 {
        let [low, high] = self.frame_words.to_le_bytes();
        u64::from_le_bytes([
            self.kind,
            self.first,
            self.buffer,
            self.length,
            self.moved,
            low,
            high,
            0,
        ])
    }

    #[inline]
    pub const fn from_bits(bits: u64) -> Self {
        let [kind, first, buffer, length, moved, low, high, _] = bits.to_le_bytes();
        Self {
            kind,
            first,
            buffer,
            length,
            moved,
            frame_words: u16::from_le_bytes([low, high]),
        }
    }
}

/// The thread or goroutine in a call.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TlsCaller {
    /// The kernel's numbers; no thread where it is a goroutine.
    pub process: u32,
    pub thread: u32,
    pub goroutine: u64,
}

/// In [`TlsCall::kind`]: records of a handshake were sent inside of the call. A write that only began or went
/// on with the handshake has written nothing yet, and is called again.
pub const CALL_GREETS: u32 = 1 << 8;
/// In [`TlsCall::kind`]: records of two connections were moved inside of the call, or of another one than the
/// session is bound to. Its plaintext belongs to neither.
pub const CALL_DOUBTED: u32 = 1 << 9;
/// In [`TlsCall::frame`]: the call is over, or no socket is used inside of it. Found on no stack.
pub const NO_FRAME: u64 = u64::MAX;

/// The latest call of a thread or goroutine.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TlsCall {
    pub session: u64,
    pub buffer: u64,
    pub length: u64,
    /// Address of the moved length, with [`SITE_MOVED`].
    pub moved: u64,
    /// Address of its return address, and what is there; 0: not known; or [`NO_FRAME`].
    pub frame: u64,
    pub return_address: u64,
    /// The connection that a socket event inside of the call belonged to; 0: there was none.
    pub cookie: u64,
    /// When the data had arrived that was read last inside of the call; 0: not known.
    pub ready_ns: u64,
    /// `SITE_*`, [`CALL_GREETS`] and [`CALL_DOUBTED`].
    pub kind: u32,
    /// 1: its plaintext was handed out, or has been before, or there will be none.
    pub done: u32,
    /// Most bytes that are read from the buffer.
    pub here: u64,
}

/// A session of a library, which is known by its address.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TlsSessionKey {
    pub session: u64,
    pub process: u64,
}

/// Words of the beginning of a record of TLS: the first holds what all records have alike. With the others
/// come 32 bytes that do not come again: a greeting's random number, or ciphertext.
pub const RECORD_WORDS: usize = 5;
/// [`RECORD_WORDS`] behind the first.
pub type RecordMark = [u64; RECORD_WORDS - 1];

/// What is known of a session.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TlsSession {
    /// Its connection.
    pub cookie: u64,
    /// Address behind what was written last, and its length.
    pub end: u64,
    pub length: u64,
    /// 1: the socket took no more before all of that was sent, so that it will be written again.
    pub blocked: u64,
    /// Length of a write inside of which nothing was sent, as before a handshake is over: it is written again
    /// with the same length, or was not seen. 0: none.
    pub unsent: u64,
    /// 1: a call has moved records of another connection since the last ones of its own. What is read without
    /// the socket belongs to nothing until then.
    pub doubted: u64,
}

/// Plaintext of a connection so far.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TlsConnection {
    pub sent: u64,
    pub received: u64,
    /// [`PROCESS_EPOCH`] at the last piece.
    pub epoch: u64,
}

/// Bytes that were written, of which no socket event was seen.
pub const TLS_UNBOUND_WRITTEN: u32 = 0;
/// Bytes that were read on a session whose connection is not known.
pub const TLS_UNBOUND_READ: u32 = 1;
/// Calls that were met, and results.
pub const TLS_CALLS_MET: u32 = 2;
pub const TLS_RESULTS_MET: u32 = 3;
/// Pieces of plaintext that were handed out.
pub const TLS_PIECES: u32 = 4;
/// Calls whose arguments or memory could not be read.
pub const TLS_UNREADABLE: u32 = 5;
/// Calls and results that were met at instructions which the kernel cannot carry out itself.
pub const TLS_STEPPED_MET: u32 = 6;
/// Number of these counters.
pub const TLS_COUNTERS: u32 = 7;

/// Bytes of a record with a piece of plaintext; the smallest that is large enough is taken.
pub const TLS_ROOM_SMALL: usize = 256;
pub const TLS_ROOM_MIDDLE: usize = 1024;
pub const TLS_ROOM_LARGE: usize = 4096;
pub const TLS_ROOM_LARGEST: usize = 16 << 10;

const _: () = assert!(size_of::<TlsConfig>() == 8);
const _: () = assert!(size_of::<TlsCaller>() == 16);
const _: () = assert!(size_of::<TlsCall>() == 80);
const _: () = assert!(size_of::<TlsSessionKey>() == 16);
const _: () = assert!(size_of::<TlsSession>() == 48);
const _: () = assert!(size_of::<TlsConnection>() == 24);
const _: () = assert!(TLS_ROOM_LARGEST == size_of::<PieceHead>() + MAX_PIECE_BYTES);

#[cfg(feature = "user")]
impl TlsConfig {
    /// The bytes of the global, as the loader writes them into `.rodata`.
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: repr(C) integers without padding (asserted above): every byte is initialised, and
        // the slice lives as long as `self`.
        unsafe { core::slice::from_raw_parts(core::ptr::from_ref(self).cast(), size_of::<Self>()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_comes_back_as_it_was() {
        let cookie = SiteCookie {
            kind: SITE_READS | SITE_MOVED | SITE_STEPPED,
            first: 14,
            buffer: PLACE_STACK | 0x7f,
            length: 12,
            moved: 11,
            frame_words: FRAME_UNKNOWN - 1,
        };
        assert_eq!(SiteCookie::from_bits(cookie.to_bits()), cookie);
    }
}
