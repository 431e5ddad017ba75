//! haproxy, which answers by itself over TLS.

use std::{fs, net::TcpStream, path::Path, time::Duration};

use anyhow::{Context as _, Result, ensure};

use super::free_port;
use crate::{
    process::{Launch, Running},
    wait::wait_until,
};

const START_LIMIT: Duration = Duration::from_mins(1);

/// A running server.
#[derive(Debug)]
pub struct HaProxy {
    server: Running,
    pub port: u16,
}

impl HaProxy {
    /// With two threads, by `server.pem` and `server.key` of the folder.
    pub fn start(folder: &Path) -> Result<Self> {
        let port = free_port()?;
        let read =
            |name: &str| fs::read_to_string(folder.join(name)).context("read the certificate");
        let both = folder.join("haproxy.pem");
        fs::write(&both, read("server.pem")? + &read("server.key")?).context("write both")?;
        let configuration = folder.join("haproxy.cfg");
        fs::write(
            &configuration,
            format!(
                "global\n nbthread 2\n maxconn 1000\n\
                 defaults\n mode http\n timeout connect 30s\n timeout client 30s\n timeout server 30s\n\
                 frontend truth\n bind 127.0.0.1:{port} ssl crt {}\n \
                 http-request return status 200 content-type text/plain string \"as asked\"\n",
                both.display()
            ),
        )
        .context("write haproxy.cfg")?;
        let mut server = Launch::new(Path::new("/usr/sbin/haproxy"), "haproxy", folder)
            .args(["-db".as_ref(), "-f".as_ref(), configuration.as_os_str()])
            .start()?;
        wait_until("haproxy listens", START_LIMIT, || {
            !server.is_running() || TcpStream::connect(("127.0.0.1", port)).is_ok()
        })?;
        ensure!(server.is_running(), "it ended: {}", server.errors());
        Ok(Self { server, port })
    }

    pub fn pid(&self) -> u32 {
        self.server.pid()
    }
}
