//! Sums of samples by cell, with their blocks of time.

use std::collections::{BTreeMap, HashMap};

use profiler_model::{
    FrameId, Profile, SampleRow, ThreadState,
    diagnosis::{
        CellChoice, Estimate, FeatureInfo, Matrix, MatrixCell, MatrixRow, MechanismInfo,
        RuleSamples,
    },
    printable::printable,
};

use super::{
    DiagnosisRules,
    attribute::{Attributions, Grounds},
    interval::share,
    rules::{NO_SYMBOLS, UNATTRIBUTED},
};
use crate::render::names::display_name;

/// Length of a block, as [`super::interval`] wants it.
const BLOCK_NS: u64 = 1_000_000_000;
/// Blocks of one profile; longer ones have longer blocks.
const MAX_BLOCKS: u64 = 600;
/// Frames that are kept as evidence of one finding.
const EVIDENCE: usize = 5;

/// Samples of one cell.
#[derive(Clone, Debug)]
pub(super) struct CellSum {
    pub(super) feature: usize,
    pub(super) mechanism: usize,
    pub(super) samples: u64,
    pub(super) ns: u64,
    /// Nanoseconds in each block of time.
    pub(super) blocks: Vec<u64>,
    rules: BTreeMap<usize, u64>,
    grounds: BTreeMap<Grounds, u64>,
    frames: HashMap<(FrameId, usize), (u64, u64)>,
}

/// All cells of a profile.
pub(super) struct CellSums<'a> {
    pub(super) rules: &'a DiagnosisRules,
    pub(super) attributions: Attributions<'a>,
    /// Most time first.
    pub(super) cells: Vec<CellSum>,
    pub(super) samples: u64,
    pub(super) ns: u64,
    /// Nanoseconds of all samples in each block of time.
    pub(super) blocks: Vec<u64>,
    blocking: Blocking,
}

/// Blocks of time of a profile.
#[derive(Clone, Copy, Debug)]
struct Blocking {
    from_ns: u64,
    bucket_ns: u64,
    block_ns: u64,
    count: usize,
}

impl Blocking {
    fn of(profile: &Profile) -> Self {
        let length = profile.to_ns.saturating_sub(profile.from_ns).max(1);
        let block_ns = BLOCK_NS.max(length.div_ceil(MAX_BLOCKS));
        Self {
            from_ns: profile.from_ns,
            bucket_ns: profile.bucket_ns,
            block_ns,
            count: usize::try_from(length.div_ceil(block_ns)).unwrap_or(usize::MAX),
        }
    }

    /// A sample's bucket may reach a little over the ends.
    fn of_row(self, row: &SampleRow) -> usize {
        let at = u64::from(row.bucket).saturating_mul(self.bucket_ns);
        let block = at.saturating_sub(self.from_ns) / self.block_ns;
        usize::try_from(block)
            .unwrap_or(usize::MAX)
            .min(self.count.saturating_sub(1))
    }
}

impl<'a> CellSums<'a> {
    /// Sums of the samples of a profile that were on a CPU.
    pub(super) fn of(rules: &'a DiagnosisRules, profile: &Profile) -> Self {
        let attributions = Attributions::of(rules, profile);
        let blocking = Blocking::of(profile);
        let mut sums = Self {
            rules,
            attributions,
            cells: Vec::new(),
            samples: 0,
            ns: 0,
            blocks: vec![0; blocking.count],
            blocking,
        };
        let mut places: HashMap<(usize, usize), usize> = HashMap::new();
        let on_cpu = |row: &&SampleRow| row.state == ThreadState::OnCpu;
        for row in profile.samples.iter().filter(on_cpu) {
            let found = sums.attributions.of_row(row);
            let block = sums.blocking.of_row(row);
            sums.samples = sums.samples.saturating_add(row.count);
            sums.ns = sums.ns.saturating_add(row.total_ns);
            add(&mut sums.blocks, block, row.total_ns);
            let place = *places
                .entry((found.feature, found.mechanism))
                .or_insert_with(|| {
                    sums.cells
                        .push(CellSum::new(found.feature, found.mechanism, blocking.count));
                    sums.cells.len() - 1
                });
            let Some(cell) = sums.cells.get_mut(place) else {
                continue;
            };
            cell.samples = cell.samples.saturating_add(row.count);
            cell.ns = cell.ns.saturating_add(row.total_ns);
            add(&mut cell.blocks, block, row.total_ns);
            for rule in [found.feature_rule, found.mechanism_rule]
                .into_iter()
                .flatten()
            {
                *cell.rules.entry(rule).or_default() += row.count;
            }
            *cell.grounds.entry(found.grounds).or_default() += row.count;
            if let Some(frame) = found.frame {
                let sum = cell.frames.entry(frame).or_default();
                sum.0 = sum.0.saturating_add(row.count);
                sum.1 = sum.1.saturating_add(row.total_ns);
            }
        }
        sums.cells
            .sort_by_key(|cell| (std::cmp::Reverse(cell.ns), cell.feature, cell.mechanism));
        sums
    }

    /// The block of time of a row.
    pub(super) fn block_of(&self, row: &SampleRow) -> usize {
        self.blocking.of_row(row)
    }

    /// Number of the feature of a sample.
    pub(super) fn feature_of(&self, row: &SampleRow) -> usize {
        self.attributions.of_row(row).feature
    }

    /// What people call a feature; `None`: no rule knows it.
    pub(super) fn known_title(&self, feature: usize) -> Option<String> {
        let id = self.attributions.feature_id(feature);
        let is_known = !matches!(id, UNATTRIBUTED | NO_SYMBOLS);
        is_known.then(|| self.attributions.title(feature))
    }

    /// The wire form.
    pub(super) fn matrix(&self, has_settings: &dyn Fn(&str) -> bool) -> Matrix {
        let mut by_feature: BTreeMap<usize, u64> = BTreeMap::new();
        for cell in &self.cells {
            *by_feature.entry(cell.feature).or_default() += cell.ns;
        }
        let mut features: Vec<(usize, u64)> = by_feature.into_iter().collect();
        features.sort_by_key(|(feature, ns)| (std::cmp::Reverse(*ns), *feature));
        let rows = features
            .iter()
            .map(|(feature, _)| self.row(*feature))
            .collect();
        let features = features
            .into_iter()
            .map(|(feature, _)| {
                let (entry, member) = self.attributions.feature_entry(feature);
                let entry = &self.rules.features[entry];
                let named = |text: &str| text.replace("{name}", member.unwrap_or_default());
                let id = self.attributions.feature_id(feature).to_owned();
                FeatureInfo {
                    settings: has_settings(&id),
                    id,
                    title: self.attributions.title(feature),
                    about: named(&entry.about),
                }
            })
            .collect();
        let mechanisms = self
            .rules
            .mechanisms
            .iter()
            .map(|mechanism| MechanismInfo {
                id: mechanism.id.get_ref().clone(),
                title: mechanism.title.clone(),
            })
            .collect();
        Matrix {
            features,
            mechanisms,
            rows,
            cells: self.cells.iter().map(|cell| self.cell(cell)).collect(),
        }
    }

    /// The sum of a feature's cells.
    fn row(&self, feature: usize) -> MatrixRow {
        let mut blocks = vec![0; self.blocks.len()];
        let mut samples = 0;
        for cell in self.cells.iter().filter(|cell| cell.feature == feature) {
            samples += cell.samples;
            for (sum, more) in blocks.iter_mut().zip(&cell.blocks) {
                *sum += more;
            }
        }
        let Estimate { value, low, high } = share(&blocks, &self.blocks, self.samples);
        MatrixRow {
            feature: self.attributions.feature_id(feature).to_owned(),
            samples,
            share_percent: value,
            low,
            high,
        }
    }

    fn cell(&self, cell: &CellSum) -> MatrixCell {
        let estimate = share(&cell.blocks, &self.blocks, self.samples);
        let mut rules: Vec<RuleSamples> = cell
            .rules
            .iter()
            .map(|(rule, samples)| RuleSamples {
                rule: self.rules.rules[*rule].name().to_owned(),
                samples: *samples,
            })
            .collect();
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.samples));
        MatrixCell {
            feature: self.attributions.feature_id(cell.feature).to_owned(),
            mechanism: self.attributions.mechanism_id(cell.mechanism).to_owned(),
            samples: cell.samples,
            ns: cell.ns,
            share_percent: estimate.value,
            low: estimate.low,
            high: estimate.high,
            rules,
        }
    }

    /// Cells that one of the choices holds for, each once.
    pub(super) fn chosen<'b>(
        &'b self,
        choices: &'b [CellChoice],
    ) -> impl Iterator<Item = &'b CellSum> {
        self.cells.iter().filter(|cell| {
            let feature = self.attributions.feature_id(cell.feature);
            let mechanism = self.attributions.mechanism_id(cell.mechanism);
            choices.iter().any(|choice| {
                choice.feature.as_deref().is_none_or(|id| id == feature)
                    && choice.mechanism.as_deref().is_none_or(|id| id == mechanism)
            })
        })
    }

    /// The share of all chosen cells together.
    pub(super) fn share_of(&self, choices: &[CellChoice]) -> Estimate {
        let mut blocks = vec![0; self.blocks.len()];
        for cell in self.chosen(choices) {
            for (sum, more) in blocks.iter_mut().zip(&cell.blocks) {
                *sum += more;
            }
        }
        share(&blocks, &self.blocks, self.samples)
    }

    /// Samples of the chosen cells, by the evidence for their features.
    pub(super) fn grounds_of(&self, choices: &[CellChoice]) -> BTreeMap<Grounds, u64> {
        let mut sums = BTreeMap::new();
        for cell in self.chosen(choices) {
            for (grounds, samples) in &cell.grounds {
                *sums.entry(*grounds).or_default() += samples;
            }
        }
        sums
    }

    /// Frames that gave the chosen cells, with samples and nanoseconds; most samples first.
    pub(super) fn evidence_of(
        &self,
        profile: &Profile,
        choices: &[CellChoice],
    ) -> Vec<(String, u64, u64)> {
        let mut sums: HashMap<String, (u64, u64)> = HashMap::new();
        for cell in self.chosen(choices) {
            for ((frame, level), (samples, ns)) in &cell.frames {
                let sum = sums.entry(frame_text(profile, *frame, *level)).or_default();
                sum.0 = sum.0.saturating_add(*samples);
                sum.1 = sum.1.saturating_add(*ns);
            }
        }
        let mut frames: Vec<(String, u64, u64)> = sums
            .into_iter()
            .map(|(frame, (samples, ns))| (frame, samples, ns))
            .collect();
        frames.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| a.0.cmp(&b.0)));
        frames.truncate(EVIDENCE);
        frames
    }

    /// Nanoseconds that a rule gave to a feature.
    pub(super) fn attributed_ns(&self) -> u64 {
        self.ns
            .saturating_sub(self.ns_of(UNATTRIBUTED))
            .saturating_sub(self.ns_of(NO_SYMBOLS))
    }

    /// Nanoseconds of a feature of the rules.
    pub(super) fn ns_of(&self, feature: &str) -> u64 {
        let of_feature = |cell: &&CellSum| self.attributions.feature_id(cell.feature) == feature;
        self.cells
            .iter()
            .filter(of_feature)
            .map(|cell| cell.ns)
            .sum()
    }
}

impl CellSum {
    fn new(feature: usize, mechanism: usize, blocks: usize) -> Self {
        Self {
            feature,
            mechanism,
            samples: 0,
            ns: 0,
            blocks: vec![0; blocks],
            rules: BTreeMap::new(),
            grounds: BTreeMap::new(),
            frames: HashMap::new(),
        }
    }
}

fn add(blocks: &mut [u64], block: usize, ns: u64) {
    if let Some(sum) = blocks.get_mut(block) {
        *sum = sum.saturating_add(ns);
    }
}

/// How a function of a frame reads; what could change the text around it is taken out.
pub(super) fn frame_text(profile: &Profile, frame: FrameId, level: usize) -> String {
    let frame = &profile.frames[frame as usize];
    let name = frame
        .functions
        .get(level)
        .map(|function| profile.text(function.name));
    match name {
        Some(name) if !name.is_empty() => printable(name).into_owned(),
        _ => printable(&display_name(profile, frame)).into_owned(),
    }
}
