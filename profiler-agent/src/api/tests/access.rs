//! What each token may do, and how those without one are bounded.

use std::{net::SocketAddr, os::unix::fs::PermissionsExt as _, process::Stdio};

use axum::{
    body::Body,
    extract::ConnectInfo,
    http::{Request, Response, StatusCode, header},
};
use serde_json::{Value, json};

use super::{Api, Setup, check_problem, json as body_json};
use crate::{
    api::{
        Origin, Token, Tokens,
        needs::{Need, ROUTES, listed},
    },
    config::ArgumentPolicy,
};

/// Every method and path of the OpenAPI document.
async fn documented(api: &Api) -> Vec<(String, String)> {
    let document = api.get_json("/api/v1/openapi.json").await;
    let paths = document["paths"].as_object().unwrap();
    let operations = paths.iter().flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().keys();
        methods.map(|method| (method.to_uppercase(), path.clone()))
    });
    operations
        .filter(|(method, _)| ["GET", "POST", "PUT", "DELETE", "PATCH"].contains(&method.as_str()))
        .collect()
}

/// A path with something in the place of each parameter.
fn filled(route: &str) -> String {
    route
        .split('/')
        .map(|part| if part.starts_with('{') { "1" } else { part })
        .collect::<Vec<_>>()
        .join("/")
}

impl Api {
    async fn send_as(&self, token: Option<&str>, method: &str, path: &str) -> Response<Body> {
        self.send_from(([127, 0, 0, 1], 5), token, method, path)
            .await
    }

    async fn send_from(
        &self,
        peer: ([u8; 4], u16),
        token: Option<&str>,
        method: &str,
        path: &str,
    ) -> Response<Body> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "127.0.0.1:7117")
            .extension(ConnectInfo(SocketAddr::from(peer)));
        if let Some(token) = token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        self.send(request.body(Body::empty()).unwrap()).await
    }
}

#[tokio::test]
async fn the_table_lists_every_route_and_no_other() {
    let api = Api::new();
    let documented = documented(&api).await;
    for (method, route) in &documented {
        assert!(listed(method, route).is_some(), "{method} {route}");
    }
    let mut seen = std::collections::HashSet::new();
    for (method, route, need) in ROUTES {
        assert!(seen.insert((method, route)), "{method} {route} twice");
        // What a method does other than reading needs the full token.
        assert!(method == "GET" || need == Need::Full, "{method} {route}");
        let is_documented = documented
            .iter()
            .any(|known| (known.0.as_str(), known.1.as_str()) == (method, route));
        let is_page = need == Need::Page || route == "/api/v1/openapi.json";
        assert!(is_documented || is_page, "{method} {route} is not a route");
    }
}

#[tokio::test]
async fn the_read_only_token_looks_at_everything_and_changes_nothing() {
    let api = Api::new();
    let task = api.running_task().await;
    let refused = json!({
        "type": "about:blank", "title": "Forbidden", "status": 403, "code": "read_only_token",
        "detail": "this token may only look",
        "hint": "use the agent's full token: `profiler-agent url`, with the settings of `serve`, prints the address with it"
    });
    for (method, route) in documented(&api).await {
        // Streams do not end.
        if route.ends_with("/events") {
            continue;
        }
        let path = filled(&route);
        let answer = api.send_as(Some(&api.read_only), &method, &path).await;
        if listed(&method, &route) == Some(Need::Full) {
            check_problem(answer, refused.clone()).await;
        } else {
            let status = answer.status();
            assert!(
                status != StatusCode::UNAUTHORIZED && status != StatusCode::FORBIDDEN,
                "{method} {path}: {status}"
            );
        }
    }
    for (method, path) in [
        ("PATCH", "/api/v1/meta"),
        ("DELETE", "/api/v1/meta"),
        ("POST", "/"),
    ] {
        let answer = api.send_as(Some(&api.read_only), method, path).await;
        check_problem(answer, refused.clone()).await;
    }
    let task = api.get_json(&format!("/api/v1/tasks/{task}")).await;
    assert_eq!(task["state"], "running", "nothing was stopped");
    assert_eq!(api.get_json("/api/v1/tasks").await["total"], 1);
    for path in ["/", "/healthz", "/api/v1/events", "/metrics"] {
        let answer = api.send_as(Some(&api.read_only), "GET", path).await;
        assert_eq!(answer.status(), 200, "{path}");
        let head = api.send_as(Some(&api.read_only), "HEAD", path).await;
        assert_eq!(head.status(), 200, "HEAD {path}");
    }
    let nowhere = api.send_as(Some(&api.read_only), "GET", "/nothing").await;
    assert_eq!(nowhere.status(), 404);
}

#[tokio::test]
async fn each_token_is_told_its_role() {
    let api = Api::new();
    let role = async |token: &str| {
        let meta = api.send_as(Some(token), "GET", "/api/v1/meta").await;
        body_json(meta).await["role"].clone()
    };
    assert_eq!(role(&api.token).await, "full");
    assert_eq!(role(&api.read_only).await, "read_only");
}

#[tokio::test]
async fn arguments_that_are_shown_are_masked_for_the_read_only_token() {
    let setup = Setup {
        arguments: ArgumentPolicy::Shown,
        ..Setup::default()
    };
    let origin = Origin {
        address: ([127, 0, 0, 1], 7117).into(),
        tls: false,
    };
    let api = Api::with(setup, origin);
    let secret = "planted-secret-77ab";
    let mut child = std::process::Command::new("sh")
        .args(["-c", "read -r line", "--", secret])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id();
    let list = async |token: &str, query: &str| -> Value {
        let path = format!("/api/v1/processes?q={query}");
        body_json(api.send_as(Some(token), "GET", &path).await).await
    };
    let shown = list(&api.token, secret).await;
    assert_eq!(shown["items"][0]["pid"], pid, "{shown}");
    let found = list(&api.read_only, secret).await;
    assert_eq!(found["total"], 0, "what is masked is not searched");
    let masked = list(&api.read_only, &pid.to_string()).await.to_string();
    assert!(masked.contains("***") && !masked.contains(secret));
    let id = shown["items"][0]["id"].as_str().unwrap();
    let path = format!("/api/v1/processes/{id}");
    let one = api.send_as(Some(&api.read_only), "GET", &path).await;
    assert!(!body_json(one).await.to_string().contains(secret));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn the_read_only_token_is_another_one_in_a_private_file() {
    let data = tempfile::tempdir().unwrap();
    let full = Token::fresh(data.path()).unwrap();
    let tokens = || Tokens::new(full.clone());
    let same = tokens().with_read_only(&data.path().join("token"));
    assert_eq!(
        same.unwrap_err().to_string(),
        format!(
            "read-only token file {} holds the full token: give a file of its own with --read-only-token-file",
            data.path().join("token").display()
        )
    );
    let open = data.path().join("open");
    std::fs::write(&open, "a".repeat(64)).unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o644)).unwrap();
    let refused = tokens().with_read_only(&open).unwrap_err().to_string();
    assert!(refused.contains("chmod 600 it"), "{refused}");
    assert!(tokens().with_read_only(&data.path().join("made")).is_ok());
}

#[tokio::test]
async fn wrong_tokens_are_counted_and_slowed_and_the_right_one_is_not() {
    const PATH: &str = "/api/v1/meta";
    let api = Api::new();
    let (here, there) = (([10, 0, 0, 1], 5), ([10, 0, 0, 2], 5));
    for _ in 0..30 {
        let answer = api.send_from(here, Some("wrong"), "GET", PATH).await;
        assert_eq!(answer.status(), 401);
    }
    for token in [Some("wrong"), None] {
        let slowed = api.send_from(here, token, "GET", PATH).await;
        assert_eq!(slowed.status(), 429);
        let wait = slowed.headers()[header::RETRY_AFTER].to_str().unwrap();
        assert!((1..=60).contains(&wait.parse::<u64>().unwrap()), "{wait}");
        assert_eq!(body_json(slowed).await["code"], "too_many_wrong_tokens");
    }
    for token in [&api.token, &api.read_only] {
        let answer = api.send_from(here, Some(token), "GET", PATH).await;
        assert_eq!(answer.status(), 200, "who has a token is served");
    }
    // What needs no token is answered, or the page could not ask for one.
    for path in ["/", "/healthz"] {
        let answer = api.send_from(here, None, "GET", path).await;
        assert_eq!(answer.status(), 200, "{path}");
    }
    let other = api.send_from(there, Some("wrong"), "GET", PATH).await;
    assert_eq!(other.status(), 401, "another address");
    let metrics = super::text(api.get("/metrics").await).await;
    for line in [
        "profiler_agent_http_wrong_tokens_total 32",
        "profiler_agent_http_limited_total{reason=\"wrong_tokens\"} 2",
        "profiler_agent_http_limited_total{reason=\"strangers_refused\"} 0",
    ] {
        assert!(metrics.lines().any(|found| found == line), "no {line}");
    }
}

#[tokio::test]
async fn headers_that_say_where_a_request_comes_from_are_given_once() {
    let api = Api::new();
    for (name, value) in [
        ("host", "127.0.0.1:7117"),
        ("origin", "http://127.0.0.1:7117"),
        ("sec-fetch-site", "same-origin"),
    ] {
        let mut request = api.request("GET", "/api/v1/meta").header(name, value);
        if name != "host" {
            let once = api.request("GET", "/api/v1/meta").header(name, value);
            let once = api.send(once.body(Body::empty()).unwrap()).await;
            assert_eq!(once.status(), 200, "{name} once");
            request = request.header(name, value);
        }
        check_problem(
            api.send(request.body(Body::empty()).unwrap()).await,
            json!({
                "type": "about:blank", "title": "Bad Request", "status": 400, "code": "repeated_header",
                "detail": format!("the request has more than one header {name}: send one")
            }),
        )
        .await;
    }
}

#[tokio::test]
async fn the_document_says_what_may_be_refused() {
    let api = Api::new();
    let document = api.get_json("/api/v1/openapi.json").await;
    for (method, route) in documented(&api).await {
        let responses = &document["paths"][&route][method.to_lowercase()]["responses"];
        let says = |status: &str, code: &str| {
            let text = responses[status]["description"].as_str();
            text.is_some_and(|text| text.contains(&format!("`{code}`")))
        };
        let need = listed(&method, &route).unwrap();
        for (status, code, expected) in [
            ("400", "repeated_header", true),
            ("401", "missing_token", !need.is_open()),
            ("401", "wrong_token", !need.is_open()),
            ("403", "foreign_host", true),
            ("403", "read_only_token", need == Need::Full),
            ("429", "too_many_strangers", true),
            ("429", "too_many_wrong_tokens", !need.is_open()),
            ("503", "overloaded", true),
        ] {
            assert_eq!(says(status, code), expected, "{method} {route} {code}");
        }
    }
    let creates = &document["paths"]["/api/v1/tasks"]["post"]["responses"];
    assert_eq!(
        creates["403"]["description"],
        "`tls_capture_not_allowed`, `bodies_not_allowed`, `foreign_host`, `foreign_origin`, `read_only_token`"
    );
    let reads = &document["paths"]["/api/v1/tasks/{id}/profile"]["get"]["responses"];
    let text = reads["503"]["description"].as_str().unwrap();
    assert!(text.contains("`memory_short`"), "{text}");
}
