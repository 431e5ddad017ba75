//! Every error code with its exact answer.

use axum::{body::Body, http::header};
use serde_json::json;

use super::{Api, Setup, check_problem, json as body_json};
use crate::api::Origin;

const TASKS: &str = "/api/v1/tasks";

async fn check_create(body: &str, expected: serde_json::Value) {
    let api = Api::new();
    check_problem(api.post(TASKS, body.to_owned()).await, expected).await;
}

fn invalid(field: &str, detail: &str) -> serde_json::Value {
    json!({
        "type": "about:blank", "title": "Unprocessable Entity", "status": 422,
        "code": "invalid_field", "detail": detail, "field": field
    })
}

#[tokio::test]
async fn missing_and_wrong_tokens_differ() {
    let api = Api::new();
    let plain = || {
        http::Request::builder()
            .uri("/api/v1/meta")
            .header(header::HOST, "127.0.0.1:7117")
    };
    let hint = "send the header Authorization: Bearer TOKEN; the token is in the file of --token-file or, without it, in \
                `token` of the agent's data directory, and `profiler-agent url`, with the settings of `serve`, prints the address with it";
    let missing = json!({
        "type": "about:blank", "title": "Unauthorized", "status": 401, "code": "missing_token",
        "detail": "the request carries no token", "hint": hint
    });
    let response = api.send(plain().body(Body::empty()).unwrap()).await;
    assert_eq!(
        response.headers()[header::WWW_AUTHENTICATE],
        "Bearer realm=\"profiler-agent\""
    );
    check_problem(response, missing.clone()).await;
    let basic = plain().header(header::AUTHORIZATION, format!("Basic {}", api.token));
    check_problem(api.send(basic.body(Body::empty()).unwrap()).await, missing).await;

    let wrong = json!({
        "type": "about:blank", "title": "Unauthorized", "status": 401, "code": "wrong_token",
        "detail": "the token is not the one of this agent",
        "hint": "the token changes at each start of the agent unless it runs with --token-file"
    });
    let last = if api.token.ends_with('0') { "1" } else { "0" };
    for token in [
        "x",
        "",
        &format!("{}{last}", &api.token[..63]),
        &format!("{}0", api.token),
    ] {
        let request = plain().header(header::AUTHORIZATION, format!("Bearer {token}"));
        let response = api.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(
            response.headers()[header::WWW_AUTHENTICATE],
            "Bearer realm=\"profiler-agent\", error=\"invalid_token\""
        );
        check_problem(response, wrong.clone()).await;
    }
}

#[tokio::test]
async fn foreign_hosts_are_refused_even_for_the_page() {
    let api = Api::new();
    let check = async |path: &str, host: Option<&str>| {
        let mut request = http::Request::builder()
            .uri(path)
            .header(header::AUTHORIZATION, format!("Bearer {}", api.token));
        if let Some(host) = host {
            request = request.header(header::HOST, host);
        }
        let host = host.unwrap_or_default();
        check_problem(
            api.send(request.body(Body::empty()).unwrap()).await,
            json!({
                "type": "about:blank", "title": "Forbidden", "status": 403, "code": "foreign_host",
                "detail": format!("the Host header {host:?} does not name this agent"),
                "hint": "use the address that the agent printed at start, with its port; of others an IP address of its \
                         machine where it listens on all, or one that its certificate names"
            }),
        )
        .await;
    };
    for path in ["/", "/assets/x.js", "/api/v1/meta", "/metrics", "/nothing"] {
        check(path, Some("rebind.example:7117")).await;
        check(path, Some("127.0.0.1:7118")).await;
        check(path, None).await;
    }
}

#[tokio::test]
async fn foreign_origins_are_refused() {
    let api = Api::new();
    let forbidden = |origin: &str| {
        json!({
            "type": "about:blank", "title": "Forbidden", "status": 403, "code": "foreign_origin",
            "detail": format!("requests from the origin {origin:?} are not accepted"),
            "hint": "only pages of this agent may call its API"
        })
    };
    for origin in [
        "http://evil.example",
        "null",
        "http://127.0.0.1:8080",
        "https://127.0.0.1:7117",
        "http://localhost:7117",
    ] {
        let request = api.request("POST", TASKS).header(header::ORIGIN, origin);
        check_problem(
            api.send(request.body(Body::empty()).unwrap()).await,
            forbidden(origin),
        )
        .await;
    }
    for site in ["cross-site", "same-site"] {
        let request = api
            .request("GET", "/api/v1/meta")
            .header("sec-fetch-site", site);
        check_problem(
            api.send(request.body(Body::empty()).unwrap()).await,
            forbidden(site),
        )
        .await;
    }
    // Our own page, and a link to it from elsewhere.
    let own = api
        .request("GET", "/api/v1/meta")
        .header(header::ORIGIN, "http://127.0.0.1:7117");
    assert_eq!(
        api.send(own.body(Body::empty()).unwrap()).await.status(),
        200
    );
    let link = |path| {
        api.request("GET", path)
            .header("sec-fetch-site", "cross-site")
            .header("sec-fetch-mode", "navigate")
            .header("sec-fetch-dest", "document")
            .body(Body::empty())
            .unwrap()
    };
    assert_eq!(api.send(link("/")).await.status(), 200);
    assert_eq!(api.send(link("/api/v1/meta")).await.status(), 403);
}

#[tokio::test]
async fn unknown_paths_and_methods() {
    let api = Api::new();
    let not_found = |detail: &str| json!({"type": "about:blank", "title": "Not Found", "status": 404, "code": "not_found", "detail": detail});
    check_problem(
        api.get("/api/v2/meta").await,
        not_found("there is nothing at /api/v2/meta"),
    )
    .await;
    check_problem(api.get("/api/v1/tasks/7").await, not_found("no task 7")).await;
    check_problem(api.get("/api/v1/tasks/07").await, not_found("no task 07")).await;
    check_problem(
        api.get("/api/v1/tasks/x/profile?format=svg").await,
        not_found("no task x"),
    )
    .await;
    check_problem(
        api.get("/assets/none.js").await,
        not_found("there is no file assets/none.js"),
    )
    .await;
    check_problem(
        api.get("/assets/../../etc/passwd").await,
        not_found("there is no file assets/../../etc/passwd"),
    )
    .await;
    check_problem(
        api.get("/api/v1/processes/1-1").await,
        not_found("there is no process \"1-1\"; it may have exited"),
    )
    .await;
    for (method, path) in [
        ("PUT", TASKS),
        ("DELETE", "/api/v1/meta"),
        ("POST", "/api/v1/processes"),
    ] {
        check_problem(
            api.send_empty(method, path).await,
            json!({
                "type": "about:blank", "title": "Method Not Allowed", "status": 405, "code": "method_not_allowed",
                "detail": format!("the method {method} is not allowed here")
            }),
        )
        .await;
    }
    let bad_escape = api.get("/api/v1/tasks/%ff").await;
    assert_eq!(body_json(bad_escape).await["code"], "not_found");
}

#[tokio::test]
async fn malformed_json_and_wrong_media_types() {
    let malformed = |detail: &str| {
        json!({
            "type": "about:blank", "title": "Bad Request", "status": 400, "code": "malformed_json",
            "detail": format!("the request body is not valid JSON: {detail}")
        })
    };
    check_create(
        "{\"kind\":",
        malformed("EOF while parsing a value at line 1 column 8"),
    )
    .await;
    check_create(
        "",
        malformed("EOF while parsing a value at line 1 column 0"),
    )
    .await;
    check_create(
        r#"{"kind":"on_cpu","target":{"all":true}} x"#,
        malformed("trailing characters at line 1 column 41"),
    )
    .await;
    let api = Api::new();
    for media_type in [
        None,
        Some("text/plain"),
        Some("application/x-www-form-urlencoded"),
    ] {
        let mut request = api.request("POST", TASKS);
        if let Some(media_type) = media_type {
            request = request.header(header::CONTENT_TYPE, media_type);
        }
        check_problem(
            api.send(request.body(Body::from("{}")).unwrap()).await,
            json!({
                "type": "about:blank", "title": "Unsupported Media Type", "status": 415,
                "code": "unsupported_media_type", "detail": "the request body must be JSON",
                "hint": "send the header Content-Type: application/json"
            }),
        )
        .await;
    }
}

#[tokio::test]
async fn wrong_fields_are_named() {
    let task = |rest: &str| format!(r#"{{"kind":"on_cpu","target":{{"all":true}}{rest}}}"#);
    check_create(
        &task(r#","colour":"red""#),
        invalid("colour", "unknown field `colour`, expected one of `kind`, `target`, `duration_s`, `frequency_hz`, `wakers`, `timed`, `off_cpu_mode`, `min_wait_ns`, `max_wait_ns`, `event_loop`, `source`, `tls`, `tls_duty_percent`, `bodies`, `raw_paths`, `samples`, `rules`, `capture_bytes`, `cpu_percent`, `group`"),
    )
    .await;
    check_create("{}", invalid("kind", "missing field `kind`")).await;
    check_create(
        r#"{"kind":"on_cpu"}"#,
        invalid("target", "missing field `target`"),
    )
    .await;
    check_create(
        "[]",
        invalid("body", "the request body must be a JSON object"),
    )
    .await;
    check_create(
        r#"{"kind":"gpu","target":{"all":true}}"#,
        invalid(
            "kind",
            "unknown variant `gpu`, expected one of `on_cpu`, `off_cpu`, `wall`, `network`, `requests`, `imported`",
        ),
    )
    .await;
    check_create(
        r#"{"kind":"on_cpu","target":{"all":false}}"#,
        invalid(
            "target",
            "all must be true, or another target must be given",
        ),
    )
    .await;
    check_create(
        r#"{"kind":"on_cpu","target":{"pids":[1,"x"]}}"#,
        invalid("target.pids[1]", "invalid type: string \"x\", expected u32"),
    )
    .await;
    check_create(
        r#"{"kind":"on_cpu","target":{"pids":[]}}"#,
        invalid("target.pids", "target.pids must name at least one process"),
    )
    .await;
    check_create(
        &task(r#","frequency_hz":0"#),
        invalid(
            "frequency_hz",
            "frequency_hz must be between 1 and 4999, got 0",
        ),
    )
    .await;
    check_create(
        &task(r#","frequency_hz":5000"#),
        invalid(
            "frequency_hz",
            "frequency_hz must be between 1 and 4999, got 5000",
        ),
    )
    .await;
    check_create(
        &task(r#","duration_s":1000000000"#),
        invalid(
            "duration_s",
            "duration_s must be between 1 and 3600, got 1000000000",
        ),
    )
    .await;
    check_create(
        &task(r#","duration_s":0"#),
        invalid("duration_s", "duration_s must be between 1 and 3600, got 0"),
    )
    .await;
    check_create(
        &task(r#","duration_s":-1"#),
        invalid("duration_s", "invalid value: integer `-1`, expected u64"),
    )
    .await;
}

#[tokio::test]
async fn two_targets_are_refused() {
    let api = Api::new();
    let response = api
        .post(
            TASKS,
            r#"{"kind":"on_cpu","target":{"all":true,"pids":[1]}}"#,
        )
        .await;
    check_problem(
        response,
        invalid(
            "target",
            "invalid value: map, expected map with a single key",
        ),
    )
    .await;
}

#[tokio::test]
async fn wrong_query_parameters_are_named() {
    let api = Api::new();
    let check = async |path: &str, field: &str, detail: &str| {
        let problem = body_json(api.get(path).await).await;
        assert_eq!(problem["status"], 422, "{problem}");
        assert_eq!(problem["code"], "invalid_field", "{problem}");
        assert_eq!(problem["field"], field, "{problem}");
        assert_eq!(problem["detail"], detail, "{problem}");
    };
    check(
        "/api/v1/processes?sort=age",
        "sort",
        "sort \"age\" is not one of cpu, pid, name, rss",
    )
    .await;
    check(
        "/api/v1/processes?limit=-1",
        "limit",
        "limit \"-1\" is not a number",
    )
    .await;
    check(
        "/api/v1/processes?kernel=yes",
        "kernel",
        "kernel \"yes\" is not true or false",
    )
    .await;
    check(
        "/api/v1/processes?limit=1&limit=2",
        "limit",
        "limit is given more than once",
    )
    .await;
    check("/api/v1/meta?x=1", "x", "unknown query parameter \"x\"").await;
    let profile = "/api/v1/tasks/1/profile";
    let formats = "folded, pprof, svg, speedscope, html, flamegraph";
    check(
        profile,
        "format",
        &format!("format is missing: give one of {formats}"),
    )
    .await;
    check(
        &format!("{profile}?format=gif"),
        "format",
        &format!("format \"gif\" is not one of {formats}"),
    )
    .await;
    check(
        &format!("{profile}?format=svg&from=5&to=5"),
        "to",
        "to (5) must be after from (5)",
    )
    .await;
    check(
        &format!("{profile}?format=svg&tid=a"),
        "tid",
        "tid \"a\" is not a thread or process number",
    )
    .await;
    check(
        &format!("{profile}?format=svg&from=1s"),
        "from",
        "from \"1s\" is not a number of milliseconds",
    )
    .await;
}

#[tokio::test]
async fn large_bodies_are_refused() {
    let too_large = json!({
        "type": "about:blank", "title": "Payload Too Large", "status": 413, "code": "body_too_large",
        "detail": "the request body is larger than 65536 bytes"
    });
    let api = Api::new();
    let announced = api
        .request("POST", TASKS)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::CONTENT_LENGTH, 10 << 20)
        .body(Body::from(vec![b' '; 10 << 20]))
        .unwrap();
    check_problem(api.send(announced).await, too_large.clone()).await;
    // Without a length the reading stops at the limit.
    let chunks =
        futures_util::stream::iter((0..160).map(|_| Ok::<_, std::io::Error>(vec![b' '; 65_536])));
    check_problem(api.post(TASKS, Body::from_stream(chunks)).await, too_large).await;
}

#[tokio::test]
async fn running_tasks_are_not_deleted_and_are_bounded() {
    let setup = Setup {
        max_running: 1,
        max_queued: 1,
        ..Setup::default()
    };
    let api = Api::with(
        setup,
        Origin {
            address: ([127, 0, 0, 1], 7117).into(),
            tls: false,
        },
    );
    let id = api.running_task().await;
    check_problem(
        api.send_empty("DELETE", &format!("/api/v1/tasks/{id}"))
            .await,
        json!({
            "type": "about:blank", "title": "Conflict", "status": 409, "code": "task_not_final",
            "detail": format!("task {id} is running: stop it before deleting it")
        }),
    )
    .await;
    let body = r#"{"kind":"on_cpu","target":{"all":true}}"#;
    assert_eq!(api.post(TASKS, body).await.status(), 201);
    check_problem(
        api.post(TASKS, body).await,
        json!({
            "type": "about:blank", "title": "Too Many Requests", "status": 429, "code": "too_many_tasks",
            "detail": "too many tasks: 1 running and 1 queued; stop one or wait"
        }),
    )
    .await;
}

#[tokio::test]
async fn a_stopping_agent_says_so() {
    let api = Api::new();
    api.shutdown.cancel();
    let stopping = json!({
        "type": "about:blank", "title": "Service Unavailable", "status": 503, "code": "shutting_down",
        "detail": "the agent is shutting down"
    });
    let body = r#"{"kind":"on_cpu","target":{"all":true}}"#;
    check_problem(api.post(TASKS, body).await, stopping.clone()).await;
    check_problem(api.get("/api/v1/events").await, stopping).await;
}

#[tokio::test]
async fn an_unknown_pid_fails_the_task_with_the_reason() {
    let api = Api::new();
    let response = api
        .post(TASKS, r#"{"kind":"on_cpu","target":{"pids":[99]}}"#)
        .await;
    assert_eq!(response.status(), 201);
    let id = body_json(response).await["id"].as_str().unwrap().to_owned();
    let task = api.wait_for(&id, super::is_final).await;
    assert_eq!(task["state"], "failed");
    assert_eq!(task["reason"], "no such process: 99");
}

#[tokio::test]
async fn a_busy_agent_says_so() {
    let api = Api::new();
    let all = u32::try_from(api.state.requests.available_permits()).unwrap();
    let busy = api.state.requests.acquire_many(all).await.unwrap();
    let response = api.get("/api/v1/meta").await;
    assert_eq!(response.headers()[header::RETRY_AFTER], "1");
    check_problem(
        response,
        json!({
            "type": "about:blank", "title": "Service Unavailable", "status": 503, "code": "overloaded",
            "detail": "too many requests at once; try again soon"
        }),
    )
    .await;
    drop(busy);
    assert_eq!(api.get("/api/v1/meta").await.status(), 200);
}
