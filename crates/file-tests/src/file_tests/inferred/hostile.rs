//! Damaged and malicious files: whatever the bytes, an answer comes in bounded time.

use profiler_symbolize::inferred;

use super::program::compiled;

/// A small generator, so that each run tests the same files.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap() % limit
    }
}

/// Infers, asks for every name, and drops all of it.
fn look_into(file: &[u8]) -> usize {
    let Ok(names) = inferred::infer(file) else {
        return 0;
    };
    names
        .claims()
        .filter_map(|claim| names.at(claim.start))
        .map(|inferred| assert!(inferred.name.len() < 4096))
        .count()
}

/// File range of a section, by its name.
fn section(file: &[u8], name: &str) -> std::ops::Range<usize> {
    use object::{Object as _, ObjectSection as _};
    let parsed = object::File::parse(file).unwrap();
    let section = parsed.section_by_name(name).unwrap();
    let (start, bytes) = section.file_range().unwrap();
    let start = usize::try_from(start).unwrap();
    start..start + usize::try_from(bytes).unwrap()
}

#[test]
fn damaged_files_do_no_harm() {
    let sound = &compiled(&["-Os"]).stripped;
    assert!(look_into(sound) > 100);
    let headers = sound.len() - 4096..sound.len();
    let mut spans = vec![0..1024, headers, 0..sound.len()];
    spans.extend(
        [
            ".eh_frame",
            ".rela.dyn",
            ".data.rel.ro",
            ".rodata",
            ".dynsym",
        ]
        .map(|name| section(sound, name)),
    );
    let mut dice = Dice(0x1234_5678_9abc_def1);
    for round in 0..320 {
        let mut bytes = sound.clone();
        let span = spans[round % spans.len()].clone();
        for _ in 0..=dice.below(24) {
            let at = span.start + dice.below(span.len());
            bytes[at] = match dice.below(3) {
                0 => 0xff,
                1 => bytes[at] ^ 1 << dice.below(8),
                _ => u8::try_from(dice.below(256)).unwrap(),
            };
        }
        look_into(&bytes);
    }
}

/// Words of the data exchanged: pointers that lead to the wrong things.
#[test]
fn exchanged_pointers_do_no_harm() {
    let sound = &compiled(&["-Os", "-no-pie"]).stripped;
    let mut dice = Dice(0x0bad_cafe_dead_beef);
    for span in [section(sound, ".data.rel.ro"), section(sound, ".rodata")] {
        for _ in 0..60 {
            let mut bytes = sound.clone();
            for _ in 0..200 {
                let word = |dice: &mut Dice| span.start + dice.below(span.len() / 8 - 1) * 8;
                let (from, to) = (word(&mut dice), word(&mut dice));
                bytes.copy_within(from..from + 8, to);
            }
            look_into(&bytes);
        }
    }
}

#[test]
fn cut_files_do_no_harm() {
    let sound = &compiled(&["-Os"]).stripped;
    for end in (0..sound.len())
        .step_by(sound.len() / 120 + 1)
        .chain(0..130)
    {
        look_into(&sound[..end]);
    }
}

#[test]
fn other_files_have_no_names() {
    for bytes in [&b""[..], b"\x7fELF", b"#!/bin/sh\n", &[0xff; 4096]] {
        assert!(inferred::infer(bytes).is_err());
    }
}
