//! The executable mappings of a process, in the form that the kernel searches.

use std::{fs::File, io};

use profiler_common::unwind::mapping::{
    MAPPING_FRAME_POINTERS, MAX_MAPPINGS, Mapping, Mappings, NO_START, USER_ADDRESS_LIMIT,
};
use profiler_image::{
    module_file::{FileKey, ModuleFile},
    snapshot::{Region, Snapshot},
};

/// What an executable mapping shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    File(FileKey),
    /// A file that cannot be opened, or is not the one that is mapped any more.
    Refused,
    Vdso,
    /// Memory without a file: code that the process made itself.
    Anonymous,
}

/// An executable mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeMapping {
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// Offset in the file of its first byte.
    pub offset: u64,
    pub content: Content,
}

/// The executable mappings of a process in ascending order, and the files behind them.
#[derive(Debug, Default)]
pub struct ProcessCode {
    pub mappings: Vec<CodeMapping>,
    pub files: Vec<ModuleFile>,
}

impl ProcessCode {
    /// Reads what the process with this pid executes, for its unwind tables.
    pub fn read(pid: u32, max_file_bytes: u64) -> io::Result<Self> {
        let mut snapshot = Snapshot::of(pid, None, max_file_bytes)?;
        let files = std::mem::take(&mut snapshot.files);
        Ok(Self::with_files(&snapshot, files))
    }

    /// What a snapshot shows, with descriptors of its own; `None` when there are not enough of these.
    pub fn of_snapshot(snapshot: &Snapshot) -> Option<Self> {
        let files = snapshot.files.iter().map(ModuleFile::try_clone);
        Some(Self::with_files(snapshot, files.collect::<Option<_>>()?))
    }

    fn with_files(snapshot: &Snapshot, files: Vec<ModuleFile>) -> Self {
        let regions = snapshot.mappings.iter().zip(&snapshot.regions);
        let mappings = regions.map(|(mapping, region)| {
            let content = match region {
                Region::Module { path: _, key } => Content::File(*key),
                Region::Refused { path: _ } => Content::Refused,
                Region::Vdso => Content::Vdso,
                Region::Anonymous { label: _ } => Content::Anonymous,
            };
            CodeMapping {
                start: mapping.start,
                end: mapping.end,
                offset: mapping.offset,
                content,
            }
        });
        Self {
            mappings: mappings.collect(),
            files,
        }
    }

    /// One file, mapped wholly at `start`; none when it cannot be asked for its size.
    pub fn of_file(file: File, start: u64) -> Option<Self> {
        let opened = ModuleFile::of_memory(file)?;
        let mapping = CodeMapping {
            start,
            end: start.checked_add(opened.key.size)?,
            offset: 0,
            content: Content::File(opened.key),
        };
        Some(Self {
            mappings: vec![mapping],
            files: vec![opened],
        })
    }
}

/// How the code of one mapping is unwound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MappingUnwind {
    pub(crate) bias: u64,
    pub(crate) file: u32,
    pub(crate) flags: u32,
}

impl MappingUnwind {
    /// Code that keeps frame pointers, as just-in-time compilers do.
    pub(crate) fn frame_pointers() -> Self {
        Self {
            bias: 0,
            file: 0,
            flags: MAPPING_FRAME_POINTERS,
        }
    }
}

/// The table of a process, and how many of its mappings found no room in it.
pub(crate) fn build_mappings(
    all: &[CodeMapping],
    mut place: impl FnMut(&CodeMapping) -> MappingUnwind,
) -> (Box<Mappings>, u64) {
    let mut merged: Vec<(bool, u64, Mapping)> = Vec::new();
    for mapping in all {
        if mapping.start >= mapping.end || mapping.end > USER_ADDRESS_LIMIT {
            continue;
        }
        let MappingUnwind { bias, file, flags } = place(mapping);
        let is_file = mapping.content != Content::Anonymous;
        if let Some((_, _, last)) = merged.last_mut()
            && (last.end, last.bias, last.file, last.flags) == (mapping.start, bias, file, flags)
        {
            last.end = mapping.end;
            continue;
        }
        let entry = Mapping {
            end: mapping.end,
            bias,
            file,
            flags,
        };
        merged.push((is_file, mapping.start, entry));
    }
    // The first entry answers for addresses below all mappings.
    let room = MAX_MAPPINGS - 1;
    let left_out = merged.len().saturating_sub(room);
    if left_out > 0 {
        merged
            .sort_by_key(|(is_file, start, mapping)| (!is_file, u64::MAX - (mapping.end - start)));
        merged.truncate(room);
        merged.sort_by_key(|(_, start, _)| *start);
    }
    let mut table = Box::new(Mappings {
        starts: [NO_START; MAX_MAPPINGS],
        mappings: [Mapping::default(); MAX_MAPPINGS],
    });
    table.starts[0] = 0;
    for (nth, (_, start, mapping)) in merged.into_iter().enumerate() {
        table.starts[nth + 1] = start;
        table.mappings[nth + 1] = mapping;
    }
    (table, left_out as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(start: u64, bytes: u64, content: Content) -> CodeMapping {
        CodeMapping {
            start,
            end: start + bytes,
            offset: 0,
            content,
        }
    }

    fn by_content(mapping: &CodeMapping) -> MappingUnwind {
        match mapping.content {
            Content::Anonymous => MappingUnwind::frame_pointers(),
            Content::File(_) | Content::Refused | Content::Vdso => MappingUnwind {
                bias: mapping.start,
                file: 9,
                flags: 0,
            },
        }
    }

    #[test]
    fn every_address_has_a_predecessor() {
        let (table, left_out) = build_mappings(
            &[
                mapping(0x1000, 0x1000, Content::Refused),
                mapping(0xffff_ffff_ff60_0000, 0x1000, Content::Anonymous),
            ],
            by_content,
        );
        assert_eq!(left_out, 0);
        assert_eq!(table.starts[..3], [0, 0x1000, NO_START]);
        assert_eq!(table.mappings[0], Mapping::default());
        assert_eq!(table.mappings[1].end, 0x2000);
    }

    #[test]
    fn neighbours_of_one_kind_are_one() {
        let (table, _) = build_mappings(
            &[
                mapping(0x1000, 0x1000, Content::Anonymous),
                mapping(0x2000, 0x1000, Content::Anonymous),
                mapping(0x4000, 0x1000, Content::Anonymous),
            ],
            by_content,
        );
        assert_eq!(table.starts[..4], [0, 0x1000, 0x4000, NO_START]);
        assert_eq!(table.mappings[1].end, 0x3000);
    }

    #[test]
    fn files_and_then_the_largest_memory_find_room() {
        let mut all: Vec<CodeMapping> = (1..=150)
            .map(|nth| mapping(nth << 20, nth << 12, Content::Anonymous))
            .collect();
        all.push(mapping(200 << 20, 1, Content::Refused));
        let (table, left_out) = build_mappings(&all, by_content);
        assert_eq!(left_out, 24);
        assert_eq!(table.starts[1], 25 << 20, "the 24 smallest are left out");
        assert_eq!(table.starts[MAX_MAPPINGS - 1], 200 << 20);
        assert!(table.starts.is_sorted());
    }
}
