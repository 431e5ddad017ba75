//! The sampling clock: one perf event on each online CPU.

use std::{
    collections::BTreeMap,
    os::fd::AsFd as _,
    time::{Duration, Instant},
};

use aya::{
    Ebpf,
    programs::{PerfEvent as SamplingProgram, Program, ProgramError},
};
use profiler_model::{Clock, float};

use super::{
    features::online_cpus,
    load_error::LoadError,
    loaded_object::LoadedObject,
    perf_event::{EventKind, PerfEvent},
    programs::{ProgramRow, row},
};

/// Rates vary by this part of the one that was asked for, in both directions. The narrower, the longer the clock keeps step with a
/// program (docs/sampling.md).
const SPREAD: f64 = 0.3;
/// A period is in force for this long, and for as many ticks.
const IN_FORCE: Duration = Duration::from_millis(100);
const TICKS_IN_FORCE: u32 = 8;
/// 2^64 by the golden ratio: its multiples, modulo 2^64, are spread evenly however many there are (Knuth, The Art of Computer
/// Programming, volume 3, 6.4, theorem S).
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

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
///
/// cpu-clock ticks on a grid, and a program that does something every ten milliseconds would be met at the same places again
/// and again. So its period varies, differently on each CPU.
#[derive(Debug)]
pub struct Sampling {
    sampler: Sampler,
    clock: Clock,
    frequency_hz: u32,
    events: BTreeMap<u32, Ticking>,
    changed: Instant,
}

/// The clock of a CPU.
#[derive(Debug)]
struct Ticking {
    event: PerfEvent,
    periods: Periods,
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
            let mut sampling = Self::new(sampler, *clock, frequency_hz);
            match sampling.attach_cpus(ebpf) {
                Ok(()) => return Ok(sampling),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or(LoadError::NoProgram(sampler.program().name)))
    }

    fn new(sampler: Sampler, clock: Clock, frequency_hz: u32) -> Self {
        Self {
            sampler,
            clock,
            frequency_hz,
            events: BTreeMap::new(),
            changed: Instant::now(),
        }
    }

    /// Attaches CPUs that came online since, and forgets those that went: the kernel removes the event
    /// of a CPU that goes offline, and does not bring it back with the CPU. A CPU that was away only
    /// between two calls is not noticed.
    pub(super) fn attach_cpus(&mut self, ebpf: &mut Ebpf) -> Result<(), LoadError> {
        let name = self.sampler.program().name;
        let failed = |source: ProgramError| LoadError::Attach {
            program: name,
            source: source.into(),
        };
        let program = program(ebpf, name)?.fd().map_err(failed)?.as_fd();
        let online = online_cpus();
        self.events.retain(|cpu, _event| online.contains(cpu));
        for cpu in online {
            if self.events.contains_key(&cpu) {
                continue;
            }
            let mut periods = Periods::new(self.frequency_hz);
            let kind = match self.clock {
                Clock::Cycles => EventKind::Cycles {
                    frequency_hz: u64::from(self.frequency_hz),
                },
                // A period in nanoseconds: exact, and free of the sysctl perf_event_max_sample_rate.
                // Nothing samples by switches; the software clock is what is always there.
                Clock::CpuClock | Clock::Switches | Clock::Wall | Clock::Unknown => {
                    EventKind::CpuClock {
                        period_ns: periods.next(in_force(self.frequency_hz)),
                    }
                }
            };
            let event = PerfEvent::attach(kind, cpu, program)
                .map_err(|source| failed(ProgramError::SyscallError(source)))?;
            self.events.insert(cpu, Ticking { event, periods });
        }
        Ok(())
    }

    /// Gives each CPU another period from time to time; to be called about every 50 ms.
    pub fn vary(&mut self, now: Instant) {
        let lasted = now.duration_since(self.changed);
        if self.clock == Clock::Cycles || lasted < in_force(self.frequency_hz) {
            return;
        }
        self.changed = now;
        for (cpu, Ticking { event, periods }) in &mut self.events {
            // That of before stays in force: as good but for programs that keep step with it.
            if let Err(error) = event.set_period(periods.next(lasted)) {
                tracing::debug!(cpu, %error, "change the period of the sampling clock");
            }
        }
    }

    /// Detaches; afterwards the program runs no more.
    pub fn stop(&mut self) {
        self.events.clear();
    }

    /// Attaches with a clock for a moment.
    pub(super) fn try_clock(ebpf: &mut Ebpf, clock: Clock) -> Result<(), LoadError> {
        Self::new(Sampler::OnCpu, clock, 99).attach_cpus(ebpf)
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

/// Periods of one CPU's clock, one after the other.
#[derive(Debug)]
struct Periods {
    frequency_hz: u32,
    /// In the range of rates, as a part of 2^64.
    place: u64,
}

impl Periods {
    fn new(frequency_hz: u32) -> Self {
        let mut place = [0; 8];
        if let Err(error) = getrandom::fill(&mut place) {
            // What is profiled cannot know the moments of the changes either.
            tracing::debug!(%error, "no random start of the sampling clock");
        }
        Self {
            frequency_hz,
            place: u64::from_ne_bytes(place),
        }
    }

    /// A period that will last as long as the one before. Each tick stands for the period that was asked for, since the rates
    /// are that on average: they are spread evenly around it, and the half of a tick that each change loses on average is
    /// made good.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float cast to u64 saturates, and the number is positive"
    )]
    fn next(&mut self, lasts: Duration) -> u64 {
        self.place = self.place.wrapping_add(GOLDEN);
        let place = 2.0 * float(self.place) / float(u64::MAX) - 1.0;
        let asked = f64::from(self.frequency_hz.max(1)) * (1.0 + SPREAD * place);
        let lost = 0.5 / lasts.as_secs_f64();
        (1e9 / (asked + lost)) as u64
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
        let program: &mut SamplingProgram = program.try_into().map_err(failed)?;
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
}

/// Time for which a period is in force.
fn in_force(frequency_hz: u32) -> Duration {
    IN_FORCE.max(TICKS_IN_FORCE * Duration::from_nanos(period_ns(frequency_hz)))
}

fn period_ns(frequency_hz: u32) -> u64 {
    1_000_000_000 / u64::from(frequency_hz.max(1))
}

fn program<'a>(
    ebpf: &'a mut Ebpf,
    name: &'static str,
) -> Result<&'a mut SamplingProgram, LoadError> {
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

    /// Where nothing is lost the mean of the rates is what was asked for, and each third of the range has its part.
    #[test]
    fn rates_are_spread_evenly_around_the_one_that_was_asked_for() {
        for hz in [1_u32, 99, 199, 1000, 4999] {
            let mut periods = Periods::new(hz);
            let mut rate = || 1e9 / float(periods.next(Duration::MAX)) / f64::from(hz);
            let all: Vec<f64> = (0..3000).map(|_| rate()).collect();
            assert!(all.iter().all(|part| (0.699..1.301).contains(part)));
            let mean = all.iter().sum::<f64>() / 3000.0;
            assert!((mean - 1.0).abs() < 0.002, "{hz} Hz: {mean}");
            for (low, high) in [(0.6, 0.9), (0.9, 1.1), (1.1, 1.4)] {
                let inside = all.iter().filter(|part| (low..high).contains(*part));
                let inside = inside.count();
                assert!((980..=1020).contains(&inside), "{hz} Hz: {inside}");
            }
        }
    }

    /// Ticks of a clock whose period changes now and then, by a simulation.
    #[test]
    fn as_many_ticks_come_as_were_asked_for() {
        for hz in [99_u32, 999] {
            let mut periods = Periods::new(hz);
            let lasts = Duration::from_millis(117);
            let ticks: u64 = (0..1000)
                .map(|_| {
                    let whole = u64::try_from(lasts.as_nanos()).unwrap();
                    whole / periods.next(lasts)
                })
                .sum();
            let asked = f64::from(hz) * 1000.0 * lasts.as_secs_f64();
            let part = float(ticks) / asked;
            assert!((part - 1.0).abs() < 0.005, "{hz} Hz: {part}");
        }
    }
}
