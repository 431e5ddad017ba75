//! The files of a process in which TLS functions are.

use std::{fs::File, io, sync::Arc};

use super::file::{Finding, find};
use crate::{
    model::ProcessKey,
    symbolize::{
        SymbolPacks, build_id_text,
        elf_layout::{Layout, Segment},
        mapped_process::Snapshot,
        module_file::{FileKey, Refusal},
    },
};

/// A file that the process executes from and that has to do with TLS.
#[derive(Debug)]
pub struct TlsMapping {
    /// As the process names it; untrusted text.
    pub path: Arc<str>,
    /// Hexadecimal; empty when there is none.
    pub build_id: String,
    pub finding: Finding,
    pub(crate) file: File,
    pub(crate) key: FileKey,
    /// Where code is in the file.
    segments: Vec<Segment>,
}

impl TlsMapping {
    /// Where the code at a linked address is in the file.
    pub(crate) fn offset(&self, address: u64) -> Option<u64> {
        let mut segments = self.segments.iter();
        let segment = segments.find(|segment| segment.contains(address, 1))?;
        segment.offset.checked_add(address - segment.address)
    }
}

/// What a process has to do with TLS.
#[derive(Debug, Default)]
pub struct ProcessTls {
    pub files: Vec<TlsMapping>,
    /// Files that could not be looked at.
    pub unread: Vec<(Arc<str>, Refusal)>,
}

/// Looks for TLS functions in the files of a running process. Takes about a second for 100 MB of
/// stripped code.
pub fn find_in_process(
    key: ProcessKey,
    max_file_bytes: u64,
    packs: &SymbolPacks,
) -> io::Result<ProcessTls> {
    let mapped = Snapshot::read(key, max_file_bytes)?.into_files();
    let mut found = ProcessTls {
        files: Vec::new(),
        unread: mapped.refused,
    };
    for (path, module) in mapped.files {
        let Ok(layout) = Layout::read(&module.file) else {
            found.unread.push((path, Refusal::NotElf));
            continue;
        };
        let finding = find(&module.file, &layout, module.origin.as_ref(), packs);
        if finding == Finding::None {
            continue;
        }
        found.files.push(TlsMapping {
            path,
            build_id: build_id_text(&layout.build_id),
            finding,
            file: module.file,
            key: module.key,
            segments: layout.segments,
        });
    }
    Ok(found)
}
