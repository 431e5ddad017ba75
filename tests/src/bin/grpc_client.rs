//! A client of `profiler.tests.Counter` (see `peers::grpc`), in tonic. For each call it prints the path,
//! the status and the number of answers.

use anyhow::{Context as _, Result};
use clap::Parser;
use http::uri::PathAndQuery;
use profiler_tests::peers::grpc::{ADD, COUNT, MISSING, Number};
use tonic::{Request, Status, client::Grpc, transport::Channel};
use tonic_prost::ProstCodec;

/// Answers of one stream.
const STREAMED: i64 = 25;
/// Rounds at once.
const AT_ONCE: u32 = 4;

#[derive(Parser)]
struct Options {
    #[arg(long)]
    url: String,
    /// Calls of each kind
    #[arg(long)]
    calls: u32,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let options = Options::parse();
    let channel = Channel::from_shared(options.url)
        .context("parse the URL")?
        .connect()
        .await
        .context("connect")?;
    let mut begun = 0;
    while begun < options.calls {
        let number = AT_ONCE.min(options.calls - begun);
        let rounds: Vec<_> = (0..number)
            .map(|_| tokio::spawn(round(channel.clone())))
            .collect();
        for round in rounds {
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
    let request = Request::new(Number { value });
    let path_and_query = PathAndQuery::from_static(path);
    let codec = ProstCodec::<Number, Number>::default();
    match grpc.unary(request, path_and_query, codec).await {
        Ok(_answer) => report(path, None, 1),
        Err(status) => report(path, Some(&status), 0),
    }
    Ok(())
}

async fn streaming(channel: &Channel, value: i64) -> Result<()> {
    let mut grpc = ready(channel).await?;
    let request = Request::new(Number { value });
    let path = PathAndQuery::from_static(COUNT);
    let codec = ProstCodec::<Number, Number>::default();
    let mut answers = match grpc.server_streaming(request, path, codec).await {
        Ok(answer) => answer.into_inner(),
        Err(status) => {
            report(COUNT, Some(&status), 0);
            return Ok(());
        }
    };
    let mut count = 0;
    while answers.message().await.context("read an answer")?.is_some() {
        count += 1;
    }
    report(COUNT, None, count);
    Ok(())
}

fn report(path: &str, status: Option<&Status>, answers: u32) {
    let code = status.map_or(0, |status| i32::from(status.code()));
    println!("{path} {code} {answers}");
}
