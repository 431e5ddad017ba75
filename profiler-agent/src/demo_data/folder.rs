//! A folder that goes away with the agent.

use std::{
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use super::DemoDataError;

/// Its user's alone; removed when dropped.
#[derive(Debug)]
pub struct DemoFolder {
    path: PathBuf,
}

impl DemoFolder {
    pub fn new() -> Result<Self, DemoDataError> {
        let mut number = [0; 8];
        getrandom::fill(&mut number)
            .map_err(|error| DemoDataError::Folder(std::io::Error::other(error.to_string())))?;
        let name = format!("profiler-agent-demo-{:016x}", u64::from_le_bytes(number));
        let path = std::env::temp_dir().join(name);
        // Fails when it exists, so it cannot have been planted before.
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(DemoDataError::Folder)?;
        Ok(Self { path })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for DemoFolder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            tracing::warn!(folder = %self.path.display(), %error, "remove the demo data");
        }
    }
}
