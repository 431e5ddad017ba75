//! What a program file is, and where a process has it: files, their layout, symbols, build-ids and debug links.
//!
//! ```text
//! process -> proc_dir -> maps -> module_file (remote_mounts says which are left alone) -> snapshot
//!     module_file -> elf_layout -> elf_symbols, fde_table, go_header, mini_debug, debug_file -> elf_copy
//! ```
//!
//! Everything that comes from a target is hostile: its files are opened by [`module_file`], every read is bounded, and
//! nothing here panics on what it reads.

pub mod proc_dir;
pub mod remote_mounts;
pub mod maps;
pub mod module_file;
pub mod snapshot;
pub mod vdso_image;

pub mod elf_layout;
pub mod build_id;
pub mod fde_table;
pub mod go_header;
pub mod memory_copy;
pub mod mini_debug;
pub mod debug_file;
pub mod elf_symbols;
pub mod elf_writer;
pub mod elf_copy;
