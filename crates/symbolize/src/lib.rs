//! Names for addresses. All work here blocks and runs on one thread that all collections share (`service`).
//!
//! ```text
//! address -> maps (mapping, file offset) -> modules (module_file -> elf_copy -> native)
//!                                        -> vdso | perf_map          kernel (kallsyms)
//! ```
//!
//! Everything that comes from a target is hostile: its files are opened by `profiler_image::module_file`, copied
//! by `profiler_image::elf_copy`, checked by `dwarf_check`, and only the copy reaches the ELF library, whose
//! panics end at `native`. A name is given only when a symbol, a debug entry or a perf-map entry
//! says that the address is inside of it. In stripped C++ programs `inferred` says which class or
//! source file a function belongs to, marked as such; everything else stays module and offset.

mod service;
mod symbolizer;

mod kernel;
mod mapped_process;
mod perf_map;
mod vdso;

mod config;
mod debuginfod;
mod debuginfod_server;
pub mod demangle;
mod dwarf_check;
mod forecast;
mod frame_pointers;
pub mod go_table;
pub mod inferred;
mod layers;
mod modules;
mod name_cache;
mod native;
mod pack_file;
mod packs;
mod quality;
mod renamer;
mod segment_book;
mod symbol_folder;

#[cfg(feature = "fuzzing")]
pub mod fuzzing;

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod source_tests;

pub use config::SymbolizeConfig;
pub use debuginfod::start as start_debuginfod;
pub use debuginfod_server::DebuginfodServer;
pub use forecast::{Depth, FileForecast, Forecast, ForecastError, forecast};
pub use frame_pointers::FramePointers;
pub use kernel::KernelSymbols;
pub use pack_file::{PackError, PackInfo};
pub use packs::{PackFile, SymbolPacks, Unfinished};
pub use quality::Quality;
pub use renamer::Renamer;
pub use service::{
    NamedStack, NamedStacks, Naming, NamingInProgress, ProcessRead, Prospect, SymbolizerService,
    unnamed,
};
pub use symbolizer::{AddressStack, ImageKey, Mappings, Symbolizer};
