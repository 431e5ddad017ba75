//! The server of `profiler.tests.Counter` (see `peers::grpc`), in tonic.

use std::{
    convert::Infallible,
    future::{Ready, ready},
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
};

use anyhow::{Context as _, Result};
use clap::Parser;
use profiler_tests::peers::grpc::{ADD, COUNT, Number, SERVICE};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{
    Request, Response, Status,
    body::Body,
    server::{Grpc, NamedService, ServerStreamingService, UnaryService},
    transport::Server,
};
use tonic_prost::ProstCodec;
use tower::Service;

#[derive(Parser)]
struct Options {
    #[arg(long)]
    listen: SocketAddr,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let options = Options::parse();
    let listener = TcpListener::bind(options.listen)
        .await
        .with_context(|| format!("listen on {}", options.listen))?;
    println!("listening on {}", options.listen);
    Server::builder()
        .add_service(Counter)
        .serve_with_incoming(TcpListenerStream::new(listener))
        .await
        .context("serve")
}

#[derive(Clone)]
struct Counter;

impl NamedService for Counter {
    const NAME: &'static str = SERVICE;
}

impl Service<http::Request<Body>> for Counter {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(async move {
            let mut grpc = Grpc::new(ProstCodec::<Number, Number>::default());
            Ok(match request.uri().path() {
                ADD => grpc.unary(Add, request).await,
                COUNT => grpc.server_streaming(Count, request).await,
                _ => Status::unimplemented("no such method").into_http(),
            })
        })
    }
}

fn not_negative(number: &Number) -> Result<i64, Status> {
    if number.value < 0 {
        return Err(Status::invalid_argument("a negative number"));
    }
    Ok(number.value)
}

struct Add;

impl UnaryService<Number> for Add {
    type Response = Number;
    type Future = Ready<Result<Response<Number>, Status>>;

    fn call(&mut self, request: Request<Number>) -> Self::Future {
        let answer = not_negative(request.get_ref());
        ready(answer.map(|value| Response::new(Number { value: value + 1 })))
    }
}

struct Count;

/// Answers of a stream.
type Answers = Pin<Box<dyn tokio_stream::Stream<Item = Result<Number, Status>> + Send>>;

impl ServerStreamingService<Number> for Count {
    type Response = Number;
    type ResponseStream = Answers;
    type Future = Ready<Result<Response<Answers>, Status>>;

    fn call(&mut self, request: Request<Number>) -> Self::Future {
        let answer = not_negative(request.get_ref());
        ready(answer.map(|count| {
            let numbers = (0..count).map(|value| Ok(Number { value }));
            Response::new(Box::pin(tokio_stream::iter(numbers)) as Answers)
        }))
    }
}
