//! Inferred names of the files that are in use: made when first asked for, bounded in memory, and
//! shared between files of equal content, as a program in many containers is.

use std::{fs::File, hash::RandomState, rc::Rc};

use profiler_image::module_file::FileKey;

use super::{
    Inferred, InferredNames, NotInferred, infer_from,
    input::{Content, Input},
};

/// Files that are remembered as having the content of one table, or as having none.
const FILES_LIMIT: usize = 1024;

#[derive(Debug)]
struct Table {
    /// Empty when the file has none; files of several containers are compared when these agree.
    build_id: Vec<u8>,
    content: Option<Content>,
    names: InferredNames,
    files: Vec<FileKey>,
    /// When it was last used, in uses of the cache.
    used: u64,
}

/// Tables, least recently used first to go when they exceed their limit.
#[derive(Debug)]
pub(crate) struct InferredCache {
    limit_bytes: usize,
    tables: Vec<Table>,
    /// Files about which nothing can be inferred.
    refused: Vec<FileKey>,
    keys: RandomState,
    uses: u64,
}

/// A file whose own symbols do not name its functions.
#[derive(Debug)]
pub(crate) struct Stripped {
    pub(crate) file: File,
    pub(crate) build_id: Rc<[u8]>,
}

impl InferredCache {
    pub(crate) fn new(limit_bytes: usize) -> Self {
        Self {
            limit_bytes,
            tables: Vec::new(),
            refused: Vec::new(),
            keys: RandomState::new(),
            uses: 0,
        }
    }

    /// What is inferred about the function at a linked address.
    pub(crate) fn name(
        &mut self,
        key: &FileKey,
        stripped: &Stripped,
        address: u64,
    ) -> Option<Inferred> {
        self.uses += 1;
        let index = self.table(key, stripped)?;
        let table = self.tables.get_mut(index)?;
        table.used = self.uses;
        table.names.at(address)
    }

    /// Drops all tables.
    pub(crate) fn clear(&mut self) {
        self.tables = Vec::new();
    }

    /// Memory of all tables.
    pub(crate) fn bytes(&self) -> usize {
        self.tables.iter().map(Table::bytes).sum()
    }

    /// Index of a file's table, which is made when there is none.
    fn table(&mut self, key: &FileKey, stripped: &Stripped) -> Option<usize> {
        let known = self
            .tables
            .iter()
            .position(|table| table.files.contains(key));
        if known.is_some() {
            return known;
        }
        if self.refused.contains(key) {
            return None;
        }
        // A build-id is the file's own claim, so equal ones are only a reason to compare.
        let equal = self.tables.iter().position(|table| {
            !table.build_id.is_empty()
                && *table.build_id == *stripped.build_id
                && table
                    .content
                    .as_ref()
                    .is_some_and(|content| content.is_of(&stripped.file, &self.keys))
        });
        if let Some(index) = equal {
            remember(&mut self.tables[index].files, *key);
            return equal;
        }
        match make(stripped, *key, &self.keys) {
            Ok(table) if table.names.claims().next().is_some() => {
                self.tables.push(table);
                Some(self.shrink())
            }
            Ok(_) => {
                remember(&mut self.refused, *key);
                None
            }
            Err(error) => {
                tracing::debug!(%error, "no names are inferred");
                remember(&mut self.refused, *key);
                None
            }
        }
    }

    /// Drops tables until the rest fits, but never the newest; returns the index of that.
    fn shrink(&mut self) -> usize {
        while self.tables.len() > 1 && self.bytes() > self.limit_bytes {
            let older = self.tables.iter().take(self.tables.len() - 1).enumerate();
            let oldest = older.min_by_key(|(_, table)| table.used);
            let Some((index, _)) = oldest else { break };
            self.tables.remove(index);
        }
        self.tables.len() - 1
    }
}

impl Table {
    fn bytes(&self) -> usize {
        self.names.bytes() + self.files.capacity() * size_of::<FileKey>() + 4096
    }
}

fn make(stripped: &Stripped, key: FileKey, keys: &RandomState) -> Result<Table, NotInferred> {
    let started = std::time::Instant::now();
    let mut input = Input::file(&stripped.file)?.digested(keys);
    let names = infer_from(&mut input)?;
    tracing::debug!(
        functions = names.functions(),
        named = names.claims().count(),
        elapsed = ?started.elapsed(),
        "names inferred"
    );
    Ok(Table {
        build_id: stripped.build_id.to_vec(),
        content: input.content(),
        names,
        files: vec![key],
        used: 0,
    })
}

/// Appends a file to a list of bounded length, the oldest goes.
fn remember(files: &mut Vec<FileKey>, key: FileKey) {
    if files.len() >= FILES_LIMIT {
        files.remove(0);
    }
    files.push(key);
}
