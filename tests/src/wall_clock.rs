//! The wall clock of one process, set without a hook in its program and without setting that of the machine.
//!
//! Programs read clocks through the vDSO, code that the kernel maps into each process (x86-64 here). In the memory of the one
//! process, its `clock_gettime` is replaced by one that makes the system call and adds what the test asks for to
//! `CLOCK_REALTIME`. What the kernel itself dates, such as files, stays as it is.

use std::{
    fs::{self, File},
    ops::Range,
    os::unix::fs::FileExt as _,
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use object::{Object as _, ObjectSegment as _, ObjectSymbol as _};
use rustix::process::{Pid, Signal, kill_process};

use crate::wait::wait_for;

/// `int clock_gettime(clockid_t clock, struct timespec *time)`, with the arguments in `edi` and `rsi`.
const CODE: [u8; 24] = [
    0xb8, 0xe4, 0x00, 0x00, 0x00, // mov eax, SYS_clock_gettime
    0x0f, 0x05, // syscall
    0x85, 0xff, // test edi, edi: CLOCK_REALTIME is 0
    0x75, 0x0a, // jne to the end
    0x48, 0x8b, 0x0d, 0x06, 0x00, 0x00, 0x00, // mov rcx, the seconds behind this code
    0x48, 0x01, 0x0e, // add [rsi], rcx
    0xc3, // ret
    0x90, 0x90, // up to a multiple of 8
];
const SECONDS_AT: u64 = CODE.len() as u64;
/// The code and its seconds.
const ROOM: u64 = SECONDS_AT + 8;
/// A jump of five bytes: this and the distance from its end.
const JUMP: u8 = 0xe9;
const JUMP_BYTES: u64 = 5;
/// Signals reach threads that run within microseconds.
const STOPS_WITHIN: Duration = Duration::from_millis(1);
const LIMIT: Duration = Duration::from_secs(10);

/// The wall clock of a process, as far as it is moved against that of the machine.
#[derive(Debug)]
pub struct WallClock {
    memory: File,
    seconds_at: u64,
}

impl WallClock {
    /// Takes over the clock of a running process, not moved yet. Needs root. Stops the process for some milliseconds.
    pub fn of(pid: u32) -> Result<Self> {
        let path = format!("/proc/{pid}/mem");
        let memory = File::options().read(true).write(true).open(&path);
        let memory = memory.with_context(|| format!("open {path}"))?;
        let vdso = vdso(pid)?;
        let mut image = vec![0; usize::try_from(vdso.end - vdso.start)?];
        memory
            .read_exact_at(&mut image, vdso.start)
            .context("read the vDSO")?;
        let image = Image::read(&image)?;
        let function = vdso.start + image.clock_gettime;
        let code = vdso.end - ROOM;
        ensure!(
            vdso.start + image.bytes <= code,
            "no room behind the code of the vDSO"
        );
        let clock = Self {
            memory,
            seconds_at: code + SECONDS_AT,
        };
        clock.write(&CODE, code)?;
        clock.move_by(0)?;
        let distance = i32::try_from(code - (function + JUMP_BYTES))?;
        let jump = [&[JUMP][..], &distance.to_le_bytes()].concat();
        while_stopped_outside(pid, &vdso, || clock.write(&jump, function))?;
        Ok(clock)
    }

    /// Moves it so far from that of the machine, at once.
    pub fn move_by(&self, seconds: i64) -> Result<()> {
        self.write(&seconds.to_le_bytes(), self.seconds_at)
    }

    fn write(&self, bytes: &[u8], address: u64) -> Result<()> {
        let written = self.memory.write_all_at(bytes, address);
        written.with_context(|| format!("write to the memory of the process at {address:#x}"))
    }
}

/// Where the vDSO is mapped.
fn vdso(pid: u32) -> Result<Range<u64>> {
    let path = format!("/proc/{pid}/maps");
    let maps = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"));
    let range = line.and_then(|line| line.split_once(' ')?.0.split_once('-'));
    let (start, end) = range.with_context(|| format!("no vDSO in {path}"))?;
    Ok(u64::from_str_radix(start, 16)?..u64::from_str_radix(end, 16)?)
}

/// What of the vDSO matters, as distances from its beginning: it is linked to address 0.
struct Image {
    clock_gettime: u64,
    /// Where what is used of it ends.
    bytes: u64,
}

impl Image {
    fn read(image: &[u8]) -> Result<Self> {
        let file = object::File::parse(image).context("parse the vDSO")?;
        let ends = file
            .segments()
            .map(|segment| segment.address() + segment.size());
        let symbol = file
            .dynamic_symbols()
            .find(|symbol| symbol.name() == Ok("__vdso_clock_gettime"))
            .context("a vDSO without clock_gettime")?;
        ensure!(symbol.size() >= JUMP_BYTES, "no room for a jump");
        Ok(Self {
            clock_gettime: symbol.address(),
            bytes: ends.max().context("a vDSO without segments")?,
        })
    }
}

/// Writes while the process is stopped and none of its threads is in the code that changes.
fn while_stopped_outside(
    pid: u32,
    code: &Range<u64>,
    write: impl Fn() -> Result<()>,
) -> Result<()> {
    let process = Pid::from_raw(i32::try_from(pid)?).context("a pid of 0")?;
    let attempt = || -> Result<Option<()>> {
        kill_process(process, Signal::STOP)?;
        thread::sleep(STOPS_WITHIN);
        let is_outside = all_stand_outside(pid, code).unwrap_or(false);
        let written = if is_outside { write() } else { Ok(()) };
        kill_process(process, Signal::CONT)?;
        written.map(|()| is_outside.then_some(()))
    };
    let what = "a process stopped outside of its vDSO";
    wait_for(what, LIMIT, || attempt().transpose())?
}

/// Whether each thread is stopped, at an instruction outside of this code; `None` when one ended meanwhile.
fn all_stand_outside(pid: u32, code: &Range<u64>) -> Option<bool> {
    for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()? {
        // `running`, or numbers of which the last is the address of the next instruction.
        let state = fs::read_to_string(thread.ok()?.path().join("syscall")).ok()?;
        let address = state.trim_end().rsplit_once(" 0x")?.1;
        if code.contains(&u64::from_str_radix(address, 16).ok()?) {
            return Some(false);
        }
    }
    Some(true)
}
