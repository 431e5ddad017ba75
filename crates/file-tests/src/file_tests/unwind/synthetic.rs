//! A machine with made-up registers and memory: every register and every word of memory has a value
//! of its own, so that two rules which give the same frame are the same rule.

use profiler_common::unwind::state::{Memory, REGISTERS, State};

/// The stack pointer; everything else lies above, as frames of callers do.
const STACK: u64 = 0x7f00_0000_1000;

/// Memory whose words follow from their addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Synthetic<'code> {
    pub(crate) code: &'code dyn Code,
    /// Address and value of the word that the instruction before has just pushed or popped.
    pub(crate) known: Option<(u64, u64)>,
}

impl Synthetic<'_> {
    pub(crate) fn read(&self, address: u64) -> u64 {
        match self.known {
            Some((known, value)) if known == address => value,
            Some(_) | None => 0x7f80_0000_0000 | (mix(address) & 0x7f_ffff_fff8),
        }
    }
}

/// Reads code by its address in the file.
pub(crate) trait Code: std::fmt::Debug {
    fn byte(&self, address: u64) -> Option<u8>;
}

fn mix(value: u64) -> u64 {
    let mut value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

impl Memory for Synthetic<'_> {
    fn word(&self, address: u64) -> Option<u64> {
        Some(self.read(address))
    }

    fn byte(&self, address: u64) -> Option<u8> {
        self.code.byte(address)
    }
}

/// The registers of a frame at `pc`. `frame_pointer` and `stack_pointer` are DWARF numbers.
pub(crate) fn state(pc: u64, interrupted: bool, frame_pointer: u8, stack_pointer: u8) -> State {
    let mut registers = [0; REGISTERS];
    for (number, register) in registers.iter_mut().enumerate() {
        *register = STACK + 0x10_0000 * (number as u64 + 1) + 8 * (mix(number as u64) & 0xff);
    }
    let fp = STACK + 0x123_4568;
    registers[usize::from(stack_pointer)] = STACK;
    registers[usize::from(frame_pointer)] = fp;
    State {
        pc,
        sp: STACK,
        fp,
        link: registers[30],
        interrupted: u32::from(interrupted),
        registers,
        ..State::default()
    }
}
