//! Folded stacks, one line each: `comm;root;...;leaf count`.
//!
//! Kernel functions end in `_[k]` and inlined ones in `_[i]`, as perf's own folding writes them;
//! names that are inferred end in `_[inferred]`.

use std::collections::BTreeMap;

use profiler_model::{Frame, FrameSpace, NameSource, Profile, printable::push_printable};

use super::{
    Budget, Value,
    budget::{OTHER, heaviest_first, name_counts, shown_frames},
    names::{lines, process_names},
};

pub(super) fn render(profile: &Profile, value: Value, budget: Budget) -> Vec<u8> {
    let mut text = Vec::new();
    for (stack, count) in stacks(profile, value, budget, 0) {
        text.extend_from_slice(stack.as_bytes());
        text.extend_from_slice(format!(" {count}\n").as_bytes());
    }
    text
}

/// Folded stacks with their values, in order of their text. Each name of a stack takes `name_bytes` of the budget beside
/// its text; stacks that have no room are `(other)` of their process.
pub(super) fn stacks(
    profile: &Profile,
    value: Value,
    mut budget: Budget,
    name_bytes: u64,
) -> BTreeMap<String, u64> {
    let processes: Vec<String> = process_names(profile)
        .iter()
        .map(|name| clean(name))
        .collect();
    let frames: Vec<String> = profile
        .frames
        .iter()
        .map(|frame| fold(profile, frame))
        .collect();
    let names = name_counts(profile);
    let mut folded: BTreeMap<String, u64> = BTreeMap::new();
    for ((process, stack), count) in heaviest_first(profile, value) {
        let mut text = processes[process as usize].clone();
        let ids = &profile.stacks[stack as usize].frames;
        let shown = shown_frames(ids, &names);
        let text_bytes: usize = shown.iter().map(|id| frames[*id as usize].len() + 1).sum();
        let names: usize = shown.iter().map(|id| names[*id as usize]).sum();
        let bytes = (TEXT_COPIES * (text.len() + text_bytes) + ENTRY_BYTES) as u64;
        let is_other = !budget.take(bytes.saturating_add(name_bytes.saturating_mul(names as u64)));
        if !is_other {
            for id in shown.iter().rev() {
                text.push(';');
                text.push_str(&frames[*id as usize]);
            }
        }
        if is_other || shown.len() < ids.len() {
            text.push(';');
            text.push_str(OTHER);
        }
        protect_last_number(&mut text);
        let total = folded.entry(text).or_default();
        *total = total.saturating_add(count);
    }
    folded
}

/// The text of a stack is in a table, in lines and in the answer.
const TEXT_COPIES: usize = 3;
/// An entry of the table beside its text.
const ENTRY_BYTES: usize = 64;

/// A frame's functions from the root's side to the leaf's, separated by `;`.
fn fold(profile: &Profile, frame: &Frame) -> String {
    let mut text = String::new();
    for line in lines(profile, frame) {
        if !text.is_empty() {
            text.push(';');
        }
        text.push_str(&clean(&line.name));
        match (frame.space, line.inlined) {
            (FrameSpace::Kernel, _) => text.push_str("_[k]"),
            (FrameSpace::User | FrameSpace::Marker, true) => text.push_str("_[i]"),
            (FrameSpace::User | FrameSpace::Marker, false) => {
                if frame.source == NameSource::Inferred {
                    text.push_str("_[inferred]");
                }
            }
        }
    }
    text
}

/// Replaces what would end a frame, and makes visible what would end a line or steer a terminal.
fn clean(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for letter in name.chars() {
        push_printable(&mut text, if letter == ';' { ':' } else { letter });
    }
    text
}

/// A stack that ends in a space and a number would be read as having two counts.
fn protect_last_number(text: &mut String) {
    if let Some((before, last)) = text.rsplit_once(' ')
        && !last.is_empty()
        && last
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
    {
        *text = format!("{before}_{last}");
    }
}
