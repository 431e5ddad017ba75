//! h2load: many requests at a known rate, HTTP/1.1 or HTTP/2.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context as _, Result, ensure};

use super::held;
use crate::process::Launch;

/// How long it may take, and more for each thousand requests: Envoy and what else runs share two CPUs with it.
const LIMIT: Duration = Duration::from_mins(1);
const LIMIT_OF_THOUSAND: Duration = Duration::from_secs(1);

/// How to load.
#[derive(Clone, Copy, Debug)]
pub struct Load<'a> {
    pub base: &'a str,
    /// Asked for in turn on each connection.
    pub paths: &'a [&'a str],
    pub requests: u32,
    pub connections: u32,
    /// Requests at once on each connection.
    pub streams: u32,
    /// Requests in a second on all connections; `None`: as fast as it can.
    pub rate: Option<u32>,
    /// Instead of HTTP/2.
    pub http1: bool,
    /// Held until the agent has put probes into it.
    pub probed: bool,
}

/// Runs it; its pid. An error unless every request was answered with 2xx.
pub fn run(folder: &Path, load: Load<'_>) -> Result<u32> {
    let uris: Vec<String> = load
        .paths
        .iter()
        .map(|path| format!("{}{path}\n", load.base))
        .collect();
    let file = folder.join("uris");
    if load.probed {
        held::make_pipe(&file)?;
    } else {
        fs::write(&file, uris.concat()).context("write the URIs")?;
    }
    let mut arguments = vec![
        format!("--requests={}", load.requests),
        format!("--clients={}", load.connections),
        format!("--max-concurrent-streams={}", load.streams),
        format!("--input-file={}", file.display()),
    ];
    if let Some(rate) = load.rate {
        let each = f64::from(rate) / f64::from(load.connections);
        arguments.push(format!("--rps={each}"));
    }
    if load.http1 {
        arguments.push("--h1".to_owned());
    }
    let mut client = Launch::new(Path::new("/usr/bin/h2load"), "h2load", folder)
        .args(arguments)
        .start()?;
    let pid = client.pid();
    if load.probed {
        held::feed(&mut client, &file, &uris.concat())?;
    }
    let all = load.requests;
    let output = client.finish(LIMIT + LIMIT_OF_THOUSAND * (all / 1_000))?;
    let good = format!("status codes: {all} 2xx, 0 3xx, 0 4xx, 0 5xx");
    ensure!(output.contains(&good), "h2load: {output}");
    Ok(pid)
}
