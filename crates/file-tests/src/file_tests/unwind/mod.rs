//! The unwinder's tables against gimli, at every instruction of real files, and damaged files.
//!
//! Run by `cargo xtask test unwind`, which fetches Envoy, Debian's arm64 glibc and the packages.

mod oracle;

mod compare;
mod dwarf;
mod rows;
mod synthetic;

mod hostile;
