//! Tests of the tables: what the operations lead to must be what is used here.

use std::{collections::BTreeMap, fs::File, time::Duration};

use profiler_common::unwind::{
    state::State,
    step,
    table::{row_offset, row_rule},
    x86_64::X86_64,
};
use profiler_image::module_file::ModuleFile;

use super::*;
use crate::native::{CapturedStack, unwind_capture};

const SIZES: TableSizes = TableSizes {
    blocks: 256,
    pages: 512,
};

/// What a kernel would hold after the operations.
#[derive(Default)]
struct Kernel {
    rules: BTreeMap<u16, Rule>,
    blocks: BTreeMap<u16, RowBlock>,
    pages: BTreeMap<PageKey, PageEntry>,
}

impl Kernel {
    fn apply(&mut self, operations: Vec<Operation>) {
        for operation in operations {
            match operation {
                Operation::WriteRule { index, rule } => {
                    self.rules.insert(index, rule);
                }
                Operation::WriteBlock { index, block } => {
                    assert!(usize::from(index) < SIZES.blocks);
                    self.blocks.insert(index, *block);
                }
                Operation::WritePage { key, entry } => {
                    self.pages.insert(key, *entry);
                }
                Operation::DeletePage { key } => {
                    assert!(self.pages.remove(&key).is_some());
                }
            }
        }
    }
}

fn own_code() -> ProcessCode {
    let file = File::open("/proc/self/exe").unwrap();
    let opened = ModuleFile::of_memory(file).unwrap();
    let mapping = CodeMapping {
        start: 0x5500_0000_0000,
        end: 0x5500_4000_0000,
        offset: 0,
        content: Content::File(opened.key),
    };
    ProcessCode {
        mappings: vec![mapping],
        files: vec![opened],
    }
}

fn cache_of_self(sizes: TableSizes, now: Instant) -> (TableCache, Vec<PageKey>) {
    let mut cache = TableCache::new(sizes);
    let mapping = cache.set_process(3, own_code(), now).mappings[1];
    let pages = cache.files.get(mapping.file).unwrap().code_pages();
    let key = |page| PageKey {
        file: mapping.file,
        page,
    };
    (cache, pages.into_iter().map(key).collect())
}

#[test]
fn the_kernel_gets_what_is_used_here() {
    let now = Instant::now();
    let (mut cache, pages) = cache_of_self(SIZES, now);
    let mut kernel = Kernel::default();
    let some = &pages[..pages.len().min(20)];
    for key in some {
        assert_eq!(cache.load(*key, now), Loaded::Now);
        assert_eq!(cache.load(*key, now), Loaded::Already);
    }
    kernel.apply(cache.take_operations());
    assert_eq!(kernel.pages.len(), some.len());
    for (key, entry) in &kernel.pages {
        assert_eq!(cache.page(key), Some(entry));
        for index in entry.blocks {
            let block = cache.block(u32::from(index)).unwrap();
            assert_eq!(kernel.blocks[&index], *block);
            for row in block.rows {
                let rule = cache.rule(row_rule(row)).unwrap();
                let index = u16::try_from(row_rule(row)).unwrap();
                assert_eq!(kernel.rules[&index], *rule);
            }
        }
    }
}

#[test]
fn rows_of_every_offset_are_found_as_in_the_whole_page() {
    let now = Instant::now();
    let (mut cache, pages) = cache_of_self(SIZES, now);
    let key = pages[pages.len() / 2];
    cache.load(key, now);
    let rows = cache.decode(key);
    let entry = *cache.page(&key).unwrap();
    for offset in (0..=u16::MAX).rev().take(3).chain((0..u16::MAX).step_by(7)) {
        use profiler_common::unwind::search::{last_offset_at_most, last_row_at_most};
        let nth = last_offset_at_most(&entry.starts, offset);
        let block = cache.block(u32::from(entry.blocks[nth])).unwrap();
        let found = last_row_at_most(&block.rows, (u32::from(offset) << 16) | 0xffff);
        assert_eq!(Some(block.rows[found]), rows.find(offset), "{offset:#x}");
        assert!(row_offset(block.rows[found]) <= u32::from(offset));
    }
}

#[test]
fn pages_come_and_go_and_blocks_are_not_used_again_at_once() {
    let start = Instant::now();
    let sizes = TableSizes {
        blocks: 24,
        pages: 512,
    };
    let (mut cache, pages) = cache_of_self(sizes, start);
    let mut kernel = Kernel::default();
    let mut freed: BTreeMap<u16, u64> = BTreeMap::new();
    let mut waited = 0;
    for (tick, key) in (0u64..).zip(pages.iter().cycle().take(200)) {
        let now = start + Duration::from_millis(50 * tick);
        waited += u64::from(cache.load(*key, now) == Loaded::Waiting);
        cache.load_waiting(now);
        for operation in cache.take_operations() {
            match &operation {
                Operation::DeletePage { key } => {
                    for index in kernel.pages[key].blocks {
                        freed.insert(index, tick);
                    }
                }
                Operation::WriteBlock { index, .. } => {
                    if let Some(since) = freed.remove(index) {
                        assert!(tick - since >= 20, "rested for {} ticks", tick - since);
                    }
                }
                Operation::WriteRule { .. } | Operation::WritePage { .. } => {}
            }
            kernel.apply(vec![operation]);
        }
        assert!(cache.blocks_used() <= sizes.blocks);
    }
    assert!(cache.counts().evicted > 0);
    assert!(cache.counts().waited <= waited);
    assert_eq!(kernel.pages.len(), cache.pages());
}

#[test]
fn a_page_that_the_kernel_uses_stays_whenever_it_was_loaded() {
    let start = Instant::now();
    let sizes = TableSizes {
        blocks: 24,
        pages: 512,
    };
    let (mut cache, pages) = cache_of_self(sizes, start);
    let own_blocks = |cache: &TableCache, key| cache.pages.get(key).map(|page| page.blocks.clone());
    // One that fits beside the reserve: a larger one has to go whenever it was used.
    let room = sizes.blocks - RESERVE_BLOCKS.min(sizes.blocks / 2);
    let used = pages.iter().find(|key| {
        cache.load(**key, start);
        own_blocks(&cache, key).is_some_and(|blocks| (1..=room).contains(&blocks.len()))
    });
    let used = *used.unwrap();
    for (second, key) in (1u32..).zip(pages.iter().take(100)) {
        let now = start + Duration::from_secs(second.into());
        cache.set_clock(second);
        let mut uses = vec![0; sizes.blocks];
        for index in own_blocks(&cache, &used).expect("it stays") {
            // Later than any page that is loaded in this second.
            uses[usize::from(index)] = second + 1;
        }
        cache.note_uses(&uses);
        cache.load(*key, now);
        cache.load_waiting(now);
    }
    assert!(cache.counts().evicted > 0);
}

#[test]
fn files_without_processes_are_closed_in_time() {
    let now = Instant::now();
    let (mut cache, pages) = cache_of_self(SIZES, now);
    cache.load(pages[0], now);
    cache.remove_process(3, now);
    assert_eq!(cache.pages(), 1, "the next process may map it again");
    assert_eq!(
        cache.set_process(4, own_code(), now).mappings[1].file,
        pages[0].file
    );
    cache.remove_process(4, now);
    // Many other files, which are not ELF files and differ in their sizes.
    for nth in 0..80 {
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, &vec![0; 100 + nth as usize]).unwrap();
        let opened = ModuleFile::of_memory(file).unwrap();
        let code = ProcessCode {
            mappings: Vec::new(),
            files: vec![opened],
        };
        cache.set_process(nth, code, now);
        cache.remove_process(nth, now);
    }
    assert_eq!(cache.pages(), 0);
}

#[test]
fn what_cannot_be_read_has_no_unwind_information() {
    let now = Instant::now();
    let mut cache = TableCache::new(SIZES);
    let mapping = CodeMapping {
        start: 0x1000,
        end: 0x9000,
        offset: 0,
        content: Content::Refused,
    };
    let code = ProcessCode {
        mappings: vec![mapping],
        files: Vec::new(),
    };
    cache.set_process(0, code, now);
    let state = State {
        pc: 0x2000,
        sp: 0x7000,
        ..State::default()
    };
    let stack = CapturedStack {
        start: 0x7000,
        bytes: &[0; 64],
    };
    let unwound = unwind_capture::<X86_64>(&mut cache, state, &stack, now);
    assert_eq!(unwound.frames, [0x2000]);
    assert_eq!(unwound.outcome, step::NO_UNWIND_INFO);
    assert_eq!(
        cache.blocks_used(),
        SHARED.len(),
        "pages without rows share one block"
    );
}

#[test]
fn the_vdso_is_placed_like_a_file() {
    let mut cache = TableCache::new(SIZES);
    let (_, bytes) = profiler_image::vdso_image::own_image().unwrap();
    let vdso = |bytes| ProcessCode {
        mappings: vec![CodeMapping {
            start: 0x7fff_0000_0000,
            end: 0x7fff_0000_0000 + bytes,
            offset: 0,
            content: Content::Vdso,
        }],
        files: Vec::new(),
    };
    let now = Instant::now();
    let own = cache.set_process(0, vdso(bytes), now).mappings[1];
    assert_ne!(own.file, REFUSED);
    cache.load(
        PageKey {
            file: own.file,
            page: 0,
        },
        now,
    );
    assert!(cache.blocks_used() > SHARED.len());
    let other = cache.set_process(1, vdso(bytes * 2), now).mappings[1];
    assert_eq!(other.file, REFUSED);
}
