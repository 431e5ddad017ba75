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
    /// `None` where a count is smaller than it was: these are of another namespace.
    pub fn since(self, earlier: Self) -> Option<Self> {
        Some(Self {
            sent: self.sent.checked_sub(earlier.sent)?,
            retransmitted: self.retransmitted.checked_sub(earlier.retransmitted)?,
        })
    }
}

/// Counts of a network namespace, by a process in it; an error where it is in another one by now. Blocks.
pub fn segments_of(pid: u32, namespace: u64) -> io::Result<SegmentCounts> {
    let dir = ProcDir::open(pid)?;
    if dir.network_namespace() != Some(namespace) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let bytes = dir.read("net/snmp", LIMIT)?;
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
        let own = ProcDir::open(pid).unwrap().network_namespace().unwrap();
        let before = segments_of(pid, own).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(b"x").unwrap();
        server.read_exact(&mut [0]).unwrap();
        let after = segments_of(pid, own).unwrap();
        let more = after.since(before).unwrap();
        assert!(more.sent >= 3, "{more:?}");
        assert_eq!(before.since(after), None);
        assert!(segments_of(pid, own + 1).is_err());
        assert!(segments_of(u32::MAX, own).is_err());
    }
}
