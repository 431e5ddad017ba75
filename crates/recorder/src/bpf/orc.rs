//! Where the tables of the kernel's own walker of stacks are, for programs that walk kernel stacks themselves.

use std::{
    io::{BufRead as _, BufReader, Read},
    sync::OnceLock,
};

use profiler_common::config::{KernelOffsets, NO_ORC, OrcTables};
use profiler_sandbox::broker::{self, OwnPath};

const SYMBOLS: &str = "/proc/kallsyms";

/// Bytes of it that are read: 300,000 symbols are about 15 MB.
const READ_LIMIT: u64 = 128 << 20;

/// Bytes of `struct orc_entry`, and of the distance to its code.
const ENTRY_BYTES: u64 = 6;
const ADDRESS_BYTES: u64 = 4;

/// The tables; without entries where a kernel has none (other architectures, `CONFIG_UNWINDER_FRAME_POINTER`), or does not say
/// where they are: `kernel.kptr_restrict` without `CAP_SYSLOG`, no `CONFIG_KALLSYMS_ALL`. The kernel's symbols are
/// read once, in some 60 ms.
pub(super) fn tables(offsets: &KernelOffsets) -> OrcTables {
    static TABLES: OnceLock<OrcTables> = OnceLock::new();
    if offsets.task_kernel_sp == 0 || offsets.orc_end_bit == NO_ORC {
        return OrcTables::default();
    }
    *TABLES.get_or_init(|| {
        let symbols = broker::open(OwnPath::at(SYMBOLS)).map(Symbols::read);
        let found = symbols.ok().and_then(|symbols| symbols.tables());
        if found.is_none() {
            tracing::info!(
                "the kernel walks its stacks itself: {SYMBOLS} does not show its tables"
            );
        }
        found.unwrap_or_default()
    })
}

/// Addresses of the symbols that are asked for; 0: not known.
#[derive(Debug, Default, PartialEq, Eq)]
struct Symbols {
    addresses: [u64; 2],
    entries: [u64; 2],
    text: [u64; 2],
    scheduler: [u64; 2],
    locks: [u64; 2],
    tracers: [u64; 2],
}

impl Symbols {
    fn read(file: impl Read) -> Self {
        let mut symbols = Self::default();
        let mut lines = BufReader::new(file.take(READ_LIMIT));
        let mut line = Vec::new();
        while lines
            .read_until(b'\n', &mut line)
            .is_ok_and(|bytes| bytes > 0)
        {
            symbols.note(&line);
            line.clear();
        }
        symbols
    }

    /// One line: `ADDRESS TYPE NAME`, and for a module's symbol its name behind that.
    fn note(&mut self, line: &[u8]) {
        let Ok(line) = std::str::from_utf8(line) else {
            return;
        };
        let mut words = line.split_ascii_whitespace();
        let (Some(address), Some(_kind), Some(name), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return;
        };
        let place = match name {
            "__start_orc_unwind_ip" => &mut self.addresses[0],
            "__stop_orc_unwind_ip" => &mut self.addresses[1],
            "__start_orc_unwind" => &mut self.entries[0],
            "__stop_orc_unwind" => &mut self.entries[1],
            "_stext" => &mut self.text[0],
            "_etext" => &mut self.text[1],
            "__sched_text_start" => &mut self.scheduler[0],
            "__sched_text_end" => &mut self.scheduler[1],
            "__lock_text_start" => &mut self.locks[0],
            "__lock_text_end" => &mut self.locks[1],
            "return_to_handler" => &mut self.tracers[0],
            "arch_rethook_trampoline" | "__kretprobe_trampoline" => &mut self.tracers[1],
            _ => return,
        };
        if let Ok(address) = u64::from_str_radix(address, 16) {
            *place = address;
        }
    }

    /// `None`: not all is known, or it does not fit together.
    fn tables(&self) -> Option<OrcTables> {
        let bytes = |[start, end]: [u64; 2]| {
            end.checked_sub(start)
                .filter(|bytes| start != 0 && *bytes != 0)
        };
        let count = bytes(self.addresses)? / ADDRESS_BYTES;
        for range in [self.text, self.scheduler, self.locks] {
            bytes(range)?;
        }
        (bytes(self.entries)? / ENTRY_BYTES == count).then_some(OrcTables {
            addresses: self.addresses[0],
            entries: self.entries[0],
            count,
            text_start: self.text[0],
            text_end: self.text[1],
            scheduler_start: self.scheduler[0],
            scheduler_end: self.scheduler[1],
            locks_start: self.locks[0],
            locks_end: self.locks[1],
            tracers: self.tracers,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = "\
ffffffff81000000 T _stext
ffffffff81248fd0 T return_to_handler
ffffffff81248fe0 t arch_rethook_trampoline
ffffffff821f7be0 T __sched_text_start
ffffffff822006f7 T __sched_text_end
ffffffff82200700 T __lock_text_start
ffffffff82202148 T __lock_text_end
ffffffff82300000 T _etext
ffffffff83000000 R __start_orc_unwind_ip
ffffffff83000008 R __stop_orc_unwind_ip
ffffffff83000008 R __start_orc_unwind
ffffffff83000014 R __stop_orc_unwind
ffffffffc0000000 t _etext\t[module]
";

    fn tables(lines: &str) -> Option<OrcTables> {
        Symbols::read(lines.as_bytes()).tables()
    }

    #[test]
    fn tables_are_found_by_their_symbols() {
        let found = tables(LINES).expect("all are there");
        assert_eq!(found.count, 2);
        assert_eq!(found.entries, 0xffff_ffff_8300_0008);
        assert_eq!(found.text_end, 0xffff_ffff_8230_0000);
        assert_eq!(
            found.tracers,
            [0xffff_ffff_8124_8fd0, 0xffff_ffff_8124_8fe0]
        );
    }

    #[test]
    fn what_is_hidden_or_does_not_fit_is_not_used() {
        assert_eq!(tables(""), None);
        assert_eq!(tables("\u{fffd}\n1\n1 2\nzz R _stext\n"), None);
        let hidden: Vec<String> = LINES
            .lines()
            .map(|line| format!("0000000000000000{}", &line[16..]))
            .collect();
        let hidden = hidden.join("\n");
        assert_eq!(tables(&hidden), None);
        assert_eq!(
            tables(&LINES.replace("83000014", "83000015")).map(|found| found.count),
            Some(2)
        );
        assert_eq!(tables(&LINES.replace("83000014", "8300001a")), None);
        assert_eq!(tables(&LINES.replace("83000008", "82fffff0")), None);
    }
}
