//! The fuzzed readers that need what is private to names; the agent's `fuzzing` lists them.

use std::{fs::File, io::Write as _};

use profiler_image::{
    elf_copy, elf_layout::Layout, elf_symbols::Bounds, maps::read_mappings, mini_debug,
    module_file::ModuleFile,
};
use rustix::fs::{MemfdFlags, memfd_create};

use super::{
    SymbolizeConfig, modules::Modules, native::Image, perf_map::PerfMap, quality::Quality,
};

/// Bytes of debug information that are copied of a fuzzer's file.
const DEBUG_BYTES: u64 = 64 << 20;
/// Places that are asked for names.
const PLACES: u64 = 64;

/// Symbols, DWARF, `.gnu_debugdata`, `.gnu_debuglink` and Go's table: of a program, and of the same
/// bytes as a debug file that belongs to another one.
pub fn names(bytes: &[u8]) {
    let Some(file) = memory_file(bytes) else {
        return;
    };
    let Ok(layout) = Layout::read(&file) else {
        return;
    };
    let places: Vec<u64> = layout
        .segments
        .iter()
        .take(4)
        .flat_map(|segment| {
            let step = (segment.bytes / PLACES).max(1);
            (0..PLACES).map(move |place| segment.offset.saturating_add(place * step))
        })
        .collect();
    as_debug_file(&file, &layout, &places);
    if let Some(content) = mini_debug::open(&file, &layout)
        && let Ok(inner) = Layout::read(&content)
    {
        as_debug_file(&content, &inner, &places);
    }
    let Some(module) = ModuleFile::of_memory(file) else {
        return;
    };
    let key = module.key;
    let mut modules = Modules::new(SymbolizeConfig::default());
    modules.insert(module);
    let mut quality = Quality::default();
    for place in places {
        modules.names(&key, place, &mut quality);
    }
}

fn as_debug_file(file: &std::fs::File, layout: &Layout, places: &[u64]) {
    let keys = std::hash::RandomState::new();
    let mut bounds = Bounds::none();
    // What it names is looked for in folders of ours.
    let _name_and_checksum = profiler_image::debug_file::read_link(file, layout);
    let Ok(copy) = elf_copy::copy(file, layout, &mut bounds, DEBUG_BYTES, &keys) else {
        return;
    };
    if let Ok(image) = Image::open(&copy, &layout.segments) {
        for place in places {
            // A fault of the library ends its part in a profile.
            if image.names(*place).is_err() {
                return;
            }
        }
    }
}

/// A perf-map, and names of the addresses in it.
pub fn perf_map(bytes: &[u8]) {
    let Some(file) = memory_file(bytes) else {
        return;
    };
    let mut map = PerfMap::default();
    // In two pieces, as it grows.
    let size = bytes.len() as u64;
    for until in [size / 2, size] {
        drop(map.read_new(&file, until));
    }
    for shift in 0..64 {
        map.name(1 << shift);
        map.name((0x7f00_0000_0000_u64).wrapping_add(1 << shift));
    }
}

/// `/proc/PID/maps`, in which paths are the process's own.
pub fn maps(bytes: &[u8]) {
    if let Ok(mappings) = read_mappings(bytes) {
        for mapping in &mappings {
            profiler_image::maps::find(&mappings, mapping.start);
        }
    }
}

/// A file in memory with these bytes.
pub fn memory_file(bytes: &[u8]) -> Option<File> {
    let mut file: File = memfd_create("fuzz", MemfdFlags::CLOEXEC).ok()?.into();
    file.write_all(bytes).ok()?;
    Some(file)
}
