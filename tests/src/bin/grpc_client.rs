//! A client of `profiler.tests.Counter` (see `peers::grpc`), in tonic. For each call it prints the path,
//! the status, the number of answers, and the bytes of the body that it sent and got.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context as _, Result};
use clap::Parser;
use http::uri::PathAndQuery;
use profiler_tests::peers::grpc::{ADD, COUNT, MISSING, Number};
use prost::Message as _;
use tonic::{Request, Status, client::Grpc, transport::Channel};
use tonic_prost::ProstCodec;

/// Answers of one stream.
const STREAMED: i64 = 25;
/// Rounds at once on a connection.
const AT_ONCE: u32 = 4;
/// What stands before each message of gRPC: whether it is compressed, and its length.
const MESSAGE_HEAD: usize = 5;

#[derive(Parser)]
struct Options {
    #[arg(long)]
    url: String,
    /// Calls of each kind over each connection
    #[arg(long)]
    rounds: u32,
    #[arg(long, default_value_t = 1)]
    connections: u32,
    /// A file: before the rounds some are made that are not told, then FILE.ready is made and FILE waited for
    #[arg(long)]
    wait_for: Option<PathBuf>,
}

/// Rounds before the wait: every header has been sent before.
const BEFORE: u32 = 3;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let options = Options::parse();
    let connections: Vec<_> = (0..options.connections)
        .map(|_| {
            let (url, wait_for) = (options.url.clone(), options.wait_for.clone());
            tokio::spawn(connection(url, options.rounds, wait_for))
        })
        .collect();
    for connection in connections {
        connection.await.context("join")??;
    }
    Ok(())
}

/// All rounds of one connection.
async fn connection(url: String, rounds: u32, wait_for: Option<PathBuf>) -> Result<()> {
    let channel = Channel::from_shared(url)
        .context("parse the URL")?
        .connect()
        .await
        .context("connect")?;
    if let Some(file) = wait_for {
        for _ in 0..BEFORE {
            round(channel.clone(), Told::No).await?;
        }
        let mut ready = file.clone().into_os_string();
        ready.push(".ready");
        std::fs::write(ready, "").context("say that it is ready")?;
        while !file.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    let mut begun = 0;
    while begun < rounds {
        let number = AT_ONCE.min(rounds - begun);
        let at_once: Vec<_> = (0..number)
            .map(|_| tokio::spawn(round(channel.clone(), Told::Yes)))
            .collect();
        for round in at_once {
            round.await.context("join")??;
        }
        begun += number;
    }
    Ok(())
}

/// Whether a call is printed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    Yes,
    No,
}

/// One call of each kind.
async fn round(channel: Channel, told: Told) -> Result<()> {
    unary(&channel, ADD, 41, told).await?;
    unary(&channel, ADD, -1, told).await?;
    unary(&channel, MISSING, 1, told).await?;
    streaming(&channel, STREAMED, told).await?;
    streaming(&channel, -1, told).await
}

async fn ready(channel: &Channel) -> Result<Grpc<Channel>> {
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await.context("the connection is ready")?;
    Ok(grpc)
}

async fn unary(channel: &Channel, path: &'static str, value: i64, told: Told) -> Result<()> {
    let mut grpc = ready(channel).await?;
    let sent = Number { value };
    let request = Request::new(sent.clone());
    let path_and_query = PathAndQuery::from_static(path);
    let codec = ProstCodec::<Number, Number>::default();
    match grpc.unary(request, path_and_query, codec).await {
        Ok(answer) => report(told, path, None, &sent, &[answer.into_inner()]),
        Err(status) => report(told, path, Some(&status), &sent, &[]),
    }
    Ok(())
}

async fn streaming(channel: &Channel, value: i64, told: Told) -> Result<()> {
    let mut grpc = ready(channel).await?;
    let sent = Number { value };
    let request = Request::new(sent.clone());
    let path = PathAndQuery::from_static(COUNT);
    let codec = ProstCodec::<Number, Number>::default();
    let mut answers = match grpc.server_streaming(request, path, codec).await {
        Ok(answer) => answer.into_inner(),
        Err(status) => {
            report(told, COUNT, Some(&status), &sent, &[]);
            return Ok(());
        }
    };
    let mut received = Vec::new();
    while let Some(answer) = answers.message().await.context("read an answer")? {
        received.push(answer);
    }
    report(told, COUNT, None, &sent, &received);
    Ok(())
}

fn report(told: Told, path: &str, status: Option<&Status>, sent: &Number, received: &[Number]) {
    if told == Told::No {
        return;
    }
    let code = status.map_or(0, |status| i32::from(status.code()));
    let bytes = |number: &Number| number.encoded_len() + MESSAGE_HEAD;
    let received_bytes: usize = received.iter().map(bytes).sum();
    let answers = received.len();
    println!("{path} {code} {answers} {} {received_bytes}", bytes(sent));
}
