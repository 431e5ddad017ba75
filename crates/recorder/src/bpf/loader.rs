//! Loads one object for each task and attaches its programs, each on its own.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use aya::{
    Btf, Ebpf, EbpfLoader,
    maps::{Array, HashMap, Map, MapError, RingBuf},
    programs::{BtfTracePoint, Program, ProgramError, tp_btf::BtfTracePointLink},
};
use profiler_common::{
    config::{FILTER_PIDS, HIERARCHY_V1, ProbeConfig, UNWIND_FRAME_POINTERS, UNWIND_TABLES},
    process::ThreadState,
};
use profiler_host::pid_namespace::{is_initial_pid_namespace, pid_namespace_inode};

use super::{
    connections::NetworkLoad,
    features::uses_loop_helper,
    kernel_faults::kernel_faults,
    load_error::LoadError,
    map_memory, network_offsets, object,
    offsets::{self, OffsetError},
    perf::{ClockChoice, Sampler, Sampling},
    programs::{Group, Hazard, ProgramRow, programs_of},
    reader::RecordReader,
    sizes::{Asked, Counting, Cpus, map_entries},
    switches::Measured,
    unix_sockets,
    unwind_maps::{CaptureReader, UnwindMaps},
};
use profiler_memory::Ceiling;

static LOADING: Mutex<()> = Mutex::new(());

/// What to load.
#[derive(Clone, Debug)]
pub struct ObjectRequest {
    /// Filter, clock and buckets; offsets and the PID namespace are filled in here.
    pub config: ProbeConfig,
    /// Controller of the v1 hierarchy, with [`HIERARCHY_V1`].
    pub v1_controller: Option<String>,
    pub counting: Counting,
    /// Names of programs and clocks that must not be used (a test switch).
    pub denied: Vec<String>,
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
    ebpf: Ebpf,
    denied: Vec<String>,
    load_times: BTreeMap<&'static str, Duration>,
    walks_with_tables: bool,
    measures_waits: bool,
    /// Calls of [`Self::forget_sent`].
    rotations: u32,
    /// Whether the program that looks at wakers is loaded.
    pub(super) knows_wakers: bool,
    /// Why waits cannot be measured.
    switches_failed: Option<LoadError>,
    /// Why threads that sleep already cannot be found.
    asleep_failed: Option<LoadError>,
    /// Why event loops cannot be watched.
    event_loop_failed: Option<LoadError>,
    /// What became of the programs that watch connections.
    network: NetworkLoad,
    unix_failure: Option<OffsetError>,
}

impl LoadedObject {
    /// Creates the maps, loads what `counting` asks for, and attaches the programs of processes (and, where nothing is
    /// counted, those that run as long as the agent). Those that fail are reported in the second value, with their
    /// reason; the others go on.
    pub fn load(request: &ObjectRequest) -> Result<(Self, Vec<LoadError>), LoadError> {
        if !object::is_embedded() {
            return Err(LoadError::NotEmbedded);
        }
        let mut config = request.config;
        let controller = request
            .v1_controller
            .as_deref()
            .filter(|_controller| config.hierarchy == HIERARCHY_V1);
        config.offsets = offsets::resolve(controller)?;
        config.pid_namespace_inum = if config.pid_namespace_inum != 0 {
            config.pid_namespace_inum
        } else if is_initial_pid_namespace().map_err(LoadError::Namespace)? {
            0
        } else {
            let inode = pid_namespace_inode().map_err(LoadError::Namespace)?;
            u32::try_from(inode).unwrap_or(u32::MAX)
        };
        let denied = request.denied.iter().any(|name| name == "bpf_loop");
        if config.unwind == UNWIND_TABLES && (denied || !uses_loop_helper()) {
            config.unwind = UNWIND_FRAME_POINTERS;
        }
        // One at a time: each parses the kernel's BTF, some 15 MB for a moment.
        let _one_at_a_time = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
        let btf = Btf::from_sys_fs().map_err(|error| OffsetError::Read(error.to_string()))?;
        let network = network_offsets::wanted(request.counting, &request.denied)?;
        let asked = Asked {
            wakers: config.wakers == 1,
            loops: config.stall_ns != 0,
            tables: config.unwind == UNWIND_TABLES,
            few_processes: config.filter == FILTER_PIDS,
            calls: network
                .as_ref()
                .is_some_and(|network| network.plan.watches_calls()),
        };
        let cpus = Cpus::of_this_machine();
        let entries = map_entries(request.counting, asked, cpus);
        let mut loader = EbpfLoader::new();
        loader
            .btf(Some(&btf))
            .override_global("CONFIG", config.as_bytes(), true);
        if let Some(network) = &network {
            loader.override_global("NETWORK", network.config.as_bytes(), true);
            loader.override_global("NETWORK_CALLS", network.calls.as_bytes(), true);
            loader.override_global("PAYLOAD", network.payload.as_bytes(), true);
            loader.override_global("TLS", network.tls.as_bytes(), true);
        }
        let (unix, unix_failure) = match network.as_ref().map(|_network| unix_sockets::resolve()) {
            Some(Ok(offsets)) => (Some(offsets), None),
            Some(Err(error)) => (None, Some(error)),
            None => (None, None),
        };
        if let Some(unix) = &unix {
            loader.override_global("UNIX", unix.as_bytes(), true);
        }
        for (map, entries) in &entries {
            loader.map_max_entries(map, *entries);
        }
        let needed = map_memory::estimate(&entries, cpus);
        Ceiling::own().admits_tables(needed)?;
        let ebpf = loader
            .load(&object::bytes())
            .map_err(|error| LoadError::Load(Box::new(error)))?;
        let mut loaded = Self {
            ebpf,
            denied: request.denied.clone(),
            load_times: BTreeMap::new(),
            walks_with_tables: config.unwind == UNWIND_TABLES,
            measures_waits: matches!(
                request.counting,
                Counting::Waits | Counting::Wall | Counting::Everything(_)
            ),
            rotations: 0,
            knows_wakers: false,
            switches_failed: None,
            asleep_failed: None,
            event_loop_failed: None,
            network: NetworkLoad::default(),
            unix_failure,
        };
        let mut failures = Vec::new();
        for row in programs_of(permanent(request.counting)) {
            if let Err(error) = loaded.start_tracepoint(row, &btf) {
                tracing::warn!(%error, without = row.without, "a program is not attached");
                failures.push(error);
            }
        }
        let measured = match request.counting {
            Counting::Nothing | Counting::Samples(_) | Counting::Connections { .. } => None,
            Counting::Waits => Some(Measured::Waits),
            Counting::Wall | Counting::Everything(_) => Some(Measured::WaitsAndSlices),
        };
        if measured.is_some() && config.wakers == 1 {
            match loaded.load_wakers(&btf) {
                Ok(()) => loaded.knows_wakers = true,
                Err(error) => failures.push(error),
            }
        }
        if config.stall_ns != 0 {
            loaded.event_loop_failed = loaded.load_event_loop(&btf).err();
        }
        if let Some(measured) = measured {
            loaded.switches_failed = loaded
                .load_switches(measured, config.offsets.switch_arguments, &btf)
                .err();
            loaded.asleep_failed = loaded.load_asleep(&btf).err();
        }
        if let Some(network) = &network {
            loaded.network = loaded.load_network(network, &btf)?;
        }
        Ok((loaded, failures))
    }

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

    pub(super) fn measures_waits(&self) -> bool {
        self.measures_waits
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

    fn start_tracepoint(&mut self, row: &'static ProgramRow, btf: &Btf) -> Result<(), LoadError> {
        let program = self.load_tracepoint(row, btf)?;
        program.attach().map_err(|source| LoadError::Attach {
            program: row.name,
            source: source.into(),
        })?;
        Ok(())
    }

    /// Loads a sampling program; call once, before [`Self::sample`].
    pub fn load_sampler(&mut self, sampler: Sampler) -> Result<(), LoadError> {
        let row = sampler.program();
        self.allow_group(row.group)?;
        self.allow_program(row)?;
        let name = row.name;
        let program = self
            .ebpf
            .program_mut(name)
            .ok_or(LoadError::NoProgram(name))?;
        let failed = |source: ProgramError| LoadError::Program {
            program: name,
            source: source.into(),
        };
        let program: &mut aya::programs::PerfEvent = program.try_into().map_err(failed)?;
        let began = Instant::now();
        program.load().map_err(failed)?;
        self.load_times.insert(name, began.elapsed());
        Ok(())
    }

    /// Starts the sampling clock.
    pub fn sample(&mut self, sampler: Sampler, frequency_hz: u32) -> Result<Sampling, LoadError> {
        let choice = if self.allow("cycles").is_err() {
            ClockChoice::CpuClock
        } else {
            ClockChoice::Best
        };
        Sampling::attach(&mut self.ebpf, sampler, choice, frequency_hz)
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

    /// Follows CPUs that came online.
    pub fn follow_cpus(&mut self, sampling: &mut Sampling) -> Result<(), LoadError> {
        sampling.attach_cpus(&mut self.ebpf)
    }

    pub fn stop_sampling(&mut self, sampling: &mut Sampling) {
        sampling.detach(&mut self.ebpf);
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
        self.insert("FILTER_CGROUPS", id)
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
                let (kind, data) = match map {
                    Map::Array(data) => ("array", data),
                    Map::PerCpuArray(data) => ("percpu_array", data),
                    Map::HashMap(data) => ("hash", data),
                    Map::LruHashMap(data) => ("lru_hash", data),
                    Map::RingBuf(data) => ("ringbuf", data),
                    _ => return None,
                };
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

/// Programs that run as long as the object is loaded. Those that run as long as the agent are in the object that only
/// follows processes, and in that of checks.
fn permanent(counting: Counting) -> &'static [Group] {
    match counting {
        Counting::Nothing | Counting::Everything(_) => &[Group::ProcessEvents, Group::Standing],
        Counting::Samples(_) | Counting::Waits | Counting::Wall | Counting::Connections { .. } => {
            &[Group::ProcessEvents]
        }
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
