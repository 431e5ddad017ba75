use std::io::Write as _;

use profiler_test_programs::{compile, compile_stripped};

use super::*;

const ID: [u8; 8] = [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef];
const BUILD_ID: &str = "-Wl,--build-id=0x0123456789abcdef";
const OTHER: &str = "-Wl,--build-id=0xffee";
const ROOM: u64 = 64 << 20;

struct Fixture {
    dir: tempfile::TempDir,
    packs: SymbolPacks,
}

fn fixture(max_bytes: u64) -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let packs = SymbolPacks::open(Some(dir.path().join("symbols")), None, max_bytes);
    Fixture { dir, packs }
}

impl Fixture {
    fn upload(&self, content: &[u8], expected: Option<&[u8]>) -> Result<PackInfo, PackError> {
        let written = self.packs.begin()?;
        File::options()
            .write(true)
            .open(written.path())
            .unwrap()
            .write_all(content)
            .unwrap();
        self.packs.take(written, expected)
    }

    fn program(&self, flags: &[&str]) -> Vec<u8> {
        fs::read(compile(self.dir.path(), "program", flags)).unwrap()
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path().join("symbols")).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }
}

#[test]
fn a_pack_is_known_by_its_own_build_id_also_after_a_restart() {
    let fixture = fixture(ROOM);
    let program = fixture.program(&["-g", BUILD_ID]);
    let info = fixture.upload(&program, None).unwrap();
    assert_eq!(info.build_id, ID);
    assert_eq!(info.bytes, program.len() as u64);
    assert!(info.has_symbols && info.has_debug_information);
    assert_eq!(fixture.packs.changes(), 1);
    let again = SymbolPacks::open(Some(fixture.dir.path().join("symbols")), None, ROOM);
    for packs in [&fixture.packs, &again] {
        assert_eq!(packs.has(&ID), Some(NameSource::SymbolPack));
        assert_eq!(
            packs.find(&ID).unwrap().file.metadata().unwrap().len(),
            info.bytes
        );
        let listed = packs.list();
        assert_eq!(listed.len(), 1);
        assert_eq!(listed[0].build_id, ID);
    }
    assert!(again.remove(&ID).unwrap());
    assert!(!again.remove(&ID).unwrap());
    assert!(again.has(&ID).is_none() && again.list().is_empty());
    assert_eq!(fixture.files(), [""; 0]);
}

#[test]
fn files_that_cannot_serve_are_refused_and_not_kept() {
    let fixture = fixture(ROOM);
    let refused = |content: &[u8], expected: Option<&[u8]>| {
        fixture.upload(content, expected).unwrap_err().to_string()
    };
    assert!(refused(b"#!/bin/sh\n", None).contains("not a little-endian ELF file"));
    assert!(refused(b"", None).contains("not a little-endian ELF file"));
    let program = fixture.program(&["-Wl,--build-id=none"]);
    assert!(refused(&program, None).contains("has no build-id"));
    compile_stripped(fixture.dir.path(), &[BUILD_ID]);
    let stripped = fs::read(fixture.dir.path().join("program")).unwrap();
    assert!(refused(&stripped, None).contains("neither a symbol table nor debug information"));
    let other = fixture.program(&[OTHER]);
    assert_eq!(
        refused(&other, Some(&ID)),
        "the file has build-id ffee, but 0123456789abcdef was asked for: \
         it belongs to another build of the program"
    );
    assert_eq!(fixture.packs.list(), []);
    assert_eq!(fixture.files(), [""; 0], "what was refused is removed");
}

#[test]
fn packs_have_room_up_to_the_limit_together() {
    let sizes = fixture(ROOM);
    let (first, second) = (sizes.program(&[BUILD_ID]), sizes.program(&[OTHER]));
    let fixture = fixture(first.len() as u64 + 10);
    fixture.upload(&first, None).unwrap();
    // The same again replaces itself.
    fixture.upload(&first, Some(&ID)).unwrap();
    let error = fixture.upload(&second, None).unwrap_err();
    assert!(matches!(error, PackError::TooLarge { .. }), "{error}");
    // What a server gave makes room by itself and leaves uploads alone.
    let fetch = |content: &[u8], id: &[u8]| {
        let written = fixture.packs.begin().unwrap();
        fs::write(written.path(), content).unwrap();
        fixture.packs.take_fetched(written, id)
    };
    fetch(&second, &[0xff, 0xee]).unwrap();
    assert_eq!(
        fixture.packs.has(&[0xff, 0xee]),
        Some(NameSource::Debuginfod)
    );
    let third = sizes.program(&["-Wl,--build-id=0xddcc"]);
    fetch(&third, &[0xdd, 0xcc]).unwrap();
    assert_eq!(fixture.packs.has(&[0xff, 0xee]), None);
    assert_eq!(
        fixture.packs.has(&[0xdd, 0xcc]),
        Some(NameSource::Debuginfod)
    );
    assert_eq!(fixture.packs.has(&ID), Some(NameSource::SymbolPack));
    // An upload takes the place of what was fetched, and not the other way.
    assert_eq!(fetch(&first, &ID).unwrap().source, NameSource::SymbolPack);
    fixture.packs.remove(&ID).unwrap();
    assert_eq!(fetch(&first, &ID).unwrap().source, NameSource::Debuginfod);
    fixture.upload(&first, None).unwrap();
    assert_eq!(fixture.files(), ["0123456789abcdef.uploaded"]);
    assert!(matches!(
        fetch(&second, &ID).unwrap_err(),
        PackError::Mismatch { .. }
    ));
}

#[test]
fn an_upload_that_was_cut_by_a_crash_is_removed_at_the_next_start() {
    let fixture = fixture(ROOM);
    let written = fixture.packs.begin().unwrap();
    std::mem::forget(written);
    assert_eq!(fixture.files().len(), 1);
    SymbolPacks::open(Some(fixture.dir.path().join("symbols")), None, ROOM);
    assert_eq!(fixture.files(), [""; 0]);
}

#[test]
fn a_folder_of_the_users_is_searched_by_build_id() {
    let dir = tempfile::tempdir().unwrap();
    let below = dir.path().join("some/where");
    fs::create_dir_all(&below).unwrap();
    compile(&below, "any-name", &[BUILD_ID]);
    fs::write(below.join("notes.txt"), "no ELF file").unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        below.join("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let packs = SymbolPacks::open(None, Some(dir.path().to_owned()), ROOM);
    assert_eq!(packs.has(&ID), Some(NameSource::SymbolPack));
    assert!(packs.find(&ID).is_some());
    assert!(packs.find(&[1, 2, 3]).is_none());
    let listed = packs.list();
    assert_eq!(listed.len(), 1);
    assert!(listed[0].is_given);
    assert!(!packs.remove(&ID).unwrap(), "the folder is not ours");
    assert!(matches!(packs.begin(), Err(PackError::NoFolder)));
    // A file that was exchanged for another build is not used.
    compile(&below, "any-name", &[OTHER]);
    assert!(packs.find(&ID).is_none());
}
