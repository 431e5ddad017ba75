//! Sends what Envoy 1.40 has sent to an agent again and again, over connections with one stream each, as sidecars do.
//!
//! It prints `connected` when every stream is open, begins at SIGUSR1, and prints what it has sent when the agent has read
//! all of it. At a rate each stream sends a message every second, as Envoy flushes its buffer; otherwise as fast as the agent
//! reads, with as many entries in a message as a buffer of 16 KiB holds.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::{
    Request, Response,
    body::{Bytes, Frame, Incoming},
    client::conn::http2::{SendRequest, handshake},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use profiler_access_logs::{Limits, decode};
use profiler_tests::access_logs::{CONNECTED, Sent};
use tokio::{
    net::TcpStream,
    signal::unix::{SignalKind, signal},
    sync::{mpsc, watch},
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_stream::wrappers::ReceiverStream;

/// A whole `StreamAccessLogsMessage`: the identifier, and a list of entries.
const RECORDED: &[u8] = include_bytes!("../../fixtures/access_logs/requests.bin");
const SERVICE: &str = "/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs";
/// Lists in a message that is sent as fast as possible.
const TOGETHER: usize = 11;
/// As the snippets configure it.
const FLUSH: Duration = Duration::from_secs(1);
/// For the agent to read what is under way when the time is over.
const END: Duration = Duration::from_mins(1);

#[derive(Clone, Debug, Parser)]
struct Options {
    /// Where the agent receives access logs
    #[arg(long)]
    address: SocketAddr,
    /// Connections, each with one stream
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    streams: u32,
    /// Entries per second over all streams; 0 sends as fast as the agent reads
    #[arg(long, default_value_t = 0)]
    rate: u32,
    /// How long it sends
    #[arg(long, default_value = "10s", value_parser = humantime::parse_duration)]
    duration: Duration,
}

type Messages = StreamBody<ReceiverStream<Result<Frame<Bytes>, Infallible>>>;

/// The two fields of the recorded message, as they are encoded.
#[derive(Clone, Debug)]
struct Recorded {
    identifier: &'static [u8],
    list: &'static [u8],
    /// Where its entries have the seconds of their start.
    starts: Vec<usize>,
    /// Entries in the list.
    entries: u64,
}

/// A number as it is encoded.
fn varint(mut number: u64) -> Vec<u8> {
    let mut encoded = Vec::new();
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            encoded.push(low & 0x7f);
            return encoded;
        }
        encoded.push(low | 0x80);
    }
}

impl Recorded {
    fn read() -> Result<Self> {
        // A tag of one byte, a length of two, and the content.
        let [_, low, high, ..] = RECORDED else {
            anyhow::bail!("the recorded message is cut");
        };
        let length = usize::from(low & 0x7f) | usize::from(*high) << 7;
        let (identifier, list) = RECORDED
            .split_at_checked(3 + length)
            .context("the recorded message does not begin with its identifier")?;
        let mut starts = Vec::new();
        let mut entries = 0;
        let mut place = 0;
        decode(&Bytes::from_static(list), &Limits::default(), |entry| {
            entries += 1;
            let seconds = entry.start_unix_ns.unwrap_or(0) / 1_000_000_000;
            // Field 1 of a timestamp.
            let encoded = [vec![0x08], varint(seconds)].concat();
            let rest = list.get(place..).unwrap_or_default();
            let found = rest
                .windows(encoded.len())
                .position(|window| window == encoded);
            if let Some(found) = found {
                starts.push(place + found + 1);
                place += found + encoded.len();
            }
        })
        .context("decode the recorded entries")?;
        ensure!(entries > 0, "the recorded message has no entries");
        ensure!(
            starts.len() as u64 == entries,
            "{} of {entries} recorded entries have a start",
            starts.len()
        );
        Ok(Self {
            identifier,
            list,
            starts,
            entries,
        })
    }

    /// A message of gRPC with this many lists, whose requests have begun just now. Envoy names itself in the first of a stream alone.
    fn message(&self, is_first: bool, lists: usize) -> Result<Bytes> {
        let identifier = if is_first { self.identifier } else { &[] };
        let length = identifier.len() + lists * self.list.len();
        let length = u32::try_from(length).context("too many entries for a message")?;
        let mut message = vec![0];
        message.extend_from_slice(&length.to_be_bytes());
        message.extend_from_slice(identifier);
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        // As long as that of the recording until the year 3058.
        let now = varint(now);
        for _ in 0..lists {
            let begin = message.len();
            message.extend_from_slice(self.list);
            for start in &self.starts {
                let seconds = message.get_mut(begin + start..begin + start + now.len());
                seconds.context("a start at the end")?.copy_from_slice(&now);
            }
        }
        Ok(Bytes::from(message))
    }
}

/// What all streams share.
#[derive(Debug)]
struct Replay {
    options: Options,
    recorded: Recorded,
    entries: AtomicU64,
    messages: AtomicU64,
    bytes: AtomicU64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let options = Options::parse();
    let replay = Arc::new(Replay {
        recorded: Recorded::read()?,
        entries: AtomicU64::new(0),
        messages: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
        options,
    });
    let mut go = signal(SignalKind::user_defined1()).context("catch SIGUSR1")?;
    let (begin, begun) = watch::channel(false);
    let mut streams = JoinSet::new();
    for number in 0..replay.options.streams {
        let (sender, messages) = mpsc::channel(1);
        let stream = open(replay.options.address, messages)
            .await
            .with_context(|| format!("open stream {number}"))?;
        streams.spawn(stream.ended());
        streams.spawn(Arc::clone(&replay).send(number, sender, begun.clone()));
    }
    println!("{CONNECTED}");
    go.recv().await;
    let began = Instant::now();
    begin.send(true).context("no stream is left")?;
    let ended = async {
        while let Some(ended) = streams.join_next().await {
            ended.context("a stream panicked")??;
        }
        anyhow::Ok(())
    };
    let limit = replay.options.duration + END;
    timeout(limit, ended)
        .await
        .context("the agent does not read what was sent")??;
    let sent = Sent {
        entries: replay.entries.load(Ordering::Relaxed),
        messages: replay.messages.load(Ordering::Relaxed),
        bytes: replay.bytes.load(Ordering::Relaxed),
        seconds: began.elapsed().as_secs_f64(),
    };
    println!("{}", serde_json::to_string(&sent)?);
    Ok(())
}

/// An open stream; it ends when the agent has read all of it.
struct Stream {
    sender: SendRequest<Messages>,
    request: Request<Messages>,
}

async fn open(
    address: SocketAddr,
    messages: mpsc::Receiver<Result<Frame<Bytes>, Infallible>>,
) -> Result<Stream> {
    let connection = TcpStream::connect(address).await.context("connect")?;
    connection.set_nodelay(true).context("set TCP_NODELAY")?;
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(connection)).await?;
    // What goes wrong with it is an error of its request.
    tokio::spawn(connection);
    let request = Request::post(format!("http://{address}{SERVICE}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(StreamBody::new(ReceiverStream::new(messages)))?;
    Ok(Stream { sender, request })
}

impl Stream {
    async fn ended(mut self) -> Result<()> {
        let answer: Response<Incoming> = self.sender.send_request(self.request).await?;
        let (head, body) = answer.into_parts();
        let body = body.collect().await?;
        // A server that sends nothing else has it in the head.
        let trailers = body.trailers().unwrap_or(&head.headers);
        let text = |name| trailers.get(name).and_then(|value| value.to_str().ok());
        let status = text("grpc-status").unwrap_or("none");
        let why = text("grpc-message").unwrap_or_default();
        ensure!(
            status == "0",
            "the agent refused with status {status}: {why}"
        );
        Ok(())
    }
}

impl Replay {
    async fn send(
        self: Arc<Self>,
        number: u32,
        sender: mpsc::Sender<Result<Frame<Bytes>, Infallible>>,
        mut begun: watch::Receiver<bool>,
    ) -> Result<()> {
        begun.changed().await.context("never begun")?;
        if self.options.rate == 0 {
            self.fast(&sender).await
        } else {
            self.at_rate(number, &sender).await
        }
    }

    async fn fast(&self, sender: &mpsc::Sender<Result<Frame<Bytes>, Infallible>>) -> Result<()> {
        let began = Instant::now();
        let mut is_first = true;
        while began.elapsed() < self.options.duration {
            let message = self.recorded.message(is_first, TOGETHER)?;
            self.pass(sender, message, TOGETHER).await?;
            is_first = false;
        }
        Ok(())
    }

    async fn at_rate(
        &self,
        number: u32,
        sender: &mpsc::Sender<Result<Frame<Bytes>, Infallible>>,
    ) -> Result<()> {
        let Options {
            streams,
            rate,
            duration,
            ..
        } = self.options;
        let began = Instant::now();
        let lists_per_second =
            f64::from(rate) / f64::from(streams) / entries_of_list(&self.recorded);
        // Envoys do not flush all at once.
        let mut next = FLUSH.mul_f64(f64::from(number) / f64::from(streams));
        let mut done = 0;
        loop {
            let next_or_end = next.min(duration);
            sleep(next_or_end.saturating_sub(began.elapsed())).await;
            let due = whole(next_or_end.as_secs_f64() * lists_per_second);
            if due > done {
                let message = self.recorded.message(done == 0, due - done)?;
                self.pass(sender, message, due - done).await?;
                done = due;
            }
            if next >= duration {
                return Ok(());
            }
            next += FLUSH;
        }
    }

    async fn pass(
        &self,
        sender: &mpsc::Sender<Result<Frame<Bytes>, Infallible>>,
        message: Bytes,
        lists: usize,
    ) -> Result<()> {
        let bytes = message.len() as u64;
        let passed = sender.send(Ok(Frame::data(message))).await;
        ensure!(passed.is_ok(), "the agent has ended the stream");
        let entries = lists as u64 * self.recorded.entries;
        self.entries.fetch_add(entries, Ordering::Relaxed);
        self.messages.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }
}

#[expect(clippy::cast_precision_loss, reason = "a message has a few entries")]
fn entries_of_list(recorded: &Recorded) -> f64 {
    recorded.entries as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number of lists that was sent, which is not negative and fits"
)]
fn whole(lists: f64) -> usize {
    lists as usize
}
