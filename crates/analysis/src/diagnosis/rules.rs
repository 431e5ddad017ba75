//! The rules: reading and checking them, and the user's on top of the embedded ones.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use profiler_model::diagnosis::RuleOrigin;
use toml::Spanned;

use super::file::{
    FeatureEntry, File, FindingEntry, GoodEntry, Measure, MechanismEntry, RoleEntry, RuleEntry,
    SetEntry,
};
use super::source::Source;

const EMBEDDED: &str = include_str!("../../rules/diagnosis.toml");
/// The version of the form of the file.
pub(super) const VERSION: u32 = 1;
/// Both are far above what people write.
const MAX_RULES: usize = 2000;
const MAX_FINDINGS: usize = 500;

/// What a sample has that no rule holds for: with names, and without.
pub(super) const UNATTRIBUTED: &str = "unattributed";
pub(super) const NO_SYMBOLS: &str = "no_symbols";
/// What no rule for mechanisms holds for.
pub(super) const OTHER: &str = "other";
/// How the id of a family of features ends.
const FAMILY: &str = ":*";
/// What stands for the name of a member.
const NAME: &str = "{name}";

#[derive(Debug, thiserror::Error)]
pub enum DiagnosisRulesError {
    #[error("read diagnosis rules {}: {source}", path.display())]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("diagnosis rules {}: {detail}", path.display())]
    Wrong { path: PathBuf, detail: String },
}

/// What a rule decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decides {
    /// Number of the feature in [`DiagnosisRules::features`].
    Feature(usize),
    /// Number of the mechanism in [`DiagnosisRules::mechanisms`].
    Mechanism(usize),
    /// Only that nothing further to the root asked for what is nearer to the leaf.
    Boundary,
}

/// A checked rule.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) entry: RuleEntry,
    pub(super) origin: RuleOrigin,
    pub(super) decides: Decides,
    pub(super) otherwise: Option<usize>,
}

impl Rule {
    pub(super) fn name(&self) -> &str {
        self.entry.name.get_ref()
    }

    pub(super) fn is_of(&self, set: &str) -> bool {
        self.entry.sets.iter().any(|known| known.get_ref() == set)
    }

    /// It looks at frames, and not only at the thread or the process.
    pub(super) fn has_frames(&self) -> bool {
        let RuleEntry {
            frames,
            symbols,
            module,
            ..
        } = &self.entry;
        !(frames.is_empty() && symbols.is_empty() && module.is_empty())
    }
}

/// Rules in their order: the user's first.
#[derive(Clone, Debug)]
pub struct DiagnosisRules {
    pub(super) threshold_percent: f64,
    pub(super) user_file: Option<PathBuf>,
    pub(super) sets: Vec<SetEntry>,
    pub(super) roles: Vec<RoleEntry>,
    pub(super) features: Vec<FeatureEntry>,
    pub(super) mechanisms: Vec<MechanismEntry>,
    pub(super) rules: Vec<Rule>,
    pub(super) findings: Vec<FindingEntry>,
    pub(super) good: Vec<GoodEntry>,
}

impl DiagnosisRules {
    /// The embedded rules, and on top of them those of the user's file, which is given with its path.
    pub fn new(file: Option<(&Path, &str)>) -> Result<Self, DiagnosisRulesError> {
        let wrong = |path: &Path, detail| DiagnosisRulesError::Wrong {
            path: path.to_owned(),
            detail,
        };
        let mut rules =
            Self::parse(EMBEDDED).map_err(|detail| wrong(Path::new("(embedded)"), detail))?;
        if let Some((path, text)) = file {
            rules.add(text).map_err(|detail| wrong(path, detail))?;
            rules.user_file = Some(path.to_owned());
        }
        Ok(rules)
    }

    /// Reads a complete file; the error names the line.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut rules = Self {
            threshold_percent: 0.0,
            user_file: None,
            sets: Vec::new(),
            roles: Vec::new(),
            features: Vec::new(),
            mechanisms: Vec::new(),
            rules: Vec::new(),
            findings: Vec::new(),
            good: Vec::new(),
        };
        rules.merge(text, RuleOrigin::Embedded)?;
        for needed in [UNATTRIBUTED, NO_SYMBOLS] {
            if rules.feature(needed).is_none() {
                return Err(format!("the feature {needed:?} is missing"));
            }
        }
        if rules.mechanism(OTHER).is_none() {
            return Err(format!("the mechanism {OTHER:?} is missing"));
        }
        match rules.sets.split_last() {
            Some((last, rest))
                if last.process.is_empty() && rest.iter().all(|set| !set.process.is_empty()) => {}
            _ => return Err("the last set, and no other, must name no process".to_owned()),
        }
        Ok(rules)
    }

    /// Puts the user's rules in front of those that are there; the error names the line.
    pub(super) fn add(&mut self, text: &str) -> Result<(), String> {
        self.merge(text, RuleOrigin::User)
    }

    fn merge(&mut self, text: &str, origin: RuleOrigin) -> Result<(), String> {
        let file: File =
            toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        let File {
            version,
            threshold_percent,
            disable,
            set,
            role,
            feature,
            mechanism,
            rule,
            finding,
            good,
        } = file;
        let source = Source { text };
        if *version.get_ref() != VERSION {
            return source.wrong(
                &version.span(),
                format!(
                    "version {} is not known: this agent reads version {VERSION}",
                    version.get_ref()
                ),
            );
        }
        if rule.len() > MAX_RULES || finding.len() > MAX_FINDINGS {
            return Err(format!(
                "more than {MAX_RULES} rules or {MAX_FINDINGS} findings"
            ));
        }
        if origin == RuleOrigin::User && !(set.is_empty() && role.is_empty() && good.is_empty()) {
            return Err(
                "a user's file has rules, findings, features and `disable`; sets, roles and good \
                 news are the agent's own"
                    .to_owned(),
            );
        }
        match threshold_percent {
            Some(threshold) if (0.0..=100.0).contains(threshold.get_ref()) => {
                self.threshold_percent = threshold.into_inner();
            }
            Some(threshold) => {
                return source.wrong(&threshold.span(), "a threshold is 0 to 100 percent");
            }
            None if origin == RuleOrigin::User => {}
            None => return Err("`threshold_percent` is missing".to_owned()),
        }
        self.disable(&disable, &source)?;
        self.sets.extend(set);
        self.roles.extend(role);
        self.add_features(feature, mechanism, &source)?;
        self.add_rules(rule, origin, &source)?;
        self.add_findings(finding, &source)?;
        for entry in &good {
            self.check_sets(&entry.sets, &source)?;
            self.check_cells(&entry.cells, entry.measure, &entry.id, &source)?;
        }
        self.good.extend(good);
        for entry in &self.roles {
            self.check_sets(&entry.sets, &source)?;
        }
        Ok(())
    }

    fn disable(&mut self, names: &[Spanned<String>], source: &Source<'_>) -> Result<(), String> {
        for name in names {
            let before = self.rules.len() + self.findings.len();
            self.rules.retain(|rule| rule.name() != name.get_ref());
            self.findings
                .retain(|finding| finding.id.get_ref() != name.get_ref());
            if self.rules.len() + self.findings.len() == before {
                return source.wrong(
                    &name.span(),
                    format!("there is no rule and no finding {:?}", name.get_ref()),
                );
            }
        }
        Ok(())
    }

    fn add_features(
        &mut self,
        features: Vec<FeatureEntry>,
        mechanisms: Vec<MechanismEntry>,
        source: &Source<'_>,
    ) -> Result<(), String> {
        for feature in features {
            let id = feature.id.get_ref();
            let stem = id.strip_suffix(FAMILY).unwrap_or(id);
            if !is_id(stem) || self.feature(id).is_some() {
                return source.wrong(&feature.id.span(), format!(
                    "the feature id {id:?} is taken, or is not made of lower-case letters, digits and _"
                ));
            }
            self.features.push(feature);
        }
        for mechanism in mechanisms {
            let id = mechanism.id.get_ref();
            if !is_id(id) || self.mechanism(id).is_some() {
                return source.wrong(&mechanism.id.span(), format!(
                    "the mechanism id {id:?} is taken, or is not made of lower-case letters, digits and _"
                ));
            }
            self.mechanisms.push(mechanism);
        }
        Ok(())
    }

    fn add_rules(
        &mut self,
        entries: Vec<RuleEntry>,
        origin: RuleOrigin,
        source: &Source<'_>,
    ) -> Result<(), String> {
        let mut names = HashSet::new();
        let mut added = Vec::new();
        for entry in entries {
            let name = entry.name.get_ref().clone();
            let at = entry.name.span();
            let wrong = |problem: &str| source.wrong(&at, format!("rule {name:?} {problem}"));
            if name.trim().is_empty() {
                return wrong("has an empty name");
            }
            if !names.insert(name.clone()) {
                return wrong("has the name of an earlier rule");
            }
            self.check_sets(&entry.sets, source)?;
            if entry.sets.is_empty() {
                return wrong("is in no set and can never hold");
            }
            let decides = match (&entry.feature, &entry.mechanism, entry.boundary) {
                (Some(id), None, _) => Decides::Feature(self.known_feature(id, source)?),
                (None, Some(id), false) => Decides::Mechanism(self.known_mechanism(id, source)?),
                (None, None, true) => Decides::Boundary,
                _ => {
                    return wrong(
                        "must give a feature (which may be a boundary too), or a mechanism, or be a \
                         boundary",
                    );
                }
            };
            let otherwise = match &entry.otherwise {
                Some(id) => Some(self.known_mechanism(id, source)?),
                None => None,
            };
            let rule = Rule {
                entry,
                origin,
                decides,
                otherwise,
            };
            let RuleEntry {
                thread, process, ..
            } = &rule.entry;
            if !rule.has_frames() {
                if thread.is_empty() && process.is_empty() {
                    return wrong(
                        "names no frame, module, thread or process: it would hold for everything",
                    );
                }
                if !matches!(rule.decides, Decides::Feature(_)) {
                    return wrong(
                        "names no frame or module: only features can be told by a thread's name",
                    );
                }
            }
            self.check_members(&rule, source)?;
            self.rules.retain(|known| known.name() != name);
            added.push(rule);
        }
        added.append(&mut self.rules);
        self.rules = added;
        Ok(())
    }

    /// A rule for a family must say where the member's name is, and no other may.
    fn check_members(&self, rule: &Rule, source: &Source<'_>) -> Result<(), String> {
        let RuleEntry {
            name,
            frames,
            symbols,
            module,
            ..
        } = &rule.entry;
        let Decides::Feature(feature) = rule.decides else {
            return Ok(());
        };
        let id = self.features[feature].id.get_ref();
        // `filter:rbac` is a member that a rule names by itself.
        let member = rule.entry.feature.as_ref().map(Spanned::get_ref) != Some(id);
        let named =
            |pattern: &profiler_model::name_pattern::Pattern| pattern.as_str().contains(NAME);
        let all = || frames.iter().chain(symbols).chain(module);
        let family = id.ends_with(FAMILY) && !member;
        if family && !all().all(named) {
            return source.wrong(
                &name.span(),
                format!(
                    "rule {:?}: every pattern must have {NAME} where the member's name is",
                    name.get_ref()
                ),
            );
        }
        if !family && all().any(named) {
            return source.wrong(
                &name.span(),
                format!(
                    "rule {:?}: {NAME} is only for the families {}",
                    name.get_ref(),
                    self.families()
                ),
            );
        }
        Ok(())
    }

    fn families(&self) -> String {
        let ids = self.features.iter().map(|feature| feature.id.get_ref());
        ids.filter(|id| id.ends_with(FAMILY))
            .cloned()
            .collect::<Vec<_>>()
            .join(", ")
    }

    fn add_findings(
        &mut self,
        findings: Vec<FindingEntry>,
        source: &Source<'_>,
    ) -> Result<(), String> {
        let mut ids = HashSet::new();
        let mut added = Vec::new();
        for finding in findings {
            let id = finding.id.get_ref().clone();
            let at = finding.id.span();
            let wrong = |problem: &str| source.wrong(&at, format!("finding {id:?} {problem}"));
            if !is_id(&id) || !ids.insert(id.clone()) {
                return wrong(
                    "has the id of an earlier one, or one that is not made of lower-case letters, \
                     digits and _",
                );
            }
            self.check_sets(&finding.sets, source)?;
            self.check_cells(&finding.cells, finding.measure, &finding.id, source)?;
            if !(0.0..=1.0).contains(&finding.savable)
                || !(0.0..=100.0).contains(&finding.normal_percent)
            {
                return wrong("must have savable from 0 to 1 and normal_percent from 0 to 100");
            }
            for member in &finding.except {
                self.known_feature(member, source)?;
            }
            if !finding.part_of.iter().all(|whole| is_id(whole.get_ref())) {
                return wrong("has `part_of` with what is not an id of a finding");
            }
            let mut unless = finding.settings.iter().flat_map(|setting| &setting.unless);
            if unless.any(|pattern| !pattern.as_str().contains('=')) {
                return wrong("has a setting whose `unless` is not KEY=VALUE");
            }
            self.findings.retain(|known| known.id.get_ref() != &id);
            added.push(finding);
        }
        added.append(&mut self.findings);
        self.findings = added;
        Ok(())
    }

    fn check_cells(
        &self,
        cells: &[Spanned<String>],
        measure: Measure,
        of: &Spanned<String>,
        source: &Source<'_>,
    ) -> Result<(), String> {
        let needs = matches!(measure, Measure::Share | Measure::Switches);
        if needs == cells.is_empty() {
            let problem = if needs {
                "names no cells"
            } else {
                "is not measured by cells"
            };
            return source.wrong(&of.span(), format!("{:?} {problem}", of.get_ref()));
        }
        for cell in cells {
            let family = cell.get_ref().ends_with(FAMILY) && self.feature(cell.get_ref()).is_some();
            if !family && let Err(problem) = self.cell(cell.get_ref()) {
                return source.wrong(&cell.span(), problem);
            }
        }
        Ok(())
    }

    fn check_sets(&self, sets: &[Spanned<String>], source: &Source<'_>) -> Result<(), String> {
        let known = |id: &str| self.sets.iter().any(|set| set.id.get_ref() == id);
        match sets.iter().find(|id| !known(id.get_ref())) {
            None => Ok(()),
            Some(id) => source.wrong(
                &id.span(),
                format!(
                    "set {:?} is not one of {}",
                    id.get_ref(),
                    joined(self.sets.iter().map(|set| set.id.get_ref().as_str()))
                ),
            ),
        }
    }

    fn known_feature(&self, id: &Spanned<String>, source: &Source<'_>) -> Result<usize, String> {
        self.feature(id.get_ref()).map_or_else(
            || {
                source.wrong(
                    &id.span(),
                    format!(
                        "feature {:?} is not one of {}",
                        id.get_ref(),
                        joined(self.feature_ids())
                    ),
                )
            },
            Ok,
        )
    }

    fn known_mechanism(&self, id: &Spanned<String>, source: &Source<'_>) -> Result<usize, String> {
        self.mechanism(id.get_ref()).map_or_else(
            || {
                source.wrong(
                    &id.span(),
                    format!(
                        "mechanism {:?} is not one of {}",
                        id.get_ref(),
                        joined(self.mechanism_ids())
                    ),
                )
            },
            Ok,
        )
    }
}

/// Ids can stand in addresses as they are.
pub(super) fn is_id(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    !text.is_empty() && text.len() <= 64 && text.bytes().all(allowed)
}

fn joined<'a>(ids: impl Iterator<Item = &'a str>) -> String {
    ids.collect::<Vec<_>>().join(", ")
}
