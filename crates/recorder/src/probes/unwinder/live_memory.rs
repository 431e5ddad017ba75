//! The memory of a running process, for what a capture does not hold.

use std::{cell::RefCell, fs::File, sync::Arc};

use profiler_sandbox::broker::{self, OwnPath};
use profiler_unwind::{CapturedStack, StackMemory};

/// Bytes that are read at once.
const PIECE: usize = 4096;

/// Pieces that are read for one stack.
const PIECES: u32 = 256;

/// Reads `/proc/PID/mem` in pages, and keeps the last one. A page that lies in a file may have to be read by the kernel
/// first: another thread waits for that (`broker`).
#[derive(Debug)]
pub(super) struct LiveMemory {
    pid: u32,
    file: Option<Arc<File>>,
    last: RefCell<Piece>,
}

#[derive(Debug)]
struct Piece {
    start: u64,
    bytes: Vec<u8>,
    left: u32,
}

impl LiveMemory {
    pub(super) fn new(pid: u32) -> Self {
        Self {
            pid,
            file: broker::open(OwnPath::at(format!("/proc/{pid}/mem")))
                .ok()
                .map(Arc::new),
            last: RefCell::new(Piece {
                start: 0,
                bytes: Vec::new(),
                left: PIECES,
            }),
        }
    }

    fn word(&self, address: u64) -> Option<u64> {
        let file = self.file.as_ref()?;
        let mut piece = self.last.borrow_mut();
        let start = address - address % PIECE as u64;
        if piece.bytes.is_empty() || piece.start != start {
            piece.left = piece.left.checked_sub(1)?;
            piece.start = start;
            piece.bytes = match broker::read_at(self.pid, file, start, PIECE) {
                Ok(bytes) => bytes,
                Err(error) => {
                    if broker::is_silence(&error) {
                        piece.left = 0;
                    }
                    Vec::new()
                }
            };
        }
        let at = usize::try_from(address - start).ok()?;
        let bytes = piece.bytes.get(at..at.checked_add(8)?)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    }
}

/// A captured stack, and live memory where it ends.
#[derive(Debug)]
pub(super) struct LiveStack<'capture> {
    pub(super) captured: CapturedStack<'capture>,
    pub(super) process: LiveMemory,
}

impl StackMemory for LiveStack<'_> {
    fn word(&self, address: u64) -> Option<u64> {
        self.captured
            .word(address)
            .or_else(|| self.process.word(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_from_the_capture_first_and_then_from_the_process() {
        let own = [0x1122_3344_5566_7788_u64; 2];
        let address = own.as_ptr() as u64;
        let bytes = 7_u64.to_ne_bytes();
        let stack = LiveStack {
            captured: CapturedStack {
                start: address,
                bytes: &bytes,
            },
            process: LiveMemory::new(std::process::id()),
        };
        assert_eq!(stack.word(address), Some(7));
        assert_eq!(stack.word(address + 8), Some(own[1]));
        assert_eq!(stack.word(16), None);
    }
}
