//! Functions that keep a frame pointer, as one row each.
//!
//! Compilers describe such a function with a row for each instruction of its prologue and two for
//! each of its epilogues. `cfa::FP_FUNCTION` and `cfa::FP_BODY` answer the same from the distance to
//! the function's start and from two bytes of code, at every instruction of it. Where they would
//! not, the description's own rows stay: in shrink-wrapped prologues, behind returns with an operand.

use profiler_common::unwind::rule::{Rule, cfa, fp, ra};

use super::{cfi::Function, code::PageCode, rules::of_kind};

const RET: u8 = 0xc3;
const POP_RBP: u8 = 0x5d;
const JMP: u8 = 0xe9;
const JMP_INDIRECT: u8 = 0xff;
const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

/// The rows of a function of an x86-64 file, with those left out that the frame-pointer rules stand
/// for. What begins before the page is clipped later.
pub(crate) fn collapse(function: &Function, code: &PageCode) -> Vec<(u64, Rule)> {
    let rows = &function.rows;
    let ends = rows.iter().skip(1).map(|(start, _)| *start);
    let ends = || ends.clone().chain([function.end]);
    if rows
        .iter()
        .zip(ends())
        .any(|((start, rule), end)| *rule == body() && looks_like_tail_call(*start, end, code))
    {
        return rows.clone();
    }
    let mut out = Vec::new();
    let mut next = 0;
    let mut inside = false;
    if let Some(skipped) = prologue(function, code) {
        next = 3;
        if function.start >= code.start {
            out.push((
                function.start,
                Rule {
                    cfa_offset: skipped,
                    ..of_kind(cfa::FP_FUNCTION)
                },
            ));
            inside = true;
        } else {
            // The page may begin inside the prologue: there the distance to the start is lost.
            out.extend_from_slice(&rows[..2]);
            out.push((rows[2].0, of_kind(cfa::FP_BODY)));
            inside = true;
        }
    }
    for (index, (address, rule)) in rows.iter().enumerate().skip(next) {
        let end = rows
            .get(index + 1)
            .map_or(function.end, |(start, _)| *start);
        if *rule == body() {
            if !inside {
                out.push((*address, of_kind(cfa::FP_BODY)));
            }
            inside = true;
        } else if inside && is_outside(*rule) && leaves(*address, end, code) {
            // FP_BODY sees the bytes.
        } else {
            inside = false;
            out.push((*address, *rule));
        }
    }
    out
}

/// Whether the function begins with `push rbp; mov rbp, rsp` and nothing but `endbr64` before it:
/// the number of bytes before.
fn prologue(function: &Function, code: &PageCode) -> Option<i32> {
    let [first, second, third, ..] = function.rows.as_slice() else {
        return None;
    };
    let pushed = Rule {
        cfa_offset: 16,
        fp_kind: fp::AT_CFA,
        fp_offset: -16,
        ..at_entry()
    };
    if first.1 != at_entry() || second.1 != pushed || third.1 != body() {
        return None;
    }
    if first.0 != function.start || third.0 - second.0 != 3 {
        return None;
    }
    match second.0 - first.0 {
        1 => Some(0),
        5 if function.start < code.start || code.starts_with(function.start, &ENDBR64) => Some(4),
        _ => None,
    }
}

fn at_entry() -> Rule {
    Rule {
        cfa_kind: cfa::SP,
        cfa_offset: 8,
        ra_kind: ra::AT_CFA,
        ra_offset: -8,
        fp_kind: fp::SAME,
        ..Rule::default()
    }
}

fn body() -> Rule {
    Rule {
        cfa_kind: cfa::FP,
        cfa_offset: 16,
        ra_kind: ra::AT_CFA,
        ra_offset: -8,
        fp_kind: fp::AT_CFA,
        fp_offset: -16,
        ..Rule::default()
    }
}

/// Right before a return: the frame pointer is restored, whether the description says so or names
/// the place below the stack pointer that it was popped from.
fn is_outside(rule: Rule) -> bool {
    let popped = Rule {
        fp_kind: fp::AT_CFA,
        fp_offset: -16,
        ..at_entry()
    };
    rule == at_entry() || rule == popped
}

/// Whether the code from `start` to `end` is a single `ret`, or a single `jmp` behind `pop rbp`.
fn leaves(start: u64, end: u64, code: &PageCode) -> bool {
    let bytes = code.from(start);
    let length = match bytes.first() {
        Some(&RET) => Some(1),
        Some(&JMP) if is_popped(start, code) => Some(5),
        Some(&JMP_INDIRECT) if is_popped(start, code) => {
            indirect_jump_bytes(bytes.get(1).copied(), bytes.get(2).copied())
        }
        Some(_) | None => None,
    };
    length == Some(end - start)
}

fn is_popped(address: u64, code: &PageCode) -> bool {
    address
        .checked_sub(1)
        .is_some_and(|before| code.byte(before) == POP_RBP)
}

/// Length of `jmp` through a register or memory with these bytes behind its first one.
fn indirect_jump_bytes(mode: Option<u8>, scale: Option<u8>) -> Option<u64> {
    let (mode, scale) = (mode?, scale?);
    if (mode >> 3) & 7 != 4 {
        return None;
    }
    let indexed = u64::from(mode & 7 == 4);
    match mode >> 6 {
        0 if mode & 7 == 5 || (indexed == 1 && scale & 7 == 5) => Some(6 + indexed),
        0 => Some(2 + indexed),
        1 => Some(3 + indexed),
        2 => Some(6 + indexed),
        _ => Some(2),
    }
}

/// Whether a place inside of a frame has the bytes of a tail call. Most such places are in the
/// middle of instructions, but that is not known here.
fn looks_like_tail_call(start: u64, end: u64, code: &PageCode) -> bool {
    let first = start.max(code.start);
    let length = usize::try_from(end.saturating_sub(first)).unwrap_or(usize::MAX);
    let from = first.saturating_sub(1);
    let bytes = code.from(from);
    let bytes = &bytes[..bytes.len().min(length.saturating_add(1))];
    bytes
        .windows(2)
        .any(|pair| pair[0] == POP_RBP && matches!(pair[1], JMP | JMP_INDIRECT))
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 0x2_0000;

    fn function(offset: u64, rows: &[(u64, Rule)]) -> Function {
        let rows: Vec<_> = rows
            .iter()
            .map(|(at, rule)| (START + offset + at, *rule))
            .collect();
        Function {
            start: START + offset,
            end: START + offset + 0x40,
            rows,
            ..Function::default()
        }
    }

    fn pushed() -> Rule {
        Rule {
            cfa_offset: 16,
            fp_kind: fp::AT_CFA,
            fp_offset: -16,
            ..at_entry()
        }
    }

    fn kinds(function: &Function, code: &[(u64, u8)]) -> Vec<(u64, u8)> {
        let mut bytes = vec![0x90; 0x100];
        for (at, byte) in code {
            bytes[usize::try_from(*at).unwrap()] = *byte;
        }
        let code = PageCode::of_bytes(START, bytes);
        collapse(function, &code)
            .iter()
            .map(|(at, rule)| (at.wrapping_sub(function.start), rule.cfa_kind))
            .collect()
    }

    #[test]
    fn an_ordinary_function_is_one_row() {
        let rows = [
            (0, at_entry()),
            (1, pushed()),
            (4, body()),
            (0x3f, at_entry()),
        ];
        let got = kinds(&function(0x10, &rows), &[(0x4f, RET)]);
        assert_eq!(got, [(0, cfa::FP_FUNCTION)]);
    }

    #[test]
    fn returns_in_the_middle_and_endbr64_need_no_rows() {
        let rows = [
            (0, at_entry()),
            (5, pushed()),
            (8, body()),
            (0x20, at_entry()),
            (0x21, body()),
        ];
        let mut code = vec![(0x30, RET)];
        code.extend((0x10..).zip(ENDBR64));
        let all = function(0x10, &rows);
        assert_eq!(kinds(&all, &code), [(0, cfa::FP_FUNCTION)]);
        let code = PageCode::of_bytes(START, {
            let mut bytes = vec![0x90; 0x100];
            bytes[0x10..0x14].copy_from_slice(&ENDBR64);
            bytes[0x30] = RET;
            bytes
        });
        assert_eq!(collapse(&all, &code)[0].1.cfa_offset, 4);
    }

    #[test]
    fn only_tail_calls_behind_pop_rbp_need_no_rows() {
        let rows = [
            (0, at_entry()),
            (1, pushed()),
            (4, body()),
            (0x20, at_entry()),
            (0x25, body()),
        ];
        let got = kinds(&function(0, &rows), &[(0x20, 0xe9)]);
        let expected = [(0, cfa::FP_FUNCTION), (0x20, cfa::SP), (0x25, cfa::FP_BODY)];
        assert_eq!(got, expected);
        // A return with an operand has more than one byte, and another first one.
        let got = kinds(&function(0, &rows), &[(0x20, 0xc2)]);
        assert_eq!(got, expected);
        let got = kinds(&function(0, &rows), &[(0x1f, POP_RBP), (0x20, JMP)]);
        assert_eq!(got, [(0, cfa::FP_FUNCTION)]);
        // A longer row has other instructions behind the jump.
        let got = kinds(
            &function(0, &rows),
            &[(0x1f, POP_RBP), (0x20, JMP_INDIRECT), (0x21, 0xe0)],
        );
        assert_eq!(got, expected);
    }

    #[test]
    fn bytes_like_those_of_a_tail_call_forbid_the_short_form() {
        let rows = [
            (0, at_entry()),
            (1, pushed()),
            (4, body()),
            (0x3f, at_entry()),
        ];
        let code = [(0x10, POP_RBP), (0x11, JMP), (0x3f, RET)];
        let got = kinds(&function(0, &rows), &code);
        assert_eq!(
            got,
            [(0, cfa::SP), (1, cfa::SP), (4, cfa::FP), (0x3f, cfa::SP)]
        );
    }

    #[test]
    fn lengths_of_indirect_jumps() {
        for (bytes, length) in [
            ([0xe0, 0], Some(2)),
            ([0x20, 0], Some(2)),
            ([0x60, 8], Some(3)),
            ([0xa0, 8], Some(6)),
            ([0x25, 8], Some(6)),
            ([0x24, 0xc5], Some(7)),
            ([0x24, 0xc0], Some(3)),
            ([0x64, 0x24], Some(4)),
            ([0xd0, 0], None),
        ] {
            let got = indirect_jump_bytes(Some(bytes[0]), Some(bytes[1]));
            assert_eq!(got, length, "{bytes:x?}");
        }
    }

    #[test]
    fn other_prologues_keep_their_rows() {
        let rows = [(0, at_entry()), (7, pushed()), (10, body())];
        let got = kinds(&function(0, &rows), &[]);
        let expected = [(0, cfa::SP), (7, cfa::SP), (10, cfa::FP_BODY)];
        assert_eq!(got, expected);
        let rows = [(0, at_entry()), (5, pushed()), (8, body())];
        let got = kinds(&function(0, &rows), &[]);
        assert_eq!(got.len(), 3, "five bytes that are not endbr64");
    }

    #[test]
    fn a_function_of_the_page_before_has_no_distance() {
        let mut before = function(0, &[(0, at_entry()), (1, pushed()), (4, body())]);
        let code = PageCode::of_bytes(START + 2, vec![0x90; 0x40]);
        before.end = START + 0x20;
        let rows = collapse(&before, &code);
        let got: Vec<_> = rows.iter().map(|(_, rule)| rule.cfa_kind).collect();
        assert_eq!(got, [cfa::SP, cfa::SP, cfa::FP_BODY]);
    }
}
