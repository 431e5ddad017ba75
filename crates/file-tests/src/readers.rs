//! Readers of files, lists and answers.

use std::{fs::File, io::Write as _, time::Instant};

use bytes::Bytes;
use profiler_access_logs as access_logs;
use profiler_analysis::import;
use profiler_common::unwind::{state::State, x86_64::X86_64};
use profiler_image::maps::{find, read_mappings};
use profiler_network::edges;
use profiler_symbolize as symbolize;
use profiler_tls_sites as tls;
use profiler_unwind::{
    CapturedStack, ProcessCode, TableCache, TableSizes, UnwindFile, unwind_capture,
};
use rustix::fs::{MemfdFlags, memfd_create};

const START: u64 = 0x5500_0000_0000;
const STACK: u64 = 0x7f00_0000_0000;
/// Pages of a file that are unwound in.
const PAGES: usize = 8;
/// Bytes at the end of the file that are taken for the stack, so that a fuzzer can aim.
const STACK_BYTES: usize = 4096;

/// An ELF file: headers, `.eh_frame_hdr`, `.eh_frame`, `.gopclntab`, code without descriptions; then
/// a stack that leads through it.
pub(crate) fn unwind(bytes: &[u8]) {
    let Some(file) = memory_file(bytes) else {
        return;
    };
    let (Ok(same), Ok(other)) = (file.try_clone(), file.try_clone()) else {
        return;
    };
    let Ok(opened) = UnwindFile::open(same) else {
        return;
    };
    let mut cache = TableCache::new(TableSizes {
        blocks: 128,
        pages: 256,
    });
    let Some(code) = ProcessCode::of_file(other, START) else {
        return;
    };
    let now = Instant::now();
    let bias = cache.set_process(0, code, now).mappings[1].bias;
    let stack = &bytes[bytes.len().saturating_sub(STACK_BYTES)..];
    for page in opened.code_pages().into_iter().take(PAGES) {
        let state = State {
            pc: (u64::from(page) << 16).wrapping_add(bias),
            sp: STACK,
            fp: STACK + 64,
            ..State::default()
        };
        let stack = CapturedStack {
            start: STACK,
            bytes: stack,
        };
        unwind_capture::<X86_64>(&mut cache, state, &stack, now);
    }
}

/// Symbols, DWARF, `.gnu_debugdata`, `.gnu_debuglink` and Go's table: of a program, and of the same
/// bytes as a debug file that belongs to another one.
pub(crate) fn names(bytes: &[u8]) {
    if let Some(file) = memory_file(bytes) {
        symbolize::fuzzing::names(file);
    }
}

/// Class tables and source paths of a stripped C++ program.
pub(crate) fn inferred(bytes: &[u8]) {
    if let Ok(names) = symbolize::inferred::infer(bytes) {
        for claim in names.claims() {
            names.at(claim.start);
        }
    }
}

/// Functions of TLS libraries in a program, and places for probes in them.
pub(crate) fn tls_sites(bytes: &[u8]) {
    if let Some(file) = memory_file(bytes) {
        tls::find_in_file(&file);
    }
}

/// A perf-map, and names of the addresses in it.
pub(crate) fn perf_map(bytes: &[u8]) {
    if let Some(file) = memory_file(bytes) {
        symbolize::fuzzing::perf_map(&file, bytes.len() as u64);
    }
}

/// `/proc/PID/maps`, in which paths are the process's own.
pub(crate) fn maps(bytes: &[u8]) {
    if let Ok(mappings) = read_mappings(bytes) {
        for mapping in &mappings {
            find(&mappings, mapping.start);
        }
    }
}

/// An answer of a name server.
pub(crate) fn name_answers(bytes: &[u8]) {
    drop(edges::read_answer(bytes));
}

/// A file to import.
pub(crate) fn imports(bytes: &[u8]) {
    drop(import::read(bytes, "file", 0, None));
}

/// A message of Envoy's access log service, and a request of its OpenTelemetry logger.
pub(crate) fn access_logs(bytes: &[u8]) {
    let message = Bytes::copy_from_slice(bytes);
    let limits = access_logs::Limits::default();
    let mut taken = 0;
    let decoded = access_logs::decode(&message, &limits, |entry| {
        look_at(entry);
        taken += 1;
    });
    if let (Ok(decoded), Ok(count)) = (decoded, access_logs::count_entries(bytes)) {
        assert_eq!(decoded.counts.entries, taken);
        assert_eq!(decoded.counts.all(), count.http + count.tcp);
    }
    let counts = access_logs::otlp::decode_records(&message, &limits, |_, entry| look_at(entry));
    if let (Ok(counts), Ok(count)) = (counts, access_logs::otlp::count_records(bytes)) {
        assert_eq!(counts.all(), count);
    }
}

fn look_at(entry: access_logs::Entry) {
    let entry = entry.detach();
    drop((entry.route(), entry.masked_path(128)));
    drop(entry.response.flags.short_names());
    for phase in &access_logs::PHASES {
        (phase.ns)(&entry.timing);
    }
    entry.in_proxy_ns();
    entry.role();
}

/// A file in memory with these bytes.
fn memory_file(bytes: &[u8]) -> Option<File> {
    let mut file: File = memfd_create("fuzz", MemfdFlags::CLOEXEC).ok()?.into();
    file.write_all(bytes).ok()?;
    Some(file)
}
