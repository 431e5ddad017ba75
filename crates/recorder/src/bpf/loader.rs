//! Loads one object for each task and attaches its programs, each on its own.

use std::collections::BTreeMap;

use aya::{Btf, EbpfLoader};
use parking_lot::Mutex;
use profiler_common::config::{
    FILTER_PIDS, HIERARCHY_V1, ProbeConfig, UNWIND_FRAME_POINTERS, UNWIND_TABLES,
};
use profiler_host::pid_namespace::{is_initial_pid_namespace, pid_namespace_inode};

use super::{
    features::uses_loop_helper,
    load_error::LoadError,
    loaded_object::{LoadedObject, NetworkLoad},
    map_memory, network_offsets, object,
    offsets::{self, OffsetError},
    orc,
    programs::{Group, ProgramRow, programs_of},
    sizes::{Asked, Counting, Cpus, map_entries},
    switches::Measured,
    unix_sockets,
};
use profiler_memory::Ceiling;

static LOADING: Mutex<()> = Mutex::new(());

/// Denied like a program: user stacks are walked without `bpf_loop`.
pub(crate) const LOOPS: &str = "bpf_loop";
/// Denied like a program: those that events call return at once. What is left is what the kernel takes to call them.
pub(crate) const WORK: &str = "work";

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
        let is_denied = |wanted| request.denied.iter().any(|name| name == wanted);
        if config.unwind == UNWIND_TABLES && (is_denied(LOOPS) || !uses_loop_helper()) {
            config.unwind = UNWIND_FRAME_POINTERS;
        }
        if config.unwind == UNWIND_TABLES && request.counting.has_waits() {
            config.orc = orc::tables(&config.offsets);
        }
        // One at a time: each parses the kernel's BTF, some 15 MB for a moment.
        let _one_at_a_time = LOADING.lock();
        let mut loader = EbpfLoader::new();
        // It has parsed them as well: both at once are the most that a command ever holds.
        loader.btf(None);
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
        let floor = u32::from(is_denied(WORK));
        if floor != 0 {
            tracing::warn!(
                "--deny-probe {WORK}: programs return at once, and find next to nothing"
            );
        }
        loader
            .btf(Some(&btf))
            .override_global("FLOOR", &floor, true)
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
            marks_processes: request.counting.marks_processes(),
            rotations: 0,
            filter_changes: 0,
            knows_wakers: false,
            switches_failed: None,
            asleep_failed: None,
            event_loop_failed: None,
            network: NetworkLoad::default(),
            unix_failure,
            multi: None,
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
        let has_stacks = !matches!(
            request.counting,
            Counting::Nothing | Counting::Connections { .. }
        );
        if has_stacks && let Err(error) = loaded.load_kernel_namer() {
            failures.push(error);
        }
        if let Some(network) = &network {
            loaded.network = loaded.load_network(network, &btf)?;
        }
        Ok((loaded, failures))
    }

    fn start_tracepoint(&mut self, row: &'static ProgramRow, btf: &Btf) -> Result<(), LoadError> {
        let program = self.load_tracepoint(row, btf)?;
        program.attach().map_err(|source| LoadError::Attach {
            program: row.name,
            source: source.into(),
        })?;
        Ok(())
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
