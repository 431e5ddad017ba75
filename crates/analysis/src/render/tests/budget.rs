//! Profiles that are small and make large pictures.

use profiler_model::{
    Clock, Frame, FrameSpace, Function, ModuleKind, NameSource, ProcessKey, Profile,
    ProfileBuilder, ProfileProcess, ProfileThread, SampleRow, ThreadState,
};

use crate::render::{
    Budget, Format, Value, View,
    budget::{MAX_NAMES, OTHER},
    diff::{self, DiffView, Side},
    folded, render_view,
    tree::{self, Tree},
};

const STACKS: u32 = 300;
const FRAMES: u32 = 60;
const NAMES: u32 = 50;

/// The thread of a process with nothing else.
fn only_thread(builder: &mut ProfileBuilder, comm: u32) -> u32 {
    let process = builder.process(ProfileProcess {
        key: ProcessKey {
            pid: 1,
            start_ticks: 1,
        },
        comm,
        exe: 0,
        container: 0,
    });
    builder.thread(ProfileThread {
        process,
        tid: 1,
        name: comm,
    })
}

fn sample(builder: &mut ProfileBuilder, thread: u32, stack: u32, count: u64) {
    builder.sample(SampleRow {
        thread,
        stack,
        cpu: 0,
        bucket: 0,
        state: ThreadState::OnCpu,
        waker: None,
        count,
        total_ns: count,
    });
}

/// Two functions with many inlined ones, which call each other in another order in each stack. The first stack has most.
fn hostile() -> Profile {
    let mut builder = ProfileBuilder::new(0, 20_000_000, Clock::CpuClock);
    let comm = builder.string("hostile");
    let module = builder.module("/hostile", &[], ModuleKind::Elf);
    let frames: Vec<u32> = (0..2)
        .map(|number| {
            let functions = (0..NAMES)
                .map(|at| Function {
                    name: builder.string(&format!("f{number}_{at}")),
                    file: 0,
                    line: 0,
                })
                .collect();
            builder.frame(Frame {
                space: FrameSpace::User,
                module,
                offset: number,
                functions,
                source: NameSource::Dwarf,
            })
        })
        .collect();
    let thread = only_thread(&mut builder, comm);
    for number in 0..STACKS {
        // Bits of a number that looks random: the first frames from the root differ already.
        let order = u64::from(number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let stack = (0..FRAMES)
            .map(|depth| frames[(order >> depth & 1) as usize])
            .collect();
        let stack = builder.stack(stack);
        sample(
            &mut builder,
            thread,
            stack,
            if number == 0 { 1000 } else { 10 },
        );
    }
    builder.finish()
}

const SMALL: u64 = 4 << 20;

fn built(profile: &Profile, budget: Budget) -> Tree<'_> {
    tree::build(profile, Value::Count, tree::KEEP_ALL, budget)
}

fn total(tree: &Tree<'_>) -> u64 {
    tree.nodes.iter().map(|node| node.own).sum()
}

#[test]
fn a_tree_without_room_keeps_the_heaviest_stacks_and_every_sample() {
    let profile = hostile();
    let whole = built(&profile, Budget::default());
    let small = built(&profile, Budget::of_room(Some(SMALL)));
    let all = u64::from(STACKS - 1) * 10 + 1000;
    assert_eq!((total(&whole), total(&small)), (all, all));
    let most = Budget::of_room(Some(SMALL)).nodes();
    assert!(whole.nodes.len() > 10 * most, "{}", whole.nodes.len());
    assert!(small.nodes.len() <= 2 * most, "{}", small.nodes.len());
    let others = |tree: &Tree<'_>| {
        let nodes = tree.nodes.iter();
        let others = nodes.filter(|node| tree.labels[node.label as usize].name == OTHER);
        others.map(|node| node.own).sum::<u64>()
    };
    assert_eq!(others(&whole), 0);
    assert!(others(&small) > all / 2);
    assert!(small.nodes.iter().any(|node| node.own == 1000));
}

#[test]
fn no_node_has_two_others() {
    let profile = hostile();
    let tree = tree::build(&profile, Value::Count, 100, Budget::of_room(Some(SMALL)));
    let mut path: Vec<Option<u32>> = Vec::new();
    for node in &tree.nodes {
        path.truncate(node.depth as usize + 1);
        let is_other = tree.labels[node.label as usize].name == OTHER;
        if path.len() > node.depth as usize {
            let before = path.pop().flatten();
            assert!(!is_other || before != Some(node.label));
        }
        path.push(is_other.then_some(node.label));
    }
}

#[test]
fn every_format_stays_small_and_says_what_it_left_out() {
    let profile = hostile();
    for format in [
        Format::Folded,
        Format::Svg,
        Format::Speedscope,
        Format::Html,
        Format::Flamegraph,
    ] {
        let render = |budget| {
            let view = View {
                value: Some(Value::Count),
                template: Some("@@ABOUT@@ @@PROFILE@@"),
                budget,
                ..View::default()
            };
            render_view(&profile, format, &view).unwrap()
        };
        let small = render(Budget::of_room(Some(SMALL)));
        assert!(small.len() < 2 << 20, "{format:?}: {}", small.len());
        if format != Format::Html {
            let has_other = |bytes: &[u8]| {
                let mut parts = bytes.windows(OTHER.len());
                parts.any(|part| part == OTHER.as_bytes())
            };
            assert!(has_other(&small), "{format:?}");
        }
    }
    let side = || Side {
        profile: &profile,
        idle: None,
    };
    let view = DiffView {
        budget: Budget::of_room(Some(SMALL)),
        ..DiffView::default()
    };
    assert!(diff::render(side(), side(), view).len() < 2 << 20);
}

#[test]
fn folded_sums_stay_exact() {
    let profile = hostile();
    let small = folded::stacks(&profile, Value::Count, Budget::of_room(Some(SMALL)), 0);
    assert_eq!(
        small.values().sum::<u64>(),
        u64::from(STACKS - 1) * 10 + 1000
    );
    assert!(small.contains_key("hostile;(other)"));
    assert!(small.values().any(|count| *count == 1000));
}

#[test]
fn the_leafs_side_of_a_very_deep_stack_is_other() {
    let mut builder = ProfileBuilder::new(0, 20_000_000, Clock::CpuClock);
    let comm = builder.string("deep");
    let module = builder.module("/deep", &[], ModuleKind::Elf);
    let deep = MAX_NAMES as u64 + 1000;
    let frames = (0..deep)
        .map(|offset| {
            builder.frame(Frame {
                space: FrameSpace::User,
                module,
                offset,
                functions: Vec::new(),
                source: NameSource::None,
            })
        })
        .collect();
    let stack = builder.stack(frames);
    let thread = only_thread(&mut builder, comm);
    sample(&mut builder, thread, stack, 7);
    let profile = builder.finish();
    let tree = built(&profile, Budget::default());
    // The root, the process, the names, and what stands for the rest.
    assert_eq!(tree.nodes.len(), MAX_NAMES + 3);
    let leaf = tree.nodes.last().unwrap();
    assert_eq!(
        (tree.labels[leaf.label as usize].name.as_ref(), leaf.own),
        (OTHER, 7)
    );
    let folded = folded::stacks(&profile, Value::Count, Budget::default(), 0);
    let (text, count) = folded.first_key_value().unwrap();
    assert!(text.ends_with(";(other)") && *count == 7);
}
