//! See `TARGETS` in `profiler_agent::fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| profiler_agent::fuzzing::run("connection", bytes));
