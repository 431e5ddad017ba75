// The types of the HTTP API by the names that the page has for them. They are generated from docs/http-api.json; only
// what the page knows better than the document is written here. Text in them may come from a target: it is untrusted.

import type {
  CreateCheckup,
  CreateTask,
  EdgeTable,
  TaskKind as KindOfTask,
  RequestOperation,
  RequestValues,
  TaskRequests,
} from "./generated/schema";

export type {
  AccessLogEnvoy,
  AccessLogStatus,
  Activity,
  ActivitySum,
  AgentSelf as Self,
  BpfProgram,
  Checkup,
  CheckupComparison,
  ComparedFinding,
  ComparedLatency,
  ComparedRow,
  ComparedTotal,
  Container,
  ContainerList,
  ContainerNames,
  CpuContention,
  CpuCoverage,
  CpuHolderGroup,
  CpuHolderTime,
  DiagnosedEventLoop as EventLoop,
  DiagnosedWorkers as Workers,
  Diagnosis,
  DiagnosisCell as MatrixCell,
  DiagnosisCoverage as Coverage,
  DiagnosisFeature as MatrixFeature,
  DiagnosisMatrix as Matrix,
  Diff as ChangedFunctions,
  DiffFunction as ChangedFunction,
  DiffVerdict as Verdict,
  Edge,
  EdgeConnection,
  EdgeConnections,
  EdgeEnd,
  EdgeHistogram as Histogram,
  EdgeSeries,
  EdgeTable,
  Estimate,
  Feature,
  Finding,
  FindingConfidence as Confidence,
  FindingSetting,
  FindingSeverity as Severity,
  ImportedFile,
  KernelMap,
  KernelObjectList as KernelObjects,
  KernelProgram,
  KernelTable,
  LatencyActivity,
  LatencyInside,
  LatencyPart,
  LatencyProcess,
  Loss,
  MatchClass,
  MeasuredRuns,
  Measurement,
  Memory,
  Meta,
  ModuleQuality as PoorModule,
  NameSource,
  NamesQuality,
  NetworkEdges,
  NodeOverview,
  OffCpuMode,
  OverviewLimit,
  OverviewRequests,
  OverviewRow,
  OverviewTime,
  PlaintextFile,
  Pod,
  PodNames,
  PodProcess,
  PodReading,
  PodSelector,
  Probe,
  Problem,
  Process,
  ProcessDetail,
  ProcessEvent as ProcessChange,
  ProcessesEvent as ProcessReadings,
  ProcessFile,
  ProcessReading,
  ProcessSymbols,
  ProfileFormat,
  ProfileQuality,
  ProfileThread,
  RequestBody,
  RequestCount,
  RequestEdge,
  RequestLatency,
  RequestOperation,
  RequestOutcome,
  RequestPlace,
  RequestPlaintext,
  RequestSample,
  RequestSamples as SamplesKept,
  RequestSettings,
  RequestSidecar,
  RequestSpans,
  RequestTimes as SidecarTimes,
  RequestValues,
  RowCheckup,
  Sequence,
  SequenceThread,
  Setting,
  SettingSystem,
  SideMetrics as EdgeSide,
  SideSeries,
  StackQuality,
  SymbolFile,
  SymbolFileList,
  Target,
  Task,
  TaskEdges,
  TaskRequests,
  ThreadActivity,
  Timeline,
  Trouble,
  ValueSeries,
  WaitSum,
  Waits,
  WorkerThread,
  Workload,
} from "./generated/schema";

export interface List<T> {
  readonly items: readonly T[];
  readonly total: number;
}

/** Kinds of tasks that can be started; an imported profile is of none of them. */
export type TaskKind = Exclude<KindOfTask, "imported">;

/** A task as the page asks for it: what every form has is never left to the agent. */
export type TaskSpec = CreateTask &
  Required<Pick<CreateTask, "duration_s" | "frequency_hz" | "wakers">> & { readonly kind: TaskKind };

export type CheckupSpec = CreateCheckup & Required<Pick<CreateCheckup, "duration_s">>;

/** Names of the containers that occur in an answer, by id; unnamed ones are missing. */
export type NamedContainers = EdgeTable["containers"];

/** Least and greatest value that a percentile can be. */
export type ValueBounds = NonNullable<RequestValues["bounds"]["p50"]>;

/** Where a request was seen. */
export type RequestSource = RequestOperation["source"];

/** What Envoys report by their access logs. */
export type LoggedRequests = NonNullable<TaskRequests["access_logs"]>;
export type LoggingEnvoy = LoggedRequests["envoys"][number];
export type LoggedPhase = LoggingEnvoy["phases"][number];
export type LoggedFlag = LoggingEnvoy["flags"][number];
export type LoggedUpstream = LoggingEnvoy["upstreams"][number];
