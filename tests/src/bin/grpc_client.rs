//! A client of `profiler.tests.Counter` (see `peers::grpc`), in tonic. For each call it prints the path,
//! the status, the number of answers, and the bytes of the body that it sent and got.

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
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let options = Options::parse();
    let connections: Vec<_> = (0..options.connections)
        .map(|_| tokio::spawn(connection(options.url.clone(), options.rounds)))
        .collect();
    for connection in connections {
        connection.await.context("join")??;
    }
    Ok(())
}

/// All rounds of one connection.
async fn connection(url: String, rounds: u32) -> Result<()> {
    let channel = Channel::from_shared(url)
        .context("parse the URL")?
        .connect()
        .await
        .context("connect")?;
    let mut begun = 0;
    while begun < rounds {
        let number = AT_ONCE.min(rounds - begun);
        let at_once: Vec<_> = (0..number)
            .map(|_| tokio::spawn(round(channel.clone())))
            .collect();
        for round in at_once {
            round.await.context("join")??;
        }
        begun += number;
    }
    Ok(())
}

/// One call of each kind.
async fn round(channel: Channel) -> Result<()> {
    unary(&channel, ADD, 41).await?;
    unary(&channel, ADD, -1).await?;
    unary(&channel, MISSING, 1).await?;
    streaming(&channel, STREAMED).await?;
    streaming(&channel, -1).await
}

async fn ready(channel: &Channel) -> Result<Grpc<Channel>> {
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await.context("the connection is ready")?;
    Ok(grpc)
}

async fn unary(channel: &Channel, path: &'static str, value: i64) -> Result<()> {
    let mut grpc = ready(channel).await?;
    let sent = Number { value };
    let request = Request::new(sent.clone());
    let path_and_query = PathAndQuery::from_static(path);
    let codec = ProstCodec::<Number, Number>::default();
    match grpc.unary(request, path_and_query, codec).await {
        Ok(answer) => report(path, None, &sent, &[answer.into_inner()]),
        Err(status) => report(path, Some(&status), &sent, &[]),
    }
    Ok(())
}

async fn streaming(channel: &Channel, value: i64) -> Result<()> {
    let mut grpc = ready(channel).await?;
    let sent = Number { value };
    let request = Request::new(sent.clone());
    let path = PathAndQuery::from_static(COUNT);
    let codec = ProstCodec::<Number, Number>::default();
    let mut answers = match grpc.server_streaming(request, path, codec).await {
        Ok(answer) => answer.into_inner(),
        Err(status) => {
            report(COUNT, Some(&status), &sent, &[]);
            return Ok(());
        }
    };
    let mut received = Vec::new();
    while let Some(answer) = answers.message().await.context("read an answer")? {
        received.push(answer);
    }
    report(COUNT, None, &sent, &received);
    Ok(())
}

fn report(path: &str, status: Option<&Status>, sent: &Number, received: &[Number]) {
    let code = status.map_or(0, |status| i32::from(status.code()));
    let bytes = |number: &Number| number.encoded_len() + MESSAGE_HEAD;
    let received_bytes: usize = received.iter().map(bytes).sum();
    let answers = received.len();
    println!("{path} {code} {answers} {} {received_bytes}", bytes(sent));
}
