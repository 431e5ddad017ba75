//! The stripped Envoy that the demo mesh runs.

use std::{fs::File, path::PathBuf, time::Instant};

use profiler_symbolize::inferred::{self, InferredNames};

/// `PROFILER_ENVOY` or what `cargo xtask setup` fetched.
pub(crate) fn envoy() -> PathBuf {
    let path = std::env::var_os("PROFILER_ENVOY").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/envoy-1.40.0/envoy"),
        PathBuf::from,
    );
    assert!(
        path.is_file(),
        "no Envoy at {}: run `cargo xtask setup` or set PROFILER_ENVOY",
        path.display()
    );
    path
}

#[test]
fn a_hundred_thousand_functions_are_named() {
    let file = File::open(envoy()).unwrap();
    let started = Instant::now();
    let names = inferred::infer_file(&file).unwrap();
    let elapsed = started.elapsed();
    let of = |which: fn(&inferred::Claim<'_>) -> bool| names.claims().filter(which).count();
    let methods = of(|claim| claim.class.is_some());
    println!(
        "Envoy: {} functions, {} named ({methods} methods, {} by source file, {} of the allocator) \
         in {elapsed:?}, table {} KiB, peak memory of this process {}",
        names.functions(),
        names.claims().count(),
        of(|claim| claim.class.is_none() && claim.file.is_some()),
        of(|claim| claim.in_allocator),
        names.bytes() / 1024,
        peak_memory(),
    );
    assert!(names.functions() > 240_000, "{}", names.functions());
    assert!(methods >= 100_000, "{methods}");
    assert!(names.bytes() < 16 << 20, "{}", names.bytes());
    spot_checks(&names);
}

/// Of the whole process, so only telling when no other test runs in it.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.unwrap().trim().to_owned()
}

/// Some classes and files that an Envoy certainly has.
fn spot_checks(names: &InferredNames) {
    let manager = names
        .claims()
        .filter(|claim| claim.class == Some("N5Envoy4Http21ConnectionManagerImplE"));
    let manager: Vec<String> = manager
        .filter_map(|claim| names.at(claim.start))
        .map(|inferred| inferred.name)
        .collect();
    assert!(manager.len() > 10, "{manager:?}");
    let is_slot = |name: &String| name.starts_with("Envoy::Http::ConnectionManagerImpl [vslot ");
    assert!(manager.iter().all(is_slot), "{manager:?}");
    let of_file =
        |claim: &inferred::Claim<'_>| claim.file == Some("source/common/http/conn_manager_impl.cc");
    assert!(names.claims().filter(of_file).count() > 20);
    let allocator = names.claims().filter(|claim| claim.in_allocator);
    let allocator: Vec<_> = allocator
        .filter_map(|claim| names.at(claim.start))
        .collect();
    assert!(allocator.len() > 500, "{}", allocator.len());
    assert!(
        allocator
            .iter()
            .any(|inferred| inferred.name == "[tcmalloc]")
    );
}
