//! The fuzz targets without a fuzzer: seeded changes of real files, for a bounded CPU time each.
//!
//! Which inputs come follows from their number alone; how many come, from the machine. An input that
//! fails is kept and named, and its reader gets a test for it.
//! `PROFILER_FUZZ_SECONDS` is the CPU time for each target. Time that passes while other work has the processor does not
//! count, neither here nor for an input that takes too long.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};

use crate::{
    TARGETS,
    inputs::{self, Numbers, Original},
};

const SECONDS: u64 = 5;
/// Fewest inputs of an original that say anything.
const LEAST_INPUTS: u64 = 5;
/// Far above what any input takes, so that loaded machines do not fail.
const LIMIT: Duration = Duration::from_secs(20);

/// That this thread has used.
fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).expect("not negative")
}

fn fuzz(target: &str, originals: &[Original]) {
    // Readers catch panics of libraries on purpose; their texts would fill the log.
    std::panic::set_hook(Box::new(|_| {}));
    let found = TARGETS.iter().find(|known| known.name == target);
    let target = found.unwrap_or_else(|| panic!("no target {target}"));
    let seconds = std::env::var("PROFILER_FUZZ_SECONDS");
    let seconds = seconds.map_or(SECONDS, |text| text.parse().expect("a number"));
    let share = Duration::from_secs(seconds) / u32::try_from(originals.len()).expect("few");
    for original in originals {
        (target.run)(&original.bytes);
        let end = cpu_time() + share;
        let (mut count, mut slowest) = (0, Duration::ZERO);
        while count < LEAST_INPUTS || cpu_time() < end {
            let bytes = original.damaged(&mut Numbers::of(count));
            let begin = cpu_time();
            let result = catch_unwind(AssertUnwindSafe(|| (target.run)(&bytes)));
            let took = cpu_time().saturating_sub(begin);
            slowest = slowest.max(took);
            if result.is_err() || took > LIMIT {
                let kept = std::env::temp_dir().join(format!("fuzz-{}-{count}", target.name));
                std::fs::write(&kept, &bytes).expect("keep the input");
                drop(std::panic::take_hook());
                if result.is_err() {
                    eprintln!("kept as {}", kept.display());
                    // Once more, so that the panic shows.
                    (target.run)(&bytes);
                }
                panic!(
                    "{} of {}, input {count}: {took:?}, kept as {}",
                    target.name,
                    original.name,
                    kept.display()
                );
            }
            count += 1;
        }
        println!(
            "fuzz {} of {}: {count} inputs, the slowest took {slowest:?}",
            target.name, original.name
        );
    }
    let peak = peak_megabytes();
    if peak >= 1024 {
        drop(std::panic::take_hook());
        panic!("{peak} MB");
    }
}

/// Most memory that this process has had.
fn peak_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("own status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.expect("a number") / 1024
}

#[test]
fn unwind_tables() {
    fuzz(
        "unwind",
        &[
            Original::file("/usr/bin/dash"),
            inputs::musl_program(),
            Original::file("/lib/x86_64-linux-gnu/libc.so.6"),
        ],
    );
}

#[test]
fn names() {
    fuzz(
        "names",
        &[inputs::with_debug_information(), inputs::with_debug_data()],
    );
}

#[test]
fn inferred_names() {
    fuzz("inferred", &[inputs::with_classes()]);
}

#[test]
fn places_for_probes_of_tls() {
    let libssl = Original::file("/usr/lib/x86_64-linux-gnu/libssl.so.3");
    fuzz("tls_sites", &[libssl]);
}

#[test]
fn perf_maps() {
    fuzz("perf_map", &[inputs::perf_map()]);
}

#[test]
fn name_answers() {
    fuzz("name_answers", &[inputs::name_answer()]);
}

#[test]
fn imported_files() {
    fuzz("imports", &[inputs::pprof(), inputs::folded()]);
}

#[test]
fn envoy_answers() {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/fixtures/envoy_admin"
    );
    let answers = ["listeners", "clusters", "bootstrap"]
        .map(|name| Original::file(&format!("{folder}/{name}.json")));
    fuzz("envoy_admin", &answers);
}

#[test]
fn access_logs_of_envoy() {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/fixtures/access_logs"
    );
    let messages = ["requests", "connection", "records"]
        .map(|name| Original::file(&format!("{folder}/{name}.bin")));
    fuzz("access_logs", &messages);
}

#[test]
fn process_maps() {
    fuzz("maps", &[Original::file("/proc/self/maps")]);
}

#[test]
fn socket_table() {
    fuzz("socket_table", &[Original::file("/proc/self/net/tcp")]);
}

#[test]
fn connections() {
    let recorded = [
        "redis",
        "postgresql",
        "mysql",
        "tls",
        "kafka",
        "mongodb",
        "dns",
    ];
    fuzz("connection", &recorded.map(inputs::transcript));
}

#[test]
fn tls_records() {
    fuzz("tls", &[inputs::transcript("tls")]);
}

#[test]
fn dns_messages() {
    fuzz("dns", &[inputs::transcript("dns")]);
}

#[test]
fn redis_values() {
    fuzz("redis", &[inputs::transcript("redis")]);
}

#[test]
fn postgresql_messages() {
    fuzz("postgresql", &[inputs::transcript("postgresql")]);
}

#[test]
fn mysql_packets() {
    fuzz("mysql", &[inputs::transcript("mysql")]);
}

#[test]
fn kafka_messages() {
    fuzz("kafka", &[inputs::transcript("kafka")]);
}

#[test]
fn mongodb_messages() {
    fuzz("mongodb", &[inputs::transcript("mongodb")]);
}

#[test]
fn http1_conversations() {
    fuzz("http1", &[inputs::conversation("curl_http1")]);
}

#[test]
fn http2_conversations() {
    fuzz(
        "http2",
        &["curl_http2", "nghttp", "h2load"].map(inputs::conversation),
    );
}

#[test]
fn header_blocks() {
    fuzz("hpack", &[inputs::conversation("h2load")]);
}
