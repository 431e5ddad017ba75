//! What is known of a profile that came from a file.

use serde::{Deserialize, Serialize};

/// How the file was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ImportFormat {
    Pprof,
    Folded,
}

impl ImportFormat {
    /// Name in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pprof => "pprof",
            Self::Folded => "folded",
        }
    }
}

/// Which numbers the file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ImportValues {
    Counts,
    Durations,
    Both,
}

/// A file as it was given. What it did not say stays unknown.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ImportedFile {
    /// Untrusted text.
    pub name: String,
    pub format: ImportFormat,
    pub values: ImportValues,
    /// Whether samples say when they were taken.
    pub has_times: bool,
    /// Whether samples say which thread they are of.
    pub has_threads: bool,
}

/// What is known of the recording in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedProfile {
    pub file: ImportedFile,
    pub duration_s: Option<u64>,
    pub frequency_hz: Option<u32>,
}
