//! Where redirected connections were to go, by asking their sockets (`SO_ORIGINAL_DST`): for
//! namespaces whose connection tracking cannot be listed.
//!
//! A socket of another process is borrowed for the question (`pidfd_getfd`, Linux 5.6), which needs
//! the right to trace that process. The copy is closed at once.

use std::{
    io,
    net::SocketAddr,
    os::fd::{AsFd, OwnedFd},
};

use profiler_model::sockets::{DiagSocket, Holder, Original};
use rustix::{
    fs::fstat,
    net::sockopt::{ip_original_dst, ipv6_original_dst, socket_cookie},
    process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open},
};

/// Asks the socket that `holder` holds; the answer with the socket's cookie.
pub fn original_of(socket: &DiagSocket, holder: Holder) -> io::Result<(u64, Original)> {
    let copy = borrow(holder)?;
    let cookie = socket_cookie(&copy)?;
    let is_other = socket.cookie.is_some_and(|known| known != cookie);
    if is_other || fstat(&copy)?.st_ino != socket.inode {
        return Err(io::Error::other(
            "the descriptor is another socket's by now",
        ));
    }
    Ok((cookie, ask(&copy, socket)?))
}

fn ask(copy: impl AsFd, socket: &DiagSocket) -> io::Result<Original> {
    let ipv4 = socket.local.is_ipv4();
    let found = if ipv4 {
        ip_original_dst(&copy).map(SocketAddr::V4)
    } else {
        ipv6_original_dst(&copy).map(SocketAddr::V6)
    };
    match found {
        Ok(address) => {
            let address = SocketAddr::new(address.ip().to_canonical(), address.port());
            Ok(if address == socket.local {
                Original::Same
            } else {
                Original::At(address)
            })
        }
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOPROTOOPT) => Ok(Original::Same),
        Err(error) => Err(error.into()),
    }
}

fn borrow(holder: Holder) -> io::Result<OwnedFd> {
    let pid = i32::try_from(holder.process.pid)
        .ok()
        .and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::other("no process"))?;
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    let copy = pidfd_getfd(process, holder.descriptor, PidfdGetfdFlags::empty());
    copy.map_err(|error| {
        let error: io::Error = error.into();
        if error.kind() == io::ErrorKind::PermissionDenied {
            io::Error::new(
                error.kind(),
                "pidfd_getfd: permission denied (needs CAP_SYS_PTRACE)",
            )
        } else {
            error
        }
    })
}

#[cfg(test)]
mod tests {
    use std::{
        net::{TcpListener, TcpStream},
        os::fd::AsRawFd as _,
    };

    use profiler_model::ProcessKey;

    use super::*;

    #[test]
    fn a_connection_that_was_not_redirected_says_so_and_another_socket_is_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, from) = listener.accept().unwrap();
        let socket = DiagSocket {
            cookie: Some(socket_cookie(&server).unwrap()),
            inode: fstat(&server).unwrap().st_ino,
            listening: false,
            is_ipv6: false,
            local: listener.local_addr().unwrap(),
            remote: from,
            sent_bytes: 0,
            received_bytes: 0,
            retransmits: 0,
            rtt_us: 0,
        };
        let holder = |descriptor| Holder {
            process: ProcessKey {
                pid: std::process::id(),
                start_ticks: 0,
            },
            descriptor,
        };
        let own = holder(server.as_raw_fd());
        let cookie = socket_cookie(&server).unwrap();
        let answer = original_of(&socket, own).unwrap();
        assert_eq!(answer, (cookie, Original::Same));
        let listed_without = DiagSocket {
            cookie: None,
            ..socket
        };
        assert_eq!(original_of(&listed_without, own).unwrap(), answer);
        let other = holder(client.as_raw_fd());
        assert!(original_of(&socket, other).is_err());
    }
}
