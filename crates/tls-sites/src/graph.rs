//! The instructions that a call of a function can run through, and where the stack is at each.
//!
//! Direct jumps are followed wherever they lead, so the cold part of a function and a function that
//! is jumped to at the end belong to it. Calls are not followed; one with nothing behind it does not
//! return.

use std::collections::{BTreeMap, VecDeque};

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    OpKind, Register,
};

/// Instructions of one function that are looked at.
const STEPS_LIMIT: usize = 4096;
/// Longest instruction, in bytes.
const INSTRUCTION_BYTES: usize = 15;

/// Reads code at an address and says how many bytes there were.
pub(super) type ReadCode<'read> = &'read dyn Fn(u64, &mut [u8]) -> usize;

/// Number of a general register as instructions encode it: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi,
/// r8 to r15.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegisterNumber(u8);

impl RegisterNumber {
    pub const RAX: Self = Self(0);
    pub const RCX: Self = Self(1);
    pub const RDX: Self = Self(2);
    pub const RBX: Self = Self(3);
    pub const RSP: Self = Self(4);
    pub const RBP: Self = Self(5);
    pub const RSI: Self = Self(6);
    pub const RDI: Self = Self(7);

    pub(super) fn of(register: Register) -> Option<Self> {
        let full = register.full_register();
        full.is_gpr64()
            .then(|| u8::try_from(full.number()).ok().map(Self))
            .flatten()
    }

    pub fn number(self) -> u8 {
        self.0
    }
}

/// Distances to the place of the return address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Depth {
    /// `rsp` and this is the address of the return address.
    stack: Option<i32>,
    /// The same for `rbp`.
    base: Option<i32>,
}

/// One instruction.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) instruction: Instruction,
    /// Behind it; none where it does not get there.
    pub(super) next: Option<usize>,
    /// Where it jumps.
    pub(super) branch: Option<usize>,
    /// What leads here.
    pub(super) from: Vec<usize>,
    /// Bytes from `rsp` to the return address, before the instruction; none when not known.
    pub(super) frame: Option<i32>,
    /// The same from `rbp`.
    pub(super) base: Option<i32>,
}

impl Step {
    pub(super) fn address(&self) -> u64 {
        self.instruction.ip()
    }

    /// Leaves the function with a value: `ret`, or a jump that cannot be followed.
    pub(super) fn is_return(&self) -> bool {
        self.instruction.flow_control() == FlowControl::Return
    }

    pub(super) fn is_unknown_jump(&self) -> bool {
        self.instruction.flow_control() == FlowControl::IndirectBranch
    }

    pub(super) fn is_call(&self) -> bool {
        matches!(
            self.instruction.flow_control(),
            FlowControl::Call | FlowControl::IndirectCall
        )
    }
}

/// See the module's description.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) steps: Vec<Step>,
    index: BTreeMap<u64, usize>,
    /// The function's own range.
    pub(super) start: u64,
    pub(super) end: u64,
    /// Not all could be followed: there are too many instructions, or bytes that are none.
    pub(super) is_cut: bool,
}

impl Graph {
    /// Follows the code of the function in `[start, end)`.
    pub(super) fn follow(start: u64, end: u64, read: ReadCode<'_>) -> Self {
        let mut graph = Self {
            steps: Vec::new(),
            index: BTreeMap::new(),
            start,
            end,
            is_cut: false,
        };
        let mut waiting = VecDeque::from([start]);
        while let Some(address) = waiting.pop_front() {
            if graph.index.contains_key(&address) {
                continue;
            }
            if graph.steps.len() >= STEPS_LIMIT {
                graph.is_cut = true;
                break;
            }
            let mut bytes = [0; INSTRUCTION_BYTES];
            let count = read(address, &mut bytes).min(INSTRUCTION_BYTES);
            let bytes = bytes.get(..count).unwrap_or_default();
            let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
            let instruction = decoder.decode();
            if instruction.is_invalid() {
                graph.is_cut = true;
                continue;
            }
            graph.index.insert(address, graph.steps.len());
            waiting.extend(graph.behind(&instruction));
            waiting.extend(target(&instruction));
            graph.steps.push(Step {
                instruction,
                next: None,
                branch: None,
                from: Vec::new(),
                frame: None,
                base: None,
            });
        }
        graph.link();
        graph.measure();
        graph
    }

    /// The address at which it goes on without a jump.
    fn behind(&self, instruction: &Instruction) -> Option<u64> {
        let goes_on = match instruction.flow_control() {
            FlowControl::Next | FlowControl::ConditionalBranch => {
                !matches!(instruction.mnemonic(), Mnemonic::Hlt | Mnemonic::Ud2)
            }
            FlowControl::Call | FlowControl::IndirectCall => true,
            FlowControl::UnconditionalBranch
            | FlowControl::IndirectBranch
            | FlowControl::Return
            | FlowControl::Interrupt
            | FlowControl::XbeginXabortXend
            | FlowControl::Exception => false,
        };
        let behind = instruction.next_ip();
        (goes_on && behind != self.end).then_some(behind)
    }

    fn link(&mut self) {
        for at in 0..self.steps.len() {
            let Some(step) = self.steps.get(at) else {
                break;
            };
            let next = self
                .behind(&step.instruction)
                .and_then(|address| self.index.get(&address).copied());
            let branch =
                target(&step.instruction).and_then(|address| self.index.get(&address).copied());
            if let Some(step) = self.steps.get_mut(at) {
                step.next = next;
                step.branch = branch;
            }
            for to in [next, branch].into_iter().flatten() {
                if let Some(step) = self.steps.get_mut(to) {
                    step.from.push(at);
                }
            }
        }
    }

    /// Follows the stack pointer. Compilers keep it the same on all ways to an instruction, so the
    /// first way decides.
    fn measure(&mut self) {
        let mut factory = InstructionInfoFactory::new();
        let mut known = vec![false; self.steps.len()];
        let begin = Depth {
            stack: Some(0),
            base: None,
        };
        let mut waiting = VecDeque::from([(0, begin)]);
        while let Some((at, depth)) = waiting.pop_front() {
            let (Some(step), Some(seen)) = (self.steps.get_mut(at), known.get_mut(at)) else {
                continue;
            };
            if std::mem::replace(seen, true) {
                continue;
            }
            step.frame = depth.stack;
            step.base = depth.base;
            let after = moved(&step.instruction, depth, &mut factory);
            for to in [step.next, step.branch].into_iter().flatten() {
                waiting.push_back((to, after));
            }
        }
    }

    pub(super) fn at(&self, address: u64) -> Option<usize> {
        self.index.get(&address).copied()
    }

    pub(super) fn step(&self, at: usize) -> Option<&Step> {
        self.steps.get(at)
    }

    /// Whether an instruction lies in the function's own range.
    pub(super) fn is_own(&self, step: &Step) -> bool {
        (self.start..self.end).contains(&step.address())
    }
}

/// Where a direct jump leads.
fn target(instruction: &Instruction) -> Option<u64> {
    let is_jump = matches!(
        instruction.flow_control(),
        FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
    );
    is_jump.then(|| instruction.near_branch_target())
}

/// What an instruction does to the two pointers.
fn moved(instruction: &Instruction, before: Depth, factory: &mut InstructionInfoFactory) -> Depth {
    let (first, second) = (instruction.op0_register(), instruction.op1_register());
    let Depth { stack, base } = before;
    let lost = Depth { stack: None, base };
    let less = |from: Option<i32>, by: i64| {
        let by = i32::try_from(by).ok()?;
        from?.checked_sub(by)
    };
    match instruction.mnemonic() {
        // What is called takes its own return address away again.
        Mnemonic::Call | Mnemonic::Ret => return before,
        Mnemonic::Leave => {
            return Depth {
                stack: less(base, 8),
                base: None,
            };
        }
        Mnemonic::Mov if first == Register::RBP && second == Register::RSP => {
            return Depth { stack, base: stack };
        }
        Mnemonic::Mov if first == Register::RSP && second == Register::RBP => {
            return Depth { stack: base, base };
        }
        Mnemonic::Add | Mnemonic::Sub if first == Register::RSP => {
            if !is_immediate(instruction) {
                return lost;
            }
            let bytes = instruction.immediate(1).cast_signed();
            let down = instruction.mnemonic() == Mnemonic::Sub;
            let by = if down { bytes.saturating_neg() } else { bytes };
            return Depth {
                stack: less(stack, by),
                base,
            };
        }
        Mnemonic::Lea if matches!(first, Register::RSP | Register::RBP) => {
            let by = instruction.memory_displacement64().cast_signed();
            let plain = instruction.memory_index() == Register::None;
            let value = match instruction.memory_base() {
                Register::RSP if plain => less(stack, by),
                Register::RBP if plain => less(base, by),
                _ => None,
            };
            return if first == Register::RSP {
                Depth { stack: value, base }
            } else {
                Depth { stack, base: value }
            };
        }
        _ => {}
    }
    let stack = match instruction.stack_pointer_increment() {
        0 if writes(instruction, RegisterNumber::RSP, factory) => None,
        by => less(stack, i64::from(by)),
    };
    let base = if writes(instruction, RegisterNumber::RBP, factory) {
        None
    } else {
        base
    };
    Depth { stack, base }
}

pub(super) fn is_immediate(instruction: &Instruction) -> bool {
    matches!(
        instruction.op1_kind(),
        OpKind::Immediate8
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32
            | OpKind::Immediate32to64
            | OpKind::Immediate64
    )
}

/// Whether an instruction changes a register, or may.
pub(super) fn writes(
    instruction: &Instruction,
    register: RegisterNumber,
    factory: &mut InstructionInfoFactory,
) -> bool {
    let info = factory.info(instruction);
    info.used_registers().iter().any(|used| {
        RegisterNumber::of(used.register()) == Some(register)
            && matches!(
                used.access(),
                OpAccess::Write
                    | OpAccess::CondWrite
                    | OpAccess::ReadWrite
                    | OpAccess::ReadCondWrite
            )
    })
}
