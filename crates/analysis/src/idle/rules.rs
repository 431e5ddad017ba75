//! The rules: reading and checking them.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use profiler_model::{ThreadState, WaitReason, name_pattern::Pattern};
use serde::Deserialize;
use toml::Spanned;

const EMBEDDED: &str = include_str!("../../rules/idle.toml");
/// The version of the form of the file.
const VERSION: u32 = 1;
/// Far above what people write.
const MAX_RULES: usize = 1000;

/// States in which a thread is blocked; in the others it runs or wants to.
const BLOCKED: [ThreadState; 4] = [
    ThreadState::Interruptible,
    ThreadState::Uninterruptible,
    ThreadState::Io,
    ThreadState::Stopped,
];

#[derive(Debug, thiserror::Error)]
pub enum IdleRulesError {
    #[error("read idle rules {}: {source}", path.display())]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("idle rules {}: {detail}", path.display())]
    Wrong { path: PathBuf, detail: String },
}

/// Rules in their order; the first that holds counts.
#[derive(Clone, Debug)]
pub struct IdleRules {
    /// Functions that wait on behalf of their caller.
    pub(super) waiting: Vec<Pattern>,
    pub(super) rules: Vec<Rule>,
}

/// One rule. All conditions that are given must hold; of a list, one entry must match.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    name: Spanned<String>,
    /// `comm` of the process, or the last part of its executable's path.
    #[serde(default)]
    pub(super) process: Vec<Pattern>,
    #[serde(default)]
    pub(super) thread: Vec<Pattern>,
    pub(super) reason: Vec<Reason>,
    #[serde(default = "asleep")]
    pub(super) state: Vec<Blocked>,
    /// A function or, where there is no name, `module+0xoffset`, anywhere on the stack.
    #[serde(default)]
    pub(super) frames: Vec<Pattern>,
    /// The same; a match means that the rule does not hold.
    #[serde(default)]
    pub(super) without: Vec<Pattern>,
    /// The user function nearest to the leaf that is not in `waiting`.
    #[serde(default)]
    pub(super) caller: Vec<Pattern>,
}

impl Rule {
    pub(super) fn name(&self) -> &str {
        self.name.get_ref()
    }
}

/// A reason, written as its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Reason(pub(super) WaitReason);

impl TryFrom<String> for Reason {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let known = || {
            WaitReason::ALL
                .into_iter()
                .filter(|reason| *reason != WaitReason::Preempted)
        };
        known()
            .find(|reason| reason.name() == name)
            .map(Self)
            .ok_or_else(|| {
                let names: Vec<_> = known().map(WaitReason::name).collect();
                format!("reason {name:?} is not one of {}", names.join(", "))
            })
    }
}

/// A state in which a thread is blocked, written as its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Blocked(pub(super) ThreadState);

impl TryFrom<String> for Blocked {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        BLOCKED
            .into_iter()
            .find(|state| state.name() == name)
            .map(Self)
            .ok_or_else(|| {
                let names = BLOCKED.map(ThreadState::name).join(", ");
                format!("state {name:?} is not one of {names} (waiting for a CPU is never idle)")
            })
    }
}

fn asleep() -> Vec<Blocked> {
    vec![Blocked(ThreadState::Interruptible)]
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    #[serde(default)]
    waiting: Vec<Pattern>,
    rule: Vec<Rule>,
}

impl IdleRules {
    /// The rules of a file with its path, or the embedded ones.
    pub fn new(file: Option<(&Path, &str)>) -> Result<Self, IdleRulesError> {
        let (path, text) = file.unwrap_or((Path::new("(embedded)"), EMBEDDED));
        Self::parse(text).map_err(|detail| IdleRulesError::Wrong {
            path: path.to_owned(),
            detail,
        })
    }

    /// Reads rules; the error names the line.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let file: File =
            toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        let File {
            version,
            waiting,
            rule: rules,
        } = file;
        if version != VERSION {
            return Err(format!(
                "version {version} is not known: this agent reads version {VERSION}"
            ));
        }
        if rules.len() > MAX_RULES {
            return Err(format!("more than {MAX_RULES} rules"));
        }
        let mut names = HashSet::new();
        for rule in &rules {
            let at = |problem: &str| {
                let before = text.get(..rule.name.span().start).unwrap_or(text);
                let line = before.matches('\n').count() + 1;
                Err(format!("line {line}: rule {:?} {problem}", rule.name()))
            };
            if rule.name().trim().is_empty() {
                return at("has an empty name");
            }
            if !names.insert(rule.name()) {
                return at("has the name of an earlier rule");
            }
            if rule.reason.is_empty() || rule.state.is_empty() {
                return at("has an empty list of reasons or states and can never hold");
            }
            let conditions = [&rule.process, &rule.thread, &rule.frames, &rule.caller];
            if conditions.iter().all(|patterns| patterns.is_empty()) {
                return at(
                    "names no process, thread, frame or caller: it would hold for every program",
                );
            }
        }
        Ok(Self { waiting, rules })
    }

    /// Names of the rules in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().map(Rule::name)
    }
}
