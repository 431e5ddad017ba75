//! Bounded reads of the file, remembered so that an equal file can be recognised.

use std::{
    borrow::Cow,
    fs::File,
    hash::{BuildHasher as _, Hasher as _, RandomState},
    os::unix::fs::FileExt as _,
};

use super::NotInferred;

/// Bytes that all reads together may have; what a hostile file repeats is counted each time.
const TOTAL_LIMIT: u64 = 1 << 30;
/// Reads of one file; sections are read once, long ones in pieces.
const READS_LIMIT: usize = 1 << 16;

#[derive(Clone, Copy, Debug)]
enum Source<'a> {
    Bytes(&'a [u8]),
    File(&'a File),
}

/// A range of the file that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Read {
    offset: u64,
    bytes: usize,
}

/// The file, and a digest of all that was read of it.
#[derive(Debug)]
pub(super) struct Input<'a> {
    source: Source<'a>,
    size: u64,
    left: u64,
    reads: Vec<Read>,
    /// `None` where it is not compared with another file.
    digest: Option<std::hash::DefaultHasher>,
}

/// What was read, in a form that another file can be compared with.
#[derive(Debug)]
pub(super) struct Content {
    size: u64,
    reads: Vec<Read>,
    digest: u64,
}

impl<'a> Input<'a> {
    pub(super) fn bytes(bytes: &'a [u8]) -> Self {
        Self {
            source: Source::Bytes(bytes),
            size: bytes.len() as u64,
            left: TOTAL_LIMIT,
            reads: Vec::new(),
            digest: None,
        }
    }

    pub(super) fn file(file: &'a File) -> Result<Self, NotInferred> {
        Ok(Self {
            source: Source::File(file),
            size: file.metadata()?.len(),
            left: TOTAL_LIMIT,
            reads: Vec::new(),
            digest: None,
        })
    }

    /// Digests what is read; the keys make sure that no file can be made to look like another.
    pub(super) fn digested(mut self, keys: &RandomState) -> Self {
        self.digest = Some(keys.build_hasher());
        self
    }

    /// Reads `[offset, offset + bytes)`.
    pub(super) fn read(
        &mut self,
        offset: u64,
        bytes: u64,
        what: &'static str,
    ) -> Result<Cow<'a, [u8]>, NotInferred> {
        let outside = NotInferred::OutOfBounds { what };
        let end = offset.checked_add(bytes).filter(|end| *end <= self.size);
        let (Some(end), Ok(length)) = (end, usize::try_from(bytes)) else {
            return Err(outside);
        };
        if bytes > self.left || self.reads.len() >= READS_LIMIT {
            return Err(NotInferred::TooLarge { what });
        }
        self.left -= bytes;
        let data = match self.source {
            Source::Bytes(all) => {
                let range = usize::try_from(offset).ok().zip(usize::try_from(end).ok());
                let part = range.and_then(|(start, end)| all.get(start..end));
                Cow::Borrowed(part.ok_or(outside)?)
            }
            Source::File(file) => {
                let mut data = vec![0; length];
                file.read_exact_at(&mut data, offset)?;
                Cow::Owned(data)
            }
        };
        if let Some(digest) = &mut self.digest {
            digest.write(&data);
            self.reads.push(Read {
                offset,
                bytes: length,
            });
        }
        Ok(data)
    }

    /// What was read so far; `None` when it was not digested.
    pub(super) fn content(self) -> Option<Content> {
        let digest = self.digest?.finish();
        Some(Content {
            size: self.size,
            reads: self.reads,
            digest,
        })
    }
}

impl Content {
    /// True when another file holds the same bytes in every place that was read.
    pub(super) fn is_of(&self, file: &File, keys: &RandomState) -> bool {
        if file.metadata().is_ok_and(|found| found.len() != self.size) {
            return false;
        }
        let Ok(mut input) = Input::file(file).map(|input| input.digested(keys)) else {
            return false;
        };
        for read in &self.reads {
            let bytes = read.bytes as u64;
            if input
                .read(read.offset, bytes, "a part read before")
                .is_err()
            {
                return false;
            }
        }
        input
            .content()
            .is_some_and(|found| found.digest == self.digest)
    }
}
