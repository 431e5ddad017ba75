//! Attacks on an agent that has 512 MiB of memory: it keeps running, reports refusals, and serves clients with the token.

use std::{
    fs,
    io::{ErrorKind, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use profiler_tests::{
    agent::{Agent, ServeOptions},
    api::Api,
    assert_measured,
    cgroup::{Cgroup, memory_hierarchy},
    paths,
    process::Launch,
    wait::wait_for,
};
use prost::encoding::encode_varint;
use serde_json::{Value, json};

use crate::targets::{EXIT, START, Targets, endless, start_task, stop_task, wait_samples};

/// As the manifests of deploy/ limit it.
const LIMIT: u64 = 512 << 20;
const STRANGERS: usize = 10_000;
/// Of these, at once.
const AT_ONCE: usize = 300;
/// The token's holder is served within this time.
const PATIENCE: Duration = Duration::from_secs(1);

/// An agent in a cgroup of 512 MiB, which goes away with the cgroup.
struct Limited {
    agent: Agent,
    _cgroup: Cgroup,
}

impl Limited {
    fn start(arguments: &[&str]) -> Self {
        let cgroup = Cgroup::create(&memory_hierarchy(), "memory", "pod/agent").unwrap();
        cgroup.limit_memory_above(LIMIT).unwrap();
        let agent = Agent::start_with(ServeOptions {
            arguments: arguments.iter().map(|text| (*text).to_owned()).collect(),
            wrapper: cgroup.wrapper(),
            ..ServeOptions::default()
        })
        .unwrap();
        Self {
            agent,
            _cgroup: cgroup,
        }
    }

    /// It answers clients with the token.
    fn check(&mut self, after: &str) {
        assert!(self.agent.is_running(), "{after}: {}", self.agent.log());
        let asked = Instant::now();
        self.agent.api.get_json("/api/v1/meta").unwrap();
        assert_measured!(asked.elapsed() < PATIENCE, "{after}: {:?}", asked.elapsed());
    }
}

/// Pages without a file, in bytes.
fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes: u64 = line
        .and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap();
    kilobytes * 1024
}

/// The preface of HTTP/2 with windows of nothing, and as many requests as it has streams, each of which would be answered
/// with four times its size.
fn http2_flood() -> Vec<u8> {
    let frame = |kind: u8, flags: u8, stream: u32, payload: &[u8]| {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
    };
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    // SETTINGS_INITIAL_WINDOW_SIZE = 0.
    bytes.extend(frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]));
    let path = format!("/healthz?{}=1", "%01".repeat(4000));
    // `:method: GET`, `:scheme: http`, `:path` with a length of 7 bits and more.
    let mut head = vec![0x82, 0x86, 0x04, 0x7f];
    let mut rest = path.len() - 127;
    while rest >= 128 {
        head.push(u8::try_from(rest % 128).unwrap() | 0x80);
        rest /= 128;
    }
    head.push(u8::try_from(rest).unwrap());
    head.extend(path.as_bytes());
    for number in 0..200 {
        bytes.extend(frame(1, 5, 2 * number + 1, &head));
    }
    bytes
}

/// A client without a token, in one of the forms that were tried.
fn stranger(address: SocketAddr, number: usize, flood: &[u8]) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream
        .set_write_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    let long = "%01".repeat(4000);
    let text = match number % 7 {
        0 => String::new(),
        1 => "GET /healthz HT".to_owned(),
        2 => format!("GET /healthz?{long}=1 HTTP/1.1\r\nHost: {address}\r\n\r\n").repeat(3),
        3 => format!("GET /api/v1/tasks HTTP/1.1\r\nHost: {address}\r\n\r\n").repeat(20),
        4 => format!("GET /{long} HTTP/1.1\r\nHost: {}\r\n\r\n", "x".repeat(8000)),
        5 => format!(
            "POST /api/v1/imports HTTP/1.1\r\nHost: {address}\r\nContent-Length: 30000000\r\n\r\n"
        ),
        _ => {
            // It may be closed while it is being written to.
            let _closed = stream.write_all(flood);
            return Some(stream);
        }
    };
    let _closed = stream.write_all(text.as_bytes());
    Some(stream)
}

#[test]
fn ten_thousand_strangers_in_every_form_keep_nobody_out() {
    let mut limited = Limited::start(&[]);
    let targets = Targets::new();
    let target = targets.busy("strangers");
    let id = start_task(
        &limited.agent,
        &endless(json!({ "pids": [target.pid()] }), 99),
    );
    wait_samples(&limited.agent, &id, 50);
    let address = limited.agent.api.address;
    let flood = http2_flood();
    let before = resident(limited.agent.pid());
    let mut open = Vec::new();
    let mut most = 0;
    for number in 0..STRANGERS {
        open.extend(stranger(address, number, &flood));
        if open.len() > AT_ONCE {
            open.drain(..AT_ONCE / 3);
        }
        if number % 500 == 0 {
            limited.check(&format!("after {number} strangers"));
            most = most.max(resident(limited.agent.pid()));
        }
    }
    let grown = most.saturating_sub(before);
    assert!(grown < 64 << 20, "{before} bytes, then {most}");
    // The answer to HTTP/2 is not HTTP/2: its first frame would be SETTINGS.
    let mut other = stranger(address, 6, &flood).unwrap();
    other.set_read_timeout(Some(START)).unwrap();
    let mut answer = [0; 9];
    let got = other.read(&mut answer).unwrap_or(0);
    assert!(got == 0 || answer.starts_with(b"HTTP/1.1 "), "{answer:?}");
    drop(open);
    let samples = limited.agent.api.task(&id).unwrap()["samples"].clone();
    wait_samples(&limited.agent, &id, samples.as_u64().unwrap() + 50);
    let task = stop_task(&limited.agent, &id);
    // A busy machine may miss ticks, which are counted.
    let losses = task["losses"].as_array().unwrap();
    let is_tick = |loss: &Value| loss["kind"] == "tick_missed";
    assert!(losses.iter().all(is_tick), "{task}");
    limited.agent.stop().unwrap();
}

/// How long strangers send as much as they can.
const FLOOD: Duration = Duration::from_secs(4);

/// Statuses of what one connection was answered that sends one batch of requests behind the other, until the flood is
/// over. It opens another one when it is closed.
fn flood(address: SocketAddr, path: &str, until: Instant) -> Vec<u16> {
    const BATCH: usize = 50;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").repeat(BATCH);
    let mut statuses = Vec::new();
    while Instant::now() < until {
        let Ok(mut stream) = TcpStream::connect(address) else {
            continue;
        };
        stream
            .set_read_timeout(Some(Duration::from_millis(200)))
            .unwrap();
        if stream.write_all(request.as_bytes()).is_err() {
            continue;
        }
        let mut unread = Vec::new();
        let mut unanswered = BATCH;
        while Instant::now() < until {
            let mut part = [0; 16 << 10];
            match stream.read(&mut part) {
                Ok(0) => break,
                Ok(length) => unread.extend_from_slice(&part[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                Err(_closed) => break,
            }
            let answers = take_statuses(&mut unread);
            unanswered = unanswered.saturating_sub(answers.len());
            statuses.extend(answers);
            if unanswered < BATCH / 2 {
                unanswered += BATCH;
                if stream.write_all(request.as_bytes()).is_err() {
                    break;
                }
            }
        }
    }
    statuses
}

/// The statuses in a piece of answers, of which the beginning of a status stays.
fn take_statuses(unread: &mut Vec<u8>) -> Vec<u16> {
    const LINE: &[u8] = b"HTTP/1.1 ";
    let length = LINE.len() + 3;
    let mut statuses = Vec::new();
    let mut taken = 0;
    for at in 0..(unread.len() + 1).saturating_sub(length) {
        if unread[at..].starts_with(LINE) {
            let digits = String::from_utf8_lossy(&unread[at + LINE.len()..at + length]);
            statuses.push(digits.parse().unwrap());
            taken = at + length;
        }
    }
    let kept = unread.len().saturating_sub(length - 1).max(taken);
    unread.drain(..kept);
    statuses
}

fn metric(api: &Api, name: &str) -> f64 {
    let metrics = api.get("/metrics").unwrap().text();
    let line = metrics.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("no {name} in {metrics}"))
        .trim()
        .parse()
        .unwrap()
}

#[test]
fn a_flood_of_requests_without_a_token_is_bounded_and_the_token_is_served() {
    let mut limited = Limited::start(&[]);
    let api = limited.agent.api.clone();
    let address = api.address;
    let cost = || {
        let own = api.get_json("/api/v1/self").unwrap();
        own["cpu_seconds"].as_f64().unwrap()
    };
    let before = cost();
    let begin = Instant::now();
    let until = begin + FLOOD;
    let floods: Vec<_> = ["/healthz", "/healthz", "/", "/api/v1/meta", "/api/v1/meta"]
        .map(|path| thread::spawn(move || flood(address, path, until)))
        .into();
    while Instant::now() < until {
        limited.check("in a flood");
        // As an orchestrator asks, by a connection of its own.
        let request =
            format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        let health = api.send_raw(request.as_bytes()).unwrap();
        assert_eq!(health.status, 200, "{}", health.text());
        // Without a pause this would be a flood of its own.
        thread::sleep(Duration::from_millis(50));
    }
    let statuses: Vec<u16> = floods
        .into_iter()
        .flat_map(|flood| flood.join().unwrap())
        .collect();
    let seconds = begin.elapsed().as_secs_f64();
    let refused = statuses.iter().filter(|status| **status == 429).count();
    #[expect(clippy::cast_precision_loss, reason = "some thousands")]
    let answered = (statuses.len() - refused) as f64;
    // Beside the thousand in a second: what may come at once, and the first requests of connections.
    assert!(
        answered < 1000.0 * seconds + 400.0,
        "{answered} in {seconds} s"
    );
    assert!(refused > 0, "{answered} were answered and none refused");
    let limited_by = |reason: &str| {
        metric(
            &api,
            &format!("profiler_agent_http_limited_total{{reason=\"{reason}\"}}"),
        )
    };
    assert!(limited_by("strangers_refused") > 0.0);
    assert!(limited_by("strangers_delayed") > 0.0);
    let used = cost() - before;
    assert_measured!(used < 0.5 * seconds, "{used} s of CPU time in {seconds} s");
    limited.agent.stop().unwrap();
}

#[test]
fn wrong_tokens_are_slowed_and_told_of_without_addresses() {
    let mut limited = Limited::start(&[]);
    let api = limited.agent.api.clone();
    let wrong = api.with_token(Some(&"0".repeat(64)));
    let statuses: Vec<u16> = (0..60)
        .map(|_| wrong.get("/api/v1/meta").unwrap().status)
        .collect();
    assert_eq!(statuses[..30], [401; 30]);
    assert_eq!(statuses[30..], [429; 30]);
    let slowed = wrong.get("/api/v1/meta").unwrap();
    let wait: u64 = slowed.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    limited.check("after wrong tokens");
    let page = api.with_token(None).get("/").unwrap();
    assert_eq!(page.status, 200, "the page can be opened");
    let counted = metric(&api, "profiler_agent_http_wrong_tokens_total");
    assert!((60.5..61.5).contains(&counted), "{counted}");
    let log = limited.agent.log();
    let told: Vec<_> = log
        .lines()
        .filter(|line| line.contains("had a wrong token"))
        .collect();
    assert_eq!(told.len(), 1, "{log}");
    assert!(told[0].contains("WARN") && !told[0].contains("127.0.0.1"));
    limited.agent.stop().unwrap();
}

/// A field of bytes of a protobuf message.
fn field(number: u64, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_varint(number << 3 | 2, &mut bytes);
    encode_varint(content.len() as u64, &mut bytes);
    bytes.extend_from_slice(content);
    bytes
}

/// pprof of `samples` stacks of `frames` frames, each of `lines` inlined functions.
fn pprof(samples: u64, frames: usize, lines: usize) -> Vec<u8> {
    let mut file = [
        field(1, &[0x08, 1, 0x10, 1]),
        field(6, b""),
        field(6, b"count"),
    ]
    .concat();
    let lines = field(4, &[0x08, 1]).repeat(lines);
    file.extend(field(4, &[&[0x08, 1][..], &lines].concat()));
    file.extend(field(5, &[0x08, 1, 0x10, 1]));
    for number in 0..samples {
        let locations = field(1, &vec![1; frames]);
        let mut value = Vec::new();
        encode_varint(number + 1, &mut value);
        file.extend(field(2, &[locations, field(2, &value)].concat()));
    }
    file
}

#[test]
fn small_files_that_become_large_profiles_are_refused() {
    let mut limited = Limited::start(&[]);
    let import = |limited: &Limited, file: Vec<u8>| {
        let answer = limited
            .agent
            .api
            .upload("POST", "/api/v1/imports", file)
            .unwrap();
        (answer.status, answer.text())
    };
    for (what, file) in [
        ("pprof of 40 million names", pprof(40, 999, 1000)),
        (
            "a line of 20 million names",
            format!("x;m{} 1\n", ";a_[i]".repeat(5_000_000)).into_bytes(),
        ),
    ] {
        let (status, text) = import(&limited, file);
        assert_eq!(status, 422, "{what}: {text}");
        assert!(text.contains("more than 4096 names"), "{what}: {text}");
        limited.check(what);
    }
    // Within every bound of its own, and too large for this agent.
    let lines: String = (0..900_000).fold(String::new(), |mut text, number| {
        use std::fmt::Write as _;
        writeln!(text, "x;a{number};b{number} 1").unwrap();
        text
    });
    let (status, text) = import(&limited, lines.into_bytes());
    assert_eq!(status, 503, "{text}");
    assert!(
        text.contains("memory_short") && text.contains("--max-memory"),
        "{text}"
    );
    limited.check("a file that is too large");
    // What fits is taken, and can be looked at in every form and compared.
    let (status, text) = import(&limited, pprof(2000, 60, 60));
    assert_eq!(status, 201, "{text}");
    let task: Value = serde_json::from_str(&text).unwrap();
    let id = task["id"].as_str().unwrap();
    for format in ["flamegraph", "folded", "svg", "speedscope", "pprof", "html"] {
        let answer = limited.agent.api.profile(id, format, "").unwrap();
        assert_eq!(answer.status, 200, "{format}: {}", answer.text());
        limited.check(format);
    }
    let path = format!("/api/v1/diff?a={id}&b={id}");
    assert_eq!(limited.agent.api.get(&path).unwrap().status, 200);
    let deleted = limited
        .agent
        .api
        .send("DELETE", &format!("/api/v1/tasks/{id}"), None)
        .unwrap();
    assert_eq!(deleted.status, 204, "{}", deleted.text());
    limited.agent.stop().unwrap();
}

#[test]
fn a_program_of_very_many_inlined_functions_is_drawn() {
    let mut limited = Limited::start(&[]);
    let targets = Targets::new();
    let program = targets.folder.join("many-inlined");
    let source = paths::workspace().join("tests/fixtures/many_inlined.cpp");
    let compiled = Command::new("g++")
        .args(["-std=c++17", "-O1", "-g", "-ftemplate-depth=2000", "-o"])
        .arg(&program)
        .arg(&source)
        .output()
        .unwrap();
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    let target = Launch::new(&program, "many-inlined", &targets.folder)
        .start()
        .unwrap();
    let id = start_task(
        &limited.agent,
        &endless(json!({ "pids": [target.pid()] }), 499),
    );
    wait_samples(&limited.agent, &id, 1500);
    stop_task(&limited.agent, &id);
    for format in ["flamegraph", "folded", "svg", "speedscope"] {
        let answer = limited.agent.api.profile(&id, format, "").unwrap();
        assert_eq!(answer.status, 200, "{format}: {}", answer.text());
        let text = String::from_utf8_lossy(&answer.body);
        assert!(text.contains("more inlined functions"), "{format}");
        limited.check(format);
    }
    limited.agent.stop().unwrap();
}

#[test]
fn a_process_that_calls_itself_envoy_costs_a_check_up_what_it_says() {
    let mut limited = Limited::start(&[]);
    let targets = Targets::new();
    let script = paths::workspace().join("tests/fixtures/peers/false_envoy.py");
    let mut target = Launch::new(
        Path::new("/usr/bin/python3"),
        "false-envoy",
        &targets.folder,
    )
    .args([script])
    .start()
    .unwrap();
    target
        .wait_for_line(START, |line| line.starts_with("listening").then_some(()))
        .unwrap();
    let wanted =
        json!({ "target": { "pids": [target.pid()] }, "duration_s": 2, "frequency_hz": 99 });
    let answer = limited
        .agent
        .api
        .send("POST", "/api/v1/checkups", Some(&wanted.to_string()))
        .unwrap();
    assert_eq!(answer.status, 201, "{}", answer.text());
    let id = answer.json().unwrap()["id"].as_str().unwrap().to_owned();
    let ended = wait_for("the check-up ends", EXIT, || {
        let checkup = limited
            .agent
            .api
            .get_json(&format!("/api/v1/checkups/{id}"));
        checkup.ok().filter(|checkup| checkup["state"] != "running")
    });
    let ended = ended.unwrap_or_else(|error| panic!("{error:#}\n{}", limited.agent.log()));
    assert_eq!(ended["state"], "finished", "{ended}");
    limited.check("a check-up of a false Envoy");
    let path = format!("/api/v1/checkups/{id}/diagnosis?pid={}", target.pid());
    let diagnosis = limited.agent.api.get_json(&path).unwrap().to_string();
    assert!(
        diagnosis.contains("more than 250000 elements"),
        "{ended}\n{diagnosis}"
    );
    assert!(resident(limited.agent.pid()) < 200 << 20);
    limited.agent.stop().unwrap();
}

#[test]
fn a_network_namespace_is_none_of_the_other_things_that_have_a_path() {
    let agent = Agent::start().unwrap();
    let folder = agent.folder().to_owned();
    let fifo = folder.join("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let ask = |path: &str| {
        let body = json!({
            "kind": "network",
            "target": { "network_namespace": path },
            "duration_s": 1,
        });
        let answer = agent
            .api
            .send("POST", "/api/v1/tasks", Some(&body.to_string()));
        let answer = answer.unwrap();
        (answer.status, answer.text())
    };
    let mut refusals = Vec::new();
    for path in [
        fifo.to_str().unwrap(),
        "/etc/shadow",
        "/root/.ssh/no-such-file",
        "/dev/null",
        "/run/netns/../../etc/shadow",
        "/proc/1/root",
        "/proc/1/ns/mnt",
    ] {
        let (status, text) = ask(path);
        assert_eq!(status, 422, "{path}: {text}");
        refusals.push(text);
    }
    // Nothing is disclosed about what is there.
    refusals.dedup();
    assert_eq!(refusals.len(), 1, "{refusals:?}");
    // A name that is not a namespace, and one that is.
    fs::create_dir_all("/run/netns").unwrap();
    let name = format!("/run/netns/profiler-test-{}", std::process::id());
    let made = Command::new("mkfifo").arg(&name).status().unwrap();
    assert!(made.success());
    let (status, text) = ask(&name);
    assert_eq!(status, 201, "{text}");
    let id = serde_json::from_str::<Value>(&text).unwrap()["id"].clone();
    let id = id.as_str().unwrap();
    let failed = agent.api.wait_task(id, &["failed"], EXIT).unwrap();
    fs::remove_file(&name).unwrap();
    assert!(
        failed.to_string().contains("is not a namespace"),
        "{failed}"
    );
    let own = format!("/proc/{}/ns/net", std::process::id());
    let (status, text) = ask(&own);
    assert_eq!(status, 201, "{text}");
    let id = serde_json::from_str::<Value>(&text).unwrap()["id"].clone();
    agent
        .api
        .wait_task(id.as_str().unwrap(), &["finished"], EXIT)
        .unwrap();
}
