//! A profile: samples with their stacks, as columns of small tables.
//!
//! Chunks of a running task, stored segments, merged results and imported files all have this one
//! shape. Ids are indexes into the tables of the same profile.

use serde::{Deserialize, Serialize};

use super::{ContentionRow, CpuHolder, Losses, ProcessKey, StackQuality, ThreadState};

pub type StrId = u32;
pub type ModuleId = u32;
pub type FrameId = u32;
pub type StackId = u32;
pub type ProcessId = u32;
pub type ThreadId = u32;

/// What triggers a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Clock {
    /// The kernel's cpu-clock software event: one tick each period of CPU time.
    CpuClock,
    /// The hardware's cycle counter in frequency mode: the period is an average.
    Cycles,
    /// No clock: every time that a thread leaves the CPU and comes back is one sample, with its
    /// exact length.
    Switches,
    /// Switches, and between them a clock whose samples share the time on the CPU.
    Wall,
    /// An imported file that does not say.
    Unknown,
}

impl Clock {
    /// Name in perf's vocabulary, where it has one.
    pub fn name(self) -> &'static str {
        match self {
            Self::CpuClock => "cpu-clock",
            Self::Cycles => "cycles",
            Self::Switches => "sched-switch",
            Self::Wall => "wall-clock",
            Self::Unknown => "unknown",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ModuleKind {
    /// A file mapped by the process.
    Elf,
    /// The kernel image.
    Kernel,
    /// A loadable kernel module (`path` is its name).
    KernelModule,
    Vdso,
    /// Executable memory without a file: JIT code or a trampoline.
    Anonymous,
    /// The address lies in no known mapping.
    Unknown,
}

/// A file or region that code came from. `path` is untrusted text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Module {
    pub path: StrId,
    /// GNU build-id bytes; empty when there is none.
    pub build_id: Vec<u8>,
    pub kind: ModuleKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FrameSpace {
    User,
    Kernel,
    /// Not code: says why frames are missing, as `[stack lost]`.
    Marker,
}

/// Where the name of a frame came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NameSource {
    /// No trustworthy name: shown as module+offset.
    None,
    ElfSymbol,
    /// Debug information, with file, line and inlined callers.
    Dwarf,
    Kallsyms,
    Vdso,
    PerfMap,
    /// The profiler's own text of a marker frame.
    Marker,
    /// Taken from an imported file.
    Imported,
    /// Concluded from type information, virtual tables and source paths of a stripped program.
    Inferred,
    /// A separate debug file on the host or in the container.
    DebugFile,
    /// The compressed symbol table in `.gnu_debugdata`.
    MiniDebug,
    /// A file that a debuginfod server gave.
    Debuginfod,
    /// Go's own table of functions and lines.
    GoTable,
    /// A file that the user gave for this build-id.
    SymbolPack,
}

/// How far a name can be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameClass {
    /// A table made by compiler, linker or runtime says so.
    Exact,
    Inferred,
    Unnamed,
}

impl NameSource {
    /// Stable name in the API and in exports.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ElfSymbol => "elf_symbol",
            Self::Dwarf => "dwarf",
            Self::Kallsyms => "kallsyms",
            Self::Vdso => "vdso",
            Self::PerfMap => "perf_map",
            Self::Marker => "marker",
            Self::Imported => "imported",
            Self::Inferred => "inferred",
            Self::DebugFile => "debug_file",
            Self::MiniDebug => "mini_debug",
            Self::Debuginfod => "debuginfod",
            Self::GoTable => "go_table",
            Self::SymbolPack => "symbol_pack",
        }
    }

    pub fn class(self) -> NameClass {
        match self {
            Self::None => NameClass::Unnamed,
            Self::Inferred => NameClass::Inferred,
            Self::ElfSymbol
            | Self::Dwarf
            | Self::Kallsyms
            | Self::Vdso
            | Self::PerfMap
            | Self::Marker
            | Self::Imported
            | Self::DebugFile
            | Self::MiniDebug
            | Self::Debuginfod
            | Self::GoTable
            | Self::SymbolPack => NameClass::Exact,
        }
    }
}

/// One function at a frame; `file` 0 and `line` 0 mean unknown.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Function {
    pub name: StrId,
    pub file: StrId,
    pub line: u32,
}

/// One code address with its names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frame {
    pub space: FrameSpace,
    pub module: ModuleId,
    /// File offset inside an ELF module; otherwise the address itself. For return addresses this
    /// is one byte before the return address, so that it lies inside the call.
    pub offset: u64,
    /// Innermost inlined function first, the real function last; empty when there is no name.
    pub functions: Vec<Function>,
    pub source: NameSource,
}

/// Frames from the leaf to the root: kernel frames first, then user frames.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stack {
    pub frames: Vec<FrameId>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProfileProcess {
    pub key: ProcessKey,
    pub comm: StrId,
    pub exe: StrId,
    /// Container id, 0 when there is none.
    pub container: StrId,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProfileThread {
    pub process: ProcessId,
    pub tid: u32,
    pub name: StrId,
}

/// Samples of one thread with one stack on one CPU in one time bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SampleRow {
    pub thread: ThreadId,
    pub stack: StackId,
    pub cpu: u32,
    /// `floor((time - origin_ns) / bucket_ns)`.
    pub bucket: u32,
    /// What the thread did.
    pub state: ThreadState,
    /// The waker, where it was asked for and is known: a frame with the name, and the
    /// frames of the waker from its leaf to its root.
    pub waker: Option<StackId>,
    /// Number of samples. 0 in a row that has the second part of waits that are counted in another
    /// row.
    pub count: u64,
    /// Time that all of them stand for, or took, in nanoseconds.
    pub total_ns: u64,
}

/// See the module's description. `strings[0]` is the empty string.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// Start of the task, nanoseconds since the Unix epoch; bucket 0 begins here.
    pub origin_ns: u64,
    /// Time range that this profile covers, nanoseconds after `origin_ns`.
    pub from_ns: u64,
    pub to_ns: u64,
    pub bucket_ns: u64,
    pub clock: Clock,
    pub strings: Vec<String>,
    pub modules: Vec<Module>,
    pub frames: Vec<Frame>,
    pub stacks: Vec<Stack>,
    pub processes: Vec<ProfileProcess>,
    pub threads: Vec<ProfileThread>,
    pub samples: Vec<SampleRow>,
    /// Who had the CPU while threads waited for one, where waits were recorded. The store keeps both behind the profile.
    #[serde(skip)]
    pub holders: Vec<CpuHolder>,
    #[serde(skip)]
    pub contention: Vec<ContentionRow>,
    pub losses: Losses,
    pub stack_quality: StackQuality,
}

impl Profile {
    /// The text of `id`, or `""` when the id is out of range (a damaged file).
    pub fn text(&self, id: StrId) -> &str {
        self.strings.get(id as usize).map_or("", String::as_str)
    }

    /// Number of samples.
    pub fn total_count(&self) -> u64 {
        self.samples
            .iter()
            .map(|row| row.count)
            .fold(0, u64::saturating_add)
    }

    /// Sampled time in nanoseconds.
    pub fn total_ns(&self) -> u64 {
        self.samples
            .iter()
            .map(|row| row.total_ns)
            .fold(0, u64::saturating_add)
    }

    /// Checks that every id points into its table, so that later stages may index freely.
    /// The error names the first table that does not hold.
    pub fn check(&self) -> Result<(), &'static str> {
        let string = |id: StrId| (id as usize) < self.strings.len();
        if self.bucket_ns == 0 {
            return Err("bucket length is zero");
        }
        if self.strings.first().is_none_or(|first| !first.is_empty()) {
            return Err("string 0 is not empty");
        }
        if !self.modules.iter().all(|module| string(module.path)) {
            return Err("a module's path is not in the string table");
        }
        let frame_holds = |frame: &Frame| {
            (frame.module as usize) < self.modules.len()
                && frame
                    .functions
                    .iter()
                    .all(|function| string(function.name) && string(function.file))
        };
        if !self.frames.iter().all(frame_holds) {
            return Err("a frame refers to a missing module or string");
        }
        let stack_holds = |stack: &Stack| {
            stack
                .frames
                .iter()
                .all(|id| (*id as usize) < self.frames.len())
        };
        if !self.stacks.iter().all(stack_holds) {
            return Err("a stack refers to a missing frame");
        }
        let process_holds = |process: &ProfileProcess| {
            string(process.comm) && string(process.exe) && string(process.container)
        };
        if !self.processes.iter().all(process_holds) {
            return Err("a process refers to a missing string");
        }
        let thread_holds = |thread: &ProfileThread| {
            (thread.process as usize) < self.processes.len() && string(thread.name)
        };
        if !self.threads.iter().all(thread_holds) {
            return Err("a thread refers to a missing process or string");
        }
        let row_holds = |row: &SampleRow| {
            (row.thread as usize) < self.threads.len()
                && (row.stack as usize) < self.stacks.len()
                && row
                    .waker
                    .is_none_or(|waker| (waker as usize) < self.stacks.len())
        };
        if !self.samples.iter().all(row_holds) {
            return Err("a sample refers to a missing thread or stack");
        }
        let holder_holds = |holder: &CpuHolder| match holder {
            CpuHolder::Process {
                process,
                container_name,
            } => process_holds(process) && string(*container_name),
            CpuHolder::Idle | CpuHolder::OutOfSight => true,
        };
        if !self.holders.iter().all(holder_holds) {
            return Err("who had a CPU refers to a missing string");
        }
        let contention_holds = |row: &ContentionRow| {
            (row.thread as usize) < self.threads.len() && (row.holder as usize) < self.holders.len()
        };
        if !self.contention.iter().all(contention_holds) {
            return Err("a wait for a CPU refers to a missing thread or process");
        }
        Ok(())
    }
}
