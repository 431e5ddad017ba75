//! The functions of one file that plaintext goes through, with the places for probes.

use std::{fs::File, hash::RandomState};

use profiler_image::{
    debug_file, elf_layout::Layout, go_header::GoHeader, mini_debug, module_file::Origin,
};
use profiler_symbolize::{SymbolPacks, go_table::GoTable};

use super::{
    arguments::entry_site,
    call::{Convention, GO, Library, Operation, RUSTLS, TlsCall},
    code::{Bounds, Code},
    go_returns,
    graph::Graph,
    results::return_sites,
    site::{EntrySite, ReturnSite, Site},
    stripped, symbols,
};

/// `EM_X86_64`.
const X86_64: u16 = 62;
/// Largest debug file that is looked at.
const DEBUG_FILE_LIMIT: u64 = 8 << 30;

/// How functions were found, in the order in which the ways are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Evidence {
    ExportedSymbols,
    Symbols,
    GoTable,
    DebugFile,
    SymbolPack,
    MiniDebug,
    /// The constants with which errors are recorded, see `stripped`.
    ErrorConstants,
}

impl Evidence {
    pub fn name(self) -> &'static str {
        match self {
            Self::ExportedSymbols => "exported symbols",
            Self::Symbols => "symbols",
            Self::GoTable => "Go's function table",
            Self::DebugFile => "debug file",
            Self::SymbolPack => "symbol pack",
            Self::MiniDebug => ".gnu_debugdata",
            Self::ErrorConstants => "error constants",
        }
    }
}

/// A function with the places for probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFunction {
    pub call: TlsCall,
    /// As linked.
    pub address: u64,
    pub entry: EntrySite,
    /// Of those whose result is needed: passed by every call that has moved something.
    pub returns: Vec<ReturnSite>,
}

/// What is known of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFile {
    pub library: Library,
    pub evidence: Evidence,
    pub functions: Vec<TlsFunction>,
    /// Functions at which nothing is attached, with the reason.
    pub left_out: Vec<(&'static str, &'static str)>,
}

impl TlsFile {
    /// Whether plaintext goes through it; else it holds the other half of a library.
    pub fn has_plaintext(&self) -> bool {
        self.functions.is_empty() || self.plaintext().next().is_some()
    }

    /// The functions that plaintext goes through, and handshakes.
    pub fn plaintext(&self) -> impl Iterator<Item = &TlsFunction> {
        let functions = self.functions.iter();
        functions.filter(|function| function.call.operation != Operation::Ciphertext)
    }

    /// The functions that hand out ciphertext.
    pub fn ciphertext(&self) -> impl Iterator<Item = &TlsFunction> {
        let functions = self.functions.iter();
        functions.filter(|function| function.call.operation == Operation::Ciphertext)
    }
}

/// The answer about a file that holds a TLS library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Nothing in the file is a TLS library that is known.
    None,
    Found(TlsFile),
    /// The library is there, but nothing is attached.
    Refused(String),
}

/// Looks for TLS functions in an open file by what is in it.
pub fn find_in_file(file: &File) -> Finding {
    match Layout::read(file) {
        Ok(layout) => find(file, &layout, None, &SymbolPacks::default()),
        Err(_) => Finding::None,
    }
}

/// Looks for TLS functions in an open file of a process.
pub(crate) fn find(
    file: &File,
    layout: &Layout,
    origin: Option<&Origin>,
    packs: &SymbolPacks,
) -> Finding {
    if !layout.wide || layout.segments.is_empty() {
        return Finding::None;
    }
    let code = Code::of(file, layout);
    match candidates(file, layout, origin, packs, &code) {
        Ok(Some((evidence, _))) if layout.machine != X86_64 => Finding::Refused(format!(
            "found by {}, but its code is not for x86-64",
            evidence.name()
        )),
        Ok(Some((evidence, found))) => with_sites(&code, evidence, &found),
        Ok(None) => Finding::None,
        Err(unclear) => Finding::Refused(unclear.to_string()),
    }
}

/// Functions, and what they are known by.
type Functions = (Evidence, Vec<(TlsCall, Bounds)>);

/// The functions by the first evidence that has them for both directions.
fn candidates(
    file: &File,
    layout: &Layout,
    origin: Option<&Origin>,
    packs: &SymbolPacks,
    code: &Code<'_>,
) -> Result<Option<Functions>, stripped::Unclear> {
    let segments = &layout.segments;
    let by_symbols = |evidence, file: &File, layout: &Layout, table| {
        let found = symbols::functions(file, layout, table, segments);
        let found: Vec<_> = found
            .into_iter()
            .filter_map(|symbol| Some((symbol.call, bounds(code, symbol.address, symbol.bytes)?)))
            .collect();
        // Of rustls anything tells that it is there.
        let is_known = |(call, _): &(TlsCall, Bounds)| {
            call.library == Library::Rustls || call.operation == Operation::Ciphertext
        };
        let is_enough = has_both(&found) || found.iter().any(is_known);
        is_enough.then_some((evidence, found))
    };
    let own = [
        (Evidence::ExportedSymbols, ".dynsym"),
        (Evidence::Symbols, ".symtab"),
    ];
    for (evidence, table) in own {
        if let Some(found) = by_symbols(evidence, file, layout, table) {
            return Ok(Some(found));
        }
    }
    if GoHeader::section(layout).is_some() {
        return Ok(go(file, layout));
    }
    // A debug file of a library without TLS would have to be read in vain, so what is stripped is
    // searched first for a sign of one.
    let stripped = stripped::find(file, code);
    if matches!(&stripped, Ok(found) if found.is_empty()) {
        return Ok(None);
    }
    let found = origin.and_then(|origin| debug_file::find(origin, file, layout, DEBUG_FILE_LIMIT));
    if let Some(debug) = found
        && let Some(found) = by_symbols(Evidence::DebugFile, &debug.file, &debug.layout, ".symtab")
    {
        return Ok(Some(found));
    }
    if let Some(pack) = packs.find(&layout.build_id)
        && let Ok(pack_layout) = Layout::read(&pack.file)
        && let Some(found) = by_symbols(Evidence::SymbolPack, &pack.file, &pack_layout, ".symtab")
    {
        return Ok(Some(found));
    }
    if let Some(inner) = mini_debug::open(file, layout)
        && let Ok(inner_layout) = Layout::read(&inner)
        && let Some(found) = by_symbols(Evidence::MiniDebug, &inner, &inner_layout, ".symtab")
    {
        return Ok(Some(found));
    }
    let found = stripped?;
    let found = found.into_iter().map(|one| (one.call, one.bounds));
    Ok(Some((Evidence::ErrorConstants, found.collect())))
}

fn has_both(found: &[(TlsCall, Bounds)]) -> bool {
    [Operation::Write, Operation::Read]
        .into_iter()
        .all(|operation| found.iter().any(|(call, _)| call.operation == operation))
}

/// Where a symbol's function is; by the unwind table when the symbol has no size.
fn bounds(code: &Code<'_>, address: u64, bytes: u64) -> Option<Bounds> {
    if bytes > 0 {
        let end = address.checked_add(bytes)?;
        return Some(Bounds {
            start: address,
            end,
        });
    }
    code.around(address)
        .filter(|bounds| bounds.start == address)
}

fn go(file: &File, layout: &Layout) -> Option<Functions> {
    let table = GoTable::read(file, layout, &RandomState::new())?;
    let found: Vec<_> = table
        .functions_named(GO.map(|call| call.name))
        .into_iter()
        .zip(GO)
        .filter_map(|(found, call)| {
            let (start, end) = found?;
            Some((call, Bounds { start, end }))
        })
        .collect();
    (!found.is_empty()).then_some((Evidence::GoTable, found))
}

fn with_sites(code: &Code<'_>, evidence: Evidence, found: &[(TlsCall, Bounds)]) -> Finding {
    let Some((first, _)) = found.first() else {
        return Finding::None;
    };
    let mut file = TlsFile {
        library: first.library,
        evidence,
        functions: Vec::new(),
        left_out: Vec::new(),
    };
    for (call, bounds) in found {
        match function(code, *call, *bounds) {
            Ok(function) => file.functions.push(function),
            Err(reason) => file.left_out.push((call.name, reason)),
        }
    }
    let is_of_rustls = |(call, _): &(TlsCall, Bounds)| call.library == Library::Rustls;
    if found.iter().any(is_of_rustls) {
        without_halves(&mut file);
    }
    Finding::Found(file)
}

/// Of rustls no method says anything without the others.
fn without_halves(file: &mut TlsFile) {
    let has = |call: &TlsCall| file.functions.iter().any(|one| one.call == *call);
    let is_left_out = |call: &TlsCall| file.left_out.iter().any(|(name, _)| *name == call.name);
    let missing: Vec<_> = RUSTLS.into_iter().filter(|call| !has(call)).collect();
    if missing.is_empty() {
        return;
    }
    let reasons = missing.iter().filter(|call| !is_left_out(call));
    let reasons: Vec<_> = reasons
        .map(|call| {
            (
                call.name,
                "compiled into its callers, so that nothing can be read",
            )
        })
        .collect();
    file.left_out.extend(reasons);
    file.functions
        .retain(|function| function.call.library != Library::Rustls);
}

fn function(code: &Code<'_>, call: TlsCall, bounds: Bounds) -> Result<TlsFunction, &'static str> {
    let read = |address: u64, buffer: &mut [u8]| code.read(address, buffer);
    let graph = Graph::follow(bounds.start, bounds.end, &read);
    let entry = entry_site(&graph, call.convention).ok_or("its code cannot be read")?;
    let needs_result = match call.convention {
        Convention::RustChunks => true,
        Convention::RustPayload => false,
        _ => call.operation == Operation::Read,
    };
    let returns = match call.convention {
        _ if !needs_result => Vec::new(),
        Convention::Go | Convention::GoSession => {
            let bytes = code.function(bounds).ok_or("its code cannot be read")?;
            go_returns::all(bounds, &bytes)
        }
        _ => return_sites(&graph, call.convention),
    };
    // Without its frame a call of rustls is not known again.
    let needs_frame = matches!(
        call.convention,
        Convention::RustChunks | Convention::RustProcess
    );
    let has_frame = |site: &Site| site.frame_bytes.is_some();
    let has_frames = has_frame(&entry.site) && returns.iter().all(|one| has_frame(&one.site));
    if needs_frame && !has_frames {
        return Err("its frame is not known");
    }
    if needs_result && returns.is_empty() {
        return Err("it can return in ways that cannot be followed");
    }
    Ok(TlsFunction {
        call,
        address: bounds.start,
        entry,
        returns,
    })
}
