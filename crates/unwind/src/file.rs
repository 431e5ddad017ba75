//! An ELF file from which rows are made, one page at a time.

use std::fs::File;

use profiler_common::unwind::rule::cfa;
use profiler_image::elf_layout::{ElfError, Layout, Segment};
use rustix::fs::Stat;

use super::{
    cfi::{Decoder, Function},
    code::PageCode,
    fde_index::FdeIndex,
    frame_pointer,
    gaps::{Described, Gaps, PADDING},
    go_table::GoTable,
    machine::Machine,
    page::{PageBuilder, PageRows, page_start},
    rules::{RuleTable, of_kind},
    source::{Window, read_up_to},
    undescribed::Undescribed,
};
use profiler_common::unwind::table::PAGE_BYTES;

/// Bytes of descriptions that are read for one page. Envoy's need at most 60 KiB.
const PAGE_DESCRIPTION_BYTES: u64 = 8 << 20;
/// Descriptions that are looked at for one page.
const PAGE_DESCRIPTIONS: u64 = 64 * 1024;
/// Descriptions that are measured to see how much of the code they cover.
const MEASURED_DESCRIPTIONS: u64 = 512;
/// Pages of code of one file that are listed: 4 GiB of code.
const CODE_PAGES: usize = 1 << 16;
/// In per cent: files of which less is described were built without descriptions, and what is there
/// comes from libraries linked into them (Chromium has 3 %).
const LEAST_COVERAGE: u64 = 20;

/// Why no rows can be made of a file.
#[derive(Debug, thiserror::Error)]
pub enum UnwindFileError {
    #[error("read headers: {0}")]
    Headers(String),
    #[error("32-bit file")]
    ThirtyTwoBit,
    #[error("file for machine {machine}")]
    ForeignMachine { machine: u16 },
    #[error("the file changed since it was opened")]
    Changed,
}

impl From<ElfError> for UnwindFileError {
    fn from(error: ElfError) -> Self {
        Self::Headers(error.to_string())
    }
}

/// How code of a file is unwound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// By rows, from [`UnwindFile::decode_page`].
    Rows,
    /// By frame pointers: the file describes none of its code.
    FramePointers,
}

/// An open file and where its descriptions are.
#[derive(Debug)]
pub struct UnwindFile {
    file: File,
    stamp: Stamp,
    machine: Machine,
    segments: Vec<Segment>,
    build_id: Vec<u8>,
    descriptions: Option<FdeIndex>,
    go: Option<GoTable>,
    gaps: Gaps,
    undescribed: Option<Undescribed>,
    method: Method,
}

/// Changes when the content does, as far as the file system reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    bytes: i64,
    modified: (i64, u64),
    changed: (i64, u64),
}

impl Stamp {
    fn of(file: &File) -> Option<Self> {
        let stat: Stat = rustix::fs::fstat(file).ok()?;
        #[allow(
            clippy::unnecessary_cast,
            reason = "the C types of these fields differ between architectures"
        )]
        Some(Self {
            bytes: stat.st_size as i64,
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as u64),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as u64),
        })
    }
}

impl UnwindFile {
    /// Reads the headers of a file. It stays open, and pages are read from it later.
    pub fn open(file: File) -> Result<Self, UnwindFileError> {
        let layout = Layout::read(&file)?;
        let stamp = Stamp::of(&file).ok_or(UnwindFileError::Changed)?;
        if !layout.wide {
            return Err(UnwindFileError::ThirtyTwoBit);
        }
        let machine = Machine::of_elf(layout.machine).ok_or(UnwindFileError::ForeignMachine {
            machine: layout.machine,
        })?;
        let new_decoder = |section| Decoder::new(&file, section, machine);
        let descriptions = FdeIndex::find(&file, &layout, &new_decoder);
        let go = GoTable::find(&file, &layout, machine);
        let covered = descriptions.as_ref().is_some_and(|index| {
            let mut decoder = Decoder::new(&file, index.section, machine);
            covers_code(&file, &layout, index, &mut decoder)
        });
        let undescribed = match machine {
            Machine::X86_64 => {
                let mut decoder = descriptions
                    .as_ref()
                    .map(|index| Decoder::new(&file, index.section, machine));
                Undescribed::find(&file, &layout, descriptions.as_ref(), decoder.as_mut())
            }
            Machine::Aarch64 => None,
        };
        let described = if covered || go.is_some() {
            Described::Mostly
        } else {
            Described::Little
        };
        let method = if descriptions.is_some() || go.is_some() || undescribed.is_some() {
            Method::Rows
        } else {
            Method::FramePointers
        };
        let gaps = Gaps::new(&layout, machine, described);
        Ok(Self {
            stamp,
            machine,
            descriptions,
            go,
            gaps,
            undescribed,
            method,
            segments: layout.segments,
            build_id: layout.build_id,
            file,
        })
    }

    pub fn machine(&self) -> Machine {
        self.machine
    }

    pub fn method(&self) -> Method {
        self.method
    }

    pub fn build_id(&self) -> &[u8] {
        &self.build_id
    }

    /// True when the file is a Go program whose own tables are used.
    pub fn is_go(&self) -> bool {
        self.go.is_some()
    }

    /// What to subtract from an address in a mapping to get the address in the file; none when the
    /// mapping shows no code of it. The mapping begins at `start` and shows `bytes` from `offset`.
    pub fn bias(&self, start: u64, bytes: u64, offset: u64) -> Option<u64> {
        let end = offset.saturating_add(bytes);
        let shared = |segment: &Segment| {
            let from = segment.offset.max(offset);
            segment
                .offset
                .saturating_add(segment.bytes)
                .min(end)
                .saturating_sub(from)
        };
        let segment = self.segments.iter().max_by_key(|segment| shared(segment))?;
        (shared(segment) > 0).then(|| {
            start
                .wrapping_sub(offset)
                .wrapping_add(segment.offset)
                .wrapping_sub(segment.address)
        })
    }

    /// The byte of code at an address in the file.
    pub fn code_byte(&self, address: u64) -> Option<u8> {
        let mut segments = self.segments.iter();
        let segment = segments.find(|segment| segment.contains(address, 1))?;
        let mut byte = [0];
        let at = segment.offset.checked_add(address - segment.address)?;
        (read_up_to(&self.file, at, &mut byte) == 1).then_some(byte[0])
    }

    /// The pages that have code.
    pub fn code_pages(&self) -> Vec<u32> {
        let mut pages: Vec<u32> = Vec::new();
        for segment in &self.segments {
            let last = segment
                .address
                .saturating_add(segment.bytes.saturating_sub(1))
                / PAGE_BYTES;
            let pages_of_segment = segment.address / PAGE_BYTES..=last;
            let room = CODE_PAGES - pages.len();
            pages.extend(
                pages_of_segment
                    .take(room)
                    .filter_map(|page| u32::try_from(page).ok()),
            );
        }
        pages.sort_unstable();
        pages.dedup();
        pages
    }

    /// The rows of a page.
    pub fn decode_page(
        &self,
        page: u32,
        rules: &mut RuleTable,
    ) -> Result<PageRows, UnwindFileError> {
        if Stamp::of(&self.file) != Some(self.stamp) {
            return Err(UnwindFileError::Changed);
        }
        let start = page_start(page);
        let end = start + PAGE_BYTES;
        let code = PageCode::read(&self.file, &self.segments, start);
        let (functions, behind) = self.functions(start, end);
        let mut builder = PageBuilder::new(start, rules);
        let mut described_to = 0u64;
        let mut functions = functions.iter().peekable();
        while let Some(function) = functions.next() {
            if function.start > described_to.saturating_add(PADDING) || described_to == 0 {
                self.push_gap(described_to, function.start, &code, &mut builder);
            }
            let next = functions.peek().map_or(u64::MAX, |next| next.start);
            let until = function.end.min(next);
            let counts = builder.counts();
            counts.functions += 1;
            counts.raw_rows += function.raw_rows;
            counts.unsupported += function.unsupported;
            let collapsed = match self.machine {
                Machine::X86_64 => Some(frame_pointer::collapse(function, &code)),
                Machine::Aarch64 => None,
            };
            for (address, rule) in collapsed.as_ref().unwrap_or(&function.rows) {
                if *address < until && *address < end {
                    builder.push(*address, *rule);
                }
            }
            described_to = until.max(described_to);
        }
        if described_to < end && behind.saturating_sub(described_to) > PADDING {
            self.push_gap(described_to, behind, &code, &mut builder);
        }
        Ok(builder.finish())
    }

    fn push_gap(&self, start: u64, end: u64, code: &PageCode, builder: &mut PageBuilder<'_>) {
        let from = start.max(code.start.saturating_sub(1));
        // musl keeps no frame pointers.
        let (unknown, followed) = match &self.undescribed {
            Some(undescribed) => (
                of_kind(cfa::NO_UNWIND_INFO),
                undescribed.between(
                    from.min(end),
                    end.min(code.start.saturating_add(PAGE_BYTES)),
                ),
            ),
            None => (self.gaps.unknown(start, end), Default::default()),
        };
        for (address, rule) in self.gaps.rows(from.min(end), end, unknown, followed, code) {
            builder.push(address, rule);
        }
    }

    /// The functions with code in `[start, end)` or shortly before, in ascending order and each
    /// once, and the start of the first one behind.
    fn functions(&self, start: u64, end: u64) -> (Vec<Function>, u64) {
        let mut functions = Vec::new();
        let mut behind = u64::MAX;
        if let Some(index) = &self.descriptions {
            let mut window = Window::new(&self.file);
            let mut decoder = Decoder::new(&self.file, index.section, self.machine);
            let above = index.first_above(&mut window, start).unwrap_or(0);
            let first = above.saturating_sub(1);
            for number in first..first.saturating_add(PAGE_DESCRIPTIONS) {
                let Some((address, description)) = index.entry(&mut window, number) else {
                    break;
                };
                // A signal trampoline that begins the next page has its row in this one.
                if address > end {
                    behind = address;
                    break;
                }
                if decoder.read_bytes > PAGE_DESCRIPTION_BYTES {
                    break;
                }
                functions.extend(
                    decoder
                        .function(description)
                        .filter(|function| function.start == address),
                );
            }
        }
        if let Some(go) = &self.go {
            functions.extend(go.functions(&self.file, start, end));
        }
        for function in &mut functions {
            if let Some((row, rule)) = function.rows.first_mut()
                && rule.cfa_kind == cfa::SIGNAL
            {
                // A handler returns to its first byte, and the byte before is looked up.
                function.start = function.start.saturating_sub(1);
                *row = function.start;
            }
        }
        functions.sort_by_key(|function| function.start);
        functions.dedup_by_key(|function| function.start);
        (functions, behind)
    }
}

fn covers_code(file: &File, layout: &Layout, index: &FdeIndex, decoder: &mut Decoder<'_>) -> bool {
    let mut window = Window::new(file);
    let measured = index.len().min(MEASURED_DESCRIPTIONS);
    let mut covered: u128 = 0;
    for nth in 0..measured {
        let number = u128::from(nth) * u128::from(index.len()) / u128::from(measured);
        let entry = u64::try_from(number)
            .ok()
            .and_then(|number| index.entry(&mut window, number));
        if let Some((start, end)) = entry.and_then(|(_, description)| decoder.range(description)) {
            covered += u128::from(end.saturating_sub(start));
        }
    }
    let segments: u64 = layout
        .segments
        .iter()
        .map(|segment| segment.bytes)
        .fold(0, u64::saturating_add);
    let code = layout
        .section(".text")
        .map_or(segments, |text| text.bytes.min(segments));
    let described = covered * u128::from(index.len()) / u128::from(measured.max(1));
    described * 100 >= u128::from(code) * u128::from(LEAST_COVERAGE)
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
