//! The kernel's copy of the unwinder's tables, and the samples that it could not walk with them.

use std::{
    os::fd::{AsFd as _, AsRawFd as _, BorrowedFd},
    sync::Arc,
    time::Duration,
};

use aya::{
    Ebpf,
    maps::{Array, HashMap, Map, MapData, MapError, RingBuf},
};
use parking_lot::{Mutex, MutexGuard};
use profiler_common::{
    header::{KIND_CAPTURE, Pod, read_pod},
    limits::{CAPTURE_STACK_BYTES, MAPPING_CHANGE_ENTRIES},
    unwind::{
        capture::CaptureHead,
        mapping::Mappings,
        process::ProcessEntry,
        rule::Rule,
        table::{PageEntry, PageKey, RowBlock},
    },
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{batch, load_error::LoadError, reader::DecodeError};

/// A value that both sides know; aya asks for a trait of its own.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(super) struct Shared<T>(pub(super) T);

// SAFETY: `Shared` is transparent, and `Pod` promises integers without hidden padding.
unsafe impl<T: Pod> aya::Pod for Shared<T> {}

/// The tables. Programs read them at any time, so an element is complete before something refers
/// to it, and stays unchanged for a while after nothing does.
///
/// Whoever writes them may come to wait for a file for ever, so they can be taken back from it: see [`TakeBack`].
pub struct UnwindMaps {
    tables: Lent<Tables>,
    slots: u32,
    block_count: u32,
}

/// Something in the kernel that is used by one thread and can be freed by another.
type Lent<T> = Arc<Mutex<Option<T>>>;

fn lock<T>(lent: &Lent<T>) -> MutexGuard<'_, Option<T>> {
    lent.lock()
}

/// Frees what a thread uses that does not come back.
pub struct TakeBack {
    tables: Lent<Tables>,
    captures: Lent<RingBuf<MapData>>,
}

impl std::fmt::Debug for TakeBack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TakeBack")
    }
}

impl TakeBack {
    pub fn new(maps: &UnwindMaps, captures: &CaptureReader) -> Self {
        Self {
            tables: Arc::clone(&maps.tables),
            captures: Arc::clone(&captures.ring),
        }
    }

    /// From now on the thread has no maps: its writes fail, and it reads nothing.
    pub fn take_back(&self) {
        drop(lock(&self.tables).take());
        drop(lock(&self.captures).take());
    }
}

struct Tables {
    processes: HashMap<MapData, u32, Shared<ProcessEntry>>,
    /// Counts changes of `processes`, by the low bits of the pid, for walks that the kernel remembers.
    changes: Array<MapData, u32>,
    changed: u32,
    mappings: Array<MapData, Shared<Mappings>>,
    pages: HashMap<MapData, Shared<PageKey>, Shared<PageEntry>>,
    blocks: Array<MapData, Shared<RowBlock>>,
    rules: Array<MapData, Shared<Rule>>,
    /// Seconds by which programs mark what they use.
    clock: Array<MapData, u32>,
    block_uses: MapData,
}

impl std::fmt::Debug for UnwindMaps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("UnwindMaps")
    }
}

impl UnwindMaps {
    pub(super) fn take(ebpf: &mut Ebpf) -> Result<Self, LoadError> {
        let tables = Tables {
            processes: taken(ebpf, "PROCESSES")?,
            changes: taken(ebpf, "MAPPING_CHANGES")?,
            changed: 0,
            mappings: taken(ebpf, "MAPPINGS")?,
            pages: taken(ebpf, "PAGES")?,
            blocks: taken(ebpf, "BLOCKS")?,
            rules: taken(ebpf, "RULES")?,
            clock: taken(ebpf, "USE_CLOCK")?,
            block_uses: match ebpf.take_map("BLOCK_USES") {
                Some(Map::Array(data)) => data,
                _ => return Err(LoadError::NoMap("BLOCK_USES")),
            },
        };
        Ok(Self {
            slots: tables.mappings.len(),
            block_count: tables.blocks.len(),
            tables: Arc::new(Mutex::new(Some(tables))),
        })
    }

    /// Changes the tables, unless they were taken back.
    fn change(
        &self,
        map: &'static str,
        change: impl FnOnce(&mut Tables) -> Result<(), MapError>,
    ) -> Result<(), LoadError> {
        match &mut *lock(&self.tables) {
            Some(tables) => change(tables).map_err(failed(map)),
            None => Err(LoadError::NoMap(map)),
        }
    }

    /// Processes whose mappings can be known at once, with the slot for those that have none.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Blocks of rows that there is room for.
    pub fn block_count(&self) -> u32 {
        self.block_count
    }

    pub fn set_process(&mut self, pid: u32, entry: ProcessEntry) -> Result<(), LoadError> {
        self.change("PROCESSES", |tables| {
            tables.processes.insert(pid, Shared(entry), 0)
        })?;
        self.change("MAPPING_CHANGES", |tables| {
            tables.changed = tables.changed.wrapping_add(1);
            let place = pid & (MAPPING_CHANGE_ENTRIES - 1);
            tables.changes.set(place, tables.changed, 0)
        })
    }

    /// The entry as the kernel has counted it down, if there is one.
    pub fn process(&self, pid: u32) -> Option<ProcessEntry> {
        let tables = lock(&self.tables);
        let entry = tables.as_ref()?.processes.get(&pid, 0).ok()?;
        Some(entry.0)
    }

    pub fn remove_process(&mut self, pid: u32) -> Result<(), LoadError> {
        self.change("PROCESSES", |tables| {
            ignore_absent(tables.processes.remove(&pid))
        })
    }

    /// Sets the time by which programs mark processes and blocks of rows as used.
    pub fn set_clock(&mut self, seconds: u32) -> Result<(), LoadError> {
        self.change("USE_CLOCK", |tables| tables.clock.set(0, seconds, 0))
    }

    /// When each block was last searched, by [`Self::set_clock`]; empty when the tables were taken
    /// back.
    pub fn block_uses(&self) -> Result<Vec<u32>, LoadError> {
        let mut uses = Vec::new();
        if let Some(tables) = lock(&self.tables).as_ref() {
            // Batches of an array come in the order of its indexes.
            batch::read(tables.block_uses.fd().as_fd(), |_index: u32, used: u32| {
                uses.push(used);
            })?;
        }
        Ok(uses)
    }

    pub fn set_mappings(&mut self, slot: u32, mappings: &Mappings) -> Result<(), LoadError> {
        self.change("MAPPINGS", |tables| {
            tables.mappings.set(slot, Shared(*mappings), 0)
        })
    }

    pub fn set_page(&mut self, key: PageKey, entry: &PageEntry) -> Result<(), LoadError> {
        self.change("PAGES", |tables| {
            tables.pages.insert(Shared(key), Shared(*entry), 0)
        })
    }

    pub fn remove_page(&mut self, key: PageKey) -> Result<(), LoadError> {
        self.change("PAGES", |tables| {
            ignore_absent(tables.pages.remove(&Shared(key)))
        })
    }

    pub fn set_block(&mut self, index: u32, block: &RowBlock) -> Result<(), LoadError> {
        self.change("BLOCKS", |tables| {
            tables.blocks.set(index, Shared(*block), 0)
        })
    }

    pub fn set_rule(&mut self, index: u32, rule: Rule) -> Result<(), LoadError> {
        self.change("RULES", |tables| tables.rules.set(index, Shared(rule), 0))
    }
}

fn taken<T>(ebpf: &mut Ebpf, name: &'static str) -> Result<T, LoadError>
where
    T: TryFrom<Map, Error = MapError>,
{
    let map = ebpf.take_map(name).ok_or(LoadError::NoMap(name))?;
    T::try_from(map).map_err(failed(name))
}

fn failed(map: &'static str) -> impl Fn(MapError) -> LoadError {
    move |source| LoadError::Map {
        map,
        source: source.into(),
    }
}

fn ignore_absent(result: Result<(), MapError>) -> Result<(), MapError> {
    match result {
        Ok(()) | Err(MapError::KeyNotFound) => Ok(()),
        Err(MapError::SyscallError(error))
            if error.io_error.raw_os_error() == Some(libc::ENOENT) =>
        {
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// A sample that the kernel could not walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    pub head: CaptureHead,
    /// The stack from `head.stack_start` upwards.
    pub stack: Box<[u8]>,
}

impl Capture {
    /// Decodes one record; never panics, whatever the bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let short = || DecodeError::Short(bytes.len());
        let head: CaptureHead = read_pod(bytes).ok_or_else(short)?;
        if head.header.bytes as usize != bytes.len() {
            return Err(DecodeError::Length {
                said: head.header.bytes,
                came: bytes.len(),
            });
        }
        if head.header.kind != KIND_CAPTURE {
            return Err(DecodeError::Kind(head.header.kind));
        }
        let stack = bytes.get(size_of::<CaptureHead>()..).ok_or_else(short)?;
        if stack.len() != head.stack_bytes as usize || stack.len() > CAPTURE_STACK_BYTES {
            return Err(DecodeError::Frames(head.stack_bytes));
        }
        Ok(Self {
            head,
            stack: stack.into(),
        })
    }
}

/// Reads the ring buffer of captures.
pub struct CaptureReader {
    ring: Lent<RingBuf<MapData>>,
}

impl std::fmt::Debug for CaptureReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CaptureReader")
    }
}

impl CaptureReader {
    pub(super) fn take(ebpf: &mut Ebpf) -> Result<Self, LoadError> {
        Ok(Self {
            ring: Arc::new(Mutex::new(Some(taken(ebpf, "CAPTURES")?))),
        })
    }

    /// Waits until a capture or a byte on `other` comes, or the time is over.
    pub fn wait(&self, other: BorrowedFd<'_>, timeout: Duration) {
        // Nobody takes it back while it is waited for here: that needs a thread which is stuck elsewhere.
        let ring = lock(&self.ring);
        let mut fds = vec![PollFd::from_borrowed_fd(other, PollFlags::IN)];
        if let Some(ring) = ring.as_ref() {
            // SAFETY: the ring buffer owns the descriptor, and the lock that is held keeps it.
            let fd = unsafe { BorrowedFd::borrow_raw(ring.as_raw_fd()) };
            fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
        }
        let timeout = Timespec::try_from(timeout).ok();
        // An interrupted or failed wait is a short wait: the caller looks at the clock anyway.
        let _interrupted = poll(&mut fds, timeout.as_ref());
    }

    /// The next capture that is there; undecodable ones are skipped and counted in `undecodable`.
    pub fn next(&mut self, undecodable: &mut u64) -> Option<Capture> {
        let mut ring = lock(&self.ring);
        loop {
            let item = ring.as_mut()?.next()?;
            match Capture::decode(&item) {
                Ok(capture) => return Some(capture),
                Err(error) => {
                    *undecodable += 1;
                    tracing::debug!(%error, "undecodable capture");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture_bytes(stack: usize) -> Vec<u8> {
        let mut bytes = vec![0; size_of::<CaptureHead>() + stack];
        let length = u32::try_from(bytes.len()).expect("small");
        bytes[..4].copy_from_slice(&KIND_CAPTURE.to_ne_bytes());
        bytes[4..8].copy_from_slice(&length.to_ne_bytes());
        let at = std::mem::offset_of!(CaptureHead, stack_bytes);
        let said = u32::try_from(stack).expect("small");
        bytes[at..at + 4].copy_from_slice(&said.to_ne_bytes());
        bytes
    }

    #[test]
    fn decodes_a_capture() {
        let capture = Capture::decode(&capture_bytes(1024)).expect("well formed");
        assert_eq!(capture.stack.len(), 1024);
    }

    #[test]
    fn truncation_at_every_length_is_an_error() {
        let whole = capture_bytes(64);
        for length in 0..whole.len() {
            assert!(
                Capture::decode(&whole[..length]).is_err(),
                "length {length}"
            );
        }
    }

    #[test]
    fn refuses_more_stack_than_a_capture_holds() {
        let bytes = capture_bytes(CAPTURE_STACK_BYTES + 1);
        assert!(Capture::decode(&bytes).is_err());
    }
}
