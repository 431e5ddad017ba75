//! Finds the descriptions of a range of addresses.
//!
//! `.eh_frame_hdr` is a table of (function, description) in ascending order that is searched in the
//! file. Files without it have their `.eh_frame` read once from its beginning to its end.

use std::fs::File;

use profiler_image::elf_layout::{Layout, Segment};

use super::{
    cfi::{Decoder, Section},
    source::Window,
};

/// Descriptions of one file that are kept when there is no header. Chromium, the largest program
/// seen, has 300,000.
const SCANNED_LIMIT: usize = 1 << 20;
/// Most of `.eh_frame` that is read when there is no header.
const SCANNED_BYTES: u64 = 256 << 20;

/// `DW_EH_PE_pcrel | DW_EH_PE_sdata4`, `DW_EH_PE_udata4` and `DW_EH_PE_datarel | DW_EH_PE_sdata4`:
/// what every linker writes.
const HEADER_ENCODINGS: [u8; 4] = [1, 0x1b, 0x03, 0x3b];

/// The descriptions of a file, by address.
#[derive(Debug)]
pub(crate) struct FdeIndex {
    pub(crate) section: Section,
    entries: Entries,
}

#[derive(Debug)]
enum Entries {
    /// A table in the file.
    Table { offset: u64, count: u64, base: u64 },
    /// (function, description) in ascending order.
    List(Vec<(u64, u64)>),
}

impl FdeIndex {
    /// None when the file has no descriptions.
    pub(crate) fn find(file: &File, layout: &Layout, decoder: NewDecoder<'_>) -> Option<Self> {
        if let Some(header) = layout.eh_frame_header
            && let Some(index) = Self::from_header(file, layout, header)
        {
            return Some(index);
        }
        let section = section(layout)?;
        let list = scan(file, section, &mut decoder(section));
        (!list.is_empty()).then_some(Self {
            section,
            entries: Entries::List(list),
        })
    }

    fn from_header(file: &File, layout: &Layout, header: Segment) -> Option<Self> {
        let mut window = Window::new(file);
        if window.bytes(header.offset, 4)? != HEADER_ENCODINGS {
            return None;
        }
        let to_frames = window.word32(header.offset.checked_add(4)?)?.cast_signed();
        let count = u64::from(window.word32(header.offset.checked_add(8)?)?);
        if count == 0 || count.checked_mul(8)?.checked_add(12)? > header.bytes {
            return None;
        }
        let address = header
            .address
            .wrapping_add(4)
            .wrapping_add_signed(i64::from(to_frames));
        let known = section(layout).filter(|section| section.address == address);
        // Without section headers: both lie in one segment, which all linkers see to.
        let section = known.or_else(|| {
            let size = file.metadata().ok()?.len();
            let offset = header
                .offset
                .wrapping_add(address.wrapping_sub(header.address));
            Some(Section {
                offset,
                address,
                bytes: size.checked_sub(offset)?,
            })
        })?;
        Some(Self {
            section,
            entries: Entries::Table {
                offset: header.offset.checked_add(12)?,
                count,
                base: header.address,
            },
        })
    }

    pub(crate) fn len(&self) -> u64 {
        match &self.entries {
            Entries::Table { count, .. } => *count,
            Entries::List(list) => list.len() as u64,
        }
    }

    /// Function and description with a number below [`Self::len`].
    pub(crate) fn entry(&self, window: &mut Window<'_>, number: u64) -> Option<(u64, u64)> {
        match &self.entries {
            Entries::List(list) => list.get(usize::try_from(number).ok()?).copied(),
            Entries::Table {
                offset,
                count,
                base,
            } => {
                if number >= *count {
                    return None;
                }
                let at = offset.checked_add(number.checked_mul(8)?)?;
                let relative = |word: u32| base.wrapping_add_signed(i64::from(word.cast_signed()));
                let function = relative(window.word32(at)?);
                Some((function, relative(window.word32(at.checked_add(4)?)?)))
            }
        }
    }

    /// The number of the first function above an address.
    pub(crate) fn first_above(&self, window: &mut Window<'_>, address: u64) -> Option<u64> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.entry(window, middle)?.0 <= address {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Some(low)
    }
}

/// Makes a decoder for a section.
pub(crate) type NewDecoder<'decode> = &'decode dyn Fn(Section) -> Decoder<'decode>;

fn section(layout: &Layout) -> Option<Section> {
    let section = layout.section(".eh_frame")?;
    (section.bytes > 0 && !section.compressed).then_some(Section {
        offset: section.offset,
        address: section.address,
        bytes: section.bytes,
    })
}

/// Every description of a section.
fn scan(file: &File, section: Section, decoder: &mut Decoder<'_>) -> Vec<(u64, u64)> {
    let mut list = Vec::new();
    let mut window = Window::new(file);
    let mut at = 0u64;
    while at.saturating_add(8) <= section.bytes.min(SCANNED_BYTES) && list.len() < SCANNED_LIMIT {
        let offset = section.offset.saturating_add(at);
        let Some(length) = window.word32(offset) else {
            break;
        };
        // Zero ends a section; what is left of a longer one was put behind it by a linker script.
        if length == u32::MAX {
            break;
        }
        if length >= 8 && window.word32(offset.saturating_add(4)) != Some(0) {
            let address = section.address.wrapping_add(at);
            if let Some((start, _)) = decoder.range(address) {
                list.push((start, address));
            }
        }
        at = at.saturating_add(4).saturating_add(u64::from(length));
    }
    list.sort_unstable();
    list
}
