//! What the verifier makes of every program, without profiling anything.

use std::time::Duration;

use profiler_common::config::{FILTER_CGROUPS, ProbeConfig, UNWIND_TABLES};
use profiler_model::Clock;

use super::{
    load_error::LoadError,
    loaded_object::{LoadedObject, MapReport, ProgramReport},
    loader::ObjectRequest,
    network_offsets::CHECK_NAMESPACE,
    object::embedded_programs,
    perf::{Sampler, Sampling},
    programs::find,
    sizes::Counting,
};

/// Loads every program once, without sampling, and says what the verifier made of each.
///
/// The globals are those of the widest paths (a nested PID namespace, a cgroup filter), so that the
/// verified instructions are the most that any task needs.
pub fn check_programs(denied: &[String]) -> Result<Checked, LoadError> {
    let (mut object, failures) = LoadedObject::load(&check_request(denied))?;
    let samplers = Sampler::ALL.map(|sampler| object.load_sampler(sampler).err());
    let switches = object.take_switches_failure();
    let asleep = object.take_asleep_failure();
    let event_loop = object.take_event_loop_failure();
    let mut reports = object.programs();
    // A hook that this kernel does not have is no refusal.
    let network = object
        .take_network()
        .failures
        .into_iter()
        .filter(|failure| !matches!(failure, LoadError::NoHook { .. }));
    let others = samplers
        .into_iter()
        .flatten()
        .chain(switches)
        .chain(asleep)
        .chain(event_loop)
        .chain(network);
    for failure in failures.into_iter().chain(others) {
        let name = failure.program().unwrap_or("object");
        reports.push(refused(name, failure.to_string()));
    }
    let names = embedded_programs()?;
    for name in names.iter().filter(|name| find(name).is_none()) {
        reports.push(refused(name, NO_ROW.to_owned()));
    }
    Ok(Checked {
        programs: reports,
        maps: object.maps(),
    })
}

/// What is said of a program that nothing would load.
const NO_ROW: &str = "the table of programs has no row for it";

fn refused(name: &str, error: String) -> ProgramReport {
    ProgramReport {
        name: name.to_owned(),
        verified_instructions: None,
        load_time: Duration::ZERO,
        run_count: 0,
        run_time: Duration::ZERO,
        error: Some(error),
    }
}

/// What [`check_programs`] found.
#[derive(Debug, Default)]
pub struct Checked {
    pub programs: Vec<ProgramReport>,
    /// Of the largest object that there is on this machine, without the tables of samples and connections.
    pub maps: Vec<MapReport>,
}

/// An object with the sampling program loaded, for checks.
fn load_for_check(denied: &[String]) -> Result<LoadedObject, LoadError> {
    let (mut object, _failures) = LoadedObject::load(&check_request(denied))?;
    object.load_sampler(Sampler::OnCpu)?;
    Ok(object)
}

fn check_request(denied: &[String]) -> ObjectRequest {
    ObjectRequest {
        config: ProbeConfig {
            filter: FILTER_CGROUPS,
            pid_namespace_inum: CHECK_NAMESPACE,
            bucket_ns: 1,
            buckets_per_epoch: 1,
            unwind: UNWIND_TABLES,
            wakers: 1,
            stall_ns: 1,
            ..ProbeConfig::default()
        },
        v1_controller: None,
        counting: Counting::Everything(64),
        denied: denied.to_vec(),
    }
}

/// Which sampling clock this machine offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClockCheck {
    Cycles,
    CpuClock { cycles_error: String },
    None { error: String },
}

/// Attaches the sampling program for a moment with each clock in turn.
pub fn check_clock(denied: &[String]) -> ClockCheck {
    let mut object = match load_for_check(denied) {
        Ok(object) => object,
        Err(error) => {
            return ClockCheck::None {
                error: error.to_string(),
            };
        }
    };
    let mut attach = |clock| Sampling::try_clock(object.ebpf(), clock);
    let cycles = if denied.iter().any(|name| name == "cycles") {
        Err(LoadError::Denied("cycles"))
    } else {
        attach(Clock::Cycles)
    };
    match cycles {
        Ok(()) => ClockCheck::Cycles,
        Err(cycles) => match attach(Clock::CpuClock) {
            Ok(()) => ClockCheck::CpuClock {
                cycles_error: cycles.to_string(),
            },
            Err(error) => ClockCheck::None {
                error: error.to_string(),
            },
        },
    }
}
