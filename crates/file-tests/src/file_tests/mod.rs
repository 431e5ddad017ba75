//! Tests that need files of other programs (Envoy, Debian's packages, what compilers make), which `cargo xtask test` brings.

/// Seeded damage, for a bounded time: `cargo xtask test fuzz`.
mod fuzz;
/// `cargo xtask test inferred`.
mod inferred;
/// `cargo xtask test tls-sites`.
mod tls_sites;
/// `cargo xtask test unwind`.
mod unwind;
