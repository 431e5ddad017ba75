//! Small pieces of code whose stacks are known.

use profiler_common::unwind::rule::{cfa, fp};

use super::*;

const START: u64 = 0x1000;

fn follow(code: &[u8], functions: &[u64]) -> Vec<(u64, u64, Rule)> {
    let range = CodeRange {
        start: START,
        bytes: code.to_vec(),
    };
    rules(&[range], functions, &|_, _| false)
}

/// Offset, CFA kind and offset, and whether `rbp` is the caller's.
fn check(code: &[u8], expected: &[(u64, u8, i32, u8)]) {
    let got: Vec<_> = follow(code, &[START])
        .into_iter()
        .map(|(start, _, rule)| (start - START, rule.cfa_kind, rule.cfa_offset, rule.fp_kind))
        .collect();
    assert_eq!(got, expected);
}

#[test]
fn pushes_and_room_move_the_frame() {
    // push rbp; push rbx; sub rsp, 0x18; add rsp, 0x18; pop rbx; pop rbp; ret
    let code = [
        0x55, 0x53, 0x48, 0x83, 0xec, 0x18, 0x48, 0x83, 0xc4, 0x18, 0x5b, 0x5d, 0xc3,
    ];
    check(
        &code,
        &[
            (0, cfa::SP, 8, fp::SAME),
            (1, cfa::SP, 16, fp::SAME),
            (2, cfa::SP, 24, fp::SAME),
            (6, cfa::SP, 48, fp::SAME),
            (10, cfa::SP, 24, fp::SAME),
            (11, cfa::SP, 16, fp::SAME),
            (12, cfa::SP, 8, fp::SAME),
        ],
    );
}

#[test]
fn a_frame_pointer_leads_out_of_a_frame_of_unknown_size() {
    // push rbp; mov rbp, rsp; sub rsp, rax; leave; ret
    let code = [0x55, 0x48, 0x89, 0xe5, 0x48, 0x29, 0xc4, 0xc9, 0xc3];
    check(
        &code,
        &[
            (0, cfa::SP, 8, fp::SAME),
            (1, cfa::SP, 16, fp::SAME),
            (4, cfa::SP, 16, fp::AT_CFA),
            (7, cfa::FP, 16, fp::AT_CFA),
            (8, cfa::SP, 8, fp::SAME),
        ],
    );
}

#[test]
fn code_that_returns_from_within_its_frame_gets_no_rules() {
    // push rbx; ret
    check(&[0x53, 0xc3], &[]);
    // push rbx; pop rbx; ret, and a way into its middle: jmp +1 from a function without a frame.
    let code = [0x53, 0x5b, 0xc3, 0xeb, 0xfc];
    assert_eq!(follow(&code, &[START, START + 3]), []);
}

#[test]
fn a_frame_pointer_that_is_lost_is_not_taken_for_the_callers() {
    // push rbx; xor ebp, ebp; hlt
    check(
        &[0x53, 0x31, 0xed, 0xf4],
        &[(0, cfa::SP, 8, fp::SAME), (1, cfa::SP, 16, fp::SAME)],
    );
}

#[test]
fn a_call_that_does_not_return_leads_into_no_other_function() {
    // push rbx; call second; nop; second: ret
    let code = [0x53, 0xe8, 1, 0, 0, 0, 0x90, 0xc3];
    check(
        &code,
        &[
            (0, cfa::SP, 8, fp::SAME),
            (1, cfa::SP, 16, fp::SAME),
            (7, cfa::SP, 8, fp::SAME),
        ],
    );
}

#[test]
fn code_that_only_data_leads_to_is_believed_when_it_ends_soundly() {
    // ret; push rbx; pop rbx; ret; pop rbx; ret; push rbx; hlt
    let code = [0xc3, 0x53, 0x5b, 0xc3, 0x5b, 0xc3, 0x53, 0xf4];
    let known: Vec<_> = follow(&code, &[START])
        .iter()
        .map(|(start, end, _)| (start - START, end - START))
        .collect();
    assert_eq!(known, [(0, 2), (2, 3), (3, 4)]);
}

#[test]
fn ways_with_another_frame_pointer_meet_in_a_function_that_only_its_address_leads_to() {
    // lea rax, [rip+second]; ret; second: push rbp; je +2; xor ebp, ebp; call third; third: hlt
    let code = [
        0x48, 0x8d, 0x05, 0x01, 0, 0, 0, 0xc3, 0x55, 0x74, 0x02, 0x31, 0xed, 0xe8, 0, 0, 0, 0, 0xf4,
    ];
    let rules = follow(&code, &[START]);
    let at = |offset: u64| {
        rules
            .iter()
            .find(|rule| rule.0 <= offset + START && offset + START < rule.1)
    };
    let (_, _, rule) = at(13).expect("a rule at the call");
    assert_eq!((rule.cfa_offset, rule.fp_kind), (16, fp::AT_CFA));
}

#[test]
fn the_cases_of_a_switch_have_the_frame_of_their_function() {
    // push rbx; cmp edi, 1; ja end; lea rdx, [rip+table]; movsxd rax, [rdx+rdi*4]; add rax, rdx;
    // jmp rax; case 0: nop; case 1: nop; end: pop rbx; ret
    let code = [
        0x53, 0x83, 0xff, 0x01, 0x77, 0x12, 0x48, 0x8d, 0x15, 0xf3, 0x0f, 0, 0, 0x48, 0x63, 0x04,
        0xba, 0x48, 0x01, 0xd0, 0xff, 0xe0, 0x90, 0x90, 0x5b, 0xc3,
    ];
    let table = START + 0xd + 0xff3;
    let read = |address: u64, bytes: &mut [u8]| {
        let case = START + 22 + (address - table) / 4;
        let distance = i32::try_from(case.cast_signed() - table.cast_signed()).unwrap();
        bytes.copy_from_slice(&distance.to_le_bytes());
        true
    };
    let range = CodeRange {
        start: START,
        bytes: code.to_vec(),
    };
    let got = rules(&[range], &[START], &read);
    let at = |address: u64| {
        got.iter()
            .find(|(start, end, _)| (*start..*end).contains(&address))
    };
    for case in [22, 23] {
        let (_, _, rule) = at(START + case).expect("a rule");
        assert_eq!((rule.cfa_kind, rule.cfa_offset), (cfa::SP, 16));
    }
}

/// Bytes from a fixed sequence: it ends, and what it says is within the code.
#[test]
fn noise_is_followed_in_bounded_time() {
    let mut seed = 1_u64;
    for _ in 0..200 {
        let code: Vec<u8> = (0..2000)
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                u8::try_from(seed >> 56).unwrap()
            })
            .collect();
        let got = follow(&code, &[START, START + 100]);
        assert!(got.is_sorted_by_key(|rule| rule.0));
        assert!(
            got.iter()
                .all(|rule| rule.0 < rule.1 && rule.1 <= START + 2015)
        );
    }
}
