//! nginx: files, answers without a body, uploads that it passes on to itself, compressed answers.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};

use super::{asked::Asked, free_port, with_children};
use crate::{
    process::{Launch, Running},
    wait::{wait_for, wait_until},
};

const START_LIMIT: Duration = Duration::from_mins(1);
const LOG_LIMIT: Duration = Duration::from_secs(30);

/// Sizes of the files `/files/SIZE`.
pub const FILE_SIZES: [usize; 6] = [0, 1, 700, 4096, 50_000, 1_000_000];
/// What `/status/CODE` answers, with `TEXT` as body where there may be one.
pub const STATUSES: [u16; 7] = [201, 204, 302, 403, 404, 500, 503];
pub const TEXT: &str = "as asked";

/// What the server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaks {
    Http1,
    /// HTTP/2 without TLS and without negotiation.
    Http2,
    /// TLS; which HTTP is negotiated.
    Tls,
}

/// A running nginx.
#[derive(Debug)]
pub struct Nginx {
    master: Running,
    pub port: u16,
    /// Where it passes `/upload` on to.
    pub backend_port: u16,
    folder: PathBuf,
}

impl Nginx {
    /// With two workers. With [`Speaks::Tls`], `server.pem` and `server.key` must lie in `folder`.
    pub fn start(folder: &Path, speaks: Speaks) -> Result<Self> {
        Self::start_with_workers(folder, speaks, 2)
    }

    /// The same with this many workers.
    pub fn start_with_workers(folder: &Path, speaks: Speaks, workers: usize) -> Result<Self> {
        let (port, backend_port) = (free_port()?, free_port()?);
        let files = folder.join("files");
        fs::create_dir(&files).context("make the folder of files")?;
        for size in FILE_SIZES {
            fs::write(files.join(size.to_string()), vec![b'n'; size]).context("write a file")?;
        }
        let configuration = folder.join("nginx.conf");
        fs::write(
            &configuration,
            configuration_text(folder, speaks, workers, [port, backend_port]),
        )
        .context("write nginx.conf")?;
        let mut master = Launch::new(Path::new("/usr/sbin/nginx"), "nginx", folder)
            .args(["-c".as_ref(), configuration.as_os_str()])
            .args(["-p".as_ref(), folder.as_os_str()])
            .start()?;
        wait_until("nginx listens", START_LIMIT, || {
            !master.is_running() || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
        })?;
        ensure!(master.is_running(), "nginx ended: {}", master.errors());
        let server = Self {
            master,
            port,
            backend_port,
            folder: folder.to_path_buf(),
        };
        wait_until("nginx has its workers", START_LIMIT, || {
            server.pids().is_ok_and(|pids| pids.len() == 1 + workers)
        })?;
        Ok(server)
    }

    /// The master and its workers.
    pub fn pids(&self) -> Result<Vec<u32>> {
        with_children(self.master.pid())
    }

    /// Its own account of requests, once it has `count` lines. Sizes are those of the bodies that it
    /// sent, with the frames of chunks, and are left out where there are any.
    pub fn log(&self, count: usize) -> Result<Vec<Asked>> {
        read_log(&self.folder.join("access.log"), count)
    }

    /// The same of what it passed on to itself.
    pub fn backend_log(&self, count: usize) -> Result<Vec<Asked>> {
        read_log(&self.folder.join("backend.log"), count)
    }
}

fn read_log(path: &Path, count: usize) -> Result<Vec<Asked>> {
    let what = format!("{count} lines of {}", path.display());
    let text = wait_for(&what, LOG_LIMIT, || {
        let text = fs::read_to_string(path).unwrap_or_default();
        (text.lines().count() >= count).then_some(text)
    })?;
    let lines = text.lines().map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let [method, path, status, encoding, received, sent] = words.as_slice() else {
            anyhow::bail!("access log: {line:?}");
        };
        let asked = Asked::new(method, path, status);
        if *encoding == "-" {
            return Ok(asked.sizes(received.parse().unwrap_or(0), sent.parse()?));
        }
        Ok(asked)
    });
    lines.collect()
}

fn configuration_text(
    folder: &Path,
    speaks: Speaks,
    workers: usize,
    [port, backend_port]: [u16; 2],
) -> String {
    let listen = match speaks {
        Speaks::Http1 => format!("listen 127.0.0.1:{port};"),
        Speaks::Http2 => format!("listen 127.0.0.1:{port} http2;"),
        Speaks::Tls => format!(
            "listen 127.0.0.1:{port} ssl http2;
             ssl_certificate {0}/server.pem; ssl_certificate_key {0}/server.key;",
            folder.display()
        ),
    };
    let statuses: String = STATUSES
        .iter()
        .map(|status| match status {
            204 => "location = /status/204 { return 204; }\n".to_owned(),
            302 => "location = /status/302 { return 302 /files/1; }\n".to_owned(),
            _ => format!("location = /status/{status} {{ return {status} '{TEXT}'; }}\n"),
        })
        .collect();
    let folder = folder.display();
    format!(
        "daemon off; worker_processes {workers}; pid {folder}/nginx.pid;
         error_log {folder}/error.log; user root;
         events {{ }}
         http {{
           log_format own '$request_method $request_uri $status $sent_http_content_encoding $content_length $body_bytes_sent';
           access_log {folder}/access.log own;
           client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
           fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi;
           scgi_temp_path {folder}/scgi;
           default_type text/plain; client_max_body_size 16m;
           keepalive_requests 100000; http2_max_concurrent_streams 256;
           if_modified_since before; gzip on; gzip_min_length 1; gzip_types text/plain; gzip_http_version 1.0;
           server {{
             {listen}
             root {folder};
             {statuses}
             location = /slow {{ alias {folder}/files/50000; limit_rate 100k; gzip off; }}
             location /upload {{ proxy_pass http://127.0.0.1:{backend_port}; }}
           }}
           server {{
             listen 127.0.0.1:{backend_port};
             access_log {folder}/backend.log own;
             location / {{ gzip off; return 200 '{TEXT}'; }}
           }}
         }}"
    )
}
