//! Folders that the user names and that must be there: a mistyped one would only show as missing names much later.

use std::path::PathBuf;

/// A folder that can be listed now.
pub(super) fn folder(text: &str) -> Result<PathBuf, String> {
    match std::fs::read_dir(text) {
        Ok(_) => Ok(PathBuf::from(text)),
        Err(error) => Err(format!(
            "is not a folder that can be read ({error}): give one that is there"
        )),
    }
}
