//! Folded stacks, one line each: `comm;root;...;leaf count`.
//!
//! Kernel functions end in `_[k]` and inlined ones in `_[i]`, as perf's own folding writes them;
//! names that are inferred end in `_[inferred]`.

use std::collections::{BTreeMap, HashMap};

use crate::model::{Frame, FrameSpace, NameSource, Profile, StackId};

use super::{
    Value,
    names::{is_unprintable, lines, process_names, process_of},
};

pub(super) fn render(profile: &Profile, value: Value) -> Vec<u8> {
    let mut text = Vec::new();
    for (stack, count) in stacks(profile, value) {
        text.extend_from_slice(stack.as_bytes());
        text.extend_from_slice(format!(" {count}\n").as_bytes());
    }
    text
}

/// Folded stacks with their values, in order of their text.
pub(super) fn stacks(profile: &Profile, value: Value) -> BTreeMap<String, u64> {
    let processes: Vec<String> = process_names(profile)
        .iter()
        .map(|name| clean(name))
        .collect();
    let frames: Vec<String> = profile
        .frames
        .iter()
        .map(|frame| fold(profile, frame))
        .collect();
    let mut counts: HashMap<(u32, StackId), u64> = HashMap::new();
    for row in profile.samples.iter().filter(|row| value.of(row) > 0) {
        let count = counts
            .entry((process_of(profile, row.thread), row.stack))
            .or_default();
        *count = count.saturating_add(value.of(row));
    }
    let mut folded: BTreeMap<String, u64> = BTreeMap::new();
    for ((process, stack), count) in counts {
        let mut text = processes[process as usize].clone();
        for id in profile.stacks[stack as usize].frames.iter().rev() {
            text.push(';');
            text.push_str(&frames[*id as usize]);
        }
        protect_last_number(&mut text);
        let total = folded.entry(text).or_default();
        *total = total.saturating_add(count);
    }
    folded
}

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

/// Replaces what would end a frame or a line.
fn clean(name: &str) -> String {
    let replace = |character: char| match character {
        ';' => ':',
        character if is_unprintable(character) => ' ',
        character => character,
    };
    name.chars().map(replace).collect()
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
