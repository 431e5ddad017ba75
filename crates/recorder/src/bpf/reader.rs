//! Records from the ring buffer.

use std::{
    os::fd::{AsFd as _, AsRawFd, BorrowedFd},
    time::Duration,
};

use aya::maps::{MapData, RingBuf};
use profiler_common::{
    event_loop::{LoopThread, StallRecord},
    header::{
        KIND_LOOP_THREAD, KIND_PROCESS, KIND_STACK, KIND_STALL, KIND_THREAD, RecordHeader, read_pod,
    },
    limits::{LEAF_FRAMES, MAX_RECORD_FRAMES, MAX_STEPS},
    process::{ProcessRecord, ThreadRecord},
    stack::{StackHead, place},
    unwind::frame,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A decoded record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    Stack {
        hash: u64,
        /// Leaf first.
        addresses: Box<[u64]>,
    },
    Thread(ThreadRecord),
    Process(ProcessRecord),
    Stall(StallRecord),
    /// A thread with an event loop that has ended.
    LoopThread(Box<LoopThread>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("record of {0} bytes is shorter than its header")]
    Short(usize),
    #[error("record says {said} bytes but {came} came")]
    Length { said: u32, came: usize },
    #[error("unknown record kind {0}")]
    Kind(u32),
    #[error("stack of {0} frames")]
    Frames(u32),
}

impl Record {
    /// Decodes one record; never panics, whatever the bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let short = || DecodeError::Short(bytes.len());
        let header: RecordHeader = read_pod(bytes).ok_or_else(short)?;
        if header.bytes as usize != bytes.len() {
            return Err(DecodeError::Length {
                said: header.bytes,
                came: bytes.len(),
            });
        }
        match header.kind {
            KIND_THREAD => read_pod(bytes).map(Self::Thread).ok_or_else(short),
            KIND_PROCESS => read_pod(bytes).map(Self::Process).ok_or_else(short),
            KIND_STALL => read_pod(bytes).map(Self::Stall).ok_or_else(short),
            KIND_LOOP_THREAD => read_pod(bytes)
                .map(|thread| Self::LoopThread(Box::new(thread)))
                .ok_or_else(short),
            KIND_STACK => {
                let head: StackHead = read_pod(bytes).ok_or_else(short)?;
                let frames = head.frames as usize;
                if frames == 0 || frames > MAX_RECORD_FRAMES {
                    return Err(DecodeError::Frames(head.frames));
                }
                let body = bytes.get(size_of::<StackHead>()..).unwrap_or_default();
                if body.len() != frames * size_of::<u64>() {
                    return Err(DecodeError::Frames(head.frames));
                }
                let words: Vec<u64> = body
                    .as_chunks::<8>()
                    .0
                    .iter()
                    .map(|chunk| u64::from_ne_bytes(*chunk))
                    .collect();
                let addresses = in_order(words, head.walked)?;
                Ok(Self::Stack {
                    hash: head.hash,
                    addresses: addresses.into(),
                })
            }
            other => Err(DecodeError::Kind(other)),
        }
    }
}

/// The frames of a record from leaf to root. A stack that was too deep has a mark where frames were
/// left out, which says how many.
fn in_order(words: Vec<u64>, walked: u32) -> Result<Vec<u64>, DecodeError> {
    let kept = words.len();
    let all = walked as usize;
    if all == kept {
        return Ok(words);
    }
    // The interrupted frame, one for each step, and a mark.
    if kept != MAX_RECORD_FRAMES || all < kept || walked > MAX_STEPS + 2 {
        return Err(DecodeError::Frames(walked));
    }
    let left_out = u32::try_from(all - kept).unwrap_or(u32::MAX);
    let mut ordered = words.get(..LEAF_FRAMES).unwrap_or_default().to_vec();
    ordered.push(frame::elided(left_out));
    let first = all - (MAX_RECORD_FRAMES - LEAF_FRAMES);
    ordered.extend((first..all).filter_map(|frame| words.get(place(frame))));
    Ok(ordered)
}

/// Reads the ring buffer of one loaded object.
pub struct RecordReader {
    ring: RingBuf<MapData>,
}

impl std::fmt::Debug for RecordReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RecordReader({})", self.ring.as_raw_fd())
    }
}

impl RecordReader {
    pub(super) fn new(ring: RingBuf<MapData>) -> Self {
        Self { ring }
    }

    /// Waits until the kernel signals a record or the time is over. Signals end the wait early.
    pub fn wait(&self, timeout: Duration) {
        // SAFETY: the ring buffer owns the descriptor and outlives this borrow.
        let fd = unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) };
        let mut fds = [PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN)];
        let timeout = Timespec::try_from(timeout).ok();
        // An interrupted or failed wait is a short wait: the caller looks at the clock anyway.
        let _interrupted = poll(&mut fds, timeout.as_ref());
    }

    /// Hands every record that is there to `visit`; returns the number of undecodable ones.
    pub fn read(&mut self, mut visit: impl FnMut(Record)) -> u64 {
        let mut undecodable = 0;
        while let Some(item) = self.ring.next() {
            match Record::decode(&item) {
                Ok(record) => visit(record),
                Err(error) => {
                    undecodable += 1;
                    tracing::debug!(%error, "undecodable record");
                }
            }
        }
        undecodable
    }
}

#[cfg(test)]
mod tests {
    use profiler_common::header::RecordHeader;

    use super::*;

    fn stack_bytes(frames: u32, body: usize, said: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [KIND_STACK, said] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(1_u64.to_ne_bytes());
        bytes.extend(42_u64.to_ne_bytes());
        bytes.extend(2_u32.to_ne_bytes());
        bytes.extend(frames.to_ne_bytes());
        bytes.extend(frames.to_ne_bytes());
        bytes.extend(0_u32.to_ne_bytes());
        bytes.extend(std::iter::repeat_n(7_u8, body));
        bytes
    }

    #[test]
    fn decodes_a_stack() {
        let record = Record::decode(&stack_bytes(2, 16, 56)).expect("well formed");
        let address = u64::from_ne_bytes([7; 8]);
        assert_eq!(
            record,
            Record::Stack {
                hash: 42,
                addresses: Box::new([address, address])
            }
        );
    }

    #[test]
    fn refuses_what_does_not_add_up() {
        assert_eq!(Record::decode(&[]), Err(DecodeError::Short(0)));
        assert_eq!(
            Record::decode(&stack_bytes(2, 16, 40)),
            Err(DecodeError::Length { said: 40, came: 56 })
        );
        assert_eq!(
            Record::decode(&stack_bytes(3, 16, 56)),
            Err(DecodeError::Frames(3))
        );
        assert_eq!(
            Record::decode(&stack_bytes(0, 0, 40)),
            Err(DecodeError::Frames(0))
        );
        assert_eq!(
            Record::decode(&stack_bytes(u32::MAX, 16, 56)),
            Err(DecodeError::Frames(u32::MAX))
        );
        let unknown = RecordHeader {
            kind: 99,
            bytes: 16,
            time_ns: 0,
        };
        let mut bytes = unknown.kind.to_ne_bytes().to_vec();
        bytes.extend(unknown.bytes.to_ne_bytes());
        bytes.extend(unknown.time_ns.to_ne_bytes());
        assert_eq!(Record::decode(&bytes), Err(DecodeError::Kind(99)));
    }

    #[test]
    fn a_stack_that_was_too_deep_is_put_in_order_around_its_mark() {
        let all = 700_usize;
        let mut words = vec![0; MAX_RECORD_FRAMES];
        for number in 0..all {
            words[place(number)] = number as u64;
        }
        let ordered = in_order(words, 700).expect("well formed");
        let leaf: Vec<u64> = (0..384).collect();
        let root: Vec<u64> = (572..700).collect();
        assert_eq!(ordered[..384], leaf);
        assert_eq!(frame::elided_of(ordered[384]), Some(700 - 512));
        assert_eq!(ordered[385..], root);
    }

    #[test]
    fn refuses_depths_that_cannot_be() {
        assert!(in_order(vec![0; 512], 511).is_err());
        assert!(in_order(vec![0; 2], 3).is_err());
        assert!(in_order(vec![0; 512], u32::MAX).is_err());
    }

    #[test]
    fn truncation_at_every_length_is_an_error() {
        let whole = stack_bytes(2, 16, 56);
        for length in 0..whole.len() {
            assert!(Record::decode(&whole[..length]).is_err(), "length {length}");
        }
    }
}
