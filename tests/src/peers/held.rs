//! Clients that wait, before their first connection, until the agent has put its probes into them: what they
//! do is then seen from the beginning.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{File, OpenOptions},
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use rustix::{
    fs::{CWD, FileType, Mode, OFlags},
    process::Signal,
};

use crate::{
    breakpoints,
    process::Running,
    wait::{wait_for, wait_until},
};

const LIMIT: Duration = Duration::from_mins(1);
/// Probes are put in one after the other: once none was added for this long they are all there.
const REST: Duration = Duration::from_secs(1);
/// The agent notes when the last one was in behind its breakpoint: a connection before that is one from before.
const NOTED: Duration = Duration::from_millis(300);
const PAUSE: Duration = Duration::from_millis(100);

/// How many probes programs had when all of theirs were there, by the files that they run code of: another one
/// with the same files gets as many.
static ALL: Mutex<BTreeMap<BTreeSet<String>, usize>> = Mutex::new(BTreeMap::new());

/// Waits until there are probes in a process and all that it gets now are there.
pub fn wait_until_probed(pid: u32) -> Result<()> {
    let (mut before, mut since) = (0, Instant::now());
    loop {
        // Mappings come and go while a program is being loaded: then there is another look.
        let (files, now) = wait_for("the program has probes", LIMIT, || {
            let files = breakpoints::files(pid).ok()?;
            let count = breakpoints::count(pid).ok()?;
            (count > 0).then_some((files, count))
        })?;
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        if now != before {
            (before, since) = (now, Instant::now());
        } else if all.get(&files) == Some(&now) && since.elapsed() > NOTED {
            return Ok(());
        } else if since.elapsed() > REST {
            all.insert(files, now);
            return Ok(());
        }
        drop(all);
        thread::sleep(PAUSE);
    }
}

/// Lets a program go on that has stopped itself with SIGSTOP when it was about to begin.
pub fn release(client: &Running) -> Result<()> {
    wait_until("the client has stopped itself", LIMIT, || {
        is_stopped(client.pid())
    })
    .with_context(|| client.errors())?;
    wait_until_probed(client.pid())?;
    client.signal(Signal::CONT)
}

fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| rest.starts_with('T'))
}

/// Makes a pipe in the place of a file that a client reads before it does anything.
pub fn make_pipe(path: &Path) -> Result<()> {
    let access = Mode::RUSR | Mode::WUSR;
    rustix::fs::mknodat(CWD, path, FileType::Fifo, access, 0).context("make a pipe")
}

/// Gives a client what it waits for at the pipe once it has probes.
pub fn feed(client: &mut Running, pipe: &Path, text: &str) -> Result<()> {
    wait_until_probed(client.pid())?;
    // Opening fails until the client reads, and it may have ended instead.
    let mut to: File = wait_for("the client reads", LIMIT, || {
        if !client.is_running() {
            return Some(None);
        }
        let nonblocking = i32::try_from(OFlags::NONBLOCK.bits()).ok()?;
        let opened = OpenOptions::new()
            .write(true)
            .custom_flags(nonblocking)
            .open(pipe);
        opened.ok().map(Some)
    })?
    .with_context(|| format!("it ended early: {}", client.errors()))?;
    rustix::fs::fcntl_setfl(&to, OFlags::empty()).context("make the pipe wait")?;
    to.write_all(text.as_bytes()).context("feed the client")?;
    ensure!(client.is_running(), "it ended early: {}", client.errors());
    Ok(())
}
