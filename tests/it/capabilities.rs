//! What the kernel reports about the capabilities of a profiler in a container.

use std::{fs, time::Duration};

use profiler_tests::wait::wait_until;

/// Numbers of `include/uapi/linux/capability.h`.
const CAPABILITIES: [(&str, u32); 8] = [
    ("DAC_READ_SEARCH", 2),
    ("NET_ADMIN", 12),
    ("SYS_PTRACE", 19),
    ("SYS_ADMIN", 21),
    ("SYSLOG", 34),
    ("PERFMON", 38),
    ("BPF", 39),
    ("CHECKPOINT_RESTORE", 40),
];

/// Whether the thread of this name understands what others wrote, and so holds no capability.
pub(crate) fn holds_nothing(name: &str) -> bool {
    const NAMES: [&str; 12] = [
        "http",
        "names",
        "symbolizer",
        "renamer",
        "payload",
        "tls-finder",
        "symbol-files",
        "forecast",
        "import",
        "envoy-admin",
        "debuginfod",
        "dns",
    ];
    NAMES.contains(&name) || name.starts_with("unwind-")
}

fn bits(names: &[String]) -> u64 {
    let number = |name: &String| {
        let found = CAPABILITIES.iter().find(|(known, _)| known == name);
        found
            .unwrap_or_else(|| panic!("unknown capability {name}"))
            .1
    };
    names.iter().map(|name| 1_u64 << number(name)).sum()
}

/// For threads that have just started, and have not yet given up what they had.
const SETTLE: Duration = Duration::from_secs(10);

/// Every thread has exactly those of `names`; those that understand what others wrote have none.
pub(crate) fn check_threads(pid: u32, names: &[String]) {
    let expected = bits(names);
    let mut wrong = Vec::new();
    wait_until("every thread has what it is to have", SETTLE, || {
        wrong = violations(pid, expected);
        wrong.is_empty()
    })
    .unwrap_or_else(|error| panic!("{error:#}: {}", wrong.join("\n")));
}

/// What is not as it is to be.
fn violations(pid: u32, expected: u64) -> Vec<String> {
    let mut wrong = Vec::new();
    let (mut http, mut named) = (0, 0);
    for task in fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
        // One that has just ended says nothing.
        let Ok(status) = fs::read_to_string(task.unwrap().path().join("status")) else {
            continue;
        };
        let set = |key: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(key));
            u64::from_str_radix(value.unwrap().trim(), 16).unwrap()
        };
        let first = status.lines().next().unwrap();
        let name = first.strip_prefix("Name:\t").unwrap();
        http += u32::from(name == "http");
        // With what it starts to look up addresses.
        named += u32::from(name == "names");
        let own = if holds_nothing(name) { 0 } else { expected };
        for (key, value) in [
            ("CapPrm:", own),
            ("CapEff:", own),
            ("CapBnd:", expected),
            ("NoNewPrivs:", 1),
        ] {
            if set(key) != value {
                wrong.push(format!("{key} is not {value:x}: {status}"));
            }
        }
    }
    if http != 1 || named == 0 {
        wrong.push(format!("{http} threads serve, {named} look up names"));
    }
    wrong
}
