//! The readers of untrusted bytes, of a profiled process or a client, each as a function of these bytes: for the
//! libFuzzer targets in `fuzz/` and for the test step `fuzz`, which runs the same without a nightly.
//!
//! A reader fails its test by a panic, by memory or by time; what it answers is checked elsewhere.

use std::time::{Duration, Instant};

use profiler_analysis::import;
use profiler_common::unwind::{state::State, x86_64::X86_64};
use profiler_host::sockets;
use profiler_network::edges;
use profiler_symbolize::{self as symbolize, fuzzing::memory_file};
use profiler_tls_sites as tls_sites;
use profiler_unwind::{
    CapturedStack, ProcessCode, TableCache, TableSizes, UnwindFile, unwind_capture,
};

/// A reader and its name.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
}

/// All of them.
pub const TARGETS: [Target; 21] = [
    Target {
        name: "unwind",
        run: unwind,
    },
    Target {
        name: "names",
        run: symbolize::fuzzing::names,
    },
    Target {
        name: "inferred",
        run: inferred,
    },
    Target {
        name: "tls_sites",
        run: tls_sites,
    },
    Target {
        name: "perf_map",
        run: symbolize::fuzzing::perf_map,
    },
    Target {
        name: "maps",
        run: symbolize::fuzzing::maps,
    },
    Target {
        name: "name_answers",
        run: name_answers,
    },
    Target {
        name: "socket_table",
        run: socket_table,
    },
    Target {
        name: "imports",
        run: imports,
    },
    Target {
        name: "envoy_admin",
        run: envoy_admin,
    },
    Target {
        name: "http1",
        run: profiler_protocols::http_fuzzing::http1,
    },
    Target {
        name: "http2",
        run: profiler_protocols::http_fuzzing::http2,
    },
    Target {
        name: "hpack",
        run: profiler_protocols::http_fuzzing::hpack,
    },
    Target {
        name: "connection",
        run: profiler_protocols::fuzzing::connection,
    },
    Target {
        name: "tls",
        run: profiler_protocols::fuzzing::tls,
    },
    Target {
        name: "dns",
        run: profiler_protocols::fuzzing::dns,
    },
    Target {
        name: "redis",
        run: profiler_protocols::fuzzing::redis,
    },
    Target {
        name: "postgresql",
        run: profiler_protocols::fuzzing::postgresql,
    },
    Target {
        name: "mysql",
        run: profiler_protocols::fuzzing::mysql,
    },
    Target {
        name: "kafka",
        run: profiler_protocols::fuzzing::kafka,
    },
    Target {
        name: "mongodb",
        run: profiler_protocols::fuzzing::mongodb,
    },
];

/// Gives bytes to the reader of a name; does nothing when there is none.
pub fn run(name: &str, bytes: &[u8]) {
    if let Some(target) = TARGETS.iter().find(|target| target.name == name) {
        (target.run)(bytes);
    }
}

/// Far above what any input takes, so that loaded machines do not fail.
pub const LIMIT: Duration = Duration::from_secs(20);

const START: u64 = 0x5500_0000_0000;
const STACK: u64 = 0x7f00_0000_0000;
/// Pages of a file that are unwound in.
const PAGES: usize = 8;
/// Bytes at the end of the file that are taken for the stack, so that a fuzzer can aim.
const STACK_BYTES: usize = 4096;

/// An ELF file: headers, `.eh_frame_hdr`, `.eh_frame`, `.gopclntab`, code without descriptions; then
/// a stack that leads through it.
pub fn unwind(bytes: &[u8]) {
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

/// Class tables and source paths of a stripped C++ program.
pub fn inferred(bytes: &[u8]) {
    if let Ok(names) = symbolize::inferred::infer(bytes) {
        for claim in names.claims() {
            names.at(claim.start);
        }
    }
}

/// Functions of TLS libraries in a program, and places for probes in them.
pub fn tls_sites(bytes: &[u8]) {
    if let Some(file) = memory_file(bytes) {
        tls_sites::find_in_file(&file);
    }
}

/// An answer of a name server.
pub fn name_answers(bytes: &[u8]) {
    drop(edges::read_answer(bytes));
}

/// A list of sockets in `/proc`, which the kernel writes.
pub fn socket_table(bytes: &[u8]) {
    drop(sockets::read_socket_table(bytes));
}

/// A file to import.
pub fn imports(bytes: &[u8]) {
    drop(import::read(bytes, "file", 0, None));
}

/// An answer of an Envoy's admin interface.
pub fn envoy_admin(bytes: &[u8]) {
    profiler_host::envoy_admin::fuzz(bytes);
}
