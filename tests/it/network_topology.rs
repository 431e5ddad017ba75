//! Who is at the other end, where addresses alone do not say it: redirected and translated
//! connections, names of addresses, and numbers of processes that are used again.

use std::{
    ffi::CString,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream, UdpSocket},
    os::fd::OwnedFd,
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::Result;
use profiler_tests::{
    agent::{self, Agent},
    cleanup::{Guard, scratch_directory},
    netns::{Netns, ip},
    paths,
    process::{Launch, Running},
    wait::wait_for,
};
use rustix::process::{Pid, WaitOptions, waitpid};
use serde_json::{Value, json};

use crate::{
    edges::{Watch, number},
    targets::{EXIT, START},
};

/// The command `net`, limited to a network namespace.
struct NetCommand {
    running: Running,
    _folder: Guard,
}

impl NetCommand {
    /// Returns when it watches.
    fn start(netns: &Netns, more: &[&str]) -> Self {
        let path = netns.path();
        let mut arguments = vec!["net", "--netns", path.to_str().unwrap(), "--json"];
        arguments.push("--duration=300s");
        arguments.extend(more);
        let (folder, guard) = scratch_directory("net").unwrap();
        let running = agent::launch(&arguments, "net", &folder).unwrap();
        wait_for("the command watches", START, || {
            running.errors().contains("watching").then_some(())
        })
        .unwrap();
        Self {
            running,
            _folder: guard,
        }
    }

    fn finish(mut self) -> Value {
        self.running
            .interrupt(rustix::process::Signal::TERM)
            .unwrap();
        let output = self.running.output();
        serde_json::from_str(&output)
            .unwrap_or_else(|error| panic!("{error}: {output}\n{}", self.running.errors()))
    }
}

/// The edges whose server has the port.
fn edges_to(table: &Value, port: u16) -> Vec<&Value> {
    let edges = table["edges"].as_array().unwrap();
    let found = edges.iter().filter(|edge| edge["server"]["port"] == port);
    found.collect()
}

/// A server with answers of 512 bytes, in a namespace.
struct Server {
    running: Running,
    folder: PathBuf,
    _guard: Guard,
}

impl Server {
    fn start(netns: &Netns, listen: &str) -> Self {
        let (folder, guard) = scratch_directory("server").unwrap();
        let program = paths::own_program("mesh-server").unwrap();
        let mut running = Launch::new(&program, "server", &folder)
            .args(["--listen", listen])
            .netns(netns)
            .start()
            .unwrap();
        running
            .wait_for_line(START, |line| line.starts_with("listening").then_some(()))
            .unwrap();
        Self {
            running,
            folder,
            _guard: guard,
        }
    }
}

/// Sends one request and reads its answer; the connection stays open.
fn ask(stream: &mut TcpStream) -> Result<()> {
    stream.set_read_timeout(Some(EXIT))?;
    stream.write_all(b"GET / HTTP/1.1\r\nhost: server\r\n\r\n")?;
    let mut answer = Vec::new();
    let mut part = [0; 1024];
    while !answer.ends_with(b"xxxx") {
        let count = stream.read(&mut part)?;
        anyhow::ensure!(count > 0, "the server closed the connection");
        answer.extend(&part[..count]);
    }
    Ok(())
}

#[test]
fn a_redirected_connection_from_outside_keeps_where_it_was_to_go() {
    let (outside, pod) = (
        Netns::create("outside").unwrap(),
        Netns::create("pod").unwrap(),
    );
    Netns::join((&outside, "10.198.0.1/24"), (&pod, "10.198.0.2/24")).unwrap();
    let rule = "iptables -w -t nat -A PREROUTING -p tcp --dport 80 -j REDIRECT --to-ports 9000";
    pod.run(&rule.split(' ').collect::<Vec<_>>()).unwrap();
    let server = Server::start(&pod, "0.0.0.0:9000");
    // No process is in the client's namespace, only a thread for a moment: its sockets are nowhere.
    let connect = |port: u16| {
        let address = SocketAddr::new("10.198.0.2".parse().unwrap(), port);
        let mut stream = outside.within(|| Ok(TcpStream::connect(address)?)).unwrap();
        ask(&mut stream).unwrap();
        stream
    };
    let conntrack = "--deny-probe=conntrack";
    let asking = "--deny-probe=original_destination";
    // By connection tracking, by asking the socket, and by neither.
    for denied in [&[][..], &[conntrack], &[conntrack, asking]] {
        let old = connect(80);
        let watch = NetCommand::start(&pod, denied);
        let new = connect(80);
        let direct = connect(9000);
        let table = watch.finish();
        drop((old, new, direct));
        let edges = edges_to(&table, 9000);
        for edge in &edges {
            assert_eq!(edge["client"]["pid"], Value::Null, "{edge:#}");
            assert_eq!(edge["client"]["address"], "10.198.0.1", "{edge:#}");
            assert_eq!(edge["server"]["pid"], server.running.pid(), "{edge:#}");
            assert_eq!(edge["metrics"]["client"], Value::Null, "{edge:#}");
        }
        let count = |destination: Value| -> u64 {
            let of = edges
                .iter()
                .filter(|edge| edge["original_destination"] == destination)
                .map(|edge| number(&edge["metrics"]["server"]["connections"]["count"]));
            of.sum()
        };
        let unresolved = &table["unresolved"]["original_destination"];
        let (redirected, unknown) = (count(json!("10.198.0.2:80")), count(Value::Null));
        if denied.len() < 2 {
            assert_eq!((redirected, unknown), (2, 1), "{denied:?}: {table:#}");
            assert_eq!(*unresolved, Value::Null, "{denied:?}: {table:#}");
        } else {
            assert_eq!((redirected, unknown), (0, 3), "{denied:?}: {table:#}");
            assert_eq!(*unresolved, 3, "{table:#}");
        }
        let reason = &table["unavailable"]["translated_addresses"];
        assert_eq!(reason.is_string(), !denied.is_empty(), "{table:#}");
    }
}

/// A client, a router that translates, and a server, each in its namespace.
struct Translated {
    client: Netns,
    server: Netns,
    // Connection tracking is read where processes are.
    _in_router: Running,
    _router: Netns,
    _folder: Guard,
}

impl Translated {
    /// A service address in front of the server, and the router's in front of the client, in the
    /// manner of kube-proxy.
    fn new() -> Self {
        let [client, router, server] =
            ["tclient", "trouter", "tserver"].map(|name| Netns::create(name).unwrap());
        for (index, end) in [&client, &server].into_iter().enumerate() {
            let link = format!("eth{index}");
            ip(&[
                "link",
                "add",
                "eth0",
                "netns",
                end.name(),
                "type",
                "veth",
                "peer",
                "name",
                &link,
                "netns",
                router.name(),
            ])
            .unwrap();
            for (netns, link, v4, v6) in [
                (
                    end,
                    "eth0",
                    format!("10.197.{index}.2/24"),
                    format!("fd97:{index}::2/64"),
                ),
                (
                    &router,
                    link.as_str(),
                    format!("10.197.{index}.1/24"),
                    format!("fd97:{index}::1/64"),
                ),
            ] {
                ip(&["-n", netns.name(), "address", "add", &v4, "dev", link]).unwrap();
                ip(&[
                    "-n",
                    netns.name(),
                    "address",
                    "add",
                    &v6,
                    "dev",
                    link,
                    "nodad",
                ])
                .unwrap();
                ip(&["-n", netns.name(), "link", "set", link, "up"]).unwrap();
            }
            for (family, gateway) in [
                ("-4", format!("10.197.{index}.1")),
                ("-6", format!("fd97:{index}::1")),
            ] {
                ip(&[
                    "-n",
                    end.name(),
                    family,
                    "route",
                    "add",
                    "default",
                    "via",
                    &gateway,
                ])
                .unwrap();
            }
        }
        for command in [
            "sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1",
            "iptables -w -t nat -A PREROUTING -p tcp -d 10.96.0.1 --dport 80 -j DNAT --to-destination 10.197.1.2:8080",
            "iptables -w -t nat -A POSTROUTING -p tcp -d 10.197.1.2 -j MASQUERADE --random",
            "ip6tables -w -t nat -A PREROUTING -p tcp -d fd96::1 --dport 80 -j DNAT --to-destination [fd97:1::2]:8080",
            "ip6tables -w -t nat -A POSTROUTING -p tcp -d fd97:1::2 -j MASQUERADE --random",
        ] {
            router.run(&command.split(' ').collect::<Vec<_>>()).unwrap();
        }
        let (folder, guard) = scratch_directory("router").unwrap();
        let in_router = Launch::new("/bin/sleep".as_ref(), "router", &folder)
            .args(["1000"])
            .netns(&router)
            .start()
            .unwrap();
        Self {
            client,
            server,
            _in_router: in_router,
            _router: router,
            _folder: guard,
        }
    }
}

#[test]
fn both_ends_are_joined_through_a_service_address_and_masquerade() {
    const REQUESTS: u64 = 20;
    let agent = Agent::start().unwrap();
    let translated = Translated::new();
    let server = Server::start(&translated.server, "[::]:8080");
    let watch = Watch::start(&agent, &json!({ "all": true }));
    let program = paths::own_program("mesh-client").unwrap();
    let services = [
        ("10.96.0.1:80", "10.197.0.2", "10.197.1.2"),
        ("[fd96::1]:80", "fd97::2", "fd97:1::2"),
    ];
    let mut clients = Vec::new();
    for (service, _, _) in services {
        let client = Launch::new(
            &program,
            &format!("client-{}", clients.len()),
            &server.folder,
        )
        .args([format!("--url=http://{service}/"), "--connections=2".into()])
        .args([format!("--requests={REQUESTS}"), "--duration=60s".into()])
        .netns(&translated.client)
        .start()
        .unwrap();
        clients.push(client.pid());
        client.finish(EXIT).unwrap();
    }
    let table = watch.finish();
    for (pid, (service, from, to)) in clients.into_iter().zip(services) {
        let edges = table["edges"].as_array().unwrap();
        let own: Vec<_> = edges
            .iter()
            .filter(|edge| edge["client"]["pid"] == pid)
            .collect();
        let [edge] = own.as_slice() else {
            panic!("{service}: {table:#}");
        };
        assert_eq!(edge["server"]["pid"], server.running.pid(), "{edge:#}");
        assert_eq!(edge["client"]["address"], from, "{edge:#}");
        assert_eq!(edge["server"]["address"], to, "{edge:#}");
        assert_eq!(edge["server"]["port"], 8080, "{edge:#}");
        assert_eq!(edge["original_destination"], service, "{edge:#}");
        let (client, server) = (&edge["metrics"]["client"], &edge["metrics"]["server"]);
        assert_eq!(number(&client["connections"]["count"]), 2, "{edge:#}");
        assert_eq!(number(&client["write"]["count"]), REQUESTS, "{edge:#}");
        for (one, other) in [(client, server), (server, client)] {
            assert_eq!(one["write"]["bytes"], other["read"]["bytes"], "{edge:#}");
        }
    }
    // No edge is left whose client saw only the router. Other tests have a port 8080 as well.
    let own = |edge: &&Value| {
        let is_own = |address: &Value| {
            let text = address.as_str().unwrap_or_default();
            ["10.197.", "fd97:", "10.96.0.1", "fd96:"]
                .iter()
                .any(|prefix| text.starts_with(prefix))
        };
        edge["server"]["pid"] == server.running.pid()
            || ["client", "server"]
                .iter()
                .any(|end| is_own(&edge[end]["address"]))
    };
    let all = edges_to(&table, 8080);
    assert_eq!(
        all.into_iter().filter(own).count(),
        services.len(),
        "{table:#}"
    );
}

/// The answer to a question, with one address of four bytes.
fn dns_answer(question: &[u8], address: [u8; 4]) -> Vec<u8> {
    let mut answer = question.to_vec();
    answer[2..4].copy_from_slice(&[0x81, 0x80]);
    answer[6..8].copy_from_slice(&[0, 1]);
    // The name of the question, an address, an internet address, for a minute.
    answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
    answer.extend(address);
    answer
}

#[test]
fn an_address_has_the_name_that_was_asked_for() {
    let netns = Netns::create("names").unwrap();
    ip(&[
        "-n",
        netns.name(),
        "address",
        "add",
        "10.196.0.1/24",
        "dev",
        "lo",
    ])
    .unwrap();
    let watch = NetCommand::start(&netns, &[]);
    let port = netns
        .within(|| {
            let server = UdpSocket::bind("127.0.0.1:53")?;
            let client = UdpSocket::bind("127.0.0.1:0")?;
            client.set_read_timeout(Some(EXIT))?;
            client.connect(server.local_addr()?)?;
            let mut question = vec![7, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
            question.extend(b"\x07service\x07example\x00\x00\x01\x00\x01");
            client.send(&question)?;
            let mut bytes = [0; 512];
            let (count, from) = server.recv_from(&mut bytes)?;
            server.send_to(&dns_answer(&bytes[..count], [10, 196, 0, 1]), from)?;
            client.recv(&mut bytes)?;
            let listener = TcpListener::bind("10.196.0.1:0")?;
            let mut stream = TcpStream::connect(listener.local_addr()?)?;
            stream.write_all(b"hello")?;
            let unnamed = TcpListener::bind("127.0.0.1:0")?;
            drop(TcpStream::connect(unnamed.local_addr()?)?);
            Ok([listener.local_addr()?.port(), unnamed.local_addr()?.port()])
        })
        .unwrap();
    let table = watch.finish();
    let [named, unnamed] = port.map(|port| {
        let edges = edges_to(&table, port);
        assert_eq!(edges.len(), 1, "{port}: {table:#}");
        edges[0]["server"]["name"].clone()
    });
    assert_eq!(named, "service.example", "{table:#}");
    assert_eq!(unnamed, Value::Null, "{table:#}");
    assert_eq!(table["unavailable"]["name"], Value::Null, "{table:#}");
}

/// What a process does that connects and writes.
fn connecting(port: u16) -> String {
    format!("exec 3<>/dev/tcp/127.0.0.1/{port}; echo hello >&3")
}

/// Runs a process that connects; its number.
fn connect_once(port: u16) -> u32 {
    let script = connecting(port);
    let mut child = Command::new("bash").args(["-c", &script]).spawn().unwrap();
    assert!(child.wait().unwrap().success());
    child.id()
}

/// Runs such a process with a number of our choice; not when another process has it.
fn connect_as(pid: u32, port: u16) -> bool {
    let script = CString::new(connecting(port)).unwrap();
    let words = [c"/bin/bash", c"-c", script.as_c_str()];
    let mut arguments: Vec<*const libc::c_char> = words.iter().map(|word| word.as_ptr()).collect();
    arguments.push(std::ptr::null());
    let number = i32::try_from(pid).unwrap();
    // SAFETY: zeros ask for nothing.
    let mut how: libc::clone_args = unsafe { std::mem::zeroed() };
    how.exit_signal = u64::try_from(libc::SIGCHLD).unwrap();
    how.set_tid = (&raw const number).addr() as u64;
    how.set_tid_size = 1;
    // SAFETY: what `how` points to lives through the call. The child has no memory in common with this process, and
    // makes only system calls.
    let child = unsafe {
        let child = libc::syscall(libc::SYS_clone3, &raw mut how, size_of_val(&how));
        if child == 0 {
            libc::execv(arguments[0], arguments.as_ptr());
            libc::_exit(127);
        }
        child
    };
    if child < 0 {
        let error = std::io::Error::last_os_error();
        assert_eq!(error.raw_os_error(), Some(libc::EEXIST), "{error}");
        return false;
    }
    assert_eq!(child, i64::from(number));
    let (_, status) = waitpid(Pid::from_raw(number), WaitOptions::empty())
        .unwrap()
        .unwrap();
    assert_eq!(status.exit_status(), Some(0), "{status:?}");
    true
}

#[test]
fn a_process_with_the_number_of_another_has_its_own_edge() {
    let agent = Agent::start().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let watch = Watch::start(&agent, &json!({ "pids": [std::process::id()] }));
    let first = connect_once(port);
    // Start times are told apart by their ticks of 10 ms.
    let ended = Instant::now();
    wait_for("two ticks pass", EXIT, || {
        (ended.elapsed() > Duration::from_millis(20)).then_some(())
    })
    .unwrap();
    // The number may have been given to another process meanwhile.
    wait_for("the number is used again", EXIT, || {
        connect_as(first, port).then_some(())
    })
    .unwrap();
    for _ in 0..2 {
        let (mut stream, _from) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 6]).unwrap();
    }
    let table = watch.finish();
    let starts: Vec<u64> = edges_to(&table, port)
        .iter()
        .filter(|edge| edge["client"]["pid"] == first)
        .map(|edge| number(&edge["client"]["start_ticks"]))
        .collect();
    assert_eq!(starts.len(), 2, "{table:#}");
    assert_ne!(starts[0], starts[1]);
}

/// Hands the server's end of a connection to a process of its own, which reads a line unless
/// `is_read`, and answers; the process's number.
fn serve_from_child(client: &mut TcpStream, server: TcpStream, is_read: bool) -> u32 {
    let script = if is_read {
        "echo answer"
    } else {
        "read line && echo answer"
    };
    let input: OwnedFd = server.into();
    let output = input.try_clone().unwrap();
    let mut child = Command::new("bash")
        .args(["-c", script])
        .stdin(input)
        .stdout(output)
        .spawn()
        .unwrap();
    let mut answer = Vec::new();
    client.set_read_timeout(Some(EXIT)).unwrap();
    client.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, b"answer\n");
    assert!(child.wait().unwrap().success());
    child.id()
}

#[test]
fn a_connection_belongs_to_the_process_that_uses_it_and_not_to_the_one_that_listens() {
    let agent = Agent::start().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let watch = Watch::start(&agent, &json!({ "pids": [std::process::id()] }));
    let mut children = Vec::new();
    for is_read in [false, true] {
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _from) = listener.accept().unwrap();
        client.write_all(b"hello\n").unwrap();
        if is_read {
            server.read_exact(&mut [0; 6]).unwrap();
        }
        children.push(serve_from_child(&mut client, server, is_read));
    }
    let table = watch.finish();
    let edges = edges_to(&table, port);
    assert_eq!(edges.len(), 2, "{table:#}");
    let own = edges
        .iter()
        .find(|edge| edge["server"]["pid"] == children[0]);
    assert!(own.is_some(), "{children:?}: {table:#}");
    for edge in edges {
        assert_eq!(edge["client"]["pid"], std::process::id(), "{edge:#}");
        assert_eq!(edge["metrics"]["server"]["write"]["bytes"], 7, "{edge:#}");
        assert_eq!(edge["metrics"]["server"]["read"]["bytes"], 6, "{edge:#}");
    }
    // The second was read by one process and written by another: it is one of theirs, and counted.
    let shared = &table["unresolved"]["used_by_several_processes"];
    assert_eq!(*shared, 1, "{table:#}");
}
