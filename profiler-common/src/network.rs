//! Connections: what the kernel side keeps of each TCP socket that a task watches.
//!
//! A connection is known by its socket cookie, which the kernel never gives twice, while addresses
//! of sockets and file descriptors are used again within milliseconds.

#[cfg(feature = "user")]
use crate::http;
use crate::{header::RecordHeader, limits::COMM_BYTES};

/// Upper bounds of the buckets of every histogram, in microseconds; one more bucket holds what is
/// larger. A value belongs to the first bucket whose bound is not below it.
pub const BOUNDS_US: [u32; BOUNDS] = [
    0, 10, 50, 100, 500, 1_000, 1_200, 1_500, 1_700, 2_000, 2_500, 3_000, 5_000, 7_000, 10_000,
    13_000, 16_000, 20_000, 25_000, 30_000, 35_000, 40_000, 45_000, 50_000, 70_000, 100_000,
    150_000, 200_000, 300_000, 500_000, 1_000_000, 2_000_000, 3_000_000, 5_000_000,
];

/// Number of bounds.
pub const BOUNDS: usize = 34;

/// Number of buckets.
pub const BUCKETS: usize = BOUNDS + 1;

/// Steps of the search for a bucket; the table of bounds is filled up to a power of two.
pub const SEARCH_TABLE: usize = 64;

/// The bounds, and behind them values that nothing exceeds.
pub const fn search_table() -> [u32; SEARCH_TABLE] {
    scaled_table(1)
}

/// The same in units of eight nanoseconds, which a shift makes where a division would be dear.
pub const fn search_table_8ns() -> [u32; SEARCH_TABLE] {
    scaled_table(125)
}

const fn scaled_table(units: u32) -> [u32; SEARCH_TABLE] {
    let mut table = [u32::MAX; SEARCH_TABLE];
    let mut index = 0;
    while index < BOUNDS {
        table[index] = BOUNDS_US[index] * units;
        index += 1;
    }
    table
}

/// [`Connection::direction`] before anything showed it.
pub const DIRECTION_UNKNOWN: u32 = 0;
/// The socket was connected by its process.
pub const DIRECTION_CLIENT: u32 = 1;
/// The socket came from a listening one.
pub const DIRECTION_SERVER: u32 = 2;

/// [`Connection::flags`]: every other field is filled in.
pub const FLAG_COMPLETE: u32 = 1;
/// The connection was there before it was seen to begin: its beginning was not measured, and totals
/// of the socket count from [`Connection::first_sent`] on.
pub const FLAG_JOINED: u32 = 2;
/// The socket is gone. Its record did not fit the ring buffer and waits here.
pub const FLAG_GONE: u32 = 4;
/// The attempt to connect failed.
pub const FLAG_CONNECT_FAILED: u32 = 8;
/// A record of a connection that goes on: its entry made room for others.
pub const FLAG_EVICTED: u32 = 16;

/// [`Connection::leaving`]: the entry stays.
pub const STAYS: u64 = 0;
/// It leaves unless it is used before the agent looks again.
pub const MARKED: u64 = 1;
/// It is being removed: programs that find it do not write to it.
pub const CLAIMED: u64 = 2;

/// What the eviction program does with an entry: marks it.
pub const EVICTION_MARK: u64 = 0;
/// Takes it out if it has not been used since.
pub const EVICTION_TAKE: u64 = 1;

/// [`Connection::announced`]: the connection was reported to the agent.
pub const ANNOUNCED: u16 = 1;
/// The same, and plaintext of it was counted since. When nothing is known of that any more, it is announced
/// again: offsets of plaintext begin anew.
pub const ANNOUNCED_TLS: u16 = 2;

/// More than one process has used the connection.
pub const FLAG_SHARED: u32 = 32;

/// `kfree_skb` is not known to this agent.
pub const DROP_UNKNOWN: u32 = 0;
/// `(skb, location)`, before 5.17.
pub const DROP_WITHOUT_REASON: u32 = 1;
/// `(skb, location, reason)`.
pub const DROP_WITH_REASON: u32 = 2;
/// `(skb, location, reason, rx_sk)`, since 6.11.
pub const DROP_WITH_SOCKET: u32 = 3;

/// Arrivals of data that are remembered until they are read; more than one when data arrives while a
/// read is on its way out of the kernel.
pub const ARRIVALS: usize = 4;

/// Counts of values by size, see [`BOUNDS_US`].
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Histogram {
    pub counts: [u64; BUCKETS],
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: [0; BUCKETS],
        }
    }
}

/// One TCP socket. Value of the kernel's table of connections, and a record when the socket is
/// gone. Times are `bpf_ktime_get_ns`; 0: not seen.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connection {
    // Three lines of the cache follow. The first is written when the connection begins and ends.
    /// Kind, size and time of the end; zero while the socket lives.
    pub header: RecordHeader,
    pub cookie: u64,
    /// When it was first seen.
    pub seen_ns: u64,
    /// When its process asked to connect.
    pub connecting_ns: u64,
    /// Time from then on until the answer.
    pub connect_ns: u64,
    pub established_ns: u64,
    /// `STAYS`, `MARKED` or `CLAIMED`.
    pub leaving: u64,

    // The second belongs to the CPU that takes packets in: no other CPU writes to it, so that it need
    // not wait for the line to come back.
    /// When data arrived at a time when all before it had been read, the latest few times.
    pub ready_ns: [u64; ARRIVALS],
    /// Sequence number of the first byte that arrived then.
    pub ready_sequence: [u32; ARRIVALS],
    /// Sequence number behind all that has arrived.
    pub ready_next: u32,
    /// Where the latest arrival is.
    pub ready_latest: u32,
    /// When the socket's state became closed.
    pub closed_ns: u64,

    // The third stays with the process.
    /// The kernel's own number of the process that used the connection last: tells without a
    /// search through PID namespaces whether [`Connection::pid`] is still right.
    pub user: u32,
    /// What of HTTP was said last, by the bits of [`crate::http`]. Only where payload is captured.
    pub http: u32,
    pub received_bytes: u64,
    pub receive_wait_sum_ns: u64,
    /// When a read left data behind; 0: the last one has taken all.
    pub left_ns: u64,
    pub sent_bytes: u64,
    /// Of the smoothed round-trip times in [`Connection::rtt`].
    pub rtt_sum_us: u64,
    pub srtt_min_us: u32,
    pub srtt_max_us: u32,
    /// Sequence number behind all that has been read.
    pub read_next: u32,
    /// The process that used the connection last; 0: not seen. In the agent's PID namespace.
    pub pid: u32,

    /// Reads that are not in [`Connection::receive_wait`].
    pub received_without_wait: u64,
    /// Writes that are not in [`Connection::rtt`].
    pub sent_without_rtt: u64,
    /// First bytes of each read and write that are captured, or `CAPTURE_*` of [`crate::payload`].
    pub capture_bytes: u32,
    /// Pieces that did not fit the ring buffer for payload.
    pub pieces_lost: u32,
    /// Bytes of reads and writes that were captured, or whose plaintext was.
    pub captured_bytes: u64,
    /// Since when the data was there that was read last; 0: not known. Only where payload is captured.
    pub taken_ns: u64,
    /// When the last request of HTTP/1 began.
    pub http_began_ns: u64,
    /// When this end said that it sends no more.
    pub closing_ns: u64,
    /// The socket's own totals when it was first seen, and last.
    pub first_sent: u64,
    pub first_received: u64,
    pub last_sent: u64,
    pub last_received: u64,

    /// Start of the process that is [`Connection::opened_by`], and of [`Connection::pid`], in
    /// nanoseconds of boot time: numbers of processes are used again.
    pub opened_start_ns: u64,
    pub used_start_ns: u64,

    /// Smoothed round-trip time (`tcp_sock.srtt_us`) at each write, microseconds.
    pub rtt: Histogram,
    pub receive_wait: Histogram,

    /// The smallest of the socket's minimum round-trip times (`tcp_sock.rtt_min`, of the last
    /// `net.ipv4.tcp_min_rtt_wlen` seconds) at its writes, microseconds; 0: none yet.
    pub min_rtt_us: u32,
    /// Kernel's ticks for which the socket had data to send, at the end of its last read or write. Only where payload is
    /// captured.
    pub busy_ticks: u32,

    /// Segments that were sent again, by the socket's own count when first seen, and last.
    pub first_retransmits: u32,
    pub last_retransmits: u32,
    pub drops: u32,
    pub resets_sent: u32,
    pub resets_received: u32,
    pub errors: u32,
    /// The last error (`errno`).
    pub last_error: u32,

    /// `DIRECTION_*`.
    pub direction: u32,
    /// `FLAG_*`.
    pub flags: u32,
    /// Inode of the network namespace.
    pub network_namespace: u32,
    /// `AF_INET` or `AF_INET6`.
    pub family: u16,
    /// Whether it was reported to the agent by a [`crate::payload::PieceConnection`]: 0 or `ANNOUNCED*`.
    pub announced: u16,
    /// The process that opened the connection; as [`Connection::pid`].
    pub opened_by: u32,
    pub local_port: u16,
    pub remote_port: u16,
    /// How long it took until the last part of its answer so far, in units of [`crate::http::TOOK_UNIT_NS`]; of HTTP/2 the requests
    /// that are under way.
    pub http_took: u32,
    /// In network order; IPv4 in the first four bytes.
    pub local: [u8; 16],
    pub remote: [u8; 16],
    /// Name of the thread that used the connection first as [`Connection::pid`].
    pub comm: [u8; COMM_BYTES],
}

/// Value of the kernel's table of listeners: the port goes when no socket of [`ListenerKey`] is left.
pub const LISTENER_OF_SOCKETS: u32 = 0;
/// It stays, as the cookie of the socket that listens is not known.
pub const LISTENER_STAYS: u32 = 1;

/// A port that some process listens on. Key of the kernel's table of listeners, value of that of their sockets.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ListenerKey {
    pub network_namespace: u32,
    pub port: u32,
}

/// Packets of one connection that the kernel dropped for one reason. Key of the table of drops.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DropKey {
    pub cookie: u64,
    /// `enum skb_drop_reason`; 0 where the kernel gives none.
    pub reason: u32,
    pub padding: u32,
}

/// Payload of an answer of a name server that is kept.
pub const ANSWER_BYTES: usize = 1024;

/// The beginning of an answer of a name server. Record.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    pub header: RecordHeader,
    /// Inode of the network namespace of the socket that asked.
    pub network_namespace: u32,
    /// Bytes of `payload` that are filled in.
    pub bytes: u32,
    pub payload: [u8; ANSWER_BYTES],
}

/// Byte offsets of socket members and other facts about the kernel, from its BTF; and what the task
/// is limited to. Global of the network programs.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkConfig {
    /// Inode of the only network namespace that is watched; 0: all.
    pub network_namespace: u32,
    /// `DROP_*`.
    pub drop_arguments: u32,
    pub sock_family: u32,
    pub sock_num: u32,
    pub sock_dport: u32,
    pub sock_daddr: u32,
    pub sock_rcv_saddr: u32,
    pub sock_v6_daddr: u32,
    pub sock_v6_rcv_saddr: u32,
    pub sock_net: u32,
    pub sock_cookie: u32,
    pub sock_protocol: u32,
    pub sock_err: u32,
    pub net_inum: u32,
    pub tcp_srtt_us: u32,
    /// The value of the first sample of `rtt_min`, which is its minimum.
    pub tcp_rtt_min: u32,
    pub tcp_bytes_sent: u32,
    pub tcp_bytes_retrans: u32,
    pub tcp_bytes_received: u32,
    pub tcp_total_retrans: u32,
    pub tcp_rcv_nxt: u32,
    pub tcp_copied_seq: u32,
    /// The time at which the socket's last packet was looked at.
    pub tcp_clock_cache: u32,
    pub skb_sk: u32,
    pub sock_receive_queue: u32,
    pub skb_data: u32,
    pub skb_len: u32,
    pub skb_data_len: u32,
    pub skb_head: u32,
    pub skb_transport_header: u32,
    /// The reason of a drop for which none is given; [`NO_SUCH_REASON`] on kernels without it.
    pub drop_not_specified: u32,
    pub task_comm: u32,
    /// Of `struct mptcp_sock`: its first TCP socket; 0 where the kernel has no MPTCP.
    pub mptcp_first: u32,
}

/// The number of no reason to drop a packet.
pub const NO_SUCH_REASON: u32 = u32::MAX;

/// Reads and writes of wanted connections that did not fit the table.
pub const LOST_EVENTS: u32 = 0;
/// Their bytes.
pub const LOST_BYTES: u32 = 1;
/// Drops that did not fit the table of reasons; they are in [`Connection::drops`].
pub const DROP_REASONS_LOST: u32 = 2;
/// Records of ended connections that did not fit the ring buffer and waited in the table.
pub const RECORDS_DELAYED: u32 = 3;
/// Listening ports that did not fit their table.
pub const LISTENERS_LOST: u32 = 4;
/// Answers of name servers that did not fit the ring buffer.
pub const ANSWERS_LOST: u32 = 5;
/// Beginnings of wanted connections that did not fit the table.
pub const REFUSED: u32 = 6;
/// Number of these counters.
pub const NETWORK_COUNTERS: u32 = 7;

/// Default entries of the table of connections.
pub const CONNECTION_ENTRIES: u32 = 65_536;
/// Entries of the table of listening ports.
pub const LISTENER_ENTRIES: u32 = 8192;
/// Entries of the table of drops.
pub const DROP_ENTRIES: u32 = 16_384;
/// Bytes of the ring buffer for ended connections (a power of two and a multiple of the page size).
pub const ENDED_BUFFER_BYTES: u32 = 8 << 20;
/// Bytes of the ring buffer for answers of name servers (likewise).
pub const ANSWERS_BUFFER_BYTES: u32 = 256 << 10;

const _: () = assert!(size_of::<Answer>() == 16 + 8 + ANSWER_BYTES);
const _: () = assert!(size_of::<Histogram>() == 8 * BUCKETS);
const _: () = assert!(size_of::<Connection>() == 3 * 64 + 13 * 8 + 2 * 280 + 14 * 4 + 4 + 4 + 48);
// With the head of its entry it fills 1 KiB: a longer one would take 2 KiB of the kernel's memory.
const _: () = assert!(size_of::<Connection>() <= 1024 - 56);
const _: () = assert!(size_of::<Connection>().is_multiple_of(8));
const _: () = assert!(core::mem::offset_of!(Connection, ready_ns) == 64);
const _: () = assert!(core::mem::offset_of!(Connection, user) == 128);
const _: () = assert!(size_of::<DropKey>() == 16);
const _: () = assert!(size_of::<ListenerKey>() == 8);
const _: () = assert!(size_of::<NetworkConfig>() == 33 * 4);
const _: () = assert!(BOUNDS < SEARCH_TABLE && SEARCH_TABLE.is_power_of_two());
const _: () = assert!(ENDED_BUFFER_BYTES.is_power_of_two());

/// The index of the bucket that a value, in the table's unit, belongs to.
///
/// Most values of a fast network are in the first few buckets. For the others the same steps are
/// done whatever the value is, so that the kernel's verifier walks one path.
#[expect(
    clippy::inline_always,
    reason = "a call costs more than the search, and the verifier would lose the bound of the result"
)]
#[inline(always)]
pub fn bucket(table: &[u32; SEARCH_TABLE], value: u32) -> usize {
    if value <= table[2] {
        return usize::from(value > table[0]) + usize::from(value > table[1]);
    }
    let mut found = 0;
    let mut step = SEARCH_TABLE / 2;
    while step > 0 {
        // The index stays below the table's size: each step is half of what is left.
        let probe = table[(found + step - 1) & (SEARCH_TABLE - 1)];
        found += step * usize::from(probe < value);
        step /= 2;
    }
    if found < BUCKETS { found } else { BUCKETS - 1 }
}

#[cfg(feature = "user")]
impl Histogram {
    /// Number of values.
    pub fn total(&self) -> u64 {
        self.counts
            .iter()
            .fold(0, |total, count| total.saturating_add(*count))
    }

    /// The counts of both.
    fn joined(mut self, later: &Self) -> Self {
        for (slot, more) in self.counts.iter_mut().zip(later.counts) {
            *slot = slot.saturating_add(more);
        }
        self
    }
}

#[cfg(feature = "user")]
impl Connection {
    /// Number of writes.
    pub fn sent_count(&self) -> u64 {
        self.rtt.total().saturating_add(self.sent_without_rtt)
    }

    /// Number of reads.
    pub fn received_count(&self) -> u64 {
        self.receive_wait
            .total()
            .saturating_add(self.received_without_wait)
    }

    /// What was counted until the connection left the table, with what was counted since it came back.
    #[must_use]
    pub fn joined(&self, later: &Self) -> Self {
        // 0 is no value.
        let latest = |earlier: u64, later: u64| if later == 0 { earlier } else { later };
        let least = |earlier: u32, later: u32| match (earlier, later) {
            (0, other) | (other, 0) => other,
            (one, other) => one.min(other),
        };
        let user = if later.pid == 0 { self } else { later };
        let is_other = later.pid != 0 && self.pid != 0 && later.pid != self.pid;
        let shared = if is_other { FLAG_SHARED } else { 0 };
        Self {
            header: later.header,
            leaving: later.leaving,
            user: later.user,
            http: self.http_with(later),
            http_began_ns: later.http_began_ns,
            http_took: later.http_took,
            ready_ns: later.ready_ns,
            ready_sequence: later.ready_sequence,
            ready_next: later.ready_next,
            ready_latest: later.ready_latest,
            left_ns: later.left_ns,
            read_next: later.read_next,
            closing_ns: latest(self.closing_ns, later.closing_ns),
            closed_ns: latest(self.closed_ns, later.closed_ns),
            sent_bytes: self.sent_bytes.saturating_add(later.sent_bytes),
            sent_without_rtt: self.sent_without_rtt.saturating_add(later.sent_without_rtt),
            received_bytes: self.received_bytes.saturating_add(later.received_bytes),
            received_without_wait: self
                .received_without_wait
                .saturating_add(later.received_without_wait),
            rtt_sum_us: self.rtt_sum_us.saturating_add(later.rtt_sum_us),
            receive_wait_sum_ns: self
                .receive_wait_sum_ns
                .saturating_add(later.receive_wait_sum_ns),
            srtt_min_us: least(self.srtt_min_us, later.srtt_min_us),
            srtt_max_us: self.srtt_max_us.max(later.srtt_max_us),
            min_rtt_us: least(self.min_rtt_us, later.min_rtt_us),
            rtt: self.rtt.joined(&later.rtt),
            receive_wait: self.receive_wait.joined(&later.receive_wait),
            last_sent: later.last_sent.max(self.last_sent),
            last_received: later.last_received.max(self.last_received),
            last_retransmits: later.last_retransmits.max(self.last_retransmits),
            drops: self.drops.saturating_add(later.drops),
            resets_sent: self.resets_sent.saturating_add(later.resets_sent),
            resets_received: self.resets_received.saturating_add(later.resets_received),
            errors: self.errors.saturating_add(later.errors),
            last_error: if later.last_error == 0 {
                self.last_error
            } else {
                later.last_error
            },
            pid: user.pid,
            used_start_ns: user.used_start_ns,
            comm: user.comm,
            direction: if self.direction == DIRECTION_UNKNOWN {
                later.direction
            } else {
                self.direction
            },
            flags: self.flags
                | later.flags & (FLAG_GONE | FLAG_CONNECT_FAILED | FLAG_SHARED)
                | shared,
            // Its beginning, its ends and where it is.
            ..*self
        }
    }

    /// [`Connection::http`] of both. A request that was under way is not counted by either.
    fn http_with(&self, later: &Self) -> u32 {
        let is_known = |http: u32| matches!(http & http::END, http::AT_CLIENT | http::AT_SERVER);
        let is_forgotten = is_known(self.http) && !is_known(later.http);
        // What is said after an upgrade is none of it; else something may have been missed.
        let is_open = if self.http & http::HTTP2 == 0 {
            self.http & http::ASKED != 0
        } else {
            self.http_took != 0
        };
        let is_lost = is_open || is_forgotten && later.http & http::END == http::NONE;
        let unsure = if is_lost && self.http & http::SWITCHED == 0 {
            http::UNSURE
        } else {
            0
        };
        let later = if is_forgotten {
            later.http & !http::END | self.http & (http::END | http::HTTP2)
        } else {
            later.http
        };
        later | self.http & (http::COUNTED | http::UNSURE | http::SWITCHED) | unsure
    }

    /// The bytes as they lie in the kernel's table.
    pub fn to_bytes(&self) -> [u8; size_of::<Self>()] {
        // SAFETY: repr(C) integers without padding (asserted above): every byte is initialised.
        unsafe { core::mem::transmute(*self) }
    }
}

#[cfg(feature = "user")]
impl NetworkConfig {
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
    fn eight_nanoseconds_are_the_unit_of_the_other_table() {
        let table = search_table_8ns();
        for (bound_us, index) in BOUNDS_US.into_iter().zip(0..) {
            assert_eq!(bucket(&table, bound_us * 125), index);
            assert_eq!(bucket(&table, bound_us * 125 + 1), index + 1);
        }
        assert_eq!(bucket(&table, u32::MAX), BUCKETS - 1);
    }

    #[test]
    fn a_value_belongs_to_the_first_bound_that_is_not_below_it() {
        let table = search_table();
        for value in (0..200_000).chain([4_999_999, 5_000_000, 5_000_001, u32::MAX]) {
            let expected = BOUNDS_US.iter().filter(|bound| **bound < value).count();
            assert_eq!(bucket(&table, value), expected, "{value}");
        }
    }
}
