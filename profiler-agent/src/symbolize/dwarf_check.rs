//! Bounds the work and memory that a file's debug information can cause.
//!
//! DWARF refers to itself: a few bytes can name a long list again and again, and entries can nest
//! as deep as the file is long. The library that answers questions follows all of that, nested
//! inlined functions by recursion. So before it sees the debug information, one linear pass walks
//! all entries and adds up what the library would keep; what exceeds the limits, or cannot be
//! parsed, is not used at all and names come from the symbol table alone.

use std::collections::HashSet;

use gimli::{
    AttributeValue, Dwarf, EndianSlice, LittleEndian, Reader as _, Section as _, UnitHeader,
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

/// Checks debug sections, which `section` finds by name (empty when missing).
pub(crate) fn check<'data>(section: impl Fn(&str) -> &'data [u8]) -> Result<(), DwarfRefused> {
    let dwarf =
        Dwarf::load(|id| Ok::<_, gimli::Error>(Slice::new(section(id.name()), LittleEndian)))?;
    let mut check = Check {
        dwarf,
        totals: Totals::default(),
        tables: HashSet::new(),
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
    let mut units = check.dwarf.units();
    while let Some(header) = units.next()? {
        check.unit(header)?;
    }
    Ok(())
}

#[derive(Default)]
struct Totals {
    units: usize,
    abbreviations: usize,
    ranges: usize,
    files: usize,
    line_bytes: usize,
}

struct Check<'data> {
    dwarf: Dwarf<Slice<'data>>,
    totals: Totals,
    /// Offsets of abbreviation tables that were counted.
    tables: HashSet<usize>,
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

impl<'data> Check<'data> {
    fn unit(&mut self, header: UnitHeader<Slice<'data>>) -> Result<(), DwarfRefused> {
        let unit = self.dwarf.unit(header)?;
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
                let count = self.count_ranges(&unit, value)?;
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

    fn count_ranges(
        &self,
        unit: &gimli::Unit<Slice<'data>>,
        value: AttributeValue<Slice<'data>>,
    ) -> Result<usize, DwarfRefused> {
        let Some(mut ranges) = self.dwarf.attr_ranges(unit, value)? else {
            return Ok(0);
        };
        let left = RANGES_LIMIT.saturating_sub(self.totals.ranges);
        let mut count = 0;
        while count <= left && ranges.next()?.is_some() {
            count += 1;
        }
        Ok(count)
    }
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

    fn check_info(info: &[u8], ranges: &[u8]) -> Result<(), DwarfRefused> {
        check(|name| match name {
            ".debug_info" => info,
            ".debug_abbrev" => &ABBREVIATIONS,
            ".debug_ranges" => ranges,
            _ => &[],
        })
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
