//! Stacks of threads that sleep, read from their process.
//!
//! The kernel has sent the registers, and how often the thread had arrived on a CPU. When it has not
//! arrived there since, nothing of its stack has changed; otherwise the frames would be a guess.

use std::time::Instant;

use profiler_common::unwind::{state::State, step};
use profiler_image::proc_dir::read_path;
use profiler_unwind::{self as unwind, CapturedStack, NativeStack, TableCache};

use super::{
    live_memory::{LiveMemory, LiveStack},
    machine::Machine,
};
use crate::bpf::Capture;

/// Largest `schedstat`: three numbers.
const SCHEDSTAT_LIMIT: usize = 256;

/// Walks the thread of `capture`, whose leaf is `state`.
pub(super) fn walk(tables: &mut TableCache, state: &State, capture: &Capture) -> NativeStack {
    let head = &capture.head;
    let stack = LiveStack {
        captured: CapturedStack {
            start: 0,
            bytes: &[],
        },
        process: LiveMemory::new(head.pid),
    };
    let walked = unwind::unwind_capture::<Machine>(tables, *state, &stack, Instant::now());
    // Looked at last: what was read before is what it was when the registers were taken.
    if arrivals(head.pid, head.tid) == Some(head.arrivals) {
        return walked;
    }
    NativeStack {
        frames: Vec::new(),
        elided: 0,
        outcome: step::STACK_CHANGED,
    }
}

/// How often a thread has arrived on a CPU (the lower 32 bits): the third number of its schedstat.
fn arrivals(pid: u32, tid: u32) -> Option<u32> {
    let text = read_path(
        &format!("/proc/{pid}/task/{tid}/schedstat"),
        SCHEDSTAT_LIMIT,
    )
    .ok()?;
    parse_arrivals(std::str::from_utf8(&text).ok()?)
}

fn parse_arrivals(text: &str) -> Option<u32> {
    let number: u64 = text.split_whitespace().nth(2)?.parse().ok()?;
    u32::try_from(number & u64::from(u32::MAX)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_the_third_number() {
        assert_eq!(parse_arrivals("371 88 12\n"), Some(12));
        assert_eq!(parse_arrivals("1 2 4294967299"), Some(3));
        assert_eq!(parse_arrivals("1 2"), None);
        assert_eq!(parse_arrivals("1 2 x"), None);
        assert_eq!(parse_arrivals(""), None);
    }

    #[test]
    fn a_thread_that_runs_arrives_again() {
        let tid = rustix::thread::gettid()
            .as_raw_nonzero()
            .get()
            .unsigned_abs();
        let before = arrivals(std::process::id(), tid).unwrap();
        let deadline = Instant::now() + std::time::Duration::from_secs(10);
        while arrivals(std::process::id(), tid).unwrap() == before {
            assert!(Instant::now() < deadline);
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(arrivals(u32::MAX, tid), None);
    }
}
