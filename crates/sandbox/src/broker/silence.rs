//! What did not answer in time, and the threads that still wait for it.
//!
//! A thread inside a file system whose server does not answer cannot be ended: it is left behind until the kernel lets it
//! go. Until then what it waits for is not asked again, so that one server costs one thread.

use std::{fmt, io, mem::discriminant};

use parking_lot::{Mutex, MutexGuard};
/// Threads that may be left behind at once for sources of one kind, so that a user with many processes does not
/// block opens of other files. Each has a small stack, and none runs.
pub(super) const MOST_LEFT: usize = 24;

/// Number of a file system, as in `/proc/PID/maps`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Device {
    pub major: u32,
    pub minor: u32,
}

impl Device {
    /// From `st_dev`.
    pub(crate) fn of_stat(device: u64) -> Self {
        Self {
            major: rustix::fs::major(device),
            minor: rustix::fs::minor(device),
        }
    }
}

/// What an operation may have to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Memory of a process, whose pages may have to be read from a file first.
    Process(u32),
    Device(Device),
    Unknown,
}

/// The same, so that another process with the pid is not taken for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Silent {
    Process { pid: u32, start_ticks: Option<u64> },
    Device(Device),
    Unknown,
}

/// Why something is not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    NoAnswer,
    TooMany,
}

impl std::error::Error for Reason {}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAnswer => f.write_str(
                "it does not answer: its file system waits for a server or a disk; try again when that works",
            ),
            Self::TooMany => write!(
                f,
                "{MOST_LEFT} threads wait for files or processes that do not answer, more are not started: end the servers \
                 of their file systems, or abort their connections"
            ),
        }
    }
}

fn error(reason: Reason) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, reason)
}

pub(super) fn no_answer() -> io::Error {
    error(Reason::NoAnswer)
}

/// Whether an error says that a file, a process or a thread does not answer.
pub fn is_silence(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::TimedOut
}

/// Threads that were left behind.
#[derive(Debug)]
struct Left {
    next: u64,
    waiting: Vec<(u64, Silent)>,
}

fn left() -> MutexGuard<'static, Left> {
    static LEFT: Mutex<Left> = Mutex::new(Left {
        next: 0,
        waiting: Vec::new(),
    });
    LEFT.lock()
}

/// How many threads wait for what does not answer.
pub fn left_behind() -> usize {
    left().waiting.len()
}

/// Whether too many threads wait to start another one in place of a waiting one.
pub fn is_left_behind_too_often() -> bool {
    left_behind() >= MOST_LEFT
}

/// Fails when this is waited for already, or too many threads wait for anything.
pub(super) fn check(source: Source) -> io::Result<()> {
    let waiting: Vec<Silent> = left().waiting.iter().map(|(_, silent)| *silent).collect();
    if waiting.is_empty() {
        return Ok(());
    }
    refusal(&waiting, identify(source)).map_or(Ok(()), |reason| Err(error(reason)))
}

fn refusal(waiting: &[Silent], asked: Silent) -> Option<Reason> {
    let is_alike = |other: &&Silent| discriminant(*other) == discriminant(&asked);
    if waiting.iter().filter(is_alike).count() >= MOST_LEFT {
        return Some(Reason::TooMany);
    }
    // Of an unknown source nothing is remembered but that a thread waits.
    let is_known = asked != Silent::Unknown && waiting.contains(&asked);
    is_known.then_some(Reason::NoAnswer)
}

/// A thread was left behind. It is counted until it is [`back`].
pub(super) fn leave(source: Source) -> u64 {
    let silent = identify(source);
    let mut left = left();
    left.next += 1;
    let number = left.next;
    left.waiting.push((number, silent));
    let count = left.waiting.len();
    drop(left);
    tracing::warn!(
        source = ?silent,
        waiting = count,
        "a file does not answer; a thread waits for it, and it is not asked again until that is back"
    );
    number
}

/// The thread with this number runs again.
pub(super) fn back(number: u64) {
    let mut left = left();
    left.waiting.retain(|(other, _)| *other != number);
    let count = left.waiting.len();
    drop(left);
    tracing::info!(waiting = count, "a file has answered at last");
}

fn identify(source: Source) -> Silent {
    match source {
        Source::Process(pid) => Silent::Process {
            pid,
            start_ticks: start_ticks(pid),
        },
        Source::Device(device) => Silent::Device(device),
        Source::Unknown => Silent::Unknown,
    }
}

/// Field 22 of `/proc/PID/stat`, which the kernel answers without the process's memory.
fn start_ticks(pid: u32) -> Option<u64> {
    let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses is the process's choice.
    let name_ends = text.iter().rposition(|byte| *byte == b')')?;
    let mut fields = text.get(name_ends + 1..)?.split(|byte| *byte == b' ');
    std::str::from_utf8(fields.nth(20)?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_from_a_later_one_by_its_start() {
        let own = std::process::id();
        assert!(start_ticks(own).is_some_and(|ticks| ticks > 0));
        assert_eq!(start_ticks(u32::MAX), None);
        assert_ne!(identify(Source::Process(own)), identify(Source::Process(1)));
    }

    #[test]
    fn no_more_is_opened_when_too_many_threads_wait() {
        let device = |minor| Silent::Device(Device { major: 0, minor });
        let one = [device(1), Silent::Unknown];
        assert_eq!(refusal(&one, device(1)), Some(Reason::NoAnswer));
        assert_eq!(refusal(&one, device(2)), None);
        assert_eq!(refusal(&one, Silent::Unknown), None);
        let many = [Silent::Unknown; MOST_LEFT];
        assert_eq!(refusal(&many, Silent::Unknown), Some(Reason::TooMany));
        assert_eq!(refusal(&many, device(2)), None, "of another kind");
        assert!(error(Reason::TooMany).to_string().contains("24 threads"));
    }

    #[test]
    fn numbers_of_devices_are_those_of_maps() {
        let device = Device::of_stat(rustix::fs::makedev(8, 17));
        assert_eq!(
            device,
            Device {
                major: 8,
                minor: 17
            }
        );
    }
}
