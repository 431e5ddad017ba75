//! `MariaDB` with its own client.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};

use super::{
    free_port,
    postgres::{MARK, marked, script},
};
use crate::{
    process::{Launch, Running},
    wait::wait_until,
};

const LIMIT: Duration = Duration::from_mins(1);

/// A running server with a database `test` of its own.
#[derive(Debug)]
pub struct MariaDb {
    server: Running,
    pub port: u16,
    log: PathBuf,
}

impl MariaDb {
    pub fn start(folder: &Path) -> Result<Self> {
        let port = free_port()?;
        let data = folder.join("mariadb");
        let log = folder.join("general.log");
        Launch::new(Path::new("/usr/bin/mariadb-install-db"), "install", folder)
            .args([
                "--no-defaults",
                "--user=root",
                "--auth-root-authentication-method=normal",
            ])
            .args(["--skip-name-resolve", "--skip-test-db"])
            .args([format!("--datadir={}", data.display())])
            .start()?
            .finish(LIMIT)?;
        let start = folder.join("start.sql");
        fs::write(
            &start,
            "CREATE DATABASE test;\nGRANT ALL ON test.* TO 'tester'@'127.0.0.1' IDENTIFIED BY 'hidden';\n",
        )
        .context("write what the server begins with")?;
        let mut server = Launch::new(Path::new("/usr/sbin/mariadbd"), "mariadbd", folder)
            .args(["--no-defaults", "--user=root", "--bind-address=127.0.0.1"])
            .args(["--skip-name-resolve", "--general-log=1", "--skip-log-bin"])
            .args([
                format!("--datadir={}", data.display()),
                format!("--port={port}"),
                format!("--socket={}/mariadb.sock", folder.display()),
                format!("--general-log-file={}", log.display()),
                format!("--init-file={}", start.display()),
            ])
            .start()?;
        wait_until("mariadbd listens", LIMIT, || {
            !server.is_running() || server.errors().contains("ready for connections")
        })?;
        ensure!(server.is_running(), "it ended: {}", server.errors());
        Ok(Self { server, port, log })
    }

    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// Runs the statements, whatever becomes of them; the client's pid.
    pub fn run(&self, folder: &Path, statements: &[&str]) -> Result<u32> {
        let script = folder.join("statements.sql");
        let text = statements.join(";\n") + ";\n";
        fs::write(&script, text).context("write the statements")?;
        let client = self.launch(folder, &script, &[])?;
        let pid = client.pid();
        client.finish(LIMIT)?;
        Ok(pid)
    }

    /// What each statement answers, when the server takes it: values as text, without names of columns.
    pub fn values(&self, folder: &Path, statements: &[String]) -> Result<Vec<String>> {
        let path = script(folder, statements, |hex| {
            format!(
                "SELECT '{MARK}';\nSET @statement = CONVERT(x'{hex}' USING utf8mb4);\n\
                 PREPARE one FROM @statement;\nEXECUTE one;\nPREPARE one FROM 'DO 0';\n"
            )
        })?;
        let output = self
            .launch(folder, &path, &["--skip-column-names"])?
            .finish(LIMIT)?;
        Ok(marked(&output).map(str::to_owned).collect())
    }

    fn launch(&self, folder: &Path, script: &Path, more: &[&str]) -> Result<Running> {
        Launch::new(Path::new("/usr/bin/mariadb"), "mariadb", folder)
            .args([
                "--no-defaults",
                "--protocol=tcp",
                "--host=127.0.0.1",
                "--force",
            ])
            .args([
                "--user=tester",
                "--password=hidden",
                "--skip-ssl",
                "--batch",
            ])
            .args(more)
            .args([format!("--port={}", self.port)])
            .args([format!("--execute=source {}", script.display())])
            .args(["test"])
            .start()
    }

    /// What the server did, by its own log: `Query`, `Prepare`, `Execute`, `Connect`, `Quit`, each with
    /// its text.
    pub fn logged(&self) -> Result<Vec<(String, String)>> {
        let log = fs::read_to_string(&self.log).context("read the general log")?;
        let lines = log.lines().filter_map(|line| {
            let (before, text) = line.rsplit_once('\t').unwrap_or((line, ""));
            let kind = before.split_whitespace().next_back()?;
            Some((kind.to_owned(), text.to_owned()))
        });
        Ok(lines.collect())
    }
}
