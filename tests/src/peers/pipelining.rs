//! A client that sends all its requests before it reads an answer.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

use anyhow::{Context as _, Result, ensure};

/// Sends the requests to loopback in pieces of `piece` bytes, and reads until the server closes, which
/// the last request must ask for. The answers.
pub fn send_at_once(port: u16, requests: &[String], piece: usize) -> Result<String> {
    let mut connection = TcpStream::connect(("127.0.0.1", port)).context("connect")?;
    connection.set_nodelay(true).context("set TCP_NODELAY")?;
    let bytes = requests.concat().into_bytes();
    for part in bytes.chunks(piece) {
        connection.write_all(part).context("send requests")?;
    }
    let mut answers = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match connection.read(&mut buffer).context("read answers")? {
            0 => break,
            count => answers.extend(buffer.iter().take(count)),
        }
    }
    ensure!(!answers.is_empty(), "no answer");
    Ok(String::from_utf8_lossy(&answers).into_owned())
}

/// A GET without a body; `last` asks the server to close.
pub fn get(path: &str, last: bool) -> String {
    let connection = if last { "Connection: close\r\n" } else { "" };
    format!("GET {path} HTTP/1.1\r\nHost: pipelined\r\n{connection}\r\n")
}
