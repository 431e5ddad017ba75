//! The loader's work: turns the addresses in the file's data into pointers.

use super::{
    NotInferred,
    class_kind::{ClassKind, KINDS_LIMIT},
    input::Input,
    memory::{Memory, external},
    sections::{
        Machine, SHT_DYNSYM, SHT_RELA, SHT_RELR, Section, Sections, u16_at, u32_at, u64_at,
    },
};

/// Relocations of one file. Envoy has 360,000.
const RELOCATIONS_LIMIT: u64 = 8_000_000;
/// Entries that are read at once.
const AT_ONCE: u64 = 1 << 16;
/// Largest table of dynamic symbols, and of their names.
const SYMBOLS_LIMIT: u64 = 64 << 20;

const RELA_BYTES: u64 = 24;
const SYMBOL_BYTES: usize = 24;

/// What relocations tell beside the values of words: where other files' tables of the three kinds
/// of class type information are, which identifies the kind of a `type_info`.
#[derive(Debug, Default)]
pub(super) struct Links {
    pub(super) kinds: Vec<(u64, ClassKind)>,
}

impl Links {
    fn add(&mut self, table: u64, kind: ClassKind) {
        if self.kinds.len() < KINDS_LIMIT && !self.kinds.contains(&(table, kind)) {
            self.kinds.push((table, kind));
        }
    }
}

/// How a relocation makes its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// The load address and the addend.
    Relative,
    /// The symbol's address and the addend.
    Absolute,
    /// The symbol's address, in the table that code reads it from.
    TableEntry,
    /// The symbol's object moves here.
    Copy,
    Other,
}

fn effect(machine: Machine, kind: u32) -> Effect {
    match (machine, kind) {
        (Machine::X86_64, 8) | (Machine::Aarch64, 1027) => Effect::Relative,
        (Machine::X86_64, 1) | (Machine::Aarch64, 257) => Effect::Absolute,
        (Machine::X86_64, 6) | (Machine::Aarch64, 1025) => Effect::TableEntry,
        (Machine::X86_64, 5) | (Machine::Aarch64, 1024) => Effect::Copy,
        (Machine::X86_64 | Machine::Aarch64 | Machine::Other, _) => Effect::Other,
    }
}

pub(super) fn apply(
    input: &mut Input<'_>,
    sections: &Sections,
    memory: &mut Memory,
) -> Result<Links, NotInferred> {
    let mut links = Links::default();
    let mut left = RELOCATIONS_LIMIT;
    let symbols = Symbols::read(input, sections)?;
    for section in sections.loaded(SHT_RELR) {
        apply_packed(input, section, memory, &mut left)?;
    }
    for section in sections.loaded(SHT_RELA) {
        let mut at = section.offset;
        let mut entries = section.bytes / RELA_BYTES;
        while entries > 0 {
            let count = entries.min(AT_ONCE);
            left = left.checked_sub(count).ok_or(TOO_MANY)?;
            let data = input.read(at, count * RELA_BYTES, "relocations")?;
            for entry in data.chunks_exact(24) {
                if let Some(one) = Relocation::read(entry, sections.machine) {
                    one.apply(&symbols, memory, &mut links);
                }
            }
            at = at.saturating_add(count * RELA_BYTES);
            entries -= count;
        }
    }
    Ok(links)
}

const TOO_MANY: NotInferred = NotInferred::TooLarge {
    what: "number of relocations",
};

struct Relocation {
    place: u64,
    effect: Effect,
    symbol: u32,
    addend: u64,
}

impl Relocation {
    fn read(entry: &[u8], machine: Machine) -> Option<Self> {
        Some(Self {
            place: u64_at(entry, 0)?,
            effect: effect(machine, u32_at(entry, 8)?),
            symbol: u32_at(entry, 12)?,
            addend: u64_at(entry, 16)?,
        })
    }

    fn apply(self, symbols: &Symbols<'_>, memory: &mut Memory, links: &mut Links) {
        match self.effect {
            Effect::Relative => {
                memory.relocate(self.place, self.addend);
                memory.refer(self.addend);
            }
            Effect::Absolute => {
                let value = match symbols.get(self.symbol) {
                    Some(Symbol::Here(address)) => address.wrapping_add(self.addend),
                    Some(Symbol::Elsewhere) | None => external(self.symbol, self.addend),
                };
                if let Some(kind) = symbols.kind(self.symbol) {
                    links.add(value, kind);
                }
                memory.relocate(self.place, value);
                memory.refer(value);
            }
            Effect::TableEntry => {
                if let Some(Symbol::Here(address)) = symbols.get(self.symbol) {
                    memory.refer(address);
                }
            }
            Effect::Copy => {
                // Programs that run at fixed addresses keep a copy of a library's table; pointers
                // to it lead behind its first two words.
                if let Some(kind) = symbols.kind(self.symbol) {
                    links.add(self.place.wrapping_add(16), kind);
                }
            }
            Effect::Other => {}
        }
    }
}

/// The packed form: an address, then bitmaps of the words that follow it.
fn apply_packed(
    input: &mut Input<'_>,
    section: &Section,
    memory: &mut Memory,
    left: &mut u64,
) -> Result<(), NotInferred> {
    if section.bytes / 8 > RELOCATIONS_LIMIT {
        return Err(TOO_MANY);
    }
    let data = input.read(section.offset, section.bytes, "packed relocations")?;
    let mut next = 0u64;
    for entry in data.chunks_exact(8) {
        let Some(entry) = u64_at(entry, 0) else { break };
        if entry & 1 == 0 {
            *left = left.checked_sub(1).ok_or(TOO_MANY)?;
            refer_in_place(memory, entry);
            next = entry.wrapping_add(8);
            continue;
        }
        let mut bits = entry >> 1;
        *left = left
            .checked_sub(u64::from(bits.count_ones()))
            .ok_or(TOO_MANY)?;
        while bits != 0 {
            let word = u64::from(bits.trailing_zeros());
            refer_in_place(memory, next.wrapping_add(word * 8));
            bits &= bits - 1;
        }
        next = next.wrapping_add(63 * 8);
    }
    Ok(())
}

fn refer_in_place(memory: &mut Memory, place: u64) {
    if let Some(value) = memory.relocate_in_place(place) {
        memory.refer(value);
    }
}

/// Where a dynamic symbol is.
enum Symbol {
    Here(u64),
    Elsewhere,
}

/// The dynamic symbols, as far as the loader needs them: addresses of the file's own, and of the
/// others whether they are one of three well-known tables. Names of own functions are not read.
struct Symbols<'a> {
    table: std::borrow::Cow<'a, [u8]>,
    names: std::borrow::Cow<'a, [u8]>,
}

impl<'a> Symbols<'a> {
    fn read(input: &mut Input<'a>, sections: &Sections) -> Result<Self, NotInferred> {
        let mut symbols = Self {
            table: std::borrow::Cow::Borrowed(&[]),
            names: std::borrow::Cow::Borrowed(&[]),
        };
        let Some(table) = sections.loaded(SHT_DYNSYM).next() else {
            return Ok(symbols);
        };
        let what = "dynamic symbols";
        if table.bytes > SYMBOLS_LIMIT {
            return Err(NotInferred::TooLarge { what });
        }
        symbols.table = input.read(table.offset, table.bytes, what)?;
        if let Some(names) = sections.all.get(table.link)
            && names.bytes <= SYMBOLS_LIMIT
        {
            symbols.names = input.read(names.offset, names.bytes, "names of dynamic symbols")?;
        }
        Ok(symbols)
    }

    fn entry(&self, symbol: u32) -> Option<&[u8]> {
        let start = usize::try_from(symbol).ok()?.checked_mul(SYMBOL_BYTES)?;
        self.table.get(start..start.checked_add(SYMBOL_BYTES)?)
    }

    fn get(&self, symbol: u32) -> Option<Symbol> {
        let entry = self.entry(symbol)?;
        let section = u16_at(entry, 6)?;
        if section == 0 {
            return Some(Symbol::Elsewhere);
        }
        Some(Symbol::Here(u64_at(entry, 8)?))
    }

    fn kind(&self, symbol: u32) -> Option<ClassKind> {
        let start = usize::try_from(u32_at(self.entry(symbol)?, 0)?).ok()?;
        let rest = self.names.get(start..)?;
        let rest = rest.strip_prefix(b"_ZTV")?;
        ClassKind::ALL
            .into_iter()
            .find(|kind| rest.strip_prefix(kind.name().as_bytes()).is_some_and(ends))
    }
}

/// The name ends here, perhaps with a version of the symbol.
fn ends(rest: &[u8]) -> bool {
    matches!(rest.first(), Some(0 | b'@'))
}
