//! The truth: gimli evaluates the full rules of a row on the synthetic machine.

use gimli::{
    CfaRule, Encoding, EndianSlice, Evaluation, EvaluationResult, Expression, Format, LittleEndian,
    Location, Register, RegisterRule, UnwindExpression, UnwindSection, UnwindTableRow, Value,
};
use profiler_common::unwind::state::State;

use super::synthetic::Synthetic;

pub(crate) type Bytes<'bytes> = EndianSlice<'bytes, LittleEndian>;

/// Numbers of a machine's registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    pub(crate) stack_pointer: u8,
    pub(crate) frame_pointer: u8,
    pub(crate) return_address: u8,
    /// The return address is a register of its own (aarch64).
    pub(crate) has_link: bool,
    pub(crate) pc: Option<u8>,
}

/// The frame of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Truth {
    Caller {
        pc: u64,
        sp: u64,
        fp: u64,
    },
    Outermost,
    /// A register is asked for that a calling frame does not have any more.
    RegisterLost,
    /// Not even gimli can.
    Unknown,
}

/// The frame that is left, and the machine's memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'parts> {
    pub(crate) state: &'parts State,
    pub(crate) memory: Synthetic<'parts>,
    pub(crate) numbers: Numbers,
}

impl Frame<'_> {
    fn register(&self, number: u16) -> Result<u64, Truth> {
        if Some(number) == self.numbers.pc.map(u16::from) {
            return Ok(self.state.pc);
        }
        if number == u16::from(self.numbers.stack_pointer) {
            return Ok(self.state.sp);
        }
        if number == u16::from(self.numbers.frame_pointer) {
            return Ok(self.state.fp);
        }
        if self.state.interrupted == 0 {
            return Err(Truth::RegisterLost);
        }
        let value = self.state.registers.get(usize::from(number));
        value.copied().ok_or(Truth::Unknown)
    }
}

/// The caller's frame by a row.
pub(crate) fn caller<'bytes, Section>(
    row: &UnwindTableRow<usize>,
    section: &Section,
    frame: &Frame<'_>,
) -> Truth
where
    Section: UnwindSection<Bytes<'bytes>>,
{
    try_caller(row, section, frame).unwrap_or_else(|truth| truth)
}

fn try_caller<'bytes, Section>(
    row: &UnwindTableRow<usize>,
    section: &Section,
    frame: &Frame<'_>,
) -> Result<Truth, Truth>
where
    Section: UnwindSection<Bytes<'bytes>>,
{
    let numbers = frame.numbers;
    let return_rule = row.register(Register(u16::from(numbers.return_address)));
    if return_rule == Some(RegisterRule::Undefined) {
        return Ok(Truth::Outermost);
    }
    let cfa = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => {
            frame.register(register.0)?.wrapping_add_signed(*offset)
        }
        CfaRule::Expression(expression) => evaluate(expression, section, frame, None)?,
    };
    let pc = match return_rule {
        None | Some(RegisterRule::SameValue) if numbers.has_link => {
            frame.register(u16::from(numbers.return_address))?
        }
        None => return Err(Truth::Unknown),
        Some(rule) => register(&rule, cfa, 0, section, frame)?,
    };
    let pointer_rule = row.register(Register(u16::from(numbers.frame_pointer)));
    let fp = match pointer_rule {
        None => frame.state.fp,
        Some(RegisterRule::Undefined) => 0,
        Some(rule) => register(&rule, cfa, frame.state.fp, section, frame)?,
    };
    // A signal frame says where the stack pointer was; everywhere else it was the CFA.
    let sp = match row.register(Register(u16::from(numbers.stack_pointer))) {
        None => cfa,
        Some(rule) => register(&rule, cfa, cfa, section, frame)?,
    };
    Ok(Truth::Caller { pc, sp, fp })
}

/// The value of a register in the caller's frame.
fn register<'bytes, Section>(
    rule: &RegisterRule<usize>,
    cfa: u64,
    same: u64,
    section: &Section,
    frame: &Frame<'_>,
) -> Result<u64, Truth>
where
    Section: UnwindSection<Bytes<'bytes>>,
{
    match rule {
        RegisterRule::SameValue => Ok(same),
        RegisterRule::Offset(offset) => Ok(frame.memory.read(cfa.wrapping_add_signed(*offset))),
        RegisterRule::ValOffset(offset) => Ok(cfa.wrapping_add_signed(*offset)),
        RegisterRule::Register(register) => frame.register(register.0),
        RegisterRule::Expression(expression) => {
            let place = evaluate(expression, section, frame, Some(cfa))?;
            Ok(frame.memory.read(place))
        }
        RegisterRule::ValExpression(expression) => evaluate(expression, section, frame, Some(cfa)),
        _ => Err(Truth::Unknown),
    }
}

fn evaluate<'bytes, Section>(
    expression: &UnwindExpression<usize>,
    section: &Section,
    frame: &Frame<'_>,
    initial: Option<u64>,
) -> Result<u64, Truth>
where
    Section: UnwindSection<Bytes<'bytes>>,
{
    let unknown = |_| Truth::Unknown;
    let expression: Expression<Bytes<'bytes>> = expression.get(section).map_err(unknown)?;
    let encoding = Encoding {
        address_size: 8,
        format: Format::Dwarf32,
        version: 4,
    };
    let mut evaluation: Evaluation<Bytes<'bytes>> = expression.evaluation(encoding);
    if let Some(value) = initial {
        evaluation.set_initial_value(value);
    }
    let mut result = evaluation.evaluate().map_err(unknown)?;
    loop {
        result = match result {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresMemory { address, .. } => {
                evaluation.resume_with_memory(Value::Generic(frame.memory.read(address)))
            }
            EvaluationResult::RequiresRegister { register, .. } => {
                let value = frame.register(register.0)?;
                evaluation.resume_with_register(Value::Generic(value))
            }
            _ => return Err(Truth::Unknown),
        }
        .map_err(unknown)?;
    }
    match evaluation.result().first().map(|piece| piece.location) {
        Some(Location::Address { address }) => Ok(address),
        _ => Err(Truth::Unknown),
    }
}
