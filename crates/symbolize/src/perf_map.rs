//! Names of JIT code from `/tmp/perf-PID.map`, as runtimes write them for perf.
//!
//! The file lies in the target's own mount namespace and is hostile: it is opened like any other
//! file of a target, must belong to the process's user or to root, and is read up to a limit.
//!
//! It is not removed when the process ends, and pids are used again, in containers that start anew at once. A file that
//! was last written before the process started is therefore that of another. Both times are of the wall clock: the start
//! is counted back from now, so that setting the clock in between moves one against the other.

use std::{collections::BTreeMap, fs::File, os::unix::fs::FileExt as _, time::Instant};

use profiler_clock::started_wall_ns;
use profiler_image::{
    module_file::{Links, ModuleFile, Refusal, open_in_root},
    proc_dir::ProcDir,
    remote_mounts::ProcessMounts,
};
use profiler_sandbox::broker;

use super::demangle::NAME_LIMIT;

/// Bytes of a file that are read.
const READ_LIMIT: u64 = 32 << 20;
/// Entries that are kept.
const ENTRIES_LIMIT: usize = 300_000;
/// Bytes of names that are kept.
const NAMES_LIMIT: usize = 16 << 20;
/// Longest name that is kept.
const ENTRY_NAME_LIMIT: usize = 1024;
/// Bytes that are read at once.
const CHUNK_BYTES: usize = 64 * 1024;
/// A file may seem to be older than its process by so much: files have the time of the kernel's last tick (10 ms at
/// most), starts are in hundredths of a second, and the two clocks are read one after the other.
const TIME_SLACK_NS: u64 = 100_000_000;

#[derive(Clone, Copy, Debug)]
struct Entry {
    end: u64,
    name_at: u32,
    name_bytes: u16,
}

/// The parsed part of one perf-map.
#[derive(Debug, Default)]
pub(crate) struct PerfMap {
    entries: BTreeMap<u64, Entry>,
    /// All names in one text.
    names: String,
    /// Device, inode and bytes read so far.
    file: Option<(u64, u64)>,
    read: u64,
    /// When the file was last looked at.
    pub(crate) checked: Option<Instant>,
    /// It was older than its process then, and nothing of it is kept.
    pub(crate) is_old: bool,
}

impl PerfMap {
    /// Name of the newest entry around an address.
    pub(crate) fn name(&self, address: u64) -> Option<&str> {
        let (_, entry) = self.entries.range(..=address).next_back()?;
        if address >= entry.end {
            return None;
        }
        let start = entry.name_at as usize;
        self.names.get(start..start + usize::from(entry.name_bytes))
    }

    /// Reads what was added to the file, or all of it when it is another file. `start_ticks` is that of the process.
    pub(crate) fn update(&mut self, process: &ProcDir, start_ticks: u64) -> Result<(), Refusal> {
        self.checked = Some(Instant::now());
        self.is_old = false;
        let status = process.status().map_err(|_| Refusal::NotFound)?;
        let root = process.open_root().map_err(|_| Refusal::NotFound)?;
        let mounts = ProcessMounts::read(process.handle()).map_err(|_| Refusal::NotFound)?;
        let path = format!("/tmp/perf-{}.map", status.namespace_pid);
        // The last part must not be a link: /tmp is everybody's.
        let file = open_in_root(
            std::os::fd::AsFd::as_fd(&root),
            path.as_bytes(),
            u64::MAX,
            Links::RefuseLast,
            Some(&mounts),
        )?;
        self.read_file(&file, status.uid, started_wall_ns(start_ticks))
    }

    fn read_file(
        &mut self,
        found: &ModuleFile,
        uid: u32,
        process_began_ns: u64,
    ) -> Result<(), Refusal> {
        if found.owner != uid && found.owner != 0 {
            return Err(Refusal::ForeignOwner);
        }
        let modified_ns = found.key.modified_ns();
        if modified_ns.saturating_add(TIME_SLACK_NS) < process_began_ns {
            *self = Self {
                checked: self.checked,
                is_old: true,
                ..Self::default()
            };
            return Err(Refusal::Old);
        }
        let _reading = broker::reading(found.key.device);
        let identity = Some((found.key.device, found.key.inode));
        if self.file != identity || found.key.size < self.read {
            *self = Self {
                file: identity,
                checked: self.checked,
                ..Self::default()
            };
        }
        self.read_new(&found.file, found.key.size.min(READ_LIMIT))
            .map_err(|_| Refusal::NotFound)
    }

    /// Parses the complete lines between what was read and `size`.
    pub(super) fn read_new(&mut self, file: &File, size: u64) -> std::io::Result<()> {
        let mut buffer = vec![0; CHUNK_BYTES];
        while self.read < size && self.entries.len() < ENTRIES_LIMIT {
            let count = file.read_at(&mut buffer, self.read)?;
            let chunk = &buffer[..count];
            let complete = chunk
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |at| at + 1);
            for line in chunk[..complete].split(|byte| *byte == b'\n') {
                self.insert_line(line);
            }
            self.read += complete as u64;
            if complete == 0 {
                // The last line is still being written, unless it is absurdly long: skip that.
                if count < CHUNK_BYTES {
                    break;
                }
                self.read += count as u64;
            }
        }
        Ok(())
    }

    /// Adds `START SIZE name` (hexadecimal). Newer entries replace the older ones they overlap:
    /// the memory was used again.
    fn insert_line(&mut self, line: &[u8]) {
        let Some((start, end, name)) = parse_line(line) else {
            return;
        };
        if self.entries.len() >= ENTRIES_LIMIT || self.names.len() + name.len() > NAMES_LIMIT {
            return;
        }
        while let Some((old, entry)) = self.entries.range(..end).next_back() {
            if entry.end <= start {
                break;
            }
            let old = *old;
            self.entries.remove(&old);
        }
        let (Ok(name_at), Ok(name_bytes)) =
            (u32::try_from(self.names.len()), u16::try_from(name.len()))
        else {
            return;
        };
        self.names.push_str(&name);
        self.entries.insert(
            start,
            Entry {
                end,
                name_at,
                name_bytes,
            },
        );
    }

    /// Bytes kept, about.
    pub(crate) fn bytes(&self) -> usize {
        self.names.capacity() + self.entries.len() * 40
    }
}

fn parse_line(line: &[u8]) -> Option<(u64, u64, String)> {
    let mut fields = line.splitn(3, |byte| *byte == b' ');
    let mut number = || {
        let text = std::str::from_utf8(fields.next()?).ok()?;
        u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
    };
    let (start, bytes) = (number()?, number()?);
    let end = start.checked_add(bytes).filter(|end| *end > start)?;
    let name = fields.next()?.trim_ascii();
    let name = String::from_utf8_lossy(&name[..name.len().min(ENTRY_NAME_LIMIT.min(NAME_LIMIT))]);
    (!name.is_empty()).then(|| (start, end, name.into_owned()))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn map(text: &[u8]) -> PerfMap {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text).unwrap();
        let mut map = PerfMap::default();
        map.read_new(&file, text.len() as u64).unwrap();
        map
    }

    #[test]
    fn names_hold_inside_their_range_only() {
        let map = map(b"1000 10 one\n0x2000 0x20 LazyCompile:*two a.js:1\n");
        assert_eq!(map.name(0x0fff), None);
        assert_eq!(map.name(0x1000), Some("one"));
        assert_eq!(map.name(0x100f), Some("one"));
        assert_eq!(map.name(0x1010), None);
        assert_eq!(map.name(0x201f), Some("LazyCompile:*two a.js:1"));
        assert_eq!(map.name(u64::MAX), None);
    }

    #[test]
    fn newer_entries_replace_what_they_overlap() {
        let map = map(b"1000 100 a\n1100 100 b\n1200 100 c\n10f0 20 new\n1300 10 d\n1300 8 e\n");
        assert_eq!(
            map.name(0x1000),
            None,
            "a is gone: its memory was used again"
        );
        assert_eq!(map.name(0x10f8), Some("new"));
        assert_eq!(map.name(0x1150), None);
        assert_eq!(map.name(0x1250), Some("c"));
        assert_eq!((map.name(0x1307), map.name(0x1308)), (Some("e"), None));
    }

    #[test]
    fn growth_is_read_and_half_a_line_waits() {
        let mut file = tempfile::tempfile().unwrap();
        let mut map = PerfMap::default();
        file.write_all(b"1000 10 one\n2000 10 tw").unwrap();
        map.read_new(&file, file.metadata().unwrap().len()).unwrap();
        assert_eq!((map.name(0x1000), map.name(0x2000)), (Some("one"), None));
        file.write_all(b"o\n").unwrap();
        map.read_new(&file, file.metadata().unwrap().len()).unwrap();
        assert_eq!(map.name(0x2000), Some("two"));
    }

    #[test]
    fn hostile_content_is_skipped_and_bounded() {
        let mut text =
            b"\n \nx y z\n10\n10 10\n10 10 \n10 0 zero\nffffffffffffffff 2 over\n\xff\xfe 1 a\n"
                .to_vec();
        text.extend(std::iter::repeat_n(b'x', 3 * CHUNK_BYTES));
        text.extend(b"\n5000 10 \xff\xfe\n");
        let map = map(&text);
        assert_eq!(map.entries.len(), 1);
        assert_eq!(map.name(0x5000), Some("\u{fffd}\u{fffd}"));
        let long = format!("6000 10 {}\n", "n".repeat(10_000));
        assert_eq!(
            super::tests::map(long.as_bytes())
                .name(0x6000)
                .unwrap()
                .len(),
            ENTRY_NAME_LIMIT
        );
    }

    #[test]
    fn files_of_other_users_are_refused_and_another_file_starts_anew() {
        let dir = tempfile::tempdir().unwrap();
        let root = rustix::fs::open(
            dir.path(),
            rustix::fs::OFlags::PATH | rustix::fs::OFlags::DIRECTORY,
            rustix::fs::Mode::empty(),
        )
        .unwrap();
        let open = |name: &str| {
            open_in_root(
                std::os::fd::AsFd::as_fd(&root),
                name.as_bytes(),
                u64::MAX,
                Links::RefuseLast,
                None,
            )
            .unwrap()
        };
        std::fs::write(dir.path().join("one"), "1000 10 one\n").unwrap();
        std::fs::write(dir.path().join("two"), "2000 10 two\n").unwrap();
        let mut map = PerfMap::default();
        let mut one = open("one");
        map.read_file(&one, one.owner, 0).unwrap();
        assert_eq!(map.name(0x1000), Some("one"));
        let two = open("two");
        map.read_file(&two, two.owner, 0).unwrap();
        assert_eq!((map.name(0x1000), map.name(0x2000)), (None, Some("two")));
        one.owner = 1000;
        assert_eq!(map.read_file(&one, 1001, 0), Err(Refusal::ForeignOwner));
        one.owner = 0;
        assert_eq!(map.read_file(&one, 1001, 0), Ok(()));
    }

    #[test]
    fn a_file_that_is_older_than_the_process_names_nothing_until_it_is_written_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("map");
        let root = rustix::fs::open(
            dir.path(),
            rustix::fs::OFlags::PATH | rustix::fs::OFlags::DIRECTORY,
            rustix::fs::Mode::empty(),
        )
        .unwrap();
        let open = || {
            open_in_root(
                std::os::fd::AsFd::as_fd(&root),
                b"map",
                u64::MAX,
                Links::RefuseLast,
                None,
            )
            .unwrap()
        };
        std::fs::write(&path, "1000 10 of_another\n").unwrap();
        let written_ns = open().key.modified_ns();
        let mut map = PerfMap::default();
        let file = open();
        let mut read = |file: &ModuleFile, began_ns| {
            let result = map.read_file(file, file.owner, began_ns);
            (result, map.name(0x1000).map(str::to_owned), map.is_old)
        };
        let named = |name: &str| (Ok(()), Some(name.to_owned()), false);
        // The clocks' own steps make no file old.
        assert_eq!(read(&file, written_ns + 50_000_000), named("of_another"));
        let began_ns = written_ns + 1_000_000_000;
        assert_eq!(read(&file, began_ns), (Err(Refusal::Old), None, true));
        std::fs::write(&path, "1000 10 own\n").unwrap();
        let written = std::time::UNIX_EPOCH + std::time::Duration::from_nanos(began_ns);
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(written)
            .unwrap();
        let (result, name, _) = read(&open(), began_ns);
        assert_eq!((result, name.as_deref()), (Ok(()), Some("own")));
    }
}
