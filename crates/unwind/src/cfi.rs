//! One function's description (an FDE of `.eh_frame`) as rows of rules.
//!
//! A description and the CIE that it refers to are read alone and put side by side into a small
//! section of our own, so that nothing else of the file is ever in memory.

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameOffset, LittleEndian, Register, RegisterRule,
    UnwindContext, UnwindSection as _, UnwindTableRow, Vendor,
};
use profiler_common::unwind::rule::{Rule, cfa, fp, ra};

use super::{
    expressions::{self, CfaExpression},
    machine::Machine,
    rules::of_kind,
    source::Window,
};

/// Longest CIE that is read; real ones have some dozens of bytes.
const CIE_BYTES: u32 = 4 * 1024;
/// Longest FDE that is read. The longest of Envoy's has 50 KiB.
const FDE_BYTES: u32 = 1 << 20;
/// Rows of one function. Beyond, its description is not supported.
const FUNCTION_ROWS: usize = 1 << 16;

/// A function with its rows in ascending order; rows of one rule are merged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) start: u64,
    /// First address behind it.
    pub(crate) end: u64,
    pub(crate) rows: Vec<(u64, Rule)>,
    /// Rows before merging.
    pub(crate) raw_rows: u64,
    /// Rows, or the rest of the function, that cannot be followed.
    pub(crate) unsupported: u64,
}

/// Where `.eh_frame` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    /// In the file.
    pub(crate) offset: u64,
    pub(crate) address: u64,
    /// As far as known; descriptions are not looked for beyond.
    pub(crate) bytes: u64,
}

/// Decodes descriptions of one file, one after the other.
#[derive(Debug)]
pub(crate) struct Decoder<'file> {
    window: Window<'file>,
    cies: Window<'file>,
    section: Section,
    machine: Machine,
    /// A CIE, then an FDE that refers to it.
    buffer: Vec<u8>,
    /// Offset of the CIE in the buffer, and where the FDE begins behind it.
    cie: Option<(u64, usize)>,
    context: UnwindContext<usize>,
    /// Bytes of descriptions read so far.
    pub(crate) read_bytes: u64,
}

impl<'file> Decoder<'file> {
    pub(crate) fn new(file: &'file std::fs::File, section: Section, machine: Machine) -> Self {
        Self {
            window: Window::new(file),
            cies: Window::new(file),
            section,
            machine,
            buffer: Vec::new(),
            cie: None,
            context: UnwindContext::new(),
            read_bytes: 0,
        }
    }

    /// The range of addresses that the FDE at an address in `.eh_frame` describes.
    pub(crate) fn range(&mut self, address: u64) -> Option<(u64, u64)> {
        let (at, bases) = self.load(address)?;
        let section = section_of(&self.buffer, self.machine);
        let fde = section
            .fde_from_offset(&bases, EhFrameOffset(at), EhFrame::cie_from_offset)
            .ok()?;
        Some((fde.initial_address(), fde.end_address()))
    }

    /// The function that the FDE at an address in `.eh_frame` describes.
    pub(crate) fn function(&mut self, address: u64) -> Option<Function> {
        let (at, bases) = self.load(address)?;
        let section = section_of(&self.buffer, self.machine);
        let fde = section
            .fde_from_offset(&bases, EhFrameOffset(at), EhFrame::cie_from_offset)
            .ok()?;
        let (start, end) = (fde.initial_address(), fde.end_address());
        if end <= start {
            return None;
        }
        let mut function = Function {
            start,
            end,
            ..Function::default()
        };
        if fde.is_signal_trampoline() {
            function.rows.push((start, of_kind(cfa::SIGNAL)));
            function.raw_rows = 1;
            return Some(function);
        }
        let known = fde.cie().return_address_register()
            == Register(u16::from(self.machine.return_address()));
        let mut described_to = start;
        let mut complete = false;
        if known && let Ok(mut rows) = fde.rows(&section, &bases, &mut self.context) {
            while function.rows.len() < FUNCTION_ROWS {
                let Ok(row) = rows.next_row() else {
                    break;
                };
                let Some(row) = row else {
                    complete = true;
                    break;
                };
                let (from, to) = (row.start_address().max(start), row.end_address().min(end));
                if from >= to {
                    continue;
                }
                function.raw_rows += 1;
                let rule = rule_of(row, &section, self.machine);
                function.unsupported += u64::from(rule.cfa_kind == cfa::UNSUPPORTED);
                described_to = to;
                push(&mut function.rows, from, rule);
            }
        }
        if !complete {
            function.unsupported += 1;
            push(&mut function.rows, described_to, of_kind(cfa::UNSUPPORTED));
        }
        Some(function)
    }

    /// Puts the FDE and its CIE into the buffer; returns the place of the FDE in it.
    fn load(&mut self, address: u64) -> Option<(usize, BaseAddresses)> {
        let from_start = address.checked_sub(self.section.address)?;
        if from_start.checked_add(8)? > self.section.bytes {
            return None;
        }
        let offset = self.section.offset.checked_add(from_start)?;
        let length = self.window.word32(offset)?;
        if !(8..=FDE_BYTES).contains(&length) {
            return None;
        }
        let to_cie = u64::from(self.window.word32(offset.checked_add(4)?)?);
        if to_cie == 0 {
            return None;
        }
        let cie = offset.checked_add(4)?.checked_sub(to_cie)?;
        if cie < self.section.offset {
            return None;
        }
        let at = self.load_cie(cie)?;
        let bytes = self
            .window
            .bytes(offset, usize::try_from(length).ok()?.checked_add(4)?)?;
        self.read_bytes += bytes.len() as u64;
        self.buffer.extend_from_slice(bytes);
        // In the buffer the CIE is at its beginning.
        let to_cie = u32::try_from(at + 4).ok()?;
        self.buffer
            .get_mut(at + 4..at + 8)?
            .copy_from_slice(&to_cie.to_le_bytes());
        let bases = BaseAddresses::default().set_eh_frame(address.wrapping_sub(at as u64));
        Some((at, bases))
    }

    fn load_cie(&mut self, offset: u64) -> Option<usize> {
        if let Some((known, end)) = self.cie
            && known == offset
        {
            self.buffer.truncate(end);
            return Some(end);
        }
        self.cie = None;
        let length = self.cies.word32(offset)?;
        if !(8..=CIE_BYTES).contains(&length) {
            return None;
        }
        let bytes = self
            .cies
            .bytes(offset, usize::try_from(length).ok()?.checked_add(4)?)?;
        self.buffer.clear();
        self.buffer.extend_from_slice(bytes);
        self.cie = Some((offset, self.buffer.len()));
        Some(self.buffer.len())
    }
}

type Bytes<'bytes> = gimli::EndianSlice<'bytes, LittleEndian>;

fn section_of(bytes: &[u8], machine: Machine) -> EhFrame<Bytes<'_>> {
    let mut section = EhFrame::new(bytes, LittleEndian);
    section.set_address_size(8);
    if machine == Machine::Aarch64 {
        section.set_vendor(Vendor::AArch64);
    }
    section
}

fn push(rows: &mut Vec<(u64, Rule)>, address: u64, rule: Rule) {
    if rows.last().is_none_or(|(_, last)| *last != rule) {
        rows.push((address, rule));
    }
}

/// The rule of a row; the unsupported one when it does not fit.
fn rule_of(row: &UnwindTableRow<usize>, section: &EhFrame<Bytes<'_>>, machine: Machine) -> Rule {
    try_rule_of(row, section, machine).unwrap_or(of_kind(cfa::UNSUPPORTED))
}

fn try_rule_of(
    row: &UnwindTableRow<usize>,
    section: &EhFrame<Bytes<'_>>,
    machine: Machine,
) -> Option<Rule> {
    // Where the caller's stack pointer is not the CFA, as in `longjmp`.
    match row.register(Register(u16::from(machine.stack_pointer()))) {
        None | Some(RegisterRule::ValOffset(0)) => {}
        Some(_) => return None,
    }
    let mut rule = Rule::default();
    match row.register(Register(u16::from(machine.return_address()))) {
        Some(RegisterRule::Undefined) => return Some(of_kind(cfa::OUTERMOST)),
        Some(RegisterRule::Offset(offset)) => {
            rule.ra_kind = ra::AT_CFA;
            rule.ra_offset = i16::try_from(offset).ok()?;
        }
        Some(RegisterRule::Register(register)) => {
            rule.ra_kind = ra::REGISTER;
            rule.ra_offset = i16::from(general(register)?);
        }
        None | Some(RegisterRule::SameValue) if machine == Machine::Aarch64 => {
            rule.ra_kind = ra::LINK;
        }
        _ => return None,
    }
    match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => {
            let register = general(*register)?;
            rule.cfa_offset = i32::try_from(*offset).ok()?;
            rule.cfa_kind = if register == machine.stack_pointer() {
                cfa::SP
            } else if register == machine.frame_pointer() {
                cfa::FP
            } else {
                rule.cfa_register = register;
                cfa::REGISTER
            };
        }
        CfaRule::Expression(expression) => {
            let expression = expression.get(section).ok()?;
            set_cfa_expression(&mut rule, expressions::cfa(expression.0.slice())?, machine)?;
        }
    }
    let pointer = Register(u16::from(machine.frame_pointer()));
    match row.register(pointer) {
        None | Some(RegisterRule::SameValue) => rule.fp_kind = fp::SAME,
        Some(RegisterRule::Undefined) => rule.fp_kind = fp::UNDEFINED,
        Some(RegisterRule::Offset(offset)) => {
            rule.fp_kind = fp::AT_CFA;
            rule.fp_offset = i32::try_from(offset).ok()?;
        }
        Some(RegisterRule::Register(register)) => {
            rule.fp_kind = fp::REGISTER;
            rule.fp_offset = i32::from(general(register)?);
        }
        Some(RegisterRule::Expression(expression)) => {
            let expression = expression.get(section).ok()?;
            let (register, offset) = expressions::place(expression.0.slice())?;
            rule.fp_kind = if register == machine.frame_pointer() {
                fp::AT_FP
            } else if register == machine.stack_pointer() {
                fp::AT_SP
            } else {
                return None;
            };
            rule.fp_offset = i32::try_from(offset).ok()?;
        }
        Some(_) => return None,
    }
    Some(rule)
}

fn set_cfa_expression(rule: &mut Rule, expression: CfaExpression, machine: Machine) -> Option<()> {
    match expression {
        CfaExpression::Deref {
            register,
            offset,
            add,
        } => {
            rule.cfa_kind = if register == machine.stack_pointer() {
                cfa::DEREF_SP
            } else if register == machine.frame_pointer() {
                cfa::DEREF_FP
            } else {
                rule.cfa_register = register;
                cfa::DEREF_REGISTER
            };
            rule.cfa_offset = i32::try_from(offset).ok()?;
            rule.cfa_add = i16::try_from(add).ok()?;
        }
        CfaExpression::DerefScaled {
            register,
            offset,
            index,
            add,
        } => {
            if register != machine.stack_pointer() {
                return None;
            }
            rule.cfa_kind = cfa::DEREF_SP_SCALED;
            rule.cfa_register = index;
            rule.cfa_offset = i32::try_from(offset).ok()?;
            rule.cfa_add = i16::try_from(add).ok()?;
        }
        CfaExpression::Plt { pushed_at } => {
            rule.cfa_kind = cfa::PLT;
            rule.cfa_offset = i32::from(pushed_at);
        }
    }
    Some(())
}

/// A register whose value a sample has.
fn general(register: Register) -> Option<u8> {
    u8::try_from(register.0).ok().filter(|number| *number < 32)
}
