//! Clients that ask something first, make the file `go.ready` and wait for the file `go`: what they ask from then on goes
//! over connections that were there before.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};

use crate::{
    process::{Launch, Running},
    wait::wait_until,
};

const LIMIT: Duration = Duration::from_mins(1);

/// A client that is ready.
#[derive(Debug)]
pub struct Waiting {
    client: Running,
    go: PathBuf,
}

impl Waiting {
    /// The file in a folder that its client waits for.
    pub fn file(folder: &Path) -> PathBuf {
        folder.join("go")
    }

    /// Starts a client that waits for [`Self::file`]. Returns when it is ready.
    pub fn start(client: Launch, folder: &Path) -> Result<Self> {
        let mut client = client.start()?;
        wait_until("the client is ready", LIMIT, || {
            !client.is_running() || folder.join("go.ready").exists()
        })?;
        ensure!(client.is_running(), "it ended: {}", client.errors());
        Ok(Self {
            client,
            go: Self::file(folder),
        })
    }

    pub fn pid(&self) -> u32 {
        self.client.pid()
    }

    /// Lets it go on.
    pub fn go_on(self) -> Result<Running> {
        fs::write(&self.go, "").context("write the file that the client waits for")?;
        Ok(self.client)
    }
}
