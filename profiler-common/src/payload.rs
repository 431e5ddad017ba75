//! Payload of connections: what one read or write moved, of which the beginning leaves the kernel.

use crate::{
    header::RecordHeader,
    network::{DIRECTION_CLIENT, DIRECTION_SERVER},
};

/// [`PieceHead::flags`]: the process sent it, else it received it.
pub const PIECE_SENT: u32 = 1;
/// The bytes were given to, or taken from, a TLS library.
pub const PIECE_TLS: u32 = 2;
/// The piece of the same kind before it was captured too: nothing lies between them that was left out by [`Sampling`].
pub const PIECE_FOLLOWS: u32 = 4;

/// [`crate::network::Connection::capture_bytes`]: as many bytes as the task captures of each piece.
pub const CAPTURE_DEFAULT: u32 = 0;
/// No pieces of this connection.
pub const CAPTURE_STOP: u32 = CAPTURE_BEFORE - 1;
/// Beside the number, set by the kernel side: something was moved before anything was captured.
pub const CAPTURE_BEFORE: u32 = 1 << 27;
/// The same: the last piece was captured, it went to the server, and the last plaintext was captured.
pub const CAPTURE_CAPTURED: u32 = 1 << 28;
pub const CAPTURE_TO_SERVER: u32 = 1 << 29;
pub const CAPTURE_PLAINTEXT: u32 = 1 << 30;
/// Beside the number: the connection takes no turns ([`Sampling`]), because what it says builds on what it said before.
pub const CAPTURE_STEADY: u32 = 1 << 31;

/// Orders of the agent for a connection: above these bits is not how much is captured of it but which end it is.
pub const ORDER_DIRECTION_SHIFT: u32 = 32;

/// Bytes of a piece that can leave the kernel: with its head 16 KiB.
pub const MAX_PIECE_BYTES: usize = (16 << 10) - size_of::<PieceHead>();

/// Where a piece is put together. A read begins below [`MAX_PIECE_BYTES`] and is not longer, so that
/// the verifier has nothing else to prove. The kernel has no values beyond 32 KiB in some maps.
pub const SCRATCH_BYTES: usize = size_of::<PieceHead>() + 2 * MAX_PIECE_BYTES;

/// Scratch areas of each CPU, one for each program that fills one, so that none is met half filled.
pub const SCRATCH_SENT: u32 = 0;
pub const SCRATCH_RECEIVED: u32 = 1;
/// Number of them.
pub const SCRATCH_AREAS: u32 = 2;

/// Parts of a message (`struct iovec`) that are captured; what is behind them is only counted.
pub const MAX_PARTS: u32 = 64;

/// Bytes of the ring buffer for pieces (a power of two and a multiple of the page size).
pub const PAYLOAD_BUFFER_BYTES: u32 = 16 << 20;

/// Where a system call says what it moves. This one does not, or not in memory of the process.
pub const PLACE_NONE: u32 = 0;
/// At the second argument.
pub const PLACE_BUFFER: u32 = 1;
/// In parts: the second argument is an array of them, the third their number.
pub const PLACE_PARTS: u32 = 2;
/// In the parts of a message, the second argument; the third has flags.
pub const PLACE_MESSAGE: u32 = 3;
/// In the parts of several messages: the second argument is an array of them, the third their number,
/// the fourth has flags.
pub const PLACE_MESSAGES: u32 = 4;
/// As [`PLACE_BUFFER`], and the fifth argument is the address that it goes to.
pub const PLACE_BUFFER_TO: u32 = 5;
/// As [`PLACE_BUFFER`], and the fourth argument has flags.
pub const PLACE_BUFFER_FROM: u32 = 6;

/// Threads that may be in calls with several messages. Tables that forget what was not used for long (LRU) are
/// enlarged by the agent on machines of many CPUs.
pub const MESSAGE_CALL_ENTRIES: u32 = 4096;
/// Sockets of UDP that ask name servers, or answer.
pub const DATAGRAM_ENTRIES: u32 = 8192;
/// A UDP socket that was not used for this long is announced anew.
pub const DATAGRAM_REST_NS: u64 = 5_000_000_000;

/// Writes of this many bytes or more may wait in the kernel until the socket has room. A socket takes 16 KiB at once
/// (`tcp_wmem`).
pub const LARGE_WRITE_BYTES: u64 = 16 << 10;

/// How far a thread is in a call with several messages.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageCall {
    /// Address of the messages.
    pub messages: u64,
    /// Messages that were moved.
    pub moved: u64,
    /// Bytes of the last one.
    pub bytes: u64,
}

/// A socket of UDP that asks name servers, or answers.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramSocket {
    pub sent_bytes: u64,
    pub received_bytes: u64,
    /// When it was used last.
    pub used_ns: u64,
    /// Pieces that did not fit the ring buffer.
    pub lost: u32,
    /// Whether the last datagram was captured: 0 or 1.
    pub captured: u32,
}

/// Where in [`PieceHead::flags`] the bits of [`Sampling`] lie.
pub const PIECE_SAMPLING_SHIFT: u32 = 8;

/// The client's port of a connection, by one of its ends and its `DIRECTION_*`. REDIRECT and DNAT change
/// the server's port at one end and leave this one alone; SNAT may change it. Where the direction is not
/// known it is the larger one: clients are given ports above those that servers use.
pub const fn client_port(direction: u32, local_port: u16, remote_port: u16) -> u16 {
    match direction {
        DIRECTION_CLIENT => local_port,
        DIRECTION_SERVER => remote_port,
        _ if local_port > remote_port => local_port,
        _ => remote_port,
    }
}

/// Which connections are captured: one in N, a power of two. Either the same ones all the time, or all
/// of them in turn: a round has as many turns as that number, and each connection has one of them, another in each round.
/// The default: all, all the time. No bits: none yet, pieces are counted alone ([`PIECES_BEFORE`]).
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling(u32);

const HALVINGS: u32 = 0x1f;
const TURNS: u32 = 0x20;
const OPEN: u32 = 0x40;
/// Two to the power of this is the length of a turn in nanoseconds: 34 ms. Requests that begin in it are captured to their end.
const TURN_SHIFT: u32 = 25;
pub const TURN_NS: u64 = 1 << TURN_SHIFT;

impl Sampling {
    /// One connection of two to the power of `halvings`, which is at most 16.
    pub const fn new(halvings: u32, takes_turns: bool) -> Self {
        Self(halvings & HALVINGS | if takes_turns { TURNS } else { 0 } | OPEN)
    }

    pub const fn from_bits(bits: u32) -> Self {
        Self(bits & (HALVINGS | TURNS | OPEN))
    }

    /// Whether anything is captured.
    pub const fn is_open(self) -> bool {
        self.0 & OPEN != 0
    }

    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The same for a connection that takes no turns.
    #[must_use]
    pub const fn steady(self) -> Self {
        Self(self.0 & (HALVINGS | OPEN))
    }

    pub const fn takes_turns(self) -> bool {
        self.0 & TURNS != 0
    }

    /// Two to the power of this is of how many connections one is captured.
    pub const fn halvings(self) -> u32 {
        self.0 & HALVINGS
    }

    pub const fn one_of(self) -> u32 {
        1 << self.halvings()
    }

    /// Number of the round at a time of `CLOCK_MONOTONIC`; 0: no turns.
    pub const fn round(self, at_ns: u64) -> u64 {
        if self.takes_turns() {
            at_ns >> TURN_SHIFT >> self.halvings()
        } else {
            0
        }
    }

    /// Whether connections with this key are captured then.
    pub const fn has(self, key: u64, at_ns: u64) -> bool {
        // Fibonacci hashing: the upper bits depend on all of the number.
        let mut hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut turn = 0;
        if self.takes_turns() {
            // The end of `SplitMix64` (Steele, Lea and Flood 2014, Fast Splittable Pseudorandom Number Generators): a
            // connection's turn of one round shows nothing about its next, nor about those of others.
            hash ^= self.round(at_ns).wrapping_mul(0xd1b5_4a32_d192_ed03);
            hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            turn = at_ns >> TURN_SHIFT;
        }
        self.is_open() && (hash >> 40 ^ turn) & (self.one_of() - 1) as u64 == 0
    }
}

impl Default for Sampling {
    fn default() -> Self {
        Self::new(0, false)
    }
}

/// What one call moved over one connection. Record, with the captured bytes behind it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PieceHead {
    /// Its time is that of the end of the call.
    pub header: RecordHeader,
    pub cookie: u64,
    /// When the data had arrived that was read, or when a write of [`LARGE_WRITE_BYTES`] or more began; 0: not known.
    pub since_ns: u64,
    /// Bytes of this direction before this piece.
    pub offset: u64,
    /// Bytes that were moved.
    pub length: u32,
    /// The first of them, which follow.
    pub captured: u32,
    /// In the agent's PID namespace; 0: none there.
    pub pid: u32,
    pub tid: u32,
    /// `PIECE_*`, and above them by [`PIECE_SAMPLING_SHIFT`] the [`Sampling`] by which it was captured.
    pub flags: u32,
    /// Pieces of this connection so far that did not fit the ring buffer.
    pub lost: u32,
}

/// A connection, before its first piece. Record.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PieceConnection {
    pub header: RecordHeader,
    pub cookie: u64,
    /// Inode.
    pub network_namespace: u32,
    /// `DIRECTION_*` of [`crate::network`].
    pub direction: u32,
    /// `FLAG_*` of [`crate::network`].
    pub flags: u32,
    /// `AF_INET` or `AF_INET6`.
    pub family: u32,
    /// `IPPROTO_TCP` or `IPPROTO_UDP`.
    pub protocol: u32,
    pub pid: u32,
    pub local_port: u16,
    pub remote_port: u16,
    pub padding: u32,
    /// In network order; IPv4 in the first four bytes.
    pub local: [u8; 16],
    pub remote: [u8; 16],
}

/// The end of a connection of which pieces were handed out, behind all of them. Record. Its time is that of the end.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PieceEnd {
    pub header: RecordHeader,
    pub cookie: u64,
    /// Bytes that went over it.
    pub sent_bytes: u64,
    pub received_bytes: u64,
}

/// What is wanted of payload, and byte offsets from the kernel's BTF. Global of the network programs.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PayloadConfig {
    /// 1: payload is captured. The verifier takes the code away where it is 0.
    pub watched: u32,
    /// First bytes of each piece that are captured by default.
    pub capture_bytes: u32,
    pub sock_socket: u32,
    pub socket_file: u32,
    /// Register of the result of a system call, in `struct pt_regs`.
    pub registers_result: u32,
    /// Copy of the first argument there that stays when the call ends; not used on x86-64.
    pub registers_first: u32,
    /// The fifth argument.
    pub registers_fifth: u32,
    /// What TCP knows of how long it has had something to send, in ticks: of the present spell, and its kind by a mask in
    /// one byte; of those before.
    pub tcp_chrono_start: u32,
    pub tcp_chrono_stat: u32,
    pub tcp_chrono_type: u32,
    pub chrono_mask: u32,
    /// Length of a tick.
    pub tick_ns: u32,
}

/// Pieces that did not fit the ring buffer.
pub const PIECES_LOST: u32 = 0;
/// Pieces whose bytes could not be found: not moved by a call that is known, or their memory was not
/// readable.
pub const PIECES_WITHOUT_BYTES: u32 = 1;
/// Pieces that were handed out.
pub const PIECES_SENT: u32 = 2;
/// Pieces of TCP from before anything was captured.
pub const PIECES_BEFORE: u32 = 3;
/// Number of these counters.
pub const PAYLOAD_COUNTERS: u32 = 4;

const _: () = assert!(size_of::<PieceHead>() == 64);
const _: () = assert!(size_of::<PieceConnection>() == 16 + 8 + 24 + 8 + 32);
const _: () = assert!(size_of::<PieceEnd>() == 16 + 3 * 8);
const _: () = assert!(size_of::<PayloadConfig>() == 12 * 4);
const _: () = assert!(size_of::<DatagramSocket>() == 32);
const _: () = assert!(size_of::<MessageCall>() == 24);
const _: () = assert!(SCRATCH_BYTES <= 32 << 10);
const _: () = assert!(PAYLOAD_BUFFER_BYTES.is_power_of_two());

#[cfg(feature = "user")]
impl PayloadConfig {
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
    use crate::network::DIRECTION_UNKNOWN;

    #[test]
    fn both_ends_are_captured_alike_where_the_servers_port_is_translated() {
        // As the client has the server's port, and as the server has it.
        for (asked, serves) in [(80, 15_001), (80, 8080), (8080, 15_006), (8080, 8080)] {
            for halvings in 1..=4 {
                let sampling = Sampling::new(halvings, false);
                for client in 32_768..61_000 {
                    let at_client = client_port(DIRECTION_CLIENT, client, asked);
                    for direction in [DIRECTION_SERVER, DIRECTION_UNKNOWN] {
                        let at_server = client_port(direction, serves, client);
                        let ends = [at_client, at_server];
                        let [one, other] = ends.map(|port| sampling.has(u64::from(port), 0));
                        assert_eq!(
                            one, other,
                            "{client} asks {asked}, {serves} serves, {sampling:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn one_connection_in_so_many_is_captured() {
        // The kernel gives clients every second port of this range, one after the other.
        for first in [32_768, 32_769] {
            let ports = (first..60_999).step_by(2);
            let all = ports.clone().count();
            for halvings in 0..=4 {
                let sampling = Sampling::new(halvings, false);
                let captured = ports.clone().filter(|port| sampling.has(*port, 0));
                let stands_for = captured.count() * sampling.one_of() as usize;
                assert!(
                    stands_for.abs_diff(all) * 100 <= all,
                    "{stands_for} of {all}, {sampling:?}"
                );
            }
        }
    }

    /// The turn that a port has in a round of N turns.
    fn turn_of(sampling: Sampling, port: u64, round: u64) -> u64 {
        let turns = u64::from(sampling.one_of());
        let first_ns = round * turns * TURN_NS;
        let is_captured = |turn: &u64| sampling.has(port, first_ns + turn * TURN_NS);
        let mut taken = (0..turns).filter(is_captured);
        let (Some(turn), None) = (taken.next(), taken.next()) else {
            panic!("not one of {turns} turns");
        };
        assert_eq!(sampling.round(first_ns + turn * TURN_NS + 1), round);
        turn
    }

    #[test]
    fn each_connection_has_one_turn_of_a_round_and_another_in_the_next() {
        for halvings in 1..=4 {
            let sampling = Sampling::new(halvings, true);
            assert!(sampling.takes_turns() && !sampling.steady().takes_turns());
            let turns = usize::try_from(sampling.one_of()).unwrap();
            // How often two ports have the same turn, and one port has the same turn in two rounds.
            let (mut same_port, mut same_round) = (0, 0);
            let mut times = [0_usize; 16];
            let rounds = 1000;
            for round in 50_000..50_000 + rounds {
                let turn = turn_of(sampling, 40_000, round);
                times[usize::try_from(turn).unwrap()] += 1;
                same_port += usize::from(turn == turn_of(sampling, 40_000, round + 1));
                same_round += usize::from(turn == turn_of(sampling, 40_002, round));
            }
            let expected = usize::try_from(rounds).unwrap() / turns;
            let of_turns = times.get(..turns).unwrap();
            for times in of_turns.iter().chain([&same_port, &same_round]) {
                let is_even = times.abs_diff(expected) < 130;
                assert!(
                    is_even,
                    "{times} of {rounds}, {expected} expected, {halvings}"
                );
            }
        }
    }

    #[test]
    fn those_that_are_captured_of_more_are_captured_of_fewer() {
        for port in 32_768..61_000 {
            let has = |halvings| Sampling::new(halvings, false).has(port, 77);
            assert!(!has(3) || has(2), "{port}");
        }
    }

    #[test]
    fn a_sampling_is_its_bits() {
        for sampling in [Sampling::new(0, false), Sampling::new(16, true)] {
            assert_eq!(Sampling::from_bits(sampling.bits() | 0x80), sampling);
        }
        let none = Sampling::from_bits(0);
        assert!(!none.is_open() && !none.has(7, 7) && !none.steady().is_open());
        assert_eq!(Sampling::default().one_of(), 1);
        assert!(Sampling::default().has(7, 7));
    }
}
