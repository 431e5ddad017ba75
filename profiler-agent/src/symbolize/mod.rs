//! Names for addresses. All work here blocks and runs on the collector's own thread.
//!
//! ```text
//! address -> maps (mapping, file offset) -> modules (module_file -> elf_copy -> native)
//!                                        -> vdso | perf_map          kernel (kallsyms)
//! ```
//!
//! Everything that comes from a target is hostile: its files are opened by `module_file`, copied
//! by `elf_copy`, checked by `dwarf_check`, and only the copy reaches the ELF library, whose
//! panics end at `native`. A name is given only when a symbol, a debug entry or a perf-map entry
//! says that the address is inside of it; everything else stays module and offset.

mod service;
mod symbolizer;

mod kernel;
pub(crate) mod mapped_process;
pub(crate) mod maps;
mod perf_map;
mod vdso;
pub(crate) mod vdso_image;

mod demangle;
mod dwarf_check;
mod elf_copy;
pub(crate) mod elf_layout;
mod elf_writer;
pub(crate) mod module_file;
mod modules;
mod name_cache;
mod native;
mod quality;

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod test_programs;

pub use kernel::KernelSymbols;
pub use module_file::Refusal;
pub use quality::Quality;
pub use service::{
    AddressStack, NamedStack, NamedStacks, Naming, NamingInProgress, SymbolizerService,
};
pub use symbolizer::{ImageKey, Mappings, SymbolizeConfig, Symbolizer};
