//! Compares the step with gimli at every instruction of a file's described functions.

use std::{collections::BTreeMap, fmt, fs, path::Path};

use gimli::{
    BaseAddresses, CieOrFde, DebugFrame, EhFrame, FrameDescriptionEntry, LittleEndian,
    UnwindContext, UnwindSection,
};
use iced_x86::{Code as Operation, Decoder, DecoderOptions, Instruction, Mnemonic, Register};
use object::{Object as _, ObjectSection as _, ObjectSegment as _};
use profiler_common::unwind::{
    aarch64::{self, Aarch64},
    state::State,
    step::{self, step},
    x86_64::{self, X86_64},
};
use profiler_unwind::Machine;

use super::{
    dwarf::{Bytes, Frame, Numbers, Truth, caller},
    rows::Rows,
    synthetic::{Code, Synthetic, state},
};

/// How an answer differs from gimli's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// Another frame. This is never accepted.
    WrongFrame,
    /// We say that nothing is known.
    NoRow,
    /// We say that we cannot follow the description.
    Unsupported,
    /// We ask for a register that a calling frame does not have; gimli's rule does not.
    RegisterUnknown,
    /// Any other outcome.
    OtherOutcome,
}

/// What came out for a file.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) name: String,
    pub(crate) functions: u64,
    /// Rows of gimli's tables.
    pub(crate) rows_raw: u64,
    pub(crate) rows_ours: usize,
    pub(crate) pages: usize,
    pub(crate) blocks: usize,
    pub(crate) rules: usize,
    /// Interrupted instructions and return addresses that were compared.
    pub(crate) instructions: u64,
    pub(crate) returns: u64,
    /// Places where the truth itself needs a register that is lost; we must say so too.
    pub(crate) lost: u64,
    /// Places in functions that Go marks as the outermost of their stacks; DWARF does not say so.
    pub(crate) go_outermost: u64,
    /// Returns before which the description forgets that the frame was left, and we do not.
    pub(crate) corrected: u64,
    /// Rows with an exception, and exceptions by class.
    pub(crate) exception_rows: u64,
    pub(crate) exceptions: BTreeMap<Class, u64>,
    examples: Vec<String>,
}

impl Report {
    pub(crate) fn exceptions(&self) -> u64 {
        self.exceptions.values().sum()
    }

    pub(crate) fn count(&self, class: Class) -> u64 {
        self.exceptions.get(&class).copied().unwrap_or(0)
    }

    fn exception(&mut self, class: Class, example: impl FnOnce() -> String) {
        let count = self.exceptions.entry(class).or_default();
        *count += 1;
        if *count <= 5 {
            self.examples.push(example());
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "oracle {}: functions {}, rows raw {}, ours {} in {} pages, {} blocks, {} rules; \
             compared {} instructions, {} return addresses; lost registers {}, Go outermost {}, wrong descriptions of returns {}; exceptions in {} rows: {} {:?}",
            self.name,
            self.functions,
            self.rows_raw,
            self.rows_ours,
            self.pages,
            self.blocks,
            self.rules,
            self.instructions,
            self.returns,
            self.lost,
            self.go_outermost,
            self.corrected,
            self.exception_rows,
            self.exceptions(),
            self.exceptions,
        )?;
        for example in &self.examples {
            write!(out, "\n  {example}")?;
        }
        Ok(())
    }
}

/// Where gimli's descriptions come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    EhFrame,
    DebugFrame,
}

pub(crate) fn compare(path: &Path, source: Source) -> Report {
    let rows = Rows::of(path);
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let object = object::File::parse(&*bytes).expect("an ELF file");
    let mut comparison = Comparison {
        code: Image::of(&object),
        report: Report {
            name: path.display().to_string(),
            rows_ours: rows.count,
            pages: rows.pages(),
            blocks: rows.blocks(),
            rules: rows.rules().len(),
            ..Report::default()
        },
        rows: &rows,
        source,
    };
    assert_eq!(rows.beyond_limit, 0, "rows that do not fit in their page");
    let section = |name| {
        let section = object.section_by_name(name);
        section.unwrap_or_else(|| panic!("{} has no {name}", path.display()))
    };
    let mut bases = BaseAddresses::default();
    if let Some(text) = object.section_by_name(".text") {
        bases = bases.set_text(text.address());
    }
    match source {
        Source::EhFrame => {
            let section = section(".eh_frame");
            let bases = bases.set_eh_frame(section.address());
            let frames = EhFrame::new(section.data().expect("its bytes"), LittleEndian);
            comparison.all(&frames, &bases, EhFrame::cie_from_offset);
        }
        Source::DebugFrame => {
            let section = section(".debug_frame");
            let data = section.uncompressed_data().expect("its bytes");
            let mut frames = DebugFrame::new(&data, LittleEndian);
            frames.set_address_size(8);
            comparison.all(&frames, &bases, DebugFrame::cie_from_offset);
        }
    }
    comparison.report
}

/// What a file puts into memory, by address.
#[derive(Debug)]
struct Image<'bytes> {
    segments: Vec<(u64, &'bytes [u8])>,
}

impl<'bytes> Image<'bytes> {
    fn of(object: &object::File<'bytes>) -> Self {
        let segments = object.segments();
        let segments =
            segments.filter_map(|segment| Some((segment.address(), segment.data().ok()?)));
        Self {
            segments: segments.collect(),
        }
    }

    fn at(&self, address: u64, length: usize) -> Option<&'bytes [u8]> {
        self.segments.iter().find_map(|(start, bytes)| {
            let at = usize::try_from(address.checked_sub(*start)?).ok()?;
            bytes.get(at..at.checked_add(length)?)
        })
    }
}

impl Code for Image<'_> {
    fn byte(&self, address: u64) -> Option<u8> {
        Some(self.at(address, 1)?[0])
    }
}

struct Comparison<'rows, 'bytes> {
    rows: &'rows Rows,
    code: Image<'bytes>,
    source: Source,
    report: Report,
}

/// A place in a function.
#[derive(Clone, Copy, Debug)]
struct Place {
    pc: u64,
    interrupted: bool,
    before: Before,
    /// The instruction is a plain `ret`.
    is_return: bool,
}

/// What the instruction before did to the frame pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Pushed,
    Popped,
    /// A call, in a function that has set up its frame pointer before (only seen in Go code).
    CalledWithFrame,
    Nothing,
}

impl Comparison<'_, '_> {
    fn all<'section, Section>(
        &mut self,
        frames: &Section,
        bases: &BaseAddresses,
        get_cie: impl FnMut(
            &Section,
            &BaseAddresses,
            Section::Offset,
        ) -> gimli::Result<gimli::CommonInformationEntry<Bytes<'section>>>
        + Copy,
    ) where
        Section: UnwindSection<Bytes<'section>>,
    {
        let mut context = UnwindContext::new();
        let mut entries = frames.entries(bases);
        while let Some(entry) = entries.next().expect("a sound section") {
            let CieOrFde::Fde(partial) = entry else {
                continue;
            };
            let fde = partial.parse(get_cie).expect("a sound description");
            // Functions that the linker threw away are described at address 0.
            if fde.len() == 0 || !self.rows.has(fde.initial_address()) {
                continue;
            }
            self.report.functions += 1;
            self.function(frames, bases, &fde, &mut context);
        }
    }

    fn function<'section, Section>(
        &mut self,
        frames: &Section,
        bases: &BaseAddresses,
        fde: &FrameDescriptionEntry<Bytes<'section>>,
        context: &mut UnwindContext<usize>,
    ) where
        Section: UnwindSection<Bytes<'section>>,
    {
        let numbers = numbers(self.rows.file.machine());
        let places = self.places(fde.initial_address(), fde.end_address());
        let mut places = places.iter().copied().peekable();
        let mut rows = fde.rows(frames, bases, context).expect("a sound CIE");
        while let Ok(Some(row)) = rows.next_row() {
            self.report.rows_raw += 1;
            let exceptions = self.report.exceptions();
            // A return address belongs to the call before it.
            while let Some(place) =
                places.next_if(|place| place.pc - u64::from(!place.interrupted) < row.end_address())
            {
                let mut state = state(
                    place.pc,
                    place.interrupted,
                    numbers.frame_pointer,
                    numbers.stack_pointer,
                );
                let known = match place.before {
                    Before::Pushed => Some((state.sp, state.fp)),
                    Before::Popped => Some((state.sp - 8, state.fp)),
                    Before::CalledWithFrame | Before::Nothing => None,
                };
                let memory = Synthetic {
                    code: &self.code,
                    known,
                };
                let frame = Frame {
                    state: &state,
                    memory,
                    numbers,
                };
                let mut truth = caller(row, frames, &frame);
                if self.source == Source::DebugFrame
                    && let Truth::Caller { sp, fp, .. } = &mut truth
                {
                    // Go's descriptions leave the frame pointer out. It points to the word below
                    // the return address, where the caller's was pushed.
                    if place.before == Before::CalledWithFrame {
                        state.fp = *sp - 16;
                        *fp = memory.read(*sp - 16);
                    }
                }
                // By the machine's definition.
                let returning = Truth::Caller {
                    pc: memory.read(state.sp),
                    sp: state.sp + 8,
                    fp: state.fp,
                };
                let outcome = self.outcome(memory, state);
                let popped = place.is_return && place.before == Before::Popped;
                if popped && truth != returning && agrees(returning, &outcome) {
                    self.report.corrected += 1;
                    truth = returning;
                }
                self.check(place, &state, truth, &outcome);
            }
            self.report.exception_rows += u64::from(self.report.exceptions() > exceptions);
        }
    }

    /// The instructions of a function and the return addresses of its calls, in ascending order.
    fn places(&self, start: u64, end: u64) -> Vec<Place> {
        let length = usize::try_from(end - start).expect("a short function");
        let found = self.code.at(start, length);
        let code = found.unwrap_or_else(|| panic!("no code at {start:#x}"));
        let mut places = Vec::new();
        if self.rows.file.machine() == Machine::Aarch64 {
            for (nth, word) in code.chunks_exact(4).enumerate() {
                let pc = start + 4 * nth as u64;
                let word = u32::from_le_bytes(word.try_into().expect("four bytes"));
                places.push(Place {
                    pc,
                    interrupted: true,
                    before: Before::Nothing,
                    is_return: false,
                });
                // `bl` and `blr`.
                if word >> 26 == 0b10_0101 || word & 0xffff_fc1f == 0xd63f_0000 {
                    places.push(Place {
                        pc: pc + 4,
                        interrupted: false,
                        before: Before::Nothing,
                        is_return: false,
                    });
                }
            }
        } else {
            let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
            let mut instruction = Instruction::default();
            let mut before = Before::Nothing;
            let mut has_frame = false;
            while decoder.can_decode() {
                decoder.decode_out(&mut instruction);
                places.push(Place {
                    pc: instruction.ip(),
                    interrupted: true,
                    before,
                    is_return: instruction.code() == Operation::Retnq,
                });
                if instruction.mnemonic() == Mnemonic::Call {
                    places.push(Place {
                        pc: instruction.next_ip(),
                        interrupted: false,
                        before: if has_frame {
                            Before::CalledWithFrame
                        } else {
                            Before::Nothing
                        },
                        is_return: false,
                    });
                }
                has_frame |= sets_frame_pointer(&instruction);
                before = effect(&instruction);
            }
        }
        places
    }

    /// Our answer.
    fn outcome(&self, memory: Synthetic<'_>, mut state: State) -> (u32, State) {
        let outcome = match self.rows.file.machine() {
            Machine::X86_64 => step::<X86_64, _, _>(&memory, self.rows, &mut state),
            Machine::Aarch64 => step::<Aarch64, _, _>(&memory, self.rows, &mut state),
        };
        (outcome, state)
    }

    fn check(&mut self, place: Place, before: &State, truth: Truth, answer: &(u32, State)) {
        if place.interrupted {
            self.report.instructions += 1;
        } else {
            self.report.returns += 1;
        }
        let (outcome, after) = answer;
        let class = match (truth, *outcome) {
            (Truth::Caller { .. }, step::CONTINUE) => {
                (!agrees(truth, answer)).then_some(Class::WrongFrame)
            }
            (Truth::Outermost, step::COMPLETE) => None,
            (_, step::COMPLETE) if self.source == Source::DebugFrame => {
                self.report.go_outermost += 1;
                None
            }
            (Truth::RegisterLost, step::REGISTER_UNKNOWN) => {
                self.report.lost += 1;
                None
            }
            (_, step::NO_UNWIND_INFO) => Some(Class::NoRow),
            (_, step::UNSUPPORTED_RULE) => Some(Class::Unsupported),
            (_, step::REGISTER_UNKNOWN) => Some(Class::RegisterUnknown),
            _ => Some(Class::OtherOutcome),
        };
        if let Some(class) = class {
            self.report.exception(class, || {
                format!(
                    "{class:?} at {:#x} interrupted {}: gimli {truth:x?}, outcome {outcome}, \
                     pc {:x} sp {:x} fp {:x}, from sp {:x} fp {:x}",
                    place.pc, place.interrupted, after.pc, after.sp, after.fp, before.sp, before.fp
                )
            });
        }
    }
}

fn agrees(truth: Truth, answer: &(u32, State)) -> bool {
    let (outcome, after) = answer;
    let (pc, sp, fp) = (after.pc, after.sp, after.fp);
    *outcome == step::CONTINUE && truth == Truth::Caller { pc, sp, fp }
}

fn sets_frame_pointer(instruction: &Instruction) -> bool {
    instruction.op0_register() == Register::RBP
        && match instruction.mnemonic() {
            Mnemonic::Mov => instruction.op1_register() == Register::RSP,
            Mnemonic::Lea => instruction.memory_base() == Register::RSP,
            _ => false,
        }
}

fn effect(instruction: &Instruction) -> Before {
    let pointer = instruction.op0_register() == Register::RBP;
    match instruction.code() {
        Operation::Push_r64 if pointer => Before::Pushed,
        Operation::Pop_r64 if pointer => Before::Popped,
        Operation::Leaveq => Before::Popped,
        _ => Before::Nothing,
    }
}

fn numbers(machine: Machine) -> Numbers {
    match machine {
        Machine::X86_64 => Numbers {
            stack_pointer: x86_64::RSP,
            frame_pointer: x86_64::RBP,
            return_address: x86_64::RIP,
            has_link: false,
            pc: Some(x86_64::RIP),
        },
        Machine::Aarch64 => Numbers {
            stack_pointer: aarch64::SP,
            frame_pointer: aarch64::X29,
            return_address: aarch64::X30,
            has_link: true,
            pc: None,
        },
    }
}
