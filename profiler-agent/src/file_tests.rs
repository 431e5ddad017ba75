//! Tests that need files of other programs (Envoy, Debian's packages, what compilers make), which `cargo xtask test` brings.
//!
//! They are modules of the library's own tests, so that the library is compiled once for both.

/// Seeded damage, for a bounded time: `cargo xtask test fuzz`.
#[path = "../tests/fuzz/main.rs"]
mod fuzz;
/// `cargo xtask test inferred`.
#[path = "../tests/inferred/main.rs"]
mod inferred;
/// `cargo xtask test tls-sites`.
#[path = "../tests/tls_sites/main.rs"]
mod tls_sites;
/// `cargo xtask test unwind`.
#[path = "../tests/unwind/main.rs"]
mod unwind;
