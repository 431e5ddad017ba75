//! What is inferred about real C++ programs, compared with their symbols, which the inference
//! does not see. Run by `cargo xtask test inferred`, which installs what it needs: g++, binutils,
//! Debian's C++ libraries (unpacked, not installed) and Envoy.

mod truth;

mod envoy;
mod hierarchy;
mod hostile;
mod libraries;
mod program;
