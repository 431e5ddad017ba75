//! Names in stripped sidecars of several releases under load.

use std::time::{Duration, Instant};

use profiler_tests::{
    agent::Agent,
    assert_measured,
    folded::{Folded, FoldedStack},
    mesh::MeshOptions,
    paths,
    wait::wait_until,
};
use serde_json::json;

use crate::targets::{EXIT, busy_mesh, mesh_with_mtls, on_cpu, start_task, stop_load, stop_task};

const LEAST_TIME: Duration = Duration::from_secs(5);
/// More samples with user frames than that, however long they take.
const ENOUGH: u64 = 500;
const HZ: u64 = 499;

/// Share in percent of the samples' user frames that must have a name.
pub(crate) const LEAST_FRAMES: f64 = 70.0;
/// Share in percent of the samples with user frames that must have a named one among them.
const LEAST_STACKS: f64 = 99.0;

#[test]
fn most_frames_of_envoy_1_36_have_names() {
    check("1.36.4");
}

#[test]
fn most_frames_of_envoy_1_39_have_names() {
    check("1.39.0");
}

#[test]
fn most_frames_of_envoy_1_40_have_names() {
    check("1.40.0");
}

fn check(version: &str) {
    let agent = Agent::start().unwrap();
    let options = MeshOptions {
        envoy: Some(paths::envoy_release(version).unwrap()),
        workers: 1,
        ..mesh_with_mtls()
    };
    let (mut mesh, envoys) = busy_mesh(&options);
    let limit = LEAST_TIME + EXIT;
    let began = Instant::now();
    let task = on_cpu(json!({ "pids": envoys }), 2 * limit.as_secs(), HZ);
    let id = start_task(&agent, &task);
    // A busy machine gives the sidecars less of its time.
    let mut looked_at = ENOUGH;
    let enough = wait_until("there are enough samples", limit, || {
        let samples = agent.api.task(&id).unwrap()["samples"].as_u64();
        let samples = samples.unwrap_or_default();
        if began.elapsed() < LEAST_TIME || samples <= looked_at {
            return false;
        }
        // To look for frames takes the agent a while.
        looked_at = samples + ENOUGH / 10;
        Shares::of(&agent.api.folded(&id, "").unwrap()).samples > ENOUGH
    });
    stop_task(&agent, &id);
    stop_load(&mut mesh);
    let folded = agent.api.folded(&id, "").unwrap();
    let found = Shares::of(&folded);
    println!("Envoy {version}: {found:?}");
    assert_measured!(enough.is_ok(), "{found:?}");
    assert!(
        found.named_frames >= LEAST_FRAMES && found.stacks_with_a_name >= found.least_stacks(),
        "Envoy {version}: {found:?}\n{}",
        folded.summary()
    );
}

/// How many samples and frames have names.
#[derive(Debug)]
pub(crate) struct Shares {
    /// With user frames.
    pub(crate) samples: u64,
    /// In percent.
    pub(crate) named_frames: f64,
    /// In percent.
    pub(crate) stacks_with_a_name: f64,
}

impl Shares {
    #[expect(
        clippy::cast_precision_loss,
        reason = "sample counts stay far below 2^52"
    )]
    pub(crate) fn of(folded: &Folded) -> Self {
        let (mut samples, mut frames, mut named, mut with_name) = (0, 0, 0, 0);
        for stack in &folded.stacks {
            let user: Vec<bool> = user_frames(stack).map(is_name).collect();
            if user.is_empty() {
                continue;
            }
            let names = user.iter().filter(|named| **named).count() as u64;
            samples += stack.count;
            frames += user.len() as u64 * stack.count;
            named += names * stack.count;
            with_name += if names > 0 { stack.count } else { 0 };
        }
        Self {
            samples,
            named_frames: named as f64 * 100.0 / frames.max(1) as f64,
            stacks_with_a_name: with_name as f64 * 100.0 / samples.max(1) as f64,
        }
    }

    /// [`LEAST_STACKS`] less three standard deviations of a share of so many samples: what few samples show below it
    /// is not proof that it is missed.
    #[expect(
        clippy::cast_precision_loss,
        reason = "sample counts stay far below 2^52"
    )]
    pub(crate) fn least_stacks(&self) -> f64 {
        let deviation = (LEAST_STACKS * (100.0 - LEAST_STACKS) / self.samples.max(1) as f64).sqrt();
        LEAST_STACKS - 3.0 * deviation
    }
}

/// The samples with user frames of which none has a name.
pub(crate) fn nameless(folded: &Folded) -> Folded {
    let without = |stack: &&FoldedStack| {
        let mut user = user_frames(stack).peekable();
        user.peek().is_some() && !user.any(is_name)
    };
    Folded {
        stacks: folded.stacks.iter().filter(without).cloned().collect(),
    }
}

/// Frames of user mode: without the process's name at the root and without marks.
fn user_frames(stack: &FoldedStack) -> impl Iterator<Item = &str> {
    stack.frames[1..]
        .iter()
        .map(String::as_str)
        .filter(|frame| !frame.ends_with("_[k]") && !is_mark(frame))
}

/// `[why frames are missing]`, not `[allocator]_[inferred]` or `[vdso]+0x5f0`.
fn is_mark(frame: &str) -> bool {
    frame.starts_with('[') && frame.ends_with(']') && !frame.ends_with("_[inferred]")
}

/// Whether a frame is more than a module and an offset.
fn is_name(frame: &str) -> bool {
    !frame.contains("+0x")
}
