//! The unwinder's tables against gimli, at every instruction of real files, and damaged files.
//!
//! Run by `cargo xtask test unwind`, which fetches Envoy, Debian's arm64 glibc and the packages.
//! Release build: twenty-five million instructions are compared in some seconds.

#[cfg(test)]
mod oracle;

#[cfg(test)]
mod compare;
#[cfg(test)]
mod dwarf;
#[cfg(test)]
mod rows;
#[cfg(test)]
mod synthetic;

#[cfg(test)]
mod hostile;
