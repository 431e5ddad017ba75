//! What instructions say, against what descriptions say: in the C library that the tests run with,
//! whose code is followed as if it had none.

use profiler_common::unwind::rule::{cfa, fp};
use profiler_image::maps::{Backing, read_mappings};

use super::{super::machine::Machine, *};
use crate::cfi::Function;

fn libc() -> File {
    let maps = File::open("/proc/self/maps").unwrap();
    let paths = read_mappings(maps)
        .unwrap()
        .into_iter()
        .filter_map(|mapping| match mapping.backing {
            Backing::File { path, inode: _ } => String::from_utf8(path).ok(),
            Backing::Vdso | Backing::Anonymous { .. } => None,
        });
    let mut paths = paths.filter(|path| path.contains("libc.so") || path.contains("libc-"));
    File::open(paths.next().expect("a dynamically linked test")).unwrap()
}

#[derive(Debug, Default)]
struct Compared {
    equal: u64,
    /// Both are right, or DWARF says less.
    other_form: u64,
    wrong: Vec<(u64, Rule, Rule)>,
}

fn compare(function: &Function, rules: &[(u64, u64, Rule)], compared: &mut Compared) {
    for (nth, (start, expected)) in function.rows.iter().enumerate() {
        let next = function.rows.get(nth + 1);
        let end = next.map_or(function.end, |next| next.0);
        let from = rules.partition_point(|rule| rule.1 <= *start);
        for (at, _, got) in rules[from..].iter().take_while(|rule| rule.0 < end) {
            let at = (*at).max(*start);
            let kinds = (got.cfa_kind, expected.cfa_kind);
            if ![(cfa::SP, cfa::SP), (cfa::FP, cfa::FP)].contains(&kinds) {
                compared.other_form += 1;
                continue;
            }
            let frame_differs = match (got.fp_kind, expected.fp_kind) {
                (fp::AT_CFA, fp::AT_CFA) => got.fp_offset != expected.fp_offset,
                (fp::AT_CFA, fp::SAME) => true,
                _ => false,
            };
            if got.cfa_offset != expected.cfa_offset || frame_differs {
                compared.wrong.push((at, *got, *expected));
            } else {
                compared.equal += 1;
            }
        }
    }
}

#[test]
fn code_that_is_followed_gets_the_rules_of_its_descriptions() {
    let file = libc();
    let layout = Layout::read(&file).unwrap();
    let new_decoder = |section| Decoder::new(&file, section, Machine::X86_64);
    let index = FdeIndex::find(&file, &layout, &new_decoder).unwrap();
    // Some of it, so that the test stays short.
    let mut ranges = Vec::new();
    let text = layout.section(".text").unwrap();
    let mut code = vec![0; usize::try_from(text.bytes.min(CODE_BYTES)).unwrap()];
    assert_eq!(read_up_to(&file, text.offset, &mut code), code.len());
    ranges.push(CodeRange {
        start: text.address,
        bytes: code,
    });
    let rules = stack_flow::rules(&ranges, &functions(&file, &layout), &|address, bytes| {
        read_at(&file, &layout, &layout.segments, address, bytes)
    });
    let mut window = Window::new(&file);
    let mut decoder = new_decoder(index.section);
    let mut compared = Compared::default();
    for number in 0..index.len() {
        let (_, description) = index.entry(&mut window, number).unwrap();
        if let Some(function) = decoder.function(description) {
            compare(&function, &rules, &mut compared);
        }
    }
    let followed: u64 = rules.iter().map(|rule| rule.1 - rule.0).sum();
    let share = followed * 100 / text.bytes.min(CODE_BYTES);
    println!(
        "{} equal, {} in another form, {} wrong; {share} % of the code",
        compared.equal,
        compared.other_form,
        compared.wrong.len()
    );
    for (at, got, expected) in compared.wrong.iter().take(60) {
        println!("{at:x}: {got:?}, described as {expected:?}");
    }
    assert!(compared.equal > 10_000, "too little was followed");
    assert!(share >= 50, "too little was followed");
    assert!(compared.wrong.len() as u64 * 1000 <= compared.equal);
}
