//! The listening socket: plain or TLS, with bounded connections and slow clients cut off.

use std::{
    future::Future,
    io,
    net::{SocketAddr, TcpListener},
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum_server::{
    Handle,
    accept::{Accept, NoDelayAcceptor},
    tls_rustls::{RustlsAcceptor, RustlsConfig},
};
use hyper_util::{
    rt::{TokioExecutor, TokioTimer},
    server::conn::auto::Builder,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    time::{Instant, Sleep, sleep},
};

use super::state::Origin;
use crate::{
    confine::{ConfineError, confine_http_thread},
    privileges::{PrivilegesError, keep_none},
};

/// Largest head of a request.
const MAX_HEADER_BYTES: usize = 32 * 1024;

/// Longest time without a byte in either direction after the first one. Longer than a request may
/// take, and than event streams are silent.
const QUIET_TIME: Duration = Duration::from_secs(75);

/// Shortest time between two lines of the log about refused connections.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

/// What one client, or all together, may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Connections at once, idle ones included; one more is closed at once.
    pub(super) connections: usize,
    /// Longest time for the head of a request to arrive.
    pub(super) header_time: Duration,
    /// Longest time for the first byte. Shorter: connections that say nothing must not keep others out for long.
    pub(super) first_byte_time: Duration,
    pub(super) handshake_time: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: 256,
            header_time: Duration::from_secs(15),
            first_byte_time: Duration::from_secs(4),
            handshake_time: Duration::from_secs(10),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error("listen on {address}: {source}; choose another address with --listen")]
    Listen {
        address: SocketAddr,
        source: io::Error,
    },
    #[error("serve: {0}")]
    Serve(io::Error),
    #[error("start the thread that serves HTTP: {0}")]
    Thread(io::Error),
    #[error("the thread that serves HTTP: {0}")]
    Privileges(#[from] PrivilegesError),
    #[error("the thread that serves HTTP: {0}")]
    Confine(#[from] ConfineError),
    #[error("the thread that serves HTTP panicked")]
    Panicked,
}

/// A bound socket that does not answer yet.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<Arc<rustls::ServerConfig>>,
    handle: Handle<SocketAddr>,
    bounds: Bounds,
}

impl Server {
    /// Binds the address; port 0 takes a free one.
    pub fn bind(
        address: SocketAddr,
        tls: Option<Arc<rustls::ServerConfig>>,
    ) -> Result<Self, ServerError> {
        let failed = |source| ServerError::Listen { address, source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self {
            listener,
            address,
            tls,
            handle: Handle::new(),
            bounds: Bounds::default(),
        })
    }

    /// Changes the bounds.
    #[cfg(test)]
    pub(super) fn bounded(mut self, bounds: Bounds) -> Self {
        self.bounds = bounds;
        self
    }

    pub fn origin(&self) -> Origin {
        Origin {
            address: self.address,
            tls: self.tls.is_some(),
        }
    }

    /// Stops the server: no new connections, open ones get up to the given time.
    pub fn handle(&self) -> Handle<SocketAddr> {
        self.handle.clone()
    }

    /// Answers requests on a thread of its own, which keeps no capability: it reads what anybody sends.
    /// Handlers run where the router was made. Completes when the handle has stopped the server.
    pub async fn run_apart(self, router: axum::Router) -> Result<(), ServerError> {
        let (sender, ended) = oneshot::channel();
        std::thread::Builder::new()
            .name("http".into())
            .spawn(move || {
                // The receiver is gone when nobody waits for the end any more.
                sender.send(self.run_without_capabilities(router)).ok();
            })
            .map_err(ServerError::Thread)?;
        ended.await.unwrap_or(Err(ServerError::Panicked))
    }

    /// Threads that the runtime starts inherit that there is none.
    fn run_without_capabilities(self, router: axum::Router) -> Result<(), ServerError> {
        keep_none()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(ServerError::Thread)?;
        confine_http_thread()?;
        runtime.block_on(self.run(router))
    }

    /// Answers requests until the handle stops it.
    pub async fn run(self, router: axum::Router) -> Result<(), ServerError> {
        let connections = Arc::new(Semaphore::new(self.bounds.connections));
        let service = router.into_make_service();
        let mut server = axum_server::from_tcp(self.listener)
            .map_err(ServerError::Serve)?
            .handle(self.handle);
        // HTTP/1 alone: nothing here needs HTTP/2, and its streams would need bounds of their own.
        let mut builder = Builder::new(TokioExecutor::new()).http1_only();
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(self.bounds.header_time)
            .max_buf_size(MAX_HEADER_BYTES);
        *server.http_builder() = builder;
        let plain = Bounded {
            inner: NoDelayAcceptor::new(),
            connections,
            first_byte: self.bounds.first_byte_time,
            refusals: Arc::default(),
        };
        let served = match self.tls {
            None => server.acceptor(plain).serve(service).await,
            Some(config) => {
                let tls = RustlsAcceptor::new(RustlsConfig::from_config(config))
                    .handshake_timeout(self.bounds.handshake_time)
                    .acceptor(plain);
                server.acceptor(tls).serve(service).await
            }
        };
        served.map_err(ServerError::Serve)
    }
}

/// Accepts a connection only while there is a permit, and keeps the permit with the connection.
#[derive(Clone, Debug)]
struct Bounded<A> {
    inner: A,
    connections: Arc<Semaphore>,
    first_byte: Duration,
    refusals: Arc<Refusals>,
}

/// Connections that were refused. Whoever opens too many must not fill the log as well.
#[derive(Debug, Default)]
struct Refusals {
    since_last_line: AtomicU64,
    last_line: Mutex<Option<Instant>>,
}

impl Refusals {
    /// Counts one; at most one line a second says how many there were.
    fn count(&self) {
        let refused = self.since_last_line.fetch_add(1, Ordering::Relaxed) + 1;
        let mut last = self
            .last_line
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|last| last.elapsed() >= LOG_INTERVAL) {
            *last = Some(Instant::now());
            self.since_last_line.store(0, Ordering::Relaxed);
            tracing::warn!(refused, "connections refused: too many are open");
        }
    }
}

impl<I, S, A> Accept<I, S> for Bounded<A>
where
    A: Accept<I, S>,
    A::Future: Send + 'static,
{
    type Stream = Permitted<A::Stream>;
    type Service = A::Service;
    type Future =
        Pin<Box<dyn Future<Output = io::Result<(Self::Stream, Self::Service)>> + Send + 'static>>;

    fn accept(&self, stream: I, service: S) -> Self::Future {
        let permit = Arc::clone(&self.connections).try_acquire_owned().ok();
        let first_byte = self.first_byte;
        let refusals = Arc::clone(&self.refusals);
        let accepting = permit.map(|permit| (self.inner.accept(stream, service), permit));
        Box::pin(async move {
            let Some((accepting, permit)) = accepting else {
                refusals.count();
                return Err(io::Error::other("too many connections"));
            };
            let (inner, service) = accepting.await?;
            Ok((
                Permitted {
                    inner,
                    quiet: Box::pin(sleep(first_byte)),
                    _permit: permit,
                },
                service,
            ))
        })
    }
}

/// A connection with its permit. The HTTP library starts its clock with the first byte of a head;
/// this one ends connections on which nothing happens.
#[derive(Debug)]
struct Permitted<T> {
    inner: T,
    quiet: Pin<Box<Sleep>>,
    _permit: OwnedSemaphorePermit,
}

impl<T> Permitted<T> {
    fn something_happened(&mut self) {
        self.quiet.as_mut().reset(Instant::now() + QUIET_TIME);
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Permitted<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.something_happened();
        } else if read.is_pending() && self.quiet.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Permitted<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        if matches!(written, Poll::Ready(Ok(1..))) {
            self.something_happened();
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(context, slices);
        if matches!(written, Poll::Ready(Ok(1..))) {
            self.something_happened();
        }
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}
