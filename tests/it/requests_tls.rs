//! Requests inside TLS, of every library that is read: each is reported once, bound to its socket.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use profiler_tests::{
    assert_measured, breakpoints,
    cleanup::{Guard, scratch_directory},
    kernel_objects,
    peers::{
        asked::Asked,
        curl::{self, Call, Done},
        gnutls,
        h2load::{self, Load},
        held,
        nginx::{Nginx, Speaks},
        pipelining,
        postgres::Postgres,
        short_tls::{self, Client},
        tls::{self, Program},
        watch::{Edges, Expected, Gaps, Report, Watch},
    },
    wait::wait_for,
};
use serde_json::Value;

/// For the kernel, behind the end of a process that was killed.
const GONE: Duration = Duration::from_secs(10);
/// Rounds of requests of a client, 6 each.
const ROUNDS: u32 = 20;

/// A folder with a certificate.
fn folder() -> (PathBuf, Guard) {
    let (folder, guard) = scratch_directory("tls").unwrap();
    tls::write_certificate(&folder).unwrap();
    (folder, guard)
}

/// nginx with one worker, so that few probes come and go.
fn nginx(folder: &Path) -> Nginx {
    Nginx::start_with_workers(folder, Speaks::Tls, 1).unwrap()
}

fn check(
    watch: Watch,
    port: u16,
    protocol: &str,
    (client, server): (&[u32], &[u32]),
    asked: &[Asked],
) {
    check_but(watch, port, protocol, (client, server), (asked, Gaps::None));
}

fn check_but(
    watch: Watch,
    port: u16,
    protocol: &str,
    (client, server): (&[u32], &[u32]),
    (asked, gaps): (&[Asked], Gaps),
) {
    let report = watch.finish().unwrap();
    check_report(&report, port, protocol, (client, server), (asked, gaps));
}

fn check_report(
    report: &Report,
    port: u16,
    protocol: &str,
    (client, server): (&[u32], &[u32]),
    (asked, gaps): (&[Asked], Gaps),
) {
    let expected = Expected {
        protocol,
        tls: true,
        edges: Edges::To(port),
        clients: client,
        servers: server,
        asked,
    };
    report.check_but(&expected, gaps).unwrap();
}

/// What a server of these tests answers.
fn calls() -> Vec<Call> {
    let mut calls = Vec::new();
    for _ in 0..ROUNDS {
        calls.extend(
            ["/files/0", "/files/700", "/files/50000"].map(|path| Call::new("GET", path, 200)),
        );
        calls.push(Call::new("HEAD", "/files/700", 200));
        calls.push(Call::new("GET", "/status/404", 404));
        calls.push(Call::new("GET", "/status/204", 204));
        calls.push(Call::new("POST", "/upload", 200).body(3000));
        calls.push(Call::new("POST", "/upload", 200).body(100_000));
    }
    calls
}

/// The line of curl's configuration that trusts the server.
fn authority(folder: &Path) -> String {
    format!("cacert = {}", folder.join("server.pem").display())
}

/// All calls by curl over one connection, which begins when curl has probes.
fn call_with_curl(folder: &Path, port: u16, version: &str) -> Done {
    let base = format!("https://127.0.0.1:{port}");
    curl::run_probed(folder, &base, &calls(), &[version, &authority(folder)]).unwrap()
}

/// curl against a program's server, both sides read.
fn curl_against(program: Program, version: &str, protocol: &str) {
    let (folder, _guard) = folder();
    let (server, port) = program.serve(&folder).unwrap();
    let watch = Watch::start_tls(&[server.pid()]).unwrap();
    let done = call_with_curl(&folder, port, version);
    check(
        watch,
        port,
        protocol,
        (&done.pids, &[server.pid()]),
        &done.asked,
    );
}

/// A program's client against nginx, both sides read.
fn program_against_nginx(program: Program, version: &str, protocol: &str) {
    let (folder, _guard) = folder();
    let nginx = nginx(&folder);
    let pids = nginx.pids().unwrap();
    let watch = Watch::start_tls(&pids).unwrap();
    let (client, asked) = program
        .call_probed(&folder, nginx.port, version, ROUNDS)
        .unwrap();
    assert_eq!(asked.len(), 6 * ROUNDS as usize);
    assert_eq!(nginx.log(asked.len()).unwrap().len(), asked.len());
    check(watch, nginx.port, protocol, (&[client], &pids), &asked);
}

#[test]
fn curl_and_nginx_with_openssl_over_http1() {
    curl_and_nginx("http1.1", "http1");
}

#[test]
fn curl_and_nginx_with_openssl_over_http2() {
    curl_and_nginx("http2", "http2");
}

fn curl_and_nginx(version: &str, protocol: &str) {
    let (folder, _guard) = folder();
    let nginx = Nginx::start(&folder, Speaks::Tls).unwrap();
    let pids = nginx.pids().unwrap();
    let watch = Watch::start_tls(&pids).unwrap();
    let done = call_with_curl(&folder, nginx.port, version);
    assert_eq!(nginx.log(done.asked.len()).unwrap().len(), done.asked.len());
    check(
        watch,
        nginx.port,
        protocol,
        (&done.pids, &pids),
        &done.asked,
    );
}

/// As before kernels had links for many places.
#[test]
fn curl_and_nginx_where_each_probe_has_its_own_link() {
    let (folder, _guard) = folder();
    let nginx = Nginx::start(&folder, Speaks::Tls).unwrap();
    let pids = nginx.pids().unwrap();
    let watch = Watch::start_with(&pids, &["--tls", WITHOUT_OF_MANY]).unwrap();
    let done = call_with_curl(&folder, nginx.port, "http1.1");
    let ends = (done.pids.as_slice(), pids.as_slice());
    check(watch, nginx.port, "http1", ends, &done.asked);
}

/// Breakpoints in the code of all processes of a server.
fn all_breakpoints(pids: &[u32]) -> usize {
    pids.iter()
        .map(|pid| breakpoints::count(*pid).unwrap())
        .sum()
}

#[test]
fn code_of_the_target_is_touched_only_by_tls_and_only_while_the_task_runs() {
    let (folder, _guard) = folder();
    let nginx = Nginx::start(&folder, Speaks::Tls).unwrap();
    let pids = nginx.pids().unwrap();
    assert_eq!(all_breakpoints(&pids), 0);
    let watch = Watch::start(&pids).unwrap();
    let base = format!("https://127.0.0.1:{}", nginx.port);
    curl::run(&folder, &base, &calls(), &[&authority(&folder)]).unwrap();
    assert_eq!(all_breakpoints(&pids), 0);
    watch.finish().unwrap();
    let watch = Watch::start_tls(&pids).unwrap();
    assert!(all_breakpoints(&pids) >= pids.len());
    watch.finish().unwrap();
    assert_eq!(all_breakpoints(&pids), 0);
    let watch = Watch::start_tls(&pids).unwrap();
    assert!(all_breakpoints(&pids) >= pids.len());
    // Killed: nothing of it can tidy up.
    drop(watch);
    let gone = wait_for("the kernel has removed them", GONE, || {
        (all_breakpoints(&pids) == 0).then_some(())
    });
    gone.unwrap();
}

/// How the kernel calls the links of one probe each, and those of many.
const OF_ONE: &str = "perf";
const OF_MANY: &str = "uprobe_multi";
const WITHOUT_OF_MANY: &str = "--deny-probe=uprobe_multi";

/// Links of a process that are probes of files, of one kind.
fn probes_of(pid: u32, kind: &str) -> usize {
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fdinfo")).unwrap();
    let texts = descriptors.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok());
    let is_probe = |text: &String| {
        let mut lines = text.lines();
        lines.any(|line| line.strip_prefix("link_type:\t") == Some(kind))
    };
    texts.filter(is_probe).count()
}

#[test]
fn twenty_workers_have_one_set_of_probes() {
    twenty_workers(&["--tls"], |pid| {
        // One for each program.
        let links = probes_of(pid, OF_MANY);
        assert!((1..=3).contains(&links), "{links} links");
        assert_eq!(probes_of(pid, OF_ONE), 0);
    });
}

#[test]
fn twenty_workers_have_one_set_of_probes_with_a_link_each() {
    twenty_workers(&["--tls", WITHOUT_OF_MANY], |pid| {
        let probes = probes_of(pid, OF_ONE);
        assert!((4..20).contains(&probes), "{probes} probes for 20 workers");
        assert_eq!(probes_of(pid, OF_MANY), 0);
    });
}

/// More than those from which on a library's probes are put in once for all.
fn twenty_workers(options: &[&str], check_links: impl Fn(u32)) {
    const WORKERS: usize = 20;
    const LOAD: u32 = 1000;
    let (folder, _guard) = folder();
    let nginx = Nginx::start_with_workers(&folder, Speaks::Tls, WORKERS).unwrap();
    let pids = nginx.pids().unwrap();
    assert!(pids.len() > WORKERS, "{pids:?}");
    let watch = Watch::start_with(&pids, options).unwrap();
    assert!(
        pids.iter().all(|pid| breakpoints::count(*pid).unwrap() > 0),
        "some have no probes"
    );
    check_links(watch.pid());
    let load = Load {
        base: &format!("https://127.0.0.1:{}", nginx.port),
        paths: &["/files/700", "/files/4096"],
        requests: LOAD,
        connections: 40,
        streams: 1,
        rate: Some(500),
        http1: true,
        probed: true,
    };
    let client = h2load::run(&folder, load).unwrap();
    let asked = nginx.log(LOAD as usize).unwrap();
    let ends = (&[client][..], pids.as_slice());
    check(watch, nginx.port, "http1", ends, &asked);
    assert_eq!(all_breakpoints(&pids), 0);
}

#[test]
fn a_go_server_over_http1_and_http2() {
    curl_against(Program::Go, "http1.1", "http1");
    curl_against(Program::Go, "http2", "http2");
}

#[test]
fn a_go_client_over_http1_and_http2() {
    program_against_nginx(Program::Go, "h1", "http1");
    program_against_nginx(Program::Go, "h2", "http2");
}

/// Their TLS library works on memory: its sessions are known by the ciphertext that the sockets send.
#[test]
fn node_over_http1_and_http2() {
    curl_against(Program::Node, "http1.1", "http1");
    node_over_http2();
    program_against_nginx(Program::Node, "h1", "http1");
}

/// It writes a body of 50,000 bytes in one call: frames behind the first begin where nothing is looked at.
fn node_over_http2() {
    let (folder, _guard) = folder();
    let (server, port) = Program::Node.serve(&folder).unwrap();
    let watch = Watch::start_tls(&[server.pid()]).unwrap();
    let mut done = call_with_curl(&folder, port, "http2");
    let mut large = 0;
    for one in &mut done.asked {
        one.sizes_may_be_unknown = one.response_bytes > Some(16_000);
        large += usize::from(one.sizes_may_be_unknown);
    }
    let servers = [server.pid()];
    let ends = (done.pids.as_slice(), servers.as_slice());
    check_but(
        watch,
        port,
        "http2",
        ends,
        (&done.asked, Gaps::AtMost(large)),
    );
}

#[test]
fn asyncio_of_python() {
    curl_against(Program::PythonAsyncio, "http1.1", "http1");
    program_against_nginx(Program::PythonAsyncio, "h1", "http1");
}

/// Its methods are found by their symbols, and its sessions by the socket that is read just before.
#[test]
fn rustls_as_server_and_client() {
    curl_against(Program::Rustls, "http1.1", "http1");
    curl_against(Program::Rustls, "http2", "http2");
    program_against_nginx(Program::Rustls, "h1", "http1");
}

/// Its connections are greeted at one address and move from there, while those before them are open.
#[test]
fn many_connections_of_rustls_are_told_apart() {
    const REQUESTS: u32 = 400;
    let (folder, _guard) = folder();
    let (server, port) = Program::Rustls.serve(&folder).unwrap();
    let watch = Watch::start_tls(&[server.pid()]).unwrap();
    let load = Load {
        base: &format!("https://127.0.0.1:{port}"),
        paths: &["/files/700"],
        requests: REQUESTS,
        connections: 16,
        streams: 1,
        rate: Some(400),
        http1: true,
        probed: true,
    };
    let client = h2load::run(&folder, load).unwrap();
    let one = || Asked::new("GET", "/files/700", "200").sizes(0, 700);
    let asked: Vec<Asked> = std::iter::repeat_with(one)
        .take(REQUESTS as usize)
        .collect();
    check(watch, port, "http1", (&[client], &[server.pid()]), &asked);
}

/// Without symbols its file says so with the reason, and its connections are seen to be TLS.
#[test]
fn a_service_with_rustls_without_symbols_is_said_not_to_be_read() {
    let (folder, _guard) = folder();
    let (server, port) = Program::RustlsStripped.serve(&folder).unwrap();
    let watch = Watch::start_tls(&[server.pid()]).unwrap();
    let base = format!("https://127.0.0.1:{port}");
    let calls: Vec<Call> = (0..20)
        .map(|number| Call::new("GET", format!("/things/{number}"), 200))
        .collect();
    let done = curl::run_probed(&folder, &base, &calls, &[&authority(&folder)]).unwrap();
    let report = watch.finish().unwrap();
    let samples = report.samples(Edges::To(port)).unwrap();
    assert_eq!(samples.len(), done.asked.len());
    assert!(samples.iter().all(|sample| sample["seen_by"] == "client"));
    let files = report.json["plaintext"]["files"].as_array().unwrap();
    let of_rustls = |file: &&Value| file["path"].as_str().unwrap().contains("/rustls-");
    let [file] = files.iter().filter(of_rustls).collect::<Vec<_>>()[..] else {
        panic!("{files:?}");
    };
    assert_eq!(file["library"], Value::Null, "{file}");
    assert_eq!(file["probes"].as_array().unwrap().len(), 0, "{file}");
    let reasons = file["reasons"].to_string();
    assert!(reasons.contains("only by its symbols"), "{file}");
    let greetings = report.json["tls"].as_array().unwrap();
    let of_server = |seen: &&Value| seen["edge"]["server"]["pid"] == server.pid();
    let [greeting] = greetings.iter().filter(of_server).collect::<Vec<_>>()[..] else {
        panic!("{greetings:?}");
    };
    assert_eq!(greeting["version"], "1.3");
}

#[test]
fn requests_of_python() {
    program_against_nginx(Program::PythonRequests, "h1", "http1");
}

/// The wheel of psycopg2 brings the library; the server's processes are born with each connection.
#[test]
fn openssl_1_1_of_a_client_of_postgresql() {
    let (folder, _guard) = folder();
    let postgres = Postgres::start_tls(&folder).unwrap();
    let watch = Watch::start_tls(&[postgres.pid()]).unwrap();
    let before = postgres.logged().unwrap().0;
    let (client, library) = postgres.psycopg2(&folder).unwrap();
    let statements = postgres.logged().unwrap().0 - before;
    let report = watch.finish().unwrap();
    assert!(library.ends_with(".so.1.1"), "{library}");
    let files = report.json["plaintext"]["files"].as_array().unwrap();
    let file = files.iter().find(|file| file["path"] == library.as_str());
    assert!(!file.unwrap()["probes"].as_array().unwrap().is_empty());
    let insert = "INSERT INTO things VALUES (?)";
    let select = "SELECT name FROM things WHERE id = ?";
    let create = "CREATE TABLE things (id int PRIMARY KEY, name text)";
    let mut asked = vec![
        Asked::new("CONNECT", "CONNECT", "ok"),
        Asked::new("CREATE", create, "ok"),
        Asked::new("SELECT", "SELECT nothing FROM things", "42703"),
    ];
    for _ in 0..20 {
        asked.push(Asked::new("INSERT", insert, "ok"));
        asked.push(Asked::new("SELECT", select, "ok"));
    }
    assert_eq!(statements, asked.len() - 1);
    let samples = report.samples(Edges::To(postgres.port)).unwrap();
    let servers: Vec<u32> = samples
        .iter()
        .filter_map(|sample| sample["edge"]["server"]["pid"].as_u64())
        .map(|pid| u32::try_from(pid).unwrap())
        .collect();
    let expected = Expected {
        protocol: "postgresql",
        tls: true,
        edges: Edges::To(postgres.port),
        clients: &[client],
        servers: &servers,
        asked: &asked,
    };
    report.check_but(&expected, Gaps::LateClients).unwrap();
    assert!(!report.json.to_string().contains("hidden"));
}

#[test]
fn the_server_of_gnutls() {
    let (folder, _guard) = folder();
    let (server, port) = gnutls::serve(&folder).unwrap();
    let watch = Watch::start_tls(&[server.pid()]).unwrap();
    let calls: Vec<Call> = (0..10)
        .map(|number| Call::new("GET", format!("/page/{number}"), 200))
        .collect();
    let base = format!("https://127.0.0.1:{port}");
    let done = curl::run_probed(&folder, &base, &calls, &["http1.1", "insecure"]).unwrap();
    check(
        watch,
        port,
        "http1",
        (&done.pids, &[server.pid()]),
        &done.asked,
    );
}

#[test]
fn the_client_of_gnutls() {
    const REQUESTS: usize = 20;
    let (folder, _guard) = folder();
    let nginx = nginx(&folder);
    let pids = nginx.pids().unwrap();
    let watch = Watch::start_tls(&pids).unwrap();
    let requests: Vec<String> = (1..=REQUESTS)
        .map(|number| pipelining::get("/files/700", number == REQUESTS))
        .collect();
    let client = gnutls::call(&folder, nginx.port, &requests, "HTTP/1.1 200").unwrap();
    let asked = nginx.log(REQUESTS).unwrap();
    assert_eq!(asked.len(), REQUESTS);
    check_but(
        watch,
        nginx.port,
        "http1",
        (&[client], &pids),
        (&asked, Gaps::LateClients),
    );
}

/// A client that asks over one connection, a time for each line that it is given, and prints the status.
const ASKING: &str = "
import http.client, ssl, sys
port = int(sys.argv[1])
connection = http.client.HTTPSConnection('127.0.0.1', port, context=ssl._create_unverified_context())
for _ in sys.stdin:
    connection.request('GET', '/files/700')
    answer = connection.getresponse()
    answer.read()
    print(answer.status, flush=True)
";

struct Asking {
    client: Child,
    output: BufReader<ChildStdout>,
}

impl Asking {
    fn start(port: u16) -> Self {
        let mut client = Command::new("/usr/bin/python3")
            .args(["-c", ASKING, &port.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(client.stdout.take().unwrap());
        Self { client, output }
    }

    fn ask(&mut self) {
        self.client
            .stdin
            .as_mut()
            .unwrap()
            .write_all(b"\n")
            .unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert_eq!(line, "200\n");
    }

    fn end(mut self) {
        drop(self.client.stdin.take());
        assert!(self.client.wait().unwrap().success());
    }
}

/// What is known of the plaintext of a connection is kept for as many as there is room for; here the room is made
/// by hand.
#[test]
fn a_quiet_connection_whose_plaintext_made_room_for_others_is_read_again() {
    const BEFORE: usize = 2;
    const AFTER: usize = 3;
    let (folder, _guard) = folder();
    let nginx = nginx(&folder);
    let watch = Watch::start_tls(&nginx.pids().unwrap()).unwrap();
    let mut quiet = Asking::start(nginx.port);
    (0..BEFORE).for_each(|_| quiet.ask());
    let known = kernel_objects::empty_map(watch.pid(), "TLS_CONNECTIONS").unwrap();
    assert!(known > 0);
    (0..AFTER).for_each(|_| quiet.ask());
    quiet.end();
    let report = watch.finish().unwrap();
    let operations = report.operations(Edges::To(nginx.port)).unwrap();
    let counts = operations
        .iter()
        .map(|operation| operation["count"].as_u64().unwrap());
    assert_eq!(
        counts.sum::<u64>(),
        (BEFORE + AFTER) as u64,
        "{operations:#?}"
    );
}

#[test]
fn connections_that_are_closed_leave_their_room_to_others() {
    const CONNECTIONS: usize = 10;
    let (folder, _guard) = folder();
    let nginx = nginx(&folder);
    let watch = Watch::start_tls(&nginx.pids().unwrap()).unwrap();
    for _ in 0..CONNECTIONS {
        let mut client = Asking::start(nginx.port);
        client.ask();
        client.end();
    }
    let left = kernel_objects::empty_map(watch.pid(), "TLS_CONNECTIONS").unwrap();
    assert!(left < CONNECTIONS / 2, "{left}");
    watch.finish().unwrap();
}

/// How long probes are there depends on what they cost, and that on what else the machine does; and what this process
/// asks others would see.
mod alone {
    use super::*;

    /// nginx gives the memory of a session to the next one while the peer still closes its end of the former connection.
    #[test]
    fn requests_of_short_connections_stand_under_their_own_clients() {
        const CONNECTIONS: usize = 1500;
        let clients = [(2, "/files/here"), (3, "/files/there")].map(|(last, path)| Client {
            address: [127, 0, 0, last].into(),
            path,
        });
        let (folder, _guard) = folder();
        let nginx = nginx(&folder);
        for client in clients {
            std::fs::write(folder.join(&client.path[1..]), [b'n'; 700]).unwrap();
        }
        for at_once in [8, 32] {
            let watch = Watch::start_only(&nginx.pids().unwrap(), &["--tls"]).unwrap();
            let load = short_tls::Load {
                certificate: &folder.join("server.pem"),
                port: nginx.port,
                clients: &clients,
                connections: CONNECTIONS,
                at_once,
            };
            short_tls::run(load).unwrap();
            short_tls::check(&watch.finish().unwrap(), load).unwrap();
        }
    }

    #[test]
    fn two_thousand_requests_a_second_inside_tls_are_all_reported() {
        const LOAD: u32 = 4000;
        let (folder, _guard) = folder();
        let nginx = nginx(&folder);
        let pids = nginx.pids().unwrap();
        let watch = Watch::start_tls(&pids).unwrap();
        let load = Load {
            base: &format!("https://127.0.0.1:{}", nginx.port),
            paths: &["/files/700", "/files/0", "/files/4096", "/files/1"],
            requests: LOAD,
            connections: 8,
            streams: 10,
            rate: Some(2000),
            http1: false,
            probed: true,
        };
        let client = h2load::run(&folder, load).unwrap();
        let asked = nginx.log(LOAD as usize).unwrap();
        assert_eq!(asked.len(), LOAD as usize);
        let report = watch.finish().unwrap();
        let (lost, one_of) = (&report.json["lost"], &report.json["sampled_one_of"]);
        assert_measured!(
            *lost == 0 && *one_of == 1,
            "lost {lost}, sampled 1 of {one_of}"
        );
        let ends = (&[client][..], pids.as_slice());
        check_report(&report, nginx.port, "http2", ends, (&asked, Gaps::None));
    }

    /// With a link of its own each probe takes a tenth of a second to go.
    #[test]
    fn probes_of_a_file_go_together() {
        let (folder, _guard) = folder();
        let nginx = Nginx::start(&folder, Speaks::Tls).unwrap();
        let pids = nginx.pids().unwrap();
        let end = |options: &[&str]| {
            let watch = Watch::start_only(&pids, options).unwrap();
            assert!(all_breakpoints(&pids) >= pids.len());
            let began = Instant::now();
            watch.finish().unwrap();
            assert_eq!(all_breakpoints(&pids), 0);
            began.elapsed()
        };
        let together = end(&["--tls"]);
        let alone = end(&["--tls", WITHOUT_OF_MANY]);
        assert_measured!(together * 2 < alone, "{together:?}, {alone:?} alone");
    }

    /// A client that keeps its connection and waits for each answer, for longer than a period of probes.
    #[test]
    fn with_a_duty_what_is_told_is_true_and_what_was_under_way_is_unknown() {
        // Eleven seconds on a fast machine: two times with probes, of a second each.
        const ROUNDS: u32 = 3600;
        let (folder, _guard) = folder();
        let nginx = Nginx::start(&folder, Speaks::Tls).unwrap();
        let pids = nginx.pids().unwrap();
        let watch = Watch::start_with(&pids, &["--tls", "--tls-duty=10"]).unwrap();
        let (_, asked) = Program::PythonRequests
            .call(&folder, nginx.port, "h1", ROUNDS)
            .unwrap();
        let report = watch.finish().unwrap();
        let operations = report.operations(Edges::To(nginx.port)).unwrap();
        let sum = |name: &str| -> usize {
            let numbers = operations.iter().map(|operation| operation[name].as_u64());
            numbers
                .map(|number| usize::try_from(number.unwrap()).unwrap())
                .sum()
        };
        let (count, unknown) = (sum("count"), sum("unknown"));
        let percent = report.json["plaintext"]["attached_percent"]
            .as_u64()
            .unwrap();
        assert_measured!((2..=40).contains(&percent), "{percent} %");
        assert_measured!(
            count < asked.len() / 2 && count > asked.len() / 50,
            "{count} of {}",
            asked.len()
        );
        // Those at the ends of each time with probes, at both ends of two connections.
        assert_measured!(unknown <= 40, "{unknown} of {count}");
        let of_status = |status: &str| asked.iter().filter(|one| one.status == status).count();
        let errors = sum("errors");
        // Each sixth asks for what is not there.
        assert_measured!(
            errors.abs_diff((count - unknown) / 6) <= 8,
            "{errors} of {count}"
        );
        assert_measured!(errors < of_status("404"), "{errors}");
        let broken = operations
            .iter()
            .map(|operation| &operation["errors_by_class"]["broken"]);
        assert!(broken.into_iter().all(|broken| broken == 0));
    }

    /// Beyond their budget probes are removed, and the report covers the time in which they were there.
    #[test]
    fn probes_that_cost_too_much_are_there_for_a_part_of_the_time() {
        const LOAD: u32 = 96_000;
        let (folder, _guard) = folder();
        let nginx = Nginx::start(&folder, Speaks::Tls).unwrap();
        let pids = nginx.pids().unwrap();
        let watch = Watch::start_with(&pids, &["--tls", "--cpu-percent=1"]).unwrap();
        let load = Load {
            base: &format!("https://127.0.0.1:{}", nginx.port),
            paths: &["/files/700"],
            requests: LOAD,
            connections: 8,
            streams: 1,
            rate: Some(8000),
            http1: true,
            probed: false,
        };
        h2load::run(&folder, load).unwrap();
        let report = watch.finish().unwrap();
        let plaintext = &report.json["plaintext"];
        assert_eq!(plaintext["limited_to_percent"], 1, "{plaintext}");
        let percent = plaintext["attached_percent"].as_u64().unwrap();
        assert_measured!((1..=80).contains(&percent), "{percent} %");
        let operations = report.operations(Edges::To(nginx.port)).unwrap();
        let sum = |name: &str| -> u64 {
            let numbers = operations.iter().map(|operation| operation[name].as_u64());
            numbers.map(Option::unwrap).sum()
        };
        assert_measured!(sum("seen") > 100, "{operations:?}");
        assert_measured!(sum("count") < u64::from(LOAD), "{operations:?}");
        assert_eq!(sum("errors"), 0, "{operations:?}");
    }

    /// Processes that do nothing; they end with this.
    struct Idle(Vec<Child>);

    impl Idle {
        fn start(number: usize) -> Self {
            let sleep = || Command::new("sleep").arg("300").spawn().unwrap();
            Self((0..number).map(|_| sleep()).collect())
        }
    }

    impl Drop for Idle {
        fn drop(&mut self) {
            for process in &mut self.0 {
                // Fails only when it has ended.
                let _ended = process.kill().and_then(|()| process.wait());
            }
        }
    }

    /// More processes than may have probes, all of them before the server: they have no TLS and need none.
    #[test]
    fn idle_processes_before_a_server_do_not_hide_it() {
        let (folder, _guard) = folder();
        let idle = Idle::start(520);
        let nginx = nginx(&folder);
        let watch = Watch::start_all(&["--tls"]).unwrap();
        for pid in nginx.pids().unwrap() {
            held::wait_until_probed(pid).unwrap();
        }
        let base = format!("https://127.0.0.1:{}", nginx.port);
        let options = ["http1.1", &authority(&folder)];
        let done = curl::run(&folder, &base, &calls(), &options).unwrap();
        let report = watch.finish().unwrap();
        drop(idle);
        let operations = report.operations(Edges::To(nginx.port)).unwrap();
        let inside = operations
            .iter()
            .filter(|operation| operation["tls"] == true);
        let counts = inside.map(|operation| operation["count"].as_u64().unwrap());
        let files = &report.json["plaintext"]["files"];
        assert_eq!(counts.sum::<u64>(), done.asked.len() as u64, "{files:#}");
    }
}
