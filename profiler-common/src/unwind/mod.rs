//! Unwinding of user stacks without frame pointers: the tables and one step, the same source in the
//! kernel and in the agent.
//!
//! ```text
//! process slot -> Mappings: pc -> (file, address in the file)
//! (file, 64 KiB page) -> PageEntry -> RowBlock: the last row at or below the address -> Rule
//! Rule + registers + stack memory -> registers of the caller
//! ```
//!
//! Everything is `no_std`, without loops whose bounds the verifier cannot see, and without branches
//! in the searches: with ordinary bisection the verifier walks every path of (low, high).

#![expect(
    clippy::inline_always,
    reason = "one function for the verifier, and no calls in the sampling path"
)]
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "addresses and signed offsets are added modulo 2^64, and parts of addresses are cut out"
)]

pub mod rule;
pub mod table;
pub mod mapping;
pub mod search;
pub mod state;
pub mod step;
pub mod x86_64;
pub mod aarch64;
pub mod frame;
pub mod process;
pub mod capture;

#[cfg(test)]
mod tests;
