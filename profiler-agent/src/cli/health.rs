//! `health`: asks a running agent whether it works. Images have no shell and no curl, so that the
//! program asks itself.

use std::time::Duration;

use anyhow::{Context as _, Result};

use super::asking::{Certificate, client, no_answer, refusal};
use crate::{
    config::cli::HealthArgs,
    terminal::{self, Text},
};

/// Shorter than the time that a health check of a container usually has.
const TIMEOUT: Duration = Duration::from_secs(3);
const MOST_BYTES: u64 = 4096;

pub fn run(args: &HealthArgs) -> Result<()> {
    let path = if args.ready { "readyz" } else { "healthz" };
    let url = format!("{}/{path}", args.url.trim_end_matches('/'));
    // Nothing secret goes there and only a status comes back, so that any certificate will do: it is
    // rarely one for 127.0.0.1.
    let mut answer = client(TIMEOUT, Certificate::Any)
        .get(&url)
        .call()
        .map_err(|error| no_answer(&error, &args.url))?;
    let status = answer.status().as_u16();
    let said = answer
        .body_mut()
        .with_config()
        .limit(MOST_BYTES)
        .read_to_string()
        .context("read the agent's answer")?;
    if status != 200 {
        return Err(refusal(status, said.as_bytes()));
    }
    terminal::out(&Text::of(if args.ready { "ready" } else { "ok" }))
}
