//! Requests of HTTP as real clients and servers make them: each is reported once, as what it was.

use std::path::PathBuf;

use profiler_tests::{
    assert_measured,
    cleanup::{Guard, scratch_directory},
    peers::{
        asked::{Asked, compare},
        curl::{self, Call},
        grpc::{self, Calls, GrpcServer, ROUND},
        h2load::{self, Load},
        late::LateConnection,
        nginx::{FILE_SIZES, Nginx, STATUSES, Speaks, TEXT},
        pipelining,
        watch::{Edges, Expected, Gaps, Report, Watch},
        websocket::WebSocketServer,
    },
};

/// Requests of a load, and how many there are in a second.
const LOAD: u32 = 4000;
const RATE: u32 = 2000;

/// nginx with its folder.
struct Server {
    nginx: Nginx,
    pids: Vec<u32>,
    folder: PathBuf,
    _guard: Guard,
}

impl Server {
    fn start(speaks: Speaks) -> Self {
        let (folder, guard) = scratch_directory("nginx").unwrap();
        let nginx = Nginx::start(&folder, speaks).unwrap();
        let pids = nginx.pids().unwrap();
        Self {
            nginx,
            pids,
            folder,
            _guard: guard,
        }
    }

    fn base(&self) -> String {
        format!("http://127.0.0.1:{}", self.nginx.port)
    }

    fn expect<'a>(
        &'a self,
        protocol: &'a str,
        clients: &'a [u32],
        asked: &'a [Asked],
    ) -> Expected<'a> {
        Expected {
            protocol,
            tls: false,
            edges: Edges::To(self.nginx.port),
            clients,
            servers: &self.pids,
            asked,
        }
    }
}

/// Checks what a client says that it asked against the server's own account.
fn check_log(log: &[Asked], asked: &[Asked]) {
    let lines = |all: &[Asked]| {
        let line = |one: &Asked| {
            let path = one.path.split('?').next().unwrap_or_default();
            format!("{} {path} {}", one.method, one.status)
        };
        let mut lines: Vec<String> = all.iter().map(line).collect();
        lines.sort();
        lines
    };
    assert_eq!(lines(log), lines(asked));
}

fn check_errors(report: &Report, port: u16, asked: &[Asked]) {
    let errors = asked.iter().filter(|one| one.is_http_error()).count();
    assert_eq!(report.errors(Edges::To(port)).unwrap(), errors as u64);
}

/// Whether the kernel says that it counted every request.
#[track_caller]
fn check_exact(report: &Report, port: u16, is_exact: bool) {
    let counted = report.counted(Edges::To(port)).unwrap();
    assert!(!counted.is_empty());
    assert_eq!(Report::are_exact(&counted), is_exact, "{counted:?}");
}

/// Marks requests whose sizes are in frames that lie too far behind in what one call moved.
fn sizes_may_be_unknown(asked: &mut [Asked], applies: impl Fn(&Asked) -> bool) {
    for one in asked.iter_mut().filter(|one| applies(one)) {
        one.sizes_may_be_unknown = true;
    }
}

/// First bytes of each call that are looked at unless more is asked for.
const LOOKED_AT: u64 = 1024;

/// Every method, every kind of answer.
fn kinds_of_requests() -> Vec<Call> {
    let mut calls = Vec::new();
    for size in FILE_SIZES {
        calls.push(Call::new("GET", format!("/files/{size}"), 200));
        calls.push(Call::new("HEAD", format!("/files/{size}"), 200));
        // Of a length that is not known beforehand.
        let call = Call::new("GET", format!("/files/{size}"), 200);
        calls.push(call.header("Accept-Encoding: gzip"));
    }
    for status in STATUSES {
        calls.push(Call::new("GET", format!("/status/{status}"), status));
        calls.push(Call::new("HEAD", format!("/status/{status}"), status));
    }
    for bytes in [1, 1000, 70_000, 2_000_000] {
        let upload = || Call::new("POST", "/upload", 200).body(bytes);
        // curl asks first whether the largest is welcome.
        calls.push(upload());
        calls.push(upload().header("Expect: 100-continue"));
        calls.push(
            Call::new("PUT", "/upload", 200)
                .body(bytes)
                .header("Expect:"),
        );
    }
    calls.push(Call::new("DELETE", "/files/1", 405));
    calls.push(Call::new("GET", "/none/here", 404));
    let recent = "If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT";
    calls.push(Call::new("GET", "/files/700", 304).header(recent));
    calls.push(Call::new("GET", "/files/50000", 206).header("Range: bytes=100-299"));
    // Not the last: over HTTP/2 its last frame may stand behind another one of the same write. Its end is then that of the
    // connection, which nginx closes when it comes to it.
    calls.push(Call::new("GET", "/slow", 200));
    let secret = Call::new("GET", "/files/1?token=hidden&page=2", 200);
    calls.push(secret.masked("/files/1?token=?&page=?"));
    calls
}

#[test]
fn every_request_of_curl_to_nginx_is_reported_with_method_path_status_and_sizes() {
    let server = Server::start(Speaks::Http1);
    let watch = Watch::start(&server.pids).unwrap();
    let mut calls = kinds_of_requests();
    for bytes in [10, 20_000] {
        let chunked = Call::new("POST", "/upload", 200).body(bytes);
        calls.push(chunked.header("Transfer-Encoding: chunked"));
    }
    // These end the connection.
    calls.push(Call::new("GET", "/files/700", 200).option("http1.0"));
    calls.push(Call::new("GET", "/files/4096", 200).header("Connection: close"));
    calls.push(Call::new("GET", "/files/1", 200));
    let mut done = curl::run(&server.folder, &server.base(), &calls, &["http1.1"]).unwrap();
    // The one in chunks: their sizes stand between them.
    sizes_may_be_unknown(&mut done.asked, |one| one.request_bytes == Some(20_000));
    let report = watch.finish().unwrap();
    check_log(&server.nginx.log(calls.len()).unwrap(), &done.asked);
    report
        .check(&server.expect("http1", &done.pids, &done.asked))
        .unwrap();
    check_errors(&report, server.nginx.port, &done.asked);
    check_exact(&report, server.nginx.port, true);
    // What nginx passed on is a request of its own, to itself.
    let uploads = done.asked.iter().filter(|one| one.path == "/upload");
    let passed: Vec<Asked> = uploads.cloned().collect();
    let backend = Expected {
        edges: Edges::To(server.nginx.backend_port),
        ..server.expect("http1", &server.pids, &passed)
    };
    report.check(&backend).unwrap();
    check_log(&server.nginx.backend_log(passed.len()).unwrap(), &passed);
}

#[test]
fn bodies_are_kept_where_they_are_asked_for() {
    let server = Server::start(Speaks::Http1);
    let watch = Watch::start_with(&server.pids, &["--bodies"]).unwrap();
    let calls = [
        Call::new("POST", "/upload", 200).body(1000),
        Call::new("POST", "/upload", 200).body(70_000),
        Call::new("GET", "/files/700", 200),
    ];
    curl::run(&server.folder, &server.base(), &calls, &["http1.1"]).unwrap();
    let report = watch.finish().unwrap();
    let samples = report.samples(Edges::To(server.nginx.port)).unwrap();
    assert_eq!(samples.len(), calls.len());
    let length = |body: &serde_json::Value| body["data"].as_str().map(str::len);
    let mut found: Vec<_> = samples
        .iter()
        .map(|sample| {
            let [request, response] = ["request_body", "response_body"].map(|body| &sample[body]);
            let text = [request, response]
                .into_iter()
                .filter(|body| !body.is_null());
            assert!(
                text.clone().all(|body| body["encoding"] == "utf-8"),
                "{sample}"
            );
            let told = sample["request_bytes"].as_u64();
            (
                told,
                length(request),
                request["cut"].as_bool(),
                length(response),
            )
        })
        .collect();
    found.sort();
    let ok = Some(TEXT.len());
    let expected = [
        (Some(0), None, None, Some(700)),
        (Some(1000), Some(1000), Some(false), ok),
        (Some(70_000), Some(4096), Some(true), ok),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_slow_answer_takes_as_long_as_for_the_client() {
    let server = Server::start(Speaks::Http1);
    let watch = Watch::start(&server.pids).unwrap();
    let calls = ["/slow", "/files/1"].map(|path| Call::new("GET", path, 200));
    let done = curl::run(&server.folder, &server.base(), &calls, &[]).unwrap();
    let report = watch.finish().unwrap();
    let samples = report.samples(Edges::To(server.nginx.port)).unwrap();
    for (call, took) in done.asked.iter().zip(&done.took) {
        let sample = samples.iter().find(|sample| sample["path"] == call.path);
        let sample = sample.unwrap_or_else(|| panic!("{call} is not reported"));
        let told = sample["duration_ns"].as_u64().unwrap() / 1_000_000;
        let truth = u64::try_from(took.as_millis()).unwrap();
        // A tenth of a second for what curl does before and after, and a tenth of the time for what a busy
        // machine makes of it.
        let allowed = 100 + truth / 10;
        assert_measured!(
            told.abs_diff(truth) < allowed,
            "{told} ms, curl: {truth} ms"
        );
    }
}

#[test]
fn pipelined_requests_are_told_apart_wherever_their_bytes_are_cut() {
    const REQUESTS: usize = 60;
    let server = Server::start(Speaks::Http1);
    // Enough for all requests of one call.
    let watch = Watch::start_with(&server.pids, &["--capture-bytes=16320"]).unwrap();
    let mut asked = Vec::new();
    // All in one write, cut anywhere, and one byte at a time.
    for piece in [1 << 20, 97, 1] {
        let mut requests = Vec::new();
        for number in 0..REQUESTS {
            let path = match number % 3 {
                0 => "/files/700",
                1 => "/status/404",
                _ => "/status/204",
            };
            requests.push(pipelining::get(path, number + 1 == REQUESTS));
            asked.push(match number % 3 {
                0 => Asked::new("GET", path, "200").sizes(0, 700),
                1 => Asked::new("GET", path, "404").sizes(0, TEXT.len() as u64),
                _ => Asked::new("GET", path, "204").sizes(0, 0),
            });
        }
        let answers = pipelining::send_at_once(server.nginx.port, &requests, piece).unwrap();
        assert_eq!(answers.matches("HTTP/1.1 ").count(), REQUESTS);
    }
    let report = watch.finish().unwrap();
    check_log(&server.nginx.log(asked.len()).unwrap(), &asked);
    report
        .check(&server.expect("http1", &[std::process::id()], &asked))
        .unwrap();
    // Several at once look like one.
    check_exact(&report, server.nginx.port, false);
}

#[test]
fn two_thousand_requests_a_second_are_all_reported() {
    let server = Server::start(Speaks::Http1);
    let watch = Watch::start(&server.pids).unwrap();
    let client = load(&server, true);
    let report = watch.finish().unwrap();
    let asked = server.nginx.log(LOAD as usize).unwrap();
    assert_eq!(asked.len(), LOAD as usize);
    report
        .check(&server.expect("http1", &[client], &asked))
        .unwrap();
    check_exact(&report, server.nginx.port, true);
    // The kernel's times are those of the decoder.
    let edges = Edges::To(server.nginx.port);
    let (counted, operations) = (report.counted(edges), report.operations(edges));
    let sum = |times: &serde_json::Value| times["sum"].as_u64().unwrap();
    let (mut kernel, mut decoder) = (0, 0);
    for entry in counted.unwrap() {
        kernel += sum(&entry["latency_ns"]);
        let end = entry["counted_from"].as_str().unwrap();
        let of_edge = operations.as_ref().unwrap().iter();
        let of_edge = of_edge.filter(|operation| operation["edge"]["id"] == entry["edge"]["id"]);
        decoder += of_edge
            .map(|operation| sum(&operation[end]["latency_ns"]))
            .sum::<u64>();
    }
    assert_measured!(
        decoder.abs_diff(kernel) * 20 <= decoder,
        "{kernel} ns in the kernel, {decoder} by the decoder"
    );
}

fn load(server: &Server, http1: bool) -> u32 {
    let load = Load {
        base: &server.base(),
        paths: &["/files/700", "/files/0", "/files/4096", "/files/1"],
        requests: LOAD,
        connections: 8,
        streams: if http1 { 1 } else { 10 },
        rate: Some(RATE),
        http1,
        probed: false,
    };
    h2load::run(&server.folder, load).unwrap()
}

#[test]
fn every_request_over_http2_without_tls_is_reported_with_method_path_status_and_sizes() {
    let server = Server::start(Speaks::Http2);
    let watch = Watch::start(&server.pids).unwrap();
    let calls = kinds_of_requests();
    let options = ["http2-prior-knowledge"];
    let mut done = curl::run_each(&server.folder, &server.base(), &calls, &options).unwrap();
    sizes_may_be_unknown(&mut done.asked, |one| {
        one.request_bytes.max(one.response_bytes) > Some(LOOKED_AT / 2)
    });
    let report = watch.finish().unwrap();
    check_log(&server.nginx.log(calls.len()).unwrap(), &done.asked);
    // Behind a frame that is longer than what is looked at, others may begin.
    let large = done.asked.iter().filter(|one| one.sizes_may_be_unknown);
    let gaps = Gaps::AtMost(2 * large.count());
    report
        .check_but(&server.expect("http2", &done.pids, &done.asked), gaps)
        .unwrap();
    check_errors(&report, server.nginx.port, &done.asked);
    check_exact(&report, server.nginx.port, true);
}

#[test]
fn two_thousand_streams_a_second_are_all_reported() {
    let server = Server::start(Speaks::Http2);
    let watch = Watch::start(&server.pids).unwrap();
    let client = load(&server, false);
    let report = watch.finish().unwrap();
    let mut asked = server.nginx.log(LOAD as usize).unwrap();
    assert_eq!(asked.len(), LOAD as usize);
    // Their frames may still lie too far behind.
    sizes_may_be_unknown(&mut asked, |_| true);
    report
        .check(&server.expect("http2", &[client], &asked))
        .unwrap();
    check_exact(&report, server.nginx.port, true);
}

/// Half of what is asked for was asked for before, so that it stands in a table that was filled
/// before the task.
#[test]
fn of_an_http2_connection_from_before_nothing_is_told_wrongly() {
    let (folder, _guard) = scratch_directory("late").unwrap();
    let connection = LateConnection::start(&folder).unwrap();
    let pids = [connection.client_pid(), connection.server_pid()];
    let watch = Watch::start(&pids).unwrap();
    let port = connection.port;
    let asked = connection.go_on().unwrap();
    let report = watch.finish().unwrap();
    report.check_whole().unwrap();
    let mut samples = report.samples(Edges::Between(pids[0], pids[1])).unwrap();
    assert_eq!(
        report.samples(Edges::To(port)).unwrap().len(),
        samples.len()
    );
    samples.sort_by_key(|sample| sample["stream"].as_u64());
    assert_eq!(samples.len(), asked.len());
    let mut unknown = 0;
    for (sample, one) in samples.iter().zip(&asked) {
        let right = sample["protocol"] == "http2"
            && sample["method"] == "GET"
            && sample["status"] == one.status
            && sample["response_bytes"] == one.response_bytes;
        assert!(right, "{one:?}: {sample}");
        let took = sample["duration_ns"].as_u64().unwrap();
        assert!((1..=one.at_most_ns).contains(&took), "{one:?}: {sample}");
        let authority = &sample["authority"];
        assert!(
            authority.is_null() || authority == "late.example",
            "{sample}"
        );
        let is_unknown = one.is_old && sample["path"].is_null() && sample["route"].is_null();
        unknown += usize::from(is_unknown);
        assert!(
            is_unknown || sample["path"] == one.path.as_str(),
            "{one:?}: {sample}"
        );
    }
    check_exact(&report, port, true);
    // Such as are asked for again and again are known from the second time on.
    let old = asked.iter().filter(|one| one.is_old).count();
    assert!(
        (1..old).contains(&unknown),
        "{unknown} of {old} are not known"
    );
}

#[test]
fn calls_of_grpc_are_told_with_their_own_status_and_the_messages_of_their_streams() {
    const ROUNDS: u32 = 100;
    let (folder, _guard) = scratch_directory("grpc").unwrap();
    let server = GrpcServer::start(&folder).unwrap();
    let watch = Watch::start(&[server.pid()]).unwrap();
    let address = format!("127.0.0.1:{}", server.port);
    let calls = Calls {
        address: &address,
        rounds: ROUNDS,
        connections: 1,
        netns: None,
    };
    let done = grpc::call(&folder, &calls).unwrap();
    let report = watch.finish().unwrap();
    assert_eq!(done.asked.len(), (ROUND * ROUNDS) as usize);
    report
        .check(&Expected {
            protocol: "grpc",
            tls: false,
            edges: Edges::To(server.port),
            clients: &[done.pid],
            servers: &[server.pid()],
            asked: &done.asked,
        })
        .unwrap();
    let mut messages = [0, 0];
    for sample in report.samples(Edges::To(server.port)).unwrap() {
        for (sum, count) in messages
            .iter_mut()
            .zip(sample["messages"].as_array().unwrap())
        {
            *sum += count.as_u64().unwrap();
        }
    }
    assert_eq!(messages, done.messages);
    check_exact(&report, server.port, true);
    // Two of five were negative, one asked for what is not there.
    assert_eq!(
        report.errors(Edges::To(server.port)).unwrap(),
        3 * u64::from(ROUNDS)
    );
}

#[test]
fn an_upgrade_to_websocket_is_one_request_and_its_messages_are_none() {
    let (folder, _guard) = scratch_directory("websocket").unwrap();
    let server = WebSocketServer::start(&folder).unwrap();
    let watch = Watch::start(&[server.pid()]).unwrap();
    let (client, asked) = server.upgrade(&folder).unwrap();
    let report = watch.finish().unwrap();
    report.check_whole().unwrap();
    let samples = report.samples(Edges::To(server.port)).unwrap();
    let of_protocol = |protocol: &str| -> Vec<Asked> {
        let fits = samples.iter().filter(|sample| {
            sample["protocol"] == protocol && sample["edge"]["client"]["pid"] == client
        });
        fits.map(|sample| Asked::from_sample(sample)).collect()
    };
    let upgraded = |one: &&Asked| one.status == "101";
    let (taken, refused): (Vec<_>, Vec<_>) = asked.iter().cloned().partition(|one| upgraded(&one));
    assert_eq!((taken.len(), refused.len()), (5, 1));
    compare(&taken, &of_protocol("websocket")).unwrap();
    compare(&refused, &of_protocol("http1")).unwrap();
    assert_eq!(samples.len(), asked.len());
    // Upgrades are counted as what comes after them.
    let counted = report.counted(Edges::To(server.port)).unwrap();
    let counts = counted.iter().filter_map(|entry| entry["count"].as_u64());
    assert_eq!(counts.sum::<u64>(), 1, "{counted:?}");
}
