//! The listening socket: plain or TLS, with bounded connections and slow clients cut off.

use std::{
    future::Future,
    io,
    net::{SocketAddr, TcpListener},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{Extension, middleware::AddExtension};
use axum_server::{
    Handle,
    accept::{Accept, NoDelayAcceptor},
    tls_rustls::{RustlsAcceptor, RustlsConfig},
};
use hyper_util::{
    rt::{TokioExecutor, TokioTimer},
    server::conn::auto::Builder,
};
use profiler_sandbox::{
    confine::{ConfineError, confine_http_thread},
    privileges::{PrivilegesError, keep_none},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::oneshot,
    time::{Instant, Sleep, sleep},
};
use tower::Layer as _;

use super::{
    addressing::Origin,
    connections::{Caller, ConnectionPermit, Connections},
};

/// Largest head of a request.
const MAX_HEADER_BYTES: usize = 32 * 1024;

/// Longest time without a byte in either direction after the first one. Longer than a request may
/// take, and than event streams are silent.
const QUIET_TIME: Duration = Duration::from_secs(75);

/// What one client, or all together, may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Connections at once, idle ones included; for one more the oldest goes that never had the token.
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

    /// Answers requests on a separate thread without capabilities, because it reads untrusted input.
    /// Handlers run where the router was made. Completes when the handle has stopped the server.
    pub async fn run_apart(self, router: axum::Router) -> Result<(), ServerError> {
        let (sender, ended) = oneshot::channel();
        std::thread::Builder::new()
            .name("http".into())
            .spawn(move || {
                // The receiver is gone when the end is no longer awaited.
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
        let connections = Arc::new(Connections::new(self.bounds.connections));
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        let mut server = axum_server::from_tcp(self.listener)
            .map_err(ServerError::Serve)?
            .handle(self.handle);
        let mut builder = Builder::new(TokioExecutor::new());
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
        };
        // HTTP/1 alone: nothing here needs HTTP/2, and its streams would need bounds of their own. Said to the server
        // after its acceptor, which makes it forget; the builder's own setting counts for nothing there.
        let served = match self.tls {
            None => server.acceptor(plain).http1_only().serve(service).await,
            Some(config) => {
                let tls = RustlsAcceptor::new(RustlsConfig::from_config(config))
                    .handshake_timeout(self.bounds.handshake_time)
                    .acceptor(plain);
                server.acceptor(tls).http1_only().serve(service).await
            }
        };
        served.map_err(ServerError::Serve)
    }
}

/// Gives each connection a place, and marks its requests with it.
#[derive(Clone, Debug)]
struct Bounded<A> {
    inner: A,
    connections: Arc<Connections>,
    first_byte: Duration,
}

impl<I, S, A> Accept<I, S> for Bounded<A>
where
    A: Accept<I, S>,
    A::Future: Send + 'static,
{
    type Stream = Placed<A::Stream>;
    type Service = AddExtension<A::Service, Caller>;
    type Future =
        Pin<Box<dyn Future<Output = io::Result<(Self::Stream, Self::Service)>> + Send + 'static>>;

    fn accept(&self, stream: I, service: S) -> Self::Future {
        let place = self.connections.enter();
        let first_byte = self.first_byte;
        let accepting = self.inner.accept(stream, service);
        Box::pin(async move {
            let (inner, service) = accepting.await?;
            let service = Extension(place.caller()).layer(service);
            Ok((
                Placed {
                    inner,
                    quiet: Box::pin(sleep(first_byte)),
                    place,
                },
                service,
            ))
        })
    }
}

/// A connection with its place. The HTTP library starts its clock with the first byte of a head;
/// this one ends connections on which nothing happens, and those that must make room.
#[derive(Debug)]
struct Placed<T> {
    inner: T,
    quiet: Pin<Box<Sleep>>,
    place: ConnectionPermit,
}

impl<T> Placed<T> {
    fn something_happened(&mut self) {
        self.quiet.as_mut().reset(Instant::now() + QUIET_TIME);
    }

    /// Fails when the connection must make room. What does nothing but wait to write is asked as well.
    fn check_place(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if self.place.must_go(context) {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Ok(())
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Placed<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check_place(context)?;
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

impl<T: AsyncWrite + Unpin> AsyncWrite for Placed<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check_place(context)?;
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        if matches!(written, Poll::Ready(Ok(1..))) {
            self.something_happened();
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check_place(context)?;
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
        self.check_place(context)?;
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
