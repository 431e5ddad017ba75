//! `import`: gives a file to a running agent.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use profiler_analysis::import::MAX_FILE_BYTES;

use super::asking::{Certificate, client, no_answer, refusal, token_if_any};
use crate::{
    config::cli::ImportArgs,
    terminal::{self, Text},
};

/// Longest time for the file to be sent, read and stored.
const LIMIT: Duration = Duration::from_mins(2);
/// Longest answer that is read.
const MAX_ANSWER_BYTES: u64 = 1 << 20;

pub fn run(args: &ImportArgs) -> Result<()> {
    let path = args.file.display();
    let size = std::fs::metadata(&args.file)
        .with_context(|| format!("read {path}"))?
        .len();
    ensure!(
        size <= MAX_FILE_BYTES as u64,
        "{path} has {size} bytes; at most {MAX_FILE_BYTES} are taken"
    );
    let bytes = std::fs::read(&args.file).with_context(|| format!("read {path}"))?;
    let name = match (&args.name, args.file.file_name()) {
        (Some(name), _) => name.clone(),
        (None, Some(name)) => name.to_string_lossy().into_owned(),
        (None, None) => String::new(),
    };
    let agent = args.url.trim_end_matches('/');
    let query: String = form_urlencoded::Serializer::new(String::new())
        .append_pair("name", &name)
        .finish();
    let mut request = client(LIMIT, Certificate::Trusted)
        .post(format!("{agent}/api/v1/imports?{query}"))
        .header("content-type", "application/octet-stream");
    if let Some(token) = token_if_any(&args.token_file)? {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let mut response = request
        .send(&bytes)
        .map_err(|error| no_answer(&error, agent).context(format!("send {path}")))?;
    let status = response.status();
    let text = response
        .body_mut()
        .with_config()
        .limit(MAX_ANSWER_BYTES)
        .read_to_string()
        .with_context(|| format!("read the answer of {agent}"))?;
    if status != http::StatusCode::CREATED {
        return Err(refusal(status.as_u16(), text.as_bytes()).context(format!("import {path}")));
    }
    let answer: serde_json::Value =
        serde_json::from_str(&text).with_context(|| format!("{agent} answered {status}"))?;
    if args.json {
        return terminal::out(&Text::of_json(&text));
    }
    let id = answer.get("id").and_then(serde_json::Value::as_str);
    let mut text = Text::default();
    text.line(format_args!(
        "{agent}/?view=task&id={}",
        id.unwrap_or_default()
    ));
    terminal::out(&text)
}
