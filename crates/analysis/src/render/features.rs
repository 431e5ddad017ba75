//! Which feature of a diagnosis asked for the work of each stack, for a picture.

use std::collections::HashMap;

use profiler_model::{ProcessId, StackId};

/// The samples that are meant belong to more than one feature.
const MIXED: u16 = u16::MAX;
/// No sample yet.
pub(super) const NONE: u16 = MIXED - 1;

/// Features by number, and that of each stack of each process. At most 65,533 are told apart.
#[derive(Clone, Debug, Default)]
pub struct Features {
    pub(super) titles: Vec<String>,
    of: HashMap<(ProcessId, StackId), u16>,
}

impl Features {
    pub fn new(titles: Vec<String>) -> Self {
        Self {
            titles,
            of: HashMap::new(),
        }
    }

    /// Notes samples of a stack; threads of a process may have asked for different things with it.
    pub fn note(&mut self, process: ProcessId, stack: StackId, feature: usize) {
        let feature = u16::try_from(feature).unwrap_or(MIXED);
        let known = self.of.entry((process, stack)).or_insert(NONE);
        *known = join(*known, if feature == NONE { MIXED } else { feature });
    }

    pub(super) fn of(&self, process: ProcessId, stack: StackId) -> u16 {
        self.of.get(&(process, stack)).copied().unwrap_or(MIXED)
    }
}

/// The feature of what is of either.
pub(super) fn join(known: u16, other: u16) -> u16 {
    match (known, other) {
        (NONE, feature) | (feature, NONE) => feature,
        (a, b) if a == b => a,
        _ => MIXED,
    }
}

/// How a file has it: 0 for several features or none, else the number of the feature plus one.
pub(super) fn code(feature: u16) -> u64 {
    if feature >= NONE {
        0
    } else {
        u64::from(feature) + 1
    }
}
