//! What the agent uses: its own pages, its files in memory, and its eBPF objects.
//!
//! Pages of files (the program itself, libraries, files that are read) are not counted: they are clean, and the
//! kernel takes them back when it needs room. Maps that are mapped into the agent count once, as the kernel's.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::Read as _,
    os::unix::fs::MetadataExt as _,
};

use crate::fdinfo::Fdinfo;

/// Bytes of a file of /proc that are read.
const TEXT_LIMIT: u64 = 4096;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryReading {
    /// Heap, stacks and other pages without a file (`RssAnon`).
    pub own_bytes: u64,
    /// Copies of tables of programs, in files without a name (memfd).
    pub copied_bytes: u64,
    /// Maps and programs in the kernel; since Linux 5.11 they are charged to the agent's cgroup.
    pub kernel_bytes: u64,
}

impl MemoryReading {
    /// Reads `/proc/self`. With an earlier reading only the agent's own pages are new, which costs microseconds;
    /// without it every descriptor is looked at, some microseconds each.
    pub(super) fn take(rest: Option<Self>) -> Self {
        let own_bytes = own_bytes().unwrap_or(0);
        let rest = rest.unwrap_or_else(descriptors);
        Self { own_bytes, ..rest }
    }

    pub fn used_bytes(&self) -> u64 {
        self.own_bytes
            .saturating_add(self.copied_bytes)
            .saturating_add(self.kernel_bytes)
    }
}

fn own_bytes() -> Option<u64> {
    let text = text_of("/proc/self/statm")?;
    let mut pages = text.split(' ').skip(1).map(str::parse::<u64>);
    // The second of these counts pages of files and of shared memory.
    let (resident, of_files) = (pages.next()?.ok()?, pages.next()?.ok()?);
    let page = u64::try_from(rustix::param::page_size()).ok()?;
    Some(resident.saturating_sub(of_files).saturating_mul(page))
}

/// What the open files say. One that goes meanwhile counts nothing.
fn descriptors() -> MemoryReading {
    let mut reading = MemoryReading::default();
    let Ok(entries) = fs::read_dir("/proc/self/fd") else {
        return reading;
    };
    let mut seen = HashSet::new();
    for entry in entries.flatten() {
        let Ok(target) = fs::read_link(entry.path()) else {
            continue;
        };
        let target = target.to_string_lossy();
        if target.starts_with("/memfd:") {
            if let Ok(file) = fs::metadata(entry.path())
                && seen.insert((false, file.ino()))
            {
                reading.copied_bytes += file.blocks().saturating_mul(512);
            }
        } else if target.starts_with("anon_inode:bpf-") {
            let path = format!("/proc/self/fdinfo/{}", entry.file_name().to_string_lossy());
            let charge = text_of(&path).and_then(|text| Fdinfo(text).charge());
            if let Some((id, bytes)) = charge
                && seen.insert((true, id))
            {
                reading.kernel_bytes += bytes;
            }
        }
    }
    reading
}

fn text_of(path: &str) -> Option<String> {
    let mut text = String::new();
    let file = File::open(path).ok()?;
    file.take(TEXT_LIMIT).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use rustix::fs::{MemfdFlags, memfd_create};

    use super::*;

    #[test]
    fn own_memory_and_files_in_memory_are_counted() {
        const BYTES: usize = 128 << 20;
        // What other tests beside this one may give back meanwhile.
        const SLACK: u64 = 96 << 20;
        const FILE_BYTES: usize = 8 << 20;
        let before = MemoryReading::take(None);
        let mut pages = vec![1_u8; BYTES];
        pages[BYTES / 2] = 2;
        let mut file: File = memfd_create("reading", MemfdFlags::CLOEXEC).unwrap().into();
        file.write_all(&pages[..FILE_BYTES]).unwrap();
        let after = MemoryReading::take(None);
        assert!(
            after.own_bytes + SLACK > before.own_bytes + BYTES as u64,
            "{before:?} {after:?}"
        );
        assert!(
            after.copied_bytes >= FILE_BYTES as u64,
            "{before:?} {after:?}"
        );
        let quick = MemoryReading::take(Some(after));
        assert_eq!(quick.copied_bytes, after.copied_bytes);
        assert!(pages.contains(&2));
    }
}
