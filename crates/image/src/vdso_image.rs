//! A copy of the agent's own vDSO, read through `/proc/self/mem`, so that no pointer into the
//! agent's memory has to be made.

use std::{
    fs::File,
    io::{self, Write as _},
    os::unix::fs::FileExt as _,
};

use profiler_sandbox::broker::{self, OwnPath};
use rustix::fs::MemfdFlags;

use super::{
    maps::{Backing, read_mappings},
    module_file::ModuleFile,
};

/// Largest image that is believed.
const SIZE_LIMIT: u64 = 1 << 20;

/// The image as a file in memory, and its size; `None` where there is none.
pub fn own_image() -> Option<(ModuleFile, u64)> {
    let mappings = read_mappings(broker::open(OwnPath::at("/proc/self/maps")).ok()?).ok()?;
    let own = mappings
        .into_iter()
        .find(|mapping| mapping.backing == Backing::Vdso)?;
    let bytes = own.end - own.start;
    let file = copy_memory(own.start, bytes).ok()?;
    Some((ModuleFile::of_memory(file)?, bytes))
}

fn copy_memory(start: u64, bytes: u64) -> io::Result<File> {
    let length = usize::try_from(bytes).ok().filter(|_| bytes <= SIZE_LIMIT);
    let length = length.ok_or(io::ErrorKind::InvalidData)?;
    let mut content = vec![0; length];
    broker::open(OwnPath::at("/proc/self/mem"))?.read_exact_at(&mut content, start)?;
    let mut file: File =
        rustix::fs::memfd_create("profiler-agent:vdso", MemfdFlags::CLOEXEC)?.into();
    file.write_all(&content)?;
    Ok(file)
}
