//! The demo mesh's server app: answers every request with a body of a fixed size, at once or after some
//! time.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

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
    /// How long a request waits for its answer
    #[arg(long, default_value = "0s", value_parser = humantime::parse_duration)]
    delay: Duration,
    /// Up to how much longer, of each request another part
    #[arg(long, default_value = "0s", value_parser = humantime::parse_duration)]
    delay_spread: Duration,
}

/// Parts of the spread that requests get, and how far apart those of two neighbours are: both prime, so
/// that all parts are used equally and in no simple order.
const PARTS: u32 = 101;
const STRIDE: u32 = 37;

/// How long each request waits.
#[derive(Debug)]
struct Delays {
    least: Duration,
    spread: Duration,
    requests: AtomicU32,
}

impl Delays {
    fn next(&self) -> Duration {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let part = number.wrapping_mul(STRIDE) % PARTS;
        self.least + self.spread * part / (PARTS - 1)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let options = Options::parse();
    let body = Bytes::from("x".repeat(options.body_bytes));
    let listener = TcpListener::bind(options.listen)
        .await
        .with_context(|| format!("listen on {}", options.listen))?;
    println!("listening on {}", options.listen);
    let delays = Arc::new(Delays {
        least: options.delay,
        spread: options.delay_spread,
        requests: AtomicU32::new(0),
    });
    loop {
        let (stream, _) = listener.accept().await.context("accept")?;
        stream.set_nodelay(true).context("set TCP_NODELAY")?;
        let body = body.clone();
        let delays = Arc::clone(&delays);
        tokio::spawn(async move {
            let answer = service_fn(move |_| {
                let body = body.clone();
                let delay = delays.next();
                async move {
                    if !delay.is_zero() {
                        tokio::time::sleep(delay).await;
                    }
                    Ok::<_, Infallible>(Response::new(Full::new(body)))
                }
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
