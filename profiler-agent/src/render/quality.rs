//! How good the names of a profile are, by samples.

use std::collections::{BTreeMap, HashMap};

use crate::model::{FrameSpace, ModuleId, NameClass, Profile, StackId};

/// Files without names that are listed.
const MODULES_LIMIT: usize = 50;

/// A file whose frames lack exact names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoorModule {
    /// Untrusted text.
    pub path: String,
    /// Empty when the file has none, so that no symbol file can be given for it.
    pub build_id: Vec<u8>,
    pub unnamed: u64,
    pub inferred: u64,
}

/// Counts of user frames: a frame counts once for each sample whose stack has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameQuality {
    pub exact: u64,
    pub inferred: u64,
    pub unnamed: u64,
    /// The same by [`crate::model::NameSource::name`].
    pub sources: BTreeMap<&'static str, u64>,
    /// Samples with at least one user frame, and those of them with at least one name.
    pub samples: u64,
    pub samples_with_a_name: u64,
    /// Files without exact names, the most frames first.
    pub modules: Vec<PoorModule>,
}

impl NameQuality {
    pub fn frames(&self) -> u64 {
        self.exact
            .saturating_add(self.inferred)
            .saturating_add(self.unnamed)
    }

    /// `part` of all frames in percent; 0 without frames.
    #[expect(clippy::cast_precision_loss, reason = "a share needs few digits")]
    pub fn percent(&self, part: u64) -> f64 {
        part as f64 * 100.0 / self.frames().max(1) as f64
    }
}

/// Counts the names of a profile, which must have passed [`Profile::check`].
pub fn names(profile: &Profile) -> NameQuality {
    let mut stacks: HashMap<StackId, u64> = HashMap::new();
    for row in &profile.samples {
        let count = stacks.entry(row.stack).or_default();
        *count = count.saturating_add(row.count);
    }
    let mut quality = NameQuality::default();
    let mut modules: HashMap<ModuleId, (u64, u64)> = HashMap::new();
    for (stack, count) in stacks {
        let frames = profile.stacks[stack as usize].frames.iter();
        let user = frames
            .map(|id| &profile.frames[*id as usize])
            .filter(|frame| frame.space == FrameSpace::User);
        let (mut any, mut named) = (false, false);
        for frame in user {
            any = true;
            let add = |to: &mut u64| *to = to.saturating_add(count);
            add(quality.sources.entry(frame.source.name()).or_default());
            match frame.source.class() {
                NameClass::Exact => {
                    named = true;
                    add(&mut quality.exact);
                }
                NameClass::Inferred => {
                    named = true;
                    add(&mut quality.inferred);
                    add(&mut modules.entry(frame.module).or_default().1);
                }
                NameClass::Unnamed => {
                    add(&mut quality.unnamed);
                    add(&mut modules.entry(frame.module).or_default().0);
                }
            }
        }
        quality.samples = quality.samples.saturating_add(u64::from(any) * count);
        quality.samples_with_a_name = quality
            .samples_with_a_name
            .saturating_add(u64::from(named) * count);
    }
    quality.modules = poor_modules(profile, modules);
    quality
}

fn poor_modules(profile: &Profile, counts: HashMap<ModuleId, (u64, u64)>) -> Vec<PoorModule> {
    // Files that only differ in their kind are one for people.
    let mut merged: BTreeMap<(String, Vec<u8>), (u64, u64)> = BTreeMap::new();
    for (module, (unnamed, inferred)) in counts {
        let module = &profile.modules[module as usize];
        let path = match profile.text(module.path) {
            "" => super::names::module_name(profile, module),
            path => path,
        };
        let counts = merged
            .entry((path.to_owned(), module.build_id.clone()))
            .or_default();
        counts.0 = counts.0.saturating_add(unnamed);
        counts.1 = counts.1.saturating_add(inferred);
    }
    let mut modules: Vec<PoorModule> = merged
        .into_iter()
        .map(|((path, build_id), (unnamed, inferred))| PoorModule {
            path,
            build_id,
            unnamed,
            inferred,
        })
        .collect();
    modules.sort_by_key(|module| std::cmp::Reverse(module.unnamed.saturating_add(module.inferred)));
    modules.truncate(MODULES_LIMIT);
    modules
}
