//! Symbol files.

use profiler_image::build_id::hexadecimal as build_id_text;
use profiler_model::NameSource;
use profiler_symbolize::PackInfo;
use serde::Serialize;
use utoipa::ToSchema;

/// Where a symbol file came from.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum SymbolOrigin {
    Uploaded,
    /// The folder of `--symbol-dir`, which the agent only reads.
    Folder,
    Debuginfod,
}

/// A file with names for the program of one build-id.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct SymbolFile {
    pub(in crate::api) build_id: String,
    bytes: u64,
    origin: SymbolOrigin,
    added_at_ns: u64,
    /// It has a symbol table.
    has_symbols: bool,
    /// It has debug information, which gives lines and inlined functions.
    has_debug_information: bool,
}

impl From<PackInfo> for SymbolFile {
    fn from(info: PackInfo) -> Self {
        let PackInfo {
            build_id,
            bytes,
            source,
            is_given,
            added_ns,
            has_symbols,
            has_debug_information,
        } = info;
        let origin = match (is_given, source) {
            (true, _) => SymbolOrigin::Folder,
            (false, NameSource::Debuginfod) => SymbolOrigin::Debuginfod,
            (false, _) => SymbolOrigin::Uploaded,
        };
        Self {
            build_id: build_id_text(&build_id),
            bytes,
            origin,
            added_at_ns: added_ns,
            has_symbols,
            has_debug_information,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct SymbolFileList {
    /// By build-id.
    pub(in crate::api) items: Vec<SymbolFile>,
    pub(in crate::api) total: usize,
    /// Room for all uploaded files together, and for one.
    pub(in crate::api) max_bytes: u64,
}
