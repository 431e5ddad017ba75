//! `access-logs`: what makes Envoys send their access logs, and what a running agent has received of them.

use std::{path::Path, time::Duration};

use anyhow::{Context as _, Result};
use profiler_access_logs::snippet::{Options, snippet};
use profiler_analysis::render::{AccessLogCheck, access_log_table};
use profiler_clock::wall_ns;

use super::asking::{get, get_within, token_if_any};
use crate::{
    config::cli::{AccessLogsArgs, AccessLogsCommand, LogStatusArgs, SnippetArgs},
    terminal::{self, Text},
};

pub fn run(args: &AccessLogsArgs) -> Result<()> {
    match &args.command {
        AccessLogsCommand::Snippet(args) => terminal::out(&configuration(args)),
        AccessLogsCommand::Status(args) => status(args),
    }
}

fn configuration(args: &SnippetArgs) -> Text {
    let options = Options {
        transport: args.transport.into(),
        security: args.security(),
        ..Options::default()
    };
    Text::of(&snippet(args.system.into(), &args.service(), &options))
}

/// For `doctor`, which does not wait long for an agent.
pub(super) fn checked(url: &str, token_file: &Path) -> AccessLogCheck {
    let answer = token_if_any(token_file)
        .and_then(|token| get_within(SOON, url, PATH, token.as_deref()))
        .and_then(|text| serde_json::from_str(&text).context("read the agent's answer"));
    AccessLogCheck::new(url, answer.map_err(|error| format!("{error:#}")))
}

const PATH: &str = "/api/v1/access-logs";
const SOON: Duration = Duration::from_secs(5);

fn status(args: &LogStatusArgs) -> Result<()> {
    let token = token_if_any(&args.token_file)?;
    let text = get(&args.url, PATH, token.as_deref())?;
    if args.json {
        return terminal::out(&Text::of_json(&text));
    }
    let status = serde_json::from_str(&text).context("read the agent's answer")?;
    terminal::out(&access_log_table(&status, wall_ns()))
}

#[cfg(test)]
#[path = "access_logs_tests.rs"]
mod tests;
