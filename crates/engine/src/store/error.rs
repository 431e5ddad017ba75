//! What can go wrong on disk.

use std::{io::ErrorKind, path::PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("data directory {} is in use by another agent{owner}: stop that one, or choose another with --data-dir", path.display())]
    InUse { path: PathBuf, owner: String },
    #[error("data directory {}: {source}{}", path.display(), remedy(refusal_of(source.kind())))]
    Directory {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("open {}: {source}{}", path.display(), remedy_of_file(source.as_ref()))]
    Open {
        path: PathBuf,
        source: Box<redb::Error>,
    },
    #[error("{} has schema {found}, and this version reads {known} alone: {}", path.display(), other_schema(*found, *known))]
    Schema {
        path: PathBuf,
        found: u64,
        known: u64,
    },
    #[error("read the store: {0}")]
    Read(#[source] Box<redb::Error>),
    #[error("write the store: {0}")]
    Write(#[source] Box<redb::Error>),
    /// A write failed a moment ago; the text is that of the first failure.
    #[error("{text}")]
    Failing {
        text: String,
        refusal: Option<Refusal>,
    },
    #[error("encode task: {0}")]
    EncodeTask(#[from] serde_json::Error),
    #[error("the store is closed")]
    Closed,
    #[error("the store failed unexpectedly; its file is opened again with the next request")]
    Panicked,
}

/// Why a disk takes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It, or the quota on it, has no room left.
    Full,
    ReadOnly,
}

impl StoreError {
    /// Why the disk refused this; `None` when something else is wrong.
    pub fn refusal(&self) -> Option<Refusal> {
        if let Self::Failing { refusal, .. } = self {
            return *refusal;
        }
        refusal_in(self)
    }

    pub(super) fn read(source: impl Into<redb::Error>) -> Self {
        Self::Read(Box::new(source.into()))
    }

    pub(super) fn write(source: impl Into<redb::Error>) -> Self {
        Self::Write(Box::new(source.into()))
    }
}

/// What to do about a file of another version.
fn other_schema(found: u64, known: u64) -> &'static str {
    if found > known {
        "start the newer version that wrote it, or choose another directory with --data-dir"
    } else {
        "a version before the first release wrote it; move it away, or choose another directory with --data-dir"
    }
}

/// The refusal among the causes of an error.
fn refusal_in(error: &(dyn std::error::Error + 'static)) -> Option<Refusal> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        // A source in a box is seen as the box.
        let of_redb = error
            .downcast_ref::<Box<redb::Error>>()
            .map(Box::as_ref)
            .or_else(|| error.downcast_ref());
        // redb hands on what the file said, in a wrapper or as it is.
        let kind = match of_redb {
            Some(redb::Error::Io(io)) => Some(io.kind()),
            _ => error
                .downcast_ref::<std::io::Error>()
                .map(std::io::Error::kind),
        };
        if let Some(refusal) = kind.and_then(refusal_of) {
            return Some(refusal);
        }
        cause = error.source();
    }
    None
}

fn refusal_of(kind: ErrorKind) -> Option<Refusal> {
    if matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded) {
        Some(Refusal::Full)
    } else {
        (kind == ErrorKind::ReadOnlyFilesystem).then_some(Refusal::ReadOnly)
    }
}

fn remedy(refusal: Option<Refusal>) -> &'static str {
    match refusal {
        Some(Refusal::Full) => "; make room there, or choose another directory with --data-dir",
        Some(Refusal::ReadOnly) => {
            "; mount it for writing, or choose another directory with --data-dir"
        }
        None => "",
    }
}

fn remedy_of_file(source: &redb::Error) -> &'static str {
    match refusal_in(source) {
        None => "; if the file is damaged, move it away to start with an empty store",
        refusal => remedy(refusal),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn why_a_disk_refuses_is_found_wherever_it_is_said() {
        let says = |errno| redb::Error::Io(io::Error::from_raw_os_error(errno));
        let open = |errno| StoreError::Open {
            path: "/data/store.redb".into(),
            source: Box::new(says(errno)),
        };
        for (errno, expected) in [
            (libc::ENOSPC, Some(Refusal::Full)),
            (libc::EDQUOT, Some(Refusal::Full)),
            (libc::EROFS, Some(Refusal::ReadOnly)),
            (libc::EIO, None),
        ] {
            assert_eq!(StoreError::write(says(errno)).refusal(), expected);
            assert_eq!(open(errno).refusal(), expected);
        }
        let text = open(libc::ENOSPC).to_string();
        assert!(
            text.ends_with("; make room there, or choose another directory with --data-dir"),
            "{text}"
        );
        assert!(
            open(libc::EIO)
                .to_string()
                .contains("if the file is damaged")
        );
    }
}
