//! Bounded reads of a hostile file, by `pread` and never by `mmap`.
//!
//! Rows are made page by page on demand, so only what a page needs is ever read: some hundred
//! descriptions that lie close together, and the page's code. A file that changes meanwhile gives
//! its own process wrong stacks and harms no other.

use std::{fs::File, os::unix::fs::FileExt as _};

/// Bytes that a window holds unless asked for more.
const WINDOW_BYTES: usize = 16 * 1024;

/// A part of a file in memory, moved to where it is asked for.
#[derive(Debug)]
pub(crate) struct Window<'file> {
    file: &'file File,
    start: u64,
    bytes: Vec<u8>,
}

impl<'file> Window<'file> {
    pub(crate) fn new(file: &'file File) -> Self {
        Self {
            file,
            start: 0,
            bytes: Vec::new(),
        }
    }

    /// The bytes at an offset; none when the file ends before.
    pub(crate) fn bytes(&mut self, offset: u64, length: usize) -> Option<&[u8]> {
        if self.inside(offset, length).is_none() {
            self.move_to(offset, length)?;
        }
        let at = self.inside(offset, length)?;
        self.bytes.get(at..at + length)
    }

    pub(crate) fn word32(&mut self, offset: u64) -> Option<u32> {
        let bytes = self.bytes(offset, 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }

    pub(crate) fn word64(&mut self, offset: u64) -> Option<u64> {
        let bytes = self.bytes(offset, 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }

    fn inside(&self, offset: u64, length: usize) -> Option<usize> {
        let at = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        (at.checked_add(length)? <= self.bytes.len()).then_some(at)
    }

    fn move_to(&mut self, offset: u64, length: usize) -> Option<()> {
        // Searches come back to what lies shortly before.
        self.start = offset.saturating_sub(WINDOW_BYTES as u64 / 8);
        let before = usize::try_from(offset - self.start).ok()?;
        let wanted = WINDOW_BYTES.max(before.checked_add(length)?);
        self.bytes.resize(wanted, 0);
        let count = read_up_to(self.file, self.start, &mut self.bytes);
        self.bytes.truncate(count);
        Some(())
    }
}

/// Reads until the buffer is full or the file ends, and returns how much that was.
pub(crate) fn read_up_to(file: &File, offset: u64, buffer: &mut [u8]) -> usize {
    let mut count = 0;
    while count < buffer.len() {
        match file.read_at(&mut buffer[count..], offset.saturating_add(count as u64)) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    count
}
