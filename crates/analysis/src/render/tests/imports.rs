//! What is exported can be imported, and is then the same.

use std::collections::BTreeMap;

use profiler_model::{ImportValues, Profile, ThreadState};
use prost::Message as _;

use super::sketch::{deep, inferred, inlined, odd_names, pruned, simple, waits, wall, woken};
use crate::{
    import::{ImportError, read},
    render::{
        Budget, Format, Value, View, folded,
        pprof::message::{Line, Location, Mapping, Profile as Message, Sample, ValueType},
        render_view,
    },
};

const NOW: u64 = 1_800_000_000_000_000_000;

fn export(profile: &Profile, format: Format, value: Option<Value>) -> Vec<u8> {
    let view = View {
        value,
        title: "a title",
        ..View::default()
    };
    render_view(profile, format, &view).unwrap()
}

fn stacks(profile: &Profile, value: Value) -> BTreeMap<String, u64> {
    folded::stacks(profile, value, Budget::default(), 0)
}

/// Sums by state and thread, which folded stacks do not tell apart.
fn sums(profile: &Profile) -> BTreeMap<(u32, u32, ThreadState), (u64, u64)> {
    let mut sums = BTreeMap::new();
    for row in &profile.samples {
        let thread = &profile.threads[row.thread as usize];
        let pid = profile.processes[thread.process as usize].key.pid;
        let sum: &mut (u64, u64) = sums.entry((pid, thread.tid, row.state)).or_default();
        sum.0 += row.count;
        sum.1 += row.total_ns;
    }
    sums
}

#[test]
fn our_own_pprof_comes_back_with_the_same_totals_by_stack() {
    for (name, profile) in [
        ("simple", simple()),
        ("inlined", inlined()),
        ("inferred", inferred()),
        ("odd names", odd_names()),
        ("deep", deep()),
        ("pruned", pruned()),
        ("waits", waits()),
        ("woken", woken()),
    ] {
        let imported = read(&export(&profile, Format::Pprof, None), name, NOW, None).unwrap();
        assert_eq!(imported.file.name, name);
        assert_eq!(imported.file.values, ImportValues::Both, "{name}");
        assert!(imported.file.has_times && imported.file.has_threads);
        let again = imported.profile;
        assert_eq!(again.clock, profile.clock, "{name}");
        // A file that does not say when it was made is from now on.
        let origin_ns = if profile.origin_ns == 0 {
            NOW
        } else {
            profile.origin_ns
        };
        assert_eq!(again.origin_ns, origin_ns, "{name}");
        assert_eq!(again.to_ns, profile.to_ns, "{name}");
        for value in Value::ALL {
            assert_eq!(stacks(&again, value), stacks(&profile, value), "{name}");
        }
        assert_eq!(sums(&again), sums(&profile), "{name}");
    }
}

#[test]
fn a_wall_clock_profile_comes_back_without_counts() {
    let imported = read(&export(&wall(), Format::Pprof, None), "wall", NOW, None).unwrap();
    assert_eq!(imported.file.values, ImportValues::Durations);
    let (again, profile) = (imported.profile, wall());
    assert_eq!(again.total_count(), 0);
    assert_eq!(
        stacks(&again, Value::Duration),
        stacks(&profile, Value::Duration)
    );
}

#[test]
fn our_own_folded_stacks_come_back_as_the_same_text() {
    for (name, profile) in [
        ("simple", simple()),
        ("inlined", inlined()),
        ("inferred", inferred()),
        ("deep", deep()),
    ] {
        let text = export(&profile, Format::Folded, Some(Value::Count));
        let imported = read(&text, name, NOW, None).unwrap();
        assert_eq!(imported.file.values, ImportValues::Counts);
        assert!(!imported.file.has_times && !imported.file.has_threads);
        let again = export(&imported.profile, Format::Folded, None);
        assert_eq!(
            String::from_utf8(again).unwrap(),
            String::from_utf8(text).unwrap(),
            "{name}"
        );
    }
}

/// A file as `go tool pprof` or perf write it for a program without symbols: no functions at all.
fn nameless(unit: &str, value: i64) -> Message {
    Message {
        sample_type: vec![ValueType { r#type: 1, unit: 2 }],
        sample: vec![
            Sample {
                location_id: vec![1, 2],
                value: vec![value],
                label: Vec::new(),
            },
            Sample {
                location_id: vec![9],
                value: vec![1],
                label: Vec::new(),
            },
        ],
        mapping: vec![Mapping {
            id: 1,
            memory_start: 0x40_0000,
            memory_limit: 0x50_0000,
            file_offset: 0x1000,
            filename: 3,
            build_id: 4,
            ..Mapping::default()
        }],
        location: [(1, 0x40_0123), (2, 0x40_0456)]
            .map(|(id, address)| Location {
                id,
                mapping_id: 1,
                address,
                line: Vec::new(),
            })
            .into(),
        string_table: ["", "cpu", unit, "/usr/bin/server", "c0ffee12"]
            .map(str::to_owned)
            .into(),
        ..Message::default()
    }
}

#[test]
fn a_file_without_names_keeps_the_places_that_symbol_files_name() {
    let imported = read(
        &nameless("milliseconds", 7).encode_to_vec(),
        "plain",
        NOW,
        None,
    )
    .unwrap();
    assert_eq!(imported.file.values, ImportValues::Durations);
    assert_eq!(imported.began_ns, None);
    let folded = stacks(&imported.profile, Value::Duration);
    let expected = BTreeMap::from([
        (
            "server;server+0x1456;server+0x1123".to_owned(),
            7_000_000_u64,
        ),
        (
            "server;[location is missing in the file]".to_owned(),
            1_000_000,
        ),
    ]);
    assert_eq!(folded, expected);
    assert_eq!(
        imported.profile.modules[0].build_id,
        [0xc0, 0xff, 0xee, 0x12]
    );
}

#[test]
fn what_cannot_be_shown_is_refused_with_the_reason() {
    let check = |bytes: &[u8], expected: &str| {
        let error = read(bytes, "file", NOW, None).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    check(b"", "the file is empty");
    check(
        &nameless("bytes", 7).encode_to_vec(),
        "the file has neither counts nor times, only: cpu (bytes)",
    );
    check(
        &nameless("count", -7).encode_to_vec(),
        "sample 1: the value -7 is below zero: this is a difference of two profiles",
    );
    check(
        b"main;work 3\nmain;work x\n",
        "line 2: \"x\" is not a whole number of samples",
    );
    check(
        b"main;work 3 4\n",
        "line 1: two counts follow the stack: this is a difference of two profiles",
    );
    check(
        b"hello\n",
        "line 1: no count follows the stack; write `a;b;c 12`",
    );
    check(b"# nothing\n\n", "the file has no samples");
    let mut cut = nameless("count", 1).encode_to_vec();
    cut.truncate(cut.len() - 3);
    assert!(matches!(
        read(&cut, "file", NOW, None),
        Err(ImportError::NotAProfile(_))
    ));
    assert!(matches!(
        read(&[0x1f, 0x8b, 8, 0, 1], "file", NOW, None),
        Err(ImportError::Gzip(_))
    ));
    // A deep stack is refused before it is built.
    let deep = format!("main{} 1\n", ";f".repeat(5000));
    check(
        deep.as_bytes(),
        "line 1: the stack has more than 4096 names",
    );
}

#[test]
fn a_small_file_cannot_ask_for_much_memory() {
    // 200 MB of zeros take 200 kB packed.
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let zeros = vec![0_u8; 1 << 20];
    for _ in 0..200 {
        std::io::Write::write_all(&mut packer, &zeros).unwrap();
    }
    let bomb = packer.finish().unwrap();
    assert!(bomb.len() < 1 << 20);
    assert_eq!(
        read(&bomb, "file", NOW, None).unwrap_err(),
        ImportError::TooLarge
    );
    // Samples of five bytes each: more of them than are taken.
    let mut message = Message {
        sample_type: vec![ValueType { r#type: 0, unit: 1 }],
        string_table: vec![String::new(), "count".to_owned()],
        ..Message::default()
    }
    .encode_to_vec();
    for _ in 0..1_000_001 {
        message.extend_from_slice(&[0x12, 3, 0x12, 1, 1]);
    }
    assert_eq!(
        read(&message, "file", NOW, None).unwrap_err(),
        ImportError::TooMany {
            what: "samples",
            limit: 1_000_000
        }
    );
}

/// What is small as a file and large as a profile.
#[test]
fn names_of_stacks_are_counted_and_memory_is_asked_for() {
    let inlined = format!("x;m{} 1\n", ";a_[i]".repeat(20_000));
    let refused = read(inlined.as_bytes(), "file", NOW, None).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "line 1: the stack has more than 4096 names"
    );
    let location = |id, functions| Location {
        id,
        line: vec![
            Line {
                function_id: 1,
                line: 1
            };
            functions
        ],
        ..Location::default()
    };
    let message = |functions, frames| Message {
        sample_type: vec![ValueType { r#type: 1, unit: 1 }],
        string_table: vec![String::new(), "count".to_owned()],
        location: vec![location(1, functions)],
        sample: vec![Sample {
            location_id: vec![1; frames],
            value: vec![1],
            ..Sample::default()
        }],
        ..Message::default()
    };
    let bomb = message(1000, 999).encode_to_vec();
    let refused = read(&bomb, "file", NOW, None).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "sample 1: its stack has more than 4096 names"
    );
    read(&message(64, 60).encode_to_vec(), "file", NOW, None).unwrap();
    // Tables without samples.
    let mut tables = message(1, 1);
    tables.location = (0..2000).map(|id| location(id, 1000)).collect();
    let refused = read(&tables.encode_to_vec(), "file", NOW, Some(30 << 20)).unwrap_err();
    assert!(matches!(refused, ImportError::NoMemory { .. }), "{refused}");
    // Each line another stack.
    let lines: Vec<String> = (0..20_000)
        .map(|at| format!("x;a{at};b{at};c 1\n"))
        .collect();
    let lines = lines.concat();
    read(lines.as_bytes(), "file", NOW, None).unwrap();
    let refused = read(lines.as_bytes(), "file", NOW, Some(15 << 20)).unwrap_err();
    assert!(matches!(refused, ImportError::NoMemory { .. }), "{refused}");
}
