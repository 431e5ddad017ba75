//! Many short connections over TLS: every one asks for one file and is closed by the server, as servers do
//! without keep-alive. Each client has an address and a path of its own, so that a request under the
//! address of another one shows.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, RootCertStore, Stream,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};

use super::watch::{Edges, Report};

/// For what a server may do between two pieces of an answer.
const SILENCE: Duration = Duration::from_secs(30);

/// A client.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// Of loopback.
    pub address: Ipv4Addr,
    pub path: &'static str,
}

/// How much is asked.
#[derive(Clone, Copy, Debug)]
pub struct Load<'a> {
    /// `server.pem`, see [`super::tls::write_certificate`].
    pub certificate: &'a std::path::Path,
    /// On 127.0.0.1.
    pub port: u16,
    pub clients: &'a [Client],
    /// Of each client.
    pub connections: usize,
    /// Connections of all clients that are open at once.
    pub at_once: usize,
}

/// Runs it. An error unless every request was answered with 200.
pub fn run(load: Load<'_>) -> Result<()> {
    let certificate =
        CertificateDer::from_pem_file(load.certificate).context("read the certificate")?;
    let mut roots = RootCertStore::empty();
    roots.add(certificate).context("trust the certificate")?;
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let config = Arc::new(config);
    let threads = load.at_once.div_ceil(load.clients.len());
    std::thread::scope(|scope| {
        let mut running = Vec::new();
        for client in load.clients {
            let left = Arc::new(AtomicUsize::new(load.connections));
            for _ in 0..threads {
                let (config, left) = (Arc::clone(&config), Arc::clone(&left));
                running.push(scope.spawn(move || {
                    let take = |left: usize| left.checked_sub(1);
                    while left
                        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
                        .is_ok()
                    {
                        ask(&config, load.port, *client)?;
                    }
                    anyhow::Ok(())
                }));
            }
        }
        for thread in running {
            let done = thread.join();
            done.map_err(|_| anyhow::anyhow!("a client panicked"))??;
        }
        Ok(())
    })
}

/// What a client writes.
fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
}

fn ask(config: &Arc<ClientConfig>, port: u16, client: Client) -> Result<()> {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).context("make a socket")?;
    bind(&socket, &SocketAddr::from((client.address, 0))).context("bind")?;
    connect(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, port))).context("connect")?;
    let mut stream = TcpStream::from(socket);
    stream
        .set_read_timeout(Some(SILENCE))
        .context("set a limit")?;
    let name = ServerName::from(std::net::IpAddr::from(Ipv4Addr::LOCALHOST));
    let mut session = ClientConnection::new(Arc::clone(config), name).context("begin a session")?;
    let mut inside = Stream::new(&mut session, &mut stream);
    inside
        .write_all(request(client.path).as_bytes())
        .context("ask")?;
    let mut answer = Vec::new();
    match inside.read_to_end(&mut answer) {
        // Java ends connections without TLS's own word for it.
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {}
        read => {
            read.context("read the answer")?;
        }
    }
    ensure!(
        answer.starts_with(b"HTTP/1.1 200 "),
        "{}",
        String::from_utf8_lossy(&answer)
    );
    Ok(())
}

/// Every request stands under the address of its client, none is broken, and what is not reported is said to be
/// missing.
pub fn check(report: &Report, load: Load<'_>) -> Result<()> {
    let json = &report.json;
    ensure!(json["sampled_one_of"] == 1, "sampled: {}", report.losses());
    let mut all = 0;
    for operation in report.operations(Edges::To(load.port))? {
        let address = operation["edge"]["client"]["address"].as_str();
        let address: Ipv4Addr = address.context("a client's address")?.parse()?;
        let client = load.clients.iter().find(|client| client.address == address);
        let client = client.with_context(|| format!("no client asks from {address}"))?;
        let number = |value: &serde_json::Value| value.as_u64().context("a number");
        let (count, unknown) = (number(&operation["count"])?, number(&operation["unknown"])?);
        let is_untold = operation["route"].is_null() && unknown == count;
        ensure!(
            operation["route"] == client.path || is_untold,
            "{count} requests of {} under the address of {}: {operation}",
            operation["route"],
            client.path
        );
        ensure!(operation["errors"] == 0, "errors: {operation}");
        all += count;
    }
    let sent = u64::try_from(load.connections * load.clients.len())?;
    ensure!(all <= sent, "{all} of {sent}: {}", report.losses());
    let shortest = load.clients.iter().map(|client| request(client.path).len());
    let missing = (sent - all) * u64::try_from(shortest.min().unwrap_or(0))?;
    let said = json["unbound_bytes"].as_u64().context("a counter")?;
    ensure!(
        said >= missing,
        "{all} of {sent}, and {said} bytes are said to be missing: {}",
        report.losses()
    );
    Ok(())
}
