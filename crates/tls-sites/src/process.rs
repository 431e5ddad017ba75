//! The files of a process in which TLS functions are.

use std::{collections::VecDeque, fs::File, io, sync::Arc};

use profiler_image::{
    build_id::hexadecimal as build_id_text,
    elf_layout::{Layout, Segment},
    module_file::{FileKey, ModuleFile, Refusal},
    snapshot::Snapshot,
};
use profiler_model::ProcessKey;
use profiler_symbolize::SymbolPacks;

use super::file::{Finding, find};

/// Files that are remembered; a node runs some hundred.
const FILES_LIMIT: usize = 1024;

/// What is known of a file's content.
#[derive(Debug, PartialEq, Eq)]
pub struct TlsContent {
    /// Hexadecimal; empty when there is none.
    pub build_id: String,
    pub finding: Finding,
    /// Where code is in the file.
    segments: Vec<Segment>,
}

impl TlsContent {
    /// Where the code at a linked address is in the file.
    pub fn offset(&self, address: u64) -> Option<u64> {
        let mut segments = self.segments.iter();
        let segment = segments.find(|segment| segment.contains(address, 1))?;
        segment.offset.checked_add(address - segment.address)
    }
}

/// A file that the process executes from and that has to do with TLS.
#[derive(Debug)]
pub struct TlsMapping {
    /// As the process names it; untrusted text.
    pub path: Arc<str>,
    pub content: Arc<TlsContent>,
    pub file: File,
    pub key: FileKey,
}

/// What a process has to do with TLS.
#[derive(Debug, Default)]
pub struct ProcessTls {
    pub files: Vec<TlsMapping>,
    /// Files that could not be looked at.
    pub unread: Vec<(Arc<str>, Refusal)>,
}

/// Looks for TLS functions in the files of processes, and remembers what was in which file.
#[derive(Debug, Default)]
pub struct TlsFinder {
    packs: SymbolPacks,
    max_file_bytes: u64,
    known: VecDeque<(FileKey, Option<Arc<TlsContent>>)>,
}

impl TlsFinder {
    pub fn new(max_file_bytes: u64, packs: SymbolPacks) -> Self {
        Self {
            packs,
            max_file_bytes,
            known: VecDeque::new(),
        }
    }

    /// Looks at a running process. A file that was not met before takes up to a second.
    pub fn find(&mut self, key: ProcessKey) -> io::Result<ProcessTls> {
        let mapped = Snapshot::read(key, self.max_file_bytes)?.into_files();
        let mut found = ProcessTls {
            files: Vec::new(),
            unread: mapped.refused,
        };
        for (path, module) in mapped.files {
            match self.content(&module) {
                Ok(Some(content)) => found.files.push(TlsMapping {
                    path,
                    content,
                    file: module.file,
                    key: module.key,
                }),
                Ok(None) => {}
                Err(refusal) => found.unread.push((path, refusal)),
            }
        }
        Ok(found)
    }

    /// `None` for a file without a TLS library.
    fn content(&mut self, module: &ModuleFile) -> Result<Option<Arc<TlsContent>>, Refusal> {
        let known = self.known.iter().find(|(key, _)| *key == module.key);
        if let Some((_, content)) = known {
            return Ok(content.clone());
        }
        let layout = Layout::read(&module.file).map_err(|_| Refusal::NotElf)?;
        let finding = find(&module.file, &layout, module.origin.as_ref(), &self.packs);
        let content = (finding != Finding::None).then(|| {
            Arc::new(TlsContent {
                build_id: build_id_text(&layout.build_id),
                finding,
                segments: layout.segments,
            })
        });
        if self.known.len() >= FILES_LIMIT {
            self.known.pop_front();
        }
        self.known.push_back((module.key, content.clone()));
        Ok(content)
    }
}
