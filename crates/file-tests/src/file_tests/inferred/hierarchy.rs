//! The program of `program`, compiled in the ways that lay a file out differently.

use profiler_symbolize::inferred::{self, FileEvidence, InferredNames};

use super::{
    program::{Compiled, FILES, compiled},
    truth::Truth,
};

struct Inferred {
    truth: Truth,
    stripped: &'static [u8],
    names: InferredNames,
}

fn inferred(flags: &[&str]) -> Inferred {
    let Compiled { program, stripped } = compiled(flags);
    Inferred {
        truth: Truth::read(program),
        names: inferred::infer(stripped).unwrap(),
        stripped,
    }
}

/// Right claims about methods that each way of compiling must reach: 30 in each file.
const METHODS: usize = FILES * 30;

fn check(flags: &[&str]) {
    let inferred = inferred(flags);
    let score = inferred.truth.judge(inferred.stripped, &inferred.names);
    score.show(&flags.join(" "));
    score.assert_right(METHODS);
    check_files(&inferred);
}

/// Functions of the program say in their names which file they are from.
fn check_files(inferred: &Inferred) {
    let (mut right, mut beside, mut wrong) = (0u32, 0u32, Vec::new());
    for claim in inferred.names.claims() {
        let Some(file) = claim.file else { continue };
        let Some(symbols) = inferred.truth.names.get(&claim.start) else {
            continue;
        };
        let own = file
            .strip_prefix("src/part_")
            .and_then(|rest| rest.strip_suffix(".cc"));
        let is_of = |symbol: &String| match own {
            Some(number) => {
                symbol.contains(&format!("part{number}::"))
                    || symbol.contains(&format!("run_{number}("))
                    || symbol.contains("header_function")
                    || symbol.contains("Interface::")
                    || symbol.contains("Box<")
                    || symbol.contains("__base<")
                    || symbol.starts_with("std::")
                    || symbol.starts_with("__gnu_cxx::")
            }
            None => true,
        };
        if !symbols.iter().any(is_of) {
            wrong.push(format!("{file}: {symbols:?}"));
        } else if claim.file_evidence == FileEvidence::Neighbours {
            beside += 1;
        } else {
            right += 1;
        }
    }
    println!(
        "  {right} functions have the file they name, {beside} that of their neighbours, wrong: {wrong:?}"
    );
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(right >= u32::try_from(FILES * 10).unwrap(), "{right}");
}

#[test]
fn a_program_that_runs_anywhere() {
    check(&["-O2"]);
}

#[test]
fn a_program_without_optimisation() {
    check(&["-O0"]);
}

#[test]
fn a_program_at_a_fixed_address() {
    check(&["-O2", "-no-pie"]);
}

#[test]
fn a_static_program_at_a_fixed_address() {
    check(&["-O2", "-static"]);
}

#[test]
fn a_static_program_that_runs_anywhere() {
    check(&["-O2", "-static-pie"]);
}

#[test]
fn a_program_with_packed_relocations() {
    check(&["-O2", "-Wl,-z,pack-relative-relocs"]);
}

#[test]
fn a_shared_library() {
    check(&["-O2", "-shared", "-fPIC"]);
}

#[test]
fn a_library_with_hidden_symbols() {
    check(&[
        "-O3",
        "-shared",
        "-fPIC",
        "-fvisibility=hidden",
        "-Wl,-Bsymbolic",
    ]);
}

#[test]
fn a_program_with_sections_collected() {
    check(&[
        "-Os",
        "-ffunction-sections",
        "-fdata-sections",
        "-Wl,--gc-sections",
    ]);
}

fn name_of(inferred: &Inferred, symbol: &str) -> Option<String> {
    let is_it = |names: &Vec<String>| names.iter().any(|name| name == symbol);
    let (address, _) = inferred
        .truth
        .names
        .iter()
        .find(|(_, names)| is_it(names))?;
    Some(inferred.names.at(*address)?.name)
}

#[test]
fn names_read_as_they_should() {
    let inferred = inferred(&["-O2"]);
    let name = |symbol| name_of(&inferred, symbol).unwrap_or_default();
    // Slots 0 and 1 are destructors, then the interface's three functions.
    assert_eq!(
        name("part3::Level0::method_0(long)"),
        "part3::Level0 [vslot 5]"
    );
    assert_eq!(
        name("part3::Level4::method_6(long)"),
        "part3::Level4 [vslot 11]"
    );
    assert_eq!(name("part3::Left::root_one(long)"), "part3::Left [vslot 0]");
    // Inherited by all, and their own class has no table.
    assert_eq!(name("Interface::optional_one(long)"), "Interface [vslot 3]");
    assert_eq!(name("Interface::optional_two(long)"), "Interface [vslot 4]");
    assert_eq!(
        name("Box<part3::Bottom>::required(long)"),
        "Box<part3::Bottom> [vslot 2]"
    );
    assert_eq!(name("part3::free_0(long)"), "src/part_3.cc");
    assert_eq!(
        name("part3::free_2(long)"),
        "src/part_3.cc [same object file]"
    );
    // Two files are named: neither can be told to be its own. What is around it can.
    assert_eq!(
        name("part3::two_files(long)"),
        "src/part_3.cc [same object file]"
    );
}

#[test]
fn lambdas_are_named_by_the_function_around_them() {
    let inferred = inferred(&["-O2"]);
    let held = inferred
        .names
        .claims()
        .filter_map(|claim| inferred.names.at(claim.start));
    let held: Vec<String> = held
        .map(|named| named.name)
        .filter(|name| name.contains("[std::function"))
        .collect();
    for index in 1..=4 {
        let call =
            format!("part5::lambdas(long)::{{lambda(long)#{index}}} [std::function vslot 2]");
        assert!(held.contains(&call), "{held:#?}");
    }
}

#[test]
fn addresses_outside_of_functions_have_no_name() {
    let inferred = inferred(&["-O2"]);
    let claims: Vec<_> = inferred.names.claims().collect();
    for pair in claims.windows(2) {
        let end = pair[0].start + u64::from(pair[0].bytes);
        assert!(end <= pair[1].start);
        assert!(inferred.names.at(end - 1).is_some());
        if end < pair[1].start {
            assert!(inferred.names.at(end).is_none());
        }
    }
    assert!(inferred.names.at(0).is_none());
    assert!(inferred.names.at(u64::MAX).is_none());
}
