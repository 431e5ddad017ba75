//! A Rust release program whose call chain is known. Burns CPU until it is killed.

use std::hint::black_box;

#[inline(never)]
fn rust_leaf(rounds: u64) -> u64 {
    let mut value = black_box(1_u64);
    for _ in 0..rounds {
        value = black_box(value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
    value
}

#[inline(never)]
fn rust_middle(parts: &[u64]) -> u64 {
    let closure = |part: &u64| rust_leaf(*part) ^ part;
    black_box(parts.iter().map(closure).fold(0, u64::wrapping_add))
}

#[inline(never)]
fn rust_outer() {
    let parts = black_box(vec![100_000_u64; 16]);
    black_box(rust_middle(&parts));
    black_box(&parts);
}

fn main() {
    println!("ready");
    loop {
        rust_outer();
    }
}
