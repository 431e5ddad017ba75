//! The server: Envoy's access log service and OpenTelemetry's service for logs, by gRPC on one port.
//!
//! A gRPC message is five bytes in front of it, so that this is HTTP/2 and no more: what is not read yet stays with the sender,
//! who is held up by the windows. Everything that is held here is bounded: connections, streams, and the bytes of messages
//! that have not come whole.

use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::{
    HeaderMap, Method, Request, Response,
    body::{Frame, Incoming},
    header::{CONTENT_TYPE, HeaderValue},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::Mutex;
use profiler_access_logs::{Entry, Limits, count_entries, decode, otlp::decode_records};
use profiler_clock::{thread_cpu_ns, wall_ns};
use profiler_host::descriptors::most_open_files;
use profiler_model::access_log_status::AccessLogStage;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::{timeout, timeout_at},
};
use tokio_rustls::{TlsAcceptor, rustls};

use super::{
    batch::Batch,
    book::Book,
    messages::{INVALID_ARGUMENT, PREFIX, Pieces, RESOURCE_EXHAUSTED, Refusal, UNIMPLEMENTED},
    subscribers::Read,
};

const STREAM: &str = "/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs";
const EXPORT: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";

/// An Envoy has one for each of its threads.
const MOST_CONNECTIONS: usize = 4_096;
/// The part of the files that the process may open which connections may take.
const PART_OF_FILES: u64 = 4;
/// Of a connection: one for each log.
const MOST_STREAMS: u32 = 32;
/// What senders may send before it was read, for a stream and for a connection.
const STREAM_WINDOW: u32 = 128 << 10;
const CONNECTION_WINDOW: u32 = 256 << 10;
const MOST_HEADER_BYTES: u32 = 16 << 10;
const KEEP_ALIVE: Duration = Duration::from_secs(30);
const KEEP_ALIVE_ANSWER: Duration = Duration::from_secs(20);
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a connection may take to its first call. Envoy makes one when it has something to say.
const FIRST_CALL: Duration = Duration::from_secs(10);
/// Bytes of messages that have not come whole, of a connection and of all. Streams that need more are ended.
const MOST_HELD_OF_CONNECTION: usize = 8 << 20;
const MOST_HELD: usize = 64 << 20;

/// Of gRPC: nothing went wrong.
const OK: u16 = 0;

/// What all connections share.
#[derive(Debug)]
struct Shared {
    book: Arc<Mutex<Book>>,
    limits: Limits,
    held: AtomicUsize,
}

impl Shared {
    /// A connection has failed before anything was received; one that has only ended was a probe.
    fn fail(&self, peer: SocketAddr, error: &io::Error, how: &str) {
        let Some(why) = failure(error, how) else {
            return;
        };
        let failed = {
            let mut book = self.book.lock();
            book.failed += 1;
            book.newest_failure = Some(format!("{peer}: {why}"));
            book.failed
        };
        // Whoever connects again and again does not fill the log.
        if failed.is_power_of_two() {
            tracing::warn!(%peer, why, failed, "a connection of access logs has failed");
        }
    }
}

/// What was wrong with a connection that is served like this, and what to do. `None`: it has ended, which is nothing wrong.
fn failure(error: &io::Error, how: &str) -> Option<String> {
    let inner = error.get_ref();
    match inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidMessage(_)) => {
            return Some(
                "it does not speak TLS: its cluster needs what `access-logs snippet --tls` prints"
                    .to_owned(),
            );
        }
        Some(rustls::Error::NoCertificatesPresented) => {
            return Some("it shows no client certificate: its cluster needs what `access-logs snippet --tls` prints".to_owned());
        }
        Some(error) => return Some(format!("TLS: {error}")),
        None => {}
    }
    // It sends something else than the preface of HTTP/2 (RFC 9113, 3.4).
    let is_foreign = inner.and_then(|inner| inner.downcast_ref::<hyper::Error>());
    let is_foreign = is_foreign.and_then(std::error::Error::source);
    is_foreign
        .is_some_and(|source| source.to_string().contains("protocol error"))
        .then(|| format!("it does not speak HTTP/2 {how}, as is expected here"))
}

/// Accepts connections until the runtime ends. Clients show certificates that `tls` trusts, where there is one.
pub(super) async fn serve(listener: TcpListener, tls: Option<TlsAcceptor>, book: Arc<Mutex<Book>>) {
    let shared = Arc::new(Shared {
        book,
        limits: Limits::default(),
        held: AtomicUsize::new(0),
    });
    let room = Arc::new(Semaphore::new(most_connections()));
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::debug!(%error, "accept a connection of access logs");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&room).try_acquire_owned() else {
            shared.book.lock().refused += 1;
            continue;
        };
        let (shared, tls) = (Arc::clone(&shared), tls.clone());
        tokio::spawn(async move {
            if let Err(error) = connection(stream, peer, tls, shared).await {
                tracing::debug!(%error, %peer, "a connection of access logs");
            }
            drop(place);
        });
    }
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    tls: Option<TlsAcceptor>,
    shared: Arc<Shared>,
) -> io::Result<()> {
    let local = stream.local_addr()?;
    stream.set_nodelay(true)?;
    let open = || shared.book.lock().open(peer, local);
    let (number, done) = match tls {
        None => {
            let number = open();
            let done = serve_connection(stream, (number, peer, "without TLS"), &shared).await;
            (number, done)
        }
        Some(tls) => {
            let accepted = timeout(HANDSHAKE, tls.accept(stream)).await?;
            let stream = accepted.inspect_err(|error| shared.fail(peer, error, "in TLS"))?;
            let number = open();
            let done = serve_connection(stream, (number, peer, "in TLS"), &shared).await;
            (number, done)
        }
    };
    shared.book.lock().close(number);
    done
}

async fn serve_connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    (number, peer, how): (u64, SocketAddr, &str),
    shared: &Arc<Shared>,
) -> io::Result<()> {
    let mut server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    server
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(MOST_STREAMS)
        .max_header_list_size(MOST_HEADER_BYTES)
        .keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE_ANSWER);
    let connection = Arc::new(Connection {
        number,
        has_called: AtomicBool::new(false),
        held: AtomicUsize::new(0),
        shared: Arc::clone(shared),
    });
    let called = Arc::clone(&connection);
    let service = service_fn(move |request: Request<Incoming>| {
        let connection = Arc::clone(&called);
        connection.has_called.store(true, Ordering::Relaxed);
        async move { Ok::<_, Infallible>(answer(request, &connection).await) }
    });
    let mut served = pin!(server.serve_connection(TokioIo::new(stream), service));
    let first = timeout(FIRST_CALL, &mut served).await;
    let has_called = || connection.has_called.load(Ordering::Relaxed);
    let done = match first {
        Ok(done) => done,
        Err(_) if has_called() => served.await,
        Err(late) => return Err(late.into()),
    };
    let done = done.map_err(io::Error::other);
    if let Err(error) = &done
        && !has_called()
    {
        shared.fail(peer, error, how);
    }
    done
}

/// A connection that is served.
#[derive(Debug)]
struct Connection {
    /// In the book.
    number: u64,
    has_called: AtomicBool,
    held: AtomicUsize,
    shared: Arc<Shared>,
}

/// As many as leave most of the files that the process may open to others.
fn most_connections() -> usize {
    let part = most_open_files().map_or(u64::MAX, |most| most / PART_OF_FILES);
    usize::try_from(part)
        .unwrap_or(usize::MAX)
        .clamp(1, MOST_CONNECTIONS)
}

type Answer = Response<
    StreamBody<futures_util::stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, Infallible>>>>,
>;

/// Answers when the client has said everything.
async fn answer(request: Request<Incoming>, connection: &Arc<Connection>) -> Answer {
    let (number, shared) = (connection.number, &connection.shared);
    let kind = match request.uri().path() {
        STREAM => Service::Stream,
        EXPORT => Service::Export,
        path => {
            return ended(UNIMPLEMENTED, &format!("{path} is not served here"), false);
        }
    };
    let is_grpc = |value: &HeaderValue| value.as_bytes().starts_with(b"application/grpc");
    if request.method() != Method::POST || !request.headers().get(CONTENT_TYPE).is_some_and(is_grpc)
    {
        return ended(
            INVALID_ARGUMENT,
            "this is gRPC: POST of application/grpc",
            false,
        );
    }
    let _open = OpenStream::new(number, shared);
    let mut messages = Messages::new(request.into_body(), connection);
    let refusal = loop {
        wait_for_turn(shared).await;
        match messages.next().await {
            Ok(Some(message)) => {
                if let Err(why) = take(kind, &message, number, shared) {
                    shared.book.lock().refuse(number);
                    break Some((INVALID_ARGUMENT, why));
                }
            }
            Ok(None) => break None,
            Err(Refusal { status, why }) => {
                shared.book.lock().refuse(number);
                break Some((status, why));
            }
        }
    };
    match refusal {
        None => ended(OK, "", kind == Service::Export),
        Some((status, why)) => ended(status, &why, false),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Service {
    Stream,
    Export,
}

/// Reads the entries of a message that was read before.
pub(super) fn read_again(kind: Service, message: &Bytes, mut take: impl FnMut(Entry)) {
    let limits = Limits::default();
    // It was understood then.
    let _understood = match kind {
        Service::Stream => decode(message, &limits, &mut take).map(|_decoded| ()),
        Service::Export => {
            decode_records(message, &limits, |_from, entry| take(entry)).map(|_counts| ())
        }
    };
}

/// Reads the entries of a message, or counts them.
fn take(kind: Service, message: &Bytes, number: u64, shared: &Shared) -> Result<(), String> {
    let mut batch = Batch::default();
    let mut identifier = None;
    let (stage, is_wanted) = {
        let book = shared.book.lock();
        (book.governor.stage(), !book.subscribers.is_empty())
    };
    let mut entries = Vec::new();
    if is_wanted && kind == Service::Stream && stage == AccessLogStage::Full {
        // What is no message is refused below.
        let count = count_entries(message).map_or(0, |count| count.http + count.tcp);
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        entries.reserve_exact(count.min(shared.limits.entries));
    }
    let mut read = |entry: Entry| {
        batch.take(&entry);
        if is_wanted {
            entries.push(entry);
        }
    };
    match kind {
        Service::Stream if stage != AccessLogStage::Full => {
            let counted = count_entries(message).map_err(|error| error.to_string())?;
            batch.count(message.len(), counted.http + counted.tcp);
        }
        Service::Stream => {
            let decoded = decode(message, &shared.limits, &mut read);
            let decoded = decoded.map_err(|error| error.to_string())?;
            identifier = decoded.identifier;
            batch.end(message.len(), &decoded.counts);
        }
        // Nothing tells their number but reading them.
        Service::Export => {
            let counts = decode_records(message, &shared.limits, |from, entry| {
                if identifier.is_none() {
                    identifier = Some(from.clone());
                }
                read(entry);
            });
            let counts = counts.map_err(|error| error.to_string())?;
            batch.end(message.len(), &counts);
        }
    }
    let mut book = shared.book.lock();
    if let Some(identifier) = &identifier {
        book.identify(number, identifier);
    }
    book.came(number, &batch, wall_ns());
    if let Some(whose) = book.whose(number).filter(|_| is_wanted) {
        let unread = batch.entries() - entries.len() as u64;
        book.subscribers.leave_out(unread);
        // What was only counted is not read later either.
        if !entries.is_empty() {
            let message = Read {
                kind,
                message: message.clone(),
                entries,
            };
            book.subscribers.hand_out(&whose, message);
        }
    }
    let now = Instant::now();
    book.governor.came(batch.entries(), now, thread_cpu_ns());
    Ok(())
}

/// Waits as long as receiving has taken more than its share of a CPU. What is not read meanwhile stays with the senders.
async fn wait_for_turn(shared: &Shared) {
    loop {
        let wait = shared
            .book
            .lock()
            .governor
            .wait(Instant::now(), thread_cpu_ns());
        let Some(wait) = wait else {
            return;
        };
        tokio::time::sleep(wait).await;
    }
}

/// Counts as a stream until it is dropped, which it also is when the connection breaks.
struct OpenStream {
    number: u64,
    shared: Arc<Shared>,
}

impl OpenStream {
    fn new(number: u64, shared: &Arc<Shared>) -> Self {
        shared.book.lock().stream(number, true);
        Self {
            number,
            shared: Arc::clone(shared),
        }
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.shared.book.lock().stream(self.number, false);
    }
}

/// Messages of a stream, one after the other.
struct Messages {
    body: Incoming,
    pieces: Pieces,
    /// What of them counts as held.
    held: usize,
    connection: Arc<Connection>,
}

impl Drop for Messages {
    fn drop(&mut self) {
        self.hold(0);
    }
}

impl Messages {
    fn new(body: Incoming, connection: &Arc<Connection>) -> Self {
        Self {
            body,
            pieces: Pieces::new(connection.shared.limits.message_bytes),
            held: 0,
            connection: Arc::clone(connection),
        }
    }

    /// Counts so many bytes as held.
    fn hold(&mut self, bytes: usize) {
        let Connection { held, shared, .. } = &*self.connection;
        for held in [held, &shared.held] {
            held.fetch_add(bytes, Ordering::Relaxed);
            held.fetch_sub(self.held, Ordering::Relaxed);
        }
        self.held = bytes;
    }

    /// The next message; `None`: there is none any more.
    async fn next(&mut self) -> Result<Option<Bytes>, Refusal> {
        loop {
            let message = self.pieces.take()?;
            self.hold(self.pieces.held());
            if message.is_some() {
                return Ok(message);
            }
            let has_more = match self.pieces.due() {
                None => self.read_more().await?,
                Some(due) => {
                    let more = timeout_at(due.into(), self.read_more()).await;
                    more.map_err(|_late| Refusal::late())??
                }
            };
            if !has_more {
                return if self.pieces.is_empty() {
                    Ok(None)
                } else {
                    Err(Refusal::cut())
                };
            }
        }
    }

    /// False: there is nothing more.
    async fn read_more(&mut self) -> Result<bool, Refusal> {
        loop {
            let Some(frame) = self.body.frame().await else {
                return Ok(false);
            };
            let frame = frame.map_err(|error| Refusal {
                status: INVALID_ARGUMENT,
                why: error.to_string(),
            })?;
            if let Ok(data) = frame.into_data() {
                self.pieces.put(data);
                self.hold(self.pieces.held());
                let Connection { held, shared, .. } = &*self.connection;
                if held.load(Ordering::Relaxed) > MOST_HELD_OF_CONNECTION
                    || shared.held.load(Ordering::Relaxed) > MOST_HELD
                {
                    return Err(Refusal {
                        status: RESOURCE_EXHAUSTED,
                        why: "too much has come that is not whole".to_owned(),
                    });
                }
                return Ok(true);
            }
        }
    }
}

/// The end of a call, with an empty message before it where the client waits for one.
fn ended(status: u16, why: &str, with_message: bool) -> Answer {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from(status));
    if let Ok(why) = HeaderValue::from_str(why)
        && !why.is_empty()
    {
        trailers.insert("grpc-message", why);
    }
    let message = with_message.then(|| Ok(Frame::data(Bytes::from_static(&[0; PREFIX]))));
    let frames: Vec<_> = message
        .into_iter()
        .chain([Ok(Frame::trailers(trailers))])
        .collect();
    let body = StreamBody::new(futures_util::stream::iter(frames));
    let mut answer = Response::new(body);
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDED: &[u8] = include_bytes!("../../../../tests/fixtures/access_logs/requests.bin");

    #[test]
    fn what_is_wrong_with_a_connection_is_said_and_what_to_do() {
        let tls = |error| failure(&io::Error::new(io::ErrorKind::InvalidData, error), "in TLS");
        let message = rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType);
        assert!(tls(message).unwrap().contains("does not speak TLS"));
        let certificate = rustls::Error::NoCertificatesPresented;
        assert!(tls(certificate).unwrap().contains("snippet --tls"));
        let other = rustls::Error::General("x".to_owned());
        assert_eq!(tls(other), Some("TLS: unexpected error: x".to_owned()));
        let ended = io::Error::from(io::ErrorKind::UnexpectedEof);
        assert_eq!(failure(&ended, "in TLS"), None);
    }

    #[test]
    fn what_was_only_counted_is_handed_to_nobody() {
        let message = Bytes::from_static(RECORDED);
        let entries = count_entries(&message).unwrap().http;
        for (is_busy, handed_out, left_out) in [(false, 1, 0), (true, 0, entries)] {
            let mut book = Book::default();
            if is_busy {
                let later = Instant::now() + Duration::from_secs(1);
                book.governor.came(1, later, 10_000_000_000);
                assert_eq!(book.governor.stage(), AccessLogStage::Counted);
            }
            let subscription = book.subscribers.add();
            let address = "127.0.0.1:1".parse().unwrap();
            let number = book.open(address, address);
            let shared = Shared {
                book: Arc::new(Mutex::new(book)),
                limits: Limits::default(),
                held: AtomicUsize::new(0),
            };
            take(Service::Stream, &message, number, &shared).unwrap();
            assert_eq!(shared.book.lock().entries, entries);
            let came = std::iter::from_fn(|| subscription.next().ok());
            assert_eq!(came.count(), handed_out);
            assert_eq!(subscription.left_out(), left_out);
        }
    }
}
