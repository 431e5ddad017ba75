//! The programs that measure waits, and their tables.

use aya::{Btf, programs::tp_btf::BtfTracePointLink};
use profiler_common::{
    limits::MARKS,
    off_cpu::{MODE_SAMPLED, SWITCH_UNKNOWN, Wait, WaitValue},
    on_cpu::CountKey,
    wakers::WokenKey,
};

use super::{load_error::LoadError, loader::LoadedObject};

/// The programs with the kernel's name of their hook. The wake-up comes first, so that no wait is
/// seen to begin whose wake-up would be missed.
const SWITCH_PROGRAMS: [(&str, &str); 2] = [
    ("off_cpu_wakeup", "sched_wakeup"),
    ("off_cpu_switch", "sched_switch"),
];

/// The program that measures time on the CPU as well. It comes before the one that takes stacks,
/// whose time is then no time of the thread that leaves.
const SLICE_PROGRAM: (&str, &str) = ("wall_switch", "sched_switch");

/// The program that looks at who wakes others.
const WAKERS_PROGRAM: (&str, &str) = ("wakers_waking", "sched_waking");

/// What is measured at switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measured {
    Waits,
    /// And the time between them.
    WaitsAndSlices,
}

impl Measured {
    /// The programs that it takes, in the order in which they are attached.
    fn programs(self) -> Vec<(&'static str, &'static str)> {
        let slices = (self == Self::WaitsAndSlices).then_some(SLICE_PROGRAM);
        slices.into_iter().chain(SWITCH_PROGRAMS).collect()
    }
}

/// Attached programs; detached when dropped.
#[derive(Debug)]
pub struct Switches {
    links: Vec<BtfTracePointLink>,
}

impl Switches {
    pub fn detach(&mut self) {
        self.links.clear();
    }
}

impl LoadedObject {
    pub(super) fn load_switches(
        &mut self,
        measured: Measured,
        arguments: u32,
        btf: &Btf,
    ) -> Result<(), LoadError> {
        self.allow("off_cpu")?;
        if arguments == SWITCH_UNKNOWN {
            return Err(LoadError::Switch("off_cpu_switch"));
        }
        for (program, hook) in measured.programs() {
            self.allow_in_scheduler(program)?;
            self.load_tracepoint(program, hook, btf)?;
        }
        // Without it, threads that sleep at the end have no kernel stack; the end will say so.
        if let Err(error) = self.load_sleepers(btf) {
            tracing::warn!(%error, "sleeping threads are not visited");
        }
        Ok(())
    }

    pub(super) fn load_wakers(&mut self, btf: &Btf) -> Result<(), LoadError> {
        self.allow("wakers")?;
        let (program, hook) = WAKERS_PROGRAM;
        self.allow_in_scheduler(program)?;
        self.load_tracepoint(program, hook, btf).map(drop)
    }

    /// Whether waits are counted with who ended them.
    pub fn knows_wakers(&self) -> bool {
        self.knows_wakers
    }

    /// Counts no wait for itself from now on.
    pub fn sample_waits(&mut self) -> Result<(), LoadError> {
        self.set_number("WAIT_MODE", 0, MODE_SAMPLED)
    }

    /// Makes the scheduler's programs look a process up.
    pub(super) fn mark_process(&mut self, pid: u32) -> Result<(), LoadError> {
        // Objects that measure no waits have one mark only, and do not read it.
        if self.measures_waits() {
            self.set_number("PROCESS_MARKS", pid & (MARKS - 1), 1)
        } else {
            Ok(())
        }
    }

    /// Starts measuring; the object was loaded for it.
    pub fn attach_switches(&mut self, measured: Measured) -> Result<Switches, LoadError> {
        if let Some(error) = self.take_switches_failure() {
            return Err(error);
        }
        let mut links = Vec::new();
        // Wakers come first, for the same reason as wake-ups.
        let wakers = self.knows_wakers.then_some(WAKERS_PROGRAM);
        for (name, _hook) in wakers.into_iter().chain(measured.programs()) {
            links.push(self.attach_tracepoint(name)?);
        }
        Ok(Switches { links })
    }

    /// Empties the counting table of waits that ended in epochs with this parity.
    pub fn drain_waits(
        &self,
        epoch: u64,
        visit: impl FnMut(CountKey, WaitValue),
    ) -> Result<usize, LoadError> {
        self.drain_epoch(epoch, ["WAITED_EVEN", "WAITED_ODD"], visit)
    }

    /// The same, of the waits whose waker was seen.
    pub fn drain_woken(
        &self,
        epoch: u64,
        visit: impl FnMut(WokenKey, WaitValue),
    ) -> Result<usize, LoadError> {
        self.drain_epoch(epoch, ["WOKEN_EVEN", "WOKEN_ODD"], visit)
    }

    /// Threads that have left a CPU at least once, with their last wait.
    pub fn waits(&self) -> Result<Vec<Wait>, LoadError> {
        let mut waits = Vec::new();
        self.read_map("WAITS", |_thread: u32, wait| waits.push(wait))?;
        Ok(waits)
    }
}
