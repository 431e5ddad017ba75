//! A way between two programs that a test can break: TCP, forwarded as it is, also between network namespaces.

use std::{
    io,
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::{Context as _, Result};

use crate::netns;

/// Pause between two looks for a connection.
const PAUSE: Duration = Duration::from_millis(5);

/// Forwards what connects to it. Dropping it closes everything.
#[derive(Debug)]
pub struct Forwarder {
    /// Where it listens.
    pub address: SocketAddr,
    place: Place,
    to: (Place, SocketAddr),
    open: Arc<Mutex<Vec<TcpStream>>>,
    way: Option<Way>,
}

/// A network namespace, by its file.
#[derive(Clone, Debug)]
pub enum Place {
    Here,
    Namespace(PathBuf),
}

impl Place {
    /// Runs `work` there.
    fn within<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        match self {
            Self::Here => work(),
            Self::Namespace(path) => netns::within(path, work),
        }
    }
}

/// The thread that takes connections, for as long as they are taken.
#[derive(Debug)]
struct Way {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Forwarder {
    /// Forwards from a free port of the loopback.
    pub fn start(to: SocketAddr) -> Result<Self> {
        let from = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self::between((Place::Here, from), (Place::Here, to))
    }

    /// Forwards from one place to another; port 0 is a free one.
    pub fn between(from: (Place, SocketAddr), to: (Place, SocketAddr)) -> Result<Self> {
        let (place, address) = from;
        let listener = listen(&place, address)?;
        let mut forwarder = Self {
            address: listener.local_addr().context("read the address")?,
            place,
            to,
            open: Arc::default(),
            way: None,
        };
        forwarder.take(listener)?;
        Ok(forwarder)
    }

    /// Closes every connection and refuses new ones.
    pub fn cut(&mut self) {
        if let Some(way) = self.way.take() {
            way.stop.store(true, Ordering::Relaxed);
            // It ends within a pause, and the listener with it.
            drop(way.thread.join());
        }
        for stream in lock(&self.open).drain(..) {
            // The other end may have closed it before.
            stream.shutdown(Shutdown::Both).ok();
        }
    }

    /// Takes connections again, at the same address.
    pub fn restore(&mut self) -> Result<()> {
        self.cut();
        let listener = listen(&self.place, self.address)?;
        self.take(listener)
    }

    /// Connections that have been open since the way was last cut, both ends of each counted.
    pub fn connections(&self) -> usize {
        lock(&self.open).len() / 2
    }

    fn take(&mut self, listener: TcpListener) -> Result<()> {
        listener
            .set_nonblocking(true)
            .context("listen without waiting")?;
        let stop = Arc::new(AtomicBool::new(false));
        let (to, open, stopped) = (self.to.clone(), Arc::clone(&self.open), Arc::clone(&stop));
        let thread = thread::Builder::new()
            .name("forwarder".to_owned())
            .spawn(move || {
                while !stopped.load(Ordering::Relaxed) {
                    match listener.accept() {
                        // The client sees the connection closed when there is no server to forward to.
                        Ok((stream, _)) => drop(forward(stream, &to, &open)),
                        Err(_none_yet) => thread::sleep(PAUSE),
                    }
                }
            })
            .context("start a thread")?;
        self.way = Some(Way { stop, thread });
        Ok(())
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.cut();
    }
}

/// A socket stays in the namespace in which it was made.
fn listen(place: &Place, address: SocketAddr) -> Result<TcpListener> {
    place.within(|| TcpListener::bind(address).with_context(|| format!("listen at {address}")))
}

/// Joins a connection with a new one, by two threads that end with them.
fn forward(
    from: TcpStream,
    (place, to): &(Place, SocketAddr),
    open: &Mutex<Vec<TcpStream>>,
) -> Result<()> {
    from.set_nonblocking(false)?;
    let onward = place.within(|| Ok(TcpStream::connect(to)?))?;
    for stream in [&from, &onward] {
        stream.set_nodelay(true)?;
        lock(open).push(stream.try_clone()?);
    }
    copy(from.try_clone()?, onward.try_clone()?)?;
    copy(onward, from)?;
    Ok(())
}

fn copy(mut from: TcpStream, mut to: TcpStream) -> io::Result<()> {
    thread::Builder::new()
        .name("forwarding".to_owned())
        .spawn(move || {
            io::copy(&mut from, &mut to).ok();
            to.shutdown(Shutdown::Write).ok();
        })
        .map(drop)
}

fn lock(open: &Mutex<Vec<TcpStream>>) -> MutexGuard<'_, Vec<TcpStream>> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}
