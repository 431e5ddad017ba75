//! How frames, modules and processes are called, the same in every format.

use std::{borrow::Cow, collections::HashMap};

use profiler_model::{Frame, Function, Module, ModuleKind, ProcessId, Profile, ThreadId};

/// The name of a frame without a trustworthy symbol: `module+0xoffset` with the last part of the
/// module's path.
pub fn display_name(profile: &Profile, frame: &Frame) -> String {
    let module = &profile.modules[frame.module as usize];
    format!("{}+{:#x}", module_name(profile, module), frame.offset)
}

/// The names of each frame of the profile, innermost first; never empty.
pub(crate) fn names_of_frames(profile: &Profile) -> Vec<Vec<Cow<'_, str>>> {
    let frames = profile.frames.iter();
    let names = frames.map(|frame| match frame.functions.as_slice() {
        [] => vec![Cow::Owned(display_name(profile, frame))],
        functions => functions
            .iter()
            .map(|function| Cow::Borrowed(profile.text(function.name)))
            .collect(),
    });
    names.collect()
}

/// Last part of the module's path, or what it is when there is no path.
pub fn module_name<'a>(profile: &'a Profile, module: &Module) -> &'a str {
    let path = profile.text(module.path);
    match path.rsplit('/').find(|part| !part.is_empty()) {
        Some(name) => name,
        None => match module.kind {
            ModuleKind::Elf => "[file]",
            ModuleKind::Kernel => "[kernel]",
            ModuleKind::KernelModule => "[kernel module]",
            ModuleKind::Vdso => "[vdso]",
            ModuleKind::Anonymous => "[anonymous]",
            ModuleKind::Unknown => "[unknown]",
        },
    }
}

/// One line of a picture: a function, or a frame without one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) function: Option<&'a Function>,
    /// The compiler put this function's code into that of the next line towards the root.
    pub(super) inlined: bool,
}

/// The names of a frame's functions, innermost first; never empty.
pub(crate) fn functions_of(profile: &Profile, frame: &Frame) -> Vec<String> {
    let lines = lines(profile, frame).into_iter().rev();
    lines.map(|line| line.name.into_owned()).collect()
}

/// The lines of a frame from the root's side to the leaf's: the real function, then what was
/// inlined into it. Never empty.
pub(super) fn lines<'a>(profile: &'a Profile, frame: &'a Frame) -> Vec<Line<'a>> {
    let Some(last) = frame.functions.len().checked_sub(1) else {
        let name = Cow::Owned(display_name(profile, frame));
        return vec![Line {
            name,
            function: None,
            inlined: false,
        }];
    };
    let line = |(index, function): (usize, &'a Function)| {
        let name = match profile.text(function.name) {
            "" => Cow::Owned(display_name(profile, frame)),
            name => Cow::Borrowed(name),
        };
        Line {
            name,
            function: Some(function),
            inlined: index < last,
        }
    };
    frame.functions.iter().enumerate().rev().map(line).collect()
}

/// Names of processes by id: `comm`, or `comm (pid)` where several processes share it.
pub(super) fn process_names(profile: &Profile) -> Vec<String> {
    let mut sharing: HashMap<&str, Vec<(u32, u64)>> = HashMap::new();
    for process in &profile.processes {
        let keys = sharing.entry(profile.text(process.comm)).or_default();
        let key = (process.key.pid, process.key.start_ticks);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let name = |id: &profiler_model::ProfileProcess| {
        let comm = match profile.text(id.comm) {
            "" => "[unknown process]",
            comm => comm,
        };
        let shared = sharing
            .get(profile.text(id.comm))
            .is_some_and(|keys| keys.len() > 1);
        if shared {
            format!("{comm} ({})", id.key.pid)
        } else {
            comm.to_owned()
        }
    };
    profile.processes.iter().map(name).collect()
}

/// The process of a thread.
pub(super) fn process_of(profile: &Profile, thread: ThreadId) -> ProcessId {
    profile.threads[thread as usize].process
}
