//! Finding entries of the rules by their ids, and the set and role of what has samples.

use profiler_model::{diagnosis::ThreadRole, name_pattern::any};

use super::rules::{DiagnosisRules, is_id};

impl DiagnosisRules {
    /// Number of the feature that `id` is, or is a member of.
    pub(super) fn feature(&self, id: &str) -> Option<usize> {
        let whole = || {
            self.features
                .iter()
                .position(|known| known.id.get_ref() == id)
        };
        whole().or_else(|| {
            self.features.iter().position(|known| {
                let stem = known.id.get_ref().strip_suffix('*');
                stem.and_then(|stem| id.strip_prefix(stem))
                    .is_some_and(is_id)
            })
        })
    }

    pub(super) fn mechanism(&self, id: &str) -> Option<usize> {
        self.mechanisms
            .iter()
            .position(|known| known.id.get_ref() == id)
    }

    pub(super) fn feature_ids(&self) -> impl Iterator<Item = &str> {
        self.features
            .iter()
            .map(|feature| feature.id.get_ref().as_str())
    }

    pub(super) fn mechanism_ids(&self) -> impl Iterator<Item = &str> {
        self.mechanisms
            .iter()
            .map(|mechanism| mechanism.id.get_ref().as_str())
    }

    /// Number of the set that a process belongs to.
    pub(super) fn set_of(&self, comm: &str, exe: &str) -> usize {
        let file = exe.rsplit('/').next().unwrap_or(exe);
        let found = self
            .sets
            .iter()
            .position(|set| any(&set.process, comm) || any(&set.process, file));
        found.unwrap_or(self.sets.len().saturating_sub(1))
    }

    /// What a thread is for. The first thread of a process is its main one where no rule says more.
    pub(super) fn role_of(&self, set: usize, thread: &str, is_first: bool) -> ThreadRole {
        let set = self.sets[set].id.get_ref();
        let by_rule = self.roles.iter().find(|role| {
            role.sets.iter().any(|known| known.get_ref() == set) && any(&role.thread, thread)
        });
        match by_rule {
            Some(role) => role.role.into(),
            None if is_first => ThreadRole::Main,
            None => ThreadRole::Other,
        }
    }

    /// Number of rules, for tests and logs.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}
