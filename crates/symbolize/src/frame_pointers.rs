//! How much of a program's code keeps frame pointers, according to its unwind table.
//!
//! A function that keeps one computes its frame from that register somewhere; one that never
//! moves its frame needs none; the others have a frame that only the unwind table can find.

use std::fs::File;

use gimli::{
    BaseAddresses, CallFrameInstruction, CieOrFde, EhFrame, EndianSlice, LittleEndian, Register,
    UnwindSection as _,
};
use profiler_image::elf_layout::{Layout, read_range};
use profiler_model::percent;
use profiler_unwind::Machine;

/// Largest table that is read.
const TABLE_LIMIT: u64 = 96 << 20;
/// Entries that are looked at.
const ENTRIES_LIMIT: usize = 1_000_000;

/// Bytes of code by what their functions do with the frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FramePointers {
    pub functions: u64,
    pub with_bytes: u64,
    pub without_bytes: u64,
    pub frameless_bytes: u64,
}

impl FramePointers {
    /// `part` of all code in percent.
    pub fn percent(&self, part: u64) -> f64 {
        let all = self
            .with_bytes
            .saturating_add(self.frameless_bytes)
            .saturating_add(self.without_bytes);
        percent(part, all)
    }
}

/// Reads the table of a program; `None` when it has none that can be read.
pub(super) fn measure(file: &File, layout: &Layout) -> Option<FramePointers> {
    let machine = Machine::of_elf(layout.machine)?;
    let register = Register(u16::from(machine.frame_pointer()));
    let section = layout.section(".eh_frame")?;
    let what = "unwind table";
    let data = read_range(file, section.offset, section.bytes, TABLE_LIMIT, what).ok()?;
    let mut table: EhFrame<EndianSlice<'_, LittleEndian>> = EhFrame::new(&data, LittleEndian);
    table.set_address_size(8);
    let bases = BaseAddresses::default().set_eh_frame(section.address);
    let mut found = FramePointers::default();
    let mut entries = table.entries(&bases);
    for _ in 0..ENTRIES_LIMIT {
        let Ok(Some(entry)) = entries.next() else {
            break;
        };
        let CieOrFde::Fde(partial) = entry else {
            continue;
        };
        let Ok(entry) = partial.parse(EhFrame::cie_from_offset) else {
            continue;
        };
        found.functions += 1;
        let mut instructions = entry.instructions(&table, &bases);
        let (mut keeps, mut moves) = (false, false);
        while let Ok(Some(instruction)) = instructions.next() {
            match instruction {
                CallFrameInstruction::DefCfa { register: base, .. }
                | CallFrameInstruction::DefCfaRegister { register: base } => {
                    keeps |= base == register;
                    moves = true;
                }
                CallFrameInstruction::DefCfaOffset { .. }
                | CallFrameInstruction::DefCfaExpression { .. } => moves = true,
                _ => {}
            }
        }
        let bytes = match (keeps, moves) {
            (true, _) => &mut found.with_bytes,
            (false, true) => &mut found.without_bytes,
            (false, false) => &mut found.frameless_bytes,
        };
        *bytes = bytes.saturating_add(entry.len());
    }
    (found.functions > 0).then_some(found)
}
