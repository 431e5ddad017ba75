//! Folded stacks: `first;second;...;leaf 12`, one a line.
//!
//! The first name becomes the process, so that the picture has as many levels as the file. The
//! endings that perf and this program write (`_[k]`, `_[i]`, `_[j]`, `_[inferred]`) are understood.

use std::borrow::Cow;

use profiler_model::{
    Clock, Frame, FrameId, FrameSpace, Function, ImportFormat, ImportValues, ImportedFile,
    ModuleKind, NameSource, ProcessKey, ProfileBuilder, ProfileProcess, ProfileThread, SampleRow,
    ThreadState,
};

use super::{
    BUCKET_NS, ImportError, Imported, MAX_DEPTH, MAX_ITEMS, MAX_STACK_NAMES, MAX_TEXT_BYTES,
    Memory, bounded_notes,
};

pub(super) fn read(raw: &[u8], now_ns: u64, memory: Memory) -> Result<Imported, ImportError> {
    let mut builder = ProfileBuilder::new(now_ns, BUCKET_NS, Clock::Unknown);
    let mut lines = 0;
    let mut all_names = 0;
    let mut not_text = 0_u64;
    for (number, line) in (1..).zip(raw.split(|byte| *byte == b'\n')) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.iter().all(u8::is_ascii_whitespace) || line.starts_with(b"#") {
            continue;
        }
        lines += 1;
        if lines > MAX_ITEMS {
            return Err(ImportError::TooMany {
                what: "lines",
                limit: MAX_ITEMS,
            });
        }
        let text = String::from_utf8_lossy(line);
        not_text += u64::from(matches!(text, Cow::Owned(_)));
        let failed = |problem| ImportError::Line {
            line: number,
            problem,
        };
        let (stack, count) = split(&text).map_err(failed)?;
        all_names += add(&mut builder, stack, count).map_err(failed)?;
        if all_names > MAX_STACK_NAMES {
            return Err(ImportError::TooMany {
                what: "names in its stacks",
                limit: MAX_STACK_NAMES,
            });
        }
        memory.check(builder.bytes())?;
    }
    let lossy = (not_text > 0).then(|| {
        format!("{not_text} lines are not UTF-8; what cannot be read is shown as \u{fffd}")
    });
    Ok(Imported {
        profile: builder.finish(),
        file: ImportedFile {
            name: String::new(),
            format: ImportFormat::Folded,
            values: ImportValues::Counts,
            has_times: false,
            has_threads: false,
        },
        began_ns: None,
        duration_ns: None,
        frequency_hz: None,
        notes: bounded_notes(lossy),
    })
}

/// Whether the first line is a stack with a count. pprof's first byte is a tag, of which the one that
/// files begin with is a line's end, and lengths and small numbers follow.
pub(super) fn begins(raw: &[u8]) -> bool {
    let first = raw.split(|byte| *byte == b'\n').next().unwrap_or(raw);
    first.first().is_some_and(|byte| *byte >= b' ')
        && std::str::from_utf8(first).is_ok_and(|line| split(line).is_ok())
}

/// The stack and its count.
fn split(line: &str) -> Result<(&str, u64), String> {
    let Some((stack, count)) = line.trim_end().rsplit_once(' ') else {
        return Err("no count follows the stack; write `a;b;c 12`".to_owned());
    };
    let Ok(count) = count.parse() else {
        return Err(format!(
            "{:?} is not a whole number of samples",
            shortened(count)
        ));
    };
    let stack = stack.trim_end();
    if stack.is_empty() {
        return Err("the stack is empty".to_owned());
    }
    if let Some((_, last)) = stack.rsplit_once(' ')
        && !last.is_empty()
        && last.bytes().all(|byte| byte.is_ascii_digit())
    {
        return Err("two counts follow the stack: this is a difference of two profiles".to_owned());
    }
    Ok((stack, count))
}

/// The beginning of a text, for messages.
fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(40)]
}

/// Adds a line; the answer is the number of its names.
fn add(builder: &mut ProfileBuilder, stack: &str, count: u64) -> Result<usize, String> {
    let mut names = stack.split(';');
    let comm = names.next().unwrap_or("");
    // Counted before anything is made of them.
    let length = stack.bytes().filter(|byte| *byte == b';').count();
    if length > MAX_DEPTH {
        return Err(format!("the stack has more than {MAX_DEPTH} names"));
    }
    if stack.split(';').any(|name| name.len() > MAX_TEXT_BYTES) {
        return Err(format!("a name is longer than {MAX_TEXT_BYTES} bytes"));
    }
    let mut open: Vec<Open<'_>> = Vec::new();
    for name in names {
        let (name, ending) = ending(name);
        match (ending, open.last_mut()) {
            // The compiler put it into the function before.
            (Ending::Inlined, Some(outer)) => outer.names.push(name),
            _ => open.push(Open {
                names: vec![name],
                ending,
            }),
        }
    }
    let mut frames: Vec<FrameId> = open.iter().map(|open| frame(builder, open)).collect();
    frames.reverse();
    let comm = builder.string(comm);
    let process = builder.process(ProfileProcess {
        key: ProcessKey {
            pid: 0,
            start_ticks: 0,
        },
        comm,
        exe: 0,
        container: 0,
    });
    let thread = builder.thread(ProfileThread {
        process,
        tid: 0,
        name: 0,
    });
    let stack = builder.stack(frames);
    builder.sample(SampleRow {
        thread,
        stack,
        cpu: 0,
        bucket: 0,
        state: ThreadState::OnCpu,
        waker: None,
        count,
        total_ns: 0,
    });
    Ok(length)
}

/// A function with what was inlined into it, root's side first.
struct Open<'a> {
    names: Vec<&'a str>,
    ending: Ending,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    None,
    Kernel,
    Inlined,
    Inferred,
    Jit,
}

fn ending(name: &str) -> (&str, Ending) {
    for (text, ending) in [
        ("_[k]", Ending::Kernel),
        ("_[i]", Ending::Inlined),
        ("_[inferred]", Ending::Inferred),
        ("_[j]", Ending::Jit),
    ] {
        if let Some(name) = name.strip_suffix(text)
            && !name.is_empty()
        {
            return (name, ending);
        }
    }
    (name, Ending::None)
}

fn frame(builder: &mut ProfileBuilder, open: &Open<'_>) -> FrameId {
    let is_marker = open.ending == Ending::None
        && open.names.len() == 1
        && open.names[0].starts_with('[')
        && open.names[0].ends_with(']');
    if is_marker {
        return builder.marker(open.names[0]);
    }
    let (space, kind, source) = match open.ending {
        Ending::Kernel => (FrameSpace::Kernel, ModuleKind::Kernel, NameSource::Imported),
        Ending::Jit => (FrameSpace::User, ModuleKind::Anonymous, NameSource::PerfMap),
        Ending::Inferred => (FrameSpace::User, ModuleKind::Unknown, NameSource::Inferred),
        Ending::None | Ending::Inlined => {
            (FrameSpace::User, ModuleKind::Unknown, NameSource::Imported)
        }
    };
    let functions = open
        .names
        .iter()
        .rev()
        .map(|name| Function {
            name: builder.string(name),
            file: 0,
            line: 0,
        })
        .collect();
    let path = match kind {
        ModuleKind::Kernel => "[kernel]",
        _ => "",
    };
    let module = builder.module(path, &[], kind);
    builder.frame(Frame {
        space,
        module,
        offset: 0,
        functions,
        source,
    })
}
