//! `diff`: asks a running agent what changed between two results.

use std::time::Duration;

use anyhow::{Context as _, Result};
use profiler_model::{float, printable::printable_within};
use serde::Deserialize;

use super::{asking::get, support_bundle::token};
use crate::{
    config::cli::DiffArgs,
    terminal::{self, Text},
};

/// Columns of the longest name in a table; the JSON has all of it.
const LONGEST_NAME: usize = 100;

pub fn run(args: &DiffArgs) -> Result<()> {
    let token = token(&args.token_file)?;
    let path = format!("/api/v1/diff?{}", query(args));
    let text = get(&args.url, &path, Some(&token))?;
    if args.json {
        return terminal::out(&Text::of_json(&text));
    }
    let diff: Diff = serde_json::from_str(&text).context("read the agent's answer")?;
    terminal::out(&table(&diff))
}

/// The parameters of the request.
fn query(args: &DiffArgs) -> String {
    let mut pairs = form_urlencoded::Serializer::new(String::new());
    pairs.append_pair("a", &args.base.to_string());
    pairs.append_pair("b", &args.task.to_string());
    pairs.append_pair("norm", args.norm.name());
    pairs.append_pair("limit", &args.limit.to_string());
    for (name, time) in [
        ("a_from", args.base_from),
        ("a_to", args.base_to),
        ("b_from", args.from),
        ("b_to", args.to),
    ] {
        if let Some(ms) = time {
            pairs.append_pair(name, &ms.to_string());
        }
    }
    for (name, threads) in [("a_tid", &args.base_tid), ("b_tid", &args.tid)] {
        for tid in threads {
            pairs.append_pair(name, &tid.to_string());
        }
    }
    for [pid, container] in [["a_pid", "a_container"], ["b_pid", "b_container"]] {
        for id in &args.pid {
            pairs.append_pair(pid, &id.to_string());
        }
        for id in &args.container {
            pairs.append_pair(container, id);
        }
    }
    pairs.finish()
}

/// What is shown of the answer.
#[derive(Debug, Deserialize)]
struct Diff {
    a: Side,
    b: Side,
    norm: String,
    unknown: Option<String>,
    tested: u64,
    significant: u64,
    all_functions: u64,
    functions: Vec<Function>,
}

#[derive(Debug, Deserialize)]
struct Side {
    source: String,
    total: u64,
    covered_ns: u64,
}

#[derive(Debug, Deserialize)]
struct Function {
    name: String,
    #[serde(rename = "self")]
    own: [u64; 2],
    change: f64,
    badge: Option<String>,
    verdict: String,
    q: Option<f64>,
}

impl Side {
    /// A part of this side, normalised and as it is shown.
    fn shown(&self, own: u64, is_share: bool) -> f64 {
        let whole = if is_share {
            float(self.total) / 100.0
        } else {
            float(self.covered_ns) / 1e9
        };
        if whole > 0.0 { float(own) / whole } else { 0.0 }
    }

    fn line(&self) -> String {
        let seconds = Duration::from_nanos(self.covered_ns).as_secs_f64();
        format!("task {}: {} in {seconds:.1} s", self.source, self.total)
    }
}

fn table(diff: &Diff) -> Text {
    let is_share = diff.norm == "share";
    let unit = if is_share { "%" } else { "/s" };
    let mut text = Text::default();
    text.line(format_args!("base {}", diff.a.line()));
    text.line(format_args!("now  {}", diff.b.line()));
    text.line(format_args!(
        "{:>10} {:>10} {:>10}  {:<28} FUNCTION",
        format!("BASE {unit}"),
        format!("NOW {unit}"),
        "CHANGE",
        "CHANCE"
    ));
    for function in &diff.functions {
        let chance = match function.q {
            Some(q) if q < 0.0001 => format!("{}, q < 0.0001", function.verdict),
            Some(q) => format!("{}, q = {q:.4}", function.verdict),
            None => function.verdict.clone(),
        };
        let badge = function
            .badge
            .as_deref()
            .map_or(String::new(), |badge| format!("[{badge}] "));
        text.line(format_args!(
            "{:>10.2} {:>10.2} {:>+10.2}  {:<28} {badge}{}",
            diff.a.shown(function.own[0], is_share),
            diff.b.shown(function.own[1], is_share),
            function.change * if is_share { 100.0 } else { 1.0 },
            chance.replace('_', " "),
            printable_within(&function.name, LONGEST_NAME),
        ));
    }
    let left = diff
        .all_functions
        .saturating_sub(diff.functions.len() as u64);
    if left > 0 {
        text.line(format_args!("{left} more functions (--limit)"));
    }
    match &diff.unknown {
        Some(reason) => text.line(format_args!("significance is unknown: {reason}")),
        None => text.line(format_args!(
            "{} of {} tested functions changed significantly (q < 0.05, Benjamini and Hochberg)",
            diff.significant, diff.tested
        )),
    }
    text
}

#[cfg(test)]
pub(super) mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::config::cli::{Cli, Command};

    /// The table of an answer; `None` when it is none.
    pub(in crate::cli) fn table_of(answer: serde_json::Value) -> Option<Text> {
        serde_json::from_value(answer)
            .ok()
            .map(|diff: Diff| table(&diff))
    }

    #[test]
    fn the_request_has_what_the_command_line_has() {
        let line = "profiler-agent diff 6 7 --norm rate --from 20 --base-to 400 --tid 8 --tid 9 --pid 3 --container 4e --limit 5";
        let cli = Cli::parse_from(line.split(' '));
        let Command::Diff(args) = cli.command else {
            panic!("another command")
        };
        assert_eq!(
            query(&args),
            "a=6&b=7&norm=rate&limit=5&a_to=400&b_from=20&b_tid=8&b_tid=9\
             &a_pid=3&a_container=4e&b_pid=3&b_container=4e"
        );
    }

    #[test]
    fn the_table_shows_both_sides_and_what_chance_can_explain() {
        let answer = serde_json::json!({
            "a": {"source": "6", "total": 1000, "covered_ns": 10_000_000_000_u64},
            "b": {"source": "7", "total": 1000, "covered_ns": 20_000_000_000_u64},
            "norm": "share", "unknown": null, "tested": 1, "significant": 1, "all_functions": 3,
            "functions": [
                {"name": "spin\u{202e}", "self": [100, 150], "change": 0.05, "badge": null,
                 "verdict": "significant", "q": 0.00072},
                {"name": "fresh", "self": [0, 3], "change": 0.003, "badge": "new",
                 "verdict": "too_few", "q": null}
            ]
        });
        let mut diff: Diff = serde_json::from_value(answer).unwrap();
        let text = table(&diff);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "base task 6: 1000 in 10.0 s");
        assert_eq!(
            lines[3],
            "     10.00      15.00      +5.00  significant, q = 0.0007      spin\\u{202e}"
        );
        assert_eq!(
            lines[4],
            "      0.00       0.30      +0.30  too few                      [new] fresh"
        );
        assert_eq!(lines[5], "1 more functions (--limit)");
        assert!(lines[6].starts_with("1 of 1 tested functions changed significantly"));
        diff.norm = "rate".into();
        assert!(table(&diff).contains("     10.00       7.50 "));
    }
}
