use std::path::Path;

use profiler_image::elf_layout::{Layout, Segment};
use profiler_model::{Clock, FrameSpace, NameSource, ProfileBuilder};
use profiler_test_programs::{compile_stripped, tool};

use super::*;

const ID: [u8; 2] = [0xab, 0xcd];

fn open(path: &Path) -> Layout {
    Layout::read(&std::fs::File::open(path).unwrap()).unwrap()
}

/// File offset of a symbol, from `nm` of the unstripped program.
fn offset_of(dir: &Path, name: &str) -> u64 {
    let output = std::process::Command::new("nm")
        .arg(dir.join("program.full"))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text
        .lines()
        .find(|line| line.ends_with(&format!(" {name}")))
        .unwrap();
    let address = u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap();
    let segments = open(&dir.join("program")).segments;
    let segment: &Segment = segments
        .iter()
        .find(|segment| segment.contains(address, 1))
        .unwrap();
    address - segment.address + segment.offset
}

fn profile(offsets: &[(u64, NameSource)]) -> Profile {
    let mut builder = ProfileBuilder::new(0, 1, Clock::CpuClock);
    let module = builder.module("/app/program", &ID, ModuleKind::Elf);
    let other = builder.module("/app/other", &[], ModuleKind::Elf);
    let exact = builder.string("exact");
    for (offset, source) in offsets {
        let named = *source != NameSource::None;
        for module in [module, other] {
            builder.frame(Frame {
                space: FrameSpace::User,
                module,
                offset: *offset,
                functions: named
                    .then_some(Function {
                        name: exact,
                        file: 0,
                        line: 0,
                    })
                    .into_iter()
                    .collect(),
                source: *source,
            });
        }
    }
    builder.finish()
}

fn names(profile: &Profile, frame: usize) -> (Vec<&str>, NameSource) {
    profile.check().unwrap();
    let frame = &profile.frames[frame];
    let names = frame
        .functions
        .iter()
        .map(|function| profile.text(function.name));
    (names.collect(), frame.source)
}

fn take(packs: &SymbolPacks, path: &Path) {
    let written = packs.begin().unwrap();
    std::fs::copy(path, written.path()).unwrap();
    packs.take(written, None).unwrap();
}

/// A debug file alone does not know where the code lies in the program's file: in a program that
/// is linked at an odd distance this shows.
const FLAGS: [&str; 3] = [
    "-Wl,--build-id=0xabcd",
    "-no-pie",
    "-Wl,-Ttext-segment=0x700000",
];

#[test]
fn frames_without_exact_name_get_the_packs() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile_stripped(dir.path(), &FLAGS);
    let packs = SymbolPacks::open(Some(dir.path().join("symbols")), None, 16 << 20);
    let renamer = Renamer::start(packs.clone()).unwrap();
    let (mark, hidden) = (
        offset_of(dir.path(), "inlined_mark"),
        offset_of(dir.path(), "hidden"),
    );
    let taken = profile(&[
        (mark, NameSource::None),
        (hidden, NameSource::Inferred),
        (hidden, NameSource::ElfSymbol),
    ]);
    assert_eq!(renamer.rename(taken.clone()), taken, "there is no pack yet");
    packs.remember(&ID, &open(&program).segments);
    take(&packs, &dir.path().join("program.debug"));
    let named = renamer.rename(taken.clone());
    assert_eq!(
        names(&named, 0),
        (vec!["inlined", "outer"], NameSource::SymbolPack)
    );
    assert_eq!(named.frames[0].functions[0].line, 14);
    assert_eq!(names(&named, 2), (vec!["hidden"], NameSource::SymbolPack));
    assert_eq!(names(&named, 4), (vec!["exact"], NameSource::ElfSymbol));
    for other in [1, 3, 5] {
        assert_eq!(
            names(&named, other).1,
            taken.frames[other].source,
            "a module without build-id matches no pack"
        );
    }
    packs.remove(&ID).unwrap();
    assert_eq!(renamer.rename(taken.clone()), taken, "the pack is gone");
}

#[test]
fn a_whole_program_as_pack_knows_itself_where_its_code_lies() {
    let dir = tempfile::tempdir().unwrap();
    compile_stripped(dir.path(), &FLAGS);
    let packs = SymbolPacks::open(Some(dir.path().join("symbols")), None, 16 << 20);
    let renamer = Renamer::start(packs.clone()).unwrap();
    let taken = profile(&[(offset_of(dir.path(), "hidden"), NameSource::None)]);
    // Without a memory of the program a debug file alone does not help, and gives no wrong names.
    take(&packs, &dir.path().join("program.debug"));
    assert_eq!(renamer.rename(taken.clone()), taken);
    take(&packs, &dir.path().join("program.full"));
    let named = renamer.rename(taken.clone());
    assert_eq!(names(&named, 0), (vec!["hidden"], NameSource::SymbolPack));
    // Symbols alone will do.
    tool(dir.path(), "objcopy", &["--strip-debug", "program.full"]);
    take(&packs, &dir.path().join("program.full"));
    let named = renamer.rename(taken);
    assert_eq!(names(&named, 0), (vec!["hidden"], NameSource::SymbolPack));
}
