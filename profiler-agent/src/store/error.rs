//! What can go wrong on disk.

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("data directory {} is in use by another agent{owner}", path.display())]
    InUse { path: PathBuf, owner: String },
    #[error("data directory {}: {source}", path.display())]
    Directory {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("open {}: {source}; if the file is damaged, move it away to start with an empty store", path.display())]
    Open {
        path: PathBuf,
        source: Box<redb::Error>,
    },
    #[error("{}: written by a newer version (schema {found}, this version knows {known})", path.display())]
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
    Failing { text: String, is_full: bool },
    #[error("encode task: {0}")]
    EncodeTask(#[from] serde_json::Error),
    #[error("the store is closed")]
    Closed,
    #[error("the store failed unexpectedly; its file is opened again with the next request")]
    Panicked,
}

impl StoreError {
    /// Whether the disk, or the quota on it, has no room left.
    pub fn is_full(&self) -> bool {
        if let Self::Failing { is_full, .. } = self {
            return *is_full;
        }
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(self);
        while let Some(error) = cause {
            // redb hands on what the file said, in a wrapper or as it is.
            let kind = match error.downcast_ref::<redb::Error>() {
                Some(redb::Error::Io(io)) => Some(io.kind()),
                _ => error
                    .downcast_ref::<std::io::Error>()
                    .map(std::io::Error::kind),
            };
            if matches!(
                kind,
                Some(std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded)
            ) {
                return true;
            }
            cause = error.source();
        }
        false
    }

    pub(super) fn read(source: impl Into<redb::Error>) -> Self {
        Self::Read(Box::new(source.into()))
    }

    pub(super) fn write(source: impl Into<redb::Error>) -> Self {
        Self::Write(Box::new(source.into()))
    }
}
