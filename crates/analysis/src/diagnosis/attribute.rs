//! Which cell a sample lies in: who asked for the work (feature) by what kind of work it is
//! (mechanism).
//!
//! Frames are walked from the leaf to the root. The feature is that of the innermost frame that a
//! rule for a feature holds for, unless a feature that asks for all work below it is further to the
//! root and no boundary lies between. The mechanism is that of the innermost frame that a rule for a
//! mechanism holds for, not further to the root than the frame that gave the feature.

use std::{borrow::Cow, collections::HashMap};

use profiler_model::{
    FrameId, FrameSpace, NameClass, Profile, SampleRow, StackId, ThreadId, name_pattern::any,
};

use super::{
    file::Space,
    fit::{fit, own_member, plain},
    rules::{Decides, DiagnosisRules, NO_SYMBOLS, OTHER, Rule, UNATTRIBUTED},
    walk::{Seen, Walk},
};
use crate::render::names::{module_name, names_of_frames};

/// The evidence that a feature was recognised by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Grounds {
    Exact,
    Inferred,
    Thread,
    /// No rule held.
    None,
}

/// Where a sample belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attribution {
    /// Number for [`Attributions::feature_id`].
    pub(super) feature: usize,
    /// Number of the mechanism in the rules.
    pub(super) mechanism: usize,
    pub(super) feature_rule: Option<usize>,
    pub(super) mechanism_rule: Option<usize>,
    pub(super) grounds: Grounds,
    /// The frame that gave the feature, and which of its functions.
    pub(super) frame: Option<(FrameId, usize)>,
    /// At least half of the user frames have names.
    pub(super) named: bool,
}

/// The cells of all samples of a profile.
pub(super) struct Attributions<'a> {
    rules: &'a DiagnosisRules,
    /// Ids of the features; those of the rules first, then members of families.
    features: Vec<(String, usize)>,
    known: HashMap<(ThreadId, StackId), Attribution>,
}

impl<'a> Attributions<'a> {
    /// Attributes every sample of a profile, which must have passed [`Profile::check`].
    pub(super) fn of(rules: &'a DiagnosisRules, profile: &Profile) -> Self {
        let mut found = Self {
            rules,
            features: rules
                .feature_ids()
                .enumerate()
                .map(|(number, id)| (id.to_owned(), number))
                .collect(),
            known: HashMap::new(),
        };
        let mut walker = Walker::new(rules, profile);
        for row in &profile.samples {
            let key = (row.thread, row.stack);
            if !found.known.contains_key(&key) {
                let attribution = walker.attribute(row.thread, row.stack, &mut found.features);
                found.known.insert(key, attribution);
            }
        }
        found
    }

    /// The cell of a row of the profile that this was made from.
    pub(super) fn of_row(&self, row: &SampleRow) -> Attribution {
        self.known
            .get(&(row.thread, row.stack))
            .copied()
            .unwrap_or_else(|| Attribution {
                feature: self.rules.feature(NO_SYMBOLS).unwrap_or_default(),
                mechanism: self.rules.mechanism(OTHER).unwrap_or_default(),
                feature_rule: None,
                mechanism_rule: None,
                grounds: Grounds::None,
                frame: None,
                named: false,
            })
    }

    pub(super) fn feature_id(&self, feature: usize) -> &str {
        self.features.get(feature).map_or("", |(id, _)| id)
    }

    /// How many features there are: their numbers are below it.
    pub(super) fn features(&self) -> usize {
        self.features.len()
    }

    /// Number of the entry in the rules, and the name of the member of a family.
    pub(super) fn feature_entry(&self, feature: usize) -> (usize, Option<&str>) {
        let Some((id, entry)) = self.features.get(feature) else {
            return (0, None);
        };
        let member = (feature >= self.rules.features.len())
            .then(|| id.split_once(':').map_or(id.as_str(), |(_, name)| name));
        (*entry, member)
    }

    /// What people call a feature.
    pub(super) fn title(&self, feature: usize) -> String {
        let (entry, member) = self.feature_entry(feature);
        let title = self.rules.features.get(entry).map(|entry| &entry.title);
        title.map_or_else(String::new, |title| {
            title.replace("{name}", member.unwrap_or_default())
        })
    }

    pub(super) fn mechanism_id(&self, mechanism: usize) -> &str {
        self.rules
            .mechanisms
            .get(mechanism)
            .map_or("", |entry| entry.id.get_ref())
    }
}

/// What one function of a frame may be, by the rules of one set: the rules in their order, and for a
/// family the member's name.
type Candidates = Vec<(usize, Option<String>)>;

/// The innermost function first, for one frame and one set.
type FrameCandidates = Vec<Candidates>;

struct Walker<'a> {
    rules: &'a DiagnosisRules,
    profile: &'a Profile,
    /// Names of each frame, innermost first; never empty.
    names: Vec<Vec<Cow<'a, str>>>,
    /// By set and frame.
    candidates: HashMap<(usize, FrameId), FrameCandidates>,
    /// Rules of each set that tell a feature by thread or process alone.
    by_thread: Vec<Vec<usize>>,
    sets: Vec<usize>,
}

impl<'a> Walker<'a> {
    fn new(rules: &'a DiagnosisRules, profile: &'a Profile) -> Self {
        let sets = profile
            .processes
            .iter()
            .map(|process| rules.set_of(profile.text(process.comm), profile.text(process.exe)))
            .collect();
        let by_thread = rules
            .sets
            .iter()
            .map(|set| {
                let of_set =
                    |(_, rule): &(usize, &Rule)| rule.is_of(set.id.get_ref()) && !rule.has_frames();
                let rules = rules.rules.iter().enumerate().filter(of_set);
                rules.map(|(number, _)| number).collect()
            })
            .collect();
        Self {
            rules,
            profile,
            names: names_of_frames(profile),
            candidates: HashMap::new(),
            by_thread,
            sets,
        }
    }

    fn attribute(
        &mut self,
        thread: ThreadId,
        stack: StackId,
        features: &mut Vec<(String, usize)>,
    ) -> Attribution {
        let profile = self.profile;
        let process = profile.threads[thread as usize].process;
        let set = self.sets[process as usize];
        let frames = &profile.stacks[stack as usize].frames;
        for frame in frames {
            if !self.candidates.contains_key(&(set, *frame)) {
                let found = self.candidates_of(set, *frame);
                self.candidates.insert((set, *frame), found);
            }
        }
        let named = self.is_named(frames);
        let walk = self.walk(set, thread, frames);
        let other = self.rules.mechanism(OTHER).unwrap_or_default();
        let Some(found) = walk.feature() else {
            let by_thread = self.by_thread[set]
                .iter()
                .copied()
                .find(|rule| self.is_of_thread(*rule, thread));
            let by_rule = by_thread.map(|rule| &self.rules.rules[rule]);
            let feature = match by_rule.map(|rule| (&rule.decides, own_member(rule))) {
                Some((Decides::Feature(family), Some(member))) => {
                    number_of(features, self.rules, *family, member)
                }
                Some((Decides::Feature(feature), None)) => *feature,
                _ => {
                    let id = if named { UNATTRIBUTED } else { NO_SYMBOLS };
                    self.rules.feature(id).unwrap_or_default()
                }
            };
            let otherwise = by_rule.and_then(|rule| rule.otherwise);
            return Attribution {
                feature,
                mechanism: walk
                    .mechanism
                    .map_or(otherwise.unwrap_or(other), |(mechanism, _, _)| mechanism),
                feature_rule: by_thread,
                mechanism_rule: walk.mechanism.map(|(_, rule, _)| rule),
                grounds: by_thread.map_or(Grounds::None, |_| Grounds::Thread),
                frame: None,
                named,
            };
        };
        let mechanism = walk.mechanism.filter(|(_, _, place)| *place <= found.place);
        let feature = match &found.member {
            None => found.feature,
            Some(member) => number_of(features, self.rules, found.feature, member),
        };
        let frame = &profile.frames[found.frame as usize];
        Attribution {
            feature,
            mechanism: mechanism.map_or_else(
                || walk.otherwise.unwrap_or(other),
                |(mechanism, _, _)| mechanism,
            ),
            feature_rule: Some(found.rule),
            mechanism_rule: mechanism.map(|(_, rule, _)| rule),
            grounds: match frame.source.class() {
                NameClass::Inferred => Grounds::Inferred,
                NameClass::Exact | NameClass::Unnamed => Grounds::Exact,
            },
            frame: Some((found.frame, found.level)),
            named,
        }
    }

    /// What the frames from the leaf to the root say.
    fn walk(&self, set: usize, thread: ThreadId, frames: &[FrameId]) -> Walk {
        let mut walk = Walk::default();
        let mut place = 0;
        // Files that have a named frame which no rule knows, nearer to the leaf.
        let mut strange: Vec<u32> = Vec::new();
        // The frame that was called by the one that is looked at, and its place.
        let mut callee: Option<(FrameId, usize)> = None;
        for id in frames {
            let frame = &self.profile.frames[*id as usize];
            let Some(candidates) = self.candidates.get(&(set, *id)) else {
                continue;
            };
            let mut known = frame.functions.is_empty() || frame.space != FrameSpace::User;
            for (level, of_function) in candidates.iter().enumerate() {
                // Of the rules for features the first counts.
                let mut has_feature = false;
                for (number, member) in of_function {
                    let rule = &self.rules.rules[*number];
                    let gives_feature = matches!(rule.decides, Decides::Feature(_));
                    let nearest = !rule.entry.nearest || !strange.contains(&frame.module);
                    if (has_feature && gives_feature)
                        || !nearest
                        || !self.conditions_hold(rule, thread, frames)
                    {
                        continue;
                    }
                    known = true;
                    has_feature |= gives_feature;
                    let (asks, passes_on) = match rule.decides {
                        Decides::Feature(feature) => {
                            let entry = &self.rules.features[feature];
                            (
                                entry.asks,
                                entry.asks && self.passes_on(entry, callee, &walk),
                            )
                        }
                        Decides::Mechanism(_) | Decides::Boundary => (false, false),
                    };
                    walk.see(Seen {
                        rule: *number,
                        decides: &rule.decides,
                        asks: asks && !passes_on,
                        boundary: rule.entry.boundary || passes_on,
                        otherwise: rule.otherwise,
                        member: member.as_ref(),
                        place,
                        frame: *id,
                        level,
                    });
                }
                place += 1;
            }
            if !known {
                strange.push(frame.module);
            }
            callee = Some((*id, place - candidates.len()));
            if walk.is_done() {
                break;
            }
        }
        walk
    }

    /// Whether the function that a feature called hands a request on, to something that is known.
    fn passes_on(
        &self,
        entry: &super::file::FeatureEntry,
        callee: Option<(FrameId, usize)>,
        walk: &Walk,
    ) -> bool {
        let Some((callee, place)) = callee else {
            return false;
        };
        let below = walk
            .innermost
            .as_ref()
            .is_some_and(|found| found.place < place);
        below
            && self.names[callee as usize]
                .iter()
                .any(|name| any(&entry.passes_on, plain(name)))
    }

    /// The conditions that are not about the frame itself.
    fn conditions_hold(&self, rule: &Rule, thread: ThreadId, frames: &[FrameId]) -> bool {
        let has = |patterns: &[profiler_model::name_pattern::Pattern]| {
            frames.iter().any(|id| {
                self.names[*id as usize]
                    .iter()
                    .any(|name| any(patterns, plain(name)))
            })
        };
        let entry = &rule.entry;
        (entry.thread.is_empty() && entry.process.is_empty() || self.thread_fits(rule, thread))
            && (entry.with.is_empty() || has(&entry.with))
            && (entry.without.is_empty() || !has(&entry.without))
    }

    fn is_of_thread(&self, rule: usize, thread: ThreadId) -> bool {
        self.thread_fits(&self.rules.rules[rule], thread)
    }

    fn thread_fits(&self, rule: &Rule, thread: ThreadId) -> bool {
        let profile = self.profile;
        let thread = &profile.threads[thread as usize];
        let process = &profile.processes[thread.process as usize];
        let exe = profile.text(process.exe);
        let file = exe.rsplit('/').next().unwrap_or(exe);
        let entry = &rule.entry;
        (entry.thread.is_empty() || any(&entry.thread, profile.text(thread.name)))
            && (entry.process.is_empty()
                || any(&entry.process, profile.text(process.comm))
                || any(&entry.process, file))
    }

    /// Rules of the set whose patterns hold for the functions of a frame.
    fn candidates_of(&self, set: usize, id: FrameId) -> FrameCandidates {
        let frame = &self.profile.frames[id as usize];
        let set = self.rules.sets[set].id.get_ref();
        let space = match frame.space {
            FrameSpace::User => Space::User,
            FrameSpace::Kernel => Space::Kernel,
            FrameSpace::Marker => return Vec::new(),
        };
        let module = module_name(self.profile, &self.profile.modules[frame.module as usize]);
        let rules = || {
            let fits = move |(_, rule): &(usize, &Rule)| {
                rule.has_frames() && rule.entry.space == space && rule.is_of(set)
            };
            self.rules.rules.iter().enumerate().filter(fits)
        };
        self.names[id as usize]
            .iter()
            .map(|name| {
                let name = plain(name);
                rules()
                    .filter_map(|(number, rule)| Some((number, fit(rule, name, module)?)))
                    .collect()
            })
            .collect()
    }

    /// Whether at least half of the user frames have names; a stack without user frames is named.
    fn is_named(&self, frames: &[FrameId]) -> bool {
        let user = frames
            .iter()
            .map(|id| &self.profile.frames[*id as usize])
            .filter(|frame| frame.space == FrameSpace::User);
        let (mut all, mut named) = (0usize, 0usize);
        for frame in user {
            all += 1;
            named += usize::from(frame.source.class() != NameClass::Unnamed);
        }
        let only_markers = || {
            frames
                .iter()
                .all(|id| self.profile.frames[*id as usize].space == FrameSpace::Marker)
        };
        if all == 0 {
            return !only_markers();
        }
        named * 2 >= all
    }
}

/// The number of a member of a family; a new one is added.
fn number_of(
    features: &mut Vec<(String, usize)>,
    rules: &DiagnosisRules,
    family: usize,
    member: &str,
) -> usize {
    let id = rules.features[family].id.get_ref();
    let stem = id.strip_suffix('*').unwrap_or(id);
    let known = features
        .iter()
        .position(|(known, _)| known.strip_prefix(stem).is_some_and(|name| name == member));
    known.unwrap_or_else(|| {
        features.push((format!("{stem}{member}"), family));
        features.len() - 1
    })
}
