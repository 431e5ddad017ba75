//! Decoded instructions: what each does to the stack, and where the code goes on.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    OpKind, Register,
};

use super::state::Effect;

/// Reads bytes at an address of the file, code or not; false where it has none.
pub(crate) type ReadFile<'read> = &'read dyn Fn(u64, &mut [u8]) -> bool;

/// Code without gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CodeRange {
    pub(crate) start: u64,
    pub(crate) bytes: Vec<u8>,
}

/// Where the code goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// Behind the instruction; calls as well.
    Next,
    Branch(u64),
    Jump(u64),
    JumpIndirect,
    Return,
    /// Nowhere: an instruction that ends the program, or bytes that are none.
    Stop,
}

/// What is kept of an instruction.
#[derive(Clone, Copy, Debug)]
struct Decoded {
    address: u64,
    length: u8,
    kind: Kind,
    effect: Effect,
    flow: Flow,
}

/// What else matters of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Ordinary,
    Padding,
    /// To an address, or to one that is not known.
    Call(Option<u64>),
    /// `lea` of an address.
    Address(u64),
    /// `cmp` with a number.
    Compare(u64),
    /// `ja` or `jbe`: the bound of a jump table.
    Bound,
    /// A jump through a table of addresses.
    Table(u64),
}

/// A table of jump targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JumpTable {
    start: u64,
    form: TableForm,
    pub(super) entries: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TableForm {
    /// 32 bits, from the table's beginning.
    Distances,
    /// 64 bits.
    Addresses,
}

impl JumpTable {
    pub(super) fn target(&self, number: u64, read: ReadFile<'_>) -> Option<u64> {
        match self.form {
            TableForm::Distances => {
                let mut word = [0; 4];
                let at = self.start.checked_add(number.checked_mul(4)?)?;
                let distance = read(at, &mut word).then(|| i32::from_le_bytes(word))?;
                Some(self.start.wrapping_add_signed(i64::from(distance)))
            }
            TableForm::Addresses => {
                let mut word = [0; 8];
                let at = self.start.checked_add(number.checked_mul(8)?)?;
                read(at, &mut word).then(|| u64::from_le_bytes(word))
            }
        }
    }
}

/// The instructions of some ranges, in ascending order.
pub(super) struct Instructions {
    all: Vec<Decoded>,
    ranges: Vec<(u64, u64)>,
}

impl Instructions {
    /// Decodes from the beginning of each range to its end. Ranges are in ascending order. None when
    /// there are more than `limit` instructions.
    pub(super) fn decode(ranges: &[CodeRange], limit: usize) -> Option<Self> {
        let mut all = Vec::new();
        let mut factory = InstructionInfoFactory::new();
        let mut instruction = Instruction::default();
        for range in ranges {
            let mut decoder = Decoder::with_ip(64, &range.bytes, range.start, DecoderOptions::NONE);
            while decoder.can_decode() {
                decoder.decode_out(&mut instruction);
                if all.len() == limit {
                    return None;
                }
                all.push(decoded(&instruction, &mut factory));
            }
        }
        let ranges = ranges
            .iter()
            .map(|range| (range.start, range.start + range.bytes.len() as u64));
        Some(Self {
            all,
            ranges: ranges.collect(),
        })
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn flow(&self, index: usize) -> Flow {
        self.all[index].flow
    }

    pub(super) fn effect(&self, index: usize) -> Effect {
        self.all[index].effect
    }

    /// First address, and the first one behind.
    pub(super) fn range(&self, index: usize) -> (u64, u64) {
        let Decoded {
            address, length, ..
        } = self.all[index];
        (address, address + u64::from(length))
    }

    /// The instruction that begins at an address.
    pub(super) fn at(&self, address: u64) -> Option<usize> {
        let found = self
            .all
            .binary_search_by_key(&address, |decoded| decoded.address);
        found.ok()
    }

    /// Whether the address is in a range.
    pub(super) fn contains(&self, address: u64) -> bool {
        let after = self.ranges.partition_point(|range| range.0 <= address);
        after > 0 && address < self.ranges[after - 1].1
    }

    /// The instruction right behind.
    pub(super) fn next(&self, index: usize) -> Option<usize> {
        let next = self.all.get(index + 1)?;
        (next.address == self.range(index).1).then_some(index + 1)
    }

    pub(super) fn call_targets(&self) -> impl Iterator<Item = u64> + '_ {
        self.all.iter().filter_map(|decoded| match decoded.kind {
            Kind::Call(target) => target,
            _ => None,
        })
    }

    pub(super) fn taken_addresses(&self) -> impl Iterator<Item = u64> + '_ {
        self.all.iter().filter_map(|decoded| match decoded.kind {
            Kind::Address(address) => Some(address),
            _ => None,
        })
    }

    pub(super) fn is_padding(&self, index: usize) -> bool {
        self.all[index].kind == Kind::Padding
    }

    /// Whether a function may begin here: nothing runs into it from before, or what does is a call
    /// that may not return. Padding between them does not count.
    pub(super) fn may_begin(&self, index: usize) -> bool {
        if self.is_padding(index) {
            return false;
        }
        let Some(before) = self.before_padding(index) else {
            return true;
        };
        let Decoded { kind, flow, .. } = self.all[before];
        matches!(kind, Kind::Call(_))
            || matches!(
                flow,
                Flow::Jump(_) | Flow::JumpIndirect | Flow::Return | Flow::Stop
            )
    }

    /// The last instruction before another that is not padding, without a gap in between.
    fn before_padding(&self, index: usize) -> Option<usize> {
        let mut at = index;
        loop {
            let before = at.checked_sub(1)?;
            if self.next(before) != Some(at) {
                return None;
            }
            if !self.is_padding(before) {
                return Some(before);
            }
            at = before;
        }
    }

    /// Whether `to` is what comes next behind a call, or behind padding that follows a call.
    pub(super) fn is_behind_call(&self, from: usize, to: usize) -> bool {
        from.checked_add(1) == Some(to)
            && self.flow(from) == Flow::Next
            && self
                .before_padding(to)
                .is_some_and(|before| matches!(self.all[before].kind, Kind::Call(_)))
    }

    /// The table of an indirect jump, from the instructions before it: a bound that is compared with,
    /// a jump for what exceeds it, and an address, which may come before these.
    pub(super) fn jump_table(&self, index: usize, look_back: usize) -> Option<JumpTable> {
        let (mut start, form) = match self.all[index].kind {
            Kind::Table(start) => (Some(start), TableForm::Addresses),
            _ => (None, TableForm::Distances),
        };
        let mut bounded = false;
        let mut entries = None;
        for at in (index.saturating_sub(look_back)..index).rev() {
            match self.all[at].kind {
                Kind::Address(address) if start.is_none() => start = Some(address),
                Kind::Bound => bounded = true,
                Kind::Compare(last) if bounded && entries.is_none() => {
                    entries = last.checked_add(1);
                }
                _ => {}
            }
        }
        Some(JumpTable {
            start: start?,
            form,
            entries: entries?,
        })
    }
}

fn decoded(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> Decoded {
    Decoded {
        address: instruction.ip(),
        // At most 15.
        length: u8::try_from(instruction.len().max(1)).unwrap_or(1),
        kind: kind(instruction),
        effect: effect(instruction, factory),
        flow: flow(instruction),
    }
}

fn flow(instruction: &Instruction) -> Flow {
    if instruction.is_invalid() || matches!(instruction.mnemonic(), Mnemonic::Hlt | Mnemonic::Ud2) {
        return Flow::Stop;
    }
    match instruction.flow_control() {
        FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall => Flow::Next,
        FlowControl::UnconditionalBranch => Flow::Jump(instruction.near_branch_target()),
        FlowControl::ConditionalBranch => Flow::Branch(instruction.near_branch_target()),
        FlowControl::IndirectBranch => Flow::JumpIndirect,
        FlowControl::Return => Flow::Return,
        FlowControl::Interrupt | FlowControl::XbeginXabortXend | FlowControl::Exception => {
            Flow::Stop
        }
    }
}

fn kind(instruction: &Instruction) -> Kind {
    match instruction.mnemonic() {
        Mnemonic::Nop | Mnemonic::Int3 => Kind::Padding,
        Mnemonic::Call => Kind::Call(
            (instruction.flow_control() == FlowControl::Call)
                .then(|| instruction.near_branch_target()),
        ),
        Mnemonic::Lea if instruction.is_ip_rel_memory_operand() => {
            Kind::Address(instruction.ip_rel_memory_address())
        }
        Mnemonic::Cmp if is_immediate(instruction) => Kind::Compare(instruction.immediate(1)),
        Mnemonic::Ja | Mnemonic::Jbe => Kind::Bound,
        Mnemonic::Jmp
            if instruction.op0_kind() == OpKind::Memory
                && instruction.memory_base() == Register::None
                && instruction.memory_index_scale() == 8 =>
        {
            Kind::Table(instruction.memory_displacement64())
        }
        // `xchg ax, ax` and the like come as `nop`; a linker may also fill with `lea`s, which do
        // nothing that matters.
        _ => Kind::Ordinary,
    }
}

fn effect(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> Effect {
    let (first, second) = (instruction.op0_register(), instruction.op1_register());
    let offset = i32::try_from(instruction.memory_displacement64().cast_signed()).ok();
    let based_on = |base: Register| {
        instruction.memory_base() == base && instruction.memory_index() == Register::None
    };
    let to_register = instruction.op0_kind() == OpKind::Register;
    match instruction.mnemonic() {
        Mnemonic::Push if first == Register::RBP => return Effect::Push,
        Mnemonic::Pop if first == Register::RBP => return Effect::Pop,
        Mnemonic::Leave => return Effect::Leave,
        Mnemonic::Sub | Mnemonic::Add if first == Register::RSP && is_immediate(instruction) => {
            let bytes = i32::try_from(instruction.immediate(1).cast_signed());
            let Ok(bytes) = bytes else {
                return Effect::LoseStack;
            };
            let moved = if instruction.mnemonic() == Mnemonic::Sub {
                bytes.checked_neg()
            } else {
                Some(bytes)
            };
            return moved.map_or(Effect::LoseStack, Effect::Move);
        }
        Mnemonic::Lea | Mnemonic::Mov if to_register => {
            let address = instruction.mnemonic() == Mnemonic::Lea;
            let memory = instruction.op1_kind() == OpKind::Memory;
            match (first, offset) {
                (Register::RSP, Some(offset)) if address && based_on(Register::RSP) => {
                    return Effect::Move(offset);
                }
                (Register::RSP, Some(offset)) if address && based_on(Register::RBP) => {
                    return Effect::StackFromFrame(offset);
                }
                (Register::RBP, Some(offset)) if address && based_on(Register::RSP) => {
                    return Effect::FrameFromStack(offset);
                }
                (Register::RBP, Some(offset)) if memory && based_on(Register::RSP) => {
                    return Effect::Load(offset);
                }
                (Register::RSP, _) if !memory && second == Register::RBP => {
                    return Effect::StackFromFrame(0);
                }
                (Register::RBP, _) if !memory && second == Register::RSP => {
                    return Effect::FrameFromStack(0);
                }
                _ => {}
            }
        }
        Mnemonic::Mov if second == Register::RBP && based_on(Register::RSP) => {
            if let Some(offset) = offset {
                return Effect::Save(offset);
            }
        }
        Mnemonic::Call | Mnemonic::Ret => return Effect::None,
        _ => {}
    }
    let writes = |register: Register, factory: &mut InstructionInfoFactory| {
        let info = factory.info(instruction);
        info.used_registers().iter().any(|used| {
            used.register().full_register() == register
                && !matches!(used.access(), OpAccess::Read | OpAccess::CondRead)
        })
    };
    let moved = instruction.stack_pointer_increment();
    if writes(Register::RBP, factory) {
        return if moved == 0 && !writes(Register::RSP, factory) {
            Effect::LoseFrame
        } else {
            Effect::LoseStack
        };
    }
    if first == Register::RSP && to_register && instruction.mnemonic() == Mnemonic::Pop {
        return Effect::LoseStack;
    }
    if moved != 0 {
        return Effect::Move(moved);
    }
    if writes(Register::RSP, factory) {
        return Effect::LoseStack;
    }
    Effect::None
}

fn is_immediate(instruction: &Instruction) -> bool {
    matches!(
        instruction.op1_kind(),
        OpKind::Immediate8
            | OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64
    )
}
