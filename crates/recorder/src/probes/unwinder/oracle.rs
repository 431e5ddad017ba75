//! An independent unwinder, to compare with: gimli over whole `.eh_frame` sections, every register
//! followed and every expression evaluated. It shares nothing with the tables but the capture.

use std::{
    collections::HashMap,
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
};

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, EvaluationResult, Expression,
    LittleEndian, Location, Register, RegisterRule, UnwindContext, UnwindExpression,
    UnwindSection as _, Value,
};
use profiler_common::unwind::{frame, state::REGISTERS, state::State};
use profiler_image::{
    elf_layout::Layout,
    maps::{self, Backing, Mapping},
    proc_dir::ProcDir,
    remote_mounts::{ProcessMounts, Served},
};
use profiler_sandbox::broker::{self, OwnPath};
use profiler_unwind::{CapturedStack, StackMemory as _};

type Slice<'bytes> = EndianSlice<'bytes, LittleEndian>;

/// Column of the return address: `rip`, or `x30`.
const RETURN: u16 = if cfg!(target_arch = "aarch64") {
    30
} else {
    16
};
const STACK: u16 = if cfg!(target_arch = "aarch64") { 31 } else { 7 };

/// Largest section that is read.
const SECTION_LIMIT: u64 = 64 << 20;

/// Frames that are walked.
const FRAMES: usize = 512;

/// What the walk found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Truth {
    /// Leaf first.
    pub(super) frames: Vec<u64>,
    /// Whether it reached the outermost frame; otherwise the frames are only the first ones.
    pub(super) whole: bool,
}

/// Sections of one file.
#[derive(Debug)]
struct Sections {
    segments: Vec<(u64, u64, u64)>,
    header: (u64, Vec<u8>),
    frames: (u64, Vec<u8>),
}

/// A mapping and the number of its file's sections.
type Mapped = (Mapping, Option<usize>);

/// Mappings of a process and the sections of its files.
#[derive(Debug, Default)]
pub(super) struct Oracle {
    processes: HashMap<(u32, u32), Vec<Mapped>>,
    files: Vec<Sections>,
    numbers: HashMap<(Vec<u8>, u64), Option<usize>>,
}

impl Oracle {
    /// Walks from the registers in `state`.
    pub(super) fn walk(
        &mut self,
        pid: u32,
        generation: u32,
        state: &State,
        stack: CapturedStack<'_>,
    ) -> Truth {
        let known = self.processes.get(&(pid, generation));
        if known.is_none_or(|known| !covers(known, state.pc)) {
            let mappings = self.read(pid);
            self.processes.insert((pid, generation), mappings);
        }
        let mappings = self.processes.get(&(pid, generation));
        let mappings = mappings.map_or(&[][..], Vec::as_slice);
        let mut machine = Machine {
            registers: [None; REGISTERS],
            pc: state.pc,
            interrupted: true,
            stack,
        };
        for (slot, value) in machine.registers.iter_mut().zip(state.registers) {
            *slot = Some(value);
        }
        machine.registers[usize::from(STACK)] = Some(state.sp);
        let mut frames = vec![state.pc & frame::ADDRESS_BITS];
        while frames.len() < FRAMES {
            match machine.leave(mappings, &self.files) {
                Some(true) => frames.push(machine.pc & frame::ADDRESS_BITS),
                Some(false) => {
                    return Truth {
                        frames,
                        whole: true,
                    };
                }
                None => break,
            }
        }
        Truth {
            frames,
            whole: false,
        }
    }

    fn read(&mut self, pid: u32) -> Vec<Mapped> {
        let mounts = ProcDir::open(pid).and_then(|process| ProcessMounts::read(process.handle()));
        let Ok(mounts) = mounts else {
            return Vec::new();
        };
        let mappings = broker::open(OwnPath::at(format!("/proc/{pid}/maps")))
            .and_then(maps::read_mappings)
            .unwrap_or_default();
        mappings
            .into_iter()
            .map(|mapping| {
                let file = match &mapping.backing {
                    Backing::File { path, inode } => {
                        let key = (path.clone(), *inode);
                        let known = self.numbers.get(&key).copied();
                        known.unwrap_or_else(|| {
                            if mounts.of_mapping(mapping.device, path) == Served::Elsewhere {
                                return None;
                            }
                            let (start, end) = (mapping.start, mapping.end);
                            let path = format!("/proc/{pid}/map_files/{start:x}-{end:x}");
                            let file = broker::open(OwnPath::at(path)).ok();
                            let number = file.and_then(|file| self.adopt(file));
                            self.numbers.insert(key, number);
                            number
                        })
                    }
                    Backing::Vdso | Backing::Anonymous { .. } => None,
                };
                (mapping, file)
            })
            .collect()
    }

    fn adopt(&mut self, file: File) -> Option<usize> {
        let layout = Layout::read(&file).ok()?;
        let section = |name: &str| {
            let section = layout.section(name)?;
            let mut bytes = Vec::new();
            let mut from = &file;
            from.seek(SeekFrom::Start(section.offset)).ok()?;
            let length = section.bytes.min(SECTION_LIMIT);
            from.take(length).read_to_end(&mut bytes).ok()?;
            Some((section.address, bytes))
        };
        let sections = Sections {
            header: section(".eh_frame_hdr")?,
            frames: section(".eh_frame")?,
            segments: layout
                .segments
                .iter()
                .map(|segment| (segment.offset, segment.address, segment.bytes))
                .collect(),
        };
        self.files.push(sections);
        Some(self.files.len() - 1)
    }
}

fn covers(mappings: &[Mapped], pc: u64) -> bool {
    let inside = |(mapping, _): &Mapped| (mapping.start..mapping.end).contains(&pc);
    mappings.iter().any(inside)
}

/// Registers by DWARF number; `None` is unknown.
struct Machine<'stack> {
    registers: [Option<u64>; REGISTERS],
    pc: u64,
    interrupted: bool,
    stack: CapturedStack<'stack>,
}

impl Machine<'_> {
    /// Goes to the caller; false at the outermost frame, `None` where nothing is known.
    fn leave(&mut self, mappings: &[Mapped], files: &[Sections]) -> Option<bool> {
        let pc = self.pc.wrapping_sub(u64::from(!self.interrupted));
        let (mapping, number) = mappings
            .iter()
            .find(|(mapping, _)| (mapping.start..mapping.end).contains(&pc))?;
        let sections = files.get((*number)?)?;
        let offset = pc - mapping.start + mapping.offset;
        let inside = |(from, _, bytes): &&(u64, u64, u64)| {
            offset.checked_sub(*from).is_some_and(|at| at < *bytes)
        };
        let (from, base, _) = sections.segments.iter().find(inside)?;
        let address = offset - from + base;
        let bases = BaseAddresses::default()
            .set_eh_frame_hdr(sections.header.0)
            .set_eh_frame(sections.frames.0);
        let header = EhFrameHdr::new(&sections.header.1, LittleEndian);
        let header = header.parse(&bases, 8).ok()?;
        let frames = EhFrame::new(&sections.frames.1, LittleEndian);
        let fde = header
            .table()?
            .fde_for_address(&frames, &bases, address, EhFrame::cie_from_offset)
            .ok()?;
        let mut context = UnwindContext::new();
        let row = fde
            .unwind_info_for_address(&frames, &bases, &mut context, address)
            .ok()?;
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                self.register(*register)?.wrapping_add_signed(*offset)
            }
            CfaRule::Expression(expression) => self.evaluate(&at(expression, &frames)?, None)?,
        };
        let mut next = self.registers;
        next[usize::from(STACK)] = Some(cfa);
        let mut return_address = None;
        for (register, rule) in row.registers() {
            let value = match rule {
                RegisterRule::Undefined => None,
                RegisterRule::SameValue => self.register(*register),
                RegisterRule::Offset(offset) => self.stack.word(cfa.wrapping_add_signed(*offset)),
                RegisterRule::ValOffset(offset) => Some(cfa.wrapping_add_signed(*offset)),
                RegisterRule::Register(other) => self.register(*other),
                RegisterRule::Expression(expression) => self
                    .evaluate(&at(expression, &frames)?, Some(cfa))
                    .and_then(|address| self.stack.word(address)),
                RegisterRule::ValExpression(expression) => {
                    self.evaluate(&at(expression, &frames)?, Some(cfa))
                }
                _ => return None,
            };
            if register.0 == RETURN {
                if matches!(rule, RegisterRule::Undefined) {
                    return Some(false);
                }
                return_address = Some(value?);
            }
            if let Some(slot) = next.get_mut(usize::from(register.0)) {
                *slot = value;
            }
        }
        let return_address = match return_address {
            Some(address) => address,
            None => self.register(Register(RETURN))?,
        };
        if return_address == 0 {
            return Some(false);
        }
        self.registers = next;
        self.pc = return_address;
        self.interrupted = fde.is_signal_trampoline();
        Some(true)
    }

    fn register(&self, register: Register) -> Option<u64> {
        self.registers.get(usize::from(register.0)).copied()?
    }

    fn evaluate(&self, expression: &Expression<Slice<'_>>, first: Option<u64>) -> Option<u64> {
        let encoding = gimli::Encoding {
            address_size: 8,
            format: gimli::Format::Dwarf32,
            version: 5,
        };
        let mut evaluation = expression.evaluation(encoding);
        evaluation.set_max_iterations(1000);
        if let Some(first) = first {
            evaluation.set_initial_value(first);
        }
        let mut result = evaluation.evaluate().ok()?;
        loop {
            result = match result {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = if register.0 == RETURN && RETURN == 16 {
                        self.pc
                    } else {
                        self.register(register)?
                    };
                    evaluation
                        .resume_with_register(Value::Generic(value))
                        .ok()?
                }
                EvaluationResult::RequiresMemory {
                    address, size: 8, ..
                } => {
                    let word = self.stack.word(address)?;
                    evaluation.resume_with_memory(Value::Generic(word)).ok()?
                }
                _ => return None,
            };
        }
        match evaluation.result().first()?.location {
            Location::Address { address } => Some(address),
            _ => None,
        }
    }
}

fn at<'bytes>(
    expression: &UnwindExpression<usize>,
    frames: &EhFrame<Slice<'bytes>>,
) -> Option<Expression<Slice<'bytes>>> {
    expression.get(frames).ok()
}
