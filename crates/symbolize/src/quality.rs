//! How well naming went, for metrics.

use std::collections::BTreeMap;

use profiler_image::module_file::Refusal;
use profiler_model::NameSource;

use super::native::Fault;

/// Counters since the symbolizer was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quality {
    /// Frames by [`NameSource::name`]; `none` counts those without a name.
    pub frames: BTreeMap<&'static str, u64>,
    /// Files that were not used, by [`Refusal::name`].
    pub refused: BTreeMap<&'static str, u64>,
    /// Panics of the ELF library that were contained; each leaves one file unnamed.
    pub panics: u64,
    /// Addresses for which the ELF library reported an error.
    pub errors: u64,
    /// Files whose debug information was left away because of its size.
    pub debug_too_large: u64,
    /// Processes whose mappings could not be read.
    pub mappings_missing: u64,
    /// Files that are open or copied now.
    pub modules: u64,
    /// Memory for symbols and debug information now, in bytes, about.
    pub image_bytes: u64,
    /// Memory for tables of inferred names now, in bytes.
    pub inferred_bytes: u64,
    /// Bytes of cached names now, about.
    pub name_bytes: u64,
}

impl Quality {
    pub(crate) fn frame(&mut self, source: NameSource) {
        *self.frames.entry(source.name()).or_default() += 1;
    }

    pub(crate) fn refusal(&mut self, refusal: Refusal) {
        *self.refused.entry(refusal.name()).or_default() += 1;
    }

    pub(crate) fn fault(&mut self, fault: Fault) {
        match fault {
            Fault::Panicked => self.panics += 1,
            Fault::Failed => self.errors += 1,
        }
    }
}
