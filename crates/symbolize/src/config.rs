//! What the symbolizer may open and keep.

use std::time::Duration;

use super::packs::SymbolPacks;

/// Bounds of the symbolizer, and the packs it looks into.
#[derive(Clone, Debug)]
pub struct SymbolizeConfig {
    /// Largest file that is opened for symbols, in bytes.
    pub max_file_bytes: u64,
    /// Open modules kept at once; each needs one file descriptor.
    pub max_modules: usize,
    /// Largest debug information (uncompressed) of one file that is used, in bytes; names of a
    /// file with more come from its symbol table, without lines and inlined functions.
    pub max_debug_bytes: u64,
    /// Memory for symbols and debug information at once, in bytes, about (what the ELF library
    /// makes of debug information weighs up to twice as much as that itself).
    pub max_image_bytes: u64,
    /// Memory for tables of inferred names at once, in bytes. That of Envoy has 7 MB.
    pub max_inferred_bytes: usize,
    /// Names kept at once, in bytes, about.
    pub max_name_bytes: usize,
    /// Processes whose mappings are kept at once.
    pub max_processes: usize,
    /// Time after its exit for which a process can still be resolved.
    pub exit_grace: Duration,
    /// Files with names that the user gave.
    pub packs: SymbolPacks,
}

impl Default for SymbolizeConfig {
    fn default() -> Self {
        Self {
            max_file_bytes: 4 << 30,
            max_modules: 512,
            max_debug_bytes: 24 << 20,
            max_image_bytes: 96 << 20,
            max_inferred_bytes: 32 << 20,
            max_name_bytes: 8 << 20,
            max_processes: 4096,
            exit_grace: Duration::from_secs(10),
            packs: SymbolPacks::none(),
        }
    }
}

impl SymbolizeConfig {
    /// The default, with caches that leave room where memory is short: `share` gives the smaller of some bytes and one of that
    /// many parts of all memory there is.
    pub fn below(share: impl Fn(u64, u64) -> u64) -> Self {
        let usual = Self::default();
        let bytes =
            |bytes: usize, parts| usize::try_from(share(bytes as u64, parts)).unwrap_or(bytes);
        Self {
            max_image_bytes: share(usual.max_image_bytes, 4),
            max_debug_bytes: share(usual.max_debug_bytes, 8),
            max_inferred_bytes: bytes(usual.max_inferred_bytes, 8),
            max_name_bytes: bytes(usual.max_name_bytes, 16),
            ..usual
        }
    }
}
