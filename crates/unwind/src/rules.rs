//! The rules of all files of a task, each once.

use std::collections::HashMap;

use profiler_common::unwind::rule::{Rule, cfa};

/// Rules that the kernel's table holds. Nearly 10,000 would come together if a task unwound every
/// program of a desktop system; one mesh uses some hundreds.
pub const MAX_RULES: usize = 8192;

/// Index of the rule for code without a description.
pub(crate) const NO_UNWIND_INFO: u16 = 0;
/// Index of the rule for descriptions that cannot be followed.
pub(crate) const UNSUPPORTED: u16 = 1;

/// Index of the rule for code that is taken to keep frame pointers.
pub(crate) const FRAME_POINTERS: u16 = 2;

/// Rules by index. They are never removed: rows refer to them by their index.
#[derive(Debug)]
pub struct RuleTable {
    rules: Vec<Rule>,
    indexes: HashMap<Rule, u16>,
    refused: u64,
}

impl Default for RuleTable {
    fn default() -> Self {
        let mut table = Self {
            rules: Vec::new(),
            indexes: HashMap::new(),
            refused: 0,
        };
        for kind in [cfa::NO_UNWIND_INFO, cfa::UNSUPPORTED, cfa::FP_BODY] {
            table.intern(of_kind(kind));
        }
        table
    }
}

impl RuleTable {
    /// The index of a rule; that of the unsupported one when the table is full.
    pub fn intern(&mut self, rule: Rule) -> u16 {
        if let Some(index) = self.indexes.get(&rule) {
            return *index;
        }
        let index = u16::try_from(self.rules.len()).ok();
        let Some(index) = index.filter(|_| self.rules.len() < MAX_RULES) else {
            self.refused += 1;
            return UNSUPPORTED;
        };
        self.rules.push(rule);
        self.indexes.insert(rule, index);
        index
    }

    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Rows that became unsupported because the table was full.
    pub fn refused(&self) -> u64 {
        self.refused
    }
}

/// A rule that is its kind and nothing more.
pub(crate) fn of_kind(kind: u8) -> Rule {
    Rule {
        cfa_kind: kind,
        ..Rule::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_refuses_and_counts() {
        let mut table = RuleTable::default();
        let rule = |offset| Rule {
            cfa_kind: cfa::SP,
            cfa_offset: offset,
            ..Rule::default()
        };
        let first = table.intern(rule(0));
        for offset in 0..i32::try_from(MAX_RULES).unwrap() {
            table.intern(rule(offset));
        }
        assert_eq!(table.rules().len(), MAX_RULES);
        assert_eq!(table.refused(), 3);
        assert_eq!(table.intern(rule(-1)), UNSUPPORTED);
        assert_eq!(table.intern(rule(0)), first);
    }

    #[test]
    fn the_first_rules_stand_for_what_cannot_be_unwound() {
        let table = RuleTable::default();
        let kind = |index: u16| table.rules()[usize::from(index)].cfa_kind;
        assert_eq!(kind(NO_UNWIND_INFO), cfa::NO_UNWIND_INFO);
        assert_eq!(kind(UNSUPPORTED), cfa::UNSUPPORTED);
        assert_eq!(kind(FRAME_POINTERS), cfa::FP_BODY);
    }
}
