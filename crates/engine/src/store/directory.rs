//! The data directory: made when missing, used by one agent at a time.

use std::{
    fs::{DirBuilder, File, OpenOptions, TryLockError},
    io::{Read, Seek, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
};

use super::StoreError;

/// Holds the directory until dropped. The kernel releases it when the process dies.
#[derive(Debug)]
pub(super) struct DirectoryLock {
    _file: File,
}

impl DirectoryLock {
    /// Creates `path` (0700) when it is missing and takes it for this process.
    pub(super) fn take(path: &Path) -> Result<Self, StoreError> {
        let failed = |source| StoreError::Directory {
            path: path.to_owned(),
            source,
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(failed)?;
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path.join("lock"))
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let owner = owner_text(&mut file);
                return Err(StoreError::InUse {
                    path: path.to_owned(),
                    owner,
                });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        // The pid is a courtesy for the message above; a full disk must not keep the agent down.
        if let Err(error) = write_owner(&mut file) {
            tracing::debug!(%error, "could not write the pid into the lock file");
        }
        Ok(Self { _file: file })
    }
}

fn write_owner(file: &mut File) -> std::io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(std::process::id().to_string().as_bytes())
}

/// ` (pid 12)`, or nothing when the file does not hold a number.
fn owner_text(file: &mut File) -> String {
    let mut text = String::new();
    match file.take(32).read_to_string(&mut text) {
        Ok(_) => text
            .trim()
            .parse::<u32>()
            .map_or(String::new(), |pid| format!(" (pid {pid})")),
        Err(_) => String::new(),
    }
}
