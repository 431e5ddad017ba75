//! gnutls-serv and gnutls-cli.

use std::{fs, io::Write as _, net::TcpStream, path::Path, time::Duration};

use anyhow::{Context as _, Result, ensure};

use super::{free_port, held};
use crate::{
    process::{Launch, Running},
    wait::{wait_for, wait_until},
};

const LIMIT: Duration = Duration::from_mins(1);

/// Starts the server with the certificate in `folder`: it answers every request with a page and closes.
pub fn serve(folder: &Path) -> Result<(Running, u16)> {
    let port = free_port()?;
    let mut server = Launch::new(Path::new("/usr/bin/gnutls-serv"), "gnutls-serv", folder)
        .args(["--http", "--quiet", "--port", &port.to_string()])
        .args([
            "--x509certfile".as_ref(),
            folder.join("server.pem").as_os_str(),
        ])
        .args([
            "--x509keyfile".as_ref(),
            folder.join("server.key").as_os_str(),
        ])
        .start()?;
    wait_until("gnutls-serv listens", LIMIT, || {
        !server.is_running() || TcpStream::connect(("127.0.0.1", port)).is_ok()
    })?;
    ensure!(server.is_running(), "it ended: {}", server.errors());
    Ok((server, port))
}

/// Sends requests to loopback over one connection, each when the one before has its answer, of which
/// `answered` is the beginning; the client's pid.
pub fn call(folder: &Path, port: u16, requests: &[String], answered: &str) -> Result<u32> {
    let input = folder.join("gnutls-input");
    held::make_pipe(&input)?;
    let command = format!(
        "exec gnutls-cli --port {port} --x509cafile {} --no-ca-verification 127.0.0.1 < {}",
        folder.join("server.pem").display(),
        input.display()
    );
    let client = Launch::new(Path::new("/bin/sh"), "gnutls-cli", folder)
        .args(["-c", &command])
        .start()?;
    let mut to = fs::OpenOptions::new()
        .write(true)
        .open(&input)
        .context("open the pipe")?;
    for (number, request) in requests.iter().enumerate() {
        to.write_all(request.as_bytes()).context("send a request")?;
        wait_for("gnutls-cli shows the answer", LIMIT, || {
            (client.output().matches(answered).count() > number).then_some(())
        })
        .with_context(|| format!("{}{}", client.output(), client.errors()))?;
    }
    drop(to);
    let pid = client.pid();
    client.finish(LIMIT)?;
    Ok(pid)
}
