//! The kernel side. One object is loaded for each task, with its own globals and maps.
//!
//! Data flow: a probe filters first ([`filter`]), takes the stack ([`stack`]), counts in a table
//! and sends what the agent does not know yet ([`emit`]).

#![no_std]
#![no_main]
// The target has no compare-and-swap, and so `core::sync::atomic` has no additions for it.
#![feature(core_intrinsics)]
#![expect(
    internal_features,
    reason = "the kernel's atomic addition has no other name"
)]

mod config;
mod counters;
mod emit;
mod filter;
mod kernel;
mod maps;
mod orc;
mod probes;
mod stack;
mod task;
mod threads;
mod timeline;
mod unwind;
mod wait_sampling;

#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    // The verifier rejects programs that could get here.
    loop {}
}

/// GPL-only helpers (`bpf_probe_read_kernel`) need a compatible licence.
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
