//! Where functions begin and end according to the unwind table, found through `.eh_frame_hdr`.

use std::fs::File;

use gimli::{BaseAddresses, EhFrame, EhFrameHdr, EndianSlice, LittleEndian, UnwindSection as _};

use super::elf_layout::{Layout, read_range};

/// Largest sections that are read: Envoy's have 2 MB and 10 MB.
const INDEX_LIMIT: u64 = 8 << 20;
const FRAMES_LIMIT: u64 = 48 << 20;

/// The two sections, copied.
#[derive(Debug)]
pub struct FdeTable {
    index: Vec<u8>,
    frames: Vec<u8>,
    frames_address: u64,
    bases: BaseAddresses,
    address_bytes: u8,
}

impl FdeTable {
    /// `None` when the file has no such sections or more than is read.
    pub fn read(file: &File, layout: &Layout) -> Option<Self> {
        let index = layout.section(".eh_frame_hdr")?;
        let frames = layout.section(".eh_frame")?;
        let text = layout.section(".text").map_or(0, |text| text.address);
        let bases = BaseAddresses::default()
            .set_eh_frame_hdr(index.address)
            .set_eh_frame(frames.address)
            .set_text(text);
        let read = |offset, bytes, limit| read_range(file, offset, bytes, limit, "unwind table");
        Some(Self {
            index: read(index.offset, index.bytes, INDEX_LIMIT).ok()?,
            frames: read(frames.offset, frames.bytes, FRAMES_LIMIT).ok()?,
            frames_address: frames.address,
            bases,
            address_bytes: if layout.wide { 8 } else { 4 },
        })
    }

    /// Start and end of the entry that contains an address. One binary search and one entry.
    pub fn around(&self, address: u64) -> Option<(u64, u64)> {
        let index = EhFrameHdr::new(&self.index, LittleEndian)
            .parse(&self.bases, self.address_bytes)
            .ok()?;
        let table = index.table()?;
        // The search multiplies this number, which the file is free to choose.
        let (entries, _) = Iterator::size_hint(&table.iter(&self.bases));
        if entries > self.index.len() {
            return None;
        }
        let found = table.lookup(address, &self.bases).ok()?.direct().ok()?;
        let offset = usize::try_from(found.checked_sub(self.frames_address)?).ok()?;
        let mut frames: EhFrame<EndianSlice<'_, LittleEndian>> =
            EhFrame::new(&self.frames, LittleEndian);
        frames.set_address_size(self.address_bytes);
        let entry = frames
            .fde_from_offset(&self.bases, offset.into(), EhFrame::cie_from_offset)
            .ok()?;
        let (start, end) = (
            entry.initial_address(),
            entry.initial_address().checked_add(entry.len())?,
        );
        (start..end).contains(&address).then_some((start, end))
    }
}

#[cfg(test)]
mod tests {
    use profiler_test_programs::compile;

    use super::*;

    fn table() -> (FdeTable, Vec<u64>) {
        let dir = tempfile::tempdir().unwrap();
        let file = File::open(compile(dir.path(), "program", &[])).unwrap();
        let layout = Layout::read(&file).unwrap();
        let code = layout.section(".text").unwrap();
        let addresses = (code.address..code.address + code.bytes)
            .step_by(16)
            .collect();
        (FdeTable::read(&file, &layout).unwrap(), addresses)
    }

    #[test]
    fn entries_contain_the_addresses_that_they_are_found_by() {
        let (table, addresses) = table();
        let found = addresses.iter().filter_map(|at| {
            let (start, end) = table.around(*at)?;
            assert!(
                (start..end).contains(at),
                "{at:#x} is not in {start:#x} to {end:#x}"
            );
            Some(start)
        });
        assert!(found.count() > addresses.len() / 2, "most code has entries");
        for outside in [0, 1, u64::MAX] {
            assert_eq!(table.around(outside), None);
        }
    }

    #[test]
    fn damaged_tables_do_no_harm() {
        let (sound, addresses) = table();
        let ask = |table: &FdeTable| {
            for address in addresses.iter().step_by(8).chain(&[0, u64::MAX]) {
                if let Some((start, end)) = table.around(*address) {
                    assert!((start..end).contains(address));
                }
            }
        };
        let damaged = |index: Vec<u8>, frames: Vec<u8>| FdeTable {
            index,
            frames,
            bases: sound.bases.clone(),
            ..sound
        };
        for value in [0, 0x7f, 0x80, 0xff] {
            for at in 0..sound.index.len() {
                let mut index = sound.index.clone();
                index[at] = value;
                ask(&damaged(index, sound.frames.clone()));
            }
            for at in 0..sound.frames.len() {
                let mut frames = sound.frames.clone();
                frames[at] = value;
                ask(&damaged(sound.index.clone(), frames));
            }
        }
        ask(&damaged(Vec::new(), Vec::new()));
    }
}
