//! Unwind tables: from the descriptions in ELF files to the rows that the kernel's unwinder reads.
//!
//! ```text
//! file (headers, by `pread`) -> fde_index | go_table -> cfi, gaps -> frame_pointer -> page
//!                          page -> tables (pool of blocks) -> operations for the kernel
//! process -> processes (mappings, files by number) ---^  ^--- native (samples before their tables)
//! ```
//!
//! The step that uses the rows, and their form, are in `profiler_common::unwind`.

mod tables;
mod block_pool;
mod files;
mod processes;
mod native;

mod file;
mod page;
mod rules;

mod cfi;
mod code;
mod expressions;
mod fde_index;
mod frame_pointer;
mod gaps;
mod go_table;
mod machine;
mod source;
mod stack_flow;
mod undescribed;

#[cfg(test)]
mod live_tests;

pub use file::{Method, UnwindFile, UnwindFileError};
pub use machine::Machine;
pub use native::{
    CapturedStack, LEAF_FRAMES, MAX_STEPS, NativeStack, ROOT_FRAMES, StackMemory, unwind_capture,
};
pub use page::{MAX_PAGE_ROWS, PageCounts, PageRows};
pub use processes::{CodeMapping, Content, ProcessCode};
pub use rules::{MAX_RULES, RuleTable};
pub use tables::{Loaded, Operation, TableCache, TableCounts, TableSizes};
