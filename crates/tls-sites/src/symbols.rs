//! Functions of TLS libraries by the symbols of a file.

use std::fs::File;

use object::{
    Endianness,
    elf::{SHN_ABS, SHN_COMMON, SHN_UNDEF, STT_FUNC, Sym64},
    pod,
    read::elf::Sym as _,
};
use profiler_image::elf_layout::{Layout, Section, Segment, read_range, text_at};
use profiler_symbolize::demangle::demangle;

use super::call::{NAMED, RUSTLS, RUSTLS_GIVES, TlsCall};

/// Largest string table of symbols. Node's has 20 MB.
const STRINGS_LIMIT: u64 = 256 << 20;
/// Symbols of one table that are read.
const SYMBOLS_LIMIT: u64 = 4_000_000;
/// Symbols that are read at once.
const AT_ONCE: u64 = 16_384;
const SYMBOL_BYTES: u64 = 24;
/// Functions of one file; a program has one library, seldom two.
const FOUND_LIMIT: usize = 64;

/// A function by its symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Symbol {
    pub(super) call: TlsCall,
    pub(super) address: u64,
    /// Zero when the table does not say.
    pub(super) bytes: u64,
}

/// The functions that one symbol table names. `segments` are those of the program, which may be
/// another file than the one with the table.
pub(super) fn functions(
    file: &File,
    layout: &Layout,
    table: &str,
    segments: &[Segment],
) -> Vec<Symbol> {
    let mut found = Vec::new();
    if !layout.wide {
        return found;
    }
    let Some(table) = layout.section(table) else {
        return found;
    };
    let Some(strings) = strings(file, layout, table) else {
        return found;
    };
    let mut left = (table.bytes / SYMBOL_BYTES).min(SYMBOLS_LIMIT);
    let mut at = table.offset;
    while left > 0 && found.len() < FOUND_LIMIT {
        let bytes = left.min(AT_ONCE) * SYMBOL_BYTES;
        let Ok(data) = read_range(file, at, bytes, bytes, "symbols") else {
            break;
        };
        let Ok(symbols) = pod::slice_from_all_bytes::<Sym64<Endianness>>(&data) else {
            break;
        };
        found.extend(
            symbols
                .iter()
                .filter_map(|symbol| function(symbol, &strings, segments)),
        );
        at = at.saturating_add(bytes);
        left -= bytes / SYMBOL_BYTES;
    }
    found.truncate(FOUND_LIMIT);
    // Versions of a symbol have several entries.
    found.sort_by_key(|symbol| (symbol.call.name, symbol.address));
    found.dedup_by_key(|symbol| (symbol.call.name, symbol.address));
    found
}

fn strings(file: &File, layout: &Layout, table: &Section) -> Option<Vec<u8>> {
    let strings = layout.sections.get(table.link)?.as_ref()?;
    read_range(
        file,
        strings.offset,
        strings.bytes,
        STRINGS_LIMIT,
        "symbol names",
    )
    .ok()
}

fn function(symbol: &Sym64<Endianness>, strings: &[u8], segments: &[Segment]) -> Option<Symbol> {
    let endian = Endianness::Little;
    let section = symbol.st_shndx(endian);
    if symbol.st_type() != STT_FUNC || [SHN_UNDEF, SHN_ABS, SHN_COMMON].contains(&section) {
        return None;
    }
    let name = text_at(strings, symbol.st_name(endian) as usize)?;
    let call = named(name)?;
    let (address, bytes) = (symbol.st_value(endian), symbol.st_size(endian));
    let is_code = segments
        .iter()
        .any(|segment| segment.contains(address, bytes.max(1)));
    is_code.then_some(Symbol {
        call,
        address,
        bytes,
    })
}

/// The function that a symbol names, if it is one that plaintext goes through.
fn named(name: &str) -> Option<TlsCall> {
    if let Some(call) = NAMED.iter().find(|call| call.name == name) {
        return Some(*call);
    }
    // Mangled names of Rust hold their parts as they are.
    if !name.starts_with('_') || !name.contains("rustls") {
        return None;
    }
    let call = RUSTLS.into_iter().chain([RUSTLS_GIVES]).find(|call| {
        let mut parts = call.name.rsplit("::").take(2);
        parts.all(|part| name.contains(part))
    })?;
    // `rustls::conn::ConnectionCore<Data>::process_new_packets`, in the newer scheme
    // `<rustls::conn::ConnectionCore<..>>::process_new_packets`.
    let readable = demangle(name);
    let (owner, method) = call.name.rsplit_once("::")?;
    let rest = readable.trim_start_matches('<').strip_prefix(owner)?;
    let (kind, last) = rest.rsplit_once("::")?;
    let is_whole = kind.is_empty() || kind.starts_with(['<', '>']);
    (is_whole && last == method).then_some(call)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_functions_themselves_are_named() {
        let name = |text| named(text).map(|call| call.name);
        assert_eq!(name("SSL_read"), Some("SSL_read"));
        assert_eq!(name("SSL_write_ex"), Some("SSL_write_ex"));
        for other in [
            "SSL_read_early_data",
            "my_SSL_read",
            "ssl_read",
            "_SSL_read",
            "",
        ] {
            assert_eq!(name(other), None, "{other}");
        }
    }

    #[test]
    fn methods_of_rustls_are_named_in_both_schemes() {
        let is = |symbol: &str, call: usize| {
            let all: Vec<TlsCall> = RUSTLS.into_iter().chain([RUSTLS_GIVES]).collect();
            let found = named(symbol).map(|call| call.name);
            assert_eq!(found, Some(all[call].name), "{symbol}");
        };
        is(
            "_ZN6rustls12common_state11CommonState16buffer_plaintext17h0123456789abcdefE",
            0,
        );
        is(
            "_ZN6rustls12common_state11CommonState23take_received_plaintext17h0123456789abcdefE",
            1,
        );
        is(
            "_ZN6rustls4msgs8deframer7buffers17DeframerVecBuffer4read17h0123456789abcdefE",
            2,
        );
        is(
            "_ZN6rustls4conn26ConnectionCore$LT$Data$GT$19process_new_packets17h0123456789abcdefE",
            3,
        );
        is(
            "_RNvMNtCs6UhC1czskIQ_6rustls12common_stateNtB2_11CommonState16buffer_plaintext",
            0,
        );
        is(
            "_ZN6rustls6vecbuf14ChunkVecBuffer8write_to17h0123456789abcdefE",
            4,
        );
        for other in [
            "_ZN6rustls4msgs8deframer7buffers17DeframerVecBuffer12prepare_read17h0123456789abcdefE",
            "_ZN6rustls4conn28ConnectionCommon$LT$Data$GT$19process_new_packets17h0123456789abcdefE",
            "_ZN6rustls6server11server_conn14EarlyDataState23take_received_plaintext17h0123456789abcdefE",
            "_ZN6rustls12common_state11CommonState16buffer_plaintext28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE",
        ] {
            assert_eq!(named(other), None, "{other}");
        }
    }
}
