//! Bounds the work and memory that a file's debug information can cause.
//!
//! DWARF refers to itself: a few bytes can name a long list again and again, and entries can nest
//! as deep as the file is long. The library that answers questions follows all of that, nested
//! inlined functions by recursion. So before it sees the debug information, the headers of all
//! units are walked and what the library would keep of them is added up; and before it is asked
//! about an address, so are all entries of the units that it will parse for this address. What
//! exceeds the limits, or cannot be parsed, ends the use of the file's debug information: names
//! come from the symbol table alone.
//!
//! A large file is mostly entries, and few of its units are ever asked about.

use std::collections::HashSet;

use gimli::{
    AttributeValue, DebugInfoOffset, Dwarf, EndianSlice, LittleEndian, Range, Reader as _,
    Section as _, Unit, UnitHeader, UnitRef,
};

type Slice<'data> = EndianSlice<'data, LittleEndian>;

/// Deepest nesting of entries: a stack frame of the library for each inlined level must fit a
/// thread's stack of 2 MiB. Compilers reach about a hundred.
const DEPTH_LIMIT: isize = 320;
/// Units, each of which the library keeps as a structure.
const UNITS_LIMIT: usize = 200_000;
/// Abbreviations over all distinct tables.
const ABBREVIATIONS_LIMIT: usize = 500_000;
/// Address ranges over all entries.
const RANGES_LIMIT: usize = 2_000_000;
/// Address ranges of units, which are kept.
const UNIT_RANGES_LIMIT: usize = 500_000;
/// Files and directories over the line tables of all units.
const FILES_LIMIT: usize = 4_000_000;
/// Bytes of one unit's line program: each may become a row of 24 bytes.
const LINE_PROGRAM_LIMIT: usize = 4 << 20;

/// Why debug information is not used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DwarfRefused {
    #[error("debug information is malformed: {0}")]
    Malformed(#[from] gimli::Error),
    #[error("debug information exceeds the limit of {what}")]
    TooMuch { what: &'static str },
}

/// Debug sections by name; empty ones where the file has none.
pub(crate) trait Sections {
    fn section(&self, name: &str) -> &[u8];
}

/// Debug information whose headers were checked, and which of its units were.
#[derive(Debug)]
pub(crate) struct CheckedDwarf {
    totals: Totals,
    /// Sorted by their begin.
    ranges: Vec<UnitRange>,
    /// Offsets of the units whose entries were checked.
    entered: HashSet<usize>,
}

/// Code of a unit.
#[derive(Clone, Copy, Debug)]
struct UnitRange {
    begin: u64,
    end: u64,
    /// The largest end of this range and of those before it.
    max_end: u64,
    unit: usize,
}

#[derive(Debug, Default)]
struct Totals {
    units: usize,
    unit_ranges: usize,
    abbreviations: usize,
    ranges: usize,
    files: usize,
    line_bytes: usize,
}

fn add(
    total: &mut usize,
    more: usize,
    limit: usize,
    what: &'static str,
) -> Result<(), DwarfRefused> {
    *total = total.saturating_add(more);
    if *total > limit {
        Err(DwarfRefused::TooMuch { what })
    } else {
        Ok(())
    }
}

fn load(sections: &impl Sections) -> Result<Dwarf<Slice<'_>>, DwarfRefused> {
    let load = |id: gimli::SectionId| {
        Ok::<_, gimli::Error>(Slice::new(sections.section(id.name()), LittleEndian))
    };
    Ok(Dwarf::load(load)?)
}

impl CheckedDwarf {
    /// Checks the headers of all units.
    pub(crate) fn open(sections: &impl Sections) -> Result<Self, DwarfRefused> {
        let mut check = Headers {
            dwarf: load(sections)?,
            totals: Totals::default(),
            tables: HashSet::new(),
            ranges: Vec::new(),
        };
        let mut units = check.dwarf.units();
        while let Some(header) = units.next()? {
            add(&mut check.totals.units, 1, UNITS_LIMIT, "units")?;
            check.abbreviations(&header)?;
        }
        // Tables that units share are parsed once, here and by the library.
        check
            .dwarf
            .populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
        check.address_table()?;
        // Units that do not say where their code is may be asked about for any address.
        let mut placeless = Vec::new();
        let mut units = check.dwarf.units();
        while let Some(header) = units.next()? {
            let offset = header.debug_info_offset().map(|offset| offset.0);
            let unit = check.dwarf.unit(header)?;
            check.unit(&unit, offset, &mut placeless)?;
        }
        let Headers {
            totals, mut ranges, ..
        } = check;
        ranges.sort_unstable_by_key(|range| range.begin);
        let mut max_end = 0;
        for range in &mut ranges {
            max_end = max_end.max(range.end);
            range.max_end = max_end;
        }
        let mut checked = Self {
            totals,
            ranges,
            entered: HashSet::new(),
        };
        for unit in placeless {
            checked.enter(sections, unit)?;
        }
        Ok(checked)
    }

    /// Checks the units that the library parses when it is asked about an address. The result is how many there were that had
    /// not been checked.
    pub(crate) fn admit(
        &mut self,
        sections: &impl Sections,
        address: u64,
    ) -> Result<usize, DwarfRefused> {
        let before = self.ranges.partition_point(|range| range.begin <= address);
        let units: Vec<usize> = self.ranges[..before]
            .iter()
            .rev()
            .take_while(|range| address < range.max_end)
            .filter(|range| address < range.end && !self.entered.contains(&range.unit))
            .map(|range| range.unit)
            .collect();
        for unit in &units {
            self.enter(sections, *unit)?;
        }
        Ok(units.len())
    }

    /// An address that lies in no unit, so that asking about it parses none; 0 when all do, for
    /// the library adds one to it.
    pub(crate) fn address_outside(&self) -> u64 {
        let end = self.ranges.last().map_or(0, |range| range.max_end);
        if end == u64::MAX { 0 } else { end }
    }

    /// Walks all entries of a unit, once.
    fn enter(&mut self, sections: &impl Sections, unit: usize) -> Result<(), DwarfRefused> {
        if !self.entered.insert(unit) {
            return Ok(());
        }
        let dwarf = load(sections)?;
        let header = dwarf.debug_info.header_from_offset(DebugInfoOffset(unit))?;
        let unit = dwarf.unit(header)?;
        let mut entries = unit.entries_raw(None)?;
        while !entries.is_empty() {
            if entries.next_depth() > DEPTH_LIMIT {
                return Err(DwarfRefused::TooMuch { what: "nesting" });
            }
            let Some(abbreviation) = entries.read_abbreviation()? else {
                continue;
            };
            for specification in abbreviation.attributes() {
                if specification.name() != gimli::DW_AT_ranges {
                    entries.skip_attributes(std::slice::from_ref(specification))?;
                    continue;
                }
                let value = entries.read_attribute(*specification)?.value();
                let left = RANGES_LIMIT.saturating_sub(self.totals.ranges);
                let count = count_ranges(&dwarf, &unit, value, left)?;
                add(
                    &mut self.totals.ranges,
                    count,
                    RANGES_LIMIT,
                    "address ranges",
                )?;
            }
        }
        Ok(())
    }
}

/// The check of the headers.
struct Headers<'data> {
    dwarf: Dwarf<Slice<'data>>,
    totals: Totals,
    /// Offsets of abbreviation tables that were counted.
    tables: HashSet<usize>,
    ranges: Vec<UnitRange>,
}

impl<'data> Headers<'data> {
    /// Adds what a unit's header and its first entry make the library keep.
    fn unit(
        &mut self,
        unit: &Unit<Slice<'data>>,
        offset: Option<usize>,
        placeless: &mut Vec<usize>,
    ) -> Result<(), DwarfRefused> {
        if let Some(program) = &unit.line_program {
            let header = program.header();
            let files = header.file_names().len() + header.include_directories().len();
            add(&mut self.totals.files, files, FILES_LIMIT, "source files")?;
            let bytes = header.raw_program_buf().len();
            if bytes > LINE_PROGRAM_LIMIT {
                return Err(DwarfRefused::TooMuch {
                    what: "one line program",
                });
            }
            // Units have line programs of their own; only a hostile file uses one many times.
            let all = self.dwarf.debug_line.reader().len().saturating_mul(2);
            add(&mut self.totals.line_bytes, bytes, all, "line programs")?;
        }
        let Some(offset) = offset else {
            return Ok(());
        };
        let before = self.ranges.len();
        let mut ranges = UnitRef::new(&self.dwarf, unit).unit_ranges()?;
        while let Some(range) = ranges.next()? {
            add(
                &mut self.totals.unit_ranges,
                1,
                UNIT_RANGES_LIMIT,
                "unit ranges",
            )?;
            self.ranges.push(place(range, offset));
        }
        if self.ranges.len() == before {
            placeless.push(offset);
        }
        Ok(())
    }

    /// Adds the ranges of `.debug_aranges`, which the library believes before those of the units.
    fn address_table(&mut self) -> Result<(), DwarfRefused> {
        let mut headers = self.dwarf.debug_aranges.headers();
        while let Some(header) = headers.next()? {
            let offset = header.debug_info_offset().0;
            let mut entries = header.entries();
            loop {
                // As the library does, a range that overflows is left away.
                let Ok(entry) = entries.next() else { continue };
                let Some(entry) = entry else { break };
                add(
                    &mut self.totals.unit_ranges,
                    1,
                    UNIT_RANGES_LIMIT,
                    "unit ranges",
                )?;
                self.ranges.push(place(entry.range(), offset));
            }
        }
        Ok(())
    }

    /// Counts the abbreviations of a table that was not seen before, by walking its bytes: the
    /// library's own table would be built before it could be counted.
    fn abbreviations(&mut self, header: &UnitHeader<Slice<'data>>) -> Result<(), DwarfRefused> {
        let offset = header.debug_abbrev_offset().0;
        if !self.tables.insert(offset) {
            return Ok(());
        }
        let mut table = *self.dwarf.debug_abbrev.reader();
        table.skip(offset)?;
        while table.read_uleb128()? != 0 {
            table.skip_leb128()?;
            table.skip(1)?;
            let mut attributes = 0;
            loop {
                let name = table.read_uleb128()?;
                let form = table.read_uleb128()?;
                if form == u64::from(gimli::DW_FORM_implicit_const.0) {
                    table.skip_leb128()?;
                }
                if (name, form) == (0, 0) {
                    break;
                }
                attributes += 1;
            }
            // Up to five attributes are kept without another allocation.
            let weight = 1 + attributes / 5;
            add(
                &mut self.totals.abbreviations,
                weight,
                ABBREVIATIONS_LIMIT,
                "abbreviations",
            )?;
        }
        Ok(())
    }
}

fn place(range: Range, unit: usize) -> UnitRange {
    UnitRange {
        begin: range.begin,
        end: range.end,
        max_end: 0,
        unit,
    }
}

/// Counts the ranges that an attribute names, up to one more than `limit`.
fn count_ranges(
    dwarf: &Dwarf<Slice<'_>>,
    unit: &Unit<Slice<'_>>,
    value: AttributeValue<Slice<'_>>,
    limit: usize,
) -> Result<usize, DwarfRefused> {
    let Some(mut ranges) = dwarf.attr_ranges(unit, value)? else {
        return Ok(0);
    };
    let mut count = 0;
    while count <= limit && ranges.next()?.is_some() {
        count += 1;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One DWARF 4 unit with the given entries.
    fn unit(entries: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(u32::try_from(entries.len() + 7).unwrap().to_le_bytes());
        out.extend(4u16.to_le_bytes());
        out.extend(0u32.to_le_bytes());
        out.push(8);
        out.extend(entries);
        out
    }

    /// Abbreviation 1: an inlined function with children and no attributes; 2: the same with
    /// `DW_AT_ranges` (`DW_FORM_sec_offset`).
    const ABBREVIATIONS: [u8; 13] = [1, 0x1d, 1, 0, 0, 2, 0x1d, 1, 0x55, 0x17, 0, 0, 0];

    struct Fixture<'data> {
        info: &'data [u8],
        ranges: &'data [u8],
        addresses: &'data [u8],
    }

    impl Sections for Fixture<'_> {
        fn section(&self, name: &str) -> &[u8] {
            match name {
                ".debug_info" => self.info,
                ".debug_abbrev" => &ABBREVIATIONS,
                ".debug_ranges" => self.ranges,
                ".debug_aranges" => self.addresses,
                _ => &[],
            }
        }
    }

    fn check_info(info: &[u8], ranges: &[u8]) -> Result<(), DwarfRefused> {
        let fixture = Fixture {
            info,
            ranges,
            addresses: &[],
        };
        // The code of all units here, if they have any, includes address 1.
        CheckedDwarf::open(&fixture)?.admit(&fixture, 1).map(drop)
    }

    /// `.debug_aranges` that gives the unit at 0 the code from 0x1000 to 0x2000.
    fn addresses() -> Vec<u8> {
        let mut out = 44u32.to_le_bytes().to_vec();
        out.extend(2u16.to_le_bytes());
        out.extend(0u32.to_le_bytes());
        out.extend([8, 0, 0, 0, 0, 0]);
        for word in [0x1000u64, 0x1000, 0, 0] {
            out.extend(word.to_le_bytes());
        }
        out
    }

    #[test]
    fn ordinary_nesting_passes() {
        let mut entries = vec![1; 100];
        entries.extend([0; 100]);
        assert_eq!(check_info(&unit(&entries), &[]), Ok(()));
        assert_eq!(check_info(&[], &[]), Ok(()));
    }

    #[test]
    fn nesting_that_would_overflow_the_stack_is_refused() {
        let deep = unit(&vec![1; 100_000]);
        assert_eq!(
            check_info(&deep, &[]),
            Err(DwarfRefused::TooMuch { what: "nesting" })
        );
    }

    #[test]
    fn entries_are_walked_when_their_addresses_are_asked_about() {
        let (deep, addresses) = (unit(&vec![1; 100_000]), addresses());
        // The unit itself names no code, so it is looked into at once.
        assert!(check_info(&deep, &[]).is_err());
        // Where it does, only what will be parsed is.
        let mut ranges = [0x1000u64, 0x2000, 0, 0].map(u64::to_le_bytes).concat();
        ranges.resize(64, 0);
        let entries = [&[2, 0, 0, 0, 0][..], &vec![1; 100_000]].concat();
        let deep = unit(&entries);
        let fixture = Fixture {
            info: &deep,
            ranges: &ranges,
            addresses: &addresses,
        };
        let mut checked = CheckedDwarf::open(&fixture).unwrap();
        for outside in [0, 0xfff, checked.address_outside(), u64::MAX] {
            assert_eq!(checked.admit(&fixture, outside), Ok(0), "{outside:#x}");
        }
        let refused = Err(DwarfRefused::TooMuch { what: "nesting" });
        assert_eq!(checked.admit(&fixture, 0x1fff), refused);
    }

    #[test]
    fn a_long_list_named_again_and_again_is_refused() {
        // 10,000 ranges, named by 1000 sibling entries: 10,000,000.
        let mut ranges: Vec<u8> = (0..10_000u64)
            .flat_map(|at| [at * 16 + 1, at * 16 + 2])
            .flat_map(u64::to_le_bytes)
            .collect();
        ranges.extend([0; 16]);
        let entry = [2, 0, 0, 0, 0, 0];
        let entries: Vec<u8> = entry.iter().copied().cycle().take(6 * 1000).collect();
        assert_eq!(
            check_info(&unit(&entries), &ranges),
            Err(DwarfRefused::TooMuch {
                what: "address ranges"
            })
        );
        assert_eq!(check_info(&unit(&entry), &ranges), Ok(()));
    }

    #[test]
    fn malformed_information_is_refused() {
        assert!(matches!(
            check_info(&unit(&[9]), &[]),
            Err(DwarfRefused::Malformed(_))
        ));
        assert!(matches!(
            check_info(&[1, 2, 3], &[]),
            Err(DwarfRefused::Malformed(_))
        ));
    }
}
