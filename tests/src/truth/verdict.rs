//! Windows with and without a setting, compared: what was saved, what was attributed, and whether that is close.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    BASE, Setting, Window,
    settings::{Attribution, findings_of_settings},
    window::{Measured, feature_of},
};
use crate::stats::{MeanInterval, mean_interval};

/// Attribution may be off by this much of a request's CPU time,
const POINTS: f64 = 0.02;
/// or by this much of what is saved, whichever is more, beside the uncertainty of what is saved.
const OF_DIFFERENCE: f64 = 0.20;
/// Change of a cell in microseconds of a request below which it is not listed.
const LISTED_US: f64 = 0.5;
/// Cells that are listed.
const LISTED: usize = 6;

/// One setting judged. Times are microseconds of CPU time of a request.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub setting: &'static str,
    pub title: &'static str,
    pub side: &'static str,
    /// Groups that have windows with and without the setting.
    pub pairs: usize,
    pub with_us: f64,
    pub without_us: f64,
    /// What switching it off saves; below 0 it costs.
    pub saved_us: MeanInterval,
    /// What the diagnosis puts down to it; `None`: no feature is the setting's.
    pub attributed_us: Option<f64>,
    /// How far from the saving it may be.
    pub allowed_us: f64,
    /// `None` where nothing is attributed.
    pub within: Option<bool>,
    /// The same with what the features have that hold the rest; `None` where no rest is allowed for.
    pub within_with_rest: Option<bool>,
    /// Cells of other features that changed, largest change first: with the setting less without it.
    pub elsewhere: Vec<(String, f64)>,
    /// Windows with the setting that had its finding, and that had it as the first one.
    pub found: usize,
    pub first: usize,
    /// Whether it was found in as many windows as is asked for.
    pub found_enough: Option<bool>,
}

/// A window with the setting, and those without it.
type Pair<'windows> = (&'windows Measured, Vec<&'windows Measured>);

/// Judges a setting by all groups that have it; `None` below two of them.
pub fn compare(setting: &'static Setting, windows: &[Window]) -> Option<Row> {
    let pairs = pairs(setting, windows);
    if pairs.len() < 2 {
        return None;
    }
    let average =
        |pick: &dyn Fn(&Pair<'_>) -> f64| mean(&pairs.iter().map(pick).collect::<Vec<_>>());
    let differences: Vec<f64> = pairs
        .iter()
        .map(|(on, off)| on.us_per_request() - mean_of(off, Measured::us_per_request))
        .collect();
    let saved = mean_interval(&differences);
    let with = average(&|(on, _)| on.us_per_request());
    let features = setting.attribution.features();
    let held = average(&|(on, _)| on.features_us(features));
    let before = average(&|(_, off)| mean_of(off, |off| off.features_us(features)));
    let attributed = match setting.attribution {
        Attribution::Features(_) => Some(held),
        Attribution::Growth(_) => Some(held - before),
        Attribution::Moves => None,
    };
    let allowed = (POINTS * with).max(OF_DIFFERENCE * saved.mean.abs()) + saved.half_width;
    let rest = average(&|(on, _)| on.features_us(setting.rest))
        - average(&|(_, off)| mean_of(off, |off| off.features_us(setting.rest)));
    let is_close = |us: f64| (us - saved.mean).abs() <= allowed;
    let has_rest = !setting.rest.is_empty();
    let on: Vec<&Measured> = pairs.iter().map(|(on, _)| *on).collect();
    let has = |measured: &&&Measured| {
        let mut findings = measured.findings.iter();
        findings.any(|finding| setting.findings.contains(&finding.as_str()))
    };
    let is_first = |measured: &&&Measured| {
        let first = measured.findings.first();
        first.is_some_and(|finding| setting.findings.contains(&finding.as_str()))
    };
    let found = on.iter().filter(has).count();
    Some(Row {
        setting: setting.name,
        title: setting.title,
        side: setting.side.name(),
        pairs: pairs.len(),
        with_us: with,
        without_us: average(&|(_, off)| mean_of(off, Measured::us_per_request)),
        saved_us: saved,
        attributed_us: attributed,
        allowed_us: allowed,
        within: attributed.map(is_close),
        within_with_rest: attributed
            .filter(|_| has_rest)
            .map(|attributed| is_close(attributed + rest)),
        elsewhere: elsewhere(features, &pairs),
        found,
        first: on.iter().filter(is_first).count(),
        found_enough: setting
            .found
            .map(|least| exact(found) >= least * exact(on.len())),
    })
}

/// Windows without any setting, and the findings among theirs that are about one.
pub fn wrong_findings(windows: &[Window]) -> (usize, Vec<String>) {
    let base: Vec<&Window> = windows
        .iter()
        .filter(|window| window.setting == BASE)
        .collect();
    let known: Vec<&str> = findings_of_settings().collect();
    let wrong = base
        .iter()
        .flat_map(|window| [&window.client, &window.server])
        .flat_map(|measured| &measured.findings)
        .filter(|finding| known.contains(&finding.as_str()))
        .cloned()
        .collect();
    (base.len(), wrong)
}

/// The window with the setting and those without of each group that has both.
fn pairs<'a>(setting: &Setting, windows: &'a [Window]) -> Vec<(&'a Measured, Vec<&'a Measured>)> {
    let of = |name: &str, group: u32| -> Vec<&'a Measured> {
        windows
            .iter()
            .filter(|window| window.setting == name && window.group == group)
            .map(|window| window.side(setting.side))
            .collect()
    };
    let on = windows
        .iter()
        .filter(|window| window.setting == setting.name);
    on.map(|window| (window.side(setting.side), of(BASE, window.group)))
        .filter(|(_, off)| !off.is_empty())
        .collect()
}

fn elsewhere(features: &[&str], pairs: &[(&Measured, Vec<&Measured>)]) -> Vec<(String, f64)> {
    let mut changes: BTreeMap<&str, f64> = BTreeMap::new();
    for (on, off) in pairs {
        for (cell, us) in on.cells_us() {
            *changes.entry(cell).or_default() += us / exact(pairs.len());
        }
        for measured in off {
            for (cell, us) in measured.cells_us() {
                *changes.entry(cell).or_default() -= us / exact(off.len() * pairs.len());
            }
        }
    }
    let mut listed: Vec<(String, f64)> = changes
        .into_iter()
        .filter(|(cell, us)| us.abs() >= LISTED_US && !features.contains(&feature_of(cell)))
        .map(|(cell, us)| (cell.to_owned(), us))
        .collect();
    listed.sort_by(|(_, a), (_, b)| b.abs().total_cmp(&a.abs()));
    listed.truncate(LISTED);
    listed
}

fn mean_of(measured: &[&Measured], value: impl Fn(&Measured) -> f64) -> f64 {
    mean(&measured.iter().map(|one| value(one)).collect::<Vec<_>>())
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / exact(values.len().max(1))
}

#[expect(clippy::cast_precision_loss, reason = "numbers of windows are small")]
fn exact(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
