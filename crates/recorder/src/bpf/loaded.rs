//! Programs and maps that this process holds in the kernel, found by its own file descriptors, with the
//! kernel's figures about them. Whichever task or collection loaded them, none is left out.

use std::{
    collections::HashSet,
    fs,
    os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd, RawFd},
};

use profiler_memory::Fdinfo;

use super::batch;

/// Command number in `enum bpf_cmd`.
const BPF_OBJ_GET_INFO_BY_FD: libc::c_long = 15;

/// Entries that are counted in one map.
const MOST_COUNTED: usize = 100_000;
/// Longest key and value that are walked over.
const MOST_KEY_BYTES: u64 = 512;
const MOST_VALUE_BYTES: u64 = 64 << 10;
/// Longest value with all its copies.
const MOST_COPIED_BYTES: usize = 256 << 10;
/// Bytes of `struct bpf_prog_info` and `struct bpf_map_info` up to the end of the name.
const PROGRAM_INFO_BYTES: usize = 80;
const PROGRAM_NAME_AT: usize = 64;
const MAP_INFO_BYTES: usize = 40;
const MAP_NAME_AT: usize = 24;
const NAME_BYTES: usize = 16;

/// A program in the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedProgram {
    pub id: u32,
    /// The kernel keeps 15 bytes.
    pub name: String,
    /// Runs and their time; they grow only while the kernel's BPF statistics are on.
    pub run_count: u64,
    pub run_time_ns: u64,
    /// Runs that the kernel left out because the program was at work on that CPU.
    pub missed_runs: u64,
    pub verified_instructions: Option<u64>,
    pub memory_bytes: u64,
}

/// A map in the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedMap {
    pub id: u32,
    pub name: String,
    pub kind: &'static str,
    pub max_entries: u64,
    /// How many there are, or why that is not known.
    pub entries: Result<u64, &'static str>,
    pub memory_bytes: u64,
}

/// Attributes of `BPF_OBJ_GET_INFO_BY_FD` in `union bpf_attr`.
#[repr(C)]
#[derive(Debug, Default)]
struct InfoAttributes {
    fd: u32,
    info_bytes: u32,
    info: u64,
}

/// What is loaded now, each once, in the order of the ids. Blocks: maps are walked to count their entries.
pub fn loaded() -> std::io::Result<(Vec<LoadedProgram>, Vec<LoadedMap>)> {
    let (mut programs, mut maps) = (Vec::new(), Vec::new());
    let mut seen = HashSet::new();
    for number in descriptors()? {
        let Some((what, fd)) = duplicate(number) else {
            continue;
        };
        let Some(facts) = facts(fd.as_raw_fd()) else {
            continue;
        };
        let id = facts.number(if what == Object::Program {
            "prog_id"
        } else {
            "map_id"
        });
        let Some(id) = id.and_then(|id| u32::try_from(id).ok()) else {
            continue;
        };
        if !seen.insert((what, id)) {
            continue;
        }
        match what {
            Object::Program => programs.push(program(id, &fd, &facts)),
            Object::Map => maps.push(map(id, &fd, &facts)),
        }
    }
    programs.sort_by_key(|program| program.id);
    maps.sort_by_key(|map| map.id);
    Ok((programs, maps))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Object {
    Program,
    Map,
}

fn descriptors() -> std::io::Result<Vec<RawFd>> {
    let entries = fs::read_dir("/proc/self/fd")?;
    Ok(entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect())
}

fn object_behind(number: RawFd) -> Option<Object> {
    let target = fs::read_link(format!("/proc/self/fd/{number}")).ok()?;
    match target.to_str()? {
        "anon_inode:bpf-prog" => Some(Object::Program),
        "anon_inode:bpf-map" => Some(Object::Map),
        _ => None,
    }
}

/// A descriptor of our own for the object behind `number`. Other threads may close and reuse that number at
/// any time, so that what it is gets looked at once more when it is ours.
fn duplicate(number: RawFd) -> Option<(Object, OwnedFd)> {
    object_behind(number)?;
    // SAFETY: the call takes a number and changes nothing behind it.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 0) };
    if copy < 0 {
        return None;
    }
    // SAFETY: the kernel has just made this descriptor for us.
    let copy = unsafe { OwnedFd::from_raw_fd(copy) };
    let what = object_behind(copy.as_raw_fd())?;
    Some((what, copy))
}

/// What the kernel says of a map or a program of ours.
pub(super) fn facts(number: RawFd) -> Option<Fdinfo> {
    let path = format!("/proc/self/fdinfo/{number}");
    fs::read_to_string(path).ok().map(Fdinfo)
}

fn program(id: u32, fd: &OwnedFd, facts: &Fdinfo) -> LoadedProgram {
    LoadedProgram {
        id,
        name: name_of::<PROGRAM_INFO_BYTES>(fd, PROGRAM_NAME_AT),
        run_count: facts.number("run_cnt").unwrap_or(0),
        run_time_ns: facts.number("run_time_ns").unwrap_or(0),
        missed_runs: facts.number("recursion_misses").unwrap_or(0),
        verified_instructions: facts.number("verified_insns"),
        memory_bytes: facts.number("memlock").unwrap_or(0),
    }
}

fn map(id: u32, fd: &OwnedFd, facts: &Fdinfo) -> LoadedMap {
    let (kind, is_walked) = map_kind(facts.number("map_type").unwrap_or(u64::MAX));
    let max_entries = facts.number("max_entries").unwrap_or(0);
    let size = |name: &str, most: u64| {
        facts
            .number(name)
            .filter(|bytes| (1..=most).contains(bytes))
            .and_then(|bytes| usize::try_from(bytes).ok())
    };
    let value = size("value_size", MOST_VALUE_BYTES)
        .map(|bytes| bytes * copies(kind))
        .filter(|bytes| *bytes <= MOST_COPIED_BYTES);
    let sizes = size("key_size", MOST_KEY_BYTES).zip(value);
    let entries = match (is_walked, sizes) {
        (Err(reason), _) => Err(reason),
        (Ok(()), None) => Err("its entries are too long to count them"),
        (Ok(()), Some((key, value))) => count(fd, key, value),
    };
    LoadedMap {
        id,
        name: name_of::<MAP_INFO_BYTES>(fd, MAP_NAME_AT),
        kind,
        max_entries,
        entries,
        memory_bytes: facts.number("memlock").unwrap_or(0),
    }
}

/// Runs of a program of ours that the kernel left out because the program was at work on that CPU.
pub(super) fn missed_runs(number: RawFd) -> Option<u64> {
    facts(number)?.number("recursion_misses")
}

/// Values of one entry that the kernel hands out: maps of a per-CPU kind have one for each possible CPU, at
/// multiples of eight bytes.
fn copies(kind: &str) -> usize {
    if kind.starts_with("per-CPU") {
        // Rounding a value up at most makes it eight times as long.
        aya::util::nr_cpus().unwrap_or(1) * 8
    } else {
        1
    }
}

/// Name of a type in `enum bpf_map_type`, and whether its entries come and go.
fn map_kind(number: u64) -> (&'static str, Result<(), &'static str>) {
    const FIXED: Result<(), &str> = Err("an array: every entry exists from the start");
    match number {
        1 => ("hash", Ok(())),
        2 => ("array", FIXED),
        3 => ("program array", FIXED),
        4 => ("perf event array", FIXED),
        5 => ("per-CPU hash", Ok(())),
        6 => ("per-CPU array", FIXED),
        9 => ("LRU hash", Ok(())),
        10 => ("per-CPU LRU hash", Ok(())),
        11 => ("prefix tree", Ok(())),
        12 => ("array of maps", FIXED),
        13 => ("hash of maps", Ok(())),
        27 => (
            "ring buffer",
            Err("a ring buffer: what does not fit is counted as a loss"),
        ),
        29 => (
            "task storage",
            Err("the entries are kept with their threads"),
        ),
        _ => ("other", Err("maps of this type are not counted")),
    }
}

/// Walks the map. Others write it meanwhile: the count is of about now.
fn count(fd: &OwnedFd, key_bytes: usize, value_bytes: usize) -> Result<u64, &'static str> {
    match batch::count(fd.as_fd(), key_bytes, value_bytes, MOST_COUNTED) {
        Ok(found) if found < MOST_COUNTED => Ok(found as u64),
        Ok(_) => Err("more than 100,000: not counted to the end"),
        Err(_) => Err("the kernel does not let its entries be listed"),
    }
}

/// The name that the kernel keeps, read from the first `BYTES` of the object's info.
fn name_of<const BYTES: usize>(fd: &OwnedFd, name_at: usize) -> String {
    let mut info = [0_u8; BYTES];
    let mut attributes = InfoAttributes {
        fd: u32::try_from(fd.as_raw_fd()).unwrap_or(u32::MAX),
        info_bytes: u32::try_from(BYTES).unwrap_or(0),
        info: info.as_mut_ptr() as u64,
    };
    // SAFETY: the kernel writes at most `info_bytes` bytes to `info`, which outlives the call; the
    // buffers that the info could ask for are null with length 0.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_OBJ_GET_INFO_BY_FD,
            &raw mut attributes,
            size_of::<InfoAttributes>(),
        )
    };
    if result != 0 {
        return String::new();
    }
    let name = info.get(name_at..name_at + NAME_BYTES).unwrap_or_default();
    let end = name.iter().position(|byte| *byte == 0);
    String::from_utf8_lossy(name.get(..end.unwrap_or(name.len())).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_without_programs_has_none() {
        let (programs, maps) = loaded().unwrap();
        assert_eq!((programs, maps), (Vec::new(), Vec::new()));
    }

    #[test]
    fn only_kinds_that_can_be_walked_are_counted() {
        assert!(map_kind(1).1.is_ok() && map_kind(27).1.is_err());
    }
}
