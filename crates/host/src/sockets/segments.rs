//! TCP segments of a network namespace, by `/proc/PID/net/snmp` of a process in it.

use std::io;

use procfs::{FromRead as _, net::Snmp};
use profiler_image::proc_dir::ProcDir;

/// Largest file that is read; the kernel writes some 2 KB.
const LIMIT: usize = 64 * 1024;

/// What the namespace has counted since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentCounts {
    /// Without those that were sent again.
    pub sent: u64,
    pub retransmitted: u64,
}

impl SegmentCounts {
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            sent: self.sent.saturating_sub(earlier.sent),
            retransmitted: self.retransmitted.saturating_sub(earlier.retransmitted),
        }
    }
}

/// Counts of the network namespace that a process is in. Blocks.
pub fn segments_of(pid: u32) -> io::Result<SegmentCounts> {
    let bytes = ProcDir::open(pid)?.read("net/snmp", LIMIT)?;
    let counts = Snmp::from_read(bytes.as_slice()).map_err(io::Error::other)?;
    Ok(SegmentCounts {
        sent: counts.tcp_out_segs,
        retransmitted: counts.tcp_retrans_segs,
    })
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::{TcpListener, TcpStream},
    };

    use super::*;

    #[test]
    fn what_is_sent_is_counted() {
        let pid = std::process::id();
        let before = segments_of(pid).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(b"x").unwrap();
        server.read_exact(&mut [0]).unwrap();
        let more = segments_of(pid).unwrap().since(before);
        assert!(more.sent >= 3, "{more:?}");
        assert!(segments_of(u32::MAX).is_err());
    }
}
