//! Files made to harm their reader: nothing may crash, hang or give a wrong name.

use std::{fs::File, io::Write as _, os::fd::AsFd as _, path::Path};

use profiler_image::module_file::{FileKey, Links, open_in_root};
use profiler_test_programs::compile;

use super::{SymbolizeConfig, modules::Modules, native::Names, quality::Quality};

/// Reads a file as a module and asks for some names.
fn look_into(path: &Path) -> (Vec<Names>, Quality) {
    let config = SymbolizeConfig::default();
    let root = File::open("/").unwrap();
    let path = path.canonicalize().unwrap();
    let name = path.to_str().unwrap().as_bytes();
    let file = open_in_root(
        root.as_fd(),
        name,
        config.max_file_bytes,
        Links::Follow,
        None,
    )
    .unwrap();
    let key: FileKey = file.key;
    let mut modules = Modules::new(config);
    modules.insert(file);
    let mut quality = Quality::default();
    let names = (0..0x3000)
        .step_by(0x40)
        .map(|offset| {
            modules
                .names(&key, offset, &mut quality)
                .unwrap()
                .1
                .as_ref()
                .clone()
        })
        .collect();
    (names, quality)
}

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

#[test]
fn damaged_programs_do_no_harm() {
    let dir = tempfile::tempdir().unwrap();
    let sound = std::fs::read(compile(dir.path(), "sound", &["-g", "-no-pie"])).unwrap();
    let path = dir.path().join("damaged");
    let mut dice = Dice(0x1234_5678_9abc_def1);
    for round in 0..300 {
        let mut bytes = sound.clone();
        // Headers are where damage does most; they are at both ends.
        let spans = [0..1024, sound.len() - 4096..sound.len(), 0..sound.len()];
        let span = spans[round % 3].clone();
        for _ in 0..=dice.below(12) {
            let at = span.start + dice.below(span.len());
            bytes[at] = if dice.below(3) == 0 {
                0xff
            } else {
                u8::try_from(dice.below(256)).unwrap()
            };
        }
        std::fs::write(&path, bytes).unwrap();
        look_into(&path);
    }
}

#[test]
fn damaged_debug_information_does_no_harm() {
    let dir = tempfile::tempdir().unwrap();
    let sound = std::fs::read(compile(dir.path(), "sound", &["-g", "-no-pie"])).unwrap();
    let find = |name: &str| {
        let file = File::open(dir.path().join("sound")).unwrap();
        let layout = profiler_image::elf_layout::Layout::read(&file).unwrap();
        let section = layout.section(name).unwrap();
        let start = usize::try_from(section.offset).unwrap();
        start..start + usize::try_from(section.bytes).unwrap()
    };
    let spans = [
        ".debug_info",
        ".debug_abbrev",
        ".debug_line",
        ".debug_str",
        ".symtab",
    ]
    .map(find);
    let path = dir.path().join("damaged");
    let mut dice = Dice(0x0bad_cafe_dead_beef);
    for round in 0..300 {
        let mut bytes = sound.clone();
        let span = spans[round % spans.len()].clone();
        for _ in 0..=dice.below(4) {
            bytes[span.start + dice.below(span.len())] = u8::try_from(dice.below(256)).unwrap();
        }
        std::fs::write(&path, bytes).unwrap();
        look_into(&path);
    }
}

#[test]
fn cut_programs_do_no_harm() {
    let dir = tempfile::tempdir().unwrap();
    let sound = std::fs::read(compile(dir.path(), "sound", &["-g"])).unwrap();
    let path = dir.path().join("cut");
    for end in (0..sound.len()).step_by(sound.len() / 100 + 1).chain(0..70) {
        std::fs::write(&path, &sound[..end]).unwrap();
        look_into(&path);
    }
}

#[test]
fn other_files_have_no_names() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("text");
    std::fs::write(&path, "#!/bin/sh\necho no program\n").unwrap();
    let (names, quality) = look_into(&path);
    assert!(names.iter().all(|names| *names == Names::none()));
    assert_eq!(quality.refused.get("not_elf"), Some(&1));
}

/// A hostile program names a file of the host as the place of its debug information.
#[test]
fn links_to_other_files_are_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "program", &["-g"]);
    let bytes = std::fs::read(&program).unwrap();
    // The same length as ".debug_aranges", so that the damage stays a rename.
    for link in [".gnu_debuglink", ".gnu_debugaltl"] {
        let at = bytes
            .windows(14)
            .position(|window| window == b".debug_aranges")
            .unwrap();
        let mut changed = bytes.clone();
        changed[at..at + 14].copy_from_slice(link.as_bytes());
        let path = dir.path().join("changed");
        std::fs::write(&path, changed).unwrap();
        let layout = profiler_image::elf_layout::Layout::read(&File::open(&path).unwrap()).unwrap();
        assert!(layout.section(link).is_some());
        let keys = std::hash::RandomState::new();
        let file = File::open(&path).unwrap();
        let copy = profiler_image::elf_copy::copy(
            &file,
            &layout,
            &mut profiler_image::elf_symbols::Bounds::none(),
            1 << 20,
            &keys,
        )
        .unwrap();
        let copied = profiler_image::elf_layout::Layout::read(&copy.file).unwrap();
        let names: Vec<&str> = copied
            .sections
            .iter()
            .flatten()
            .map(|section| section.name.as_str())
            .collect();
        assert!(
            names.contains(&".symtab") && names.contains(&".debug_info"),
            "{names:?}"
        );
        assert!(!names.iter().any(|name| name.contains("gnu")), "{names:?}");
    }
}

/// A mapped file that shrinks kills its reader; ours must not have it mapped.
#[test]
fn a_file_that_shrinks_while_it_is_used_does_no_harm() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "program", &["-g"]);
    let config = SymbolizeConfig::default();
    let root = File::open("/").unwrap();
    let path = program.canonicalize().unwrap();
    let name = path.to_str().unwrap().as_bytes();
    let file = open_in_root(root.as_fd(), name, u64::MAX, Links::Follow, None).unwrap();
    let key = file.key;
    let mut modules = Modules::new(config);
    modules.insert(file);
    let mut quality = Quality::default();
    let mut named = 0;
    for offset in 0x1000..0x1400 {
        named += modules
            .names(&key, offset, &mut quality)
            .unwrap()
            .1
            .functions
            .len();
        if offset == 0x1100 {
            File::options()
                .write(true)
                .open(&path)
                .unwrap()
                .set_len(0)
                .unwrap();
        }
    }
    assert!(named > 0);
    assert_eq!(quality.panics, 0);
}

#[test]
fn the_copy_is_sealed() {
    let dir = tempfile::tempdir().unwrap();
    let file = File::open(compile(dir.path(), "program", &[])).unwrap();
    let layout = profiler_image::elf_layout::Layout::read(&file).unwrap();
    let keys = std::hash::RandomState::new();
    let mut copy = profiler_image::elf_copy::copy(
        &file,
        &layout,
        &mut profiler_image::elf_symbols::Bounds::none(),
        0,
        &keys,
    )
    .unwrap();
    copy.file.write_all(b"x").unwrap_err();
    copy.file.set_len(0).unwrap_err();
    assert!(copy.symbols > 5);
}

/// A line program that names a source file beyond its table makes blazesym 0.2.7 panic. Where in
/// the section such a program starts depends on the compiler, so every place is tried.
#[test]
fn a_panic_of_the_library_is_contained_and_leaves_the_file_unnamed() {
    const SET_FILE: u8 = 4;
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "program", &["-g", "-no-pie"]);
    let sound = std::fs::read(&program).unwrap();
    let layout = profiler_image::elf_layout::Layout::read(&File::open(&program).unwrap()).unwrap();
    let lines = layout.section(".debug_line").unwrap();
    let start = usize::try_from(lines.offset).unwrap();
    let end = start + usize::try_from(lines.bytes).unwrap();
    let path = dir.path().join("changed");
    let panicked = (start..end).rev().find_map(|at| {
        let mut bytes = sound.clone();
        bytes[at] = SET_FILE;
        std::fs::write(&path, bytes).unwrap();
        let (names, quality) = look_into(&path);
        (quality.panics > 0).then_some((names, quality))
    });
    let (names, quality) =
        panicked.expect("this version of the library no longer panics: find another way to test");
    assert_eq!(
        quality.panics, 1,
        "the file is not given to the library again"
    );
    assert_eq!(names.last(), Some(&Names::none()));
}
