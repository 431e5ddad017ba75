//! Part of a hostile file, copied into memory of our own and read from there in small pieces.

use std::{
    fs::File,
    hash::{BuildHasher as _, Hasher as _},
    io::{self, Write as _},
    os::unix::fs::FileExt as _,
};

use rustix::fs::MemfdFlags;

use super::elf_layout::{ElfError, read_range};

/// Bytes that are copied at once.
const CHUNK_BYTES: u64 = 256 * 1024;

#[derive(Debug)]
pub struct MemoryCopy {
    file: File,
    pub bytes: u64,
    /// Equal content has equal digests; keyed anew in each process of the agent.
    pub digest: u64,
}

impl MemoryCopy {
    /// Copies `bytes` at `offset`, of which there may not be more than `limit`.
    pub fn of(
        file: &File,
        offset: u64,
        bytes: u64,
        limit: u64,
        keys: &std::hash::RandomState,
    ) -> Result<Self, ElfError> {
        let what = "a table";
        if bytes > limit {
            return Err(ElfError::OutOfBounds { what });
        }
        let mut memory: File =
            rustix::fs::memfd_create("profiler-agent:table", MemfdFlags::CLOEXEC)
                .map_err(io::Error::from)?
                .into();
        let mut digest = keys.build_hasher();
        let mut done = 0;
        while done < bytes {
            let count = (bytes - done).min(CHUNK_BYTES);
            let at = offset
                .checked_add(done)
                .ok_or(ElfError::OutOfBounds { what })?;
            let data = read_range(file, at, count, CHUNK_BYTES, what)?;
            digest.write(&data);
            memory.write_all(&data)?;
            done += count;
        }
        Ok(Self {
            file: memory,
            bytes,
            digest: digest.finish(),
        })
    }

    /// Fills the buffer; `None` beyond the end.
    pub fn read(&self, at: u64, buffer: &mut [u8]) -> Option<()> {
        self.file.read_exact_at(buffer, at).ok()
    }

    /// Reads up to the buffer's length; `None` when there is nothing.
    pub fn read_some(&self, at: u64, buffer: &mut [u8]) -> Option<usize> {
        self.file
            .read_at(buffer, at)
            .ok()
            .filter(|count| *count > 0)
    }

    pub fn u32(&self, at: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        self.read(at, &mut bytes)?;
        Some(u32::from_le_bytes(bytes))
    }

    /// A text up to its zero, or up to the limit; bytes that are not UTF-8 are replaced.
    pub fn text(&self, at: u64, limit: usize) -> Option<String> {
        const PIECE: usize = 128;
        let mut text = Vec::new();
        let mut piece = [0; PIECE];
        while text.len() <= limit {
            let from = at.checked_add(text.len() as u64)?;
            let count = self.read_some(from, &mut piece)?;
            let piece = &piece[..count];
            if let Some(end) = piece.iter().position(|byte| *byte == 0) {
                text.extend_from_slice(&piece[..end]);
                break;
            }
            text.extend_from_slice(piece);
        }
        Some(String::from_utf8_lossy(&text).into_owned())
    }
}
