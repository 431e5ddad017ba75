//! The demo mesh's server app: answers every request with a body of a fixed size.

use std::{convert::Infallible, net::SocketAddr};

use anyhow::{Context as _, Result};
use clap::Parser;
use http_body_util::Full;
use hyper::{Response, body::Bytes, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

#[derive(Parser)]
struct Options {
    #[arg(long)]
    listen: SocketAddr,
    #[arg(long, default_value_t = 512)]
    body_bytes: usize,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let options = Options::parse();
    let body = Bytes::from("x".repeat(options.body_bytes));
    let listener = TcpListener::bind(options.listen)
        .await
        .with_context(|| format!("listen on {}", options.listen))?;
    println!("listening on {}", options.listen);
    loop {
        let (stream, _) = listener.accept().await.context("accept")?;
        stream.set_nodelay(true).context("set TCP_NODELAY")?;
        let body = body.clone();
        tokio::spawn(async move {
            let answer = service_fn(move |_| {
                let body = body.clone();
                async move { Ok::<_, Infallible>(Response::new(Full::new(body))) }
            });
            // A connection that ends badly is the peer's affair.
            drop(
                http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), answer)
                    .await,
            );
        });
    }
}
