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
    #[error("{0}")]
    Failing(String),
    #[error("encode task: {0}")]
    EncodeTask(#[from] serde_json::Error),
    #[error("the store is closed")]
    Closed,
    #[error("the store failed unexpectedly; its file is opened again with the next request")]
    Panicked,
}

impl StoreError {
    pub(super) fn read(source: impl Into<redb::Error>) -> Self {
        Self::Read(Box::new(source.into()))
    }

    pub(super) fn write(source: impl Into<redb::Error>) -> Self {
        Self::Write(Box::new(source.into()))
    }
}
