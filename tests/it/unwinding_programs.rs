//! Whole user stacks of real programs under load: language runtimes, servers, and the mesh.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use profiler_tests::{
    agent::{Agent, ServeOptions, launch},
    assert_measured,
    folded::{Folded, FoldedStack},
    peers::free_port,
    process::Running,
    wait::wait_until,
    workload::Workload,
};

use rustix::process::Signal;
use serde_json::json;

use crate::{
    targets::{
        BUSY_PYTHON, EXIT, START, Targets, burn, busy_mesh, endless, finish_task, mesh_with_mtls,
        on_cpu, start_task, stop_load, stop_task,
    },
    unwinding::{Profiled, run},
};

const SECONDS: u64 = 4;

#[test]
fn rust_and_go_programs() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let rust = run(&targets, Workload::UnwindRust, "unwind-rust", "");
    let profiled = Profiled::of(&agent, &[rust.pid()], 2, 299);
    profiled.assert_complete(985, "a Rust program");
    let order = ["main", "rust_outer", "rust_middle", "rust_leaf"];
    assert_measured!(
        profiled.per_mille(&order) > 950,
        "{}",
        profiled.folded.summary()
    );
    drop(rust);
    let go = run(&targets, Workload::UnwindGo, "unwind-go", "");
    let profiled = Profiled::of(&agent, &[go.pid()], SECONDS, 299);
    profiled.assert_complete(970, "a Go program");
    let order = ["runtime.main", "main.main", "main.goOuter", "main.goMiddle"];
    assert_measured!(
        profiled.per_mille(&order) > 900,
        "{}",
        profiled.folded.summary()
    );
}

#[test]
fn interpreters_and_just_in_time_compilers() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let busy = targets
        .launch(Path::new("/usr/bin/python3"), "python")
        .args(["-c", BUSY_PYTHON])
        .start()
        .unwrap();
    burn(&busy, Duration::from_millis(200));
    let profiled = Profiled::of(&agent, &[busy.pid()], SECONDS, 299);
    profiled.assert_complete(980, "Python");
    drop(busy);
    let script = "\
function inner(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) % 65537; return s; }
function outer() { const a = []; for (let i = 0; i < 200; i++) a.push(inner(2000)); return a.sort().length; }
for (;;) outer();
";
    let node = targets
        .launch(Path::new("/usr/bin/node"), "node")
        .args(["-e", script])
        .start()
        .unwrap();
    burn(&node, Duration::from_millis(500));
    let profiled = Profiled::of(&agent, &[node.pid()], SECONDS, 299);
    profiled.assert_complete(960, "Node");
}

/// JavaScript keeps frame pointers, and the kernel's walker gives 127 frames.
const RECURSES: &str = "
function burns() { let sum = 0; for (let at = 0; at < 3e6; at++) sum += at; return sum; }
function recurses(depth) { return depth === 0 ? burns() : recurses(depth - 1) + 1; }
console.log('ready');
for (;;) recurses(300);
";

#[test]
fn a_stack_that_the_kernel_cuts_says_so() {
    let agent =
        Agent::start_with(ServeOptions::with_arguments(["--unwind=frame-pointers"])).unwrap();
    let targets = Targets::new();
    let mut target = targets
        .launch(Path::new("/usr/bin/node"), "node-deep")
        .args(["-e", RECURSES])
        .start()
        .unwrap();
    target
        .wait_for_line(START, |line| (line == "ready").then_some(()))
        .unwrap();
    burn(&target, Duration::from_millis(500));
    let id = start_task(&agent, &on_cpu(json!({ "pids": [target.pid()] }), 2, 199));
    let task = finish_task(&agent, &id, 2);
    let folded = agent.api.folded(&id, "").unwrap();
    let cut = |stack: &FoldedStack| {
        let marked = |frame: &String| frame == "[stack incomplete: too deep]";
        stack.frames.iter().any(marked)
    };
    let lost = task["losses"].as_array().unwrap().iter();
    let truncated = lost.filter(|loss| loss["kind"] == "user_stack_truncated");
    let truncated: u64 = truncated.filter_map(|loss| loss["count"].as_u64()).sum();
    assert!(truncated > 0, "{task}");
    assert_eq!(folded.count(cut), truncated, "{}", folded.summary());
}

/// Each function has one caller; the first is so short that most samples of it lie where its frame is
/// not complete or gone.
const CALLS: &str = "
function leaf(n) { return (n * 31 + 7) % 65537; }
function caller(n) { return leaf(n) + 1; }
function outer() { let sum = 0; for (let at = 0; at < 5000; at++) sum += caller(at); return sum; }
for (;;) outer();
";

#[test]
fn code_of_a_just_in_time_compiler_keeps_its_direct_caller() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let target = targets
        .launch(Path::new("/usr/bin/node"), "node-calls")
        .args(["--perf-basic-prof", "--no-turbo-inlining", "-e", CALLS])
        // It leaves a log there.
        .current_dir(&targets.folder)
        .start()
        .unwrap();
    burn(&target, Duration::from_secs(1));
    let profiled = Profiled::of(&agent, &[target.pid()], SECONDS, 999);
    let named = |stack: &FoldedStack, nth: usize, name: &str| {
        let frame = stack.frames.iter().rev().nth(nth);
        frame.is_some_and(|frame| frame.contains(name))
    };
    let folded = &profiled.folded;
    let leaf = folded.count(|stack| named(stack, 0, "leaf"));
    let whole = folded.count(|stack| named(stack, 0, "leaf") && named(stack, 1, "caller"));
    let _removed = fs::remove_file(format!("/tmp/perf-{}.map", target.pid()));
    assert_measured!(leaf >= 50, "{}", folded.summary());
    assert_measured!(
        whole * 10 >= leaf * 8,
        "{whole} of {leaf}: {}",
        folded.summary()
    );
}

/// Maps 384 MiB in small pages, says so, and waits to be ended.
const LARGE: &str = "
import mmap, signal
memory = mmap.mmap(-1, 384 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory.madvise(mmap.MADV_NOHUGEPAGE)
for page in range(0, len(memory), 4096):
    memory[page] = 1
print('ready', flush=True)
signal.pause()
";

#[test]
fn memory_that_a_process_gives_back_as_it_exits_is_time_of_its_own() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let mut target = targets
        .launch(Path::new("/usr/bin/python3"), "python-large")
        .args(["-c", LARGE])
        .start()
        .unwrap();
    target
        .wait_for_line(START, |line| (line == "ready").then_some(()))
        .unwrap();
    let id = start_task(&agent, &endless(json!({ "pids": [target.pid()] }), 999));
    target.signal(Signal::TERM).unwrap();
    target.wait(EXIT).unwrap();
    let mut folded = Folded::default();
    wait_until("its last moments are shown", EXIT, || {
        folded = agent.api.folded(&id, "").unwrap();
        folded.count(|stack| stack.has("exit_mmap")) > 0
    })
    .unwrap_or_else(|error| panic!("{error:#}: {}", folded.summary()));
    stop_task(&agent, &id);
}

#[test]
fn redis_under_load() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let (server, socket) = targets.redis();
    let path = socket.to_str().unwrap();
    let _load = targets
        .launch(Path::new("/usr/bin/redis-benchmark"), "redis-benchmark")
        .args(["-s", path, "-q", "-n", "100000000", "-t", "set,lpush"])
        .start()
        .unwrap();
    burn(&server, Duration::from_millis(100));
    let profiled = Profiled::of(&agent, &[server.pid()], SECONDS, 299);
    profiled.assert_complete(980, "redis-server");
}

#[test]
fn nginx_under_load() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let port = free_port().unwrap();
    let folder = targets.folder.display();
    let configuration = targets.folder.join("nginx.conf");
    fs::write(
        &configuration,
        format!(
            "daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log;
             events {{}}
             http {{
               access_log {folder}/access.log;
               client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
               fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi;
               scgi_temp_path {folder}/scgi;
               server {{ listen 127.0.0.1:{port}; return 200 'well'; }}
             }}"
        ),
    )
    .unwrap();
    let server = targets
        .launch(Path::new("/usr/sbin/nginx"), "nginx")
        .args(["-c", configuration.to_str().unwrap()])
        .start()
        .unwrap();
    let url = format!("http://127.0.0.1:{port}/");
    wait_until("nginx answers", START, || ureq::get(&url).call().is_ok()).unwrap();
    let enough = AtomicBool::new(false);
    let profiled = std::thread::scope(|scope| {
        scope.spawn(|| {
            let client = ureq::agent();
            while !enough.load(Ordering::Relaxed) {
                // A refused connection is not part of the test.
                if let Ok(mut answer) = client.get(&url).call() {
                    answer.body_mut().read_to_string().unwrap();
                }
            }
        });
        burn(&server, Duration::from_millis(50));
        let profiled = Profiled::of(&agent, &[server.pid()], SECONDS, 999);
        enough.store(true, Ordering::Relaxed);
        profiled
    });
    profiled.assert_complete(980, "nginx");
}

#[test]
fn both_envoys_of_the_mesh() {
    let agent = Agent::start().unwrap();
    let (mut mesh, envoys) = busy_mesh(&mesh_with_mtls());
    let profiled = Profiled::of(&agent, &envoys, 5, 499);
    profiled.assert_complete(980, "the mesh");
    stop_load(&mut mesh);
}

/// The numbers of the line of `record --verify-unwinding` that begins like this.
fn compared<const NUMBERS: usize>(errors: &str, beginning: &str) -> [u64; NUMBERS] {
    let line = errors
        .lines()
        .find_map(|line| line.strip_prefix(beginning))
        .unwrap_or_else(|| panic!("nothing was compared: {errors}"));
    let numbers: Vec<u64> = line
        .split([' ', ','])
        .filter_map(|word| word.parse().ok())
        .collect();
    numbers.try_into().unwrap_or_else(|_| panic!("{line}"))
}

fn verify(targets: &Targets, pids: &[u32], label: &str) -> Running {
    let output = targets.folder.join(format!("{label}.folded"));
    let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
    let arguments = [
        "record",
        "--pid",
        &pids.join(","),
        "--frequency",
        "499",
        "--duration",
        "6s",
        "--verify-unwinding",
        "2",
        "--format",
        "folded",
        "--output",
        output.to_str().unwrap(),
    ];
    launch(&arguments, label, &targets.folder).unwrap()
}

#[test]
fn the_frames_are_those_of_an_independent_unwinder() {
    let targets = Targets::new();
    let (_mesh, envoys) = busy_mesh(&mesh_with_mtls());
    let mut run = verify(&targets, &envoys, "verify-mesh");
    let status = run.wait(Duration::from_secs(6) + EXIT).unwrap();
    assert!(status.success(), "{status}: {}", run.errors());
    let [compared, identical] = compared(&run.errors(), "unwinding verified: ");
    assert_measured!(compared >= 100, "{}", run.errors());
    assert_measured!(
        identical * 1000 >= compared * 995,
        "{identical} of {compared}: {}",
        run.errors()
    );
}

mod alone {
    use super::*;

    /// Of every program on the machine: beside other tests there are more of them than are named in time.
    #[test]
    fn kernel_stacks_of_waits_are_those_of_the_kernels_own_walker() {
        let targets = Targets::new();
        let (_mesh, _envoys) = busy_mesh(&mesh_with_mtls());
        let label = "verify-kernel-stacks";
        let output = targets.folder.join("kernel-stacks.folded");
        let arguments = [
            "record",
            "--all",
            "--kind",
            "off-cpu",
            "--off-cpu-mode",
            "every",
            "--duration",
            "4s",
            // Every kernel stack is walked twice; of user stacks few.
            "--verify-unwinding",
            "1000000",
            "--format",
            "folded",
            "--output",
            output.to_str().unwrap(),
        ];
        let mut run = launch(&arguments, label, &targets.folder).unwrap();
        let status = run.wait(Duration::from_secs(4) + EXIT).unwrap();
        let errors = run.errors();
        assert!(status.success(), "{status}: {errors}");
        let [compared, waits, different] = compared(&errors, "note: kernel stacks verified: ");
        assert_eq!(different, 0, "{errors}");
        assert!(compared * 100 >= waits * 98, "{errors}");
        // A mesh under load, and not an idle machine.
        assert!(waits > 10_000, "{errors}");
        let folded = fs::read_to_string(&output).unwrap();
        assert!(
            folded
                .lines()
                .any(|line| line.starts_with("envoy") && line.contains("epoll_wait_[k]")),
            "no wait of Envoy in epoll has a kernel stack: {folded}"
        );
    }
}
