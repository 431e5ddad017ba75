//! Names of kernel code: those that the kernel was asked for, else from `/proc/kallsyms`.
//!
//! kallsyms gives no sizes: a function is taken to end where the next symbol begins. Where what
//! follows belongs to something else (the last function of a module) the end is unknown, and the
//! name holds for a limited distance only.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Read},
    rc::Rc,
    time::{Duration, Instant},
};

use profiler_image::{elf_layout::kernel_build_id, proc_dir};
use profiler_model::{ModuleKind, NameSource};
use profiler_sandbox::broker::{self, OwnPath};

use super::{demangle::demangle, native::Names};

/// Bytes of kallsyms that are read; 300,000 symbols are about 15 MB.
const READ_LIMIT: u64 = 128 << 20;
/// Longest line that is understood.
const LINE_LIMIT: usize = 1024;
/// Lowest kernel address on 64-bit machines; per-CPU offsets and user addresses lie below.
const LOWEST: u64 = 1 << 63;
/// How far the last symbol of a module reaches.
const LAST_SYMBOL_BYTES: u64 = 16 * 1024;
/// Longest function that is believed.
const FUNCTION_LIMIT: u64 = 1 << 20;
/// An address outside of what is known makes the symbols be read again, at most so often: a module
/// may have been loaded since.
const RELOAD_INTERVAL: Duration = Duration::from_mins(1);

/// Whether the kernel shows its symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelSymbols {
    /// Nothing was asked yet.
    Unread,
    Known,
    /// All addresses are zero: `kernel.kptr_restrict` or a missing `CAP_SYSLOG`.
    Hidden,
    /// `/proc/kallsyms` cannot be read or is empty.
    Missing,
}

/// One kernel frame's names.
#[derive(Clone, Debug)]
pub(crate) struct KernelNames {
    pub(crate) names: Rc<Names>,
    pub(crate) kind: ModuleKind,
    /// `[kernel]`, or the module's name in brackets.
    pub(crate) module: String,
    pub(crate) build_id: Rc<[u8]>,
}

#[derive(Clone, Copy, Debug)]
struct Symbol {
    address: u64,
    name_at: u32,
    name_bytes: u16,
    /// Index into the modules, 0 for the kernel itself.
    module: u16,
}

#[derive(Debug)]
struct Table {
    /// Ordered by address, one for each address.
    symbols: Vec<Symbol>,
    names: String,
    modules: Vec<String>,
    state: KernelSymbols,
}

/// The kernel's symbols, read when first asked for.
#[derive(Debug, Default)]
pub(crate) struct Kernel {
    table: Option<Table>,
    read_at: Option<Instant>,
    build_id: Option<Rc<[u8]>>,
    module_build_ids: HashMap<String, Rc<[u8]>>,
    cache: HashMap<u64, KernelNames>,
    /// The kernel has named code when it was asked.
    is_told: bool,
}

/// Addresses whose names are kept; the kernel code that is ever sampled is far less.
const CACHE_LIMIT: usize = 32 * 1024;

impl Kernel {
    pub(crate) fn state(&self) -> KernelSymbols {
        let unread = if self.is_told {
            KernelSymbols::Known
        } else {
            KernelSymbols::Unread
        };
        self.table.as_ref().map_or(unread, |table| table.state)
    }

    pub(crate) fn names(&mut self, address: u64) -> KernelNames {
        if let Some(names) = self.cache.get(&address) {
            return names.clone();
        }
        self.load(self.table.is_none());
        let mut found = self.table.as_ref().and_then(|table| table.find(address));
        if found.is_none() && self.state() == KernelSymbols::Known {
            self.load(self.read_at.is_none_or(|at| at.elapsed() > RELOAD_INTERVAL));
            found = self.table.as_ref().and_then(|table| table.find(address));
        }
        let found = found
            .as_ref()
            .map(|(name, module)| (name.as_str(), module.as_str()));
        self.keep(address, found)
    }

    /// What the kernel prints for an address: `NAME`, `NAME [MODULE]`, or a number where it has no name.
    pub(crate) fn know(&mut self, address: u64, printed: &str) {
        let (name, module) = match printed.split_once(' ') {
            Some((name, module)) => (name, module.trim_matches(['[', ']'])),
            None => (printed, ""),
        };
        let is_named = !name.starts_with("0x") && !name.is_empty();
        self.is_told |= is_named;
        self.keep(address, is_named.then_some((name, module)));
    }

    fn keep(&mut self, address: u64, found: Option<(&str, &str)>) -> KernelNames {
        let names = match found {
            Some((name, module)) => self.named(name, module),
            None => KernelNames {
                names: Rc::new(Names::none()),
                kind: ModuleKind::Kernel,
                module: "[kernel]".to_owned(),
                build_id: self.own_build_id(),
            },
        };
        if self.cache.len() >= CACHE_LIMIT {
            self.cache.clear();
        }
        self.cache.insert(address, names.clone());
        names
    }

    /// Drops the symbols; they are read again for an address that had no name yet.
    pub(crate) fn drop_table(&mut self) {
        self.table = None;
    }

    fn load(&mut self, wanted: bool) {
        if !wanted {
            return;
        }
        self.read_at = Some(Instant::now());
        self.cache.clear();
        let table = match broker::open(OwnPath::at("/proc/kallsyms")) {
            Ok(file) => Table::read(file),
            Err(_) => Table::empty(KernelSymbols::Missing),
        };
        match table.state {
            KernelSymbols::Hidden => tracing::warn!(
                "kernel functions have no names: /proc/kallsyms shows no addresses \
                 (needs CAP_SYSLOG, or kernel.kptr_restrict below 2)"
            ),
            KernelSymbols::Missing => {
                tracing::warn!("kernel functions have no names: /proc/kallsyms cannot be read");
            }
            KernelSymbols::Known | KernelSymbols::Unread => {}
        }
        self.table = Some(table);
    }

    fn named(&mut self, name: &str, module: &str) -> KernelNames {
        let names = Rc::new(Names::one(demangle(name), NameSource::Kallsyms));
        if module.is_empty() {
            let module = "[kernel]".to_owned();
            return KernelNames {
                names,
                kind: ModuleKind::Kernel,
                module,
                build_id: self.own_build_id(),
            };
        }
        let build_id = self
            .module_build_ids
            .entry(module.to_owned())
            .or_insert_with(|| {
                let safe = !module.contains('/') && !module.starts_with('.');
                let path = format!("/sys/module/{module}/notes/.note.gnu.build-id");
                Rc::from(if safe {
                    read_build_id(&path)
                } else {
                    Vec::new()
                })
            });
        KernelNames {
            names,
            kind: ModuleKind::KernelModule,
            module: format!("[{module}]"),
            build_id: Rc::clone(build_id),
        }
    }

    fn own_build_id(&mut self) -> Rc<[u8]> {
        let read = || Rc::from(read_build_id("/sys/kernel/notes"));
        Rc::clone(self.build_id.get_or_insert_with(read))
    }
}

fn read_build_id(path: &str) -> Vec<u8> {
    proc_dir::read_path(path, 64 * 1024)
        .map(|notes| kernel_build_id(&notes))
        .unwrap_or_default()
}

impl Table {
    fn empty(state: KernelSymbols) -> Self {
        Self {
            symbols: Vec::new(),
            names: String::new(),
            modules: vec![String::new()],
            state,
        }
    }

    fn read(reader: impl Read) -> Self {
        let mut table = Self::empty(KernelSymbols::Missing);
        let mut reader = BufReader::with_capacity(256 * 1024, reader.take(READ_LIMIT));
        let mut module_ids: HashMap<String, u16> = HashMap::new();
        let mut line = Vec::new();
        // For each symbol: how well it would name its address.
        let mut ranked: Vec<(Symbol, u8)> = Vec::new();
        loop {
            line.clear();
            match reader.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
            let Some(parsed) = parse_line(&line) else {
                continue;
            };
            if table.state == KernelSymbols::Missing {
                table.state = KernelSymbols::Hidden;
            }
            if parsed.address < LOWEST {
                continue;
            }
            table.state = KernelSymbols::Known;
            table.push(&parsed, &mut module_ids, &mut ranked);
        }
        ranked.sort_by_key(|(symbol, rank)| (symbol.address, *rank));
        ranked.dedup_by_key(|(symbol, _)| symbol.address);
        table.symbols = ranked.into_iter().map(|(symbol, _)| symbol).collect();
        table.names.shrink_to_fit();
        table
    }

    fn push(
        &mut self,
        parsed: &Parsed<'_>,
        module_ids: &mut HashMap<String, u16>,
        ranked: &mut Vec<(Symbol, u8)>,
    ) {
        let module = match module_ids.get(parsed.module) {
            _ if parsed.module.is_empty() => 0,
            Some(id) => *id,
            None => {
                let Ok(id) = u16::try_from(self.modules.len()) else {
                    return;
                };
                self.modules.push(parsed.module.to_owned());
                module_ids.insert(parsed.module.to_owned(), id);
                id
            }
        };
        let Ok(name_at) = u32::try_from(self.names.len()) else {
            return;
        };
        // Symbols of data only say where code ends; they need no name.
        let name = if parsed.is_code { parsed.name } else { "" };
        let Ok(name_bytes) = u16::try_from(name.len()) else {
            return;
        };
        self.names.push_str(name);
        let symbol = Symbol {
            address: parsed.address,
            name_at,
            name_bytes,
            module,
        };
        ranked.push((symbol, parsed.rank()));
    }

    /// Name and module of the function around an address.
    fn find(&self, address: u64) -> Option<(String, String)> {
        let after = self
            .symbols
            .partition_point(|symbol| symbol.address <= address);
        let symbol = self.symbols.get(after.checked_sub(1)?)?;
        let limit = match self.symbols.get(after) {
            Some(next) if next.module == symbol.module => FUNCTION_LIMIT,
            Some(_) | None => LAST_SYMBOL_BYTES,
        };
        let start = symbol.name_at as usize;
        let name = self
            .names
            .get(start..start + usize::from(symbol.name_bytes))?;
        if name.is_empty() || address - symbol.address >= limit {
            return None;
        }
        Some((
            name.to_owned(),
            self.modules.get(usize::from(symbol.module))?.clone(),
        ))
    }
}

struct Parsed<'line> {
    address: u64,
    is_code: bool,
    is_global: bool,
    name: &'line str,
    module: &'line str,
}

impl Parsed<'_> {
    /// Several symbols may share an address; the lowest rank names it.
    fn rank(&self) -> u8 {
        let marks_a_section = matches!(self.name, "_text" | "_stext" | "_etext" | "_sinittext");
        // Padding in front of a function is listed as a symbol of its own.
        let is_padding = self.name.starts_with("__pfx_") || self.name.starts_with("__cfi_");
        match (self.is_code, marks_a_section || is_padding, self.is_global) {
            (true, false, true) => 0,
            (true, false, false) => 1,
            (true, true, _) => 2,
            (false, ..) => 3,
        }
    }
}

/// Parses `ADDRESS TYPE NAME` with an optional `[MODULE]`.
fn parse_line(line: &[u8]) -> Option<Parsed<'_>> {
    if line.len() > LINE_LIMIT {
        return None;
    }
    let text = std::str::from_utf8(line).ok()?;
    let mut fields = text.split_ascii_whitespace();
    let address = u64::from_str_radix(fields.next()?, 16).ok()?;
    let kind = fields.next()?;
    let name = fields.next()?;
    let module = fields
        .next()
        .map_or("", |module| module.trim_matches(['[', ']']));
    Some(Parsed {
        address,
        is_code: matches!(kind, "t" | "T" | "w" | "W"),
        is_global: matches!(kind, "T" | "W"),
        name,
        module,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOLS: &str = "\
0000000000001000 A per_cpu_thing
ffffffff81000000 T _stext
ffffffff81000000 t srso_alias
ffffffff81001000 t local_name
ffffffff81001000 T global_name
ffffffff81001100 T _RNvCs1234_7mycrate3foo
ffffffff81002000 T _etext
ffffffff82000000 D some_data
ffffffffc0001000 t mod_last\t[mod_a]
ffffffffc0800000 t other\t[mod_b]
ffffffffc0000000 t mod_first\t[mod_a]
";

    fn check(table: &Table, address: u64, expected: Option<(&str, &str)>) {
        let seen = table.find(address);
        let seen = seen
            .as_ref()
            .map(|(name, module)| (name.as_str(), module.as_str()));
        assert_eq!(seen, expected, "{address:#x}");
    }

    #[test]
    fn addresses_are_named_inside_their_function_only() {
        let table = Table::read(SYMBOLS.as_bytes());
        assert_eq!(table.state, KernelSymbols::Known);
        check(&table, 0x1000, None);
        check(&table, 0xffff_ffff_80ff_ffff, None);
        check(&table, 0xffff_ffff_8100_0000, Some(("srso_alias", "")));
        check(&table, 0xffff_ffff_8100_10ff, Some(("global_name", "")));
        check(
            &table,
            0xffff_ffff_8100_1100,
            Some(("_RNvCs1234_7mycrate3foo", "")),
        );
        check(&table, 0xffff_ffff_8220_0000, None);
        check(&table, 0xffff_ffff_c000_0fff, Some(("mod_first", "mod_a")));
        check(&table, 0xffff_ffff_c000_1010, Some(("mod_last", "mod_a")));
        check(&table, 0xffff_ffff_c000_1000 + LAST_SYMBOL_BYTES, None);
        check(&table, u64::MAX, None);
    }

    #[test]
    fn what_the_kernel_prints_is_understood_without_the_table() {
        let mut kernel = Kernel::default();
        let printed = [
            (
                0xffff_ffff_8100_1000,
                "do_exit",
                Some("do_exit"),
                "[kernel]",
            ),
            (
                0xffff_ffff_c000_0010,
                "mod_first [mod_a]",
                Some("mod_first"),
                "[mod_a]",
            ),
            (
                0xffff_ffff_8100_1100,
                "_RNvCs1234_7mycrate3foo",
                Some("mycrate::foo"),
                "[kernel]",
            ),
            (
                0xffff_ffff_a000_0000,
                "0xffffffffa0000000",
                None,
                "[kernel]",
            ),
        ];
        for (address, text, name, module) in printed {
            kernel.know(address, text);
            let seen = kernel.names(address);
            let first = seen.names.functions.first();
            assert_eq!(first.map(|function| &*function.name), name, "{text}");
            assert_eq!(seen.module, module, "{text}");
        }
        assert!(kernel.table.is_none());
        assert_eq!(kernel.state(), KernelSymbols::Known);
    }

    #[test]
    fn hidden_and_missing_symbols_are_told_apart() {
        let hidden = "0000000000000000 T _stext\n0000000000000000 t x\n";
        assert_eq!(Table::read(hidden.as_bytes()).state, KernelSymbols::Hidden);
        assert_eq!(Table::read("".as_bytes()).state, KernelSymbols::Missing);
        assert_eq!(
            Table::read("garbage\n\u{e9}\n".as_bytes()).state,
            KernelSymbols::Missing
        );
        check(&Table::read(hidden.as_bytes()), 0, None);
    }

    #[test]
    fn broken_lines_are_skipped() {
        let long = format!("ffffffff81000000 T {}\n", "x".repeat(5000));
        let text = format!("\n \nffffffff81000000\nffffffff81000000 T\nzz T x\n{long}");
        assert_eq!(Table::read(text.as_bytes()).symbols.len(), 0);
    }

    #[test]
    fn this_kernel_names_its_own_functions() {
        let text = std::fs::read_to_string("/proc/kallsyms").unwrap();
        let wanted = " T do_exit\n";
        let line = text
            .lines()
            .find(|line| format!("{line}\n").ends_with(wanted));
        let address = line
            .and_then(|line| u64::from_str_radix(&line[..16], 16).ok())
            .unwrap();
        let mut kernel = Kernel::default();
        assert_eq!(kernel.state(), KernelSymbols::Unread);
        let seen = kernel.names(address + 1);
        if address == 0 {
            // Without privileges the kernel hides the addresses, and we must say so.
            assert_eq!(kernel.state(), KernelSymbols::Hidden);
            assert_eq!(seen.names.source, NameSource::None);
        } else {
            assert_eq!(&*seen.names.functions[0].name, "do_exit");
            assert_eq!(
                (seen.kind, seen.module.as_str()),
                (ModuleKind::Kernel, "[kernel]")
            );
            assert_eq!(kernel.state(), KernelSymbols::Known);
        }
    }
}
