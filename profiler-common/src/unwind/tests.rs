//! Steps over stacks and tables written by hand.

extern crate std;

use std::{cell::RefCell, collections::HashMap, vec::Vec};

use super::{
    aarch64::Aarch64,
    mapping::{MAPPING_FRAME_POINTERS, MAX_MAPPINGS, Mapping, Mappings, NO_START},
    rule::{Rule, cfa, fp, ra},
    search::{last_offset_at_most, last_row_at_most, last_start_at_most},
    state::{Memory, State, Tables},
    step::{self, step},
    table::{BLOCK_ROWS, NO_ROW, PAGE_BLOCKS, PageEntry, PageKey, RowBlock, row},
    x86_64::X86_64,
};

#[derive(Default)]
struct Fake {
    words: HashMap<u64, u64>,
    bytes: HashMap<u64, u8>,
    rules: Vec<Rule>,
    rows: Vec<u32>,
    flags: u32,
}

const CODE: u64 = 0x10_0000;

struct Loaded {
    mappings: Mappings,
    entry: PageEntry,
    block: RowBlock,
    rules: Vec<Rule>,
}

impl Memory for Fake {
    fn word(&self, address: u64) -> Option<u64> {
        self.words.get(&address).copied()
    }

    fn byte(&self, address: u64) -> Option<u8> {
        self.bytes.get(&address).copied()
    }
}

impl Tables for Loaded {
    fn mappings(&self, slot: u32) -> Option<&Mappings> {
        (slot == 0).then_some(&self.mappings)
    }

    fn page(&self, key: &PageKey) -> Option<&PageEntry> {
        (*key == PageKey { file: 7, page: 1 }).then_some(&self.entry)
    }

    fn block(&self, index: u32) -> Option<&RowBlock> {
        (index == 3).then_some(&self.block)
    }

    fn rule(&self, index: u32) -> Option<&Rule> {
        self.rules.get(index as usize)
    }
}

impl Fake {
    /// One mapping of 128 KiB at `CODE`, its first page of rows missing; addresses in the file
    /// begin at 0.
    fn load(&self) -> Loaded {
        let mut mappings = Mappings {
            starts: [NO_START; MAX_MAPPINGS],
            mappings: [Mapping::default(); MAX_MAPPINGS],
        };
        mappings.starts[0] = 0;
        mappings.starts[1] = CODE;
        mappings.mappings[1] = Mapping {
            end: CODE + 0x2_0000,
            bias: CODE,
            file: 7,
            flags: self.flags,
        };
        let mut entry = PageEntry {
            blocks: [0; PAGE_BLOCKS],
            starts: [u16::MAX; PAGE_BLOCKS],
        };
        entry.blocks[0] = 3;
        entry.starts[0] = 0;
        let mut rows = [NO_ROW; BLOCK_ROWS];
        rows[..self.rows.len()].copy_from_slice(&self.rows);
        Loaded {
            mappings,
            entry,
            block: RowBlock { rows },
            rules: self.rules.clone(),
        }
    }

    fn one_rule(rule: Rule) -> Self {
        Self {
            rules: std::vec![rule],
            rows: std::vec![row(0, 0)],
            ..Self::default()
        }
    }

    fn step(&self, state: &mut State) -> u32 {
        step::<X86_64, _, _>(self, &self.load(), state)
    }
}

const PAGE: u64 = CODE + 0x1_0000;

fn at(pc: u64, sp: u64, fp: u64) -> State {
    State {
        pc,
        sp,
        fp,
        ..State::default()
    }
}

fn sp_rule(offset: i32) -> Rule {
    Rule {
        cfa_kind: cfa::SP,
        cfa_offset: offset,
        ra_offset: -8,
        ..Rule::default()
    }
}

#[test]
fn searches_find_the_last_key_that_is_not_above() {
    let keys = [0_u32, 5, 5, 9, u32::MAX, u32::MAX, u32::MAX, u32::MAX];
    for (key, expected) in [(0, 0), (4, 0), (5, 2), (8, 2), (9, 3), (0xffff_fffe, 3)] {
        assert_eq!(last_row_at_most(&keys, key), expected, "{key}");
    }
    let starts = [0_u64, 1 << 40, NO_START, NO_START];
    assert_eq!(last_start_at_most(&starts, (1 << 40) - 1), 0);
    assert_eq!(last_start_at_most(&starts, 1 << 55), 1);
    assert_eq!(
        last_offset_at_most(&[0_u16, 100, u16::MAX, u16::MAX], 99),
        0
    );
}

#[test]
fn a_frame_addressed_by_the_stack_pointer_is_left() {
    let mut fake = Fake::one_rule(sp_rule(24));
    fake.words.insert(0x7010, CODE + 0x40);
    let mut state = at(PAGE + 5, 0x7000, 0x1234);
    assert_eq!(fake.step(&mut state), step::CONTINUE);
    assert_eq!(
        (state.pc, state.sp, state.fp),
        (CODE + 0x40, 0x7018, 0x1234)
    );
    assert_eq!(state.interrupted, 0);
}

#[test]
fn every_place_of_a_function_with_a_frame_pointer_is_left() {
    let mut fake = Fake::one_rule(Rule {
        cfa_kind: cfa::FP_FUNCTION,
        ..Rule::default()
    });
    fake.rows = std::vec![row(0x100, 0)];
    fake.rules.push(Rule::default());
    fake.rows.insert(0, row(0, 1));
    // Outside: the return address is on top. Pushed: one word above. Inside: above the frame pointer.
    fake.words.extend([
        (0x7000, 0x111),
        (0x7008, 0x222),
        (0x7080, 0x7100),
        (0x7088, 0x333),
    ]);
    fake.bytes
        .extend([(PAGE + 0x120, 0x90), (PAGE + 0x130, 0xc3)]);
    // Jumps: a tail call, and one inside the function.
    fake.bytes.extend([
        (PAGE + 0x13f, 0x5d),
        (PAGE + 0x140, 0xe9),
        (PAGE + 0x14f, 0x5d),
        (PAGE + 0x150, 0xff),
        (PAGE + 0x15f, 0x90),
        (PAGE + 0x160, 0xe9),
    ]);
    for (offset, pc, sp) in [
        (0x100, 0x111, 0x7008),
        (0x101, 0x222, 0x7010),
        (0x104, 0x333, 0x7090),
        (0x120, 0x333, 0x7090),
        (0x130, 0x111, 0x7008),
        (0x140, 0x111, 0x7008),
        (0x150, 0x111, 0x7008),
        (0x160, 0x333, 0x7090),
    ] {
        let mut state = at(PAGE + offset, 0x7000, 0x7080);
        assert_eq!(fake.step(&mut state), step::CONTINUE, "{offset:#x}");
        assert_eq!((state.pc, state.sp), (pc, sp), "{offset:#x}");
    }
}

#[test]
fn the_byte_before_a_return_address_chooses_the_row() {
    let mut fake = Fake::one_rule(sp_rule(8));
    fake.rules.push(Rule {
        cfa_kind: cfa::OUTERMOST,
        ..Rule::default()
    });
    fake.rows.push(row(0x10, 1));
    fake.words.insert(0x7000, CODE);
    let mut state = at(PAGE + 0x10, 0x7000, 0);
    assert_eq!(fake.step(&mut state), step::COMPLETE);
    state.interrupted = 0;
    assert_eq!(fake.step(&mut state), step::CONTINUE);
}

#[test]
fn what_cannot_be_left_says_why() {
    let fake = Fake::one_rule(sp_rule(24));
    let cases = [
        (at(0x10, 0x7000, 0), step::NO_MAPPING),
        (at(u64::MAX, 0x7000, 0), step::NO_MAPPING),
        (at(PAGE, 0x7000, 0), step::STACK_UNREADABLE),
        (at(CODE + 3, 0x7000, 0), step::TABLE_MISSING),
        (
            State {
                slot: 1,
                ..at(PAGE, 0x7000, 0)
            },
            step::PROCESS_UNKNOWN,
        ),
    ];
    for (mut state, outcome) in cases {
        let before = (state.pc, state.sp, state.fp);
        assert_eq!(fake.step(&mut state), outcome);
        assert_eq!((state.pc, state.sp, state.fp), before);
        if outcome == step::TABLE_MISSING {
            assert_eq!(state.missing, PageKey { file: 7, page: 0 });
        }
    }
    let mut backwards = Fake::one_rule(sp_rule(-8));
    backwards.words.insert(0x6ff0, CODE);
    assert_eq!(
        backwards.step(&mut at(PAGE, 0x7000, 0)),
        step::STACK_NOT_GROWING
    );
    let register = Fake::one_rule(Rule {
        cfa_kind: cfa::REGISTER,
        ..Rule::default()
    });
    let mut state = at(PAGE + 1, 0x7000, 0);
    state.interrupted = 0;
    assert_eq!(register.step(&mut state), step::REGISTER_UNKNOWN);
}

#[test]
fn code_without_rows_follows_frame_pointers_to_the_end() {
    let mut fake = Fake {
        flags: MAPPING_FRAME_POINTERS,
        ..Fake::default()
    };
    fake.words.extend([(0x7020, 0), (0x7028, PAGE + 7)]);
    let mut state = at(PAGE, 0x7000, 0x7020);
    assert_eq!(fake.step(&mut state), step::CONTINUE);
    assert_eq!((state.pc, state.fp), (PAGE + 7, 0));
    assert_eq!(fake.step(&mut state), step::COMPLETE);
    assert_eq!(
        fake.step(&mut at(PAGE, 0x7000, 0x9000)),
        step::FRAME_POINTER_BROKEN
    );
}

/// The caller of interrupted code without rows whose instructions are `code` from `before` bytes
/// before the interrupted one on. The stack holds frames of 0x1000 (direct caller) and 0x2000.
fn caller_of_code_without_rows(code: &[u8], before: u64, pushed: &[u64]) -> (u64, u64) {
    let mut fake = Fake {
        flags: MAPPING_FRAME_POINTERS,
        ..Fake::default()
    };
    for (byte, address) in code.iter().zip(PAGE - before..) {
        fake.bytes.insert(address, *byte);
    }
    for (word, address) in pushed.iter().zip((0x7000..).step_by(8)) {
        fake.words.insert(address, *word);
    }
    fake.words
        .extend([(0x7100, 0x7200), (0x7108, PAGE + 0x2000)]);
    let mut state = at(PAGE, 0x7000, 0x7100);
    assert_eq!(fake.step(&mut state), step::CONTINUE);
    (state.pc, state.fp)
}

#[test]
fn code_without_rows_has_its_direct_caller_at_both_of_its_ends() {
    let (direct, fp) = (PAGE + 0x1000, 0x7100);
    let first = [0x55, 0x48, 0x89, 0xe5];
    let outside: &[&[u8]] = &[&first, &[0x55, 0x48, 0x8b, 0xec], &[0xc3], &[0xc2, 8, 0]];
    for code in outside {
        let caller = caller_of_code_without_rows(code, 0, &[direct]);
        assert_eq!(caller, (direct, fp), "{code:x?}");
    }
    // As V8 11.3 begins and ends optimised functions.
    let begin = [
        0x48, 0x8b, 0x59, 0xf8, 0xf6, 0x43, 0x35, 1, 0x0f, 0x85, 1, 2, 3, 4, 0x55, 0x48, 0x89, 0xe5,
    ];
    let end = [0x5d, 0x48, 0x83, 0xf9, 2, 0x7f, 3, 0xc2, 0x10, 0];
    for (code, places) in [(&begin[..], [0, 4, 8, 14]), (&end[..], [1, 5, 7, 7])] {
        for before in places {
            let caller = caller_of_code_without_rows(code, before, &[direct]);
            assert_eq!(caller, (direct, fp), "{before} in {code:x?}");
        }
    }
    let caller = caller_of_code_without_rows(&first, 1, &[fp, direct]);
    assert_eq!(caller, (direct, fp), "behind the push");
    // A push, and a move, of something else: the frame is complete.
    let inside: &[&[u8]] = &[
        &[0x55, 0x53],
        &[0x48, 0x89, 0xe0],
        &[0x48, 0x83, 0xf9, 2],
        &[0x0f, 0x85, 1, 2, 3, 4, 0x90],
        &[0x5d, 0xc3],
        &[0x90],
    ];
    for code in inside {
        let caller = caller_of_code_without_rows(code, 0, &[direct]);
        assert_eq!(caller, (PAGE + 0x2000, 0x7200), "{code:x?}");
    }
}

#[test]
fn a_signal_frame_gives_the_interrupted_registers() {
    let mut fake = Fake::one_rule(Rule {
        cfa_kind: cfa::SIGNAL,
        ..Rule::default()
    });
    for index in 0..17 {
        fake.words.insert(0x7000 + 40 + 8 * index, 100 + index);
    }
    let mut state = at(PAGE, 0x7000, 0);
    state.interrupted = 0;
    state.pc += 1;
    assert_eq!(fake.step(&mut state), step::CONTINUE);
    assert_eq!(
        (state.pc, state.sp, state.fp, state.interrupted),
        (116, 115, 110, 1)
    );
    assert_eq!(state.registers[0], 113, "rax");
}

#[test]
fn plt_entries_have_one_word_more_after_their_push() {
    let mut fake = Fake::one_rule(Rule {
        cfa_kind: cfa::PLT,
        cfa_offset: 11,
        ra_offset: -8,
        ..Rule::default()
    });
    fake.words.extend([(0x7000, 1), (0x7008, 2)]);
    for (offset, pc) in [(10, 1), (11, 2)] {
        let mut state = at(PAGE + offset, 0x7000, 0);
        assert_eq!(fake.step(&mut state), step::CONTINUE);
        assert_eq!(state.pc, pc);
    }
}

#[test]
fn the_link_register_counts_in_the_interrupted_frame_only() {
    let fake = Fake::one_rule(Rule {
        cfa_kind: cfa::SP,
        ra_kind: ra::LINK,
        fp_kind: fp::SAME,
        ..Rule::default()
    });
    let mut state = at(PAGE + 8, 0x7000, 0);
    state.link = 0x00ab_0000_0000_0000 | PAGE;
    assert_eq!(
        step::<Aarch64, _, _>(&fake, &fake.load(), &mut state),
        step::CONTINUE
    );
    assert_eq!(state.pc, PAGE);
    state.pc += 4;
    assert_eq!(
        step::<Aarch64, _, _>(&fake, &fake.load(), &mut state),
        step::REGISTER_UNKNOWN
    );
}

/// Tables that keep what searches found.
struct Remembering {
    tables: Loaded,
    known: RefCell<HashMap<u64, u32>>,
}

impl Tables for Remembering {
    fn mappings(&self, slot: u32) -> Option<&Mappings> {
        self.tables.mappings(slot)
    }

    fn page(&self, key: &PageKey) -> Option<&PageEntry> {
        self.tables.page(key)
    }

    fn block(&self, index: u32) -> Option<&RowBlock> {
        self.tables.block(index)
    }

    fn rule(&self, index: u32) -> Option<&Rule> {
        self.tables.rule(index)
    }

    fn remembered(&self, pc: u64) -> Option<u32> {
        self.known.borrow().get(&pc).copied()
    }

    fn remember(&self, pc: u64, rule: u32) {
        self.known.borrow_mut().insert(pc, rule);
    }
}

#[test]
fn callers_are_remembered_and_interrupted_frames_are_not() {
    let mut fake = Fake {
        rules: std::vec![sp_rule(16), sp_rule(32)],
        rows: std::vec![row(0, 0), row(0x10, 1)],
        ..Fake::default()
    };
    fake.words.insert(0x1018, 0x42);
    fake.words.insert(0x1008, 0x43);
    let tables = Remembering {
        tables: fake.load(),
        known: RefCell::default(),
    };
    let caller = State {
        interrupted: 0,
        ..at(PAGE + 0x11, 0x1000, 0)
    };
    let mut first = caller;
    assert_eq!(
        step::<X86_64, _, _>(&fake, &tables, &mut first),
        step::CONTINUE
    );
    assert_eq!((first.pc, first.sp), (0x42, 0x1020));
    assert_eq!(*tables.known.borrow(), HashMap::from([(PAGE + 0x10, 1)]));
    // The second time nothing is searched: there are no mappings any more.
    let nowhere = Remembering {
        tables: Loaded {
            mappings: Mappings {
                starts: [NO_START; MAX_MAPPINGS],
                mappings: [Mapping::default(); MAX_MAPPINGS],
            },
            ..tables.tables
        },
        known: tables.known,
    };
    let mut second = caller;
    assert_eq!(
        step::<X86_64, _, _>(&fake, &nowhere, &mut second),
        step::CONTINUE
    );
    assert_eq!((second.pc, second.sp), (first.pc, first.sp));
    let mut interrupted = at(PAGE + 0x10, 0x1000, 0);
    assert_eq!(
        step::<X86_64, _, _>(&fake, &nowhere, &mut interrupted),
        step::NO_MAPPING
    );
}

#[test]
fn rules_that_depend_on_the_place_are_searched_each_time() {
    let mut fake = Fake::one_rule(Rule {
        cfa_kind: cfa::PLT,
        cfa_offset: 11,
        ra_offset: -8,
        ..Rule::default()
    });
    fake.words.insert(0x1000, 0x42);
    let tables = Remembering {
        tables: fake.load(),
        known: RefCell::default(),
    };
    let mut state = State {
        interrupted: 0,
        ..at(PAGE + 0x11, 0x1000, 0)
    };
    assert_eq!(
        step::<X86_64, _, _>(&fake, &tables, &mut state),
        step::CONTINUE
    );
    assert!(tables.known.borrow().is_empty());
}
