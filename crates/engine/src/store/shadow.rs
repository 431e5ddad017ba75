//! A redb file that is only read: what opening it would write (redb repairs a file that was not closed) stays in memory.

use std::{collections::BTreeMap, fs::File, io, os::unix::fs::FileExt as _, path::Path};

use parking_lot::{Mutex, MutexGuard};
use redb::{Database, StorageBackend};

/// Room for redb's cache of such a file.
const CACHE_BYTES: usize = 4 << 20;
/// Writes are kept in pieces of this size, redb's own.
const PAGE_BYTES: u64 = 4096;

/// Opens `path` as it was after its last commit, whether or not the disk can be written.
pub(super) fn open(path: &Path) -> Result<Database, redb::DatabaseError> {
    let file = File::open(path)?;
    let bytes = file.metadata()?.len();
    let backend = Shadow {
        file,
        written: Mutex::new(Written {
            bytes,
            of_file: bytes,
            pages: BTreeMap::new(),
        }),
    };
    Database::builder()
        .set_cache_size(CACHE_BYTES)
        .create_with_backend(backend)
}

#[derive(Debug)]
struct Shadow {
    file: File,
    written: Mutex<Written>,
}

#[derive(Debug)]
struct Written {
    /// Length as redb has set it.
    bytes: u64,
    /// What of the file still counts.
    of_file: u64,
    pages: BTreeMap<u64, Vec<u8>>,
}

impl Shadow {
    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock()
    }

    /// A page as it is without what was written, filled up with zeros.
    fn page_of_file(&self, page: u64, of_file: u64) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(PAGE_BYTES).unwrap_or(0)];
        let begin = page.saturating_mul(PAGE_BYTES);
        let left = usize::try_from(of_file.saturating_sub(begin)).unwrap_or(usize::MAX);
        let there = left.min(bytes.len());
        if let Some(there) = bytes.get_mut(..there) {
            self.file.read_exact_at(there, begin)?;
        }
        Ok(bytes)
    }
}

/// Parts of pages that a range of bytes consists of: page, first byte within, number of bytes.
fn parts(offset: u64, length: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let end = offset.saturating_add(length as u64);
    let mut at = offset;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let (page, within) = (at / PAGE_BYTES, at % PAGE_BYTES);
        let bytes = (PAGE_BYTES - within).min(end - at);
        at += bytes;
        Some((
            page,
            usize::try_from(within).ok()?,
            usize::try_from(bytes).ok()?,
        ))
    })
}

impl StorageBackend for Shadow {
    fn len(&self) -> io::Result<u64> {
        Ok(self.written().bytes)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let written = self.written();
        if offset.saturating_add(out.len() as u64) > written.bytes {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut rest = out;
        for (page, within, bytes) in parts(offset, rest.len()) {
            let (part, behind) = rest.split_at_mut(bytes);
            rest = behind;
            let found = match written.pages.get(&page) {
                Some(found) => found,
                None => &self.page_of_file(page, written.of_file)?,
            };
            let found = found.get(within..within + bytes);
            part.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut written = self.written();
        written.bytes = len;
        written.of_file = written.of_file.min(len);
        let kept = written.pages.split_off(&len.div_ceil(PAGE_BYTES));
        drop(kept);
        if let Some(last) = written.pages.get_mut(&(len / PAGE_BYTES)) {
            let within = usize::try_from(len % PAGE_BYTES).unwrap_or(0);
            last.iter_mut().skip(within).for_each(|byte| *byte = 0);
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut written = self.written();
        let of_file = written.of_file;
        let mut rest = data;
        for (page, within, bytes) in parts(offset, data.len()) {
            let (part, behind) = rest.split_at(bytes);
            rest = behind;
            let mut changed = match written.pages.remove(&page) {
                Some(changed) => changed,
                None => self.page_of_file(page, of_file)?,
            };
            let place = changed.get_mut(within..within + bytes);
            place
                .ok_or(io::ErrorKind::UnexpectedEof)?
                .copy_from_slice(part);
            written.pages.insert(page, changed);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_the_file_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let before: Vec<u8> = (0..10_000_u32).map(|at| at.to_le_bytes()[0]).collect();
        std::fs::write(&path, &before).unwrap();
        let shadow = Shadow {
            file: File::open(&path).unwrap(),
            written: Mutex::new(Written {
                bytes: 10_000,
                of_file: 10_000,
                pages: BTreeMap::new(),
            }),
        };
        let mut model = before.clone();
        let check = |model: &[u8]| {
            assert_eq!(shadow.len().unwrap(), model.len() as u64);
            let mut all = vec![1; model.len()];
            shadow.read(0, &mut all).unwrap();
            assert!(all == model);
            let mut some = vec![1; 5000];
            shadow.read(3000, &mut some).unwrap();
            assert_eq!(some, model[3000..8000]);
        };
        check(&model);
        shadow.write(4000, &[9; 200]).unwrap();
        model[4000..4200].fill(9);
        check(&model);
        shadow.set_len(20_000).unwrap();
        model.resize(20_000, 0);
        check(&model);
        shadow.write(9_990, &[8; 9_000]).unwrap();
        model[9_990..18_990].fill(8);
        check(&model);
        // What was cut off comes back as zeros.
        for bytes in [9_000, 30_000] {
            shadow.set_len(bytes).unwrap();
            model.resize(usize::try_from(bytes).unwrap(), 0);
            check(&model);
        }
        assert!(shadow.read(29_999, &mut [0; 2]).is_err());
        assert!(std::fs::read(&path).unwrap() == before);
    }
}
