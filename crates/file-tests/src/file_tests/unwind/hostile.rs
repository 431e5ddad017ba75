//! Damaged files: whatever a process puts into its binary, reading it ends soon and without a panic.
//!
//! Real files are changed at places that matter (headers, the search table, descriptions, Go's
//! table), opened, and their pages decoded and unwound with. The changes follow from a seed, which a
//! failure names.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt as _,
    path::Path,
    time::{Duration, Instant},
};

use object::{Object as _, ObjectSection as _};
use profiler_common::unwind::{state::State, x86_64::X86_64};
use profiler_unwind::{
    CapturedStack, ProcessCode, TableCache, TableSizes, UnwindFile, unwind_capture,
};

use super::oracle::given;

const INPUTS: u64 = 800;
/// Far above what any input takes, so that loaded machines do not fail.
const LIMIT: Duration = Duration::from_secs(20);
const START: u64 = 0x5500_0000_0000;
const STACK: u64 = 0x7f00_0000_0000;

/// A generator of numbers (xorshift64*).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }
}

/// A value that parsers like least.
fn nasty(numbers: &mut Numbers) -> u64 {
    match numbers.below(6) {
        0 => 0,
        1 => u64::MAX,
        2 => 1 << numbers.below(64),
        3 => u64::from(u32::MAX),
        4 => numbers.below(256),
        _ => numbers.next(),
    }
}

#[derive(Debug, Default)]
struct Outcome {
    opened: u64,
    pages: u64,
    frames: u64,
    slowest: Duration,
}

#[test]
fn a_damaged_program_is_read_without_harm() {
    let outcome = damage(Path::new("/usr/bin/dash"), 1);
    assert!(
        outcome.opened > INPUTS / 10 && outcome.frames > INPUTS,
        "{outcome:?}"
    );
}

#[test]
fn a_damaged_library_is_read_without_harm() {
    let outcome = damage(Path::new("/lib/x86_64-linux-gnu/libc.so.6"), 2);
    assert!(
        outcome.opened > INPUTS / 10 && outcome.pages > INPUTS,
        "{outcome:?}"
    );
}

#[test]
fn a_damaged_go_program_is_read_without_harm() {
    let outcome = damage(&given("PROFILER_GO_PROGRAM"), 3);
    assert!(
        outcome.opened > INPUTS / 10 && outcome.pages > INPUTS,
        "{outcome:?}"
    );
}

#[test]
fn noise_is_no_file() {
    let mut numbers = Numbers(4);
    for _ in 0..INPUTS {
        let length = usize::try_from(numbers.below(4096)).expect("a small number");
        let mut bytes: Vec<u8> = (0..length)
            .map(|_| numbers.next().to_le_bytes()[0])
            .collect();
        if length > 64 {
            bytes[..20].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0");
        }
        let file = tempfile::tempfile().expect("a temporary file");
        file.write_all_at(&bytes, 0).expect("write");
        read(file, &mut numbers, &mut Outcome::default());
    }
}

/// Reads variants of a file.
fn damage(path: &Path, seed: u64) -> Outcome {
    let original = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let places = places(&original);
    let file = tempfile::tempfile().expect("a temporary file");
    file.write_all_at(&original, 0).expect("write");
    let mut outcome = Outcome::default();
    for input in 0..INPUTS {
        let mut numbers = Numbers((seed << 32 | input).wrapping_add(1));
        let mut damaged = Vec::new();
        for _ in 0..=numbers.below(4) {
            let which = usize::try_from(numbers.below(places.len() as u64)).expect("an index");
            let (start, length) = places[which];
            let at = start + numbers.below(length);
            let width = 1 << numbers.below(4);
            let value = nasty(&mut numbers).to_le_bytes();
            file.write_all_at(&value[..width], at).expect("write");
            damaged.push((at, width));
        }
        let begin = Instant::now();
        read(
            file.try_clone().expect("a descriptor"),
            &mut numbers,
            &mut outcome,
        );
        let took = begin.elapsed();
        assert!(
            took < LIMIT,
            "{} input {input} of seed {seed} took {took:?}",
            path.display()
        );
        outcome.slowest = outcome.slowest.max(took);
        for (at, width) in damaged {
            let from = usize::try_from(at).expect("an offset");
            let to = (from + width).min(original.len());
            file.write_all_at(&original[from..to], at).expect("write");
        }
        file.set_len(original.len() as u64).expect("cut");
    }
    println!("hostile {}: {INPUTS} inputs, {outcome:?}", path.display());
    outcome
}

/// The parts of a file that are parsed, small ones often.
fn places(original: &[u8]) -> Vec<(u64, u64)> {
    let mut places = vec![(0, 64), (64, 56 * 12)];
    let object = object::File::parse(original).expect("an ELF file");
    for name in [".eh_frame_hdr", ".eh_frame", ".gopclntab", ".text"] {
        let range = object
            .section_by_name(name)
            .and_then(|section| section.file_range());
        if let Some((start, length)) = range {
            places.extend([
                (start, length.min(72)),
                (start, length),
                (start, length.min(4096)),
            ]);
        }
    }
    // Section headers are at the end.
    let length = original.len() as u64;
    places.push((length.saturating_sub(2048), length.min(2048)));
    places
}

/// What the agent does with a file: headers, some pages, and stacks through its code.
fn read(file: File, numbers: &mut Numbers, outcome: &mut Outcome) {
    let Ok(opened) = UnwindFile::open(file.try_clone().expect("a descriptor")) else {
        return;
    };
    outcome.opened += 1;
    let pages = opened.code_pages();
    let mut cache = TableCache::new(TableSizes {
        blocks: 128,
        pages: 256,
    });
    let now = Instant::now();
    let Some(code) = ProcessCode::of_file(file, START) else {
        return;
    };
    let mapping = cache.set_process(0, code, now).mappings[1];
    let stack: Vec<u8> = (0..2048)
        .flat_map(|_| address(numbers, &pages, mapping.bias).to_le_bytes())
        .collect();
    let stack = CapturedStack {
        start: STACK,
        bytes: &stack,
    };
    for _ in 0..4 {
        let mut state = State {
            pc: address(numbers, &pages, mapping.bias),
            sp: STACK + 8 * numbers.below(64),
            fp: STACK + 8 * numbers.below(256),
            ..State::default()
        };
        for register in &mut state.registers {
            *register = nasty(numbers);
        }
        let unwound = unwind_capture::<X86_64>(&mut cache, state, &stack, now);
        outcome.frames += unwound.frames.len() as u64;
    }
    outcome.pages += cache.counts().loaded;
    drop(cache.take_operations());
}

/// An address in a file's code, or near the stack, or anywhere.
fn address(numbers: &mut Numbers, pages: &[u32], bias: u64) -> u64 {
    match numbers.below(16) {
        0 => nasty(numbers),
        1..=3 => STACK + 8 * numbers.below(4096),
        _ => {
            let which = usize::try_from(numbers.below(pages.len() as u64)).expect("an index");
            let page = pages.get(which).copied().unwrap_or(0);
            (u64::from(page) << 16)
                .wrapping_add(numbers.below(1 << 16))
                .wrapping_add(bias)
        }
    }
}
