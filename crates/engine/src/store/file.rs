//! The redb file: opened again after a failure, readable all the while, bounded in its room on disk.

use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use redb::Database;

use super::{
    StoreError,
    error::Refusal,
    shadow,
    tables::{self, Change},
};

/// Pause before the file is opened again after a failure.
const REOPEN_AFTER: Duration = Duration::from_secs(2);

/// Opens the redb file; tests use one that fails on demand.
pub type OpenDatabase = Box<dyn Fn(&Path) -> Result<Database, redb::DatabaseError> + Send>;

pub(super) struct StoreFile {
    path: PathBuf,
    open: OpenDatabase,
    state: State,
    /// The file as it was after its last commit, for reads until a write succeeds again.
    shadow: Option<Database>,
    /// No write has succeeded since one failed.
    refuses: bool,
}

enum State {
    Open(Database),
    /// A write failed: redb refuses everything until the file is opened again.
    Failed {
        at: Instant,
        text: String,
        refusal: Option<Refusal>,
    },
    /// To be opened with the next request.
    Reset,
    Closed,
}

impl StoreFile {
    /// Opens the file, creates its tables when they are missing, and returns the next task number.
    pub(super) fn open(path: PathBuf, open: OpenDatabase) -> Result<(Self, u64), StoreError> {
        let failed = |source: redb::Error| StoreError::Open {
            path: path.clone(),
            source: Box::new(source),
        };
        let database = open(&path).map_err(|error| failed(error.into()))?;
        let (schema, next_task) = tables::prepare(&database).map_err(failed)?;
        if schema != tables::SCHEMA {
            let known = tables::SCHEMA;
            return Err(StoreError::Schema {
                path,
                found: schema,
                known,
            });
        }
        let state = State::Open(database);
        let file = Self {
            path,
            open,
            state,
            shadow: None,
            refuses: false,
        };
        Ok((file, next_task))
    }

    pub(super) fn read<R>(
        &mut self,
        read: impl FnOnce(&Database) -> Result<R, redb::Error>,
    ) -> Result<R, StoreError> {
        if let State::Failed { .. } = self.state {
            let shadow = match self.shadow.take() {
                Some(shadow) => shadow,
                None => shadow::open(&self.path).map_err(StoreError::read)?,
            };
            return read(self.shadow.insert(shadow)).map_err(StoreError::read);
        }
        read(self.database()?).map_err(StoreError::read)
    }

    /// Whether the disk refused the last write.
    pub(super) fn refuses(&self) -> bool {
        self.refuses
    }

    /// Applies `changes` as one durable transaction.
    pub(super) fn write<'a>(
        &mut self,
        changes: impl IntoIterator<Item = Change<'a>>,
    ) -> Result<(), StoreError> {
        let result = tables::write(self.database()?, changes);
        result.map_err(|error| self.failed(StoreError::write(error)))?;
        self.refuses = false;
        self.shadow = None;
        Ok(())
    }

    /// Moves everything to the front of the file and cuts it off behind.
    pub(super) fn compact(&mut self) -> Result<bool, StoreError> {
        let result = self.database()?.compact();
        result.map_err(|error| self.failed(StoreError::write(error)))
    }

    /// Room that the file takes on disk, in bytes.
    pub(super) fn disk_bytes(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |file| file.blocks().saturating_mul(512))
    }

    /// Drops the open file after a panic; the next request opens it again.
    pub(super) fn reset(&mut self) {
        self.state = State::Reset;
        self.shadow = None;
    }

    pub(super) fn close(&mut self) {
        self.state = State::Closed;
        self.shadow = None;
    }

    /// The open database; opens it again when a failure lies long enough back.
    fn database(&mut self) -> Result<&mut Database, StoreError> {
        match &self.state {
            State::Open(_) => {}
            State::Closed => return Err(StoreError::Closed),
            State::Failed { at, text, refusal } if at.elapsed() < REOPEN_AFTER => {
                return Err(StoreError::Failing {
                    text: text.clone(),
                    refusal: *refusal,
                });
            }
            State::Failed { .. } | State::Reset => match (self.open)(&self.path) {
                Ok(database) => self.state = State::Open(database),
                Err(error) => {
                    let source = Box::new(error.into());
                    return Err(self.failed(StoreError::Open {
                        path: self.path.clone(),
                        source,
                    }));
                }
            },
        }
        match &mut self.state {
            State::Open(database) => Ok(database),
            State::Failed { .. } | State::Reset | State::Closed => Err(StoreError::Closed),
        }
    }

    fn failed(&mut self, error: StoreError) -> StoreError {
        self.refuses = true;
        self.state = State::Failed {
            at: Instant::now(),
            text: error.to_string(),
            refusal: error.refusal(),
        };
        error
    }
}

impl std::fmt::Debug for StoreFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = match &self.state {
            State::Open(_) => "open",
            State::Failed { text, .. } => text,
            State::Reset => "reset",
            State::Closed => "closed",
        };
        f.debug_struct("StoreFile")
            .field("path", &self.path)
            .field("state", &state)
            .finish_non_exhaustive()
    }
}
