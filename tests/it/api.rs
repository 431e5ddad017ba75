//! The HTTP contract: what is answered, and each refusal with its exact error.

use profiler_tests::{
    agent::{Agent, ServeOptions, token_in},
    api::{Answer, Api},
    paths,
};
use serde_json::{Value, json};

use crate::targets::{START, Targets, endless, finish_task, on_cpu, start_task, stop_task};

const TASKS: &str = "/api/v1/tasks";

/// Checks status, code, media type and the other members of an error answer.
fn assert_problem(answer: &Answer, status: u16, code: &str, what: &str) -> Value {
    assert_eq!(answer.status, status, "{what}: {}", answer.text());
    assert_eq!(
        answer.header("content-type"),
        Some("application/problem+json"),
        "{what}"
    );
    let problem = answer.json().unwrap();
    assert_eq!(problem["code"], code, "{what}: {problem}");
    assert_eq!(problem["status"], status, "{what}: {problem}");
    assert_eq!(problem["type"], "about:blank", "{what}");
    assert!(
        problem["title"].is_string() && problem["detail"].is_string(),
        "{what}: {problem}"
    );
    problem
}

fn post(api: &Api, body: &str) -> Answer {
    api.send("POST", TASKS, Some(body)).unwrap()
}

#[test]
fn bad_input_gets_its_exact_error() {
    let agent = Agent::start().unwrap();
    let api = &agent.api;
    let own = json!({ "pids": [std::process::id()] });
    let fields = [
        (on_cpu(own.clone(), 10, 0), "frequency_hz"),
        (on_cpu(own.clone(), 10, 5000), "frequency_hz"),
        (on_cpu(own.clone(), 1_000_000_000, 99), "duration_s"),
        (on_cpu(own.clone(), 0, 99), "duration_s"),
        (on_cpu(own.clone(), 3601, 99), "duration_s"),
        (on_cpu(json!({ "pids": [] }), 10, 99), "target.pids"),
        (on_cpu(json!({ "pids": [0] }), 10, 99), "target.pids"),
    ];
    for (body, field) in fields {
        let problem = assert_problem(&post(api, &body.to_string()), 422, "invalid_field", field);
        assert_eq!(problem["field"], field, "{body}: {problem}");
    }
    let unknown = json!({ "kind": "on_cpu", "target": own, "colour": "red" });
    assert_problem(
        &post(api, &unknown.to_string()),
        422,
        "invalid_field",
        "unknown field",
    );
    let kind = json!({ "kind": "off_by_one", "target": own });
    assert_problem(
        &post(api, &kind.to_string()),
        422,
        "invalid_field",
        "unknown kind",
    );
    let two = json!({ "kind": "on_cpu", "target": { "pids": [1], "all": true } });
    assert_problem(
        &post(api, &two.to_string()),
        422,
        "invalid_field",
        "two targets",
    );

    for body in ["{", "", "not json", "{\"kind\":"] {
        assert_problem(&post(api, body), 400, "malformed_json", body);
    }
    let huge = format!("{{\"kind\":\"{}\"}}", "x".repeat(10 << 20));
    assert_problem(&post(api, &huge), 413, "body_too_large", "10 MB");
    assert_eq!(
        api.get_json(TASKS).unwrap()["total"],
        0,
        "no task came of any of them"
    );
}

#[test]
fn an_unknown_pid_makes_the_task_fail_with_the_reason() {
    let agent = Agent::start().unwrap();
    let mut gone = std::process::Command::new("true").spawn().unwrap();
    let pid = gone.id();
    gone.wait().unwrap();
    let id = agent
        .api
        .create_task(&on_cpu(json!({ "pids": [pid] }), 5, 99))
        .unwrap();
    let task = agent.api.wait_task(&id, &["failed"], START).unwrap();
    assert_eq!(task["reason"], format!("no such process: {pid}"));
}

#[test]
fn every_path_but_the_shell_needs_the_token() {
    let agent = Agent::start().unwrap();
    let token = agent.api.token.clone().unwrap();
    assert_eq!(token.len(), 64, "64 hex digits");
    assert!(token.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let without = agent.api.with_token(None);
    let wrong = agent.api.with_token(Some(&"0".repeat(64)));
    let short = agent.api.with_token(Some(&token[..63]));
    let id = agent
        .api
        .create_task(&on_cpu(json!({ "all": true }), 1, 99))
        .unwrap();
    let requests = [
        ("GET", "/api/v1/meta".to_owned()),
        ("GET", "/api/v1/processes".to_owned()),
        ("GET", "/api/v1/openapi.json".to_owned()),
        ("GET", "/api/v1/events".to_owned()),
        ("GET", "/metrics".to_owned()),
        ("GET", TASKS.to_owned()),
        ("GET", format!("{TASKS}/{id}/profile?format=folded")),
        ("POST", format!("{TASKS}/{id}/stop")),
        ("DELETE", format!("{TASKS}/{id}")),
        ("GET", "/api/v1/no-such-thing".to_owned()),
    ];
    for (method, path) in &requests {
        let answer = without.send(method, path, None).unwrap();
        assert_problem(&answer, 401, "missing_token", path);
        for api in [&wrong, &short] {
            assert_problem(
                &api.send(method, path, None).unwrap(),
                401,
                "wrong_token",
                path,
            );
        }
    }
    let shell = without.get("/").unwrap();
    assert_eq!(shell.status, 200);
    assert!(!shell.text().contains(&token), "the shell holds no secret");
    // The task is still there: nothing was stopped or deleted.
    assert!(agent.api.task(&id).is_ok());
}

#[test]
fn the_read_only_token_looks_at_everything_and_changes_nothing() {
    let targets = Targets::new();
    let file = targets.folder.join("read-only");
    let arguments = ["--read-only-token-file", file.to_str().unwrap()];
    let agent = Agent::start_with(ServeOptions::with_arguments(arguments)).unwrap();
    let token = token_in(&file).unwrap();
    let look = agent.api.with_token(Some(&token));
    let id = start_task(&agent, &endless(json!({ "all": true }), 99));
    let document = look.get_json("/api/v1/openapi.json").unwrap();
    let mut refused = 0;
    for (route, item) in document["paths"].as_object().unwrap() {
        let path = route.replace("{id}", &id).replace("{build_id}", "00ff");
        let path = path.replace("{edge}", "1");
        for method in item.as_object().unwrap().keys() {
            // Streams do not end.
            if method == "get" && path.ends_with("/events") {
                continue;
            }
            let answer = look.send(&method.to_uppercase(), &path, None).unwrap();
            if method != "get" || path == "/api/v1/support-bundle" {
                assert_problem(&answer, 403, "read_only_token", &path);
                refused += 1;
            } else {
                assert!(
                    ![401, 403, 429].contains(&answer.status),
                    "{path}: {}",
                    answer.text()
                );
            }
        }
    }
    assert!(refused >= 10, "{refused} operations change something");
    assert_eq!(look.get_json("/api/v1/meta").unwrap()["role"], "read_only");
    assert_eq!(look.task(&id).unwrap()["state"], "running");
    assert!(
        look.get("/metrics")
            .unwrap()
            .text()
            .contains("profiler_agent_tasks")
    );
    stop_task(&agent, &id);
    assert!(look.profile(&id, "folded", "").is_ok());
}

#[test]
fn foreign_hosts_and_origins_are_refused() {
    let agent = Agent::start().unwrap();
    let token = agent.api.token.clone().unwrap();
    let own = agent.api.address;
    let request = |host: &str, more: &str| {
        let text = format!(
            "GET /api/v1/meta HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n{more}Connection: close\r\n\r\n"
        );
        agent.api.send_raw(text.as_bytes()).unwrap()
    };
    assert_eq!(request(&own.to_string(), "").status, 200);
    assert_eq!(
        request(&format!("localhost:{}", own.port()), "").status,
        200
    );
    assert_eq!(
        request(&own.to_string(), &format!("Origin: http://{own}\r\n")).status,
        200
    );
    let port = own.port();
    for host in [
        format!("attacker.example:{port}"),
        "attacker.example".into(),
        "127.0.0.1:1".into(),
        format!("127.0.0.1:+{port}"),
        format!("8.8.8.8:{port}"),
        format!("[::1]:{port}"),
        String::new(),
    ] {
        assert_problem(&request(&host, ""), 403, "foreign_host", &host);
    }
    for twice in [
        format!("Host: {own}\r\n"),
        format!("Origin: http://{own}\r\n").repeat(2),
        "Sec-Fetch-Site: same-origin\r\n".repeat(2),
    ] {
        let answer = request(&own.to_string(), &twice);
        assert_problem(&answer, 400, "repeated_header", &twice);
    }
    for origin in [
        "http://attacker.example",
        "null",
        "http://127.0.0.1:1",
        &format!("https://{own}"),
    ] {
        let answer = request(&own.to_string(), &format!("Origin: {origin}\r\n"));
        assert_problem(&answer, 403, "foreign_origin", origin);
    }
    let body = on_cpu(json!({ "all": true }), 1, 99).to_string();
    let cross = format!(
        "POST {TASKS} HTTP/1.1\r\nHost: {own}\r\nAuthorization: Bearer {token}\r\nOrigin: http://attacker.example\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    assert_problem(
        &agent.api.send_raw(cross.as_bytes()).unwrap(),
        403,
        "foreign_origin",
        "POST",
    );
    assert_eq!(agent.api.get_json(TASKS).unwrap()["total"], 0);
}

#[test]
fn wrong_paths_methods_and_media_types() {
    let agent = Agent::start().unwrap();
    let api = &agent.api;
    for path in [
        "/api/v1/nothing",
        "/api/v1/tasks/4711",
        "/api/v1/tasks/x/profile?format=svg",
        "/api/v1/processes/1-1",
    ] {
        assert_problem(&api.get(path).unwrap(), 404, "not_found", path);
    }
    let put = api.send("PUT", TASKS, Some("{}")).unwrap();
    assert_problem(&put, 405, "method_not_allowed", "PUT");
    let (own, token) = (api.address, api.token.clone().unwrap());
    let form = format!(
        "POST {TASKS} HTTP/1.1\r\nHost: {own}\r\nAuthorization: Bearer {token}\r\nContent-Type: text/plain\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}"
    );
    assert_problem(
        &api.send_raw(form.as_bytes()).unwrap(),
        415,
        "unsupported_media_type",
        "text",
    );
}

#[test]
fn meta_probes_and_openapi() {
    let agent = Agent::start().unwrap();
    let meta = agent.api.get_json("/api/v1/meta").unwrap();
    assert_eq!(meta["limits"]["max_duration_s"], 3600);
    assert_eq!(meta["limits"]["max_frequency_hz"], 4999);
    assert_eq!(meta["auth"], "token");
    assert_eq!(meta["btf"], true);
    assert!(meta["cpus"].as_u64() > Some(0), "{meta}");
    assert_eq!(
        agent.api.get_json("/healthz").unwrap(),
        json!({ "status": "ok" })
    );

    let served = agent.api.get_json("/api/v1/openapi.json").unwrap();
    let golden = paths::workspace().join("docs/http-api.json");
    let golden: Value = serde_json::from_slice(&std::fs::read(golden).unwrap()).unwrap();
    assert_eq!(
        served, golden,
        "the program was built from another docs/http-api.json: build it again"
    );
}

#[test]
fn processes_are_listed_with_identity_and_masked_arguments() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let target = targets.shares(
        profiler_tests::workload::Workload::SharesC,
        "shares-listed",
        &["--seconds", "1234"],
    );
    let pid = target.pid();
    let mut found = Value::Null;
    profiler_tests::wait::wait_until("the target is listed with its load", START, || {
        let listed = agent
            .api
            .get_json("/api/v1/processes?q=shares-listed&sort=cpu")
            .unwrap();
        found = listed["items"][0].clone();
        found["pid"] == pid && found["cpu_percent"].as_f64() > Some(20.0)
    })
    .unwrap_or_else(|error| panic!("{error:#}: {found}"));
    let start = profiler_tests::cleanup::start_ticks(pid).unwrap();
    assert_eq!(found["id"], format!("{pid}-{start}"));
    assert_eq!(found["parent_pid"], std::process::id());
    assert_eq!(found["uid"], 0);
    assert_eq!(found["user"], "root");
    assert_eq!(found["kernel_thread"], false);
    let arguments = found["arguments"].as_array().unwrap();
    assert_eq!(arguments[1..], [json!("***"), json!("***")], "{found}");
    assert!(!found.to_string().contains("1234\""), "{found}");
    let detail = agent
        .api
        .get_json(&format!("/api/v1/processes/{pid}-{start}"))
        .unwrap();
    assert_eq!(
        detail["thread_list"].as_array().unwrap().len(),
        2,
        "main and timer: {detail}"
    );
    let stale = agent
        .api
        .get(&format!("/api/v1/processes/{pid}-{}", start + 1))
        .unwrap();
    assert_problem(&stale, 404, "not_found", "another process with this pid");
}

#[test]
fn several_tasks_run_at_once_and_can_be_stopped_and_deleted() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let target = targets.busy("shares-several");
    let endless = json!({ "kind": "on_cpu", "target": { "pids": [target.pid()] }, "duration_s": null, "frequency_hz": 199 });
    let ids: Vec<String> = (0..3).map(|_| start_task(&agent, &endless)).collect();
    // So long that it still runs when it is looked at, however slow this machine is.
    let pids = json!({ "pids": [target.pid()] });
    let long = start_task(&agent, &on_cpu(pids.clone(), 600, 199));
    assert_eq!(
        agent.api.get_json("/api/v1/self").unwrap()["running_tasks"],
        4
    );
    let progress = agent.api.task(&long).unwrap();
    assert!(
        progress["progress"]
            .as_f64()
            .is_some_and(|done| (0.0..=1.0).contains(&done)),
        "{progress}"
    );
    assert!(
        agent.api.task(&ids[0]).unwrap()["progress"].is_null(),
        "no end, no progress"
    );

    let early = agent
        .api
        .send("DELETE", &format!("{TASKS}/{}", ids[0]), None)
        .unwrap();
    assert_problem(&early, 409, "task_not_final", "delete a running task");
    let short = start_task(&agent, &on_cpu(pids, 2, 199));
    finish_task(&agent, &short, 2);
    stop_task(&agent, &long);
    for id in &ids {
        profiler_tests::wait::wait_until("a running task serves its result so far", START, || {
            agent
                .api
                .folded(id, "")
                .unwrap()
                .count(|stack| stack.has("hot_sixty"))
                > 50
        })
        .unwrap();
        stop_task(&agent, id);
        assert!(
            agent.api.folded(id, "").unwrap().total() > 50,
            "the result is kept"
        );
        assert_eq!(
            agent.api.stop_task(id).unwrap()["state"],
            "cancelled",
            "stopping twice"
        );
    }
    let listed = agent.api.get_json(TASKS).unwrap();
    let order: Vec<&str> = listed["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|task| task["id"].as_str())
        .collect();
    let newest_first: Vec<&str> = [&short, &long]
        .into_iter()
        .chain(ids.iter().rev())
        .map(String::as_str)
        .collect();
    assert_eq!(order, newest_first);
    let path = format!("{TASKS}/{}", ids[0]);
    assert_eq!(agent.api.send("DELETE", &path, None).unwrap().status, 204);
    assert_problem(&agent.api.get(&path).unwrap(), 404, "not_found", "deleted");
}

#[test]
fn profiles_are_exported_in_every_format() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let target = targets.busy("shares-export");
    let id = start_task(&agent, &on_cpu(json!({ "pids": [target.pid()] }), 2, 499));
    let samples = finish_task(&agent, &id, 2)["samples"].as_u64().unwrap();

    let svg = agent.api.profile(&id, "svg", "").unwrap();
    assert!(svg.text().contains("<svg") && svg.text().contains("hot_sixty"));
    assert_eq!(svg.header("content-type"), Some("image/svg+xml"));
    let policy = svg.header("content-security-policy").unwrap();
    assert!(
        policy.contains("sandbox") && policy.contains("default-src 'none'"),
        "{policy}"
    );
    assert!(
        svg.header("content-disposition")
            .unwrap()
            .starts_with("attachment")
    );
    assert_eq!(svg.header("x-content-type-options"), Some("nosniff"));

    let speedscope = agent
        .api
        .profile(&id, "speedscope", "")
        .unwrap()
        .json()
        .unwrap();
    assert_eq!(
        speedscope["$schema"],
        "https://www.speedscope.app/file-format-schema.json"
    );
    let frames = speedscope["shared"]["frames"].to_string();
    assert!(frames.contains("hot_thirty"), "{frames}");

    let columns = agent.api.profile(&id, "flamegraph", "").unwrap();
    assert_eq!(&columns.body[..5], b"PFG1\0");
    let attributed = agent
        .api
        .profile(&id, "flamegraph", "&features=true")
        .unwrap();
    assert_eq!(&attributed.body[..5], b"PFG1\x02");
    let refused = agent
        .api
        .get(&format!("{TASKS}/{id}/profile?format=svg&features=true"))
        .unwrap();
    assert_problem(&refused, 422, "invalid_field", "features of a picture");

    let pprof = targets.folder.join("profile.pb.gz");
    std::fs::write(&pprof, agent.api.profile(&id, "pprof", "").unwrap().body).unwrap();
    let go = std::process::Command::new("go")
        .args(["tool", "pprof", "-raw"])
        .arg(&pprof)
        .env("PPROF_TMPDIR", &targets.folder)
        .output()
        .expect("run go (https://go.dev/dl) to check the pprof export");
    let raw = String::from_utf8_lossy(&go.stdout).into_owned();
    assert!(
        go.status.success(),
        "{}",
        String::from_utf8_lossy(&go.stderr)
    );
    assert!(
        raw.contains("hot_sixty") && raw.contains("thread:"),
        "{raw}"
    );
    for label in ["pid:", "tid:", "cpu:", "time_ms:"] {
        assert!(raw.contains(label), "label {label} in {raw}");
    }
    let counted = pprof_samples(&raw);
    assert_eq!(
        counted, samples,
        "the pprof export holds every sample: {raw}"
    );
    let refused = agent
        .api
        .get(&format!("{TASKS}/{id}/profile?format=docx"))
        .unwrap();
    assert_problem(&refused, 422, "invalid_field", "unknown format");
}

/// Sum of the first value column of `go tool pprof -raw`.
fn pprof_samples(raw: &str) -> u64 {
    let samples = raw
        .lines()
        .skip_while(|line| !line.starts_with("Samples:"))
        .skip(2);
    let rows = samples.take_while(|line| !line.starts_with("Locations"));
    rows.filter_map(|line| line.split_once(": "))
        .filter_map(|(values, _)| values.split_whitespace().next()?.parse::<u64>().ok())
        .sum()
}
