//! The wire types of the HTTP API: the only place where they are defined. Times are nanoseconds
//! since the Unix epoch. Text that comes from processes is untrusted.

mod access_logs;
mod agent;
mod checkups;
mod containers;
mod create_task;
mod diagnosis;
mod diff;
mod edge_connections;
mod edge_series;
mod edge_sides;
mod edges;
mod event_loop;
mod events;
mod imports;
mod node;
mod overview;
mod pods;
mod process_symbols;
mod processes;
mod quality;
mod request_access_logs;
mod request_plaintext;
mod request_rules;
mod request_samples;
mod request_sidecars;
mod requests;
mod stacks;
mod symbols;
mod tasks;
mod timeline;
mod wait_counts;
mod cpu_coverage;
mod waits;

pub use edge_connections::EdgeConnections;
pub use edge_series::EdgeSeries;
pub use edges::EdgeTable;
pub use pods::PodList;
pub use processes::{Process, ProcessList};
pub use request_rules::parse_sample_rule;
pub use requests::TaskRequests;

pub(super) use access_logs::access_log_status;
pub(super) use agent::{
    AgentSelf, AuthKind, Bpf, Health, Limits, Memory, Meta, NetworkMode, Probe, ProbeList, Problem,
    Readiness, RoleName, losses,
};
pub(super) use checkups::{Checkup, CheckupComparison, CreateCheckup};
pub(super) use create_task::CreateTask;
pub(super) use diagnosis::DiagnosisFormat;
pub use diff::Diff;
pub(super) use diff::{DiffFormat, DiffNorm};
pub(super) use edges::{NetworkEdges, TaskEdges};
pub(super) use event_loop::EventLoop;
pub(super) use events::{LaggedEvent, ProcessEvent, ProcessesEvent, TaskDeletedEvent};
pub(super) use node::{
    FeatureList, KernelObjectList, MeasureRuns, MeasuredRuns, Setting, SettingList, StatisticsBy,
};
pub(super) use overview::{NodeOverview, RowCheckup};
pub(super) use process_symbols::ProcessSymbols;
pub(super) use processes::{ContainerList, ContainerSummary, ProcessDetail};
pub(super) use quality::ProfileQuality;
pub(super) use symbols::{SymbolFile, SymbolFileList};
pub(super) use tasks::{
    ProfileFormat, ProfileThread, ProfileThreadList, ProfileValue, Task, TaskList,
};
pub(super) use timeline::{Sequence, SequenceLabel, SequenceThread, Timeline, TimelineThread};
pub(super) use waits::{ProfileIdle, Waits};
