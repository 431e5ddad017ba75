//! Rules of diagnoses that could never hold: each pattern is tried on the names of the real stripped
//! Envoy, of nginx, of the C library, of OpenSSL and of this kernel.

use std::{collections::BTreeSet, fs, path::Path};

use object::{Object as _, ObjectSymbol as _};
use profiler_analysis::diagnosis::{DiagnosisRules, KnownNames};
use profiler_symbolize::inferred;

use super::envoy::envoy;

/// Exported functions of the first of these files that is there.
fn exported(paths: &[&str]) -> Vec<String> {
    let path = paths.iter().find(|path| Path::new(path).is_file());
    let path =
        path.unwrap_or_else(|| panic!("none of {paths:?}: `cargo xtask setup` installs them"));
    let bytes = fs::read(path).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    file.dynamic_symbols()
        // Not `is_definition`: functions that the loader chooses among have a kind of their own.
        .filter(|symbol| !symbol.is_undefined())
        .filter_map(|symbol| symbol.name().ok())
        .map(str::to_owned)
        .collect()
}

fn kernel() -> Vec<String> {
    let text = fs::read_to_string("/proc/kallsyms").unwrap();
    let name = |line: &str| line.split_whitespace().nth(2).map(str::to_owned);
    text.lines().filter_map(name).collect()
}

/// All names that the inference gives, each once.
fn of_envoy() -> Vec<String> {
    let names = inferred::infer_file(&fs::File::open(envoy()).unwrap()).unwrap();
    let all: BTreeSet<String> = names
        .claims()
        .filter_map(|claim| names.at(claim.start))
        .map(|inferred| inferred.name)
        .collect();
    all.into_iter().collect()
}

#[test]
fn every_pattern_matches_a_name_that_exists() {
    let rules = DiagnosisRules::new(None).unwrap();
    let libc = exported(&[
        "/lib/x86_64-linux-gnu/libc.so.6",
        "/lib/aarch64-linux-gnu/libc.so.6",
    ]);
    let ssl = exported(&[
        "/usr/lib/x86_64-linux-gnu/libssl.so.3",
        "/usr/lib/aarch64-linux-gnu/libssl.so.3",
    ]);
    let nginx = exported(&["/usr/sbin/nginx"]);
    let envoy = [of_envoy(), exported(&[&envoy().to_string_lossy()])].concat();
    let kernel = kernel();
    assert!(
        envoy.len() > 30_000 && kernel.len() > 50_000,
        "{} {}",
        envoy.len(),
        kernel.len()
    );
    let mut dead = rules.unproved_hand_overs(&envoy);
    for (set, user) in [
        ("envoy", [envoy, libc.clone()].concat()),
        ("nginx", [nginx, libc.clone(), ssl.clone()].concat()),
        ("generic", [libc, ssl].concat()),
    ] {
        dead.extend(rules.unproved(&KnownNames {
            set,
            user: &user,
            kernel: &kernel,
        }));
    }
    assert!(dead.is_empty(), "these match nothing:\n{}", dead.join("\n"));
}

#[test]
fn names_of_envoys_threads_are_in_its_binary() {
    let bytes = fs::read(envoy()).unwrap();
    let has = |text: &str| memmem(&bytes, text.as_bytes());
    let rules = DiagnosisRules::new(None).unwrap().list().rules;
    let of_envoy = rules.iter().filter(|rule| rule.sets == ["envoy"]);
    let threads: Vec<&String> = of_envoy.flat_map(|rule| &rule.thread).collect();
    assert!(threads.len() > 1);
    for thread in threads {
        let text = thread.trim_end_matches('*');
        assert!(has(text), "no {text:?} in the binary");
    }
}

fn memmem(whole: &[u8], part: &[u8]) -> bool {
    whole.windows(part.len()).any(|window| window == part)
}
