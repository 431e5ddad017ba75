//! Virtual function tables: which function is in which slot of which class.
//!
//! A table is recognised by its head: the distance to the start of the object, which is zero or
//! negative, then the pointer to the type information of its class. Slots follow. Objects lie
//! close together, so a table ends at the first word that is not a function, and also at a word that
//! something else refers to: there another object begins.

use super::{
    classes::{ClassId, Classes},
    memory::Memory,
    sections::Sections,
};

/// Slots of one table that are read.
const TABLE_LIMIT: u16 = 4096;
/// Words of all tables that are looked at.
const STEPS_LIMIT: usize = 16_000_000;
/// Slots of all tables. Envoy has 147,000.
const SLOTS_LIMIT: usize = 1_000_000;
/// Largest object that has a second table at its end.
const OBJECT_LIMIT: u64 = 1 << 32;

/// A function in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot {
    pub(super) function: u64,
    pub(super) class: ClassId,
    pub(super) index: u16,
}

/// All slots that hold functions of this file, by function, class and index.
pub(super) fn slots(memory: &Memory, classes: &Classes, sections: &Sections) -> Vec<Slot> {
    let mut slots = Vec::new();
    let (Some(first), Some(last)) = (classes.all.first(), classes.all.last()) else {
        return slots;
    };
    let infos = first.address..=last.address;
    let mut steps = STEPS_LIMIT;
    for (address, value) in memory.pointers() {
        if !infos.contains(&value) {
            continue;
        }
        let Some(class) = classes.at(value) else {
            continue;
        };
        let distance = memory.integer(address.wrapping_sub(8));
        if distance.is_none_or(|distance| distance.wrapping_neg() >= OBJECT_LIMIT) {
            continue;
        }
        for index in 0..TABLE_LIMIT {
            let place = address.wrapping_add(8 + u64::from(index) * 8);
            if index > 0 && memory.is_referenced(place) {
                break;
            }
            let Some(function) = memory.pointer(place) else {
                break;
            };
            let Some(left) = steps.checked_sub(1) else {
                break;
            };
            steps = left;
            if sections.is_code(function) {
                if slots.len() >= SLOTS_LIMIT {
                    break;
                }
                slots.push(Slot {
                    function,
                    class,
                    index,
                });
            } else if !is_elsewhere(function) {
                break;
            }
        }
    }
    slots.sort_unstable();
    slots.dedup();
    slots
}

/// A function of another file, which a class inherits.
fn is_elsewhere(pointer: u64) -> bool {
    pointer >= super::memory::EXTERNAL
}
