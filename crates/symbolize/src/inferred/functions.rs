//! Where functions start and end, from the unwind table.

use gimli::{BaseAddresses, CieOrFde, EhFrame, EndianSlice, LittleEndian, UnwindSection as _};

use super::{NotInferred, input::Input, sections::Sections};

/// Largest unwind table. Envoy's has 10 MB.
const BYTES_LIMIT: u64 = 64 << 20;
/// Functions that are kept, of 16 bytes each.
const FUNCTIONS_LIMIT: usize = 1_000_000;

/// Bytes of common entries that are parsed, repetitions included.
const COMMON_LIMIT: usize = 64 << 20;

/// One function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) start: u64,
    pub(super) bytes: u32,
}

/// All functions in order of their start; they do not overlap.
#[derive(Debug, Default)]
pub(super) struct Functions {
    pub(super) all: Vec<Function>,
}

impl Functions {
    pub(super) fn read(input: &mut Input<'_>, sections: &Sections) -> Result<Self, NotInferred> {
        let section = sections
            .named(".eh_frame")
            .ok_or(NotInferred::NoFunctions)?;
        if section.bytes > BYTES_LIMIT {
            return Err(NotInferred::TooLarge {
                what: "unwind table",
            });
        }
        let data = input.read(section.offset, section.bytes, "unwind table")?;
        let mut frames = EhFrame::new(&data, LittleEndian);
        frames.set_address_size(8);
        let mut all = parse(&frames, section.address);
        all.retain(|function| function.bytes > 0 && sections.is_code(function.start));
        all.sort_unstable_by_key(|function| function.start);
        all.dedup_by_key(|function| function.start);
        for index in 1..all.len() {
            let gap = all[index].start - all[index - 1].start;
            let previous = &mut all[index - 1];
            previous.bytes = previous.bytes.min(u32::try_from(gap).unwrap_or(u32::MAX));
        }
        if all.is_empty() {
            return Err(NotInferred::NoFunctions);
        }
        Ok(Self { all })
    }
}

/// The functions of the table up to its end or to its first malformed entry.
fn parse(frames: &EhFrame<EndianSlice<'_, LittleEndian>>, address: u64) -> Vec<Function> {
    let bases = BaseAddresses::default().set_eh_frame(address);
    let mut all = Vec::new();
    // Neighbours share their common entry, which is not worth parsing for each of them.
    let mut common = None;
    let mut left = COMMON_LIMIT;
    let mut entries = frames.entries(&bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else {
            continue;
        };
        let parsed = partial.parse(|frames, bases, offset| match &common {
            Some((at, entry)) if *at == offset => Ok(gimli::CommonInformationEntry::clone(entry)),
            _ => {
                let entry = frames.cie_from_offset(bases, offset)?;
                left = left.saturating_sub(entry.entry_len());
                common = Some((offset, entry.clone()));
                Ok(entry)
            }
        });
        let Ok(parsed) = parsed else { continue };
        if all.len() >= FUNCTIONS_LIMIT || left == 0 {
            break;
        }
        if let Ok(bytes) = u32::try_from(parsed.len()) {
            all.push(Function {
                start: parsed.initial_address(),
                bytes,
            });
        }
    }
    all
}
