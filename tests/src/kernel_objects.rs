//! What is loaded into the kernel by `bpf(2)`, and pinned.

use std::{collections::BTreeSet, fs, io, path::Path};

use anyhow::{Context as _, Result};

/// `BPF_PROG_GET_NEXT_ID`, `BPF_MAP_GET_NEXT_ID`, `BPF_LINK_GET_NEXT_ID` (`enum bpf_cmd`).
const NEXT: [(Kind, libc::c_int); 3] = [(Kind::Program, 11), (Kind::Map, 12), (Kind::Link, 31)];
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

    /// Those that were not there before.
    pub fn since(&self, before: &Self) -> Vec<String> {
        let ids = self
            .ids
            .difference(&before.ids)
            .map(|(kind, id)| format!("{kind:?} {id}"));
        let pins = self
            .pins
            .difference(&before.pins)
            .map(|pin| format!("pin {pin}"));
        ids.chain(pins).collect()
    }
}

/// The id behind `start`; `None`: that was the last one.
fn next(command: libc::c_int, start: u32) -> io::Result<Option<u32>> {
    let mut question = Question {
        start,
        next: 0,
        open_flags: 0,
    };
    // SAFETY: the kernel reads and writes the three words of the question, which is as long as is said.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            &raw mut question,
            size_of::<Question>(),
        )
    };
    if answer == 0 {
        return Ok(Some(question.next));
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::ENOENT) {
        Ok(None)
    } else {
        Err(error)
    }
}
