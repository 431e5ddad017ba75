//! The stripped Envoy that the demo mesh runs.

use std::{fs::File, path::PathBuf, time::Instant};

use profiler_agent::symbolize::inferred;

/// `PROFILER_ENVOY` or what `cargo xtask setup` fetched.
fn envoy() -> PathBuf {
    let path = std::env::var_os("PROFILER_ENVOY").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target/tools/envoy-1.40.0/envoy"),
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
fn a_hundred_thousand_functions_of_envoy_are_named() {
    let file = File::open(envoy()).unwrap();
    let started = Instant::now();
    let names = inferred::infer_file(&file).unwrap();
    let elapsed = started.elapsed();
    let of = |which: fn(&inferred::Claim<'_>) -> bool| names.claims().filter(which).count();
    let methods = of(|claim| claim.class.is_some());
    println!(
        "Envoy: {} functions, {} named ({methods} methods, {} by source file, {} of the allocator) in {elapsed:?}, table {} KiB",
        names.functions(),
        names.claims().count(),
        of(|claim| claim.class.is_none() && claim.file.is_some()),
        of(|claim| claim.in_allocator),
        names.bytes() / 1024,
    );
    assert!(names.functions() > 240_000, "{}", names.functions());
    assert!(methods >= 100_000, "{methods}");
    assert!(names.bytes() < 16 << 20, "{}", names.bytes());
}

#[test]
fn the_allocator_and_the_connection_manager_are_recognised() {
    let file = File::open(envoy()).unwrap();
    let names = inferred::infer_file(&file).unwrap();
    let named = |wanted: &str| {
        names
            .claims()
            .filter_map(|claim| names.at(claim.start))
            .filter(|inferred| inferred.name.starts_with(wanted))
            .count()
    };
    assert!(named("Envoy::Http::ConnectionManagerImpl [vslot ") > 10);
    assert!(named("source/common/http/") > 10);
    assert!(named("[tcmalloc]") > 500);
    assert!(named("Envoy::Server::") > 100);
}
