//! Rules for code that nothing describes, from what its instructions do to the stack.
//!
//! Every instruction is decoded once. From where functions begin, the distance to the caller's frame
//! and the whereabouts of the frame pointer are carried along all ways through the code. What cannot
//! be followed to a sound end gets no rule: a `ret` or a jump to another function must find the
//! stack as the function was given it, and two ways to one instruction must agree. Otherwise all
//! code that hangs together with it stays without.
//!
//! Some functions are known by nothing but their address in data or in an instruction; such places
//! may as well be labels. They are believed when following them leads to a `ret` that fits, or
//! (where an instruction takes the address) to nothing that speaks against it.

mod instructions;
mod state;

use profiler_common::unwind::rule::Rule;

pub(crate) use instructions::CodeRange;
use instructions::{Flow, Instructions, ReadFile};
use state::FrameState;

/// Entries of a jump table that are followed.
const TABLE_ENTRIES: u64 = 1024;
/// Instructions before an indirect jump in which its table and its bound are looked for.
const TABLE_PROLOGUE: usize = 16;
/// Instructions that are looked at; musl has 110,000.
const INSTRUCTIONS: usize = 400_000;
/// How often candidates may look at as many instructions as there are, so that hostile code cannot
/// make this endless.
const CANDIDATE_ROUNDS: usize = 8;

/// The rules of the instructions that could be followed, in ascending order: an address, the first
/// one behind, and what holds there.
pub(crate) fn rules(
    ranges: &[CodeRange],
    functions: &[u64],
    read: ReadFile<'_>,
) -> Vec<(u64, u64, Rule)> {
    let Some(instructions) = Instructions::decode(ranges, INSTRUCTIONS) else {
        return Vec::new();
    };
    let mut analysis = Analysis::new(&instructions, functions);
    analysis.resolve_tables(read);
    analysis.follow_functions();
    analysis.follow_candidates();
    analysis.rules()
}

struct Analysis<'code> {
    code: &'code Instructions,
    /// By instruction: a function begins here, which is certain.
    begins: Vec<bool>,
    /// By instruction: its address is taken, so that a function may begin here.
    taken: Vec<bool>,
    states: Vec<Option<FrameState>>,
    /// Union-find over instructions that flow into each other.
    parents: Vec<u32>,
    /// By the root of the union.
    unsound: Vec<bool>,
    /// Targets of indirect jumps through tables, by instruction.
    tables: Vec<(u32, Vec<u32>)>,
}

/// What following a way found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Sound,
    Unsound,
}

impl<'code> Analysis<'code> {
    fn new(code: &'code Instructions, functions: &[u64]) -> Self {
        let count = code.len();
        let mut begins = vec![false; count];
        for address in functions.iter().copied().chain(code.call_targets()) {
            if let Some(index) = code.at(address) {
                begins[index] = true;
            }
        }
        let mut taken = vec![false; count];
        for address in code.taken_addresses() {
            if let Some(index) = code.at(address) {
                taken[index] = code.may_begin(index);
            }
        }
        Self {
            code,
            begins,
            taken,
            states: vec![None; count],
            parents: (0..u32::try_from(count).unwrap_or(u32::MAX)).collect(),
            unsound: vec![false; count],
            tables: Vec::new(),
        }
    }

    /// Finds the targets of `switch` statements.
    fn resolve_tables(&mut self, read: ReadFile<'_>) {
        for index in 0..self.code.len() {
            if self.code.flow(index) != Flow::JumpIndirect {
                continue;
            }
            let Some(table) = self.code.jump_table(index, TABLE_PROLOGUE) else {
                continue;
            };
            let (low, high) = self.function_around(index);
            let targets: Option<Vec<u32>> = (0..table.entries.min(TABLE_ENTRIES))
                .map(|number| {
                    let target = table.target(number, read)?;
                    let target = self.code.at(target)?;
                    // Another function's: the bound belongs to something else.
                    (low <= target && target < high).then_some(u32::try_from(target).ok()?)
                })
                .collect();
            if let (Some(targets), Ok(index)) = (targets, u32::try_from(index)) {
                self.tables.push((index, targets));
            }
        }
    }

    /// The instructions from the last known beginning of a function to the next.
    fn function_around(&self, index: usize) -> (usize, usize) {
        let low = (0..=index).rev().find(|at| self.begins[*at]).unwrap_or(0);
        let high = (index + 1..self.code.len()).find(|at| self.begins[*at]);
        (low, high.unwrap_or(self.code.len()))
    }

    fn follow_functions(&mut self) {
        let starts = (0..self.code.len()).filter(|index| self.begins[*index]);
        let mut open: Vec<usize> = starts.collect();
        for index in &open {
            self.states[*index] = Some(FrameState::at_entry());
        }
        while let Some(index) = open.pop() {
            let Some(before) = self.states[index] else {
                continue;
            };
            let after = before.after(self.code.effect(index));
            if self.is_unsound_end(index, after) {
                self.mark_unsound(index);
            }
            for target in self.successors(index) {
                self.arrive(index, target, after, &mut open);
            }
        }
    }

    fn arrive(&mut self, from: usize, to: usize, state: FrameState, open: &mut Vec<usize>) {
        if self.may_not_arrive(from, to) {
            return;
        }
        if self.begins[to] {
            if !state.is_at_entry() {
                self.mark_unsound(from);
            }
            return;
        }
        match self.states[to] {
            None => {
                self.join(from, to);
                self.states[to] = Some(state);
                open.push(to);
            }
            Some(known) => {
                self.join(from, to);
                match known.merged(state) {
                    None => self.mark_unsound(to),
                    Some(merged) if merged != known => {
                        self.states[to] = Some(merged);
                        open.push(to);
                    }
                    Some(_) => {}
                }
            }
        }
    }

    /// Whether the way from one instruction to the next is one behind a call that may not return: to
    /// where another function seems to begin.
    fn may_not_arrive(&self, from: usize, to: usize) -> bool {
        (self.begins[to] || self.taken[to] || self.code.is_padding(from))
            && self.code.is_behind_call(from, to)
    }

    /// Code that nothing leads to, behind the end of other code: functions whose address is all that
    /// is known of them.
    fn follow_candidates(&mut self) {
        let mut budget = self.code.len().saturating_mul(CANDIDATE_ROUNDS);
        // By instruction: the candidate that came here last.
        let mut visits = vec![usize::MAX; self.code.len()];
        let all = 0..self.code.len();
        let taken: Vec<usize> = all.clone().filter(|index| self.taken[*index]).collect();
        for index in taken.into_iter().chain(all) {
            if self.states[index].is_some() || !self.code.may_begin(index) {
                continue;
            }
            let mut touched = Vec::new();
            let way = self.try_function(index, &mut touched, &mut visits);
            if way == Way::Unsound {
                for index in &touched {
                    self.states[*index] = None;
                }
            }
            let Some(left) = budget.checked_sub(touched.len()) else {
                return;
            };
            budget = left;
        }
    }

    fn try_function(
        &mut self,
        start: usize,
        touched: &mut Vec<usize>,
        visits: &mut [usize],
    ) -> Way {
        let mut ends = false;
        let mut is_open = false;
        self.states[start] = Some(FrameState::at_entry());
        visits[start] = start;
        touched.push(start);
        let mut open = vec![start];
        // A state changes only to say less, so this ends.
        while let Some(index) = open.pop() {
            let Some(before) = self.states[index] else {
                return Way::Unsound;
            };
            let after = before.after(self.code.effect(index));
            if self.is_unsound_end(index, after) {
                return Way::Unsound;
            }
            ends |= self.code.flow(index) == Flow::Return;
            let successors = self.successors(index);
            is_open |= self.code.flow(index) == Flow::JumpIndirect && successors.is_empty();
            for target in successors {
                if self.may_not_arrive(index, target) {
                    continue;
                }
                let own = visits[target] == start;
                let merged = match self.states[target] {
                    None => {
                        visits[target] = start;
                        touched.push(target);
                        after
                    }
                    Some(known) => match known.merged(after) {
                        Some(merged) if merged == known => {
                            ends |= !own && !self.code.is_behind_call(index, target);
                            continue;
                        }
                        Some(merged) if own => merged,
                        // What others believe is not changed by a guess.
                        Some(_) | None => return Way::Unsound,
                    },
                };
                self.states[target] = Some(merged);
                open.push(target);
            }
        }
        if ends || (self.taken[start] && !is_open) {
            Way::Sound
        } else {
            Way::Unsound
        }
    }

    /// Where the code goes on after an instruction, as far as it is in the same ranges.
    fn successors(&self, index: usize) -> Vec<usize> {
        match self.code.flow(index) {
            Flow::Next => self.code.next(index).into_iter().collect(),
            Flow::Branch(target) => {
                let target = self.code.at(target);
                target.into_iter().chain(self.code.next(index)).collect()
            }
            Flow::Jump(target) => self.code.at(target).into_iter().collect(),
            Flow::JumpIndirect => {
                let wanted = u32::try_from(index).unwrap_or(u32::MAX);
                let table = self.tables.binary_search_by_key(&wanted, |table| table.0);
                let targets = table.ok().map(|found| self.tables[found].1.as_slice());
                let targets = targets.unwrap_or_default().iter();
                targets
                    .filter_map(|target| usize::try_from(*target).ok())
                    .collect()
            }
            Flow::Return | Flow::Stop => Vec::new(),
        }
    }

    /// Whether the code is left here with the stack in another state than that of a function's
    /// caller.
    fn is_unsound_end(&self, index: usize, after: FrameState) -> bool {
        let leaves = |target: u64| match self.code.at(target) {
            // In the middle of an instruction: decoding has lost its place.
            None => self.code.contains(target) || !after.is_at_entry(),
            Some(_) => false,
        };
        match self.code.flow(index) {
            Flow::Return => !after.is_at_entry(),
            Flow::Jump(target) | Flow::Branch(target) => leaves(target),
            Flow::Next | Flow::JumpIndirect | Flow::Stop => false,
        }
    }

    fn root(&mut self, index: usize) -> usize {
        let mut at = index;
        loop {
            let parent = self.parents[at] as usize;
            if parent == at {
                return at;
            }
            // Halving the way keeps it short.
            self.parents[at] = self.parents[parent];
            at = parent;
        }
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        if one != other {
            self.parents[other] = self.parents[one];
            self.unsound[one] |= self.unsound[other];
        }
    }

    fn mark_unsound(&mut self, index: usize) {
        let root = self.root(index);
        self.unsound[root] = true;
    }

    fn rules(mut self) -> Vec<(u64, u64, Rule)> {
        let mut rules: Vec<(u64, u64, Rule)> = Vec::new();
        for index in 0..self.code.len() {
            let root = self.root(index);
            let sound = self.states[index].filter(|_| !self.unsound[root]);
            let Some(rule) = sound.and_then(FrameState::rule) else {
                continue;
            };
            let (start, end) = self.code.range(index);
            match rules.last_mut() {
                Some(last) if last.1 == start && last.2 == rule => last.1 = end,
                Some(_) | None => rules.push((start, end, rule)),
            }
        }
        rules
    }
}

#[cfg(test)]
mod tests;
