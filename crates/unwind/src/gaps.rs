//! Code that no description covers: what can still be known about it.
//!
//! - Up to 15 bytes between functions are padding, which never runs; the rule before goes on.
//! - Where the program begins is the outermost frame (musl's `_start` has no description).
//! - musl's `__clone`, of which the child's part is the outermost frame of a thread.
//! - Signal trampolines, by their instructions.
//! - Whole regions come from another compiler, as V8's built-in functions in Node: those keep frame
//!   pointers, or the stack breaks off and says so.
//! - musl's functions, as far as their instructions could be followed (`undescribed`).
//! - In files that describe next to nothing of their code, the rest is taken to keep frame pointers.
//! - `.plt` sections of linkers that write no description for them.

use profiler_common::unwind::rule::{Rule, cfa, fp, ra};
use profiler_image::elf_layout::Layout;

use super::{code::PageCode, machine::Machine, rules::of_kind};

/// Longest gap that is padding.
pub(crate) const PADDING: u64 = 15;

/// Shortest gap that is a region of its own.
const REGION: u64 = 64 * 1024;

/// Bytes from the entry of a program that are taken to be its start code.
const ENTRY_BYTES: u64 = 64;

/// `mov rax, 15; syscall` (`rt_sigreturn`).
const SIGRETURN_X86_64: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
/// `mov x8, #139; svc #0`.
const SIGRETURN_AARCH64: [u8; 8] = [0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4];

/// How musl's `__clone` begins: `xor eax, eax; mov al, 56; mov r11, rdi`.
const CLONE_MUSL: [u8; 7] = [0x31, 0xc0, 0xb0, 0x38, 0x49, 0x89, 0xfb];
/// Its length, and how it ends: `mov edi, eax; xor eax, eax; mov al, 60; syscall`.
const CLONE_MUSL_BYTES: usize = 64;

/// A section of stubs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stubs {
    start: u64,
    end: u64,
    rule: Rule,
}

/// How much of a file's code has descriptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Described {
    Mostly,
    /// It was built without; those that are there came with libraries linked into it.
    Little,
}

/// What is known of a file's code without descriptions.
#[derive(Clone, Debug)]
pub(crate) struct Gaps {
    machine: Machine,
    described: Described,
    entry: u64,
    stubs: Vec<Stubs>,
}

impl Gaps {
    pub(crate) fn new(layout: &Layout, machine: Machine, described: Described) -> Self {
        let mut stubs = Vec::new();
        for section in layout.sections.iter().flatten() {
            let pushes = match section.name.as_str() {
                // The word is pushed by bytes 6 to 10.
                ".plt" => Some(11),
                ".plt.got" | ".plt.sec" => None,
                _ => continue,
            };
            let rule = match (machine, pushes) {
                (Machine::Aarch64, _) => Rule {
                    cfa_kind: cfa::SP,
                    ra_kind: ra::LINK,
                    ..Rule::default()
                },
                (Machine::X86_64, Some(pushed_at)) => Rule {
                    cfa_kind: cfa::PLT,
                    cfa_offset: pushed_at,
                    ra_offset: -8,
                    ..Rule::default()
                },
                (Machine::X86_64, None) => function_entry(),
            };
            stubs.push(Stubs {
                start: section.address,
                end: section.address.saturating_add(section.bytes),
                rule,
            });
        }
        Self {
            machine,
            described,
            entry: layout.entry,
            stubs,
        }
    }

    /// What holds in the gap from `start` to `end` where nothing more is known.
    pub(crate) fn unknown(&self, start: u64, end: u64) -> Rule {
        // What is before the first description or behind the last is not a region between others.
        let between = start > 0 && end != u64::MAX;
        let region = between && end.saturating_sub(start) >= REGION;
        if region || self.described == Described::Little {
            of_kind(cfa::FP_BODY)
        } else {
            of_kind(cfa::NO_UNWIND_INFO)
        }
    }

    /// Rows of the part from `start` to `end` of a gap, in ascending order; the first is at
    /// `start`.
    pub(crate) fn rows(
        &self,
        start: u64,
        end: u64,
        unknown: Rule,
        followed: &[(u64, u64, Rule)],
        code: &PageCode,
    ) -> Vec<(u64, Rule)> {
        let mut known: Vec<(u64, u64, Rule)> = Vec::new();
        for stubs in &self.stubs {
            known.push((stubs.start, stubs.end, stubs.rule));
        }
        if self.entry != 0 {
            let entry_end = self.entry.saturating_add(ENTRY_BYTES);
            known.push((self.entry, entry_end, of_kind(cfa::OUTERMOST)));
        }
        self.patterns(start, end, code, &mut known);
        known.retain_mut(|(from, to, _)| {
            *from = (*from).max(start);
            *to = (*to).min(end);
            from < to
        });
        known.sort_unstable();
        let mut rows = Vec::new();
        let mut described_to = start;
        for (from, to, rule) in known {
            let from = from.max(described_to);
            if from >= to {
                continue;
            }
            fill(described_to, from, unknown, followed, &mut rows);
            rows.push((from, rule));
            described_to = to;
        }
        fill(described_to, end, unknown, followed, &mut rows);
        rows
    }

    fn patterns(&self, start: u64, end: u64, code: &PageCode, known: &mut Vec<(u64, u64, Rule)>) {
        let first = start.max(code.start);
        let bytes = code.from(first);
        let length = usize::try_from(end.saturating_sub(first)).unwrap_or(usize::MAX);
        let bytes = &bytes[..bytes.len().min(length)];
        let trampoline: &[u8] = match self.machine {
            Machine::X86_64 => &SIGRETURN_X86_64,
            Machine::Aarch64 => &SIGRETURN_AARCH64,
        };
        for (at, _) in bytes.iter().enumerate() {
            let rest = &bytes[at..];
            let address = first + at as u64;
            if rest.starts_with(trampoline) {
                // A handler returns to its first byte, and the byte before is looked up.
                let from = address.saturating_sub(1);
                known.push((
                    from,
                    address + trampoline.len() as u64,
                    of_kind(cfa::SIGNAL),
                ));
            } else if self.machine == Machine::X86_64 && rest.starts_with(&CLONE_MUSL) {
                clone_rows(rest, address, known);
            }
        }
    }
}

/// Rows between two addresses: those of instructions that were followed, and what holds elsewhere.
fn fill(
    start: u64,
    end: u64,
    unknown: Rule,
    followed: &[(u64, u64, Rule)],
    rows: &mut Vec<(u64, Rule)>,
) {
    let mut described_to = start;
    for (from, to, rule) in followed {
        let (from, to) = ((*from).max(described_to), (*to).min(end));
        if from >= to {
            continue;
        }
        if from > described_to {
            rows.push((described_to, unknown));
        }
        rows.push((from, *rule));
        described_to = to;
    }
    if described_to < end {
        rows.push((described_to, unknown));
    }
}

/// musl's `__clone`: an ordinary frame up to the system call, then parent and child differ; the
/// child calls its function and never returns.
fn clone_rows(code: &[u8], address: u64, known: &mut Vec<(u64, u64, Rule)>) {
    let code = &code[..code.len().min(CLONE_MUSL_BYTES)];
    // `call r9`: the only call.
    let Some(call) = code
        .windows(3)
        .position(|bytes| bytes == [0x41, 0xff, 0xd1])
    else {
        return;
    };
    // `hlt` stands before what the parent goes on with.
    let halt = code[call..].iter().position(|byte| *byte == 0xf4);
    let child_end = call + halt.unwrap_or(code.len() - call);
    let at = |offset: usize| address + offset as u64;
    known.push((address, at(call), function_entry()));
    known.push((at(call), at(child_end), of_kind(cfa::OUTERMOST)));
    known.push((at(child_end), at(code.len()), function_entry()));
}

fn function_entry() -> Rule {
    Rule {
        cfa_kind: cfa::SP,
        cfa_offset: 8,
        ra_offset: -8,
        fp_kind: fp::SAME,
        ..Rule::default()
    }
}
