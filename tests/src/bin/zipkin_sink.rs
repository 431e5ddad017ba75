//! Takes spans as a Zipkin collector does (`POST /api/v2/spans`) and counts them (`GET /count`).

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::{Context as _, Result};
use clap::Parser;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

const BODY_LIMIT: usize = 16 << 20;

#[derive(Parser)]
struct Options {
    #[arg(long)]
    listen: SocketAddr,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let options = Options::parse();
    let spans = Arc::new(AtomicUsize::new(0));
    let listener = TcpListener::bind(options.listen)
        .await
        .with_context(|| format!("listen on {}", options.listen))?;
    println!("listening on {}", options.listen);
    loop {
        let (stream, _) = listener.accept().await.context("accept")?;
        let spans = Arc::clone(&spans);
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(request, Arc::clone(&spans)));
            // A connection that ends badly is the peer's affair.
            drop(
                http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await,
            );
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    spans: Arc<AtomicUsize>,
) -> Result<Response<Full<Bytes>>, hyper::http::Error> {
    let respond = |status, text: String| {
        Response::builder()
            .status(status)
            .body(Full::new(Bytes::from(text)))
    };
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/count") => {
            respond(StatusCode::OK, spans.load(Ordering::Relaxed).to_string())
        }
        (&Method::POST, "/api/v2/spans") => {
            let Ok(body) = Limited::new(request.into_body(), BODY_LIMIT)
                .collect()
                .await
            else {
                return respond(StatusCode::PAYLOAD_TOO_LARGE, String::new());
            };
            match serde_json::from_slice::<Vec<serde_json::Value>>(&body.to_bytes()) {
                Ok(received) => {
                    spans.fetch_add(received.len(), Ordering::Relaxed);
                    respond(StatusCode::ACCEPTED, String::new())
                }
                Err(error) => respond(StatusCode::BAD_REQUEST, error.to_string()),
            }
        }
        _ => respond(StatusCode::NOT_FOUND, String::new()),
    }
}
