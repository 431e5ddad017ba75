//! Where a function's arguments are read for the least price: the first instruction that the kernel
//! carries out itself, that every call passes, and at which all arguments are still somewhere.

use std::collections::BTreeMap;

use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register};

use super::{
    call::Convention,
    graph::{Graph, RegisterNumber, Step, writes},
    site::{EntrySite, Site, SiteClass, ValuePlace},
};

/// Instructions from the entry on that are looked at.
const HEAD_LIMIT: usize = 64;
const REGISTERS: usize = 16;
const ARGUMENTS: usize = 4;

/// Number of an argument: session, buffer, length, address of the moved length.
type Argument = u8;
const LENGTH: Argument = 2;

/// Which arguments are where.
#[derive(Debug)]
struct Located {
    registers: [Option<Argument>; REGISTERS],
    /// By the distance below the return address, in bytes.
    stack: BTreeMap<i32, Argument>,
    /// How many arguments there are.
    count: usize,
    /// The length is an `int`: the upper half of its register says nothing.
    is_narrow: bool,
}

/// The site for the arguments of a function.
pub(super) fn entry_site(graph: &Graph, convention: Convention) -> Option<EntrySite> {
    let mut factory = InstructionInfoFactory::new();
    let mut located = Located::at_entry(convention);
    let first = graph.at(graph.start)?;
    let mut at = first;
    let mut entry = None;
    for _ in 0..HEAD_LIMIT {
        let step = graph.step(at)?;
        let class = SiteClass::of(&step.instruction);
        // Other code must not lead between the entry and the site, nor may a loop. A jump back to
        // the entry begins anew.
        let is_straight = at == first || step.from.len() == 1;
        if !is_straight {
            break;
        }
        if at == first || class.is_cheap() {
            let found = located.site(step, class);
            if class.is_cheap() && found.is_some() {
                return found;
            }
            entry = entry.or(found);
        }
        if step.instruction.flow_control() != FlowControl::Next {
            break;
        }
        located.pass(step, &mut factory);
        let Some(next) = step.next else { break };
        at = next;
    }
    entry
}

impl Located {
    fn at_entry(convention: Convention) -> Self {
        let mut registers = [None; REGISTERS];
        let order = convention.arguments();
        for (argument, register) in order.iter().enumerate().take(ARGUMENTS) {
            if let Some(place) = registers.get_mut(usize::from(register.number())) {
                *place = u8::try_from(argument).ok();
            }
        }
        Self {
            registers,
            stack: BTreeMap::new(),
            count: order.len(),
            is_narrow: convention.length_is_int(),
        }
    }

    fn site(&self, step: &Step, class: SiteClass) -> Option<EntrySite> {
        let place = |argument| self.place(argument, step.frame);
        let session = place(0)?;
        // Some have no others, or find the length with the buffer.
        let buffer = if self.count > 1 { place(1)? } else { session };
        let length = if self.count > 2 {
            place(LENGTH)?
        } else {
            buffer
        };
        Some(EntrySite {
            site: Site {
                address: step.address(),
                class,
                frame_bytes: step.frame.and_then(|bytes| u32::try_from(bytes).ok()),
            },
            session,
            buffer,
            length,
            moved: if self.count > 3 {
                Some(place(3)?)
            } else {
                None
            },
        })
    }

    fn place(&self, argument: Argument, frame: Option<i32>) -> Option<ValuePlace> {
        let held = |held: &Option<Argument>| *held == Some(argument);
        if let Some(number) = self.registers.iter().position(held) {
            return register(number).map(ValuePlace::Register);
        }
        let (below, _) = self.stack.iter().find(|(_, held)| **held == argument)?;
        let from_pointer = frame?.checked_sub(*below)?;
        let word = u16::try_from(from_pointer / 8).ok()?;
        (from_pointer % 8 == 0).then_some(ValuePlace::Stack(word))
    }

    fn pass(&mut self, step: &Step, factory: &mut InstructionInfoFactory) {
        let instruction = &step.instruction;
        let (to, from) = (instruction.op0_register(), instruction.op1_register());
        let to_number = RegisterNumber::of(to).map(|number| usize::from(number.number()));
        let copied = self.copied(instruction, from);
        if instruction.op0_kind() == OpKind::Memory {
            if let Some(below) = stored_below(step) {
                self.stack
                    .retain(|other, _| (i64::from(*other) - i64::from(below)).abs() >= 8);
                if let Some(argument) = copied {
                    self.stack.insert(below, argument);
                }
            }
            return;
        }
        for number in 0..REGISTERS {
            if let Some(name) = register(number)
                && writes(instruction, name, factory)
                && let Some(place) = self.registers.get_mut(number)
            {
                *place = if Some(number) == to_number {
                    copied
                } else {
                    None
                };
            }
        }
    }

    /// The argument that an instruction copies as it is.
    fn copied(&self, instruction: &Instruction, from: Register) -> Option<Argument> {
        if instruction.op1_kind() != OpKind::Register {
            return None;
        }
        let number = RegisterNumber::of(from)?.number();
        let argument = self.registers.get(usize::from(number)).copied()??;
        let is_whole = match (instruction.mnemonic(), from.size()) {
            (Mnemonic::Mov, 8) => true,
            (Mnemonic::Mov | Mnemonic::Movsxd, 4) => self.is_narrow && argument == LENGTH,
            _ => false,
        };
        is_whole.then_some(argument)
    }
}

fn register(number: usize) -> Option<RegisterNumber> {
    const ALL: [Register; REGISTERS] = [
        Register::RAX,
        Register::RCX,
        Register::RDX,
        Register::RBX,
        Register::RSP,
        Register::RBP,
        Register::RSI,
        Register::RDI,
        Register::R8,
        Register::R9,
        Register::R10,
        Register::R11,
        Register::R12,
        Register::R13,
        Register::R14,
        Register::R15,
    ];
    RegisterNumber::of(*ALL.get(number)?)
}

/// Where on the stack an instruction writes, in bytes below the return address.
fn stored_below(step: &Step) -> Option<i32> {
    let instruction = &step.instruction;
    if instruction.memory_index() != Register::None {
        return None;
    }
    let base = match instruction.memory_base() {
        Register::RSP => step.frame?,
        Register::RBP => step.base?,
        _ => return None,
    };
    let displacement = i32::try_from(instruction.memory_displacement64().cast_signed()).ok()?;
    base.checked_sub(displacement)
}
