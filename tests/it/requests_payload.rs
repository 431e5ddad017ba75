//! Where the bytes of requests come from: every system call that moves them, connections from before,
//! and what happens where there are too many or none can be seen.

use std::{
    io::{IoSlice, IoSliceMut, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    os::{
        fd::AsRawFd as _,
        unix::net::{UnixListener, UnixStream},
    },
    time::{Duration, Instant},
};

use profiler_tests::{
    agent, assert_measured,
    cleanup::scratch_directory,
    netns::Netns,
    peers::{
        asked::Asked,
        h2load::{self, Load},
        mptcp,
        nginx::{Nginx, Speaks},
        watch::{Edges, Expected, Report, Watch},
    },
    wait::wait_until,
};

use crate::targets::EXIT;

/// Bodies of requests and answers: more than is captured of them.
const REQUEST: usize = 300;
const ANSWER: usize = 5000;
/// Parts of a message: more than the kernel side looks at.
const PARTS: usize = 20;

/// A way to send a head and a body.
type Send = fn(&TcpStream, &mut [u8], &mut [u8]);
/// A way to receive a head and a body of these lengths.
type Receive = fn(&TcpStream, usize, usize);

const SENDS: [(&str, Send); 8] = [
    ("write", |to, head, body| {
        write(to, &[head, body].concat());
    }),
    ("writev", |to, head, body| {
        let slices = [IoSlice::new(head), IoSlice::new(body)];
        let written = rustix::io::writev(to, &slices).unwrap();
        assert_eq!(written, head.len() + body.len());
    }),
    ("many-parts", |to, head, body| {
        let length = body.len().div_ceil(PARTS);
        let body = body.chunks(length).map(IoSlice::new);
        let slices: Vec<IoSlice<'_>> = std::iter::once(IoSlice::new(head)).chain(body).collect();
        rustix::io::writev(to, &slices).unwrap();
    }),
    ("send", |mut to, head, body| {
        to.write_all(&[head, body].concat()).unwrap();
    }),
    ("sendmsg", |mut to, head, body| {
        // The standard library writes several slices by `writev`.
        let mut whole = [head, body].concat();
        let sent = with_messages([&mut whole], |[header]| {
            // SAFETY: the header and what it points to live through the call.
            unsafe { libc::sendmsg(to.as_raw_fd(), &raw const header.msg_hdr, 0) }
                .try_into()
                .unwrap()
        });
        assert_eq!(usize::try_from(sent).unwrap(), whole.len());
        to.flush().unwrap();
    }),
    ("sendmmsg", |to, head, body| {
        let sent = with_messages([head, body], |headers| {
            // SAFETY: as above.
            unsafe { libc::sendmmsg(to.as_raw_fd(), headers.as_mut_ptr(), 2, 0) }
        });
        assert_eq!(sent, 2);
    }),
    ("sendfile", |to, head, body| {
        write(to, head);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(body).unwrap();
        let sent = rustix::fs::sendfile(to, &file, Some(&mut 0), body.len());
        assert_eq!(sent.unwrap(), body.len());
    }),
    ("splice", |to, head, body| {
        write(to, head);
        let (out, mut into) = std::io::pipe().unwrap();
        into.write_all(body).unwrap();
        let nowhere = std::ptr::null_mut();
        // SAFETY: no pointers are passed.
        let moved = unsafe {
            let (from, to) = (out.as_raw_fd(), to.as_raw_fd());
            libc::splice(from, nowhere, to, nowhere, body.len(), 0)
        };
        assert_eq!(moved, body.len().cast_signed());
    }),
];

const RECEIVES: [(&str, Receive); 6] = [
    ("read", |from, head, body| {
        let mut buffer = vec![0; head + body];
        assert_eq!(rustix::io::read(from, &mut buffer), Ok(head + body));
    }),
    ("readv", |from, head, body| {
        let (mut first, mut second) = (vec![0; head - 7], vec![0; body + 7]);
        let mut slices = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
        assert_eq!(rustix::io::readv(from, &mut slices), Ok(head + body));
    }),
    ("recv", |mut from, head, body| {
        let mut buffer = vec![0; head + body];
        assert_eq!(from.read(&mut buffer).unwrap(), head + body);
    }),
    ("recvmsg", |from, head, body| {
        let mut buffer = vec![0; head + body];
        let received = with_messages([&mut buffer], |[header]| {
            // SAFETY: as above.
            unsafe { libc::recvmsg(from.as_raw_fd(), &raw mut header.msg_hdr, 0) }
                .try_into()
                .unwrap()
        });
        assert_eq!(usize::try_from(received).unwrap(), head + body);
    }),
    ("recvmmsg", |from, head, body| {
        let (mut first, mut second) = (vec![0; head], vec![0; body]);
        let received = with_messages([&mut first, &mut second], |headers| {
            let nowhere = std::ptr::null_mut();
            // SAFETY: as above.
            unsafe { libc::recvmmsg(from.as_raw_fd(), headers.as_mut_ptr(), 2, 0, nowhere) }
        });
        assert_eq!(received, 2);
    }),
    ("discard", |from, head, body| {
        let mut buffer = vec![0; head];
        assert_eq!(rustix::io::read(from, &mut buffer), Ok(head));
        // Thrown away: no memory is written to.
        let mut none = vec![0x55; body];
        // SAFETY: the buffer lives through the call.
        let length = unsafe {
            let buffer = none.as_mut_ptr().cast();
            libc::recv(from.as_raw_fd(), buffer, body, libc::MSG_TRUNC)
        };
        assert_eq!(length, body.cast_signed());
        assert!(none.iter().all(|byte| *byte == 0x55));
    }),
];

fn write(to: &TcpStream, bytes: &[u8]) {
    assert_eq!(rustix::io::write(to, bytes), Ok(bytes.len()));
}

/// Calls with one header for each of `parts`.
fn with_messages<const N: usize>(
    parts: [&mut [u8]; N],
    call: impl FnOnce(&mut [libc::mmsghdr; N]) -> libc::c_int,
) -> libc::c_int {
    let mut vectors = parts.map(|part| libc::iovec {
        iov_base: part.as_mut_ptr().cast(),
        iov_len: part.len(),
    });
    // SAFETY: zeros are a header without anything.
    let mut headers: [libc::mmsghdr; N] = unsafe { std::mem::zeroed() };
    for (header, vector) in headers.iter_mut().zip(&mut vectors) {
        header.msg_hdr.msg_iov = vector;
        header.msg_hdr.msg_iovlen = 1;
    }
    call(&mut headers)
}

/// Waits until so much can be read at once, by looking at it.
fn wait_for_data(stream: &TcpStream, bytes: usize) {
    let mut buffer = vec![0; bytes];
    wait_until("the data has arrived", EXIT, || {
        stream.peek(&mut buffer).unwrap() == bytes
    })
    .unwrap();
}

fn connect(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (server, _) = listener.accept().unwrap();
    for stream in [&client, &server] {
        stream.set_nodelay(true).unwrap();
    }
    (client, server)
}

fn request_head(path: &str) -> Vec<u8> {
    format!("POST {path} HTTP/1.1\r\nHost: test\r\nContent-Length: {REQUEST}\r\n\r\n").into_bytes()
}

fn answer_head() -> Vec<u8> {
    format!("HTTP/1.1 201 Created\r\nContent-Length: {ANSWER}\r\n\r\n").into_bytes()
}

/// One request with its answer.
fn exchange(client: &TcpStream, server: &TcpStream, path: &str, send: Send, receive: Receive) {
    let turns = [
        (client, server, request_head(path), REQUEST),
        (server, client, answer_head(), ANSWER),
    ];
    for (from, to, mut head, length) in turns {
        let mut body = vec![b'b'; length];
        send(from, &mut head, &mut body);
        wait_for_data(to, head.len() + length);
        receive(to, head.len(), length);
    }
}

fn asked(path: &str) -> Asked {
    let (request, answer) = (REQUEST as u64, ANSWER as u64);
    Asked::new("POST", path, "201").sizes(request, answer)
}

/// Checks that these requests were made to a port of this process, by itself.
fn check(watch: Watch, port: u16, asked: &[Asked]) {
    let own = [std::process::id()];
    let expected = Expected {
        protocol: "http1",
        tls: false,
        edges: Edges::To(port),
        clients: &own,
        servers: &own,
        asked,
    };
    watch.finish().unwrap().check(&expected).unwrap();
}

#[test]
fn the_bytes_of_every_way_to_read_and_write_are_the_calls_own() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let watch = Watch::start(&[]).unwrap();
    let mut all = Vec::new();
    for (sent, send) in SENDS {
        for (received, receive) in RECEIVES {
            let (client, server) = connect(&listener);
            // Twice, so that what the first one leaves behind would be noticed.
            for turn in ["first", "second"] {
                let path = format!("/{sent}/{received}/{turn}");
                exchange(&client, &server, &path, send, receive);
                all.push(asked(&path));
            }
        }
    }
    check(watch, port, &all);
}

#[test]
fn requests_over_mptcp_are_read() {
    let before = mptcp::Pair::connect().unwrap();
    let watch = Watch::start(&[]).unwrap();
    let fresh = mptcp::Pair::connect().unwrap();
    for mptcp::Pair { client, server, .. } in [&before, &fresh] {
        for (_, send) in SENDS {
            exchange(client, server, "/over/mptcp", send, RECEIVES[0].1);
        }
    }
    let report = watch.finish().unwrap();
    let own = [std::process::id()];
    for pair in [&before, &fresh] {
        let asked = SENDS.map(|_| asked("/over/mptcp"));
        let expected = Expected {
            protocol: "http1",
            tls: false,
            edges: Edges::To(pair.port),
            clients: &own,
            servers: &own,
            asked: &asked,
        };
        report.check(&expected).unwrap();
    }
}

/// Both ends see each request, the server's by a read, the client's by a write of two parts; the answers come in
/// two writes. Two connections end during the watch, one of them without an answer.
#[test]
fn requests_over_unix_sockets_are_read() {
    const ROUNDS: usize = 5;
    let (folder, _guard) = scratch_directory("unix").unwrap();
    let path = folder.join("server");
    let listener = UnixListener::bind(&path).unwrap();
    let connect = || {
        let client = UnixStream::connect(&path).unwrap();
        (client, listener.accept().unwrap().0)
    };
    let before = connect();
    let watch = Watch::start(&[]).unwrap();
    let (fresh, broken) = (connect(), connect());
    let ask = |mut client: &UnixStream, mut server: &UnixStream| {
        let (head, body) = (request_head("/over/unix"), [b'b'; REQUEST]);
        let parts = [IoSlice::new(&head), IoSlice::new(&body)];
        let length = head.len() + body.len();
        assert_eq!(client.write_vectored(&parts).unwrap(), length);
        server.read_exact(&mut vec![0; length]).unwrap();
    };
    for (client, server) in [&before, &fresh] {
        for _ in 0..ROUNDS {
            ask(client, server);
            let (mut client, mut server) = (client, server);
            let (head, body) = (answer_head(), [b'b'; ANSWER]);
            server.write_all(&head).unwrap();
            server.write_all(&body).unwrap();
            client
                .read_exact(&mut vec![0; head.len() + ANSWER])
                .unwrap();
        }
    }
    ask(&broken.0, &broken.1);
    drop((fresh, broken));
    let report = watch.finish().unwrap();
    report.check_whole().unwrap();
    let own = std::process::id();
    let is_here = |entry: &&serde_json::Value| {
        let (client, server) = (&entry["edge"]["client"], &entry["edge"]["server"]);
        server["address"] == path.to_str().unwrap() && client["pid"] == own && server["pid"] == own
    };
    let [operation] = report.json["operations"]
        .as_array()
        .unwrap()
        .iter()
        .filter(is_here)
        .collect::<Vec<_>>()[..]
    else {
        panic!("{:#}", report.json["operations"]);
    };
    let (good, all) = (2 * ROUNDS, 2 * ROUNDS + 1);
    assert_eq!(operation["route"], "/over/unix", "{operation:#}");
    assert_eq!(operation["count"], all, "{operation:#}");
    assert_eq!(operation["statuses"]["201"], good, "{operation:#}");
    assert_eq!(operation["errors_by_class"]["broken"], 1, "{operation:#}");
    assert_eq!(operation["unknown"], 0, "{operation:#}");
    assert_eq!(operation["edge"]["server"]["port"], serde_json::Value::Null);
    for end in ["client", "server"] {
        assert_eq!(operation[end]["count"], all, "{end}: {operation:#}");
    }
    let samples = report.json["samples"].as_array().unwrap();
    let samples: Vec<_> = samples.iter().filter(is_here).collect();
    assert_eq!(samples.len(), all);
    for sample in samples.iter().filter(|sample| sample["status"] == "201") {
        assert_eq!(sample["request_bytes"], REQUEST, "{sample:#}");
        assert_eq!(sample["response_bytes"], ANSWER, "{sample:#}");
        let client = sample["client"].as_str().unwrap();
        assert!(client.starts_with("unix:"), "{sample:#}");
    }
}

#[test]
fn a_connection_from_before_is_joined_with_its_next_request() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (client, server) = connect(&listener);
    let [(_, send), ..] = SENDS;
    let [(_, receive), ..] = RECEIVES;
    exchange(&client, &server, "/before", send, receive);
    let watch = Watch::start(&[]).unwrap();
    let paths = ["/one", "/two", "/three"];
    for path in paths {
        exchange(&client, &server, path, send, receive);
    }
    drop((client, server));
    check(watch, port, &paths.map(asked));
}

#[test]
fn without_what_announces_reads_and_writes_the_command_says_why_it_sees_nothing() {
    for denied in ["network_send", "network_receive", "network_capture"] {
        let (folder, _guard) = scratch_directory("denied").unwrap();
        let option = format!("--deny-probe={denied}");
        let arguments = ["requests", "--json", "--duration=300s", "--all", &option];
        let mut command = agent::launch(&arguments, "requests", &folder).unwrap();
        let status = command.wait(EXIT).unwrap();
        let errors = command.errors();
        assert!(!status.success(), "{errors}");
        let reason = format!("{denied} is denied by --deny-probe");
        assert!(errors.contains(&reason), "{errors}");
    }
}

/// With less than a processor of its own the command never reaches its share.
mod alone {
    use super::*;

    #[test]
    fn beyond_its_share_of_a_cpu_one_connection_in_so_many_is_captured_and_totals_stay() {
        const CONNECTIONS: usize = 256;
        const TIME: Duration = Duration::from_secs(6);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let watch = Watch::start_with(&[], &["--cpu-percent=1"]).unwrap();
        let pairs: Vec<(TcpStream, TcpStream)> =
            (0..CONNECTIONS).map(|_| connect(&listener)).collect();
        let began = Instant::now();
        let mut made = 0_u64;
        while began.elapsed() < TIME {
            for (client, server) in &pairs {
                let [(_, send), ..] = SENDS;
                let [(_, receive), ..] = RECEIVES;
                exchange(client, server, "/many", send, receive);
                made += 1;
            }
        }
        drop(pairs);
        let report = watch.finish().unwrap();
        let one_of = report.json["sampled_one_of"].as_u64().unwrap();
        assert_measured!(one_of > 1, "{:#}", report.json);
        let operations = report.operations(Edges::To(port)).unwrap();
        let [operation] = operations.as_slice() else {
            panic!("{operations:?}");
        };
        let seen = operation["seen"].as_u64().unwrap();
        assert_measured!(seen > 0 && seen < made, "{seen} of {made}");
        // Twice as wide as what holds 95 times of 100.
        let count = operation["count"].as_u64().unwrap();
        assert!(count >= seen, "{operation}");
        let interval = &operation["count_interval"];
        let low = interval["low"].as_u64().unwrap();
        assert!(low <= count && low >= seen, "{operation}");
        // With fewer than ten connections there is no upper end.
        if let Some(high) = interval["high"].as_u64() {
            assert!(count <= high, "{operation}");
            let near = count.abs_diff(made) <= 2 * (high - count);
            assert_measured!(near, "{count} ({low} to {high}), and there were {made}");
        }
        assert_eq!(operation["errors"], 0, "{operation}");
        assert_eq!(report.json["lost"], 0);
        assert_counted(&report, port, made);
        // One operation is all that there is on the edge.
        assert_eq!(count, made, "{operation}");
    }

    /// What was not captured is counted as well.
    #[track_caller]
    fn assert_counted(report: &Report, port: u16, made: u64) {
        let counts = report.counted(Edges::To(port)).unwrap();
        let [counted] = counts.as_slice() else {
            panic!("{counts:?}");
        };
        let expected = serde_json::json!([made, true, 0, 0]);
        let found = ["count", "exact", "errors", "unknown"].map(|name| counted[name].clone());
        assert_eq!(serde_json::json!(found), expected, "{counted}");
        assert_eq!(counted["latency_ns"]["count"], made, "{counted}");
    }

    #[test]
    fn streams_of_http2_are_counted_whether_they_are_captured_or_not() {
        const REQUESTS: u32 = 60_000;
        let (folder, _guard) = scratch_directory("streams").unwrap();
        let nginx = Nginx::start_with_workers(&folder, Speaks::Http2, 1).unwrap();
        let watch = Watch::start_only(&nginx.pids().unwrap(), &["--cpu-percent=1"]).unwrap();
        let load = Load {
            base: &format!("http://127.0.0.1:{}", nginx.port),
            paths: &["/files/700", "/files/1", "/files/4096"],
            requests: REQUESTS,
            connections: 64,
            streams: 20,
            rate: None,
            http1: false,
            probed: false,
        };
        h2load::run(&folder, load).unwrap();
        let report = watch.finish().unwrap();
        let one_of = report.json["sampled_one_of"].as_u64().unwrap();
        assert_measured!(one_of > 1, "{:#}", report.json["incomplete"]);
        assert_counted(&report, nginx.port, REQUESTS.into());
    }

    /// The port that clients ask for and the one that REDIRECT makes of it: an app's way to its sidecar, a Service's
    /// to its pod, and into a server's pod.
    const REDIRECTED: [(u16, u16); 3] = [(80, 15_001), (80, 8080), (8080, 15_006)];

    /// Asks over all connections at once, again and again; the number of requests that were answered.
    fn ask_and_answer(pairs: &[(TcpStream, TcpStream)], time: Duration) -> u64 {
        const REQUEST: &[u8] = b"GET /many HTTP/1.1\r\nHost: test\r\n\r\n";
        const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        let pass = |mut from: &TcpStream, mut to: &TcpStream, bytes: &[u8]| {
            from.write_all(bytes).unwrap();
            to.read_exact(&mut vec![0; bytes.len()]).unwrap();
        };
        let began = Instant::now();
        let mut made = 0;
        while began.elapsed() < time {
            for (client, server) in pairs {
                pass(client, server, REQUEST);
                pass(server, client, ANSWER);
                made += 1;
            }
        }
        made
    }

    /// More of them than may be open at once, in less time than those that ended are remembered.
    #[test]
    fn short_connections_take_no_room_from_those_that_follow() {
        const CONNECTIONS: usize = 12_000;
        const AT_ONCE: usize = 4;
        /// Between two of one listener: 3000 a second on all.
        const PAUSE: Duration = Duration::from_micros(1333);
        let listeners = [(); AT_ONCE].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let watch = Watch::start(&[]).unwrap();
        std::thread::scope(|scope| {
            for listener in &listeners {
                scope.spawn(move || {
                    let mut due = Instant::now();
                    for _ in 0..CONNECTIONS / AT_ONCE {
                        std::thread::sleep(due.saturating_duration_since(Instant::now()));
                        due += PAUSE;
                        let (client, server) = connect(listener);
                        exchange(&client, &server, "/short", SENDS[0].1, RECEIVES[0].1);
                    }
                });
            }
        });
        let report = watch.finish().unwrap();
        let incomplete = &report.json["incomplete"];
        assert_eq!(incomplete["refused_connections"], 0, "{incomplete}");
        assert_measured!(report.json["sampled_one_of"] == 1, "{incomplete}");
        assert_measured!(report.json["lost"] == 0, "{incomplete}");
        let mut all = 0;
        for listener in &listeners {
            let port = listener.local_addr().unwrap().port();
            for operation in report.operations(Edges::To(port)).unwrap() {
                assert_eq!(operation["errors"], 0, "{operation}");
                assert_eq!(operation["unknown"], 0, "{operation}");
                all += operation["count"].as_u64().unwrap();
            }
        }
        assert_eq!(all, CONNECTIONS as u64, "{incomplete}");
    }

    #[test]
    fn both_ends_of_a_redirected_connection_are_captured_or_neither() {
        const CONNECTIONS: usize = 150;
        const TIME: Duration = Duration::from_secs(4);
        let netns = Netns::create("redirected").unwrap();
        // Each on an address of its own, as ports occur twice.
        let ways = (2_u8..).zip(REDIRECTED).map(|(last, (asked, serves))| {
            let to = SocketAddr::from(([127, 0, 0, last], asked));
            let rule = format!(
                "iptables -w -t nat -A OUTPUT -p tcp -d {} --dport {asked} -j REDIRECT --to-ports {serves}",
                to.ip()
            );
            let rule: Vec<&str> = rule.split(' ').collect();
            netns.run(&rule).unwrap();
            (to, serves)
        });
        let ways: Vec<(SocketAddr, u16)> = ways.collect();
        let watch = Watch::start_with(&[], &["--cpu-percent=5"]).unwrap();
        let connected = ways.iter().map(|(to, serves)| {
            let connect = || {
                let listener = TcpListener::bind(("127.0.0.1", *serves))?;
                let mut pairs = Vec::new();
                for _ in 0..CONNECTIONS {
                    let client = TcpStream::connect(to)?;
                    pairs.push((client, listener.accept()?.0));
                }
                Ok(pairs)
            };
            netns.within(connect).unwrap()
        });
        let connected: Vec<Vec<(TcpStream, TcpStream)>> = connected.collect();
        let made: Vec<u64> = std::thread::scope(|scope| {
            let threads = connected
                .iter()
                .map(|pairs| scope.spawn(|| ask_and_answer(pairs, TIME)));
            let threads: Vec<_> = threads.collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        drop(connected);
        let report = watch.finish().unwrap();
        let one_of = report.json["sampled_one_of"].as_u64().unwrap();
        assert_measured!(one_of > 1, "{:#}", report.json["incomplete"]);
        let lost = &report.json["lost"];
        assert_measured!(*lost == 0, "{lost} pieces, one of {one_of}");
        for ((_to, serves), made) in ways.into_iter().zip(made) {
            let operations = report.operations(Edges::To(serves)).unwrap();
            let [operation] = operations.as_slice() else {
                panic!("{operations:?}");
            };
            let number = |value: &serde_json::Value| value.as_u64().unwrap();
            let seen = number(&operation["seen"]);
            // Apart from those that were under way when fewer connections were captured.
            for end in ["client", "server"] {
                let at_end = number(&operation[end]["count"]);
                assert_measured!(
                    seen.abs_diff(at_end) * 50 <= seen,
                    "port {serves}: the {end} has {at_end} of {seen} requests that were seen"
                );
            }
            assert_counted(&report, serves, made);
            let count = number(&operation["count"]);
            let interval = &operation["count_interval"];
            if let Some(high) = interval["high"].as_u64() {
                let half = high - count;
                // Twice as wide as what holds 95 times of 100.
                assert_measured!(
                    count.abs_diff(made) <= 2 * half,
                    "port {serves}: {count} of {made}, {interval}"
                );
            }
        }
    }
}
