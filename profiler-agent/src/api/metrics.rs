//! Prometheus metrics: the agent's own cost, what it has collected and what it has lost. All
//! labels are from fixed sets, but for those of edges, whose number is bounded.

use std::sync::atomic::AtomicU64;

use profiler_engine::access_logs::LogMetrics;
use profiler_model::{LossKind, float};
use profiler_recording::ProbeState;
use profiler_sandbox::broker::left_behind;
use prometheus_client::{
    encoding::text::encode,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};

use super::{
    error::ApiError,
    http_metrics::{Counters, Label, label},
    state::{ApiState, blocking},
};
use profiler_engine::edge_metrics::NetworkMetrics;
use profiler_memory::{Ceiling, GivenUp, MemoryReading, Stage};

pub(super) const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const TASK_STATES: [&str; 5] = ["queued", "running", "finished", "failed", "cancelled"];

type Gauges = Family<Label, Gauge>;
type FloatCounter = Counter<f64, AtomicU64>;

/// All metrics in the text format of `OpenMetrics`.
pub(super) async fn render(state: &ApiState) -> Result<String, ApiError> {
    let mut registry = Registry::with_prefix("profiler_agent");
    own_cost(&mut registry, state)?;
    let reading = blocking(|| Ceiling::own().reading()).await?;
    memory(&mut registry, reading);
    let store = Gauge::<i64>::default();
    store.set(signed(state.store_bytes().await?));
    registry.register_with_unit("store", "Disk space that results take", Unit::Bytes, store);
    results(&mut registry, state);
    probes(&mut registry, state);
    state.http.register(&mut registry);
    let unsent = Gauge::<i64>::default();
    unsent.set(signed(state.unsent.bytes()));
    registry.register_with_unit(
        "http_unsent",
        "Answers of the HTTP API that wait for their readers",
        Unit::Bytes,
        unsent,
    );
    let (logs, table) = (
        state.parts.access_logs.logs.clone(),
        state.parts.table.clone(),
    );
    // There may be thousands of Envoys.
    let logs = blocking(move || LogMetrics::read(&logs, &table)).await?;
    if let Some(logs) = logs {
        registry.register_collector(Box::new(logs));
    }
    if let Some(watched) = state.parts.network.newest() {
        let most = state.parts.network_metrics_edges;
        // Every change of the choice leaves it whole.
        let mut choice = state.edge_choice.lock();
        let network = NetworkMetrics::read(&watched, &mut choice, most, std::time::Instant::now());
        registry.register_collector(Box::new(network));
    }
    // Many edges make megabytes: off the reactor.
    let text = blocking(move || {
        let mut text = String::new();
        encode(&mut text, &registry).map(|()| text)
    });
    text.await?.map_err(ApiError::internal)
}

fn own_cost(registry: &mut Registry, state: &ApiState) -> Result<(), ApiError> {
    let (reading, _) = state.read_self()?;
    let cpu = FloatCounter::default();
    cpu.inc_by(reading.cpu_seconds);
    registry.register_with_unit("cpu", "CPU time of the agent", Unit::Seconds, cpu);
    let gauge = |value: u64| {
        let gauge = Gauge::<i64>::default();
        gauge.set(signed(value));
        gauge
    };
    let resident = gauge(reading.rss_bytes);
    registry.register_with_unit(
        "resident_memory",
        "Resident memory of the agent",
        Unit::Bytes,
        resident,
    );
    registry.register_with_unit(
        "peak_resident_memory",
        "Highest resident memory of the agent so far",
        Unit::Bytes,
        gauge(reading.peak_rss_bytes),
    );
    registry.register(
        "open_files",
        "Open file descriptors of the agent",
        gauge(reading.open_files),
    );
    registry.register(
        "threads_left_behind",
        "Threads of the agent that wait for files which do not answer",
        gauge(left_behind() as u64),
    );
    let uptime = gauge(state.uptime().as_secs());
    registry.register_with_unit(
        "uptime",
        "Time since the agent started",
        Unit::Seconds,
        uptime,
    );
    Ok(())
}

fn memory(registry: &mut Registry, reading: MemoryReading) {
    let ceiling = Ceiling::own();
    let parts = Gauges::default();
    for (part, bytes) in [
        ("own", reading.own_bytes),
        ("copied", reading.copied_bytes),
        ("kernel", reading.kernel_bytes),
    ] {
        parts.get_or_create(&label("part", part)).set(signed(bytes));
    }
    registry.register_with_unit(
        "memory",
        "Memory that counts against the ceiling: own pages, copied symbol tables, maps and programs in the kernel",
        Unit::Bytes,
        parts,
    );
    if let Some(bytes) = ceiling.limit().bytes {
        let gauge = Gauge::<i64>::default();
        gauge.set(signed(bytes));
        registry.register_with_unit(
            "memory_ceiling",
            "Memory that the agent may use; see --max-memory",
            Unit::Bytes,
            gauge,
        );
    }
    let stages = Gauges::default();
    for stage in Stage::ALL {
        stages
            .get_or_create(&label("stage", stage.name()))
            .set(i64::from(stage == ceiling.stage()));
    }
    registry.register(
        "memory_stage",
        "1 for what the agent gives up to stay below its ceiling",
        stages,
    );
    let GivenUp {
        caches,
        refusals,
        stopped,
    } = ceiling.given_up();
    for (name, help, count) in [
        (
            "memory_caches_dropped",
            "Times that caches were dropped to stay below the ceiling",
            caches,
        ),
        (
            "memory_refusals",
            "Tasks, imports and results that were refused to stay below the ceiling",
            refusals,
        ),
        (
            "memory_stopped",
            "Tasks and collections that were stopped to stay below the ceiling",
            stopped,
        ),
    ] {
        let counter = Counter::<u64>::default();
        counter.inc_by(count);
        registry.register(name, help, counter);
    }
}

fn results(registry: &mut Registry, state: &ApiState) {
    let samples = Counter::<u64>::default();
    samples.inc_by(state.parts.totals.samples());
    registry.register(
        "samples",
        "Samples of all tasks since the agent started",
        samples,
    );

    let losses = Counters::default();
    let lost = state.all_losses();
    for kind in LossKind::ALL {
        losses
            .get_or_create(&label("kind", kind.name()))
            .inc_by(lost.get(kind));
    }
    registry.register(
        "losses",
        "What was lost or degraded since the agent started",
        losses,
    );

    let tasks = Gauges::default();
    for name in TASK_STATES {
        drop(tasks.get_or_create(&label("state", name)));
    }
    for task in state.parts.engine.list() {
        tasks
            .get_or_create(&label("state", task.state.name()))
            .inc();
    }
    registry.register("tasks", "Tasks that are kept, by state", tasks);
}

fn probes(registry: &mut Registry, state: &ApiState) {
    let states: Family<Vec<(&'static str, String)>, Gauge> = Family::default();
    for probe in state.probes() {
        for name in ProbeState::ALL {
            let labels = vec![
                ("probe", probe.name.clone()),
                ("state", name.name().to_owned()),
            ];
            states
                .get_or_create(&labels)
                .set(i64::from(probe.state == name));
        }
    }
    registry.register("probe_state", "1 for the state a probe is in", states);

    let runs = Counters::default();
    let run_time: Family<Label, FloatCounter> = Family::default();
    for program in state.parts.probes.programs() {
        if let Some(count) = program.run_count {
            runs.get_or_create(&label("program", &program.name))
                .inc_by(count);
        }
        if let Some(time_ns) = program.run_time_ns {
            run_time
                .get_or_create(&label("program", &program.name))
                .inc_by(seconds(time_ns));
        }
    }
    registry.register("bpf_runs", "Runs of a BPF program; needs --bpf-stats", runs);
    registry.register_with_unit(
        "bpf_run_time",
        "Time inside a BPF program; needs --bpf-stats",
        Unit::Seconds,
        run_time,
    );
}

fn seconds(time_ns: u64) -> f64 {
    float(time_ns) / 1e9
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
