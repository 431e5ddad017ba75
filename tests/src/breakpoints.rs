//! Bytes of a process's code that differ from those of its files: breakpoints.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    os::unix::fs::FileExt as _,
};

use anyhow::{Context as _, Result};

/// Nearly all pages are as in the file, and whole pages are compared faster than single bytes.
const PAGE: usize = 4096;

/// Range, offset and file, if a line of the mappings is of a file's code.
fn code_mapping(line: &str) -> Option<[&str; 3]> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        [range, access, offset, _device, _inode, path]
            if access.contains('x') && path.starts_with('/') =>
        {
            Some([range, offset, path])
        }
        _ => None,
    }
}

/// The files of which a process has mapped code.
pub fn files(pid: u32) -> Result<BTreeSet<String>> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).context("read the mappings")?;
    let mappings = maps.lines().filter_map(code_mapping);
    Ok(mappings.map(|[_, _, path]| path.to_owned()).collect())
}

/// Bytes of executable mappings of files that differ from the file; the kernel puts one at each place of a
/// uprobe, in the memory of the process alone.
pub fn count(pid: u32) -> Result<usize> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).context("read the mappings")?;
    let memory = File::open(format!("/proc/{pid}/mem")).context("open the memory")?;
    let mut changed = 0;
    for line in maps.lines() {
        let Some([range, offset, path]) = code_mapping(line) else {
            continue;
        };
        let number = |text: &str| u64::from_str_radix(text, 16).context("a number of a mapping");
        let (start, end) = range.split_once('-').context("the range of a mapping")?;
        let (start, end, offset) = (number(start)?, number(end)?, number(offset)?);
        let length = usize::try_from(end - start)?;
        let (mut there, mut in_file) = (vec![0; length], vec![0; length]);
        memory
            .read_exact_at(&mut there, start)
            .with_context(|| format!("read the memory of {path}"))?;
        let file = File::open(format!("/proc/{pid}/root{path}"));
        let file = file.with_context(|| format!("open {path}"))?;
        // The last page of a mapping may reach beyond the file.
        let read = file.read_at(&mut in_file, offset)?;
        let pages = there[..read].chunks(PAGE).zip(in_file[..read].chunks(PAGE));
        for (memory, file) in pages.filter(|(memory, file)| memory != file) {
            let bytes = memory.iter().zip(file);
            changed += bytes.filter(|(memory, file)| memory != file).count();
        }
    }
    Ok(changed)
}
