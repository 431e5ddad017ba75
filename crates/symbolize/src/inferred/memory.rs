//! The data of the running program: its sections with the loader's relocations applied.

use super::{
    NotInferred,
    input::Input,
    sections::{Placement, Section, Sections, u64_at},
};

/// Bytes of all data sections. Envoy has 15 MB.
const BYTES_LIMIT: u64 = 64 << 20;
/// Sections that hold pointers to everything and no tables of classes: those belong to the data
/// that nothing writes after relocation.
const NO_TABLES: [&str; 4] = [".data", ".got", ".got.plt", ".tm_clone_table"];
/// Addresses from here stand for symbols of other files, see [`external`].
pub(super) const EXTERNAL: u64 = 0xe000_0000_0000_0000;

/// One bit for each place.
#[derive(Debug, Default)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    pub(super) fn new(places: usize) -> Self {
        Self(vec![0; places.div_ceil(64)])
    }

    pub(super) fn set(&mut self, place: usize) {
        if let Some(word) = self.0.get_mut(place / 64) {
            *word |= 1 << (place % 64);
        }
    }

    pub(super) fn get(&self, place: usize) -> bool {
        self.0
            .get(place / 64)
            .is_some_and(|word| word >> (place % 64) & 1 == 1)
    }
}

/// A data section.
#[derive(Debug)]
pub(super) struct Region {
    pub(super) address: u64,
    pub(super) bytes: Vec<u8>,
    /// Words that the loader turns into pointers.
    relocated: Bits,
    /// Words whose address something else refers to: objects begin there.
    referenced: Bits,
    /// Whether tables of classes can be in it.
    has_tables: bool,
}

impl Region {
    fn offset_of(&self, address: u64) -> Option<usize> {
        let offset = usize::try_from(address.checked_sub(self.address)?).ok()?;
        (offset < self.bytes.len()).then_some(offset)
    }
}

#[derive(Debug)]
pub(super) struct Memory {
    placement: Placement,
    /// In order of their addresses, without overlaps.
    pub(super) regions: Vec<Region>,
}

/// A pointer that leads out of the file: `addend` bytes into symbol number `symbol`.
pub(super) fn external(symbol: u32, addend: u64) -> u64 {
    EXTERNAL | u64::from(symbol) << 16 | addend & 0xffff
}

impl Memory {
    pub(super) fn load(input: &mut Input<'_>, sections: &Sections) -> Result<Self, NotInferred> {
        let what = "data sections";
        let mut wanted: Vec<&Section> = sections
            .all
            .iter()
            .filter(|section| section.is_data() && section.bytes > 0)
            .collect();
        wanted.sort_unstable_by_key(|section| section.address);
        // A relocation must have one place to go to.
        wanted.dedup_by(|next, kept| next.address < kept.address.saturating_add(kept.bytes));
        let total = wanted
            .iter()
            .try_fold(0u64, |sum, section| sum.checked_add(section.bytes));
        if total.is_none_or(|total| total > BYTES_LIMIT) {
            return Err(NotInferred::TooLarge { what });
        }
        let mut regions = Vec::with_capacity(wanted.len());
        for section in wanted {
            let bytes = input
                .read(section.offset, section.bytes, what)?
                .into_owned();
            let words = bytes.len() / 8 + 1;
            let has_pointers = match sections.placement {
                Placement::Fixed => true,
                Placement::Anywhere => section.is_writable(),
            };
            let places = if has_pointers { words } else { 0 };
            regions.push(Region {
                address: section.address,
                bytes,
                relocated: Bits::new(places),
                referenced: Bits::new(places),
                has_tables: has_pointers && !NO_TABLES.contains(&section.name.as_str()),
            });
        }
        Ok(Self {
            placement: sections.placement,
            regions,
        })
    }

    fn find(&self, address: u64) -> Option<(usize, usize)> {
        let after = self
            .regions
            .partition_point(|region| region.address <= address);
        let index = after.checked_sub(1)?;
        let offset = self.regions.get(index)?.offset_of(address)?;
        Some((index, offset))
    }

    /// Writes what the loader would write at a place and remembers that it is a pointer.
    pub(super) fn relocate(&mut self, place: u64, value: u64) {
        let Some((index, offset)) = self.find(place) else {
            return;
        };
        let region = &mut self.regions[index];
        if offset.is_multiple_of(8)
            && let Some(word) = region.bytes.get_mut(offset..offset + 8)
        {
            word.copy_from_slice(&value.to_le_bytes());
            region.relocated.set(offset / 8);
        }
    }

    /// Remembers that the word at a place, as it is in the file, is a pointer; returns it.
    pub(super) fn relocate_in_place(&mut self, place: u64) -> Option<u64> {
        let (index, offset) = self.find(place)?;
        let region = &mut self.regions[index];
        if !offset.is_multiple_of(8) {
            return None;
        }
        let value = u64_at(&region.bytes, offset)?;
        region.relocated.set(offset / 8);
        Some(value)
    }

    /// Remembers that something refers to an address.
    pub(super) fn refer(&mut self, address: u64) {
        if let Some((index, offset)) = self.find(address) {
            self.regions[index].referenced.set(offset / 8);
        }
    }

    /// True when something refers to the word at an address.
    pub(super) fn is_referenced(&self, address: u64) -> bool {
        self.find(address)
            .is_some_and(|(index, offset)| self.regions[index].referenced.get(offset / 8))
    }

    /// The pointer at an address, if there is one.
    pub(super) fn pointer(&self, address: u64) -> Option<u64> {
        let (index, offset) = self.find(address)?;
        self.pointer_in(&self.regions[index], offset)
    }

    fn pointer_in(&self, region: &Region, offset: usize) -> Option<u64> {
        let is_pointer = match self.placement {
            Placement::Fixed => true,
            Placement::Anywhere => region.relocated.get(offset / 8),
        };
        if !is_pointer || !offset.is_multiple_of(8) {
            return None;
        }
        u64_at(&region.bytes, offset).filter(|value| *value != 0)
    }

    /// The word at an address that is not a pointer.
    pub(super) fn integer(&self, address: u64) -> Option<u64> {
        let (index, offset) = self.find(address)?;
        let region = &self.regions[index];
        if region.relocated.get(offset / 8) || !offset.is_multiple_of(8) {
            return None;
        }
        u64_at(&region.bytes, offset)
    }

    /// The pointers among which tables of classes are, with their addresses in ascending order.
    pub(super) fn pointers(&self) -> impl Iterator<Item = (u64, u64)> {
        let regions = self.regions.iter().filter(|region| region.has_tables);
        regions.flat_map(move |region| {
            (0..region.bytes.len() / 8).filter_map(move |word| {
                let value = self.pointer_in(region, word * 8)?;
                Some((region.address.wrapping_add(word as u64 * 8), value))
            })
        })
    }

    /// The bytes from an address to the end of its section.
    pub(super) fn bytes(&self, address: u64) -> Option<&[u8]> {
        let (index, offset) = self.find(address)?;
        self.regions[index].bytes.get(offset..)
    }

    /// The zero-terminated text at an address, of `limit` bytes at most.
    pub(super) fn text(&self, address: u64, limit: usize) -> Option<&str> {
        let rest = self.bytes(address)?;
        let rest = rest.get(..limit.saturating_add(1)).unwrap_or(rest);
        let end = rest.iter().position(|byte| *byte == 0)?;
        std::str::from_utf8(&rest[..end]).ok()
    }
}
