//! Damaged files do no harm, and none of them makes a program of another one.

use std::{
    fs::File,
    io::{Seek as _, Write as _},
};

use profiler_tls_sites::{Finding, find_in_file};

/// Damaged copies of each kind.
const COPIES: u32 = 60;

fn look(bytes: &[u8]) -> Finding {
    let mut file: File = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    find_in_file(&file)
}

#[test]
fn damaged_libraries_do_no_harm() {
    let path = super::libraries::library("libssl.so.3", "libssl3");
    let sound = std::fs::read(path).unwrap();
    assert!(matches!(look(&sound), Finding::Found(_)));
    for bytes in [0, 1, 63, 64, 4096, sound.len() / 2] {
        look(&sound[..bytes]);
    }
    let mut state = 7_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize
    };
    for copy in 0..COPIES {
        let mut damaged = sound.clone();
        // Headers at the beginning, tables of sections at the end, and anywhere.
        let (from, bytes) = match copy % 3 {
            0 => (0, 1024),
            1 => (sound.len() - 2048, 2048),
            _ => (0, sound.len()),
        };
        for _ in 0..16 {
            damaged[from + next() % bytes] = next().to_le_bytes()[0];
        }
        look(&damaged);
    }
}
