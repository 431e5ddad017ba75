//! How much of a sidecar's waiting is for its access log, by where the log goes.

use profiler_tests::{
    agent::Agent,
    assert_measured,
    folded::{Folded, FoldedStack},
    mesh::{AccessLog, MeshOptions},
};
use serde_json::json;

use crate::targets::{busy_mesh, finish_task, start_task, stop_load};

const SECONDS: u64 = 6;
/// Requests per second: few enough that two loaded CPUs keep up, so that every run is alike.
const REQUESTS: u32 = 300;

/// Blocked: neither waiting for a CPU nor, since idle waits are hidden, without anything to do.
fn is_blocked(stack: &FoldedStack) -> bool {
    !stack
        .frames
        .iter()
        .any(|frame| frame.contains("[runnable:"))
}

/// A write to a file or a pipe: sockets are written to by other functions.
fn is_log_write(stack: &FoldedStack) -> bool {
    is_blocked(stack) && stack.has("vfs_write") && !stack.has("sock_write_iter")
}

#[derive(Debug)]
struct Shares {
    /// Also those that only wait for a CPU.
    all_switches: u64,
    switches: u64,
    log_switches: u64,
    milliseconds: u64,
    log_milliseconds: u64,
}

impl Shares {
    fn of(counts: &Folded, times: &Folded) -> Self {
        Self {
            all_switches: counts.total(),
            switches: counts.count(is_blocked),
            log_switches: counts.count(is_log_write),
            milliseconds: times.count(is_blocked) / 1_000_000,
            log_milliseconds: times.count(is_log_write) / 1_000_000,
        }
    }
}

fn measure(agent: &Agent, access_log: AccessLog) -> Shares {
    let (mut mesh, envoys) = busy_mesh(&MeshOptions {
        access_log,
        rps: REQUESTS,
        ..MeshOptions::default()
    });
    let specification = json!({
        "kind": "off_cpu",
        "target": { "pids": [envoys[0]] },
        "duration_s": SECONDS,
    });
    let id = start_task(agent, &specification);
    finish_task(agent, &id, SECONDS);
    stop_load(&mut mesh);
    let counts = agent.api.folded(&id, "&value=count&idle=hide").unwrap();
    let times = agent.api.folded(&id, "&value=duration&idle=hide").unwrap();
    let shares = Shares::of(&counts, &times);
    println!(
        "access log {access_log:?}: {shares:?}; writing it is {:.1} % of blocked switches, {:.1} % of all \
         that are not idle, {:.1} % of blocked time",
        percent(shares.log_switches, shares.switches),
        percent(shares.log_switches, shares.all_switches),
        percent(shares.log_milliseconds, shares.milliseconds),
    );
    shares
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
fn percent(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole.max(1) as f64
}

#[test]
fn a_slow_reader_of_the_access_log_shows_and_without_a_log_nothing_does() {
    let agent = Agent::start().unwrap();
    let off = measure(&agent, AccessLog::Off);
    assert_measured!(off.log_switches * 100 <= off.switches, "{off:?}");
    assert_measured!(
        off.log_milliseconds * 100 <= off.milliseconds.max(1),
        "{off:?}"
    );
    let file = measure(&agent, AccessLog::Text);
    let slow = measure(&agent, AccessLog::SlowPipe);
    assert_measured!(slow.log_switches > 10, "{slow:?}");
    assert_measured!(slow.log_switches * 10 >= slow.switches, "{slow:?}");
    assert_measured!(slow.log_milliseconds * 10 >= slow.milliseconds, "{slow:?}");
    assert_measured!(file.log_milliseconds < slow.log_milliseconds, "{file:?}");
}
