//! Peers that all tests of a process share, because their start takes seconds.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, Once, OnceLock, mpsc},
    thread,
};

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group, waitpid};

use crate::cleanup::{Guard, scratch_directory};

/// A peer that is started when it is asked for first, and ends with the process.
#[derive(Debug)]
pub struct Lasting<T>(OnceLock<Started<T>>);

#[derive(Debug)]
struct Started<T> {
    peer: T,
    /// For the case that a signal ends the process: what is static is never dropped.
    _folder: Guard,
}

impl<T: Send + Sync + 'static> Lasting<T> {
    #[expect(clippy::new_without_default, reason = "it is for statics")]
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// The peer, which `start` starts in a folder of its own.
    pub fn get(&'static self, start: fn(&Path) -> Result<T>) -> Result<&'static T> {
        if let Some(started) = self.0.get() {
            return Ok(&started.peer);
        }
        let (give, take) = mpsc::channel();
        // Children die with the thread that has started them, and each test has a thread of its own.
        thread::spawn(move || {
            give.send(start_with_folder(start)).ok();
            loop {
                thread::park();
            }
        });
        let started = take.recv().context("the thread of the peer has ended")??;
        Ok(&self.0.get_or_init(|| started).peer)
    }
}

fn start_with_folder<T>(start: fn(&Path) -> Result<T>) -> Result<Started<T>> {
    let (folder, guard) = scratch_directory("lasting")?;
    let peer = start(&folder)?;
    remove_at_exit(folder);
    Ok(Started {
        peer,
        _folder: guard,
    })
}

static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn remove_at_exit(folder: PathBuf) {
    static FIRST: Once = Once::new();
    FIRST.call_once(|| {
        // SAFETY: the function is there as long as the process, and does not unwind.
        unsafe { libc::atexit(end_all) };
    });
    if let Ok(mut folders) = FOLDERS.lock() {
        folders.push(folder);
    }
}

/// Ends what still runs, all of which lasts as long as the process, and removes the folders.
extern "C" fn end_all() {
    for child in children() {
        kill_process_group(child, Signal::KILL).ok();
        // It may have no group of its own.
        kill_process(child, Signal::KILL).ok();
        waitpid(Some(child), WaitOptions::empty()).ok();
    }
    let folders = FOLDERS
        .lock()
        .map(|mut folders| std::mem::take(&mut *folders));
    for folder in folders.unwrap_or_default() {
        fs::remove_dir_all(folder).ok();
    }
}

fn children() -> Vec<Pid> {
    let mut found = Vec::new();
    let Ok(threads) = fs::read_dir("/proc/self/task") else {
        return found;
    };
    for thread in threads.flatten() {
        let text = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        let pids = text.split_whitespace().filter_map(|pid| pid.parse().ok());
        found.extend(pids.filter_map(Pid::from_raw));
    }
    found
}
