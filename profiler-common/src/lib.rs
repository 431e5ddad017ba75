//! What both sides compile: records, keys, limits and globals shared by the eBPF programs and the
//! agent.
//!
//! ABI rules: `repr(C)`, fixed-width integers only (no bool, enum, Option or usize), explicit
//! padding, sizes that are a multiple of 8, sizes and offsets asserted at compile time. Both sides
//! are built from this source together, so the layout needs no version.

#![no_std]

pub mod limits;
pub mod config;
pub mod counter;
pub mod header;
pub mod on_cpu;
pub mod off_cpu;
pub mod contention;
pub mod wall;
pub mod wakers;
pub mod event_loop;
pub mod network;
pub mod unix_sockets;
pub mod network_calls;
pub mod http;
pub mod http2;
pub mod payload;
pub mod tls;
pub mod process;
pub mod kernel_names;
pub mod stack;
pub mod unwind;
