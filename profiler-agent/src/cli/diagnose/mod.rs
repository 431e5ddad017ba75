//! `diagnose`: what costs what in a process and what to change, without a server.
//!
//! Exit code 0: done; 3: a finding matches `--fail-on`; 1 and 2 as with the other commands.

mod earlier;
mod fail_on;
mod gather;

use anyhow::Context as _;
use fail_on::FailOn;
use profiler_analysis::{
    comparison::{Side, compare},
    render::report::{ReportForm, report},
};

use super::{CliError, flags};
use crate::{
    config::cli::DiagnoseArgs,
    rule_files,
    terminal::{self, Text},
};
use profiler_engine::checkup::{CheckupInputs, CheckupRequest, specs};

/// Watches until the duration is over or Ctrl-C, then prints the diagnosis.
pub fn run(args: &DiagnoseArgs) -> Result<(), CliError> {
    let request = CheckupRequest {
        target: args.target.to_target(),
        duration_s: args.duration.as_secs(),
        frequency_hz: args.frequency,
        tls: args.tls,
        access_log: false,
    };
    let config = |error: anyhow::Error| CliError::Config(error);
    for spec in specs(&request) {
        flags::check(&spec)?;
    }
    let idle =
        rule_files::idle(args.idle_rules.as_deref()).map_err(|error| config(error.into()))?;
    let rules = rule_files::diagnosis(args.diagnosis_rules.as_deref())
        .map_err(|error| config(error.into()))?;
    let fail_on = FailOn::parse(&args.fail_on, &rules).map_err(config)?;
    // Before the waiting, like everything that can be wrong.
    let earlier = args.compare.as_deref().map(earlier::read).transpose();
    let earlier = earlier.map_err(config)?;

    let gathered = gather::gather(args, &request)?;
    let none_seen = gathered.record.observed.processes.is_empty();
    let inputs = CheckupInputs {
        pod: gathered.pod,
        on_cpu: Some(gathered.on_cpu),
        off_cpu: gathered.off_cpu,
        edges: gathered.edges,
        requests: gathered.requests,
        record: Some(gathered.record),
        event_loops: gathered.event_loops,
        pid: None,
        scope: args.scope,
        limits: gathered.limits,
    };
    let diagnosis = inputs.diagnose(&rules, &idle);
    let has_samples = !(diagnosis.processes.is_empty() && diagnosis.other_processes.is_empty());
    if none_seen && !has_samples {
        let none = "no process of the target was seen: it is not there, or it ended before it did anything; `profiler-agent ps` lists those that are";
        return Err(anyhow::anyhow!(none).into());
    }
    let other = earlier.as_ref().and_then(|it| it.other(&diagnosis));
    let compared = earlier.map(|earlier| compare(&earlier.side, &Side::of(&diagnosis)));
    let comparison = compared
        .as_ref()
        .and_then(|compared| compared.as_ref().ok());
    let text = if args.json {
        Text::json(&diagnosis).context("encode the diagnosis")?
    } else {
        let form = if args.markdown {
            ReportForm::Markdown
        } else {
            ReportForm::Text
        };
        Text::of(&report(&diagnosis, comparison, form))
    };
    terminal::out(&text)?;
    if let (true, Some(comparison)) = (args.json, comparison) {
        // The document stays what it is without a comparison.
        terminal::err_line(format_args!("{}", comparison.verdict));
    }
    if let Some(other) = other {
        terminal::err_line(format_args!(
            "note: the earlier diagnosis is of {other}: these are two processes, not one before and after"
        ));
    }
    let refused = compared.and_then(Result::err);
    match (fail_on.matching(&diagnosis), refused) {
        (None, None) => Ok(()),
        (Some(reason), refused) => {
            if let Some(refused) = refused {
                terminal::err_line(format_args!("not compared: {refused}"));
            }
            Err(CliError::Found(reason))
        }
        (None, Some(refused)) => {
            let remedy = refused.remedy();
            Err(anyhow::anyhow!("not compared: {refused}; {remedy}").into())
        }
    }
}
