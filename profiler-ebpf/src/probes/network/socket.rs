//! A socket as the hooks hand it over, and the members that are read of it.

use aya_ebpf::helpers::generated::{bpf_get_socket_cookie, bpf_jiffies64, bpf_skc_to_tcp_sock};
use profiler_common::network::{Connection, NetworkConfig};

use super::payload::payload;
use crate::kernel::{KernelPtr, TypedPtr};

/// `IPPROTO_TCP`, `IPPROTO_UDP` and `IPPROTO_MPTCP`.
const TCP: u16 = 6;
const UDP: u16 = 17;
const MPTCP: u16 = 262;
/// `AF_INET` and `AF_INET6`; others have protocols with the same numbers.
const IPV4: u16 = 2;
const IPV6: u16 = 10;

#[unsafe(no_mangle)]
pub(super) static NETWORK: NetworkConfig = NetworkConfig {
    network_namespace: 0,
    drop_arguments: 0,
    sock_family: 0,
    sock_num: 0,
    sock_dport: 0,
    sock_daddr: 0,
    sock_rcv_saddr: 0,
    sock_v6_daddr: 0,
    sock_v6_rcv_saddr: 0,
    sock_net: 0,
    sock_cookie: 0,
    sock_protocol: 0,
    sock_err: 0,
    net_inum: 0,
    tcp_srtt_us: 0,
    tcp_rtt_min: 0,
    tcp_bytes_sent: 0,
    tcp_bytes_retrans: 0,
    tcp_bytes_received: 0,
    tcp_total_retrans: 0,
    tcp_rcv_nxt: 0,
    tcp_copied_seq: 0,
    tcp_clock_cache: 0,
    skb_sk: 0,
    sock_receive_queue: 0,
    skb_data: 0,
    skb_len: 0,
    skb_data_len: 0,
    skb_head: 0,
    skb_transport_header: 0,
    drop_not_specified: 0,
    task_comm: 0,
    mptcp_first: 0,
};

/// Reads one field of the network programs' configuration; volatile for the reason given at
/// [`crate::config::config`].
macro_rules! network {
    ($field:ident) => {
        // SAFETY: the pointer is to a field of a static of this program.
        unsafe {
            core::ptr::read_volatile(&raw const $crate::probes::network::socket::NETWORK.$field)
        }
    };
}

pub(super) use network;

/// A socket that the kernel gave as an argument, so that it is alive while the program runs.
#[derive(Clone, Copy)]
pub(super) struct Socket(pub(super) KernelPtr);

impl Socket {
    #[inline(always)]
    pub(super) fn from_argument(socket: *const core::ffi::c_void) -> Self {
        Self(KernelPtr(socket as u64))
    }

    /// The socket's cookie, made now when it has none yet.
    #[inline(always)]
    pub(super) fn cookie(self) -> u64 {
        // SAFETY: the argument of the tracepoint, which the verifier checks to be a socket.
        unsafe { bpf_get_socket_cookie(self.0.0 as *mut _) }
    }

    /// The cookie that the socket has by now; 0 when it was never asked for.
    #[inline(always)]
    pub(super) fn cookie_so_far(self) -> u64 {
        self.typed().member(network!(sock_cookie))
    }

    /// The argument as the verifier knows it: its members are read without a helper.
    #[inline(always)]
    fn typed(self) -> TypedPtr {
        TypedPtr::new(self.0.0 as *const core::ffi::c_void)
    }

    /// The socket's TCP part, whose members are read without a helper; `None` when it is not a full
    /// TCP socket.
    #[inline(always)]
    pub(super) fn tcp(self) -> Option<TcpSocket> {
        // SAFETY: the argument of the tracepoint, which the verifier checks to be a socket.
        let tcp = unsafe { bpf_skc_to_tcp_sock(self.0.0 as *mut _) };
        if tcp.is_null() {
            None
        } else {
            Some(TcpSocket(TypedPtr::new(tcp)))
        }
    }

    #[inline(always)]
    pub(super) fn family(self) -> u16 {
        self.0.read(network!(sock_family)).unwrap_or(0)
    }

    /// The same of an argument, without a helper.
    #[inline(always)]
    pub(super) fn family_of_argument(self) -> u16 {
        self.typed().member(network!(sock_family))
    }

    #[inline(always)]
    pub(super) fn is_tcp(self) -> bool {
        let family = self.family();
        let protocol: u16 = self.0.read(network!(sock_protocol)).unwrap_or(0);
        (family == IPV4 || family == IPV6) && protocol == TCP
    }

    /// The same of an argument, without a helper.
    #[inline(always)]
    pub(super) fn is_tcp_argument(self) -> bool {
        self.is_argument_of(TCP)
    }

    /// The first TCP socket of an argument that is an MPTCP socket. It is a connection as others are, and what a
    /// process moves over the MPTCP socket is counted there. `None`: it is not an MPTCP socket, or has lost
    /// its first connection.
    #[inline(always)]
    pub(super) fn first_of_mptcp(self) -> Option<Self> {
        if network!(mptcp_first) == 0
            || self.typed().member::<u16>(network!(sock_protocol)) != MPTCP
        {
            return None;
        }
        let family = self.family_of_argument();
        if family != IPV4 && family != IPV6 {
            return None;
        }
        self.0.follow(network!(mptcp_first)).map(Self)
    }

    /// The same of a socket that was found by its descriptor.
    #[inline(always)]
    pub(super) fn first_of_found_mptcp(self) -> Option<Self> {
        if network!(mptcp_first) == 0 || self.0.read::<u16>(network!(sock_protocol)) != Some(MPTCP)
        {
            return None;
        }
        let family = self.family();
        if family != IPV4 && family != IPV6 {
            return None;
        }
        self.0.follow(network!(mptcp_first)).map(Self)
    }

    /// Whether an argument is a UDP socket, without a helper.
    #[inline(always)]
    pub(super) fn is_udp_argument(self) -> bool {
        self.is_argument_of(UDP)
    }

    /// Whether an argument is a socket of the internet with this protocol.
    #[inline(always)]
    fn is_argument_of(self, protocol: u16) -> bool {
        if self.typed().member::<u16>(network!(sock_protocol)) != protocol {
            return false;
        }
        let family = self.family_of_argument();
        family == IPV4 || family == IPV6
    }

    /// Local and remote port of an argument, without a helper; the remote one is 0 while it is not
    /// connected.
    #[inline(always)]
    pub(super) fn ports_of_argument(self) -> (u16, u16) {
        let local = self.typed().member(network!(sock_num));
        let remote: u16 = self.typed().member(network!(sock_dport));
        (local, u16::from_be(remote))
    }

    /// Whether a process has an argument as a file; without a helper.
    #[inline(always)]
    pub(super) fn has_file(self) -> bool {
        let socket: u64 = self.typed().member(payload!(sock_socket));
        if socket == 0 {
            return false;
        }
        let socket = TypedPtr::new(socket as *const core::ffi::c_void);
        socket.member::<u64>(payload!(socket_file)) != 0
    }

    /// Inode of the socket's network namespace; 0 when it cannot be read.
    #[inline(always)]
    pub(super) fn network_namespace(self) -> u32 {
        let Some(net) = self.0.follow(network!(sock_net)) else {
            return 0;
        };
        net.read(network!(net_inum)).unwrap_or(0)
    }

    #[inline(always)]
    pub(super) fn local_port(self) -> u16 {
        self.0.read(network!(sock_num)).unwrap_or(0)
    }

    /// Writes the addresses and ports into a connection.
    #[inline(always)]
    pub(super) fn describe(self, connection: &mut Connection) {
        let family = self.family();
        connection.family = family;
        connection.local_port = self.local_port();
        connection.remote_port = self.remote_port();
        self.addresses(family, &mut connection.local, &mut connection.remote);
    }

    #[inline(always)]
    pub(super) fn remote_port(self) -> u16 {
        u16::from_be(self.0.read(network!(sock_dport)).unwrap_or(0))
    }

    /// Writes the addresses of both ends.
    #[inline(always)]
    pub(super) fn addresses(self, family: u16, local: &mut [u8; 16], remote: &mut [u8; 16]) {
        if family == IPV6 {
            *local = self.0.read(network!(sock_v6_rcv_saddr)).unwrap_or([0; 16]);
            *remote = self.0.read(network!(sock_v6_daddr)).unwrap_or([0; 16]);
        } else {
            let own: [u8; 4] = self.0.read(network!(sock_rcv_saddr)).unwrap_or([0; 4]);
            let other: [u8; 4] = self.0.read(network!(sock_daddr)).unwrap_or([0; 4]);
            local[..4].copy_from_slice(&own);
            remote[..4].copy_from_slice(&other);
        }
    }

    /// Payload bytes that were sent for the first time, by the socket's own count.
    #[inline(always)]
    pub(super) fn bytes_sent(self) -> u64 {
        let all: u64 = self.0.read(network!(tcp_bytes_sent)).unwrap_or(0);
        let again: u64 = self.0.read(network!(tcp_bytes_retrans)).unwrap_or(0);
        all.wrapping_sub(again)
    }

    #[inline(always)]
    pub(super) fn bytes_received(self) -> u64 {
        self.0.read(network!(tcp_bytes_received)).unwrap_or(0)
    }

    /// Segments that were sent again.
    #[inline(always)]
    pub(super) fn retransmits(self) -> u32 {
        self.0.read(network!(tcp_total_retrans)).unwrap_or(0)
    }

    /// The round-trip times of a socket that the verifier does not know as one.
    #[inline(always)]
    pub(super) fn round_trip(self) -> RoundTrip {
        RoundTrip::of(
            self.0.read(network!(tcp_srtt_us)).unwrap_or(0),
            self.0.read(network!(tcp_rtt_min)).unwrap_or(0),
        )
    }

    /// The same of the received stream.
    #[inline(always)]
    pub(super) fn stream(self) -> Stream {
        Stream {
            next: self.next_expected(),
            copied: self.0.read(network!(tcp_copied_seq)).unwrap_or(0),
        }
    }

    /// The sequence number that continues the received stream.
    #[inline(always)]
    pub(super) fn next_expected(self) -> u32 {
        self.0.read(network!(tcp_rcv_nxt)).unwrap_or(0)
    }

    #[inline(always)]
    pub(super) fn error(self) -> u32 {
        self.0.read(network!(sock_err)).unwrap_or(0)
    }
}

/// How far a stream has been received and read, in sequence numbers.
#[derive(Clone, Copy, Default)]
pub(super) struct Stream {
    /// Behind what has been received in order.
    pub(super) next: u32,
    /// Behind what has been read.
    pub(super) copied: u32,
}

/// Round-trip times of a socket in microseconds; 0 before the first measurement.
#[derive(Clone, Copy, Default)]
pub(super) struct RoundTrip {
    /// Smoothed by the kernel. Acknowledgements that the peer delays are in it.
    pub(super) smoothed_us: u32,
    /// The smallest of late (`tcp_min_rtt`).
    pub(super) min_us: u32,
}

impl RoundTrip {
    #[inline(always)]
    fn of(eighths: u32, min_us: u32) -> Self {
        Self {
            smoothed_us: eighths >> 3,
            // The kernel's value before the first measurement is the largest there is.
            min_us: if min_us == u32::MAX { 0 } else { min_us },
        }
    }
}

/// `struct tcp_sock`, of a socket that the kernel gave as an argument.
#[derive(Clone, Copy)]
pub(super) struct TcpSocket(TypedPtr);

impl TcpSocket {
    #[inline(always)]
    pub(super) fn round_trip(self) -> RoundTrip {
        RoundTrip::of(
            self.0.member(network!(tcp_srtt_us)),
            self.0.member(network!(tcp_rtt_min)),
        )
    }

    #[inline(always)]
    pub(super) fn stream(self) -> Stream {
        Stream {
            next: self.0.member(network!(tcp_rcv_nxt)),
            copied: self.0.member(network!(tcp_copied_seq)),
        }
    }

    /// Kernel's ticks for which data waited to be sent or to be acknowledged, since the connection began (`tcp_chrono_start` in
    /// net/ipv4/tcp_output.c). For programs that capture payload.
    #[inline(always)]
    pub(super) fn busy_ticks(self) -> u32 {
        let at = payload!(tcp_chrono_stat);
        let [first, second, third] = [at, at + 4, at + 8].map(|at| self.0.member::<u32>(at));
        let over = first.wrapping_add(second).wrapping_add(third);
        if u32::from(self.0.member::<u8>(payload!(tcp_chrono_type))) & payload!(chrono_mask) == 0 {
            return over;
        }
        let since: u32 = self.0.member(payload!(tcp_chrono_start));
        // SAFETY: a helper without arguments.
        let now = unsafe { bpf_jiffies64() } as u32;
        over.wrapping_add(now.wrapping_sub(since))
    }

    /// When the packet that is being received was looked at, on the clock of `bpf_ktime_get_ns`.
    /// TCP reads the clock for each packet anyway, which is dearer than all else at this hook.
    #[inline(always)]
    pub(super) fn packet_ns(self) -> u64 {
        self.0.member(network!(tcp_clock_cache))
    }
}

/// The cookie of anything that begins as a socket does, also of what stands for one while it is
/// being made or after it has closed; 0 when it has none.
#[inline(always)]
pub(super) fn known_cookie(socket: KernelPtr) -> u64 {
    socket.read(network!(sock_cookie)).unwrap_or(0)
}
