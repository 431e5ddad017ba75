//! See `TARGETS` in `profiler_file_tests`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| profiler_file_tests::run("access_logs", bytes));
