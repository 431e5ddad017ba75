//! The whole way on a real process: its mappings, its files, and the stack of a sleeping thread.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt as _,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use profiler_common::unwind::{state::State, step, x86_64::X86_64};

use super::{ProcessCode, StackMemory, TableCache, TableSizes, unwind_capture};

const LIMIT: u64 = 1 << 30;

struct Sleeping(Child);

impl Drop for Sleeping {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Sleeping {
    /// Tables that know its code, and its memory.
    fn in_slot(&self, slot: u32, now: Instant) -> (TableCache, ProcessMemory) {
        let mut tables = TableCache::new(TableSizes {
            blocks: 512,
            pages: 512,
        });
        let code = ProcessCode::read(self.0.id(), LIMIT).expect("its mappings");
        tables.set_process(slot, code, now);
        let memory = File::open(format!("/proc/{}/mem", self.0.id())).expect("memory");
        (tables, ProcessMemory(memory))
    }

    /// Starts a program that sleeps, and waits until it does.
    fn start() -> Self {
        let child = Command::new("sleep")
            .arg("1000")
            .stdin(Stdio::null())
            .spawn();
        let sleeping = Self(child.expect("sleep"));
        let deadline = Instant::now() + Duration::from_secs(30);
        while !sleeping.syscall().starts_with("230 ") {
            assert!(Instant::now() < deadline, "it never called clock_nanosleep");
            std::thread::yield_now();
        }
        sleeping
    }

    /// Number, arguments, stack pointer and program counter of its system call.
    fn syscall(&self) -> String {
        fs::read_to_string(format!("/proc/{}/syscall", self.0.id())).unwrap_or_default()
    }

    fn state(&self) -> State {
        let text = self.syscall();
        let mut fields = text.split_whitespace().rev();
        let mut number = || {
            let field = fields.next().expect("a field").trim_start_matches("0x");
            u64::from_str_radix(field, 16).expect("a number")
        };
        let (pc, sp) = (number(), number());
        State {
            pc,
            sp,
            ..State::default()
        }
    }
}

struct ProcessMemory(File);

impl StackMemory for ProcessMemory {
    fn word(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, address).ok()?;
        Some(u64::from_le_bytes(bytes))
    }
}

#[test]
fn a_sleeping_process_is_unwound_to_its_start() {
    let sleeping = Sleeping::start();
    let now = Instant::now();
    let (mut tables, memory) = sleeping.in_slot(5, now);
    let state = State {
        slot: 5,
        ..sleeping.state()
    };
    let unwound = unwind_capture::<X86_64>(&mut tables, state, &memory, now);
    assert_eq!(unwound.outcome, step::COMPLETE, "{unwound:x?}");
    // clock_nanosleep, nanosleep, some functions of sleep, __libc_start_main, _start.
    assert!(unwound.frames.len() >= 5, "{unwound:x?}");
    assert_eq!(unwound.elided, 0);
    assert!(tables.counts().loaded >= 2);
    // The second time everything is there.
    let loaded = tables.counts().loaded;
    assert_eq!(
        unwind_capture::<X86_64>(&mut tables, state, &memory, now),
        unwound
    );
    assert_eq!(tables.counts().loaded, loaded);
}

#[test]
fn small_files_are_loaded_wholly() {
    let sleeping = Sleeping::start();
    let now = Instant::now();
    let (mut tables, memory) = sleeping.in_slot(0, now);
    tables.load_small_files(0, 64, now);
    let loaded = tables.counts().loaded;
    assert!(loaded > 20, "sleep, libc, ld.so and the vDSO");
    let unwound = unwind_capture::<X86_64>(&mut tables, sleeping.state(), &memory, now);
    assert_eq!(unwound.outcome, step::COMPLETE, "{unwound:x?}");
    assert_eq!(tables.counts().loaded, loaded, "no page was missing");
}
