//! Servers and clients of different TLS libraries that all do the same: `/files/SIZE`, `/status/CODE` and
//! `/upload` as nginx has them.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};

use super::{asked::Asked, held};
use crate::{
    paths,
    process::{Launch, Running},
    workload::Workload,
};

const LIMIT: Duration = Duration::from_mins(1);

/// Writes `server.pem`, which vouches for itself and for 127.0.0.1, and `server.key`.
pub fn write_certificate(folder: &Path) -> Result<PathBuf> {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()])
        .context("make a certificate")?;
    let path = folder.join("server.pem");
    fs::write(&path, made.cert.pem()).context("write the certificate")?;
    fs::write(folder.join("server.key"), made.signing_key.serialize_pem())
        .context("write the key")?;
    Ok(path)
}

/// A program that does its own TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// `crypto/tls`, without symbols.
    Go,
    /// OpenSSL in the program itself, on memory.
    Node,
    /// OpenSSL's library, on the socket. A client only.
    PythonRequests,
    /// OpenSSL's library, on memory.
    PythonAsyncio,
    /// rustls in a program of ours, with its symbols.
    Rustls,
    /// The same program without them.
    RustlsStripped,
}

impl Program {
    fn launch(self, folder: &Path, label: &str) -> Result<Launch> {
        let script = |interpreter: &str, name: &str| {
            let path = paths::workspace().join("tests/fixtures/peers").join(name);
            Launch::new(Path::new(interpreter), label, folder).args([path])
        };
        Ok(match self {
            Self::Go => Launch::new(&Workload::TlsPeerGo.build("tls_peer")?, label, folder),
            Self::Node => script("/usr/bin/node", "node_peer.js"),
            Self::PythonRequests => script("/usr/bin/python3", "python_requests.py"),
            Self::PythonAsyncio => script("/usr/bin/python3", "python_asyncio.py"),
            Self::Rustls => Launch::new(&paths::own_program("rustls-server")?, label, folder),
            Self::RustlsStripped => {
                let stripped = folder.join("rustls-stripped");
                Launch::new(Path::new("/usr/bin/strip"), "strip", folder)
                    .args([paths::own_program("rustls-server")?])
                    .args(["-o".as_ref(), stripped.as_os_str()])
                    .start()?
                    .finish(LIMIT)?;
                Launch::new(&stripped, label, folder)
            }
        })
    }

    /// Starts the server with the certificate in `folder`; it and its port.
    pub fn serve(self, folder: &Path) -> Result<(Running, u16)> {
        let mut server = self
            .launch(folder, "tls-server")?
            .args(["serve"])
            .args([folder.join("server.pem")])
            .args([folder.join("server.key")])
            .start()?;
        let port = server.wait_for_line(LIMIT, |line| line.parse().ok())?;
        Ok((server, port))
    }

    /// Makes `times` rounds of requests to loopback with HTTP `version` (`h1`, `h2`): the client's pid and
    /// what it asked.
    pub fn call(
        self,
        folder: &Path,
        port: u16,
        version: &str,
        times: u32,
    ) -> Result<(u32, Vec<Asked>)> {
        let client = self.start_client(folder, port, version, times, "at-once")?;
        Self::take(client)
    }

    /// The same, held until the agent has put probes into the client.
    pub fn call_probed(
        self,
        folder: &Path,
        port: u16,
        version: &str,
        times: u32,
    ) -> Result<(u32, Vec<Asked>)> {
        let client = self.start_client(folder, port, version, times, "held")?;
        held::release(&client)?;
        Self::take(client)
    }

    fn start_client(
        self,
        folder: &Path,
        port: u16,
        version: &str,
        times: u32,
        begins: &str,
    ) -> Result<Running> {
        self.launch(folder, "tls-client")?
            .args(["call".to_owned(), format!("https://127.0.0.1:{port}")])
            .args([folder.join("server.pem")])
            .args([version.to_owned(), times.to_string(), begins.to_owned()])
            .start()
    }

    /// The pid and what the client asked.
    fn take(client: Running) -> Result<(u32, Vec<Asked>)> {
        let pid = client.pid();
        let output = client.finish(LIMIT)?;
        let mut asked = Vec::new();
        for line in output.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [method, path, status, sent, received] = words.as_slice() else {
                bail!("the client says {line:?}");
            };
            asked.push(Asked::new(method, path, status).sizes(sent.parse()?, received.parse()?));
        }
        Ok((pid, asked))
    }
}
