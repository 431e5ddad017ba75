//! An ELF file of the fuzzer's making: headers, pages of rows, and a stack that leads through it.
#![no_main]

use std::{fs::File, io::Write as _, time::Instant};

use libfuzzer_sys::fuzz_target;
use profiler_agent::unwind::{
    CapturedStack, ProcessCode, TableCache, TableSizes, UnwindFile, unwind_capture,
};
use profiler_common::unwind::{state::State, x86_64::X86_64};
use rustix::fs::{MemfdFlags, memfd_create};

const START: u64 = 0x5500_0000_0000;
const STACK: u64 = 0x7f00_0000_0000;

fuzz_target!(|bytes: &[u8]| {
    let Ok(memory) = memfd_create("fuzz", MemfdFlags::CLOEXEC) else {
        return;
    };
    let mut file: File = memory.into();
    if file.write_all(bytes).is_err() {
        return;
    }
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
    // The file's own last bytes are the stack, so that the fuzzer can aim.
    let stack = &bytes[bytes.len().saturating_sub(4096)..];
    for page in opened.code_pages().into_iter().take(8) {
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
        let unwound = unwind_capture::<X86_64>(&mut cache, state, &stack, now);
        assert!(!unwound.frames.is_empty());
    }
});
