//! Access logs: over the API, in the metrics, and where the socket is.

use std::{
    net::{SocketAddr, TcpListener},
    path::Path,
};

use axum::{
    body::Body,
    http::{Request, header},
};
use profiler_host::process::ProcessTable;
use serde_json::json;

use super::{Api, Setup, json as body_of, text};
use crate::{
    access_log_socket::{AccessLogSocket, ReceivedAccessLogs},
    api::Origin,
    app::{App, KernelSide},
    config::{
        AccessLogsConfig,
        cli::{AccessArgs, ReceiveLogsArgs, ServeArgs},
        resolve_serve,
    },
};

const PATH: &str = "/api/v1/access-logs";

fn plain(listen: SocketAddr) -> AccessLogsConfig {
    AccessLogsConfig { listen, tls: None }
}

fn loopback() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

fn receiving() -> Api {
    let socket = AccessLogSocket::bind(&plain(loopback())).unwrap();
    let setup = Setup {
        access_logs: socket.start(ProcessTable::new(), false).unwrap(),
        ..Setup::default()
    };
    let origin = Origin {
        address: ([127, 0, 0, 1], 7117).into(),
        tls: false,
    };
    Api::with(setup, origin)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_receives_none_says_so() {
    let api = Api::new();
    let stages = json!({ "full": 0.0, "counted": 0.0, "held": 0.0 });
    let none = json!({
        "is_on": false, "listen": null, "refused_connections": 0, "failed_connections": 0,
        "newest_failure": null, "stage_seconds": stages, "envoys": []
    });
    assert_eq!(api.get_json(PATH).await, none);
    let metrics = text(api.get("/metrics").await).await;
    assert!(!metrics.contains("access_log"), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_receives_some_says_where() {
    let api = receiving();
    let ReceivedAccessLogs { listen, .. } = api.state.parts.access_logs.clone();
    let listen = listen.unwrap();
    assert_ne!(listen.port(), 0);
    let answer = api.get_json(PATH).await;
    assert_eq!(answer["is_on"], true);
    assert_eq!(answer["listen"], listen.to_string());
    assert_eq!(answer["envoys"], json!([]));
    let metrics = text(api.get("/metrics").await).await;
    for line in [
        "profiler_agent_access_log_entries_total 0",
        "profiler_agent_access_log_envoys 0",
    ] {
        assert!(metrics.lines().any(|found| found == line), "no {line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_may_only_look_is_enough() {
    let api = Api::new();
    let request = Request::builder()
        .uri(PATH)
        .header(header::HOST, "127.0.0.1:7117")
        .header(header::AUTHORIZATION, format!("Bearer {}", api.read_only));
    let response = api.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(response.status(), 200);
    assert_eq!(body_of(response).await["is_on"], false);
}

/// Why an agent with this data directory does not start when it is to receive access logs at an address.
fn refused(listen: SocketAddr, data: &Path) -> String {
    let args = ServeArgs {
        access: AccessArgs {
            listen: Some("127.0.0.1:0".to_owned()),
            data_dir: Some(data.to_str().unwrap().to_owned()),
            ..AccessArgs::default()
        },
        receive_logs: ReceiveLogsArgs {
            access_logs: Some(listen.to_string()),
            ..ReceiveLogsArgs::default()
        },
        ..ServeArgs::default()
    };
    let config = resolve_serve(&args, None, &|_| None).unwrap();
    match App::start(config, KernelSide::absent("test")) {
        Ok(_) => panic!("it starts"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_in_use_is_an_error_before_the_results_are_opened() {
    let data = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind(loopback()).unwrap();
    let address = taken.local_addr().unwrap();
    assert_eq!(
        refused(address, data.path()),
        format!(
            "receive access logs on {address}: Address already in use (os error 98); \
             where another agent receives them already, ask that one for a task of requests, or stop it; else choose another \
             address with --access-logs"
        )
    );
    let left: Vec<_> = std::fs::read_dir(data.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}
