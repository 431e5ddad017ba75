//! Which rule holds for which sample.

use std::{borrow::Cow, cell::OnceCell, collections::HashMap};

use profiler_model::{
    FrameSpace, Profile, SampleRow, StackId, ThreadId, ThreadState,
    name_pattern::{Pattern, any},
};

use super::{
    IdleRules,
    rules::{Blocked, Reason, Rule},
};
use crate::render::{names::names_of_frames, wait_reasons::WaitReasons};

impl IdleRules {
    /// For each sample the number of the first rule that holds; `None` when the profile has no waits.
    pub fn classify(&self, profile: &Profile) -> Option<Vec<Option<usize>>> {
        let asleep = |row: &SampleRow| row.state != ThreadState::OnCpu;
        if !profile.samples.iter().any(asleep) {
            return None;
        }
        let stacks = Stacks::new(self, profile);
        let mut known: HashMap<(ThreadId, StackId, ThreadState), Option<usize>> = HashMap::new();
        let rules = profile.samples.iter().map(|row| {
            *known
                .entry((row.thread, row.stack, row.state))
                .or_insert_with(|| stacks.rule_of(row))
        });
        Some(rules.collect())
    }
}

/// What the conditions on stacks are decided by.
struct Stacks<'a> {
    rules: &'a IdleRules,
    profile: &'a Profile,
    reasons: WaitReasons,
    /// Names of each frame, innermost first; never empty.
    names: Vec<Vec<Cow<'a, str>>>,
    /// For each stack the user function that waits.
    callers: Vec<Option<Cow<'a, str>>>,
    /// For each rule the frames that match its patterns, found when they are first needed.
    matched: Vec<Matched>,
}

/// Frames of the profile that match, by their number.
#[derive(Default)]
struct Matched {
    frames: OnceCell<Vec<bool>>,
    without: OnceCell<Vec<bool>>,
}

impl<'a> Stacks<'a> {
    fn new(rules: &'a IdleRules, profile: &'a Profile) -> Self {
        let names = names_of_frames(profile);
        let waits: Vec<Vec<bool>> = names
            .iter()
            .map(|names| names.iter().map(|name| any(&rules.waiting, name)).collect())
            .collect();
        let callers = profile
            .stacks
            .iter()
            .map(|stack| {
                let user = |id: &&u32| profile.frames[**id as usize].space == FrameSpace::User;
                stack.frames.iter().filter(user).find_map(|id| {
                    let position = waits[*id as usize].iter().position(|waits| !waits)?;
                    names[*id as usize].get(position).cloned()
                })
            })
            .collect();
        let matched = rules.rules.iter().map(|_rule| Matched::default()).collect();
        Self {
            rules,
            profile,
            reasons: WaitReasons::of(profile),
            names,
            callers,
            matched,
        }
    }

    fn rule_of(&self, row: &SampleRow) -> Option<usize> {
        let mut rules = self.rules.rules.iter().zip(&self.matched);
        rules.position(|(rule, matched)| self.holds(rule, matched, row))
    }

    fn holds(&self, rule: &Rule, matched: &Matched, row: &SampleRow) -> bool {
        let Rule {
            process,
            thread,
            reason,
            state,
            frames,
            without,
            caller,
            ..
        } = rule;
        let its_thread = &self.profile.threads[row.thread as usize];
        state.contains(&Blocked(row.state))
            && reason.contains(&Reason(self.reasons.of_row(row)))
            && (thread.is_empty() || any(thread, self.profile.text(its_thread.name)))
            && (process.is_empty() || self.is_of(process, row.thread))
            && (caller.is_empty() || self.waits_for(caller, row.stack))
            && (frames.is_empty() || self.has(frames, &matched.frames, row.stack))
            && (without.is_empty() || !self.has(without, &matched.without, row.stack))
    }

    /// Whether the process has such a name, or its executable.
    fn is_of(&self, patterns: &[Pattern], thread: ThreadId) -> bool {
        let process = self.profile.threads[thread as usize].process;
        let process = &self.profile.processes[process as usize];
        let exe = self.profile.text(process.exe);
        let file = exe.rsplit('/').next().unwrap_or(exe);
        any(patterns, self.profile.text(process.comm)) || any(patterns, file)
    }

    fn waits_for(&self, patterns: &[Pattern], stack: StackId) -> bool {
        let caller = self.callers.get(stack as usize).and_then(Option::as_deref);
        caller.is_some_and(|name| any(patterns, name))
    }

    /// Whether one of the stack's frames matches.
    fn has(&self, patterns: &[Pattern], known: &OnceCell<Vec<bool>>, stack: StackId) -> bool {
        let matching = known.get_or_init(|| {
            let matches = |names: &Vec<Cow<'_, str>>| names.iter().any(|name| any(patterns, name));
            self.names.iter().map(matches).collect()
        });
        let frames = &self.profile.stacks[stack as usize].frames;
        frames.iter().any(|id| matching[*id as usize])
    }
}
