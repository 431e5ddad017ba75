//! Takes what sidecars report and counts it: spans by OTLP (`POST /v1/traces`), access log entries by gRPC
//! (`StreamAccessLogs`), and statsd datagrams by UDP on the same port. `GET /received` has the counts.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::{Context as _, Result};
use clap::Parser;
use http_body_util::{BodyExt as _, Full, Limited, combinators::BoxBody};
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use profiler_tests::{mesh::Received, peers::log_sink::take_message};
use prost::Message;
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use tokio::net::{TcpListener, UdpSocket};

const BODY_LIMIT: usize = 16 << 20;
/// Longest message of a stream that is waited for.
const MESSAGE_LIMIT: usize = 4 << 20;
/// Bytes of datagrams that may wait while the machine is busy with something else; beyond that they are lost.
const WAITING: usize = 8 << 20;

#[derive(Parser)]
struct Options {
    #[arg(long)]
    listen: SocketAddr,
}

#[derive(Debug, Default)]
struct Counts {
    spans: AtomicU64,
    log_entries: AtomicU64,
    datagrams: AtomicU64,
}

/// `opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest`, down to the number of spans.
#[derive(Message)]
struct Traces {
    #[prost(message, repeated, tag = "1")]
    resources: Vec<ResourceSpans>,
}

#[derive(Message)]
struct ResourceSpans {
    #[prost(message, repeated, tag = "2")]
    scopes: Vec<ScopeSpans>,
}

#[derive(Message)]
struct ScopeSpans {
    #[prost(bytes = "bytes", repeated, tag = "2")]
    spans: Vec<Bytes>,
}

/// `envoy.service.accesslog.v3.StreamAccessLogsMessage`, down to the number of HTTP entries.
#[derive(Message)]
struct AccessLogs {
    #[prost(message, optional, tag = "2")]
    http: Option<HttpEntries>,
}

#[derive(Message)]
struct HttpEntries {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    entries: Vec<Bytes>,
}

type Answer = Response<BoxBody<Bytes, std::convert::Infallible>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let options = Options::parse();
    let counts = Arc::new(Counts::default());
    let listen = || format!("listen on {}", options.listen);
    let listener = TcpListener::bind(options.listen)
        .await
        .with_context(listen)?;
    let statsd = UdpSocket::bind(options.listen).await.with_context(listen)?;
    set_socket_recv_buffer_size_force(&statsd, WAITING).context("let datagrams wait")?;
    tokio::spawn(count_datagrams(statsd, Arc::clone(&counts)));
    println!("listening on {}", options.listen);
    loop {
        let (stream, _) = listener.accept().await.context("accept")?;
        let counts = Arc::clone(&counts);
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(request, Arc::clone(&counts)));
            // A connection that ends badly is the peer's affair.
            drop(
                auto::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service)
                    .await,
            );
        });
    }
}

async fn count_datagrams(socket: UdpSocket, counts: Arc<Counts>) {
    let mut buffer = vec![0; 1 << 16];
    while socket.recv(&mut buffer).await.is_ok() {
        counts.datagrams.fetch_add(1, Ordering::Relaxed);
    }
}

async fn answer(
    request: Request<Incoming>,
    counts: Arc<Counts>,
) -> Result<Answer, hyper::http::Error> {
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/received") => respond(StatusCode::OK, received(&counts)),
        (&Method::POST, "/v1/traces") => traces(request, &counts).await,
        (&Method::POST, "/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs") => {
            access_logs(request.into_body(), &counts).await
        }
        _ => respond(StatusCode::NOT_FOUND, Bytes::new()),
    }
}

fn respond(status: StatusCode, body: Bytes) -> Result<Answer, hyper::http::Error> {
    Response::builder()
        .status(status)
        .body(Full::new(body).boxed())
}

fn received(counts: &Counts) -> Bytes {
    let received = Received {
        spans: counts.spans.load(Ordering::Relaxed),
        log_entries: counts.log_entries.load(Ordering::Relaxed),
        datagrams: counts.datagrams.load(Ordering::Relaxed),
    };
    serde_json::to_vec(&received).unwrap_or_default().into()
}

async fn traces(request: Request<Incoming>, counts: &Counts) -> Result<Answer, hyper::http::Error> {
    let Ok(body) = Limited::new(request.into_body(), BODY_LIMIT)
        .collect()
        .await
    else {
        return respond(StatusCode::PAYLOAD_TOO_LARGE, Bytes::new());
    };
    match Traces::decode(body.to_bytes()) {
        Ok(traces) => {
            let scopes = traces
                .resources
                .iter()
                .flat_map(|resource| &resource.scopes);
            let spans: usize = scopes.map(|scope| scope.spans.len()).sum();
            counts.spans.fetch_add(spans as u64, Ordering::Relaxed);
            // An answer without fields: everything was taken.
            respond(StatusCode::OK, Bytes::new())
        }
        Err(error) => respond(StatusCode::BAD_REQUEST, error.to_string().into()),
    }
}

/// Counts while the stream goes on, which may be as long as the sidecar lives.
async fn access_logs(mut body: Incoming, counts: &Counts) -> Result<Answer, hyper::http::Error> {
    let mut buffer = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        let Some(data) = frame.data_ref() else {
            continue;
        };
        buffer.extend_from_slice(data);
        while let Some(message) = take_message(&mut buffer) {
            let entries = AccessLogs::decode(message).ok().and_then(|logs| logs.http);
            let entries = entries.map_or(0, |http| http.entries.len());
            counts
                .log_entries
                .fetch_add(entries as u64, Ordering::Relaxed);
        }
        if buffer.len() > MESSAGE_LIMIT {
            break;
        }
    }
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", 0.into());
    let body = Full::new(Bytes::new()).with_trailers(std::future::ready(Some(Ok(trailers))));
    Response::builder()
        .header("content-type", "application/grpc")
        .body(body.boxed())
}
