//! The files that processes map, by number.

use std::collections::{HashMap, VecDeque};

use profiler_image::module_file::{FileKey, ModuleFile};
use profiler_sandbox::broker;

use super::{
    file::{Method, UnwindFile},
    machine::Machine,
    processes::{CodeMapping, Content, MappingUnwind},
    tables::bias_of,
};

/// Number of all files that have no rows because they cannot be read.
pub(crate) const REFUSED: u32 = 0;

/// Files that are kept open although no process maps them any more. Short-lived processes use the
/// same few libraries.
const UNUSED_FILES: usize = 64;

#[derive(Debug)]
struct Slot {
    key: FileKey,
    file: Option<UnwindFile>,
    users: u32,
}

/// Files by number; a number is never used again.
#[derive(Debug, Default)]
pub(crate) struct FileTable {
    slots: HashMap<u32, Slot>,
    numbers: HashMap<FileKey, u32>,
    unused: VecDeque<u32>,
    last: u32,
    vdso: Option<Vdso>,
}

/// The vDSO of 64-bit processes; all of them have the same.
#[derive(Debug)]
struct Vdso {
    number: u32,
    bytes: u64,
}

impl FileTable {
    /// The number of a file, for one more process.
    pub(crate) fn acquire(&mut self, opened: ModuleFile) -> u32 {
        if let Some(number) = self.numbers.get(&opened.key).copied()
            && let Some(slot) = self.slots.get_mut(&number)
        {
            if slot.users == 0 {
                self.unused.retain(|other| *other != number);
            }
            slot.users += 1;
            return number;
        }
        self.last += 1;
        let number = self.last;
        let _reading = broker::reading(opened.key.device);
        let file = UnwindFile::open(opened.file)
            .inspect_err(|error| tracing::debug!(%error, "file without unwind tables"))
            .ok()
            .filter(|file| file.machine() == Machine::own());
        self.numbers.insert(opened.key, number);
        self.slots.insert(
            number,
            Slot {
                key: opened.key,
                file,
                users: 1,
            },
        );
        number
    }

    /// One process less uses a file. The result are files that were closed now.
    pub(crate) fn release(&mut self, number: u32) -> Vec<u32> {
        let mut closed = Vec::new();
        if let Some(slot) = self.slots.get_mut(&number) {
            slot.users = slot.users.saturating_sub(1);
            if slot.users == 0 {
                self.unused.push_back(number);
            }
        }
        while self.unused.len() > UNUSED_FILES {
            let Some(oldest) = self.unused.pop_front() else {
                break;
            };
            if let Some(slot) = self.slots.remove(&oldest) {
                self.numbers.remove(&slot.key);
                closed.push(oldest);
            }
        }
        closed
    }

    /// Says that the calling thread reads a file, until the result is dropped.
    pub(crate) fn reading(&self, number: u32) -> Option<broker::Reading> {
        let slot = self.slots.get(&number)?;
        Some(broker::reading(slot.key.device))
    }

    pub(crate) fn get(&self, number: u32) -> Option<&UnwindFile> {
        self.slots.get(&number)?.file.as_ref()
    }

    /// How the code of a mapping other than the vDSO is unwound.
    pub(crate) fn place(&self, mapping: &CodeMapping) -> MappingUnwind {
        let refused = MappingUnwind {
            bias: mapping.start,
            file: REFUSED,
            flags: 0,
        };
        match mapping.content {
            Content::Anonymous => MappingUnwind::frame_pointers(),
            Content::Refused | Content::Vdso => refused,
            Content::File(key) => {
                let number = self.numbers.get(&key).copied().unwrap_or(REFUSED);
                self.get(number)
                    .and_then(|file| place_in(file, number, mapping))
                    .unwrap_or(refused)
            }
        }
    }

    /// How the code of a vDSO mapping is unwound. One of another size than our own is that of
    /// another kind of process.
    pub(crate) fn place_vdso(&mut self, mapping: &CodeMapping) -> MappingUnwind {
        if self.vdso.is_none() {
            self.vdso = self.read_vdso();
        }
        let same = self
            .vdso
            .as_ref()
            .filter(|vdso| vdso.bytes == mapping.end - mapping.start);
        let number = same.map_or(REFUSED, |vdso| vdso.number);
        let placed = self
            .get(number)
            .and_then(|file| place_in(file, number, mapping));
        placed.unwrap_or(MappingUnwind {
            bias: mapping.start,
            file: REFUSED,
            flags: 0,
        })
    }

    fn read_vdso(&mut self) -> Option<Vdso> {
        let (opened, bytes) = profiler_image::vdso_image::own_image()?;
        // Never released, so it stays.
        let number = self.acquire(opened);
        Some(Vdso { number, bytes })
    }
}

fn place_in(file: &UnwindFile, number: u32, mapping: &CodeMapping) -> Option<MappingUnwind> {
    if file.method() == Method::FramePointers {
        return Some(MappingUnwind::frame_pointers());
    }
    Some(MappingUnwind {
        bias: bias_of(file, mapping)?,
        file: number,
        flags: 0,
    })
}
