//! Profiles from files: pprof and folded stacks to [`Profile`].
//!
//! A file is foreign bytes: everything that it can make large is bounded, and an error says what is
//! wrong with it. What the file does not say stays unknown ([`ImportedFile`]) or becomes a note.

mod folded;
mod fields;
mod pprof;
mod pprof_tables;

use std::io::Read as _;

use flate2::read::MultiGzDecoder;
use profiler_model::{ImportFormat, ImportedFile, Profile, megabytes};

/// Largest file.
pub const MAX_FILE_BYTES: usize = 32 << 20;
/// Longest name that a file may be given.
pub const MAX_NAME_BYTES: usize = 255;
/// Largest file when it is unpacked.
const MAX_RAW_BYTES: usize = 128 << 20;
/// Different strings, functions, locations, mappings or samples, each.
const MAX_ITEMS: usize = 1_000_000;
/// Longest name of a function or file.
const MAX_TEXT_BYTES: usize = 64 << 10;
/// Names of one stack, those of inlined functions included.
const MAX_DEPTH: usize = 4096;
/// Names of all stacks together.
const MAX_STACK_NAMES: usize = 8_000_000;
/// Memory for the profile while it is read, where the agent's has no ceiling. Storing it takes as much again.
const MAX_MEMORY_BYTES: u64 = 2 << 30;
/// Largest sum of all counts, and of all times in nanoseconds: what a double holds exactly.
const MAX_SUM: u64 = 1 << 53;
/// Length of a bucket, as in recorded profiles.
const BUCKET_NS: u64 = 20_000_000;
/// Remarks that are taken over.
const MAX_NOTES: usize = 32;
const MAX_NOTE_BYTES: usize = 500;
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Why a file cannot be imported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    #[error("the file is empty")]
    Empty,
    #[error("the gzip data cannot be unpacked: {0}")]
    Gzip(String),
    #[error("the file is larger than {MAX_RAW_BYTES} bytes when it is unpacked")]
    TooLarge,
    #[error("the file is neither pprof nor folded stacks: {0}")]
    NotAProfile(String),
    #[error("the file has more than {limit} {what}")]
    TooMany { what: &'static str, limit: usize },
    #[error(
        "the file's profile needs more than {} of memory, which is a third of what is free below the agent's ceiling",
        megabytes(*room_bytes)
    )]
    NoMemory { room_bytes: u64 },
    #[error("line {line}: {problem}")]
    Line { line: usize, problem: String },
    #[error("sample {sample}: {problem}")]
    Sample { sample: usize, problem: String },
    #[error("the file has neither counts nor times, only: {0}")]
    NoUsableValue(String),
    #[error("the file has no samples")]
    NoSamples,
    /// Beyond it JSON and pictures have no exact numbers.
    #[error("the {what} of all samples add up to more than {MAX_SUM}")]
    TooMuch { what: &'static str },
}

/// A profile with what is known of its file.
#[derive(Debug)]
pub struct Imported {
    pub profile: Profile,
    pub file: ImportedFile,
    /// When the recording began, where the file says it: nanoseconds since the Unix epoch.
    pub began_ns: Option<u64>,
    /// How long it was, where the file says it.
    pub duration_ns: Option<u64>,
    /// Samples per second, where the file says it.
    pub frequency_hz: Option<u32>,
    /// What the file remarks, and what was left out of it.
    pub notes: Vec<String>,
}

/// Reads a file. `name` is what it is called, `now_ns` stands in where it does not say when it was recorded, and
/// `room_bytes` is the memory that may be used for it, where there is a bound.
pub fn read(
    bytes: &[u8],
    name: &str,
    now_ns: u64,
    room_bytes: Option<u64>,
) -> Result<Imported, ImportError> {
    // The profile is built, then encoded: each a part, and one is left for everybody else.
    let memory = Memory {
        most_bytes: room_bytes.map_or(MAX_MEMORY_BYTES, |room| room / 3),
    };
    let unpacked;
    let raw = if bytes.starts_with(&GZIP) {
        unpacked = unpack(bytes, memory)?;
        &unpacked
    } else {
        bytes
    };
    if raw.is_empty() {
        return Err(ImportError::Empty);
    }
    if raw.len() > MAX_RAW_BYTES {
        return Err(ImportError::TooLarge);
    }
    let mut imported = match format_of(raw) {
        ImportFormat::Folded => folded::read(raw, now_ns, memory)?,
        ImportFormat::Pprof => pprof::read(raw, now_ns, memory)?,
    };
    name.clone_into(&mut imported.file.name);
    if imported.profile.samples.is_empty() {
        return Err(ImportError::NoSamples);
    }
    imported
        .profile
        .check()
        .map_err(|problem| ImportError::NotAProfile(problem.to_owned()))?;
    // Sums that do not fit stay at the largest number, which is above the bound as well.
    if imported.profile.total_count() > MAX_SUM {
        return Err(ImportError::TooMuch { what: "counts" });
    }
    if imported.profile.total_ns() > MAX_SUM {
        return Err(ImportError::TooMuch { what: "times" });
    }
    Ok(imported)
}

/// What reading a file may take.
#[derive(Clone, Copy, Debug)]
struct Memory {
    most_bytes: u64,
}

impl Memory {
    /// Whether `bytes` are not too many.
    fn check(self, bytes: u64) -> Result<(), ImportError> {
        if bytes > self.most_bytes {
            return Err(ImportError::NoMemory {
                room_bytes: self.most_bytes,
            });
        }
        Ok(())
    }
}

fn unpack(bytes: &[u8], memory: Memory) -> Result<Vec<u8>, ImportError> {
    let mut raw = Vec::new();
    let limit = memory.most_bytes.min(MAX_RAW_BYTES as u64) + 1;
    MultiGzDecoder::new(bytes)
        .take(limit)
        .read_to_end(&mut raw)
        .map_err(|error| ImportError::Gzip(error.to_string()))?;
    memory.check(raw.len() as u64)?;
    Ok(raw)
}

/// Text is folded stacks, and so is what has control characters in names: its first line ends with a
/// count. pprof begins with a message, whose tag is a control character.
fn format_of(raw: &[u8]) -> ImportFormat {
    let start = &raw[..raw.len().min(4096)];
    let is_text = |byte: &u8| *byte >= b' ' || matches!(byte, b'\t' | b'\n' | b'\r');
    if start.iter().all(is_text) || folded::begins(raw) {
        ImportFormat::Folded
    } else {
        ImportFormat::Pprof
    }
}

/// Notes in order, each once, as many and as long as a task may have.
fn bounded_notes(notes: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for mut note in notes {
        if note.len() > MAX_NOTE_BYTES {
            note.truncate(note.floor_char_boundary(MAX_NOTE_BYTES));
            note.push('…');
        }
        if !note.is_empty() && kept.len() < MAX_NOTES && !kept.contains(&note) {
            kept.push(note);
        }
    }
    kept
}
