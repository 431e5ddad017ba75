//! Findings and good news, by the rules for them.

use std::{collections::BTreeSet, fmt::Write as _};

use profiler_model::{
    diagnosis::{
        CellChoice, Confidence, Configuration, Coverage, Estimate, Finding, FindingSetting,
        GoodNews, Saving, Severity,
    },
    name_pattern::{Pattern, any},
    printable::printable,
    thousands,
};

use super::{
    DiagnosisRules,
    file::{FindingEntry, GoodEntry, Measure, SettingEntry, System},
    measures::{CountedStalls, Measured, Measurements},
    response_flags::FlaggedRequests,
};

/// From these shares on a finding is high or medium, in percent.
const HIGH_PERCENT: f64 = 15.0;
const MEDIUM_PERCENT: f64 = 5.0;
/// What stands for the name of a member of a family.
const NAME: &str = "{name}";
/// What stands for how much was looked at.
const COUNT: &str = "{count}";

/// What findings need beside the facts.
pub(super) struct FindingContext<'a> {
    pub(super) facts: &'a Measurements<'a>,
    /// Ids of the sets that the processes belong to.
    pub(super) sets: &'a BTreeSet<&'a str>,
    pub(super) configuration: Option<&'a Configuration>,
    pub(super) cpu_us_per_request: Option<Estimate>,
    pub(super) coverage: &'a Coverage,
}

impl FindingContext<'_> {
    fn rules(&self) -> &DiagnosisRules {
        self.facts.rules
    }

    fn is_about(&self, sets: &[toml::Spanned<String>]) -> bool {
        sets.iter()
            .any(|set| self.sets.contains(set.get_ref().as_str()))
    }

    /// Whether one of the processes is of those that have settings of `system`.
    fn has(&self, system: System) -> bool {
        system.set().is_none_or(|set| self.sets.contains(set))
    }

    /// The largest saving first, then what is not a matter of CPU time by how much it is above what is
    /// usual; what is only worth knowing last. One cause has one finding.
    pub(super) fn findings(&self) -> Vec<Finding> {
        let mut found: Vec<RankedFinding<'_>> = Vec::new();
        // Stalls last: those that wait for a CPU have a finding already.
        let (stalls, others): (Vec<&FindingEntry>, Vec<&FindingEntry>) = self
            .rules()
            .findings
            .iter()
            .partition(|entry| entry.measure == Measure::Stalls);
        for entry in others.into_iter().chain(stalls) {
            if !self.is_about(&entry.sets) || !self.is_configured(&entry.only_if) {
                continue;
            }
            if entry.measure == Measure::ResponseFlags {
                let flags = self.facts.flags.iter();
                found.extend(flags.map(|flagged| of_flag(entry, flagged)));
                continue;
            }
            let mut entries = found.iter().map(|found| found.entry);
            let stalls = if entries.any(|entry| entry.measure == Measure::RunQueue) {
                CountedStalls::OnACpu
            } else {
                CountedStalls::All
            };
            for member in self.members(entry) {
                found.extend(self.finding(entry, member.as_deref(), stalls));
            }
        }
        let mut found = joined(found);
        found.sort_by(|one, other| {
            let info = |found: &RankedFinding<'_>| found.finding.severity == Severity::Info;
            let saving =
                |found: &RankedFinding<'_>| found.finding.saving.map(|saving| saving.percent);
            info(one)
                .cmp(&info(other))
                .then_with(|| {
                    let most = |found| saving(found).unwrap_or(f64::NEG_INFINITY);
                    most(other).total_cmp(&most(one))
                })
                .then_with(|| other.excess.total_cmp(&one.excess))
                .then_with(|| one.finding.id.cmp(&other.finding.id))
        });
        found.into_iter().map(|found| found.finding).collect()
    }

    /// For a family the members that have samples; otherwise one finding without a member.
    fn members(&self, entry: &FindingEntry) -> Vec<Option<String>> {
        let family = entry
            .cells
            .iter()
            .find_map(|cell| cell.get_ref().strip_suffix('*'));
        let Some(stem) = family else {
            return vec![None];
        };
        let Some((_, sums)) = self.facts.on_cpu else {
            return Vec::new();
        };
        let mut members: BTreeSet<String> = BTreeSet::new();
        for cell in &sums.cells {
            let id = sums.attributions.feature_id(cell.feature);
            let own = entry.except.iter().any(|except| except.get_ref() == id);
            if let Some(member) = id.strip_prefix(stem)
                && !own
            {
                members.insert(member.to_owned());
            }
        }
        members.into_iter().map(Some).collect()
    }

    fn finding<'a>(
        &self,
        entry: &'a FindingEntry,
        member: Option<&str>,
        stalls: CountedStalls,
    ) -> Option<RankedFinding<'a>> {
        let named = |text: &str| text.replace(NAME, member.unwrap_or_default());
        let cells = self.cells(&entry.cells, member);
        let measured = match entry.measure {
            Measure::Stalls => self.facts.stalls(stalls)?,
            measure => self.facts.measure(measure, &cells)?,
        };
        let Measured {
            estimate,
            evidence,
            confidence,
            text,
            of: _,
        } = measured;
        if estimate.low - entry.normal_percent < self.rules().threshold_percent {
            return None;
        }
        let excess = estimate.value - entry.normal_percent;
        let saving = (entry.measure == Measure::Share && entry.savable > 0.0).then(|| {
            let percent = excess.max(0.0) * entry.savable;
            Saving {
                percent,
                us_per_request: self
                    .cpu_us_per_request
                    .map(|per_request| per_request.value * percent / 100.0),
            }
        });
        let mut reason = named(&entry.reason).trim().to_owned();
        if let Some(text) = &text {
            reason = format!("{text} {reason}");
        }
        if entry.normal_percent > 0.0 {
            // Writing to a String cannot fail.
            let _infallible = write!(
                reason,
                " Up to {} % is usual and not counted as a saving.",
                entry.normal_percent
            );
        }
        let id = match member {
            None => entry.id.get_ref().clone(),
            Some(member) => format!("{}_{member}", entry.id.get_ref()),
        };
        let finding = Finding {
            id,
            title: named(&entry.title),
            severity: severity(entry, excess),
            share_percent: estimate.value,
            low: estimate.low,
            high: estimate.high,
            saving,
            evidence,
            reason,
            configured: self.configured(&entry.configured, member),
            settings: entry
                .settings
                .iter()
                .filter(|setting| self.has(setting.system) && !self.is_in_force(setting))
                .map(|setting| shown(setting, member))
                .collect(),
            confidence,
            cells,
        };
        Some(RankedFinding {
            entry,
            excess,
            text,
            finding,
        })
    }

    fn cells(&self, cells: &[toml::Spanned<String>], member: Option<&str>) -> Vec<CellChoice> {
        let rules = self.rules();
        cells
            .iter()
            .filter_map(|cell| {
                let text = match (cell.get_ref().strip_suffix('*'), member) {
                    (Some(stem), Some(member)) => format!("{stem}{member}"),
                    _ => cell.get_ref().clone(),
                };
                rules.cell(&text).ok()
            })
            .collect()
    }

    /// What the process says that it is configured, as keys and values.
    fn items(&self) -> Vec<(&str, String)> {
        let Some(configuration) = self.configuration else {
            return Vec::new();
        };
        let items = configuration.items.iter();
        let mut items: Vec<(&str, String)> = items
            .map(|item| (item.key.as_str(), item.value.clone()))
            .collect();
        let workers = configuration.concurrency;
        items.extend(workers.map(|workers| ("concurrency", workers.to_string())));
        items
    }

    /// Whether the process says that all of it is configured.
    fn is_configured(&self, needed: &[Pattern]) -> bool {
        let items = self.items();
        needed.iter().all(|pattern| {
            let mut items = items.iter();
            items.any(|(key, value)| {
                pattern.matches(key) || pattern.matches(&format!("{key}={value}"))
            })
        })
    }

    /// Whether all that the process reports about what the setting changes is what it advises.
    fn is_in_force(&self, setting: &SettingEntry) -> bool {
        let items = self.items();
        let key_of = |pattern: &Pattern| {
            pattern
                .as_str()
                .split_once('=')
                .map(|(key, _)| key.to_owned())
        };
        let keys: BTreeSet<String> = setting.unless.iter().filter_map(key_of).collect();
        let mut said = items
            .iter()
            .filter(|(key, _)| keys.contains(*key))
            .peekable();
        said.peek().is_some()
            && said.all(|(key, value)| any(&setting.unless, &format!("{key}={value}")))
    }

    fn configured(&self, keys: &[Pattern], member: Option<&str>) -> Option<String> {
        if keys.is_empty() {
            return None;
        }
        self.configuration?;
        let of_member = |value: &str| {
            let plain = |text: &str| text.to_lowercase().replace(['_', '.'], "");
            member.is_none_or(|member| plain(value).contains(&plain(member)))
        };
        let texts: Vec<String> = self
            .items()
            .iter()
            .filter(|(key, value)| any(keys, key) && of_member(value))
            .map(|(key, value)| format!("{}: {}", printable(key), printable(value)))
            .collect();
        if texts.is_empty() {
            return Some("the configuration that was read has no such item".to_owned());
        }
        Some(texts.join("; "))
    }

    /// What is as it should be.
    pub(super) fn good(&self, findings: &[Finding]) -> Vec<GoodNews> {
        let entries = self.rules().good.iter();
        entries
            .filter(|entry| self.is_about(&entry.sets))
            .filter(|entry| {
                !findings
                    .iter()
                    .any(|finding| finding.id == *entry.id.get_ref())
            })
            .filter_map(|entry| self.one_good(entry))
            .collect()
    }

    fn one_good(&self, entry: &GoodEntry) -> Option<GoodNews> {
        let cells = self.cells(&entry.cells, None);
        // Samples without names may be anything.
        if entry.measure == Measure::Share && !self.coverage.sufficient {
            return None;
        }
        let measured = self.facts.measure(entry.measure, &cells)?;
        let none = measured.estimate.low <= 0.0
            && (entry.measure == Measure::Imbalance || measured.estimate.value <= 0.0);
        (none && measured.of > 0).then(|| GoodNews {
            id: entry.id.get_ref().clone(),
            title: entry.title.clone(),
            text: entry.text.replace(COUNT, &thousands(measured.of)),
        })
    }
}

/// A finding with what it is ranked and joined by.
struct RankedFinding<'a> {
    entry: &'a FindingEntry,
    /// Percent above what is usual.
    excess: f64,
    /// The numbers, where the percentage alone does not say enough.
    text: Option<String>,
    finding: Finding,
}

fn of_flag<'a>(entry: &'a FindingEntry, flagged: &FlaggedRequests) -> RankedFinding<'a> {
    let FlaggedRequests {
        id,
        name,
        estimate,
        reason,
        is_on_purpose,
    } = flagged;
    let finding = Finding {
        id: format!("{}_{id}", entry.id.get_ref()),
        title: entry.title.replace(NAME, name),
        severity: if *is_on_purpose {
            Severity::Info
        } else {
            severity(entry, estimate.value)
        },
        share_percent: estimate.value,
        low: estimate.low,
        high: estimate.high,
        saving: None,
        evidence: Vec::new(),
        reason: format!("{reason} {}", entry.reason.trim()),
        configured: None,
        settings: Vec::new(),
        confidence: Confidence::Exact,
        cells: Vec::new(),
    };
    RankedFinding {
        entry,
        excess: estimate.value,
        text: None,
        finding,
    }
}

/// Without those that have the same cause as another one, whose reason has their numbers then.
fn joined(found: Vec<RankedFinding<'_>>) -> Vec<RankedFinding<'_>> {
    let (parts, mut whole): (Vec<RankedFinding<'_>>, Vec<RankedFinding<'_>>) = found
        .into_iter()
        .partition(|found| !found.entry.part_of.is_empty());
    for part in parts {
        let place = whole.iter().position(|whole| {
            let mut ids = part.entry.part_of.iter();
            ids.any(|id| *id.get_ref() == whole.finding.id)
        });
        match place.and_then(|place| whole.get_mut(place)) {
            Some(whole) => {
                let Finding {
                    title,
                    share_percent,
                    ..
                } = &part.finding;
                let numbers = part
                    .text
                    .unwrap_or_else(|| format!("{title}: {share_percent:.1} %."));
                // Writing to a String cannot fail.
                let _infallible = write!(whole.finding.reason, " {numbers}");
            }
            None => whole.push(part),
        }
    }
    whole
}

fn severity(entry: &FindingEntry, excess: f64) -> Severity {
    if entry.info {
        Severity::Info
    } else if excess >= HIGH_PERCENT {
        Severity::High
    } else if excess >= MEDIUM_PERCENT {
        Severity::Medium
    } else {
        Severity::Low
    }
}

fn shown(setting: &SettingEntry, member: Option<&str>) -> FindingSetting {
    let named = |text: &str| {
        text.replace(NAME, member.unwrap_or_default())
            .trim_end()
            .to_owned()
    };
    FindingSetting {
        system: setting.system.name().to_owned(),
        key: named(&setting.key),
        yaml: named(&setting.yaml),
        scope: named(&setting.scope),
        side_effects: named(&setting.side_effects),
        undo: String::new(),
    }
}
