//! Whether rules can hold for anything: their patterns against the names that there are.

use profiler_model::name_pattern::{Pattern, any};

use super::{
    DiagnosisRules,
    file::{RuleEntry, Space},
};

/// Names that exist, for one set of rules.
#[derive(Clone, Debug)]
pub struct KnownNames<'a> {
    /// Id of the set.
    pub set: &'a str,
    /// Functions as they read in stacks.
    pub user: &'a [String],
    pub kernel: &'a [String],
}

impl DiagnosisRules {
    /// What is dead, as lines for people: each pattern of `frames` that no name matches, and each list of
    /// `with`, `without` and `passes_on` of which none does. Patterns of `symbols` are not looked at.
    pub fn unproved(&self, known: &KnownNames<'_>) -> Vec<String> {
        let mut dead = Vec::new();
        let of_set = self.rules.iter().filter(|rule| rule.is_of(known.set));
        for rule in of_set {
            let RuleEntry {
                space,
                frames,
                with,
                without,
                ..
            } = &rule.entry;
            let names = match space {
                Space::User => known.user,
                Space::Kernel => known.kernel,
            };
            let unmatched = frames.iter().filter(|pattern| !holds(pattern, names));
            dead.extend(unmatched.map(|pattern| {
                format!(
                    "{}: rule {:?}: {}",
                    known.set,
                    rule.name(),
                    pattern.as_str()
                )
            }));
            for (condition, patterns) in [("with", with), ("without", without)] {
                let everywhere = || known.user.iter().chain(known.kernel);
                if !patterns.is_empty() && !everywhere().any(|name| any(patterns, name)) {
                    dead.push(format!(
                        "{}: rule {:?}: nothing matches its `{condition}`",
                        known.set,
                        rule.name()
                    ));
                }
            }
        }
        dead
    }

    /// Functions by which a feature hands a request on that no name matches.
    pub fn unproved_hand_overs(&self, names: &[String]) -> Vec<String> {
        self.features
            .iter()
            .flat_map(|feature| &feature.passes_on)
            .filter(|pattern| !holds(pattern, names))
            .map(|pattern| pattern.as_str().to_owned())
            .collect()
    }
}

fn holds(pattern: &Pattern, names: &[String]) -> bool {
    names
        .iter()
        .any(|name| pattern.matches(name) || pattern.captured(name).is_some())
}
