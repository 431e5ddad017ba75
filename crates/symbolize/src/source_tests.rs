//! Where names come from: separate debug files, compressed symbol tables and packs, in their order.

use std::{
    fs,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
};

use lzma_rust2::{XzOptions, XzWriter};
use profiler_image::{debug_file, elf_layout::Layout, module_file::Origin};
use profiler_model::{Clock, NameSource, ProfileBuilder};
use profiler_test_programs::{Running, compile_stripped, tool};
use tempfile::TempDir;

use super::{SymbolPacks, SymbolizeConfig, Symbolizer};

const BUILD_ID: &str = "-Wl,--build-id=0xabcd";

struct Named {
    functions: Vec<String>,
    line: u32,
    source: NameSource,
}

fn with_packs(packs: &SymbolPacks) -> Symbolizer {
    Symbolizer::new(SymbolizeConfig {
        packs: packs.clone(),
        ..SymbolizeConfig::default()
    })
}

fn name(symbolizer: &mut Symbolizer, running: &Running, place: &str) -> Named {
    let mut builder = ProfileBuilder::new(0, 1, Clock::CpuClock);
    symbolizer.process_started(running.key);
    symbolizer.user_stack(running.key, &[running.address(place)], &mut builder);
    let profile = builder.finish();
    let frame = &profile.frames[0];
    let text = |id| profile.text(id).to_owned();
    Named {
        functions: frame
            .functions
            .iter()
            .map(|function| text(function.name))
            .collect(),
        line: frame.functions.first().map_or(0, |function| function.line),
        source: frame.source,
    }
}

#[track_caller]
fn check(running: &Running, place: &str, functions: &[&str], source: NameSource) {
    check_with(&SymbolPacks::none(), running, place, functions, source);
}

#[track_caller]
fn check_with(
    packs: &SymbolPacks,
    running: &Running,
    place: &str,
    functions: &[&str],
    source: NameSource,
) {
    let named = name(&mut with_packs(packs), running, place);
    assert_eq!(
        (named.functions, named.source),
        (functions.iter().map(ToString::to_string).collect(), source)
    );
}

/// A stripped program and what belongs to it.
struct Stripped {
    dir: TempDir,
    program: PathBuf,
}

impl Stripped {
    fn new(flags: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let program = compile_stripped(dir.path(), flags);
        Self { dir, program }
    }

    fn tool(&self, name: &str, arguments: &[&str]) {
        tool(self.dir.path(), name, arguments);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn run(self) -> Running {
        let Self { dir, program } = self;
        Running::of(dir, program)
    }
}

#[test]
fn a_debug_link_leads_to_names_and_lines() {
    for folder in [".", ".debug"] {
        let stripped = Stripped::new(&[]);
        stripped.tool("objcopy", &["--add-gnu-debuglink=program.debug", "program"]);
        fs::create_dir_all(stripped.path(folder)).unwrap();
        let place = stripped.path(folder).join("program.debug");
        fs::rename(stripped.path("program.debug"), place).unwrap();
        let running = stripped.run();
        let named = name(&mut with_packs(&SymbolPacks::none()), &running, "inlined");
        assert_eq!(named.functions, ["inlined", "outer"]);
        assert_eq!((named.line, named.source), (14, NameSource::DebugFile));
        check(
            &running,
            "cpp",
            &["shape::area(int, int)"],
            NameSource::DebugFile,
        );
    }
}

#[test]
fn a_debug_file_with_another_checksum_or_build_id_is_not_used() {
    let stripped = Stripped::new(&[BUILD_ID]);
    stripped.tool("objcopy", &["--add-gnu-debuglink=program.debug", "program"]);
    let debug = stripped.path("program.debug");
    let changed = [fs::read(&debug).unwrap().as_slice(), b"x"].concat();
    fs::write(&debug, changed).unwrap();
    check(&stripped.run(), "hidden", &[], NameSource::None);

    let stripped = Stripped::new(&[BUILD_ID]);
    let other = Stripped::new(&["-Wl,--build-id=0x1234"]);
    fs::copy(other.path("program.debug"), stripped.path("program.debug")).unwrap();
    stripped.tool("objcopy", &["--add-gnu-debuglink=program.debug", "program"]);
    check(&stripped.run(), "hidden", &[], NameSource::None);
}

/// The same program in another place; `root` plays the root directory of its process.
fn find_below(root: &Path, program: &Path) -> Option<NameSource> {
    let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::DIRECTORY;
    let fd: OwnedFd = rustix::fs::open(root, flags, rustix::fs::Mode::empty()).unwrap();
    let origin = Origin {
        root: Arc::new(fd),
        path: Arc::from(&b"/usr/bin/program"[..]),
        mounts: None,
    };
    let file = fs::File::open(program).unwrap();
    let layout = Layout::read(&file).unwrap();
    debug_file::find(&origin, &file, &layout, 1 << 30).map(|_| NameSource::DebugFile)
}

#[test]
fn debug_files_of_a_container_are_found_by_build_id() {
    let stripped = Stripped::new(&[BUILD_ID]);
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("usr/lib/debug/.build-id/ab");
    fs::create_dir_all(&folder).unwrap();
    let place = folder.join("cd.debug");
    assert_eq!(find_below(root.path(), &stripped.program), None);
    fs::copy(stripped.path("program.debug"), &place).unwrap();
    assert_eq!(
        find_below(root.path(), &stripped.program),
        Some(NameSource::DebugFile)
    );
    // A file of another build in that place, and a link that leaves the container.
    let other = Stripped::new(&["-Wl,--build-id=0x1234"]);
    fs::copy(other.path("program.debug"), &place).unwrap();
    assert_eq!(find_below(root.path(), &stripped.program), None);
    fs::remove_file(&place).unwrap();
    std::os::unix::fs::symlink(stripped.path("program.debug"), &place).unwrap();
    assert_eq!(find_below(root.path(), &stripped.program), None);
}

#[test]
fn a_compressed_symbol_table_names_static_functions() {
    let stripped = Stripped::new(&["-rdynamic"]);
    stripped.tool("objcopy", &["--strip-debug", "program.full", "mini"]);
    let mut writer = XzWriter::new(Vec::new(), XzOptions::with_preset(6)).unwrap();
    std::io::Write::write_all(&mut writer, &fs::read(stripped.path("mini")).unwrap()).unwrap();
    fs::write(stripped.path("mini.xz"), writer.finish().unwrap()).unwrap();
    stripped.tool(
        "objcopy",
        &["--add-section=.gnu_debugdata=mini.xz", "program"],
    );
    let running = stripped.run();
    check(&running, "hidden", &["hidden"], NameSource::MiniDebug);
    check(&running, "exported", &["exported"], NameSource::ElfSymbol);
    check(&running, "bare", &[], NameSource::None);
}

#[test]
fn packs_name_a_stripped_program_while_they_are_there() {
    let stripped = Stripped::new(&[BUILD_ID, "-Wl,-Ttext-segment=0x700000", "-no-pie"]);
    let debug = fs::read(stripped.path("program.debug")).unwrap();
    let store = tempfile::tempdir().unwrap();
    let packs = SymbolPacks::open(Some(store.path().join("symbols")), None, 1 << 30);
    let running = stripped.run();
    let mut symbolizer = with_packs(&packs);
    let unnamed = name(&mut symbolizer, &running, "hidden");
    assert_eq!(unnamed.source, NameSource::None);
    let take = || {
        let written = packs.begin().unwrap();
        fs::write(written.path(), &debug).unwrap();
        packs.take(written, None).unwrap()
    };
    let info = take();
    // Both a program that is known already and one that is seen first.
    for symbolizer in [&mut symbolizer, &mut with_packs(&packs)] {
        let named = name(symbolizer, &running, "inlined");
        assert_eq!(named.functions, ["inlined", "outer"]);
        assert_eq!((named.line, named.source), (14, NameSource::SymbolPack));
    }
    packs.remove(&info.build_id).unwrap();
    let unnamed = name(&mut symbolizer, &running, "hidden");
    assert_eq!(unnamed.source, NameSource::None);
    take();
    let named = name(&mut symbolizer, &running, "hidden");
    assert_eq!(named.source, NameSource::SymbolPack);
}

#[test]
fn a_folder_of_symbols_names_by_build_id_and_the_programs_own_come_first() {
    let stripped = Stripped::new(&[BUILD_ID, "-rdynamic"]);
    let folder = tempfile::tempdir().unwrap();
    fs::copy(stripped.path("program.full"), folder.path().join("x")).unwrap();
    // The pack has symbols only, so that both know a name and neither knows a line.
    tool(folder.path(), "objcopy", &["--strip-debug", "x"]);
    let packs = SymbolPacks::open(None, Some(folder.path().to_owned()), 1 << 30);
    let running = stripped.run();
    check_with(
        &packs,
        &running,
        "hidden",
        &["hidden"],
        NameSource::SymbolPack,
    );
    check_with(
        &packs,
        &running,
        "exported",
        &["exported"],
        NameSource::ElfSymbol,
    );
}
