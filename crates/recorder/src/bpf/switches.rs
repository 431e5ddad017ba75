//! The programs that measure waits, and their tables.

use aya::{
    Btf,
    maps::{Array, MapError},
    programs::tp_btf::BtfTracePointLink,
};
use profiler_common::{
    contention::{ContentionKey, Runs},
    header::read_pod,
    limits::MARKS,
    off_cpu::{MODE_SAMPLED, SWITCH_UNKNOWN, Wait, WaitValue},
    on_cpu::CountKey,
    wakers::WokenKey,
};

use super::{
    load_error::LoadError,
    loaded_object::LoadedObject,
    programs::{Group, ProgramRow, programs_of, row},
};

/// The program that depends on the arguments of its hook.
const SWITCH: &ProgramRow = row("off_cpu_switch");

/// What is measured at switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measured {
    Waits,
    /// And the time between them.
    WaitsAndSlices,
}

impl Measured {
    /// The groups of programs that it takes.
    fn groups(self) -> &'static [Group] {
        match self {
            Self::Waits => &[Group::Waits],
            Self::WaitsAndSlices => &[Group::Slices, Group::Waits],
        }
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
        self.allow_group(Group::Waits)?;
        if arguments == SWITCH_UNKNOWN {
            return Err(LoadError::Switch(SWITCH.name));
        }
        for row in programs_of(measured.groups()) {
            self.load_tracepoint(row, btf)?;
        }
        // Without it, threads that sleep at the end have no kernel stack; the end will say so.
        if let Err(error) = self.load_sleepers(btf) {
            tracing::warn!(%error, "sleeping threads are not visited");
        }
        Ok(())
    }

    pub(super) fn load_wakers(&mut self, btf: &Btf) -> Result<(), LoadError> {
        self.allow_group(Group::Wakers)?;
        for row in programs_of(&[Group::Wakers]) {
            self.load_tracepoint(row, btf)?;
        }
        Ok(())
    }

    /// Whether waits are counted with who ended them.
    pub fn knows_wakers(&self) -> bool {
        self.knows_wakers
    }

    /// Counts no wait for itself from now on.
    pub fn sample_waits(&mut self) -> Result<(), LoadError> {
        self.set_number("WAIT_MODE", 0, MODE_SAMPLED)
    }

    /// Makes the programs of switches and connections look a process up.
    pub(super) fn mark_process(&mut self, pid: u32) -> Result<(), LoadError> {
        // Other objects have one mark only, and do not read it.
        if self.marks_processes() {
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
        let wakers: &[Group] = if self.knows_wakers {
            &[Group::Wakers]
        } else {
            &[]
        };
        for row in programs_of(&[wakers, measured.groups()].concat()) {
            links.push(self.attach_tracepoint(row)?);
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

    /// Nanoseconds for which a thread waited for a CPU and somebody else had it, of waits that ended in epochs with this
    /// parity.
    pub fn drain_contention(
        &self,
        epoch: u64,
        visit: impl FnMut(ContentionKey, u64),
    ) -> Result<usize, LoadError> {
        self.drain_epoch(epoch, ["CONTENTION_EVEN", "CONTENTION_ODD"], visit)
    }

    /// The last runs of each CPU, by its number.
    pub fn runs(&self) -> Result<Vec<Runs>, LoadError> {
        const MAP: &str = "RUNS";
        let failed = |source: MapError| LoadError::Map {
            map: MAP,
            source: source.into(),
        };
        let table: Array<_, [u8; size_of::<Runs>()]> =
            Array::try_from(self.map(MAP)?).map_err(failed)?;
        let runs = table.iter().map(|bytes| {
            let bytes = bytes.map_err(failed)?;
            // The array is as large as the structure.
            read_pod(&bytes).ok_or(LoadError::NoMap(MAP))
        });
        runs.collect()
    }

    /// Threads that have left a CPU at least once, with their last wait.
    pub fn waits(&self) -> Result<Vec<Wait>, LoadError> {
        let mut waits = Vec::new();
        self.read_map("WAITS", |_thread: u32, wait| waits.push(wait))?;
        Ok(waits)
    }
}
