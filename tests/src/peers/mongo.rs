//! A server of `MongoDB`'s protocol in Java, with pymongo, which is MongoDB's own client.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Result, bail};

use super::asked::Asked;
use crate::{
    paths,
    process::{Launch, Running},
};

const LIMIT: Duration = Duration::from_mins(1);

/// A running server.
#[derive(Debug)]
pub struct Mongo {
    server: Running,
    pub port: u16,
    folder: PathBuf,
}

impl Mongo {
    pub fn start(folder: &Path) -> Result<Self> {
        let jars = format!("{}/*", paths::tool("mongo-java-server-")?.display());
        let source = paths::workspace().join("tests/workloads/MongoServer.java");
        let mut server = Launch::new(Path::new("/usr/bin/java"), "mongo-server", folder)
            .args(["-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", &jars])
            .args([source])
            .start()?;
        let port = server.wait_for_line(LIMIT, |line| line.parse().ok())?;
        Ok(Self {
            server,
            port,
            folder: folder.to_path_buf(),
        })
    }

    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// Runs `tests/fixtures/peers/mongo_client.py`: its pid and what it says that it asked.
    pub fn client(&self) -> Result<(u32, Vec<Asked>)> {
        let script = paths::workspace().join("tests/fixtures/peers/mongo_client.py");
        let pymongo = paths::tool("pymongo-")?.display().to_string();
        let client = Launch::new(Path::new("/usr/bin/python3"), "pymongo", &self.folder)
            .args([script])
            .args([self.port.to_string()])
            .env("PYTHONPATH", &pymongo)
            .start()?;
        let pid = client.pid();
        let output = client.finish(LIMIT)?;
        let mut asked = Vec::new();
        for line in output.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [command, collection, status] = words.as_slice() else {
                bail!("the client says {line:?}");
            };
            let route = match *collection {
                "-" => (*command).to_owned(),
                collection => format!("{command} {collection}"),
            };
            let status = if *status == "long" {
                "not known"
            } else {
                status
            };
            asked.push(Asked::new(command, &route, status));
        }
        Ok((pid, asked))
    }
}
