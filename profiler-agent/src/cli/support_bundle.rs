//! `support-bundle`: asks a running agent what it knows about itself, as one archive.

use std::{
    io::{Read as _, Write as _},
    path::Path,
    time::Duration,
};

use anyhow::{Context as _, Result};

use super::asking::{Certificate, client, no_answer, refusal};
use crate::{
    config::cli::SupportBundleArgs,
    terminal::{self, Text},
};

/// The archive holds texts of at most some megabytes.
const MOST_BYTES: u64 = 64 << 20;
const MOST_TOKEN_BYTES: u64 = 4096;
const TIMEOUT: Duration = Duration::from_secs(70);

pub fn run(args: &SupportBundleArgs) -> Result<()> {
    let token = token(&args.token_file)?;
    let url = format!("{}/api/v1/support-bundle", args.url.trim_end_matches('/'));
    let mut answer = client(TIMEOUT, Certificate::Trusted)
        .get(&url)
        .header("Authorization", format!("Bearer {token}"))
        .call()
        .map_err(|error| no_answer(&error, &args.url))?;
    let status = answer.status().as_u16();
    let mut bytes = Vec::new();
    answer
        .body_mut()
        .as_reader()
        .take(MOST_BYTES)
        .read_to_end(&mut bytes)
        .context("read the agent's answer")?;
    if status != 200 {
        return Err(refusal(status, &bytes));
    }
    if args.output == Path::new("-") {
        return terminal::out_file(&bytes);
    }
    write(&args.output, &bytes)?;
    let mut text = Text::default();
    text.line(format_args!(
        "{} bytes -> {}",
        bytes.len(),
        args.output.display()
    ));
    terminal::out(&text)
}

/// The token in a file that the agent wrote.
pub(super) fn token(path: &Path) -> Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MOST_TOKEN_BYTES).read_to_string(&mut text))
        .with_context(|| {
            format!(
                "read the agent's token from {}; give the file with --token-file",
                path.display()
            )
        })?;
    Ok(text.trim().to_owned())
}

/// For its user alone: names of processes are in it.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;

    std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(bytes))
        .with_context(|| format!("write {}", path.display()))
}
