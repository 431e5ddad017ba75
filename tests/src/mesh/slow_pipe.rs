//! A named pipe whose reader is slow: what is written to it soon waits, however little it is.

use std::{
    fs::File,
    io::{ErrorKind, Read as _},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use anyhow::{Context as _, Result};
use rustix::{
    event::{PollFd, PollFlags, Timespec},
    fs::{CWD, FileType, Mode, OFlags},
};

/// Bytes that are read at once: a page, which is what a full pipe hands on at least.
const READ_BYTES: usize = 4096;
/// Rest between two looks at the pipe.
const REST: Duration = Duration::from_millis(5);

/// The reading end. Dropping it closes the pipe; writers then fail.
#[derive(Debug)]
pub struct SlowPipe {
    stop: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

impl SlowPipe {
    /// Makes a pipe that everybody may write to, and starts reading from it.
    pub fn create(path: &Path) -> Result<Self> {
        rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0)
            .with_context(|| format!("make a pipe at {}", path.display()))?;
        // Not subject to the umask.
        rustix::fs::chmod(path, Mode::from_raw_mode(0o666)).context("open up the pipe")?;
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let pipe: File = rustix::fs::open(path, flags, Mode::empty())
            .context("open the pipe")?
            .into();
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let reader = std::thread::Builder::new()
            .name("slow-reader".to_owned())
            .spawn(move || read_slowly(pipe, &asked))
            .context("start the reader")?;
        Ok(Self {
            stop,
            reader: Some(reader),
        })
    }
}

impl Drop for SlowPipe {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(reader) = self.reader.take() {
            drop(reader.join());
        }
    }
}

/// Takes a page whenever the pipe is full, and nothing before.
fn read_slowly(mut pipe: File, stop: &AtomicBool) {
    let mut buffer = [0; READ_BYTES];
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(REST);
        // It can be written to, too, which tells whether a writer would wait.
        let mut room = [PollFd::new(&pipe, PollFlags::OUT)];
        let now = Timespec::default();
        if rustix::event::poll(&mut room, Some(&now)).is_ok_and(|ready| ready > 0) {
            continue;
        }
        match pipe.read(&mut buffer) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}
