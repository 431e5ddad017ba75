//! Decides which class a function belongs to.
//!
//! A function that a class inherits is in the tables of many classes. It belongs to the one that
//! all others derive from. Where that class has no table of its own, as an abstract one whose
//! constructor was inlined, it is the closest class that all derive from, if most that derive from
//! it have the function; it is what they inherit unless they override it. Compilers and linkers
//! fold functions of equal code into one, which then is in tables of classes that have nothing in
//! common, or few of the classes that have: nothing is reported about those.

use super::{
    classes::{ClassId, Classes},
    memory::Bits,
    vtables::Slot,
};

/// Classes that one class may derive from; beyond that its functions stay unnamed.
const LINEAGE_LIMIT: usize = 128;
/// Steps through lists of bases for all functions of a file. Envoy takes 5 million.
const STEPS_LIMIT: usize = 100_000_000;
/// Classes with a table that must derive from a base without one before it is named.
const HEIRS: u32 = 3;

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
    /// All may inherit it from this class, or from a base of it.
    Common { owner: Owner, holders: u32 },
    /// Nothing that can be said is certain.
    Unclear,
}

/// The functions whose class is certain, in order of their addresses.
pub(super) fn decide(classes: &Classes, slots: &[Slot]) -> Vec<Owner> {
    let mut has_table = Bits::new(classes.all.len());
    for slot in slots {
        has_table.set(slot.class as usize);
    }
    let (mut owners, mut common) = (Vec::new(), Vec::new());
    let mut bases = Lineages {
        classes,
        steps: STEPS_LIMIT,
    };
    for group in slots.chunk_by(|one, next| one.function == next.function) {
        match decide_one(&mut bases, &has_table, group) {
            Verdict::Own(owner) => owners.push(owner),
            Verdict::Common { owner, holders } => common.push((owner, holders)),
            Verdict::Unclear => {}
        }
    }
    owners.extend(certain(&mut bases, &has_table, common));
    owners.sort_unstable_by_key(|owner| owner.function);
    owners
}

/// Of the functions that many classes may inherit from one without a table, those that are the
/// only one in their slot and that most heirs have.
fn certain(
    bases: &mut Lineages<'_>,
    has_table: &Bits,
    mut common: Vec<(Owner, u32)>,
) -> Vec<Owner> {
    let mut heirs: Vec<u32> = vec![0; bases.classes.all.len()];
    for class in 0..u32::try_from(heirs.len()).unwrap_or(u32::MAX) {
        if has_table.get(class as usize) {
            for base in bases.of(class).unwrap_or_default() {
                heirs[base as usize] += 1;
            }
        }
    }
    common.sort_unstable_by_key(|(owner, _)| (owner.class, owner.slot));
    common
        .chunk_by(|(one, _), (next, _)| (one.class, one.slot) == (next.class, next.slot))
        .filter_map(|rivals| {
            let &[(owner, holders)] = rivals else {
                return None;
            };
            let heirs = heirs[owner.class as usize];
            (heirs >= HEIRS && holders.saturating_mul(2) >= heirs).then_some(owner)
        })
        .collect()
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
            return Verdict::Unclear;
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
        // In one slot, so each class is there once.
        return Verdict::Common {
            owner: owner(Some(group[0].index)),
            holders: u32::try_from(group.len()).unwrap_or(u32::MAX),
        };
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
