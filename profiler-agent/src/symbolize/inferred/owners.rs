//! Decides which class a function belongs to.
//!
//! A function that a class inherits is in the tables of many classes. It belongs to the one that
//! all others derive from. Where that class has no table of its own, as an abstract one whose
//! constructor was inlined, it is the closest class that all derive from. Where there is none,
//! functions of equal code were folded into one, and nothing is said; and where that happened
//! often, nothing is concluded from common bases either.

use super::{
    classes::{ClassId, Classes},
    memory::Bits,
    vtables::Slot,
};

/// Classes that one class may derive from; beyond that its functions stay unnamed.
const LINEAGE_LIMIT: usize = 128;
/// Steps through lists of bases for all functions of a file. Envoy takes 2 million.
const STEPS_LIMIT: usize = 100_000_000;
/// One folded function in so many makes common bases doubtful. The function that stands for pure
/// virtual ones is always folded.
const FOLDED_SHARE: usize = 500;

/// A function with its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) function: u64,
    pub(super) class: ClassId,
    /// Number of the slot in the class's tables; `None` when it is in several.
    pub(super) slot: Option<u16>,
}

enum Verdict {
    /// This class has the function in its own table, and all others inherit it.
    Own(Owner),
    /// All inherit it from this class, or from a base of it.
    Common(Owner),
    /// Classes that have nothing in common.
    Folded,
    Unclear,
}

/// The functions whose class is certain, in order of their addresses.
pub(super) fn decide(classes: &Classes, slots: Vec<Slot>) -> Vec<Owner> {
    let mut has_table = Bits::new(classes.all.len());
    for slot in &slots {
        has_table.set(slot.class as usize);
    }
    let (mut owners, mut common) = (Vec::new(), Vec::new());
    let mut folded = 0;
    let mut bases = Lineages {
        classes,
        steps: STEPS_LIMIT,
    };
    for group in slots.chunk_by(|one, next| one.function == next.function) {
        match decide_one(&mut bases, &has_table, group) {
            Verdict::Own(owner) => owners.push(owner),
            Verdict::Common(owner) => common.push(owner),
            Verdict::Folded => folded += 1,
            Verdict::Unclear => {}
        }
    }
    if folded <= owners.len() / FOLDED_SHARE + 2 {
        owners.extend(common);
        owners.sort_unstable_by_key(|owner| owner.function);
    }
    owners
}

/// `group` holds the slots of one function, in order of classes.
fn decide_one(bases: &mut Lineages<'_>, has_table: &Bits, group: &[Slot]) -> Verdict {
    let mut owners = group
        .chunk_by(|one, next| one.class == next.class)
        .filter_map(|slots| slots.first())
        .map(|slot| slot.class);
    let Some(first) = owners.next() else {
        return Verdict::Unclear;
    };
    // What all of the classes derive from, themselves included.
    let Some(mut shared) = bases.of(first) else {
        return Verdict::Unclear;
    };
    for class in owners {
        let Some(lineage) = bases.of(class) else {
            return Verdict::Unclear;
        };
        shared.retain(|class| lineage.contains(class));
        if shared.is_empty() {
            return Verdict::Folded;
        }
    }
    let Some(class) = closest(bases, &shared) else {
        return Verdict::Unclear;
    };
    let owner = |slot| Owner {
        function: group[0].function,
        class,
        slot,
    };
    let start = group.partition_point(|slot| slot.class < class);
    let end = group.partition_point(|slot| slot.class <= class);
    let own = &group[start..end];
    if !own.is_empty() {
        let slot = match own {
            [slot] => Some(slot.index),
            _ => None,
        };
        // What is inherited stays in its slot; in another one it is another function.
        return if stays_in(own, group) {
            Verdict::Own(owner(slot))
        } else {
            Verdict::Unclear
        };
    }
    let is_one_slot = group.iter().all(|slot| slot.index == group[0].index);
    if is_one_slot && !has_table.get(class as usize) {
        return Verdict::Common(owner(Some(group[0].index)));
    }
    Verdict::Unclear
}

/// The one class that is derived from all others of a set.
fn closest(bases: &mut Lineages<'_>, shared: &[ClassId]) -> Option<ClassId> {
    let class = shared
        .iter()
        .copied()
        .max_by_key(|class| bases.classes.depth(*class))?;
    let lineage = bases.of(class)?;
    let has_all = shared.iter().all(|other| lineage.contains(other));
    has_all.then_some(class)
}

/// Every class has the function in one of the slots that `own` has it in.
fn stays_in(own: &[Slot], group: &[Slot]) -> bool {
    let has = |index: u16| own.binary_search_by_key(&index, |slot| slot.index).is_ok();
    group
        .chunk_by(|one, next| one.class == next.class)
        .all(|slots| slots.iter().any(|slot| has(slot.index)))
}

/// Lists of bases, up to a limit of work.
struct Lineages<'a> {
    classes: &'a Classes,
    steps: usize,
}

impl Lineages<'_> {
    /// The class and all that it derives from; `None` when these are too many.
    fn of(&mut self, class: ClassId) -> Option<Vec<ClassId>> {
        if self.steps == 0 {
            return None;
        }
        let lineage = self.classes.lineage(class, LINEAGE_LIMIT);
        let length = lineage.as_ref().map_or(LINEAGE_LIMIT, Vec::len);
        self.steps = self.steps.saturating_sub(length * length);
        lineage
    }
}
