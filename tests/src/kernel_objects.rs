//! What is loaded into the kernel by `bpf(2)`, and pinned.

use std::{
    collections::BTreeSet,
    fs, io,
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};

/// Between two looks: each reads the descriptors of all processes.
const PAUSE: Duration = Duration::from_millis(50);
/// Most maps of one program.
const MAPS: usize = 64;

/// `BPF_PROG_GET_NEXT_ID`, `BPF_MAP_GET_NEXT_ID`, `BPF_LINK_GET_NEXT_ID` (`enum bpf_cmd`).
const NEXT: [(Kind, libc::c_int); 3] = [(Kind::Program, 11), (Kind::Map, 12), (Kind::Link, 31)];
/// `BPF_PROG_GET_FD_BY_ID`, `BPF_MAP_GET_FD_BY_ID` and `BPF_OBJ_GET_INFO_BY_FD`.
const PROGRAM_BY_ID: libc::c_int = 13;
const MAP_BY_ID: libc::c_int = 14;
const INFO_BY_FD: libc::c_int = 15;
/// `BPF_MAP_DELETE_ELEM` and `BPF_MAP_GET_NEXT_KEY`.
const DELETE: libc::c_int = 3;
const NEXT_KEY: libc::c_int = 4;
/// Longest name of a map.
const NAME: usize = 16;
/// Where pins are.
const PINS: &str = "/sys/fs/bpf";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Program,
    Map,
    Link,
}

/// Programs, maps and links by their ids, which are not used again soon, and the names of pins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelObjects {
    ids: BTreeSet<(Kind, u32)>,
    pins: BTreeSet<String>,
}

/// What the kernel is asked with: the last id that is known, and its answer.
#[repr(C)]
struct Question {
    start: u32,
    next: u32,
    open_flags: u32,
}

impl KernelObjects {
    /// Those that are there now. Needs root.
    pub fn now() -> Result<Self> {
        let mut objects = Self::default();
        for (kind, command) in NEXT {
            let mut start = 0;
            while let Some(id) =
                next(command, start).with_context(|| format!("list each {kind:?}"))?
            {
                objects.ids.insert((kind, id));
                start = id;
            }
        }
        if Path::new(PINS).is_dir() {
            for entry in fs::read_dir(PINS).context("list pins")?.flatten() {
                objects
                    .pins
                    .insert(entry.file_name().to_string_lossy().into_owned());
            }
        }
        Ok(objects)
    }

    /// What was not there before and belongs to no process that lives, once nothing of that kind is left or the
    /// limit is over. What other processes load and hold meanwhile does not count.
    pub fn left_behind(before: &Self, limit: Duration) -> Result<Vec<String>> {
        let begun = Instant::now();
        let mut left = Self::now()?.since(before).orphans()?;
        while !left.is_empty() && begun.elapsed() < limit {
            thread::sleep(PAUSE);
            // Only what every look has found: others come and go.
            left = left.among(&Self::now()?).orphans()?;
        }
        Ok(left.names())
    }

    fn is_empty(&self) -> bool {
        self.ids.is_empty() && self.pins.is_empty()
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            ids: self.ids.difference(&before.ids).copied().collect(),
            pins: self.pins.difference(&before.pins).cloned().collect(),
        }
    }

    fn among(&self, other: &Self) -> Self {
        Self {
            ids: self.ids.intersection(&other.ids).copied().collect(),
            pins: self.pins.intersection(&other.pins).cloned().collect(),
        }
    }

    /// Without those of living processes.
    fn orphans(self) -> Result<Self> {
        if self.ids.is_empty() {
            return Ok(self);
        }
        let held = held()?;
        Ok(Self {
            ids: self.ids.difference(&held).copied().collect(),
            pins: self.pins,
        })
    }

    fn names(&self) -> Vec<String> {
        let ids = self.ids.iter().map(|(kind, id)| format!("{kind:?} {id}"));
        let pins = self.pins.iter().map(|pin| format!("pin {pin}"));
        ids.chain(pins).collect()
    }
}

/// What the processes of the machine have descriptors of, and the maps of those programs.
fn held() -> Result<BTreeSet<(Kind, u32)>> {
    let mut held = BTreeSet::new();
    for process in fs::read_dir("/proc").context("list processes")?.flatten() {
        // It may have ended, and most are not processes.
        let Ok(descriptors) = fs::read_dir(process.path().join("fdinfo")) else {
            continue;
        };
        for descriptor in descriptors.flatten() {
            let text = fs::read_to_string(descriptor.path()).unwrap_or_default();
            held.extend(text.lines().filter_map(named));
        }
    }
    let programs: Vec<u32> = held
        .iter()
        .filter(|(kind, _)| *kind == Kind::Program)
        .map(|(_, id)| *id)
        .collect();
    for program in programs {
        // It may be gone meanwhile.
        let maps = maps_of(program).unwrap_or_default();
        held.extend(maps.into_iter().map(|map| (Kind::Map, map)));
    }
    Ok(held)
}

/// What a line of /proc/PID/fdinfo names.
fn named(line: &str) -> Option<(Kind, u32)> {
    let (name, id) = line.split_once(':')?;
    let kind = match name {
        "prog_id" => Kind::Program,
        "map_id" => Kind::Map,
        "link_id" => Kind::Link,
        _ => return None,
    };
    Some((kind, id.trim().parse().ok()?))
}

/// The first fields of `struct bpf_prog_info`.
#[repr(C)]
#[derive(Default)]
struct ProgramInfo {
    kind: u32,
    id: u32,
    tag: [u8; 8],
    jited_length: u32,
    translated_length: u32,
    jited: u64,
    translated: u64,
    load_time: u64,
    uid: u32,
    map_count: u32,
    maps: u64,
}

/// What the kernel is asked with for information.
#[repr(C)]
struct InfoQuestion {
    descriptor: u32,
    length: u32,
    info: u64,
}

/// Takes every entry out of a map of a process that has keys of 8 bytes, as the kernel does with those for which there is
/// no room; how many there were. Needs root.
pub fn empty_map(pid: u32, name: &str) -> Result<usize> {
    let descriptors = format!("/proc/{pid}/fdinfo");
    let mut maps = BTreeSet::new();
    for descriptor in fs::read_dir(&descriptors).context(descriptors)?.flatten() {
        let text = fs::read_to_string(descriptor.path()).unwrap_or_default();
        maps.extend(text.lines().filter_map(named));
    }
    for (_, id) in maps.into_iter().filter(|(kind, _)| *kind == Kind::Map) {
        let map = by_id(MAP_BY_ID, id).context("open a map")?;
        if name_of(&map)? == name {
            return empty(&map).context("empty a map");
        }
    }
    bail!("process {pid} has no map {name}")
}

/// The first fields of `struct bpf_map_info`.
#[repr(C)]
#[derive(Default)]
struct MapInfo {
    kind: u32,
    id: u32,
    key_bytes: u32,
    value_bytes: u32,
    max_entries: u32,
    flags: u32,
    name: [u8; NAME],
}

fn name_of(map: &OwnedFd) -> Result<String> {
    let mut info = MapInfo::default();
    let mut question = InfoQuestion {
        descriptor: u32::try_from(map.as_raw_fd())?,
        length: u32::try_from(size_of::<MapInfo>())?,
        info: (&raw mut info) as u64,
    };
    // SAFETY: the kernel writes at most as many bytes as the length says, into memory that lives on.
    unsafe { bpf(INFO_BY_FD, &raw mut question)? };
    let name = info.name.split(|byte| *byte == 0).next();
    Ok(String::from_utf8_lossy(name.unwrap_or_default()).into_owned())
}

/// What the kernel is asked with about an entry.
#[repr(C)]
struct EntryQuestion {
    map: u32,
    padding: u32,
    key: u64,
    next_key: u64,
    flags: u64,
}

/// Takes the first entry out until there is none.
fn empty(map: &OwnedFd) -> Result<usize> {
    let map = u32::try_from(map.as_raw_fd())?;
    let mut key = 0_u64;
    let mut number = 0;
    loop {
        let mut question = EntryQuestion {
            map,
            padding: 0,
            key: 0,
            next_key: (&raw mut key) as u64,
            flags: 0,
        };
        // SAFETY: the kernel writes a key of 8 bytes, which lives on.
        match unsafe { bpf(NEXT_KEY, &raw mut question) } {
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(number),
            Err(error) => return Err(error.into()),
        }
        question.key = (&raw mut key) as u64;
        question.next_key = 0;
        // SAFETY: the kernel reads a key of 8 bytes, which lives on.
        unsafe { bpf(DELETE, &raw mut question)? };
        number += 1;
    }
}

/// A descriptor of what has an id.
fn by_id(command: libc::c_int, id: u32) -> io::Result<OwnedFd> {
    let mut question = Question {
        start: id,
        next: 0,
        open_flags: 0,
    };
    // SAFETY: the question is as long as is said.
    let descriptor = unsafe { bpf(command, &raw mut question)? };
    // SAFETY: the kernel has just made it, and it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Maps that a program uses.
fn maps_of(program: u32) -> io::Result<Vec<u32>> {
    let descriptor = by_id(PROGRAM_BY_ID, program)?;
    let mut maps = vec![0_u32; MAPS];
    let mut info = ProgramInfo {
        map_count: u32::try_from(MAPS).unwrap_or(u32::MAX),
        maps: maps.as_mut_ptr() as u64,
        ..ProgramInfo::default()
    };
    let mut question = InfoQuestion {
        descriptor: u32::try_from(descriptor.as_raw_fd()).unwrap_or(u32::MAX),
        length: u32::try_from(size_of::<ProgramInfo>()).unwrap_or(0),
        info: (&raw mut info) as u64,
    };
    // SAFETY: the kernel writes at most as many bytes and map ids as the lengths say, into memory that lives on.
    unsafe { bpf(INFO_BY_FD, &raw mut question)? };
    let count = usize::try_from(info.map_count).unwrap_or(0).min(MAPS);
    maps.truncate(count);
    Ok(maps)
}

/// `bpf(2)`.
///
/// # Safety
/// The question must be what the command reads and writes.
unsafe fn bpf<T>(command: libc::c_int, question: *mut T) -> io::Result<libc::c_int> {
    // SAFETY: the caller says so.
    let answer = unsafe { libc::syscall(libc::SYS_bpf, command, question, size_of::<T>()) };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(libc::c_int::try_from(answer).unwrap_or(libc::c_int::MAX))
}

/// The id behind `start`; `None`: that was the last one.
fn next(command: libc::c_int, start: u32) -> io::Result<Option<u32>> {
    let mut question = Question {
        start,
        next: 0,
        open_flags: 0,
    };
    // SAFETY: the kernel reads and writes the three words of the question.
    match unsafe { bpf(command, &raw mut question) } {
        Ok(_) => Ok(Some(question.next)),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        Err(error) => Err(error),
    }
}
