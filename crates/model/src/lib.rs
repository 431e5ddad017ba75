//! Plain types that every stage after the kernel shares.
//!
//! No IO, no async, no aya. Types derive serde so that `store` can encode them. Documents that the API and
//! the CLI publish as they are ([`diagnosis`], [`comparison`], [`overview`], [`access_log_status`]) derive their schema as well; the API's other
//! types are the agent's (`api/dto`).

pub mod printable;
mod access_logs;
pub mod access_log_status;
mod percent;
pub mod name_pattern;
pub mod diagnosis;
mod checkup;
pub mod comparison;
mod idle_share;
mod edge_metrics;
mod edge;
mod imported;
pub mod latency;
mod edge_step;
mod event_loop;
mod hexadecimal;
mod percentile;
mod cpu_coverage;
mod loss;
mod megabytes;
mod observed;
pub mod overview;
mod process;
mod program_kind;
mod pod;
mod container_names;
mod contention;
mod contention_groups;
mod profile;
mod profile_builder;
mod request_options;
mod sample_rule;
mod requests;
mod logged_requests;
mod request_at_socket;
pub mod access_log_report;
mod request_timeline;
mod request_values;
mod select;
mod short_time;
mod sidecar;
pub mod significance;
pub mod sockets;
mod spread;
mod stack_quality;
mod task;
mod thread_state;
mod tls;
mod unsampled;
mod wait_reason;
mod activity;
mod waker;
mod wait_rules;

pub use access_logs::{EnvoyLogs, OwnLogCounts, ReceivedLogs};
pub use activity::{Activity, ActivitySum, ActivityTimes, ThreadActivity};
pub use checkup::{CheckupRecord, RequestPoint, RequestSeries};
pub use container_names::{
    ContainerNames, ContainerRole, NamedBy, PodNames, PodSelector, Workload,
};
pub use contention::{
    ContentionRow, CpuContention, CpuHolder, CpuHolderKind, CpuHolderTime, HolderId,
};
pub use contention_groups::{CpuHolderGroup, CpuHolderGroupKind};
pub use cpu_coverage::CpuCoverage;
pub use edge::{
    Address, Edge, EdgeConnection, EdgeKey, EdgeNamespaces, EdgeTable, Endpoint, FoldedEdges,
    KernelTable, Window,
};
pub use edge_metrics::{
    EDGE_METRICS, EdgeMetric, EdgeReading, EdgeUnit, SideMetrics, SocketTotals, Transfer, Values,
};
pub use edge_step::{EdgeDelta, EdgeId, EdgeStep};
pub use event_loop::{
    EventLoop, EventLoopTable, Hold, LoopRules, LoopThread, LoopTurn, MAX_STALL_MS, Stall,
};
pub use hexadecimal::hexadecimal;
pub use idle_share::{IdleMode, IdleShare, RuleShare};
pub use imported::{ImportFormat, ImportValues, ImportedFile, ImportedProfile};
pub use logged_requests::{
    LoggedFlagged, LoggedJoin, LoggedPhase, LoggedRequests, LoggedUpstream, LoggingEnvoy,
};
pub use loss::{LossKind, Losses};
pub use megabytes::megabytes;
pub use observed::{
    ConfigurationItem, Observed, ObservedConfiguration, ObservedProcess, ObservedRequests,
    ObservedThread, ObservedThrottling, TwoReadings,
};
pub use percent::{float, percent};
pub use percentile::{Between, Microseconds};
pub use pod::{PodKind, PodRole};
pub use process::{Container, Process, ProcessEvent, ProcessEventKind, ProcessKey, ThreadInfo};
pub use profile::{
    Clock, Frame, FrameId, FrameSpace, Function, Module, ModuleId, ModuleKind, NameClass,
    NameSource, ProcessId, Profile, ProfileProcess, ProfileThread, SampleRow, Stack, StackId,
    StrId, ThreadId,
};
pub use profile_builder::ProfileBuilder;
pub use program_kind::{COMM_BYTES, ProgramKind};
pub use request_at_socket::RequestAtSocket;
pub use request_options::{
    DEFAULT_CAPTURE_BYTES, MAX_CAPTURE_BYTES, MAX_CAPTURE_CPU_PERCENT, MIN_CAPTURE_BYTES,
    RequestOptions,
};
pub use request_timeline::{RequestSpan, RequestSpans, RequestTimeline, RequestsOverTime};
pub use request_values::RequestValues;
pub use requests::{
    EdgeCount, MAX_SERVER_THREADS, Operation, Outcomes, RequestCounters, RequestEdge,
    RequestSample, RequestSource, RequestTable, SampleReason, SeenBy, Tally, Timings, TlsSeen,
};
pub use sample_rule::{SampleRule, StatusClass};
pub use select::Selection;
pub use short_time::{short_time, thousands};
pub use sidecar::{MatchClass, Matched, RequestPlace, Sidecar, SidecarTimes, UpstreamHeader};
pub use significance::Pair;
pub use spread::{Bounds, Spread};
pub use stack_quality::{StackFault, StackQuality, TableCounts, UnwindMethod, elided_marker};
pub use task::{
    DEFAULT_FREQUENCY_HZ, EdgeSpec, MAX_DURATION_S, MAX_FREQUENCY_HZ, Recording, RequestSpec,
    SampleKind, SampleSpec, Target, TargetName, Task, TaskId, TaskKind, TaskOrigin, TaskSpec,
    TaskState,
};
pub use thread_state::ThreadState;
pub use tls::{STEPPED_TRAP_NS, TRAP_NS, TlsFileReport, TlsProbeSite, TlsReport, cost_ns};
pub use unsampled::{UNSAMPLED_FRAME, Unsampled, UnsampledTime};
pub use wait_reason::WaitReason;
pub use wait_rules::{WaitCounts, WaitMode, WaitRules};
pub use waker::{Interrupt, WokenBy, woken_by};
