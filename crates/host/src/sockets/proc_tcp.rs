//! The TCP sockets of a network namespace as `/proc/PID/net/tcp` and `tcp6` list them: for namespaces that
//! cannot be entered, which takes `CAP_SYS_ADMIN`.
//!
//! Addresses, states and inodes are there; cookies and the sockets' own counts are not.

use std::{
    fs::File,
    io::{self, Read as _},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use profiler_model::sockets::DiagSocket;

use super::diag::{LISTEN, MAX_SOCKETS};

/// Bytes of one file that are read; a line has some 150.
const MAX_BYTES: u64 = 64 << 20;
/// States of `include/net/tcp_states.h` whose sockets belong to no process.
const SYN_RECEIVED: u8 = 3;
const TIME_WAIT: u8 = 6;
/// Places in a line.
const LOCAL: usize = 1;
const REMOTE: usize = 2;
const STATE: usize = 3;
const INODE: usize = 9;

/// Lists the sockets of the namespace that the process is in. Blocks.
pub fn sockets_of(pid: u32) -> io::Result<Vec<DiagSocket>> {
    let mut found = Vec::new();
    for (name, required) in [("tcp", true), ("tcp6", false)] {
        let mut bytes = Vec::new();
        match File::open(format!("/proc/{pid}/net/{name}")) {
            Ok(file) => file.take(MAX_BYTES).read_to_end(&mut bytes)?,
            // A kernel without IPv6 has none.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !required => continue,
            Err(error) => return Err(error),
        };
        found.extend(parse(&bytes));
        found.truncate(MAX_SOCKETS);
    }
    Ok(found)
}

/// The sockets of a file; a line that is none is left out, such as the first.
pub(super) fn parse(bytes: &[u8]) -> Vec<DiagSocket> {
    let lines = bytes.split(|byte| *byte == b'\n');
    lines.filter_map(read_line).take(MAX_SOCKETS).collect()
}

fn read_line(line: &[u8]) -> Option<DiagSocket> {
    let line = std::str::from_utf8(line).ok()?;
    let mut fields = line.split_ascii_whitespace();
    let mut at = 0;
    let mut field = |place: usize| {
        let found = fields.nth(place - at);
        at = place + 1;
        found
    };
    let (local, is_ipv6) = address(field(LOCAL)?)?;
    let (remote, _) = address(field(REMOTE)?)?;
    let state = u8::from_str_radix(field(STATE)?, 16).ok()?;
    let inode = field(INODE)?.parse().ok()?;
    if [SYN_RECEIVED, TIME_WAIT].contains(&state) {
        return None;
    }
    Some(DiagSocket {
        cookie: None,
        inode,
        listening: state == LISTEN,
        is_ipv6,
        local,
        remote,
        sent_bytes: 0,
        received_bytes: 0,
        retransmits: 0,
        rtt_us: 0,
    })
}

/// `0100007F:1F90`: each word of the address as the machine reads it, and the port as a number. And
/// whether it is one of IPv6.
fn address(text: &str) -> Option<(SocketAddr, bool)> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |index: usize| {
        let digits = address.get(index * 8..(index + 1) * 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    let address: IpAddr = match address.len() {
        8 => Ipv4Addr::from(word(0)?).into(),
        32 => {
            let mut bytes = [0; 16];
            for (index, chunk) in bytes.chunks_exact_mut(4).enumerate() {
                chunk.copy_from_slice(&word(index)?);
            }
            Ipv6Addr::from(bytes).into()
        }
        _ => return None,
    };
    let canonical = SocketAddr::new(address.to_canonical(), port);
    Some((canonical, address.is_ipv6()))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn own_sockets_are_those_that_the_kernel_lists() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(address).unwrap();
            let port = listener.local_addr().unwrap();
            let client = TcpStream::connect(port).unwrap();
            let (server, from) = listener.accept().unwrap();
            let sockets = sockets_of(std::process::id()).unwrap();
            let inode = |end: &TcpStream| rustix::fs::fstat(end).unwrap().st_ino;
            for (end, local, remote) in [(&client, from, port), (&server, port, from)] {
                let found = sockets.iter().find(|socket| socket.inode == inode(end));
                let found = found.unwrap_or_else(|| panic!("{local} is missing"));
                assert_eq!((found.local, found.remote), (local, remote));
                assert_eq!(found.is_ipv6, local.is_ipv6());
                assert!(!found.listening);
            }
            let listens = |socket: &&DiagSocket| socket.listening && socket.local == port;
            assert_eq!(sockets.iter().filter(listens).count(), 1);
        }
    }

    #[test]
    fn a_mapped_address_is_shown_as_ipv4() {
        let line =
            b"   0: 0000000000000000FFFF00000100007F:0050 0000000000000000FFFF00000200007F:9C40 \
            01 00000000:00000000 00:00000000 00000000  1000        0 4242 1 0 20 4 30 10 -1";
        let found = parse(line);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].local, "127.0.0.1:80".parse().unwrap());
        assert_eq!(found[0].remote, "127.0.0.2:40000".parse().unwrap());
        assert!(found[0].is_ipv6);
        assert_eq!(found[0].inode, 4242);
    }

    #[test]
    fn sockets_of_no_process_and_damaged_lines_are_left_out() {
        let line = |state: &str| {
            format!(
                "   1: 0100007F:0050 0200007F:9C40 {state} 00000000:00000000 00:00000000 00000000 0 0 7 1"
            )
        };
        for (state, kept) in [("01", 1), ("0A", 1), ("03", 0), ("06", 0), ("XX", 0)] {
            assert_eq!(parse(line(state).as_bytes()).len(), kept, "{state}");
        }
        let whole = line("01");
        for length in 0..whole.len() - 3 {
            assert!(parse(&whole.as_bytes()[..length]).is_empty(), "{length}");
        }
        for damaged in ["\u{e4}100007F", "100007F", "0100007F0", ""] {
            let text = line("01").replace("0100007F", damaged);
            assert!(parse(text.as_bytes()).is_empty(), "{text}");
        }
    }
}
