use std::{fs::File, os::unix::fs::MetadataExt as _};

use profiler_image::{
    maps::{Backing, read_mappings},
    proc_dir::read_stat,
};
use profiler_model::{Clock, Profile};
use profiler_test_programs::Running;

use super::*;

/// A frame as text, so that a test shows all of it.
#[derive(Debug, PartialEq, Eq)]
struct Shown {
    functions: Vec<String>,
    source: NameSource,
    kind: ModuleKind,
    module: String,
    offset: u64,
    lines: Vec<(String, u32)>,
}

struct Harness {
    symbolizer: Symbolizer,
}

impl Harness {
    fn new() -> Self {
        Self::with(SymbolizeConfig::default())
    }

    fn with(config: SymbolizeConfig) -> Self {
        Self {
            symbolizer: Symbolizer::new(config),
        }
    }

    fn of(running: &Running) -> Self {
        let mut harness = Self::new();
        assert_eq!(
            harness.symbolizer.process_started(running.key),
            Mappings::Known
        );
        harness
    }

    /// The one frame of an interrupted instruction.
    fn leaf(&mut self, process: ProcessKey, address: u64) -> Shown {
        let mut builder = ProfileBuilder::new(0, 1, Clock::CpuClock);
        let frames = self
            .symbolizer
            .user_stack(process, &[address], &mut builder);
        let profile = builder.finish();
        profile.check().unwrap();
        show(&profile, frames[0])
    }
}

fn show(profile: &Profile, frame: FrameId) -> Shown {
    let frame = &profile.frames[frame as usize];
    let module = &profile.modules[frame.module as usize];
    let text = |id| profile.text(id).to_owned();
    let file = |path: String| path.rsplit('/').next().unwrap().to_owned();
    Shown {
        functions: frame
            .functions
            .iter()
            .map(|function| text(function.name))
            .collect(),
        source: frame.source,
        kind: module.kind,
        module: text(module.path),
        offset: frame.offset,
        lines: frame
            .functions
            .iter()
            .filter(|function| function.line != 0)
            .map(|function| (file(text(function.file)), function.line))
            .collect(),
    }
}

#[track_caller]
fn check_names(shown: &Shown, functions: &[&str], source: NameSource) {
    assert_eq!(shown.functions, functions, "{shown:?}");
    assert_eq!(shown.source, source, "{shown:?}");
}

#[test]
fn cpp_and_rust_names_are_demangled() {
    let running = Running::start(&[]);
    let mut harness = Harness::of(&running);
    let cpp = harness.leaf(running.key, running.address("cpp"));
    check_names(&cpp, &["shape::area(int, int)"], NameSource::ElfSymbol);
    assert_eq!(cpp.module, running.path.to_str().unwrap());
    assert_eq!(cpp.kind, ModuleKind::Elf);
    let rust = harness.leaf(running.key, running.address("rust"));
    check_names(&rust, &["mycrate::foo"], NameSource::ElfSymbol);
}

#[test]
fn position_dependent_and_independent_programs_are_named() {
    for flag in ["-no-pie", "-pie"] {
        let running = Running::start(&[flag]);
        let mut harness = Harness::of(&running);
        let shown = harness.leaf(running.key, running.address("main"));
        check_names(&shown, &["main"], NameSource::ElfSymbol);
    }
}

#[test]
fn debug_information_gives_inlined_functions_with_lines() {
    for flags in [&["-g"][..], &["-g", "-gz=zlib"], &["-g", "-gdwarf-4"]] {
        let running = Running::start(flags);
        let mut harness = Harness::of(&running);
        let shown = harness.leaf(running.key, running.address("inlined"));
        check_names(&shown, &["inlined", "outer"], NameSource::Dwarf);
        let file = || "program.c".to_owned();
        assert_eq!(shown.lines, [(file(), 14), (file(), 19)], "{flags:?}");
    }
}

#[test]
fn too_much_debug_information_leaves_the_symbol_table() {
    let running = Running::start(&["-g"]);
    let config = SymbolizeConfig {
        max_debug_bytes: 100,
        ..SymbolizeConfig::default()
    };
    let mut harness = Harness::with(config);
    harness.symbolizer.process_started(running.key);
    let shown = harness.leaf(running.key, running.address("inlined"));
    // The label inside of `outer` has no size and must not hide it.
    check_names(&shown, &["outer"], NameSource::ElfSymbol);
    assert_eq!(harness.symbolizer.quality().debug_too_large, 1);
}

#[test]
fn return_addresses_belong_to_the_call_before_them() {
    let running = Running::start(&[]);
    let mut harness = Harness::of(&running);
    let mut builder = ProfileBuilder::new(0, 1, Clock::CpuClock);
    let start = running.address("cpp");
    let frames = harness
        .symbolizer
        .user_stack(running.key, &[start, start + 1], &mut builder);
    assert_eq!(
        frames[0], frames[1],
        "both name the first byte of the function"
    );
}

#[test]
fn a_symbol_without_size_names_nothing() {
    let running = Running::start(&[]);
    let mut harness = Harness::of(&running);
    for offset in [0, 1, 40] {
        let shown = harness.leaf(running.key, running.address("bare") + offset);
        check_names(&shown, &[], NameSource::None);
        assert_eq!(shown.module, running.path.to_str().unwrap());
    }
}

#[test]
fn a_symbol_without_size_names_its_unwind_entry() {
    let running = Running::start(&[]);
    let mut harness = Harness::of(&running);
    let at = running.address("framed");
    for offset in [0, 2] {
        let shown = harness.leaf(running.key, at + offset);
        check_names(&shown, &["framed"], NameSource::ElfSymbol);
    }
    for address in [at - 1, at + 3] {
        check_names(&harness.leaf(running.key, address), &[], NameSource::None);
    }
}

#[test]
fn functions_of_stripped_classes_are_named_by_inference() {
    for flags in [&["-s"][..], &["-s", "-no-pie"]] {
        let running = Running::start(flags);
        let mut harness = Harness::of(&running);
        let tabled = harness.leaf(running.key, running.address("tabled"));
        check_names(&tabled, &["shape::Square [vslot 1]"], NameSource::Inferred);
        let hidden = harness.leaf(running.key, running.address("hidden"));
        check_names(&hidden, &[], NameSource::None);
        assert!(harness.symbolizer.quality().inferred_bytes > 0);
    }
}

#[test]
fn nothing_is_inferred_where_symbols_name_the_function() {
    let running = Running::start(&[]);
    let mut harness = Harness::of(&running);
    let tabled = harness.leaf(running.key, running.address("tabled"));
    check_names(&tabled, &["tabled"], NameSource::ElfSymbol);
    let bare = harness.leaf(running.key, running.address("bare"));
    check_names(&bare, &[], NameSource::None);
    assert_eq!(harness.symbolizer.quality().inferred_bytes, 0);
}

#[test]
fn equal_files_share_their_inferred_names() {
    let first = Running::start(&["-s"]);
    let copy = first.dir.path().join("copy");
    std::fs::copy(&first.path, &copy).unwrap();
    let second = Running::again(copy);
    let mut harness = Harness::of(&first);
    harness.symbolizer.process_started(second.key);
    let mut bytes = Vec::new();
    for running in [&first, &second] {
        let tabled = harness.leaf(running.key, running.address("tabled"));
        check_names(&tabled, &["shape::Square [vslot 1]"], NameSource::Inferred);
        bytes.push(harness.symbolizer.quality().inferred_bytes);
    }
    assert!(bytes[1] < bytes[0] + bytes[0] / 2, "{bytes:?}");
}

#[test]
fn a_stripped_program_never_gets_the_nearest_exported_name() {
    let running = Running::start(&["-s", "-rdynamic"]);
    let mut harness = Harness::of(&running);
    let exported = harness.leaf(running.key, running.address("exported"));
    check_names(&exported, &["exported"], NameSource::ElfSymbol);
    let hidden = harness.leaf(running.key, running.address("hidden"));
    check_names(&hidden, &[], NameSource::None);
    // Offsets are those of the file, so that names can be looked up later.
    let distance = running.address("hidden") - running.address("exported");
    assert_eq!(hidden.offset - exported.offset, distance);
    assert!(hidden.offset < std::fs::metadata(&running.path).unwrap().len());
}

#[test]
fn build_id_is_kept_with_the_module() {
    let running = Running::start(&["-Wl,--build-id=0x0123456789abcdef", "-s"]);
    let mut harness = Harness::of(&running);
    let mut builder = ProfileBuilder::new(0, 1, Clock::CpuClock);
    harness
        .symbolizer
        .user_stack(running.key, &[running.address("main")], &mut builder);
    let profile = builder.finish();
    assert_eq!(
        profile.modules[0].build_id,
        [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef]
    );
}

#[test]
fn names_survive_the_exit_of_the_process_for_a_while() {
    let mut running = Running::start(&[]);
    let config = SymbolizeConfig {
        exit_grace: Duration::from_hours(1),
        ..SymbolizeConfig::default()
    };
    let mut harness = Harness::with(config);
    harness.symbolizer.process_started(running.key);
    running.kill();
    std::fs::remove_file(&running.path).unwrap();
    harness.symbolizer.process_exited(running.key);
    let shown = harness.leaf(running.key, running.address("cpp"));
    check_names(&shown, &["shape::area(int, int)"], NameSource::ElfSymbol);
    let key = running.key;
    harness
        .symbolizer
        .sweep(Instant::now() + Duration::from_secs(3700));
    assert_eq!(
        harness.leaf(key, running.address("cpp")).kind,
        ModuleKind::Unknown
    );
}

#[test]
fn files_of_gone_processes_are_closed() {
    let mut running = Running::start(&[]);
    let mut harness = Harness::of(&running);
    assert!(
        harness.symbolizer.quality().modules >= 2,
        "program and C library"
    );
    running.kill();
    harness.symbolizer.process_exited(running.key);
    harness
        .symbolizer
        .sweep(Instant::now() + Duration::from_hours(1));
    assert_eq!(harness.symbolizer.quality().modules, 0);
}

#[test]
fn a_process_that_is_gone_or_another_one_has_no_mappings() {
    let mut running = Running::start(&[]);
    let mut harness = Harness::new();
    let other = ProcessKey {
        start_ticks: running.key.start_ticks + 1,
        ..running.key
    };
    assert_eq!(harness.symbolizer.process_started(other), Mappings::Missing);
    running.kill();
    assert_eq!(
        harness.symbolizer.process_started(running.key),
        Mappings::Missing
    );
    let shown = harness.leaf(running.key, running.address("cpp"));
    assert_eq!(
        (shown.kind, shown.offset),
        (ModuleKind::Unknown, running.address("cpp"))
    );
}

#[test]
fn a_program_that_was_replaced_or_removed_keeps_its_names() {
    let running = Running::start(&[]);
    let address = running.address("cpp");
    let before = Harness::of(&running).leaf(running.key, address);
    assert!(!before.functions.is_empty(), "{before:?}");
    let other = running.dir.path().join("other");
    std::fs::write(&other, "another version").unwrap();
    std::fs::rename(&other, &running.path).unwrap();
    let check = || {
        let mut harness = Harness::of(&running);
        let after = harness.leaf(running.key, address);
        assert_eq!(after.functions, before.functions);
        assert_eq!((after.source, &after.lines), (before.source, &before.lines));
        assert!(after.module.contains("program"), "{after:?}");
        let refused = harness.symbolizer.quality().refused;
        assert!(refused.is_empty(), "{refused:?}");
    };
    check();
    std::fs::remove_file(&running.path).unwrap();
    check();
}

#[test]
fn unknown_addresses_stay_addresses() {
    let running = Running::start(&[]);
    let mut harness = Harness::of(&running);
    for address in [0, 1, 0x1234, u64::MAX >> 8] {
        let shown = harness.leaf(running.key, address);
        check_names(&shown, &[], NameSource::None);
        assert_eq!((shown.kind, shown.offset), (ModuleKind::Unknown, address));
    }
}

#[test]
fn jit_code_is_named_by_the_perf_map() {
    let running = Running::start(&[]);
    let mut harness = Harness::of(&running);
    let jit = running.address("jit");
    let unnamed = harness.leaf(running.key, jit);
    check_names(&unnamed, &[], NameSource::None);
    assert_eq!((unnamed.kind, unnamed.offset), (ModuleKind::Anonymous, jit));
    let path = format!("/tmp/perf-{}.map", running.key.pid);
    std::fs::write(&path, format!("{jit:x} 10 LazyCompile:*hot app.js:1\n")).unwrap();
    let mut harness = Harness::of(&running);
    let named = harness.leaf(running.key, jit + 0xf);
    let beyond = harness.leaf(running.key, jit + 0x10);
    std::fs::remove_file(&path).unwrap();
    check_names(&named, &["LazyCompile:*hot app.js:1"], NameSource::PerfMap);
    check_names(&beyond, &[], NameSource::None);
    assert!(!harness.symbolizer.has_old_perf_map(running.key.into()));
}

#[test]
fn a_perf_map_of_an_earlier_process_names_nothing() {
    let running = Running::start(&[]);
    let jit = running.address("jit");
    let path = format!("/tmp/perf-{}.map", running.key.pid);
    std::fs::write(&path, format!("{jit:x} 10 of_another\n")).unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    let before = std::time::SystemTime::now() - Duration::from_hours(1);
    file.set_modified(before).unwrap();
    let mut harness = Harness::of(&running);
    let named = harness.leaf(running.key, jit);
    std::fs::remove_file(&path).unwrap();
    check_names(&named, &[], NameSource::None);
    assert!(harness.symbolizer.has_old_perf_map(running.key.into()));
    assert_eq!(harness.symbolizer.quality().refused.get("old"), Some(&1));
}

#[test]
fn vdso_code_is_named() {
    let pid = std::process::id();
    let key = ProcessKey {
        pid,
        start_ticks: read_stat(pid).unwrap().start_ticks,
    };
    let mappings = read_mappings(File::open("/proc/self/maps").unwrap()).unwrap();
    let vdso = mappings
        .iter()
        .find(|mapping| mapping.backing == Backing::Vdso)
        .unwrap();
    let mut harness = Harness::new();
    harness.symbolizer.process_started(key);
    let named = (vdso.start..vdso.end)
        .step_by(16)
        .map(|address| harness.leaf(key, address))
        .find(|shown| {
            shown
                .functions
                .iter()
                .any(|name| name.contains("clock_gettime"))
        });
    let named = named.expect("the vDSO must have clock_gettime");
    assert_eq!(
        (named.source, named.kind),
        (NameSource::Vdso, ModuleKind::Vdso)
    );
    assert_eq!(named.module, "[vdso]");
}

#[test]
fn own_rust_code_is_named() {
    let pid = std::process::id();
    let key = ProcessKey {
        pid,
        start_ticks: read_stat(pid).unwrap().start_ticks,
    };
    let mut harness = Harness::new();
    harness.symbolizer.process_started(key);
    let shown = harness.leaf(key, own_rust_code_is_named as *const () as u64);
    let name = shown.functions.last().unwrap();
    assert!(
        name.ends_with("symbolizer::tests::own_rust_code_is_named"),
        "{shown:?}"
    );
}

#[test]
fn kernel_frames_say_kernel() {
    let mut harness = Harness::new();
    let mut builder = ProfileBuilder::new(0, 1, Clock::CpuClock);
    let frames = harness
        .symbolizer
        .kernel_stack(&[1 << 63, 1 << 63], &mut builder);
    assert_ne!(harness.symbolizer.kernel_symbols(), KernelSymbols::Unread);
    let profile = builder.finish();
    let shown = show(&profile, frames[0]);
    check_names(&shown, &[], NameSource::None);
    assert_eq!(
        (shown.kind, shown.module.as_str()),
        (ModuleKind::Kernel, "[kernel]")
    );
    assert_eq!(profile.frames[frames[0] as usize].space, FrameSpace::Kernel);
    assert_eq!(harness.symbolizer.quality().frames.get("none"), Some(&2));
}

#[test]
fn a_kernel_stack_that_was_cut_says_so() {
    let mut harness = Harness::new();
    let mut builder = ProfileBuilder::new(0, 1, Clock::CpuClock);
    let cut = mark::error(profiler_common::unwind::step::TOO_DEEP);
    let frames = harness
        .symbolizer
        .kernel_stack(&[1 << 63, cut], &mut builder);
    let profile = builder.finish();
    let last = &profile.frames[frames[1] as usize];
    assert_eq!(last.space, FrameSpace::Marker);
    let name = profile.text(last.functions[0].name);
    assert_eq!(name, "[stack incomplete: too deep]");
}

/// Descriptor numbers are used again: each program must keep its own names.
#[test]
fn many_programs_keep_their_own_names() {
    let all = [
        Running::start(&["-DA"]),
        Running::start(&["-O2"]),
        Running::start(&["-O0"]),
    ];
    let mut harness = Harness::new();
    for running in &all {
        harness.symbolizer.process_started(running.key);
    }
    for _ in 0..2 {
        for running in &all {
            for (place, name) in [
                ("main", "main"),
                ("exported", "exported"),
                ("hidden", "hidden"),
            ] {
                let shown = harness.leaf(running.key, running.address(place));
                check_names(&shown, &[name], NameSource::ElfSymbol);
            }
        }
    }
}

#[test]
fn the_number_of_open_files_is_bounded() {
    let all = [
        Running::start(&[]),
        Running::start(&["-O2"]),
        Running::start(&["-O0"]),
    ];
    let config = SymbolizeConfig {
        max_modules: 2,
        ..SymbolizeConfig::default()
    };
    let mut harness = Harness::with(config);
    for running in &all {
        harness.symbolizer.process_started(running.key);
        assert!(harness.symbolizer.quality().modules <= 2);
    }
    // What was closed is opened again while its process runs.
    std::thread::sleep(Duration::from_millis(300));
    for running in &all {
        let shown = harness.leaf(running.key, running.address("main"));
        check_names(&shown, &["main"], NameSource::ElfSymbol);
        assert!(harness.symbolizer.quality().modules <= 2);
    }
}

#[test]
fn the_number_of_processes_is_bounded() {
    let all = [Running::start(&[]), Running::start(&[])];
    let config = SymbolizeConfig {
        max_processes: 1,
        ..SymbolizeConfig::default()
    };
    let mut harness = Harness::with(config);
    for running in &all {
        harness.symbolizer.process_started(running.key);
        assert_eq!(harness.symbolizer.processes.len(), 1);
    }
}

#[test]
fn equal_files_share_one_copy() {
    let running = Running::start(&[]);
    let copy = running.dir.path().join("copy");
    std::fs::copy(&running.path, &copy).unwrap();
    assert_ne!(
        std::fs::metadata(&copy).unwrap().ino(),
        std::fs::metadata(&running.path).unwrap().ino()
    );
    let second = Running::again(copy);
    let mut harness = Harness::of(&running);
    harness.symbolizer.process_started(second.key);
    let first = harness.leaf(running.key, running.address("main"));
    let bytes = harness.symbolizer.quality().image_bytes;
    assert_eq!(
        harness.leaf(second.key, second.address("main")).functions,
        first.functions
    );
    assert_eq!(harness.symbolizer.quality().image_bytes, bytes);
}
