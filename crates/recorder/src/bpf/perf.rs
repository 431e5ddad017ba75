//! The sampling clock: one perf event on each online CPU.

use std::{collections::BTreeMap, time::Instant};

use aya::{
    Ebpf,
    programs::{
        PerfEvent, Program, ProgramError,
        perf_event::{
            HardwareEvent, PerfEventConfig, PerfEventLinkId, PerfEventScope, SamplePolicy,
            SoftwareEvent,
        },
    },
};
use profiler_model::Clock;

use super::{
    features::online_cpus,
    load_error::LoadError,
    loaded_object::LoadedObject,
    programs::{ProgramRow, row},
};

/// Which clocks may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockChoice {
    /// Hardware cycles where they exist, else cpu-clock.
    Best,
    /// cpu-clock only.
    CpuClock,
}

/// Which program samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampler {
    /// It counts samples.
    OnCpu,
    /// It gives them the time that was measured at switches.
    Wall,
}

impl Sampler {
    pub(super) const ALL: [Self; 2] = [Self::OnCpu, Self::Wall];

    pub(super) fn program(self) -> &'static ProgramRow {
        const ON_CPU: &ProgramRow = row("on_cpu");
        const WALL: &ProgramRow = row("wall_sample");
        match self {
            Self::OnCpu => ON_CPU,
            Self::Wall => WALL,
        }
    }
}

/// Attached perf events. Dropping the object detaches them.
#[derive(Debug)]
pub struct Sampling {
    sampler: Sampler,
    clock: Clock,
    frequency_hz: u32,
    links: BTreeMap<u32, PerfEventLinkId>,
}

impl Sampling {
    /// Attaches the program on every online CPU. With [`ClockChoice::Best`] a machine without a
    /// cycle counter falls back to cpu-clock; the clock in use is in the result.
    pub(super) fn attach(
        ebpf: &mut Ebpf,
        sampler: Sampler,
        choice: ClockChoice,
        frequency_hz: u32,
    ) -> Result<Self, LoadError> {
        let clocks: &[Clock] = match choice {
            ClockChoice::Best => &[Clock::Cycles, Clock::CpuClock],
            ClockChoice::CpuClock => &[Clock::CpuClock],
        };
        let mut last = None;
        for clock in clocks {
            let mut sampling = Self {
                sampler,
                clock: *clock,
                frequency_hz,
                links: BTreeMap::new(),
            };
            match sampling.attach_cpus(ebpf) {
                Ok(()) => return Ok(sampling),
                Err(error) => {
                    sampling.detach(ebpf);
                    last = Some(error);
                }
            }
        }
        Err(last.unwrap_or(LoadError::NoProgram(sampler.program().name)))
    }

    /// Attaches CPUs that came online since, and forgets those that went: the kernel removes the event
    /// of a CPU that goes offline, and does not bring it back with the CPU. A CPU that was away only
    /// between two calls is not noticed.
    pub(super) fn attach_cpus(&mut self, ebpf: &mut Ebpf) -> Result<(), LoadError> {
        let (config, policy) = match self.clock {
            Clock::Cycles => (
                PerfEventConfig::Hardware(HardwareEvent::CpuCycles),
                SamplePolicy::Frequency(u64::from(self.frequency_hz)),
            ),
            // A period in nanoseconds: exact, and free of the sysctl perf_event_max_sample_rate.
            // Nothing samples by switches; the software clock is what is always there.
            Clock::CpuClock | Clock::Switches | Clock::Wall | Clock::Unknown => (
                PerfEventConfig::Software(SoftwareEvent::CpuClock),
                SamplePolicy::Period(period_ns(self.frequency_hz)),
            ),
        };
        let name = self.sampler.program().name;
        let program = program(ebpf, name)?;
        let online = online_cpus();
        for (_cpu, link) in take_gone(&mut self.links, &online) {
            if let Err(error) = program.detach(link) {
                tracing::debug!(%error, "detach the perf event of a CPU that is offline");
            }
        }
        for cpu in online {
            if self.links.contains_key(&cpu) {
                continue;
            }
            let scope = PerfEventScope::AllProcessesOneCpu { cpu };
            let link = program
                .attach(config, scope, policy, false)
                .map_err(|source| LoadError::Attach {
                    program: name,
                    source: source.into(),
                })?;
            self.links.insert(cpu, link);
        }
        Ok(())
    }

    /// Detaches; afterwards the program runs no more.
    pub(super) fn detach(&mut self, ebpf: &mut Ebpf) {
        let links = std::mem::take(&mut self.links);
        if let Ok(program) = program(ebpf, self.sampler.program().name) {
            for link in links.into_values() {
                if let Err(error) = program.detach(link) {
                    tracing::debug!(%error, "detach perf event");
                }
            }
        }
    }

    /// Attaches with a clock for a moment.
    pub(super) fn try_clock(ebpf: &mut Ebpf, clock: Clock) -> Result<(), LoadError> {
        let mut sampling = Self {
            sampler: Sampler::OnCpu,
            clock,
            frequency_hz: 99,
            links: BTreeMap::new(),
        };
        let attached = sampling.attach_cpus(ebpf);
        sampling.detach(ebpf);
        attached
    }

    pub fn clock(&self) -> Clock {
        self.clock
    }

    pub fn frequency_hz(&self) -> u32 {
        self.frequency_hz
    }

    /// Time that one sample stands for.
    pub fn period_ns(&self) -> u64 {
        period_ns(self.frequency_hz)
    }
}

impl LoadedObject {
    /// Loads a sampling program; call once, before [`Self::sample`].
    pub fn load_sampler(&mut self, sampler: Sampler) -> Result<(), LoadError> {
        let row = sampler.program();
        self.allow_group(row.group)?;
        self.allow_program(row)?;
        let name = row.name;
        let program = self
            .ebpf()
            .program_mut(name)
            .ok_or(LoadError::NoProgram(name))?;
        let failed = |source: ProgramError| LoadError::Program {
            program: name,
            source: source.into(),
        };
        let program: &mut PerfEvent = program.try_into().map_err(failed)?;
        let began = Instant::now();
        program.load().map_err(failed)?;
        self.note_load_time(name, began.elapsed());
        Ok(())
    }

    /// Starts the sampling clock.
    pub fn sample(&mut self, sampler: Sampler, frequency_hz: u32) -> Result<Sampling, LoadError> {
        let choice = if self.allow("cycles").is_err() {
            ClockChoice::CpuClock
        } else {
            ClockChoice::Best
        };
        Sampling::attach(self.ebpf(), sampler, choice, frequency_hz)
    }

    /// Follows CPUs that came online.
    pub fn follow_cpus(&mut self, sampling: &mut Sampling) -> Result<(), LoadError> {
        sampling.attach_cpus(self.ebpf())
    }

    pub fn stop_sampling(&mut self, sampling: &mut Sampling) {
        sampling.detach(self.ebpf());
    }
}

/// Takes out what belongs to CPUs that are not online.
fn take_gone<T>(attached: &mut BTreeMap<u32, T>, online: &[u32]) -> BTreeMap<u32, T> {
    let (kept, gone) = std::mem::take(attached)
        .into_iter()
        .partition(|(cpu, _)| online.contains(cpu));
    *attached = kept;
    gone
}

fn period_ns(frequency_hz: u32) -> u64 {
    1_000_000_000 / u64::from(frequency_hz.max(1))
}

fn program<'a>(ebpf: &'a mut Ebpf, name: &'static str) -> Result<&'a mut PerfEvent, LoadError> {
    let program: &mut Program = ebpf.program_mut(name).ok_or(LoadError::NoProgram(name))?;
    program
        .try_into()
        .map_err(|source: ProgramError| LoadError::Attach {
            program: name,
            source: source.into(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_went_offline_is_attached_anew_when_it_is_back() {
        let mut attached = BTreeMap::from([(0, "first"), (1, "second")]);
        assert_eq!(take_gone(&mut attached, &[0, 1]), BTreeMap::new());
        assert_eq!(
            take_gone(&mut attached, &[0]),
            BTreeMap::from([(1, "second")])
        );
        assert_eq!(attached, BTreeMap::from([(0, "first")]));
    }
}
