//! Keeps the messages that loggers of Envoys send, as they came.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context as _, Result};
use http_body_util::{BodyExt as _, Full, combinators::BoxBody};
use hyper::{
    HeaderMap, Request, Response,
    body::{Bytes, Incoming},
    server::conn::http2,
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{net::TcpListener, runtime::Runtime};

/// A flag for compression and the length, before each message.
const PREFIX: usize = 5;
/// Longest message, as an agent takes them.
const MESSAGE_LIMIT: usize = 4 << 20;
/// For what still runs when it ends.
const END: Duration = Duration::from_millis(100);
/// A message of gRPC without a byte, which both services have for an answer without fields.
const EMPTY: [u8; PREFIX] = [0; PREFIX];

/// A message, by the logger that sent it.
#[derive(Clone, Debug)]
pub enum Logged {
    /// A `StreamAccessLogsMessage`.
    Stream(Bytes),
    /// An `ExportLogsServiceRequest`.
    Export(Bytes),
}

type Messages = Arc<Mutex<Vec<Logged>>>;
type Answer = Response<BoxBody<Bytes, Infallible>>;

#[derive(Debug)]
pub struct LogSink {
    pub port: u16,
    messages: Messages,
    runtime: Option<Runtime>,
}

impl LogSink {
    pub fn start() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .context("start a runtime")?;
        let listener = runtime
            .block_on(TcpListener::bind("127.0.0.1:0"))
            .context("listen")?;
        let port = listener.local_addr().context("read the address")?.port();
        let messages = Messages::default();
        runtime.spawn(serve(listener, Arc::clone(&messages)));
        Ok(Self {
            port,
            messages,
            runtime: Some(runtime),
        })
    }

    /// All so far, in the order in which they came.
    pub fn messages(&self) -> Vec<Logged> {
        let messages = self.messages.lock();
        messages.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for LogSink {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(END);
        }
    }
}

async fn serve(listener: TcpListener, messages: Messages) {
    while let Ok((stream, _)) = listener.accept().await {
        let messages = Arc::clone(&messages);
        tokio::spawn(async move {
            let service = service_fn(move |request| take(request, Arc::clone(&messages)));
            let connection = http2::Builder::new(TokioExecutor::new());
            // A connection that ends badly is the peer's affair.
            drop(
                connection
                    .serve_connection(TokioIo::new(stream), service)
                    .await,
            );
        });
    }
}

async fn take(
    request: Request<Incoming>,
    messages: Messages,
) -> Result<Answer, hyper::http::Error> {
    let kind = match request.uri().path() {
        "/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs" => Logged::Stream,
        "/opentelemetry.proto.collector.logs.v1.LogsService/Export" => Logged::Export,
        _ => return answer(12),
    };
    let mut body = request.into_body();
    let mut buffer = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        let Some(data) = frame.data_ref() else {
            continue;
        };
        buffer.extend_from_slice(data);
        while let Some(message) = take_message(&mut buffer) {
            let mut messages = messages.lock().unwrap_or_else(PoisonError::into_inner);
            messages.push(kind(message));
        }
        if buffer.len() > MESSAGE_LIMIT {
            return answer(8);
        }
    }
    answer(0)
}

fn answer(status: u16) -> Result<Answer, hyper::http::Error> {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", status.into());
    let body = Full::new(Bytes::from_static(&EMPTY));
    let body = body.with_trailers(std::future::ready(Some(Ok(trailers))));
    Response::builder()
        .header("content-type", "application/grpc")
        .body(body.boxed())
}

/// The first message of gRPC in `buffer`, when all of it has come.
pub fn take_message(buffer: &mut Vec<u8>) -> Option<Bytes> {
    let prefix: [u8; PREFIX] = buffer.get(..PREFIX)?.try_into().ok()?;
    let [_, a, b, c, d] = prefix;
    let end = PREFIX + usize::try_from(u32::from_be_bytes([a, b, c, d])).ok()?;
    let message = Bytes::copy_from_slice(buffer.get(PREFIX..end)?);
    buffer.drain(..end);
    Some(message)
}
