//! What is inferred about real C++ programs, compared with their symbols, which the inference
//! does not see. Run by `cargo xtask test inferred`, which installs what it needs: g++, binutils,
//! Debian's C++ libraries (unpacked, not installed) and Envoy. Rules of diagnoses are proved by the same names.

mod truth;

mod diagnosis_rules;
mod envoy;
mod hierarchy;
mod hostile;
mod libraries;
mod program;

use std::path::PathBuf;

/// Where compilers and packages are unpacked to, kept between runs.
fn scratch() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/inferred")
}
