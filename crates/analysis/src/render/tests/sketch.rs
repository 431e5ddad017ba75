//! Profiles for tests, written down stack by stack.

use profiler_model::{
    Clock, Frame, FrameId, FrameSpace, Function, ModuleKind, NameSource, ProcessKey, Profile,
    ProfileBuilder, ProfileProcess, ProfileThread, SampleRow, StackId, ThreadState,
};

pub(super) const PERIOD_NS: u64 = 10_101_010;
const BUCKET_NS: u64 = 100_000_000;

/// Builds a profile of a process `work` (pid 100) by default.
pub(super) struct Sketch {
    pub(super) builder: ProfileBuilder,
    pub(super) comm: &'static str,
    pub(super) exe: &'static str,
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) thread: &'static str,
    pub(super) cpu: u32,
    pub(super) bucket: u32,
    pub(super) period_ns: u64,
    pub(super) state: ThreadState,
    pub(super) waker: Option<StackId>,
    /// Instead of a period for each sample.
    pub(super) total_ns: Option<u64>,
}

impl Sketch {
    pub(super) fn new() -> Self {
        Self {
            builder: ProfileBuilder::new(1_700_000_000_000_000_000, BUCKET_NS, Clock::CpuClock),
            comm: "work",
            exe: "/usr/bin/work",
            pid: 100,
            tid: 100,
            thread: "work",
            cpu: 0,
            bucket: 0,
            period_ns: PERIOD_NS,
            state: ThreadState::OnCpu,
            waker: None,
            total_ns: None,
        }
    }

    /// A user function; its address depends on the name only.
    pub(super) fn user(&mut self, name: &str) -> FrameId {
        self.named(
            FrameSpace::User,
            "/usr/bin/work",
            ModuleKind::Elf,
            NameSource::ElfSymbol,
            name,
        )
    }

    pub(super) fn inferred(&mut self, name: &str) -> FrameId {
        let (space, source) = (FrameSpace::User, NameSource::Inferred);
        self.named(space, "/usr/bin/work", ModuleKind::Elf, source, name)
    }

    pub(super) fn kernel(&mut self, name: &str) -> FrameId {
        let (space, source) = (FrameSpace::Kernel, NameSource::Kallsyms);
        self.named(space, "[kernel]", ModuleKind::Kernel, source, name)
    }

    pub(super) fn jit(&mut self, name: &str) -> FrameId {
        self.named(
            FrameSpace::User,
            "",
            ModuleKind::Anonymous,
            NameSource::PerfMap,
            name,
        )
    }

    fn named(
        &mut self,
        space: FrameSpace,
        path: &str,
        kind: ModuleKind,
        source: NameSource,
        name: &str,
    ) -> FrameId {
        let module = self.builder.module(path, &[0xab, 0xcd], kind);
        let offset = name
            .bytes()
            .fold(0x1000, |sum, byte| (sum * 31 + u64::from(byte)) & 0xff_ffff);
        let name = self.builder.string(name);
        let functions = vec![Function {
            name,
            file: 0,
            line: 0,
        }];
        self.builder.frame(Frame {
            space,
            module,
            offset,
            functions,
            source,
        })
    }

    /// A frame with debug information: functions from the innermost to the real one.
    pub(super) fn dwarf(&mut self, offset: u64, functions: &[(&str, &str, u32)]) -> FrameId {
        let module = self
            .builder
            .module("/usr/bin/work", &[0xab, 0xcd], ModuleKind::Elf);
        let functions = functions
            .iter()
            .map(|(name, file, line)| Function {
                name: self.builder.string(name),
                file: self.builder.string(file),
                line: *line,
            })
            .collect();
        let (space, source) = (FrameSpace::User, NameSource::Dwarf);
        self.builder.frame(Frame {
            space,
            module,
            offset,
            functions,
            source,
        })
    }

    pub(super) fn unnamed(&mut self, path: &str, kind: ModuleKind, offset: u64) -> FrameId {
        let module = self.builder.module(path, &[], kind);
        let (space, source) = (FrameSpace::User, NameSource::None);
        self.builder.frame(Frame {
            space,
            module,
            offset,
            functions: Vec::new(),
            source,
        })
    }

    /// Counts samples of a stack given from the root to the leaf.
    pub(super) fn sample(&mut self, count: u64, mut frames: Vec<FrameId>) {
        frames.reverse();
        let stack = self.builder.stack(frames);
        let comm = self.builder.string(self.comm);
        let exe = self.builder.string(self.exe);
        let key = ProcessKey {
            pid: self.pid,
            start_ticks: 7,
        };
        let process = self.builder.process(ProfileProcess {
            key,
            comm,
            exe,
            container: 0,
        });
        let name = self.builder.string(self.thread);
        let thread = self.builder.thread(ProfileThread {
            process,
            tid: self.tid,
            name,
        });
        let (cpu, bucket, period_ns) = (self.cpu, self.bucket, self.period_ns);
        self.builder.sample(SampleRow {
            thread,
            stack,
            cpu,
            bucket,
            state: self.state,
            waker: self.waker,
            count,
            total_ns: self.total_ns.unwrap_or(count * period_ns),
        });
        let start = u64::from(bucket) * BUCKET_NS;
        self.builder.cover(start, start + BUCKET_NS);
    }

    pub(super) fn finish(self) -> Profile {
        let profile = self.builder.finish();
        profile.check().unwrap();
        profile
    }
}

/// Two functions, kernel frames, a JIT frame, a marker and a frame without a name.
pub(super) fn simple() -> Profile {
    let mut sketch = Sketch::new();
    let (main, hot, cold) = (sketch.user("main"), sketch.user("hot"), sketch.user("cold"));
    let write = sketch.kernel("ksys_write");
    let jit = sketch.jit("LazyCompile:~render app.js:12");
    let unnamed = sketch.unnamed("/usr/lib/libstripped.so.1", ModuleKind::Elf, 0x4f0);
    let nowhere = sketch.unnamed("", ModuleKind::Unknown, 0x7fff_0000_1234);
    let lost = sketch.builder.marker("[stack lost]");
    sketch.sample(60, vec![main, hot]);
    sketch.sample(30, vec![main, cold]);
    sketch.sample(5, vec![main, cold, write]);
    sketch.sample(2, vec![main, jit]);
    sketch.sample(1, vec![main, unnamed]);
    sketch.sample(1, vec![nowhere]);
    sketch.sample(1, vec![lost]);
    (sketch.comm, sketch.pid, sketch.tid, sketch.thread) = ("envoy", 200, 201, "wrk:worker_0");
    (sketch.cpu, sketch.bucket) = (1, 3);
    sketch.sample(10, vec![main, hot]);
    (sketch.pid, sketch.tid) = (300, 301);
    sketch.sample(7, vec![hot]);
    sketch.finish()
}

/// A thread that waits for a futex and for a CPU.
pub(super) fn waits() -> Profile {
    let mut sketch = Sketch::new();
    sketch.builder = ProfileBuilder::new(0, BUCKET_NS, Clock::Switches);
    let names = ["main", "lock"].map(|name| sketch.user(name));
    let kernel = ["futex_wait", "__schedule"].map(|name| sketch.kernel(name));
    let frames = [names[0], names[1], kernel[0], kernel[1]].to_vec();
    for (state, count, total_ns) in [
        (ThreadState::Interruptible, 3, 3_000_000),
        (ThreadState::Woken, 0, 500_000),
        (ThreadState::Preempted, 2, 40_000),
    ] {
        sketch.state = state;
        sketch.total_ns = Some(total_ns);
        sketch.sample(count, frames.clone());
    }
    sketch.finish()
}

/// A wait that a timer ended.
pub(super) fn woken() -> Profile {
    let mut sketch = Sketch::new();
    sketch.builder = ProfileBuilder::new(0, BUCKET_NS, Clock::Switches);
    let main = sketch.user("main");
    let [lock, schedule, timer] =
        ["futex_wait", "__schedule", "hrtimer_wakeup"].map(|name| sketch.kernel(name));
    let marker = sketch.builder.marker("[woken by interrupt: timer]");
    sketch.waker = Some(sketch.builder.stack(vec![marker, timer]));
    sketch.state = ThreadState::Interruptible;
    sketch.total_ns = Some(3_000_000);
    sketch.sample(3, vec![main, lock, schedule]);
    sketch.finish()
}

/// A thread that ran, with and without a sample, and slept.
pub(super) fn wall() -> Profile {
    let mut sketch = Sketch::new();
    sketch.builder = ProfileBuilder::new(0, BUCKET_NS, Clock::Wall);
    let main = sketch.user("main");
    let nap = ["do_nanosleep", "__schedule"].map(|name| sketch.kernel(name));
    let unseen = sketch.builder.marker("[on CPU, not sampled]");
    for (state, count, total_ns, frames) in [
        (ThreadState::OnCpu, 2, 7_000_000, vec![main]),
        (ThreadState::OnCpu, 3, 1_000_000, vec![unseen]),
        (
            ThreadState::Interruptible,
            4,
            92_000_000,
            vec![main, nap[0], nap[1]],
        ),
    ] {
        sketch.state = state;
        sketch.total_ns = Some(total_ns);
        sketch.sample(count, frames);
    }
    sketch.finish()
}

/// Functions inlined into others, seen at different lines.
pub(super) fn inlined() -> Profile {
    let mut sketch = Sketch::new();
    let main = sketch.dwarf(0x1000, &[("main", "src/main.rs", 10)]);
    let inner = ("add<u64>", "src/add.rs", 3);
    let middle = ("sum", "src/sum.rs", 7);
    let first = sketch.dwarf(0x2000, &[inner, middle, ("run", "src/run.rs", 40)]);
    let second = sketch.dwarf(0x2040, &[inner, ("run", "src/run.rs", 44)]);
    let real = sketch.dwarf(0x3000, &[("sum", "src/sum.rs", 7)]);
    sketch.sample(8, vec![main, first]);
    sketch.sample(4, vec![main, second]);
    sketch.sample(2, vec![main, real]);
    sketch.finish()
}

/// A method and a function of a stripped program.
pub(super) fn inferred() -> Profile {
    let mut sketch = Sketch::new();
    let method = sketch.inferred("Router [vslot 7]");
    let function = sketch.inferred("source/router.cc");
    sketch.sample(3, vec![function, method]);
    sketch.finish()
}

/// Names that a hostile process might choose.
pub(super) fn odd_names() -> Profile {
    let mut sketch = Sketch::new();
    sketch.comm = "<&;\">";
    sketch.thread = "";
    let names = [
        "<script>alert('x')</script>&amp;\"".to_owned(),
        "\u{202e}gnp.exe \u{05d0}\u{05d1}\u{05d2}".to_owned(),
        "x".repeat(4096),
        "a\nb\tc\u{0}d\u{1b}[31m\u{7f}\u{85}".to_owned(),
        "operator() 12".to_owned(),
        "a;b;c 3.5".to_owned(),
        "(other)".to_owned(),
        "\u{1f525}\u{fffd}".to_owned(),
    ];
    for (count, name) in (1..).zip(&names) {
        let frame = sketch.user(name);
        sketch.sample(count, vec![frame]);
    }
    sketch.finish()
}

/// One stack of 1,100 frames and its first half.
pub(super) fn deep() -> Profile {
    let mut sketch = Sketch::new();
    let frames: Vec<FrameId> = (0..1100)
        .map(|level| sketch.user(&format!("level_{level}")))
        .collect();
    sketch.sample(3, frames.clone());
    sketch.sample(2, frames[..550].to_vec());
    sketch.finish()
}

/// Many stacks too small to be seen, at two levels.
pub(super) fn pruned() -> Profile {
    let mut sketch = Sketch::new();
    let (main, hot) = (sketch.user("main"), sketch.user("hot"));
    sketch.sample(81_920, vec![main, hot]);
    for number in 0..30 {
        let rare = sketch.user(&format!("rare_{number}"));
        let rarer = sketch.user(&format!("rarer_{number}"));
        sketch.sample(3, vec![main, rare]);
        sketch.sample(3, vec![main, rare, rarer]);
        sketch.sample(1, vec![main, hot, rare]);
    }
    let enough = sketch.user("enough");
    sketch.sample(11, vec![main, enough]);
    sketch.finish()
}

pub(super) fn empty() -> Profile {
    Sketch::new().finish()
}
