//! Sites in code made for the purpose.

use super::{
    arguments::entry_site,
    call::Convention,
    graph::Graph,
    results::return_sites,
    site::{SiteClass, ValuePlace},
};

const START: u64 = 0x1000;

fn graph(code: &[u8]) -> Graph {
    let read = |address: u64, buffer: &mut [u8]| {
        let at = usize::try_from(address.wrapping_sub(START)).unwrap_or(usize::MAX);
        let rest = code.get(at..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        count
    };
    Graph::follow(START, START + code.len() as u64, &read)
}

/// Offset, class, places of session, buffer and length, and the distance to the return address.
fn check_entry(code: &[u8], expected: (u64, SiteClass, [ValuePlace; 3], Option<u32>)) {
    let found = entry_site(&graph(code), Convention::Int).unwrap();
    let places = [found.session, found.buffer, found.length];
    let site = found.site;
    let found = (site.address - START, site.class, places, site.frame_bytes);
    assert_eq!(found, expected);
}

fn register(number: u8) -> ValuePlace {
    let all = [
        super::RegisterNumber::RDX,
        super::RegisterNumber::RBX,
        super::RegisterNumber::RSI,
        super::RegisterNumber::RDI,
    ];
    ValuePlace::Register(all.into_iter().find(|one| one.number() == number).unwrap())
}

fn intact() -> [ValuePlace; 3] {
    [register(7), register(6), register(2)]
}

#[test]
fn a_push_at_the_entry_is_taken() {
    check_entry(&[0x55, 0xc3], (0, SiteClass::Push, intact(), Some(0)));
}

#[test]
fn the_first_cheap_instruction_is_taken() {
    // sub rsp, 0x18; test edx, edx; js +1; nop; ret
    let code = [0x48, 0x83, 0xec, 0x18, 0x85, 0xd2, 0x78, 0x01, 0x90, 0xc3];
    check_entry(&code, (6, SiteClass::Jump, intact(), Some(0x18)));
    // endbr64; push r15
    let code = [0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0x57, 0xc3];
    check_entry(&code, (4, SiteClass::Push, intact(), Some(0)));
    // mov eax, 1; call +0
    let code = [0xb8, 1, 0, 0, 0, 0xe8, 0, 0, 0, 0, 0xc3];
    check_entry(&code, (5, SiteClass::Call, intact(), Some(0)));
}

#[test]
fn arguments_are_followed_to_other_registers_and_to_the_stack() {
    // sub rsp, 0x28; mov [rsp + 8], rdi; mov ebx, edx; xor edi, edi; xor edx, edx; call +0
    let code = [
        0x48, 0x83, 0xec, 0x28, 0x48, 0x89, 0x7c, 0x24, 0x08, 0x89, 0xd3, 0x31, 0xff, 0x31, 0xd2,
        0xe8, 0, 0, 0, 0, 0xc3,
    ];
    let places = [ValuePlace::Stack(1), register(6), register(3)];
    check_entry(&code, (15, SiteClass::Call, places, Some(0x28)));
}

#[test]
fn a_lost_argument_leaves_the_entry() {
    // xor esi, esi; call +0: the buffer is gone.
    let code = [0x31, 0xf6, 0xe8, 0, 0, 0, 0, 0xc3];
    check_entry(&code, (0, SiteClass::Stepped, intact(), Some(0)));
    // mov esi, esi keeps half of an address.
    let code = [0x89, 0xf6, 0xe8, 0, 0, 0, 0, 0xc3];
    check_entry(&code, (0, SiteClass::Stepped, intact(), Some(0)));
}

#[test]
fn a_site_that_a_loop_comes_back_to_is_not_taken() {
    // inc eax; nop; test eax, eax; js -5 (to the nop); ret
    let code = [0xff, 0xc0, 0x90, 0x85, 0xc0, 0x78, 0xfb, 0xc3];
    check_entry(&code, (0, SiteClass::Stepped, intact(), Some(0)));
}

#[test]
fn prefixed_and_long_instructions_are_not_cheap() {
    // A five-byte nop, which old kernels step over; bnd jmp.
    let code = [0x0f, 0x1f, 0x44, 0x00, 0x00, 0xf2, 0xe9, 0, 0, 0, 0, 0xc3];
    check_entry(&code, (0, SiteClass::Stepped, intact(), Some(0)));
}

/// Offset, class, register and distance to the return address of each site.
fn check_returns(code: &[u8], expected: &[(u64, SiteClass, u8, Option<u32>)]) {
    let found: Vec<_> = return_sites(&graph(code), Convention::Int)
        .iter()
        .map(|one| {
            (
                one.site.address - START,
                one.site.class,
                one.result.number(),
                one.site.frame_bytes,
            )
        })
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn a_jump_behind_the_call_is_taken() {
    // push rax; call +0; test rbx, rbx; jne +2; pop rdx; ret; hlt
    let code = [
        0x50, 0xe8, 0, 0, 0, 0, 0x48, 0x85, 0xdb, 0x75, 0x02, 0x5a, 0xc3, 0xf4,
    ];
    check_returns(&code, &[(9, SiteClass::Jump, 0, Some(8))]);
}

#[test]
fn without_a_cheap_instruction_it_is_the_returns() {
    // call +0; test eax, eax; js +1; ret; ret
    let code = [0xe8, 0, 0, 0, 0, 0x85, 0xc0, 0x78, 0x01, 0xc3, 0xc3];
    // The jump itself holds the result on both ways.
    check_returns(&code, &[(7, SiteClass::Jump, 0, Some(0))]);
    // call +0; mov eax, [rsp]; ret
    let code = [0xe8, 0, 0, 0, 0, 0x8b, 0x04, 0x24, 0xc3];
    check_returns(&code, &[(8, SiteClass::Stepped, 0, Some(0))]);
}

#[test]
fn ways_that_moved_nothing_need_no_site() {
    // call +0; test eax, eax; jle L; mov ebx, eax; jmp M; L: mov ebx, -1; M: mov eax, ebx; ret
    let code = [
        0xe8, 0, 0, 0, 0, 0x85, 0xc0, 0x7e, 0x04, 0x89, 0xc3, 0xeb, 0x05, 0xbb, 0xff, 0xff, 0xff,
        0xff, 0x89, 0xd8, 0xc3,
    ];
    check_returns(&code, &[(11, SiteClass::Jump, 3, Some(0))]);
}

#[test]
fn a_jump_whose_ways_return_different_things_is_no_site() {
    // call +0; test ebx, ebx; je L; mov eax, [rsp]; L: ret
    let code = [
        0xe8, 0, 0, 0, 0, 0x85, 0xdb, 0x74, 0x03, 0x8b, 0x04, 0x24, 0xc3,
    ];
    check_returns(&code, &[(12, SiteClass::Stepped, 0, Some(0))]);
}

#[test]
fn jumps_that_cannot_be_followed_leave_no_sites() {
    // jmp rax
    check_returns(&[0xff, 0xe0], &[]);
    check_returns(&[], &[]);
    // An instruction that is none.
    check_returns(&[0x06, 0xc3], &[]);
}

#[test]
fn any_bytes_do_no_harm() {
    let mut state = 1_u32;
    for _ in 0..3_000 {
        let code: Vec<u8> = (0..64)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state.to_le_bytes()[3]
            })
            .collect();
        let graph = graph(&code);
        for convention in [Convention::Int, Convention::MovedByPointer, Convention::Go] {
            entry_site(&graph, convention);
            return_sites(&graph, convention);
        }
    }
}
