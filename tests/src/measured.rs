//! Assertions about measurements: shares, rates, times and counts of samples that other work on the machine can spoil.
//!
//! A test that fails in one of them is run once more, alone, at the end of `cargo xtask test`
//! (`xtask/src/test/libtest.rs` looks for the word). What is true or false whatever else the machine does is
//! asserted with `assert!`, and gets no second run.

/// Like `assert!`, for a condition on a measurement.
#[macro_export]
macro_rules! assert_measured {
    ($condition:expr $(,)?) => {
        assert!($condition, "measured: {}", stringify!($condition))
    };
    ($condition:expr, $($message:tt)+) => {
        assert!($condition, "measured: {}", format_args!($($message)+))
    };
}
