use profiler_model::{
    Clock, Function, Module, ModuleKind, NameSource, ProcessKey, ProfileProcess, ProfileThread,
    Stack,
};

use super::*;

const MS: u64 = 1_000_000;
const BUCKET: u64 = 20 * MS;
const ORIGIN: u64 = 1_000_000 * MS;

/// Stacks from the leaf to the root; names with `k:` are of the kernel,
/// those with `m:` are marks.
fn profile(stacks: &[&[&str]], samples: &[SampleRow]) -> Profile {
    let mut profile = Profile {
        origin_ns: ORIGIN,
        from_ns: 0,
        to_ns: 1_000 * MS,
        bucket_ns: BUCKET,
        clock: Clock::Wall,
        strings: vec![String::new()],
        modules: vec![Module {
            path: 0,
            build_id: Vec::new(),
            kind: ModuleKind::Elf,
        }],
        frames: Vec::new(),
        stacks: Vec::new(),
        processes: vec![ProfileProcess {
            key: ProcessKey {
                pid: 7,
                start_ticks: 1,
            },
            comm: 0,
            exe: 0,
            container: 0,
        }],
        threads: vec![thread(8), thread(9)],
        samples: samples.to_vec(),
        holders: Vec::new(),
        contention: Vec::new(),
        losses: profiler_model::Losses::default(),
        stack_quality: profiler_model::StackQuality::default(),
    };
    for stack in stacks {
        let frames = stack.iter().map(|name| frame(&mut profile, name)).collect();
        profile.stacks.push(Stack { frames });
    }
    profile.check().unwrap();
    profile
}

fn thread(tid: u32) -> ProfileThread {
    ProfileThread {
        process: 0,
        tid,
        name: 0,
    }
}

fn frame(profile: &mut Profile, name: &str) -> FrameId {
    let (space, text) = match name.split_once(':') {
        Some(("k", rest)) => (FrameSpace::Kernel, rest),
        Some(("m", rest)) => (FrameSpace::Marker, rest),
        _ => (FrameSpace::User, name),
    };
    let known = profile.frames.iter().position(|frame| {
        frame.space == space && profile.strings[frame.functions[0].name as usize] == text
    });
    let id = known.unwrap_or_else(|| {
        profile.strings.push(text.to_owned());
        let name = u32::try_from(profile.strings.len() - 1).unwrap();
        profile.frames.push(Frame {
            space,
            module: 0,
            offset: u64::from(name),
            functions: vec![Function {
                name,
                file: 0,
                line: 0,
            }],
            source: NameSource::ElfSymbol,
        });
        profile.frames.len() - 1
    });
    u32::try_from(id).unwrap()
}

/// Rows of the first thread.
fn row(stack: u32, bucket: u32, state: ThreadState, count: u64, total_ns: u64) -> SampleRow {
    SampleRow {
        thread: 0,
        stack,
        cpu: 0,
        bucket,
        state,
        waker: None,
        count,
        total_ns,
    }
}

fn turn(from_ms: u64, duration_ms: u64) -> LoopTurn {
    LoopTurn {
        pid: 7,
        tid: 8,
        name: "worker".to_owned(),
        start_ns: ORIGIN + from_ms * MS,
        duration_ns: duration_ms * MS,
        open: false,
    }
}

/// Joins one stall with a profile: what held it, the functions of its stack, samples.
fn check(profile: &Profile, turn: LoopTurn, (hold, functions, samples): (Hold, &[&str], u64)) {
    let table = EventLoopTable {
        stalls: vec![turn],
        ..EventLoopTable::default()
    };
    let found = explained(table, profile, 10);
    let [stall] = found.stalls.as_slice() else {
        panic!("{found:?}");
    };
    assert_eq!(
        (stall.hold, stall.stack.as_slice(), stall.samples),
        (
            hold,
            functions
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
                .as_slice(),
            samples
        )
    );
}

const ON: ThreadState = ThreadState::OnCpu;
const SLEEP: ThreadState = ThreadState::Interruptible;

#[test]
fn a_thread_that_ran_was_held_by_what_it_ran() {
    let stacks: &[&[&str]] = &[
        &["hash", "hold", "loop"],
        &["copy", "hold", "loop"],
        &["serve", "loop"],
    ];
    let samples = [
        row(0, 5, ON, 1, 10 * MS),
        row(1, 6, ON, 2, 20 * MS),
        row(0, 7, ON, 2, 20 * MS),
        // Before and after.
        row(2, 4, ON, 2, 20 * MS),
        row(2, 8, ON, 2, 20 * MS),
        // Another thread.
        SampleRow {
            thread: 1,
            ..row(2, 6, ON, 2, 20 * MS)
        },
    ];
    let profile = profile(stacks, &samples);
    check(
        &profile,
        turn(100, 60),
        (Hold::OnCpu, &["hash", "hold", "loop"], 5),
    );
}

#[test]
fn the_stack_follows_the_heaviest_function_from_the_root_on() {
    let stacks: &[&[&str]] = &[
        &["a", "hold", "loop"],
        &["b", "hold", "loop"],
        &["c", "hold", "loop"],
        &["other", "loop"],
        &["hold", "loop"],
    ];
    let samples = [
        row(0, 5, ON, 1, 9 * MS),
        row(1, 5, ON, 1, 8 * MS),
        row(2, 6, ON, 1, 7 * MS),
        row(3, 6, ON, 1, 12 * MS),
        row(4, 7, ON, 1, 5 * MS),
    ];
    let profile = profile(stacks, &samples);
    check(
        &profile,
        turn(100, 60),
        (Hold::OnCpu, &["a", "hold", "loop"], 5),
    );
}

#[test]
fn a_wait_that_ended_inside_held_it_and_one_in_epoll_never_did() {
    let stacks: &[&[&str]] = &[
        &["k:do_nanosleep", "sleep", "hold", "loop"],
        &["k:do_epoll_wait", "epoll_wait", "loop"],
        &["k:__x64_sys_epoll_pwait2", "epoll_wait", "loop"],
        &[
            "m:[runnable: woken]",
            "k:do_epoll_wait",
            "epoll_wait",
            "loop",
        ],
    ];
    let samples = [
        // 80 ms that ended 1 ms after the beginning of its bucket, and the thread went back at once.
        row(0, 9, SLEEP, 1, 80 * MS),
        row(1, 5, SLEEP, 1, 70 * MS),
        row(2, 9, SLEEP, 1, 5 * MS),
        row(3, 5, ThreadState::Woken, 0, 5 * MS),
    ];
    let profile = profile(stacks, &samples);
    check(
        &profile,
        turn(100, 81),
        (Hold::OffCpu, &["do_nanosleep", "sleep", "hold", "loop"], 1),
    );
}

#[test]
fn waiting_for_a_cpu_on_the_way_out_of_epoll_holds_no_loop() {
    let stacks: &[&[&str]] = &[&[
        "m:[runnable: woken]",
        "k:do_epoll_wait",
        "epoll_wait",
        "loop",
    ]];
    let profile = profile(stacks, &[row(0, 5, ThreadState::Woken, 0, 15 * MS)]);
    check(&profile, turn(100, 20), (Hold::Unknown, &[], 0));
}

#[test]
fn a_wait_that_is_longer_than_the_stall_was_before_it() {
    let stacks: &[&[&str]] = &[&["k:do_nanosleep", "sleep", "loop"]];
    // It ended in the stall's first bucket, but cannot have begun in the stall.
    let profile = profile(stacks, &[row(0, 5, SLEEP, 1, 60 * MS)]);
    check(&profile, turn(101, 50), (Hold::Unknown, &[], 0));
}

#[test]
fn what_explains_less_than_half_is_shown_and_not_believed() {
    let stacks: &[&[&str]] = &[&["serve", "loop"]];
    let profile = profile(stacks, &[row(0, 6, ON, 1, 10 * MS)]);
    check(
        &profile,
        turn(100, 80),
        (Hold::Unknown, &["serve", "loop"], 1),
    );
    check(&profile, turn(300, 80), (Hold::Unknown, &[], 0));
}

#[test]
fn most_of_what_is_known_decides_and_a_mark_is_no_stack() {
    let stacks: &[&[&str]] = &[
        &["m:[on CPU, not sampled]"],
        &["hold", "loop"],
        &["k:schedule", "hold", "loop"],
    ];
    let samples = [
        row(0, 5, ON, 1, 14 * MS),
        row(1, 6, ON, 1, 10 * MS),
        row(2, 7, ThreadState::Preempted, 1, 18 * MS),
    ];
    let profile = profile(stacks, &samples);
    check(&profile, turn(100, 60), (Hold::OnCpu, &["hold", "loop"], 1));
    check(
        &profile,
        turn(100, 85),
        (Hold::Unknown, &["schedule", "hold", "loop"], 2),
    );
    // Where it ran without a sample, what it waited in is known all the same.
    let slept = self::profile(stacks, &[row(0, 5, ON, 1, 20 * MS), samples[2]]);
    check(
        &slept,
        turn(100, 60),
        (Hold::OnCpu, &["schedule", "hold", "loop"], 1),
    );
}

#[test]
fn buckets_that_are_covered_in_part_count_in_part() {
    let stacks: &[&[&str]] = &[&["before", "loop"], &["hold", "loop"]];
    let samples = [row(0, 5, ON, 2, 20 * MS), row(1, 6, ON, 2, 20 * MS)];
    let profile = profile(stacks, &samples);
    // A quarter of the first bucket, all of the second.
    check(&profile, turn(115, 25), (Hold::OnCpu, &["hold", "loop"], 3));
}

#[test]
fn only_as_many_stalls_as_are_asked_for_are_joined() {
    let profile = profile(&[], &[]);
    let table = EventLoopTable {
        stalls: vec![turn(0, 90), turn(100, 80), turn(200, 70)],
        stall_count: 9,
        ..EventLoopTable::default()
    };
    let found = explained(table, &profile, 2);
    assert_eq!((found.stalls.len(), found.stall_count), (2, 9));
}
