//! Headers on every answer, and what is open without a token.

use axum::{body::Body, http::header};

use super::{Api, bytes};
use crate::api::headers::{CSP, FIXED, SVG_CSP};

const GETS: [&str; 16] = [
    "/",
    "/index.html",
    "/favicon.ico",
    "/assets/none.js",
    "/healthz",
    "/metrics",
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
async fn only_the_shell_is_open_without_a_token() {
    let api = Api::new();
    for path in GETS {
        let bare = http::Request::builder()
            .uri(path)
            .header(header::HOST, "127.0.0.1:7117");
        let status = api.send(bare.body(Body::empty()).unwrap()).await.status();
        let shell =
            matches!(path, "/" | "/index.html" | "/favicon.ico") || path.starts_with("/assets/");
        assert_eq!(status == 401, !shell, "{path} {status}");
    }
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
