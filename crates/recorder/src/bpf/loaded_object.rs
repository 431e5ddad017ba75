//! A loaded object: its maps and programs, as every part of this folder uses them.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use aya::{
    Btf, Ebpf,
    maps::{Array, HashMap, Map, MapData, MapError, RingBuf},
    programs::{BtfTracePoint, Program, ProgramError, tp_btf::BtfTracePointLink},
};
use profiler_common::process::ThreadState;

use super::{
    call_plan::CallPlan,
    kernel_faults::kernel_faults,
    load_error::LoadError,
    offsets::OffsetError,
    programs::{Group, Hazard, ProgramRow},
    reader::RecordReader,
    unwind_maps::{CaptureReader, UnwindMaps},
    uprobe_multi::MultiPrograms,
};

/// What became of loading the programs that watch connections.
#[derive(Debug, Default)]
pub(super) struct NetworkLoad {
    pub(super) failures: Vec<LoadError>,
    pub(super) plan: CallPlan,
}

/// Facts about one loaded program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramReport {
    pub name: String,
    /// Instructions that the verifier walked (kernel 5.16).
    pub verified_instructions: Option<u32>,
    pub load_time: Duration,
    /// Runs and their time, while BPF statistics are enabled.
    pub run_count: u64,
    pub run_time: Duration,
    pub error: Option<String>,
}

/// A map as the kernel made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapReport {
    pub name: String,
    /// The kernel's name of its kind.
    pub kind: &'static str,
    /// Entries at most; bytes of a ring buffer.
    pub entries: u32,
}

/// A loaded object with its maps.
#[derive(Debug)]
pub struct LoadedObject {
    pub(super) ebpf: Ebpf,
    pub(super) denied: Vec<String>,
    pub(super) load_times: BTreeMap<&'static str, Duration>,
    pub(super) walks_with_tables: bool,
    /// Whether its programs tell processes by marks before they look them up.
    pub(super) marks_processes: bool,
    /// Calls of [`Self::forget_sent`].
    pub(super) rotations: u32,
    /// How often cgroups were added to the filter.
    pub(super) filter_changes: u32,
    /// Whether the program that looks at wakers is loaded.
    pub(super) knows_wakers: bool,
    /// Why waits cannot be measured.
    pub(super) switches_failed: Option<LoadError>,
    /// Why threads that sleep already cannot be found.
    pub(super) asleep_failed: Option<LoadError>,
    /// Why event loops cannot be watched.
    pub(super) event_loop_failed: Option<LoadError>,
    /// What became of the programs that watch connections.
    pub(super) network: NetworkLoad,
    pub(super) unix_failure: Option<OffsetError>,
    /// The programs of TLS, where the kernel puts them at many places at once.
    pub(super) multi: Option<MultiPrograms>,
}

impl LoadedObject {
    pub(super) fn map(&self, name: &'static str) -> Result<&Map, LoadError> {
        self.ebpf.map(name).ok_or(LoadError::NoMap(name))
    }

    pub(super) fn program(&self, name: &str) -> Option<&Program> {
        self.ebpf.program(name)
    }

    /// What became of the programs that watch connections, once.
    pub(super) fn take_network(&mut self) -> NetworkLoad {
        std::mem::take(&mut self.network)
    }

    /// Why Unix sockets cannot be watched.
    pub fn unix_failure(&self) -> Option<&OffsetError> {
        self.unix_failure.as_ref()
    }

    pub(super) fn ebpf(&mut self) -> &mut Ebpf {
        &mut self.ebpf
    }

    pub(super) fn marks_processes(&self) -> bool {
        self.marks_processes
    }

    pub(super) fn allow(&self, name: &'static str) -> Result<(), LoadError> {
        if self.denied.iter().any(|denied| denied == name) {
            return Err(LoadError::Denied(name));
        }
        Ok(())
    }

    /// An error for a group that is denied as a whole.
    pub(super) fn allow_group(&self, group: Group) -> Result<(), LoadError> {
        group.probe().map_or(Ok(()), |probe| self.allow(probe))
    }

    /// An error for a program that is denied, or that this kernel must not be asked for.
    pub(super) fn allow_program(&self, row: &'static ProgramRow) -> Result<(), LoadError> {
        self.allow(row.name)?;
        let program = row.name;
        match row.hazard {
            Hazard::GrowingMaps if kernel_faults().warns_of_growing_maps => {
                Err(LoadError::Warns { program })
            }
            Hazard::RingBufferInScheduler if kernel_faults().ring_buffers_sleep => {
                Err(LoadError::Realtime { program })
            }
            Hazard::None | Hazard::GrowingMaps | Hazard::RingBufferInScheduler => Ok(()),
        }
    }

    /// The failure of [`Self::load`] to load the programs that measure waits, once.
    pub(super) fn take_switches_failure(&mut self) -> Option<LoadError> {
        self.switches_failed.take()
    }

    /// The failure of [`Self::load`] to load the pass over sleeping threads, once.
    pub(super) fn take_asleep_failure(&mut self) -> Option<LoadError> {
        self.asleep_failed.take()
    }

    /// The failure of [`Self::load`] to load the programs that watch event loops, once.
    pub(super) fn take_event_loop_failure(&mut self) -> Option<LoadError> {
        self.event_loop_failed.take()
    }

    pub(super) fn is_loaded(&self, name: &str) -> bool {
        self.load_times.contains_key(name)
    }

    pub(super) fn note_load_time(&mut self, name: &'static str, time: Duration) {
        self.load_times.insert(name, time);
    }

    /// Attaches a program of a tracepoint that was loaded.
    pub(super) fn attach_tracepoint(
        &mut self,
        row: &'static ProgramRow,
    ) -> Result<BtfTracePointLink, LoadError> {
        let name = row.name;
        let failed = |source: ProgramError| LoadError::Attach {
            program: name,
            source: source.into(),
        };
        let program = self
            .ebpf
            .program_mut(name)
            .ok_or(LoadError::NoProgram(name))?;
        let program: &mut BtfTracePoint = program.try_into().map_err(failed)?;
        let link = program.attach().map_err(failed)?;
        program.take_link(link).map_err(failed)
    }

    /// Loads a program of a tracepoint by its BTF type, without attaching it.
    pub(super) fn load_tracepoint(
        &mut self,
        row: &'static ProgramRow,
        btf: &Btf,
    ) -> Result<&mut BtfTracePoint, LoadError> {
        self.allow_program(row)?;
        let name = row.name;
        let hook = row.hook.target().ok_or(LoadError::NoProgram(name))?;
        let program: &mut Program = self
            .ebpf
            .program_mut(name)
            .ok_or(LoadError::NoProgram(name))?;
        let failed = |source: ProgramError| LoadError::Program {
            program: name,
            source: source.into(),
        };
        let program: &mut BtfTracePoint = program.try_into().map_err(failed)?;
        let began = Instant::now();
        program.load(hook, btf).map_err(failed)?;
        self.load_times.insert(name, began.elapsed());
        Ok(program)
    }

    /// Starts the count of buckets: before, ticks are ignored.
    pub fn set_origin(&mut self, kernel_ns: u64) -> Result<(), LoadError> {
        let failed = |source: MapError| LoadError::Map {
            map: "ORIGIN",
            source: source.into(),
        };
        let map = self
            .ebpf
            .map_mut("ORIGIN")
            .ok_or(LoadError::NoMap("ORIGIN"))?;
        let mut origin: Array<_, u64> = Array::try_from(map).map_err(failed)?;
        origin.set(0, kernel_ns, 0).map_err(failed)
    }

    /// Ends the count of buckets: every program ignores what happens from now on, all at once.
    pub fn stop_counting(&mut self) -> Result<(), LoadError> {
        self.set_origin(u64::MAX)
    }

    /// Takes the ring buffer; `None` the second time.
    pub fn take_reader(&mut self) -> Result<RecordReader, LoadError> {
        let map = self
            .ebpf
            .take_map("RECORDS")
            .ok_or(LoadError::NoMap("RECORDS"))?;
        let ring = RingBuf::try_from(map).map_err(|source| LoadError::Map {
            map: "RECORDS",
            source: source.into(),
        })?;
        Ok(RecordReader::new(ring))
    }

    /// False when frame pointers were asked for, or when this kernel offers nothing else.
    pub fn walks_with_tables(&self) -> bool {
        self.walks_with_tables
    }

    /// Takes the tables of the unwinder and the ring buffer of captures, for the thread that keeps
    /// them; an error the second time.
    pub fn take_unwind_maps(&mut self) -> Result<(UnwindMaps, CaptureReader), LoadError> {
        let maps = UnwindMaps::take(&mut self.ebpf)?;
        let captures = CaptureReader::take(&mut self.ebpf)?;
        Ok((maps, captures))
    }

    /// Forwards the kernel side's log lines to the agent's log while the object lives.
    pub fn take_logger(&mut self) -> Option<KernelLog> {
        match aya_log::EbpfLogger::init(&mut self.ebpf) {
            Ok(logger) => Some(KernelLog { logger }),
            Err(error) => {
                tracing::debug!(%error, "no log of the kernel side");
                None
            }
        }
    }

    pub fn add_pid(&mut self, pid: u32) -> Result<(), LoadError> {
        self.mark_process(pid)?;
        self.insert("FILTER_PIDS", pid)
    }

    pub fn add_cgroup(&mut self, id: u64) -> Result<(), LoadError> {
        self.insert("FILTER_CGROUPS", id)?;
        // Afterwards: verdicts of before are then those of another filter.
        self.filter_changes = self.filter_changes.wrapping_add(1);
        self.set_number("FILTER_CHANGES", 0, self.filter_changes)
    }

    fn insert<K: aya::Pod>(&mut self, map: &'static str, key: K) -> Result<(), LoadError> {
        let failed = |source: MapError| LoadError::Map {
            map,
            source: source.into(),
        };
        let found = self.ebpf.map_mut(map).ok_or(LoadError::NoMap(map))?;
        let mut table: HashMap<_, K, u8> = HashMap::try_from(found).map_err(failed)?;
        table.insert(key, 1, 0).map_err(failed)
    }

    /// Forgets which stacks and threads were sent, so that each is sent again with its next sample.
    pub fn forget_sent(&mut self) -> Result<(), LoadError> {
        self.drain_map("STACKS", |_hash: u64, _sent: u8| {})?;
        self.drain_map("THREADS", |_tid: u32, _state: ThreadState| {})?;
        // Last, so that nothing is taken for sent that was forgotten a moment later.
        self.rotations = self.rotations.wrapping_add(1);
        self.set_number("ROTATION", 0, self.rotations)
    }

    /// Sets an element of an array of numbers.
    pub(super) fn set_number(
        &mut self,
        name: &'static str,
        index: u32,
        number: u32,
    ) -> Result<(), LoadError> {
        let failed = |source: MapError| LoadError::Map {
            map: name,
            source: source.into(),
        };
        let map = self.ebpf.map_mut(name).ok_or(LoadError::NoMap(name))?;
        let mut array: Array<_, u32> = Array::try_from(map).map_err(failed)?;
        array.set(index, number, 0).map_err(failed)
    }

    /// Maps whose facts the kernel tells.
    pub fn maps(&self) -> Vec<MapReport> {
        self.ebpf
            .maps()
            .filter_map(|(name, map)| {
                let (kind, data) = data_of(map)?;
                Some(MapReport {
                    name: name.to_owned(),
                    kind,
                    entries: data.info().ok()?.max_entries(),
                })
            })
            .collect()
    }

    /// Facts about every program that was loaded.
    pub fn programs(&self) -> Vec<ProgramReport> {
        self.load_times
            .iter()
            .filter_map(|(name, load_time)| {
                if let Some(report) = self.multi.as_ref().and_then(|multi| multi.report(name)) {
                    return Some(report);
                }
                let info = self.ebpf.program(name)?.info().ok();
                let stats = info.as_ref();
                Some(ProgramReport {
                    name: (*name).to_owned(),
                    verified_instructions: stats
                        .and_then(aya::programs::ProgramInfo::verified_instruction_count),
                    load_time: *load_time,
                    run_count: stats.map_or(0, aya::programs::ProgramInfo::run_count),
                    run_time: stats.map_or(Duration::ZERO, aya::programs::ProgramInfo::run_time),
                    error: None,
                })
            })
            .collect()
    }
}

/// The kernel's name of a map's kind, and its data; `None` for kinds that no program here has.
pub(super) fn data_of(map: &Map) -> Option<(&'static str, &MapData)> {
    match map {
        Map::Array(data) => Some(("array", data)),
        Map::PerCpuArray(data) => Some(("percpu_array", data)),
        Map::HashMap(data) => Some(("hash", data)),
        Map::LruHashMap(data) => Some(("lru_hash", data)),
        Map::RingBuf(data) => Some(("ringbuf", data)),
        _ => None,
    }
}

/// Log lines of the kernel side.
pub struct KernelLog {
    logger: aya_log::EbpfLogger<&'static dyn log::Log>,
}

impl std::fmt::Debug for KernelLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KernelLog")
    }
}

impl KernelLog {
    /// Hands waiting lines to the agent's log.
    pub fn flush(&mut self) {
        self.logger.flush();
    }
}
