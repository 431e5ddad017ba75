//! One connection as one end saw it.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use profiler_common::{
    http::HttpCounts,
    network::{
        ANNOUNCED_TLS, BUCKETS, Connection, DIRECTION_CLIENT, DIRECTION_SERVER,
        FLAG_CONNECT_FAILED, FLAG_JOINED, FLAG_SHARED, Histogram, bucket, search_table,
    },
    network_calls::CallTimes,
    payload::CAPTURE_STOP,
    process::start_ticks,
};
use profiler_model::{ProcessKey, SideMetrics, SocketTotals, Transfer, Values};

use super::http_end::HttpEnd;

/// `AF_INET6`.
const IPV6: u32 = 10;

/// Which end of a connection a socket is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Client,
    Server,
}

/// A connection with what was measured of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    pub cookie: u64,
    /// Inode.
    pub network_namespace: u32,
    pub local: SocketAddr,
    pub remote: SocketAddr,
    /// `None`: its beginning was not seen.
    pub direction: Option<Direction>,
    /// The process that used it last; `None` when none was seen.
    pub process: Option<ProcessKey>,
    /// More than one process used it.
    pub shared: bool,
    pub comm: String,
    /// When it was first seen, on the kernel's clock.
    pub seen_ns: u64,
    /// Bytes that were captured for requests; `None`: what goes over it is not wanted.
    pub captured_bytes: Option<u64>,
    /// Requests of HTTP that the kernel counted; `None`: it speaks something else.
    pub http: Option<Box<HttpEnd>>,
    pub metrics: SideMetrics,
}

impl Flow {
    /// Decodes an entry of the kernel's table or a record; any bytes are accepted.
    pub fn decode(connection: &Connection) -> Self {
        let ended = connection.header.kind != 0;
        let family = u32::from(connection.family);
        Self {
            cookie: connection.cookie,
            network_namespace: connection.network_namespace,
            local: socket_address(family, connection.local, connection.local_port),
            remote: socket_address(family, connection.remote, connection.remote_port),
            direction: match connection.direction {
                DIRECTION_CLIENT => Some(Direction::Client),
                DIRECTION_SERVER => Some(Direction::Server),
                _ => None,
            },
            process: user_of(connection),
            shared: connection.flags & FLAG_SHARED != 0,
            comm: text(&connection.comm),
            seen_ns: connection.seen_ns,
            captured_bytes: is_wanted(connection).then_some(connection.captured_bytes),
            http: HttpEnd::of(connection).map(Box::new),
            metrics: metrics(connection, ended),
        }
    }

    /// Bytes that were written and read.
    pub fn bytes(&self) -> u64 {
        self.metrics.bytes()
    }

    /// Adds the requests that are over, of a connection of which there are [`HttpCounts`].
    pub fn add_requests(&mut self, counts: &HttpCounts) {
        if let Some(http) = &mut self.http {
            http.add(counts);
        }
    }

    /// Adds what was measured of its system calls.
    pub fn add_times(&mut self, times: &CallTimes) {
        let CallTimes {
            accept_wait_ns,
            read_sum_ns,
            write_sum_ns,
            read,
            write,
        } = times;
        self.metrics.read_time = values(read, *read_sum_ns);
        self.metrics.write_time = values(write, *write_sum_ns);
        if *accept_wait_ns != 0 {
            add_time(&mut self.metrics.accept, *accept_wait_ns);
        }
    }
}

/// Whether requests are looked for in it: in its bytes, or in the plaintext of a TLS library.
fn is_wanted(connection: &Connection) -> bool {
    connection.capture_bytes & CAPTURE_STOP != CAPTURE_STOP || connection.announced == ANNOUNCED_TLS
}

/// The process that used a connection last, or opened it.
pub fn user_of(connection: &Connection) -> Option<ProcessKey> {
    let used = (connection.pid, connection.used_start_ns);
    let opened = (connection.opened_by, connection.opened_start_ns);
    // An entry that is taken while another CPU writes its user may have the pid without the start time, which names no process.
    let is_known = |(pid, start_ns): &(u32, u64)| *pid != 0 && *start_ns != 0;
    let (pid, start_ns) = [used, opened].into_iter().find(is_known)?;
    Some(ProcessKey {
        pid,
        start_ticks: start_ticks(start_ns),
    })
}

/// An address as users know it: an IPv4 address that an IPv6 socket uses is one.
pub fn socket_address(family: u32, bytes: [u8; 16], port: u16) -> SocketAddr {
    let address = if family == IPV6 {
        IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
    } else {
        let [a, b, c, d, ..] = bytes;
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    };
    SocketAddr::new(address, port)
}

pub(super) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0);
    let text = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

fn metrics(connection: &Connection, ended: bool) -> SideMetrics {
    let failed = connection.flags & FLAG_CONNECT_FAILED != 0;
    let joined = connection.flags & FLAG_JOINED != 0;
    let mut metrics = SideMetrics {
        connections: 1,
        open: u64::from(!ended),
        write: Transfer {
            count: connection.sent_count(),
            bytes: connection.sent_bytes,
        },
        read: Transfer {
            count: connection.received_count(),
            bytes: connection.received_bytes,
        },
        connects_failed: u64::from(failed),
        write_rtt: values(&connection.rtt, connection.rtt_sum_us),
        min_rtt_us: (connection.min_rtt_us != 0).then_some(connection.min_rtt_us.into()),
        receive_wait: values(&connection.receive_wait, connection.receive_wait_sum_ns),
        retransmits: u64::from(
            connection
                .last_retransmits
                .saturating_sub(connection.first_retransmits),
        ),
        drops: u64::from(connection.drops),
        resets_sent: u64::from(connection.resets_sent),
        resets_received: u64::from(connection.resets_received),
        errors: u64::from(connection.errors),
        ..SideMetrics::default()
    };
    if metrics.write_rtt.count > 0 {
        metrics.write_rtt.least = Some(u64::from(connection.srtt_min_us));
        metrics.write_rtt.greatest = Some(u64::from(connection.srtt_max_us));
    }
    if connection.last_error != 0 {
        metrics.errors_by_number.insert(connection.last_error, 1);
    }
    if connection.connect_ns != 0 && !failed {
        add_time(&mut metrics.connect, connection.connect_ns);
    }
    if connection.closing_ns != 0 && connection.closed_ns >= connection.closing_ns {
        let took = connection.closed_ns - connection.closing_ns;
        add_time(&mut metrics.close, took);
    }
    if ended {
        let (sent, received) = if joined {
            (connection.first_sent, connection.first_received)
        } else {
            (0, 0)
        };
        metrics.socket = SocketTotals {
            sent_bytes: connection.last_sent.saturating_sub(sent),
            received_bytes: connection.last_received.saturating_sub(received),
            written_bytes: connection.sent_bytes,
            read_bytes: connection.received_bytes,
        };
    }
    metrics
}

pub(super) fn values(histogram: &Histogram, sum: u64) -> Values {
    let count = histogram.counts.iter().sum();
    Values {
        count,
        sum,
        counts: if count == 0 {
            Vec::new()
        } else {
            histogram.counts.to_vec()
        },
        least: None,
        greatest: None,
    }
}

fn add_time(values: &mut Values, time_ns: u64) {
    let time_us = u32::try_from(time_ns / 1000).unwrap_or(u32::MAX);
    let found = bucket(&search_table(), time_us).min(BUCKETS - 1);
    values.add(found, time_ns);
}

#[cfg(test)]
mod tests {
    use profiler_common::header::RecordHeader;

    use super::*;

    #[test]
    fn mapped_addresses_are_ipv4() {
        let mut bytes = [0; 16];
        bytes[10..].copy_from_slice(&[0xff, 0xff, 10, 0, 0, 1]);
        assert_eq!(socket_address(IPV6, bytes, 80).to_string(), "10.0.0.1:80");
        assert_eq!(
            socket_address(2, [127, 0, 0, 1, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9], 7).to_string(),
            "127.0.0.1:7"
        );
    }

    #[test]
    fn a_pid_alone_is_no_process() {
        let torn = Connection {
            pid: 7,
            ..Connection::default()
        };
        assert_eq!(user_of(&torn), None);
        let opened = Connection {
            opened_by: 7,
            opened_start_ns: 5_000_000_000,
            ..torn
        };
        let key = user_of(&opened).unwrap();
        assert_eq!((key.pid, key.start_ticks), (7, 500));
    }

    #[test]
    fn an_ended_connection_is_compared_with_its_socket() {
        let connection = Connection {
            header: RecordHeader {
                kind: 5,
                bytes: 0,
                time_ns: 9,
            },
            flags: FLAG_JOINED,
            first_sent: 100,
            last_sent: 150,
            sent_bytes: 40,
            closing_ns: 1_000,
            closed_ns: 2_001_000,
            ..Connection::default()
        };
        let flow = Flow::decode(&connection);
        assert_eq!(flow.metrics.socket.sent_bytes, 50);
        assert_eq!(flow.metrics.socket.written_bytes, 40);
        assert_eq!(flow.metrics.close.sum, 2_000_000);
        assert_eq!(flow.metrics.close.counts.iter().sum::<u64>(), 1);
        assert_eq!(flow.metrics.open, 0);
    }
}
