//! What rules mean, and what is reported about wrong ones.

use profiler_model::{
    Activity, Clock, Frame, FrameSpace, Function, IdleMode, ModuleKind, NameSource, ProcessKey,
    Profile, ProfileBuilder, ProfileProcess, ProfileThread, SampleRow, ThreadState,
};

use super::IdleRules;
use crate::{activities::Activities, render::summary::threads};

/// One wait, in words.
#[derive(Clone, Copy)]
pub(super) struct Wait<'a> {
    pub(super) process: &'a str,
    pub(super) thread: &'a str,
    pub(super) state: &'a str,
    /// From the leaf on.
    pub(super) kernel: &'a [&'a str],
    pub(super) user: &'a [&'a str],
}

const LOOP: Wait<'_> = Wait {
    process: "proxy",
    thread: "loop",
    state: "interruptible",
    kernel: &["schedule", "do_epoll_wait"],
    user: &["epoll_wait", "turn", "main"],
};
const LOCKED: Wait<'_> = Wait {
    process: "proxy",
    thread: "loop",
    state: "interruptible",
    kernel: &["schedule", "futex_wait"],
    user: &["futex_wait", "pthread_mutex_lock", "take", "main"],
};

/// A profile of waits with their lengths in nanoseconds.
fn profile(waits: &[(Wait<'_>, u64)]) -> Profile {
    let mut builder = ProfileBuilder::new(0, 1_000_000, Clock::Switches);
    for (number, (wait, ns)) in (1..).zip(waits) {
        let Wait {
            process,
            thread,
            state,
            kernel,
            user,
        } = wait;
        let kernel = kernel.iter().map(|name| (FrameSpace::Kernel, *name));
        let user = user.iter().map(|name| (FrameSpace::User, *name));
        let mut frames = Vec::new();
        for (space, name) in kernel.chain(user) {
            let (path, kind, source) = match space {
                FrameSpace::Kernel => ("", ModuleKind::Kernel, NameSource::Kallsyms),
                FrameSpace::User | FrameSpace::Marker => {
                    ("/bin/program", ModuleKind::Elf, NameSource::ElfSymbol)
                }
            };
            // As in exports: a frame without a name is its file and its place there.
            let unnamed = name
                .rsplit_once("+0x")
                .and_then(|(file, offset)| Some((file, u64::from_str_radix(offset, 16).ok()?)));
            let frame = match unnamed {
                Some((file, offset)) => Frame {
                    space,
                    module: builder.module(&format!("/bin/{file}"), &[], kind),
                    offset,
                    functions: Vec::new(),
                    source: NameSource::None,
                },
                None => Frame {
                    space,
                    module: builder.module(path, &[], kind),
                    offset: 0,
                    functions: vec![Function {
                        name: builder.string(name),
                        file: 0,
                        line: 0,
                    }],
                    source,
                },
            };
            frames.push(builder.frame(frame));
        }
        let stack = builder.stack(frames);
        let key = ProcessKey {
            pid: number,
            start_ticks: 0,
        };
        let (comm, exe) = (builder.string(process), builder.string("/bin/program"));
        let process = builder.process(ProfileProcess {
            key,
            comm,
            exe,
            container: 0,
        });
        let name = builder.string(thread);
        let thread = builder.thread(ProfileThread {
            process,
            tid: number,
            name,
        });
        let state = ThreadState::ALL
            .into_iter()
            .find(|known| known.name() == *state)
            .unwrap();
        builder.sample(SampleRow {
            thread,
            stack,
            cpu: 0,
            bucket: 0,
            state,
            waker: None,
            count: 1,
            total_ns: *ns,
        });
    }
    builder.finish()
}

/// The name of the rule that holds.
pub(super) fn rule_of(rules: &IdleRules, wait: &Wait<'_>) -> Option<String> {
    let found = rules.classify(&profile(&[(*wait, 1)])).unwrap();
    let number = found.first().copied().flatten()?;
    rules.names().nth(number).map(str::to_owned)
}

fn rules(text: &str) -> IdleRules {
    IdleRules::parse(&format!("version = 1\n{text}")).unwrap()
}

fn check(rule: &str, wait: &Wait<'_>, holds: bool) {
    let rules = rules(&format!(
        "waiting = [\"epoll_wait\", \"futex_wait\"]\n[[rule]]\nname = \"the rule\"\n{rule}"
    ));
    let found = rule_of(&rules, wait);
    assert_eq!(found.is_some(), holds, "{rule}");
}

#[test]
fn every_condition_must_hold() {
    let whole = "process = [\"prox*\"]\nthread = [\"x\", \"loop\"]\nreason = [\"poll\"]\n";
    check(whole, &LOOP, true);
    for changed in [
        whole.replace("prox*", "other"),
        whole.replace("\"loop\"", "\"lo\""),
        whole.replace("poll", "futex"),
    ] {
        check(&changed, &LOOP, false);
    }
    check("process = [\"program\"]\nreason = [\"poll\"]", &LOOP, true);
}

#[test]
fn frames_are_looked_for_anywhere_and_the_caller_behind_what_waits() {
    let poll = |more: &str| format!("reason = [\"poll\"]\n{more}");
    check(&poll("frames = [\"main\"]"), &LOOP, true);
    check(&poll("frames = [\"do_epoll*\"]"), &LOOP, true);
    check(&poll("frames = [\"other\"]"), &LOOP, false);
    check(
        &poll("frames = [\"main\"]\nwithout = [\"turn\"]"),
        &LOOP,
        false,
    );
    check(&poll("caller = [\"turn\"]"), &LOOP, true);
    check(&poll("caller = [\"main\", \"epoll_wait\"]"), &LOOP, false);
    let unnamed = Wait {
        user: &["epoll_wait", "program+0x1f"],
        ..LOOP
    };
    check(&poll("caller = [\"program+0x*\"]"), &unnamed, true);
}

#[test]
fn waiting_for_a_cpu_is_never_idle() {
    let rule = "reason = [\"poll\"]\nframes = [\"main\"]";
    for state in ["woken", "preempted", "uninterruptible", "io", "on_cpu"] {
        let profile = profile(&[(Wait { state, ..LOOP }, 1), (LOCKED, 1)]);
        let found = rules(&format!("[[rule]]\nname = \"x\"\n{rule}")).classify(&profile);
        assert_eq!(found, Some(vec![None, None]), "{state}");
    }
    for state in ["preempted", "woken", "on_cpu"] {
        let text = format!(
            "version = 1\n[[rule]]\nname = \"x\"\nreason = [\"poll\"]\nstate = [\"{state}\"]"
        );
        let error = IdleRules::parse(&text).unwrap_err();
        assert!(error.contains("line 5"), "{error}");
        assert!(error.contains("waiting for a CPU is never idle"), "{error}");
    }
}

#[test]
fn hidden_shown_and_alone() {
    let rules = rules("[[rule]]\nname = \"loop\"\nreason = [\"poll\"]\nthread = [\"loop\"]");
    let whole = profile(&[(LOOP, 90), (LOCKED, 10)]);
    for (mode, left, line) in [
        (IdleMode::Show, vec![90, 10], "idle: 90.0 %"),
        (IdleMode::Hide, vec![10], "idle hidden: 90.0 %"),
        (IdleMode::Only, vec![90], "idle shown alone: 90.0 %"),
    ] {
        let mut cut = whole.clone();
        let idle = rules.apply(&mut cut, mode).unwrap();
        let rows: Vec<u64> = cut.samples.iter().map(|row| row.total_ns).collect();
        assert_eq!(rows, left);
        let rest = " of the time, 1 of 2 switches (loop 90.0 %)";
        assert_eq!(idle.line(), format!("{line}{rest}"));
        assert_eq!((idle.ns, idle.total_ns, idle.count), (90, 100, 1));
    }
}

#[test]
fn a_profile_without_waits_has_no_idle_share() {
    let on_cpu = Wait {
        state: "on_cpu",
        ..LOOP
    };
    let mut profile = profile(&[(on_cpu, 5)]);
    let rules = IdleRules::new(None).unwrap();
    assert_eq!(rules.apply(&mut profile, IdleMode::Hide), None);
    assert_eq!(profile.samples.len(), 1);
}

#[test]
fn locks_and_sleeps_of_unknown_programs_are_not_idle() {
    let rules = IdleRules::new(None).unwrap();
    let asleep = Wait {
        kernel: &["schedule", "do_nanosleep"],
        user: &["clock_nanosleep", "nap", "main"],
        ..LOOP
    };
    let condition = Wait {
        user: &["___pthread_cond_wait", "take", "main"],
        ..LOCKED
    };
    for wait in [LOCKED, asleep, condition] {
        assert_eq!(rule_of(&rules, &wait), None);
    }
}

fn check_wrong(text: &str, said: &[&str]) {
    let error = IdleRules::parse(text).unwrap_err();
    for part in said {
        assert!(error.contains(part), "{part:?} is missing in: {error}");
    }
}

#[test]
fn errors_name_the_line_and_what_is_wrong() {
    let rule = "version = 1\n[[rule]]\nname = \"x\"\n";
    check_wrong("version = 1\n[[rule]\n", &["line 2"]);
    check_wrong("rule = []", &["missing field `version`"]);
    check_wrong("version = 2\nrule = []", &["version 2 is not known"]);
    check_wrong(
        &format!("{rule}colour = 1"),
        &["line 4", "unknown field `colour`"],
    );
    check_wrong(
        &format!("{rule}reason = [\"pol\"]"),
        &["line 4", "reason \"pol\" is not one of", "poll"],
    );
    check_wrong(
        &format!("{rule}reason = [\"preempted\"]"),
        &["line 4", "is not one of"],
    );
    check_wrong(
        &format!("{rule}reason = []\nthread = [\"a\"]"),
        &["line 3", "can never hold"],
    );
    check_wrong(
        &format!("{rule}reason = [\"poll\"]"),
        &["line 3", "every program"],
    );
    check_wrong(
        &format!("{rule}reason = [\"poll\"]\nthread = [\"*\"]"),
        &["line 5", "matches everything"],
    );
    let twice = format!("{rule}reason = [\"poll\"]\nthread = [\"a\"]\n");
    let twice = format!("{twice}{}", twice.trim_start_matches("version = 1\n"));
    check_wrong(&twice, &["line 7", "name of an earlier rule"]);
}

#[test]
fn time_is_divided_by_what_is_idle_and_by_reasons() {
    let in_state = |state| Wait { state, ..LOCKED };
    let found = profile(&[
        (LOOP, 70),
        (LOCKED, 20),
        (in_state("preempted"), 4),
        (in_state("woken"), 3),
        (in_state("on_cpu"), 2),
        (in_state("io"), 1),
    ]);
    let rules = rules("[[rule]]\nname = \"x\"\nreason = [\"poll\"]\nframes = [\"main\"]");
    let activities = Activities::of(&found, rules.classify(&found).as_deref());
    let sums: Vec<_> = activities
        .sums()
        .into_iter()
        .map(|sum| (sum.activity, sum.count, sum.total_ns))
        .collect();
    assert_eq!(
        sums,
        [
            (Activity::Running, 1, 2),
            (Activity::WaitingForCpu, 2, 7),
            (Activity::Lock, 2, 21),
            (Activity::Idle, 1, 70),
        ]
    );
    let threads = threads(&found);
    let of_first = threads.iter().find(|thread| thread.pid == 1).unwrap();
    let of_first: Vec<_> = activities
        .of_thread(of_first)
        .into_iter()
        .map(|time| (time.activity, time.total_ns))
        .collect();
    assert_eq!(of_first, [(Activity::Idle, 70)]);
    // Without waits there is nothing to divide.
    let on_cpu = profile(&[(in_state("on_cpu"), 2)]);
    let idle = rules.classify(&on_cpu);
    assert_eq!(Activities::of(&on_cpu, idle.as_deref()).sums(), []);
}
