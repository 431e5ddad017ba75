//! The tables that the agent fills, a cache of what it knows.

use aya_ebpf::{
    macros::map,
    maps::{Array, HashMap},
};
use profiler_common::{
    limits::{FILTER_PID_ENTRIES, PROCESS_SLOTS, TABLE_BLOCKS, TABLE_PAGES, TABLE_RULES},
    unwind::{
        mapping::Mappings,
        process::ProcessEntry,
        rule::Rule,
        state::Tables,
        table::{PageEntry, PageKey, RowBlock},
    },
};

/// Which mappings belong to a process, by pid. Allocated beforehand, as all tables here: programs
/// of perf events may use no others before kernel 6.1.
#[map]
pub(super) static PROCESSES: HashMap<u32, ProcessEntry> =
    HashMap::with_max_entries(FILTER_PID_ENTRIES, 0);

/// Mappings by slot. The agent makes it larger for tasks with many processes.
#[map]
static MAPPINGS: Array<Mappings> = Array::with_max_entries(PROCESS_SLOTS, 0);

/// Where the rows of a page are.
#[map]
static PAGES: HashMap<PageKey, PageEntry> = HashMap::with_max_entries(TABLE_PAGES, 0);

#[map]
static BLOCKS: Array<RowBlock> = Array::with_max_entries(TABLE_BLOCKS, 0);

/// Seconds of the agent's clock, by which blocks in use are recognised.
#[map]
static USE_CLOCK: Array<u32> = Array::with_max_entries(1, 0);

/// When a row was last searched in each of [`BLOCKS`]. Apart from them: what all CPUs read is not
/// written.
#[map]
static BLOCK_USES: Array<u32> = Array::with_max_entries(TABLE_BLOCKS, 0);

#[map]
static RULES: Array<Rule> = Array::with_max_entries(TABLE_RULES, 0);

/// Callers' addresses whose rules are remembered. A direct-mapped cache of 16 KiB.
pub(super) const REMEMBERED: usize = 1024;

/// Seconds for which a rule is remembered, about: then it is searched again, which shows that its
/// page is in use.
const REMEMBERED_FOR: u32 = 8;

#[inline(always)]
pub(super) fn use_clock() -> u32 {
    USE_CLOCK.get(0).copied().unwrap_or(0)
}

/// What a search found, so that the next stack through this call needs one cache line instead of a
/// dozen.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Remembered {
    pc: u64,
    /// The reading of the process's mappings for which it holds. Rules keep their numbers and files
    /// their rows as long as the task runs.
    reading: u32,
    rule: u16,
    /// When it was found, in units of [`REMEMBERED_FOR`].
    found: u16,
}

pub(super) struct KernelTables {
    /// Part of a map value that no other program uses now.
    pub(super) remembered: *mut [Remembered; REMEMBERED],
    pub(super) reading: u32,
    /// [`use_clock`] when the walk began.
    pub(super) clock: u32,
}

impl KernelTables {
    #[inline(always)]
    fn era(&self) -> u16 {
        (self.clock / REMEMBERED_FOR) as u16
    }

    #[inline(always)]
    fn place(&self, pc: u64) -> *mut Remembered {
        // Calls are rarely nearer than 4 bytes; the processes' libraries lie megabytes apart.
        let place = ((pc >> 2) ^ (pc >> 13)) as usize & (REMEMBERED - 1);
        // SAFETY: masked to the length of the array.
        unsafe { self.remembered.cast::<Remembered>().add(place) }
    }
}

impl Tables for KernelTables {
    #[inline(always)]
    fn mappings(&self, slot: u32) -> Option<&Mappings> {
        MAPPINGS.get(slot)
    }

    #[inline(always)]
    fn page(&self, key: &PageKey) -> Option<&PageEntry> {
        // SAFETY: an entry is never changed, only removed, and its memory not used again while
        // this program runs for anything but another entry.
        unsafe { PAGES.get(key) }
    }

    #[inline(always)]
    fn block(&self, index: u32) -> Option<&RowBlock> {
        if let Some(used) = BLOCK_USES.get_ptr_mut(index) {
            // SAFETY: a map value; all writers write the time, and once in a second is enough.
            unsafe {
                if *used != self.clock {
                    *used = self.clock;
                }
            }
        }
        BLOCKS.get(index)
    }

    #[inline(always)]
    fn rule(&self, index: u32) -> Option<&Rule> {
        RULES.get(index)
    }

    #[inline(always)]
    fn remembered(&self, pc: u64) -> Option<u32> {
        // SAFETY: a place in the array.
        let known = unsafe { *self.place(pc) };
        if known.pc == pc && known.reading == self.reading && known.found == self.era() {
            Some(known.rule.into())
        } else {
            None
        }
    }

    #[inline(always)]
    fn remember(&self, pc: u64, rule: u32) {
        let known = Remembered {
            pc,
            reading: self.reading,
            rule: rule as u16,
            found: self.era(),
        };
        // SAFETY: a place in the array.
        unsafe { *self.place(pc) = known };
    }
}
