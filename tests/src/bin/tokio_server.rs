//! A server on tokio's usual runtime that has little to do: what its threads wait for is known.

use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::net::TcpListener;

/// How often it does something by itself.
const TICK: Duration = Duration::from_millis(100);

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await.context("listen")?;
    let address = listener.local_addr().context("own address")?;
    println!("listening on {address}");
    tokio::spawn(async move {
        while let Ok(accepted) = listener.accept().await {
            drop(accepted);
        }
    });
    let mut ticks = tokio::time::interval(TICK);
    loop {
        ticks.tick().await;
        // Wakes a thread of the pool for work that blocks.
        let sum = tokio::task::spawn_blocking(|| (0..1000_u64).sum::<u64>());
        sum.await.context("work that blocks")?;
    }
}
