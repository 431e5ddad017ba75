//! The rules as people look at them.

use profiler_model::{
    diagnosis::{FeatureInfo, ListedFinding, ListedRule, MechanismInfo, RuleOrigin, RuleSets},
    name_pattern::Pattern,
};

use super::{
    DiagnosisRules,
    file::{RuleEntry, Space},
    rules::VERSION,
};

impl DiagnosisRules {
    /// The rules in force.
    pub fn list(&self) -> RuleSets {
        RuleSets {
            version: VERSION,
            user_file: self
                .user_file
                .as_ref()
                .map(|path| path.display().to_string()),
            threshold_percent: self.threshold_percent,
            sets: self
                .sets
                .iter()
                .map(|set| set.id.get_ref().clone())
                .collect(),
            features: self
                .features
                .iter()
                .map(|feature| FeatureInfo {
                    id: feature.id.get_ref().clone(),
                    title: feature.title.clone(),
                    about: feature.about.clone(),
                    settings: self.has_setting(feature.id.get_ref()),
                })
                .collect(),
            mechanisms: self
                .mechanisms
                .iter()
                .map(|mechanism| MechanismInfo {
                    id: mechanism.id.get_ref().clone(),
                    title: mechanism.title.clone(),
                })
                .collect(),
            rules: self
                .rules
                .iter()
                .map(|rule| listed(&rule.entry, rule.origin))
                .collect(),
            findings: self
                .findings
                .iter()
                .map(|finding| ListedFinding {
                    id: finding.id.get_ref().clone(),
                    title: finding.title.clone(),
                    sets: texts(&finding.sets),
                    cells: texts(&finding.cells),
                    normal_percent: finding.normal_percent,
                    settings: finding
                        .settings
                        .iter()
                        .map(|setting| setting.key.clone())
                        .collect(),
                })
                .collect(),
        }
    }

    /// Whether a finding about the feature has something to change.
    pub(super) fn has_setting(&self, feature: &str) -> bool {
        self.findings.iter().any(|finding| {
            !finding.settings.is_empty()
                && finding.cells.iter().any(|cell| {
                    let cell = cell.get_ref();
                    let of_family = cell
                        .strip_suffix('*')
                        .is_some_and(|stem| feature.starts_with(stem));
                    let of_cell = self
                        .cell(cell)
                        .is_ok_and(|cell| cell.feature.as_deref() == Some(feature));
                    of_family || of_cell
                })
        })
    }
}

fn listed(entry: &RuleEntry, origin: RuleOrigin) -> ListedRule {
    let id = |id: &Option<toml::Spanned<String>>| id.as_ref().map(|id| id.get_ref().clone());
    let all = |patterns: &[Pattern]| {
        patterns
            .iter()
            .map(|pattern| pattern.as_str().to_owned())
            .collect()
    };
    ListedRule {
        name: entry.name.get_ref().clone(),
        origin,
        sets: texts(&entry.sets),
        feature: id(&entry.feature),
        mechanism: id(&entry.mechanism),
        boundary: entry.boundary,
        space: match entry.space {
            Space::User => "user",
            Space::Kernel => "kernel",
        },
        frames: all(&entry.frames),
        symbols: all(&entry.symbols),
        module: all(&entry.module),
        thread: all(&entry.thread),
        process: all(&entry.process),
        with: all(&entry.with),
        without: all(&entry.without),
    }
}

fn texts(texts: &[toml::Spanned<String>]) -> Vec<String> {
    texts.iter().map(|text| text.get_ref().clone()).collect()
}
