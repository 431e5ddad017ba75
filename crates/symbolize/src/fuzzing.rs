//! The fuzzed readers that need what is private to names; `profiler-file-tests` lists them.

use std::fs::File;

use profiler_image::{
    elf_copy, elf_layout::Layout, elf_symbols::Bounds, mini_debug, module_file::ModuleFile,
};

use super::{
    SymbolizeConfig, modules::Modules, native::Image, perf_map::PerfMap, quality::Quality,
};

/// Bytes of debug information that are copied of a file.
const DEBUG_BYTES: u64 = 64 << 20;
/// Places that are asked for names.
const PLACES: u64 = 64;

/// Symbols, DWARF, `.gnu_debugdata`, `.gnu_debuglink` and Go's table: of a program, and of the same
/// bytes as a debug file that belongs to another one.
pub fn names(file: File) {
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

fn as_debug_file(file: &File, layout: &Layout, places: &[u64]) {
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

/// A perf-map of so many bytes, and names of the addresses in it.
pub fn perf_map(file: &File, bytes: u64) {
    let mut map = PerfMap::default();
    // In two pieces, as it grows.
    for until in [bytes / 2, bytes] {
        drop(map.read_new(file, until));
    }
    for shift in 0..64 {
        map.name(1 << shift);
        map.name((0x7f00_0000_0000_u64).wrapping_add(1 << shift));
    }
}
