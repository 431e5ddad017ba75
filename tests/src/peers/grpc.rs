//! The service `profiler.tests.Counter` of tonic: `Add` answers once, `Count` with a stream; both
//! refuse what is negative. Its messages are written by hand, so that nothing is generated.

use std::{path::Path, time::Duration};

use anyhow::{Context as _, Result};

use super::{asked::Asked, free_port, waiting::Waiting};
use crate::{
    netns::Netns,
    paths,
    process::{Launch, Running},
};

const LIMIT: Duration = Duration::from_mins(1);

/// Name of the service.
pub const SERVICE: &str = "profiler.tests.Counter";
/// One answer: the number plus one. `INVALID_ARGUMENT` for a negative one.
pub const ADD: &str = "/profiler.tests.Counter/Add";
/// As many answers as the number says, from 0. `INVALID_ARGUMENT` for a negative one.
pub const COUNT: &str = "/profiler.tests.Counter/Count";
/// Not there: `UNIMPLEMENTED`.
pub const MISSING: &str = "/profiler.tests.Counter/Missing";

/// What is sent both ways.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Number {
    #[prost(int64, tag = "1")]
    pub value: i64,
}

/// A running server.
#[derive(Debug)]
pub struct GrpcServer {
    server: Running,
    pub port: u16,
}

impl GrpcServer {
    pub fn start(folder: &Path) -> Result<Self> {
        let port = free_port()?;
        let mut server = Launch::new(&paths::own_program("grpc-server")?, "grpc-server", folder)
            .args([format!("--listen=127.0.0.1:{port}")])
            .start()?;
        server.wait_for_line(LIMIT, |line| line.starts_with("listening").then_some(()))?;
        Ok(Self { server, port })
    }

    pub fn pid(&self) -> u32 {
        self.server.pid()
    }
}

/// What a client did.
#[derive(Debug)]
pub struct Done {
    pub pid: u32,
    pub asked: Vec<Asked>,
    /// Messages to and from the server.
    pub messages: [u64; 2],
}

/// What a client is to do.
#[derive(Clone, Copy, Debug)]
pub struct Calls<'a> {
    pub address: &'a str,
    /// Rounds of calls of each kind over each connection, some at once.
    pub rounds: u32,
    pub connections: u32,
    /// Where the client runs; `None`: here.
    pub netns: Option<&'a Netns>,
}

/// Calls of a round.
pub const ROUND: u32 = 5;

pub fn call(folder: &Path, calls: &Calls<'_>) -> Result<Done> {
    done(client(folder, calls)?.start()?)
}

/// Makes some calls of each kind over one connection, which are not told, and waits. Then [`done`] tells of the others.
pub fn call_late(folder: &Path, calls: &Calls<'_>) -> Result<Waiting> {
    let client =
        client(folder, calls)?.args(["--wait-for".as_ref(), Waiting::file(folder).as_os_str()]);
    Waiting::start(client, folder)
}

fn client(folder: &Path, calls: &Calls<'_>) -> Result<Launch> {
    let client = Launch::new(&paths::own_program("grpc-client")?, "grpc-client", folder).args([
        format!("--url=http://{}", calls.address),
        format!("--rounds={}", calls.rounds),
        format!("--connections={}", calls.connections),
    ]);
    Ok(match calls.netns {
        Some(netns) => client.netns(netns),
        None => client,
    })
}

/// What a client says that it did, once it has ended.
pub fn done(client: Running) -> Result<Done> {
    let pid = client.pid();
    let output = client.finish(LIMIT)?;
    let mut done = Done {
        pid,
        asked: Vec::new(),
        messages: [0, 0],
    };
    for line in output.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [path, status, messages, sent, received] = words.as_slice() else {
            anyhow::bail!("the client says {line:?}");
        };
        let [sent, received] = [sent, received].map(|bytes| bytes.parse());
        let (sent, received) = (sent.context("bytes sent")?, received.context("received")?);
        done.asked
            .push(Asked::new("POST", path, status).sizes(sent, received));
        done.messages[0] += 1;
        let received: u64 = messages.parse().context("number of messages")?;
        done.messages[1] += received;
    }
    Ok(done)
}
