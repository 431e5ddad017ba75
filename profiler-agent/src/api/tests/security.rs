//! Headers on every answer, and what is open without a token.

use axum::{body::Body, http::header};

use super::{Api, bytes};
use crate::api::headers::{CSP, FIXED, SVG_CSP};

const GETS: [&str; 17] = [
    "/",
    "/index.html",
    "/favicon.ico",
    "/assets/none.js",
    "/healthz",
    "/metrics",
    "/readyz",
    "/nothing",
    "/api/v1/meta",
    "/api/v1/probes",
    "/api/v1/self",
    "/api/v1/processes",
    "/api/v1/containers",
    "/api/v1/tasks",
    "/api/v1/events",
    "/api/v1/openapi.json",
    "/api/v1/tasks/1/profile?format=gif",
];

fn check_headers(response: &http::Response<Body>, csp: &str, what: &str) {
    let headers = response.headers();
    assert_eq!(headers[header::CONTENT_SECURITY_POLICY], csp, "{what}");
    assert_eq!(
        headers
            .get_all(header::CONTENT_SECURITY_POLICY)
            .iter()
            .count(),
        1,
        "{what}"
    );
    for (name, value) in FIXED {
        assert_eq!(headers[&name], value, "{what} {name}");
    }
    assert!(headers.contains_key(header::CACHE_CONTROL), "{what}");
}

#[tokio::test]
async fn every_answer_has_the_security_headers() {
    let api = Api::new();
    for path in GETS {
        check_headers(&api.get(path).await, CSP, path);
        // Without token, from elsewhere, with a wrong method: the refusals have them too.
        let bare = http::Request::builder()
            .uri(path)
            .header(header::HOST, "127.0.0.1:7117");
        check_headers(
            &api.send(bare.body(Body::empty()).unwrap()).await,
            CSP,
            path,
        );
        let foreign = http::Request::builder()
            .uri(path)
            .header(header::HOST, "evil.example");
        check_headers(
            &api.send(foreign.body(Body::empty()).unwrap()).await,
            CSP,
            path,
        );
        check_headers(&api.send_empty("PATCH", path).await, CSP, path);
    }
}

#[tokio::test]
async fn svg_is_sandboxed_and_downloaded() {
    let api = Api::new();
    let id = api.running_task().await;
    let response = api
        .get(&format!("/api/v1/tasks/{id}/profile?format=svg"))
        .await;
    assert_eq!(response.status(), 200);
    check_headers(&response, SVG_CSP, "svg");
    assert_eq!(response.headers()[header::CONTENT_TYPE], "image/svg+xml");
    let disposition = format!("attachment; filename=\"task-{id}.svg\"");
    assert_eq!(
        response.headers()[header::CONTENT_DISPOSITION],
        disposition.as_str()
    );
    let svg = String::from_utf8(bytes(response).await).unwrap();
    assert!(
        svg.contains("hot&lt;script&gt;"),
        "the name is drawn: {svg}"
    );
    assert!(!svg.contains("hot<script>"), "names are escaped: {svg}");
}

#[tokio::test]
async fn only_the_shell_and_health_checks_are_open_without_a_token() {
    let api = Api::new();
    for path in GETS {
        let bare = http::Request::builder()
            .uri(path)
            .header(header::HOST, "127.0.0.1:7117");
        let status = api.send(bare.body(Body::empty()).unwrap()).await.status();
        let open = matches!(
            path,
            "/" | "/index.html" | "/favicon.ico" | "/healthz" | "/readyz"
        ) || path.starts_with("/assets/");
        assert_eq!(status == 401, !open, "{path} {status}");
        // To write nothing is open.
        let posted = http::Request::builder()
            .method("POST")
            .uri(path)
            .header(header::HOST, "127.0.0.1:7117");
        let status = api.send(posted.body(Body::empty()).unwrap()).await.status();
        assert_eq!(status, 401, "POST {path}");
    }
}

#[tokio::test]
async fn an_agent_that_cannot_profile_or_stops_is_alive_and_not_ready() {
    async fn code(api: &Api) -> serde_json::Value {
        let response = api.get("/readyz").await;
        assert_eq!(response.status(), 503);
        super::json(response).await["code"].clone()
    }
    let origin = crate::api::Origin {
        address: ([127, 0, 0, 1], 7117).into(),
        tls: false,
    };
    let setup = super::Setup {
        can_profile: false,
        ..super::Setup::default()
    };
    let blind = Api::with(setup, origin);
    assert_eq!(code(&blind).await, "not_ready");
    assert_eq!(blind.get_json("/healthz").await["status"], "ok");

    let api = Api::new();
    assert_eq!(api.get_json("/readyz").await["status"], "ready");
    // Health checks are answered when nothing else is.
    let _all = api.state.requests.try_acquire_many(64).unwrap();
    assert_eq!(api.get("/api/v1/meta").await.status(), 503);
    assert_eq!(api.get_json("/readyz").await["status"], "ready");
    api.shutdown.cancel();
    assert_eq!(code(&api).await, "shutting_down");
}

#[tokio::test]
async fn the_page_is_revalidated() {
    let api = Api::new();
    let first = api.get("/").await;
    assert_eq!(first.status(), 200);
    assert_eq!(first.headers()[header::CACHE_CONTROL], "no-cache");
    assert_eq!(
        first.headers()[header::CONTENT_TYPE],
        "text/html; charset=utf-8"
    );
    let etag = first.headers()[header::ETAG].clone();
    let again = api
        .request("GET", "/index.html")
        .header(header::IF_NONE_MATCH, etag);
    let again = api.send(again.body(Body::empty()).unwrap()).await;
    assert_eq!(again.status(), 304);
    check_headers(&again, CSP, "304");
}

#[tokio::test]
async fn api_answers_are_not_cached() {
    let api = Api::new();
    assert_eq!(
        api.get("/api/v1/meta").await.headers()[header::CACHE_CONTROL],
        "no-store"
    );
}
