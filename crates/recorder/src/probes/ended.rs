//! Empties the ring buffer of ended connections all the time, whatever else the session does: with
//! thousands of ends a second it is full within a second.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use profiler_common::network::Connection;

use crate::bpf::EndedReader;

/// Time between two readings.
const PAUSE: Duration = Duration::from_millis(20);
/// Ended connections that may wait for the session, some 110 MB; what comes later waits in the
/// kernel.
const MAX_WAITING: usize = 131_072;

/// Ended connections, in the order of their ends. The thread ends when it is dropped.
#[derive(Debug)]
pub(super) struct Ended {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug)]
struct Shared {
    reader: EndedReader,
    waiting: Vec<Connection>,
}

impl Shared {
    fn read(&mut self) {
        let waiting = &mut self.waiting;
        let undecodable = self.reader.read(|connection| waiting.push(connection));
        if undecodable > 0 {
            tracing::error!(undecodable, "records of connections");
        }
    }
}

impl Ended {
    pub(super) fn start(reader: EndedReader) -> std::io::Result<Self> {
        let shared = Arc::new(Mutex::new(Shared {
            reader,
            waiting: Vec::new(),
        }));
        let watched = Arc::downgrade(&shared);
        std::thread::Builder::new()
            .name("network-ended".into())
            .spawn(move || {
                while let Some(shared) = watched.upgrade() {
                    let mut shared = shared.lock();
                    if shared.waiting.len() < MAX_WAITING {
                        shared.read();
                    }
                    drop(shared);
                    std::thread::sleep(PAUSE);
                }
            })?;
        Ok(Self { shared })
    }

    /// Everything that has ended until now.
    pub(super) fn take(&self) -> Vec<Connection> {
        let mut shared = self.shared.lock();
        shared.read();
        std::mem::take(&mut shared.waiting)
    }
}
