//! Times of system calls on sockets, against the test's own clock; and what is counted from system
//! calls where the kernel announces no lengths, against what the test moved.

use std::{
    fs,
    io::{IoSlice, IoSliceMut, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::fd::{AsRawFd as _, RawFd},
    path::PathBuf,
    time::{Duration, Instant},
};

use profiler_tests::{
    agent, assert_measured,
    cleanup::{Guard, scratch_directory},
    process::Running,
    wait::{wait_for, wait_until},
};
use rustix::process::Signal;
use serde_json::Value;

use crate::{edges::WAIT, targets::EXIT};

/// What newer kernels announce: without these the agent counts as it does below 6.3.
const WITHOUT_LENGTHS: &str = "--deny-probe=network_send,network_receive,network_ready";
/// Longest that the command takes to begin and to end, in an emulated machine too.
const COMMAND: Duration = Duration::from_mins(2);
/// How long one end lets the other wait.
const DELAY: Duration = Duration::from_millis(300);
/// What a softirq or the clock's granularity may take off a measured time.
const TOLERANCE: Duration = Duration::from_millis(50);

/// `profiler-agent net` over this process.
struct Watch {
    command: Running,
    _folder: (PathBuf, Guard),
}

impl Watch {
    /// Returns when the programs are attached.
    fn start(arguments: &[&str]) -> Self {
        let (folder, guard) = scratch_directory("timed").unwrap();
        let pid = format!("--pid={}", std::process::id());
        let mut all = vec!["net", "--json", "--duration=300s", &pid];
        all.extend(arguments);
        let command = agent::launch(&all, "net", &folder).unwrap();
        let watching = wait_for("the command watches", COMMAND, || {
            command.errors().contains("watching").then_some(())
        });
        watching.unwrap_or_else(|error| panic!("{error:#}\n{}", command.errors()));
        Self {
            command,
            _folder: (folder, guard),
        }
    }

    /// Ends it; its whole result.
    fn finish(mut self) -> Value {
        self.command.signal(Signal::TERM).unwrap();
        self.command.wait(COMMAND).unwrap();
        let output = self.command.output();
        let errors = self.command.errors();
        serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error}: {output}\n{errors}"))
    }
}

/// The ends of the only edge to a port.
fn sides(table: &Value, port: u16) -> (&Value, &Value) {
    let edges = table["edges"].as_array().unwrap();
    let mut found = edges.iter().filter(|edge| edge["server"]["port"] == port);
    let edge = found
        .next()
        .unwrap_or_else(|| panic!("no edge to {port}: {table:#}"));
    assert!(found.next().is_none(), "several edges to {port}: {table:#}");
    for end in ["client", "server"] {
        assert_eq!(edge[end]["pid"], std::process::id(), "{edge:#}");
    }
    (&edge["metrics"]["client"], &edge["metrics"]["server"])
}

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is not a number"))
}

fn time(value: &Value) -> Duration {
    Duration::from_nanos(number(value))
}

/// Values in a histogram.
fn total(histogram: &Value) -> u64 {
    let counts = histogram["counts"].as_array();
    let counts = counts.unwrap_or_else(|| panic!("{histogram} is not a histogram"));
    counts.iter().map(number).sum()
}

/// Checks one call of a known length: never longer than the test saw, never shorter than it was held
/// up for sure.
fn assert_one_call(transfer: &Value, held_up: Duration, seen: Duration) {
    assert_eq!(total(&transfer["histogram"]), 1, "{transfer:#}");
    let took = time(&transfer["time_ns"]);
    let least = held_up.saturating_sub(TOLERANCE);
    assert!(
        (least..=seen).contains(&took),
        "{took:?} is not between {least:?} and {seen:?}"
    );
}

/// A connection within this process.
fn connect(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (server, _from) = listener.accept().unwrap();
    for end in [&client, &server] {
        end.set_read_timeout(Some(EXIT)).unwrap();
        end.set_nodelay(true).unwrap();
    }
    (client, server)
}

/// Waits until a thread of this process sleeps in a system call.
fn wait_for_call(thread: i32, call: libc::c_long) {
    let path = format!("/proc/self/task/{thread}/syscall");
    let wanted = format!("{call} ");
    wait_until("the thread is in its call", EXIT, || {
        fs::read_to_string(&path).is_ok_and(|now| now.starts_with(&wanted))
    })
    .unwrap();
}

/// Runs `work`, which sleeps in `call`, on a thread; `release` lets it go after a while. How long the
/// call was held up for sure, and how long `work` took.
fn held_up(
    call: libc::c_long,
    work: impl FnOnce() + Send,
    release: impl FnOnce(),
) -> (Duration, Duration) {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let worker = scope.spawn(move || {
            sender
                .send(rustix::thread::gettid().as_raw_nonzero().get())
                .unwrap();
            let began = Instant::now();
            work();
            began.elapsed()
        });
        wait_for_call(receiver.recv().unwrap(), call);
        let sleeping = Instant::now();
        std::thread::sleep(DELAY);
        let held_up = sleeping.elapsed();
        release();
        (held_up, worker.join().unwrap())
    })
}

/// The arguments of both sources.
const SOURCES: [(&[&str], &str); 2] = [
    (&["--timed"], "sock_recv_length"),
    (&["--timed", WITHOUT_LENGTHS], "system calls"),
];

#[test]
fn a_read_takes_as_long_as_it_was_blocked() {
    for (arguments, source) in SOURCES {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let watch = Watch::start(arguments);
        let (mut client, mut server) = connect(&listener);
        let read = || client.read_exact(&mut [0; 5]).unwrap();
        let write = || server.write_all(b"hello").unwrap();
        let (held_up, seen) = held_up(libc::SYS_recvfrom, read, write);
        drop((client, server));
        let table = watch.finish();
        let (client, server) = sides(&table, port);
        assert_one_call(&client["read"], held_up, seen);
        assert_eq!(total(&server["write"]["histogram"]), 1, "{server:#}");
        assert_measured!(time(&server["write"]["time_ns"]) < seen);
        if announces_lengths() || source == "system calls" {
            assert_eq!(table["sources"]["read"], source, "{table:#}");
        }
        assert_eq!(table["sources"]["read.time_ns"], "system calls");
    }
}

/// Whether this kernel announces lengths (6.3).
fn announces_lengths() -> bool {
    let events = ["sock_send_length", "sock_recv_length"].map(|event| {
        let event = format!("/sys/kernel/tracing/events/sock/{event}");
        fs::exists(event).unwrap()
    });
    assert_eq!(events[0], events[1]);
    events[0]
}

#[test]
fn a_write_takes_as_long_as_the_buffer_was_full() {
    const BYTES: usize = 16 << 20;
    for (arguments, _source) in SOURCES {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let watch = Watch::start(arguments);
        let (mut client, mut server) = connect(&listener);
        let data = vec![7; BYTES];
        // One call: it returns when all of it is in the socket.
        let write = || assert_eq!(client.write(&data).unwrap(), BYTES);
        let read = || server.read_exact(&mut vec![0; BYTES]).unwrap();
        let (held_up, seen) = held_up(libc::SYS_sendto, write, read);
        drop((client, server));
        let table = watch.finish();
        let (client, server) = sides(&table, port);
        assert_one_call(&client["write"], held_up, seen);
        assert_eq!(client["write"]["count"], 1);
        assert_eq!(client["write"]["bytes"], BYTES);
        assert_eq!(server["read"]["bytes"], BYTES);
        assert_eq!(
            total(&server["read"]["histogram"]),
            number(&server["read"]["count"])
        );
    }
}

#[test]
fn an_accept_that_comes_late_shows_how_long_the_connection_waited() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let watch = Watch::start(&["--timed"]);
    let before = Instant::now();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let connected = Instant::now();
    std::thread::sleep(DELAY);
    let waited = connected.elapsed();
    let (server, _from) = listener.accept().unwrap();
    let most = before.elapsed();
    drop((client, server));
    let table = watch.finish();
    let (client, server) = sides(&table, port);
    let accept = &server["accept"];
    assert_eq!(accept["count"], 1, "{accept:#}");
    assert_eq!(total(&accept["histogram"]), 1);
    let took = time(&accept["time_ns"]);
    let least = waited.saturating_sub(TOLERANCE);
    assert!(
        (least..=most).contains(&took),
        "{took:?} is not between {least:?} and {most:?}"
    );
    assert_eq!(client["accept"]["count"], 0);
    assert_eq!(table["sources"]["accept"], "system calls");
}

#[test]
fn data_that_waits_is_seen_in_segments_where_nothing_announces_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let watch = Watch::start(&[WITHOUT_LENGTHS]);
    let (mut client, mut server) = connect(&listener);
    let before = Instant::now();
    client.write_all(b"hello").unwrap();
    // It is there: looking at it does not end its wait.
    assert_eq!(server.peek(&mut [0; 9]).unwrap(), 5);
    let there = Instant::now();
    std::thread::sleep(DELAY);
    let waited = there.elapsed();
    server.read_exact(&mut [0; 5]).unwrap();
    let most = before.elapsed();
    drop((client, server));
    let table = watch.finish();
    let (_client, server) = sides(&table, port);
    assert_eq!(table["sources"][WAIT], "tcp_probe", "{table:#}");
    let wait = &server[WAIT];
    assert_eq!(wait["count"], 1, "{wait:#}");
    let took = time(&wait["time_ns"]);
    assert!(
        (waited..=most).contains(&took),
        "{took:?} is not between {waited:?} and {most:?}"
    );
}

#[test]
fn the_light_mode_has_no_times_and_says_why() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let watch = Watch::start(&[]);
    let (mut client, mut server) = connect(&listener);
    client.write_all(b"hello").unwrap();
    server.read_exact(&mut [0; 5]).unwrap();
    drop((client, server));
    let table = watch.finish();
    let (client, server) = sides(&table, port);
    for value in [
        &client["write"]["time_ns"],
        &client["write"]["histogram"],
        &server["read"]["time_ns"],
        &server["accept"],
    ] {
        assert_eq!(*value, Value::Null, "{table:#}");
    }
    for metric in ["accept", "read.time_ns", "write.time_ns"] {
        assert_eq!(table["unavailable"][metric], "needs the timed mode");
    }
}

#[test]
fn with_every_source_denied_the_reason_is_there() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let watch = Watch::start(&[WITHOUT_LENGTHS, "--deny-probe=network_call", "--timed"]);
    let (mut client, mut server) = connect(&listener);
    client.write_all(b"hello").unwrap();
    server.read_exact(&mut [0; 5]).unwrap();
    drop((client, server));
    let table = watch.finish();
    let (client, server) = sides(&table, port);
    let values = [&client["write"], &client["write_rtt_us"], &server["read"]];
    for value in values.into_iter().chain([&server["accept"]]) {
        assert_eq!(*value, Value::Null, "{table:#}");
    }
    for metric in ["write", "read", "write_rtt_us", WAIT, "accept"] {
        let reason = table["unavailable"][metric].as_str().unwrap_or_default();
        assert_eq!(reason, "network_call is denied by --deny-probe", "{metric}");
        assert_eq!(table["sources"][metric], Value::Null);
    }
    // What needs neither is still there.
    assert_eq!(client["connect"]["count"], 1);
    assert_eq!(client["socket"]["sent_bytes"], 5);
}

/// The data of every step below.
const PIECE: usize = 1000;

#[test]
fn every_way_to_read_and_write_is_counted_once_and_timed() {
    for (arguments, source) in SOURCES {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let watch = Watch::start(arguments);
        let (mut client, mut server) = connect(&listener);
        let mut expected = Expected::default();
        for step in STEPS {
            step(&mut client, &mut server, &mut expected);
        }
        drop((client, server));
        let table = watch.finish();
        let (client, server) = sides(&table, port);
        let (write, read) = (&client["write"], &server["read"]);
        assert_eq!(number(&write["bytes"]), expected.bytes, "{source}");
        assert_eq!(number(&write["count"]), expected.writes, "{source}");
        assert_eq!(number(&read["bytes"]), expected.bytes, "{source}");
        // Several messages may come in one call.
        assert_eq!(
            total(&write["histogram"]),
            expected.writes - expected.messages_sent + 1
        );
        let (reads, messages) = (expected.reads, expected.messages_received);
        assert_eq!(total(&read["histogram"]), reads - messages + 1, "{source}");
        assert_eq!(number(&read["count"]), reads, "{source}");
        assert_eq!(client["socket"]["sent_bytes"], expected.bytes);
        assert_eq!(client["socket"]["written_bytes"], expected.bytes);
        assert_eq!(server["socket"]["read_bytes"], expected.bytes);
        assert_eq!(table["unresolved"], serde_json::json!({}), "{table:#}");
    }
}

/// What the steps have done.
#[derive(Debug, Default)]
struct Expected {
    bytes: u64,
    writes: u64,
    reads: u64,
    /// Of the one `sendmmsg`, and of the one `recvmmsg`.
    messages_sent: u64,
    messages_received: u64,
}

type Step = fn(&mut TcpStream, &mut TcpStream, &mut Expected);

const STEPS: [Step; 6] = [
    plain,
    looked_at,
    vectored,
    messages,
    sent_from_a_file,
    spliced,
];

impl Expected {
    fn add(&mut self, bytes: usize, writes: u64, reads: u64) {
        self.bytes += bytes as u64;
        self.writes += writes;
        self.reads += reads;
    }
}

/// `sendto` and `recvfrom`; then `write` and `read`.
fn plain(client: &mut TcpStream, server: &mut TcpStream, expected: &mut Expected) {
    client.write_all(&[1; PIECE]).unwrap();
    read_whole(server, PIECE);
    rustix::io::write(&*client, &[2; PIECE]).unwrap();
    wait_for_data(server, PIECE);
    assert_eq!(rustix::io::read(&*server, &mut [0; PIECE]).unwrap(), PIECE);
    expected.add(2 * PIECE, 2, 2);
}

fn looked_at(client: &mut TcpStream, server: &mut TcpStream, expected: &mut Expected) {
    client.write_all(&[3; PIECE]).unwrap();
    wait_for_data(server, PIECE);
    read_whole(server, PIECE);
    expected.add(PIECE, 1, 1);
}

/// `writev` and `readv`.
fn vectored(client: &mut TcpStream, server: &mut TcpStream, expected: &mut Expected) {
    let half = [4; PIECE / 2];
    let written = client.write_vectored(&[IoSlice::new(&half), IoSlice::new(&half)]);
    assert_eq!(written.unwrap(), PIECE);
    wait_for_data(server, PIECE);
    let (mut first, mut second) = ([0; PIECE / 2], [0; PIECE / 2]);
    let mut slices = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
    assert_eq!(server.read_vectored(&mut slices).unwrap(), PIECE);
    expected.add(PIECE, 1, 1);
}

/// `sendmmsg` and `recvmmsg`.
fn messages(client: &mut TcpStream, server: &mut TcpStream, expected: &mut Expected) {
    const MESSAGES: usize = 3;
    let mut data = [5_u8; PIECE];
    assert_eq!(
        with_messages::<MESSAGES>(&mut data, |headers| {
            // SAFETY: the headers and what they point to live through the call.
            unsafe {
                libc::sendmmsg(
                    client.as_raw_fd(),
                    headers.as_mut_ptr(),
                    u32::try_from(MESSAGES).unwrap(),
                    0,
                )
            }
        }),
        MESSAGES
    );
    let bytes = MESSAGES * PIECE;
    wait_for_data(server, bytes);
    let received = with_messages::<MESSAGES>(&mut data, |headers| {
        let nowhere = std::ptr::null_mut();
        // SAFETY: as above.
        unsafe {
            libc::recvmmsg(
                server.as_raw_fd(),
                headers.as_mut_ptr(),
                u32::try_from(MESSAGES).unwrap(),
                0,
                nowhere,
            )
        }
    });
    assert_eq!(received, MESSAGES);
    expected.add(bytes, MESSAGES as u64, MESSAGES as u64);
    expected.messages_sent = MESSAGES as u64;
    expected.messages_received = MESSAGES as u64;
}

/// Calls with headers of messages that all have the same data.
fn with_messages<const N: usize>(
    data: &mut [u8],
    call: impl FnOnce(&mut [libc::mmsghdr; N]) -> libc::c_int,
) -> usize {
    let mut vector = libc::iovec {
        iov_base: data.as_mut_ptr().cast(),
        iov_len: data.len(),
    };
    // SAFETY: zeros are a header without anything.
    let mut headers: [libc::mmsghdr; N] = unsafe { std::mem::zeroed() };
    for header in &mut headers {
        header.msg_hdr.msg_iov = &raw mut vector;
        header.msg_hdr.msg_iovlen = 1;
    }
    let done = call(&mut headers);
    for header in &headers {
        assert_eq!(header.msg_len as usize, data.len());
    }
    usize::try_from(done).unwrap()
}

fn sent_from_a_file(client: &mut TcpStream, server: &mut TcpStream, expected: &mut Expected) {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&[6; PIECE]).unwrap();
    let mut offset = 0;
    // SAFETY: the offset lives through the call.
    let sent = unsafe {
        let (to, from) = (client.as_raw_fd(), file.as_raw_fd());
        libc::sendfile(to, from, &raw mut offset, PIECE)
    };
    assert_eq!(sent, PIECE.cast_signed());
    read_whole(server, PIECE);
    expected.add(PIECE, 1, 1);
}

/// Into the socket out of a pipe, and out of it into one.
fn spliced(client: &mut TcpStream, server: &mut TcpStream, expected: &mut Expected) {
    let (mut out, mut into) = std::io::pipe().unwrap();
    into.write_all(&[8; PIECE]).unwrap();
    splice(out.as_raw_fd(), client.as_raw_fd());
    wait_for_data(server, PIECE);
    splice(server.as_raw_fd(), into.as_raw_fd());
    out.read_exact(&mut [0; PIECE]).unwrap();
    expected.add(PIECE, 1, 1);
}

fn splice(from: RawFd, to: RawFd) {
    let nowhere = std::ptr::null_mut();
    // SAFETY: no pointers are passed.
    let moved = unsafe { libc::splice(from, nowhere, to, nowhere, PIECE, 0) };
    assert_eq!(moved, PIECE.cast_signed());
}

/// Waits until so much can be read at once, by looking at it.
fn wait_for_data(stream: &TcpStream, bytes: usize) {
    let mut buffer = vec![0; bytes];
    wait_until("the data has arrived", EXIT, || {
        stream.peek(&mut buffer).unwrap() == bytes
    })
    .unwrap();
}

/// Reads what is there in one call.
fn read_whole(stream: &mut TcpStream, bytes: usize) {
    wait_for_data(stream, bytes);
    assert_eq!(stream.read(&mut vec![0; bytes]).unwrap(), bytes);
}
