//! How good the names of a profile are, by samples.

use std::collections::{BTreeMap, HashMap};

use profiler_model::{
    Frame, FrameId, FrameSpace, ModuleId, ModuleKind, NameClass, NameSource, Profile, StackId,
    percent,
};

use super::runtimes::Runtime;

/// Files without names that are listed.
const MODULES_LIMIT: usize = 50;

/// Executable memory without a file that the kernel makes.
const KERNEL_PAGES: [&str; 2] = ["[vsyscall]", "[uprobes]"];

/// A file whose frames lack exact names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoorModule {
    /// Untrusted text.
    pub path: String,
    /// Empty when the file has none, so that no symbol file can be given for it.
    pub build_id: Vec<u8>,
    pub unnamed: u64,
    pub inferred: u64,
}

/// A runtime of which frames are in a profile that show nothing about its functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuntimeGap {
    pub runtime: Runtime,
    /// Of [`NameQuality::interpreter`] and [`NameQuality::jit`].
    pub frames: u64,
    /// Samples with such a frame.
    pub samples: u64,
}

/// Counts of user frames: a frame counts once for each sample whose stack has it. Each is of one class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameQuality {
    pub exact: u64,
    pub inferred: u64,
    /// The loop of an interpreter: its name shows nothing about the function that it interprets.
    pub interpreter: u64,
    /// Code made at run time, in memory without a file, that no perf map names.
    pub jit: u64,
    /// All others without a name.
    pub unnamed: u64,
    /// The same by [`profiler_model::NameSource::name`].
    pub sources: BTreeMap<&'static str, u64>,
    /// Samples with at least one user frame, and those of them with at least one name of a function.
    pub samples: u64,
    pub samples_with_a_name: u64,
    /// Files without exact names, the most frames first.
    pub modules: Vec<PoorModule>,
    /// Runtimes with frames of an interpreter or of code without a perf map, the most frames first.
    pub runtimes: Vec<RuntimeGap>,
}

impl NameQuality {
    pub fn frames(&self) -> u64 {
        [
            self.exact,
            self.inferred,
            self.interpreter,
            self.jit,
            self.unnamed,
        ]
        .into_iter()
        .fold(0, u64::saturating_add)
    }

    /// `part` of all frames in percent; 0 without frames.
    pub fn percent(&self, part: u64) -> f64 {
        percent(part, self.frames())
    }

    /// `part` of the samples with user frames in percent; 0 without samples.
    pub fn sample_percent(&self, part: u64) -> f64 {
        percent(part, self.samples)
    }
}

/// What is known of a frame by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Exact,
    Inferred,
    Interpreter(Runtime),
    /// The runtime is that of the process or of the stack.
    Jit,
    Unnamed,
}

/// Counts the names of a profile, which must have passed [`Profile::check`].
pub fn names(profile: &Profile) -> NameQuality {
    let of_process: Vec<Option<Runtime>> = profile
        .processes
        .iter()
        .map(|process| Runtime::of_file(profile.text(process.exe)))
        .collect();
    let of_module: Vec<Option<Runtime>> = profile
        .modules
        .iter()
        .map(|module| Runtime::of_file(profile.text(module.path)))
        .collect();
    let classes: Vec<Class> = profile
        .frames
        .iter()
        .map(|frame| class(profile, frame))
        .collect();
    let mut stacks: HashMap<(StackId, Option<Runtime>), u64> = HashMap::new();
    for row in &profile.samples {
        let process = profile.threads[row.thread as usize].process;
        let count = stacks
            .entry((row.stack, of_process[process as usize]))
            .or_default();
        *count = count.saturating_add(row.count);
    }
    let mut quality = NameQuality::default();
    let mut modules: HashMap<ModuleId, (u64, u64)> = HashMap::new();
    let mut gaps: BTreeMap<Runtime, RuntimeGap> = BTreeMap::new();
    for ((stack, runtime), count) in stacks {
        let add = |to: &mut u64| *to = to.saturating_add(count);
        let frames = &profile.stacks[stack as usize].frames;
        let is_user = |id: &&FrameId| profile.frames[**id as usize].space == FrameSpace::User;
        let user: Vec<FrameId> = frames.iter().filter(is_user).copied().collect();
        let in_stack = || {
            let modules = user.iter().map(|id| profile.frames[*id as usize].module);
            modules.into_iter().find_map(|id| of_module[id as usize])
        };
        let mut lacking: Vec<Runtime> = Vec::new();
        let mut lacks = |runtime: Runtime| {
            let gap = gaps.entry(runtime).or_insert(RuntimeGap {
                runtime,
                frames: 0,
                samples: 0,
            });
            add(&mut gap.frames);
            if !lacking.contains(&runtime) {
                lacking.push(runtime);
                add(&mut gap.samples);
            }
        };
        let mut named = false;
        for (at, id) in user.iter().enumerate() {
            let frame = &profile.frames[*id as usize];
            add(quality.sources.entry(frame.source.name()).or_default());
            let caller = user.get(at + 1).map(|id| &profile.frames[*id as usize]);
            match classes[*id as usize] {
                // With `-X perf` a function of Python calls the loop from code that bears its name.
                Class::Interpreter(found)
                    if found.is_python()
                        && caller.is_some_and(|caller| caller.source == NameSource::PerfMap) =>
                {
                    add(&mut quality.exact);
                }
                Class::Exact => {
                    named = true;
                    add(&mut quality.exact);
                }
                Class::Inferred => {
                    named = true;
                    add(&mut quality.inferred);
                    add(&mut modules.entry(frame.module).or_default().1);
                }
                Class::Interpreter(found) => {
                    add(&mut quality.interpreter);
                    // The program may tell the version where the library does not.
                    let of_program = runtime.filter(|runtime| runtime.is_python());
                    let unknown = found == Runtime::Python;
                    lacks(of_program.filter(|_| unknown).unwrap_or(found));
                }
                Class::Jit => {
                    add(&mut quality.jit);
                    lacks(runtime.or_else(in_stack).unwrap_or(Runtime::Other));
                }
                Class::Unnamed => {
                    add(&mut quality.unnamed);
                    add(&mut modules.entry(frame.module).or_default().0);
                }
            }
        }
        quality.samples = quality
            .samples
            .saturating_add(u64::from(!user.is_empty()) * count);
        quality.samples_with_a_name = quality
            .samples_with_a_name
            .saturating_add(u64::from(named) * count);
    }
    quality.modules = poor_modules(profile, modules);
    quality.runtimes = gaps.into_values().collect();
    quality
        .runtimes
        .sort_by_key(|gap| std::cmp::Reverse(gap.frames));
    quality
}

fn class(profile: &Profile, frame: &Frame) -> Class {
    let module = &profile.modules[frame.module as usize];
    let path = profile.text(module.path);
    let of_loop = || {
        let mut functions = frame.functions.iter();
        let runtime = functions
            .find_map(|function| Runtime::of_loop(profile.text(function.name), frame.source));
        runtime.map(|runtime| runtime.with_version(path))
    };
    match frame.source.class() {
        NameClass::Exact => of_loop().map_or(Class::Exact, Class::Interpreter),
        NameClass::Inferred => Class::Inferred,
        // The kernel's own pages have labels and no file either.
        NameClass::Unnamed
            if module.kind == ModuleKind::Anonymous && !KERNEL_PAGES.contains(&path) =>
        {
            Class::Jit
        }
        NameClass::Unnamed => Class::Unnamed,
    }
}

fn poor_modules(profile: &Profile, counts: HashMap<ModuleId, (u64, u64)>) -> Vec<PoorModule> {
    // Files that only differ in their kind are one for people.
    let mut merged: BTreeMap<(String, Vec<u8>), (u64, u64)> = BTreeMap::new();
    for (module, (unnamed, inferred)) in counts {
        let module = &profile.modules[module as usize];
        let path = match profile.text(module.path) {
            "" => super::names::module_name(profile, module),
            path => path,
        };
        let counts = merged
            .entry((path.to_owned(), module.build_id.clone()))
            .or_default();
        counts.0 = counts.0.saturating_add(unnamed);
        counts.1 = counts.1.saturating_add(inferred);
    }
    let mut modules: Vec<PoorModule> = merged
        .into_iter()
        .map(|((path, build_id), (unnamed, inferred))| PoorModule {
            path,
            build_id,
            unnamed,
            inferred,
        })
        .collect();
    modules.sort_by_key(|module| std::cmp::Reverse(module.unnamed.saturating_add(module.inferred)));
    modules.truncate(MODULES_LIMIT);
    modules
}
