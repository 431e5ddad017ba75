// The wire types of /api/v1, by hand from the HTTP contract (docs/http-api.json).

import type { Container, NamedContainers, PodSelector } from "./container_types";
import type { CpuCoverage } from "./coverage_types";

export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: string;
  readonly hint?: string;
  readonly field?: string;
}

export interface List<T> {
  readonly items: readonly T[];
  readonly total: number;
}

export interface Loss {
  readonly kind: string;
  readonly count: number;
  readonly meaning: string;
}

export type ProbeState = "available" | "attached" | "unavailable" | "denied";

export interface Probe {
  readonly name: string;
  readonly state: ProbeState;
  readonly reason: string | null;
  readonly minimum_kernel: string;
}

export interface Meta {
  readonly version: string;
  readonly git_revision: string;
  readonly node: string;
  readonly kernel: string;
  readonly arch: string;
  readonly cpus: number;
  readonly btf: boolean;
  readonly limits: {
    readonly max_duration_s: number;
    readonly max_frequency_hz: number;
    readonly max_running_tasks: number;
  };
  readonly probes: readonly Probe[];
  readonly auth: "token" | "none";
  /** What the token of this page may do. */
  readonly role?: "full" | "read_only";
  /** Whether the connections of the node are watched for the agent's life. */
  readonly network?: "always" | "tasks";
  readonly cpu_budget_percent: number | null;
  /** Everything was recorded elsewhere; no task is started. */
  readonly demo_data?: boolean;
}

export interface BpfProgram {
  readonly name: string;
  readonly run_count: number | null;
  readonly run_time_ns: number | null;
  readonly verified_instructions: number | null;
}

/** What counts against the ceiling of the agent's memory, and what was given up for it. */
export interface Memory {
  readonly used_bytes: number;
  readonly own_bytes: number;
  readonly copied_bytes: number;
  readonly kernel_bytes: number;
  readonly ceiling_bytes: number | null;
  readonly ceiling_source: "setting" | "cgroup" | "none";
  readonly cgroup: { readonly path: string; readonly limit_bytes: number } | null;
  readonly stage: "open" | "trimming" | "refusing" | "stopping";
  readonly caches_dropped: number;
  readonly refusals: number;
  readonly stopped: number;
}

export interface Self {
  readonly cpu_percent: number | null;
  readonly cpu_seconds: number;
  readonly rss_bytes: number;
  readonly peak_rss_bytes: number;
  readonly memory: Memory;
  readonly open_files: number;
  readonly uptime_s: number;
  readonly running_tasks: number;
  readonly store_bytes: number;
  readonly losses: readonly Loss[];
  readonly bpf: { readonly programs: readonly BpfProgram[] };
}

export interface Process {
  /** `PID-STARTTICKS`: a pid alone is reused. */
  readonly id: string;
  readonly pid: number;
  readonly parent_pid: number;
  readonly comm: string;
  readonly exe: string | null;
  readonly arguments: readonly string[];
  readonly uid: number;
  readonly user: string | null;
  readonly cgroup: string;
  readonly container: Container | null;
  readonly network_namespace: number | null;
  readonly threads: number;
  readonly rss_bytes: number;
  readonly cpu_percent: number | null;
  readonly kernel_thread: boolean;
}

export interface ProcessDetail extends Process {
  readonly thread_list: readonly {
    readonly tid: number;
    readonly name: string;
    /** User plus system time so far. */
    readonly cpu_time_ns: number;
  }[];
}

/** A file that a process executes. */
export interface ProcessFile {
  readonly path: string;
  readonly build_id: string | null;
  readonly names_from: readonly string[];
  /** Static functions have names as well, not only exported ones. */
  readonly complete: boolean;
  readonly lines: boolean;
  readonly unwind_table: boolean;
  readonly refusal: string | null;
  /** What would give better names; empty when there is nothing to do. */
  readonly remedy: string;
}

/** What names profiles of a process will have. */
export interface ProcessSymbols {
  /** The program itself first. */
  readonly files: readonly ProcessFile[];
  readonly anonymous_executable_mappings: number;
  readonly refusal: string | null;
}

export type Target =
  | { readonly pids: readonly number[] }
  | { readonly container: string }
  | { readonly pod: PodSelector }
  | { readonly cgroup: string }
  | { readonly comm: string }
  | { readonly all: true }
  | { readonly network_namespace: string }
  | { readonly imported: ImportedFile };

/** A file that was imported, and what it does not say. */
export interface ImportedFile {
  readonly name: string;
  readonly format: "pprof" | "folded";
  readonly values: "counts" | "durations" | "both";
  readonly has_times: boolean;
  readonly has_threads: boolean;
}

export type TaskKind = "on_cpu" | "off_cpu" | "wall" | "network" | "requests";

export interface TaskSpec {
  readonly kind: TaskKind;
  readonly target: Target;
  readonly duration_s: number | null;
  readonly frequency_hz: number;
  readonly wakers: boolean;
  /** Also the times of system calls; for kind network. */
  readonly timed?: boolean;
  /** Whether each wait is counted or waits are sampled; the agent's setting where it is missing. */
  readonly off_cpu_mode?: OffCpuMode;
  readonly min_wait_ns?: number;
  readonly max_wait_ns?: number;
  /** Also plaintext at the functions of TLS libraries; for kind requests, as what follows. */
  readonly tls?: boolean;
  /** Part of the time in which that is on. */
  readonly tls_duty_percent?: number;
  /** Samples have the path as it was sent. */
  readonly bodies?: boolean;
  readonly raw_paths?: boolean;
  readonly samples?: SamplesKept;
  /** Name of the tasks that are started together. */
  readonly group?: string;
}

/** Which requests are kept one by one. */
export type SamplesKept = "slow" | "all";

/** What a task of kind requests looks for. */
export interface RequestSettings {
  readonly tls: boolean;
  readonly tls_duty_percent: number;
  readonly bodies: boolean;
  readonly raw_paths: boolean;
  readonly samples: SamplesKept;
  readonly rules: readonly unknown[];
  readonly capture_bytes: number;
  readonly cpu_percent: number;
}

export type OffCpuMode = "every" | "sampled" | "auto";

export type TaskState = "queued" | "running" | "finished" | "failed" | "cancelled";

/** How complete user stacks are. */
export interface StackQuality {
  readonly samples: number;
  readonly complete: number;
  readonly unverified: number;
  readonly incomplete: readonly {
    readonly reason: string;
    readonly meaning: string;
    readonly count: number;
  }[];
  readonly tables: {
    readonly pages_loaded: number;
    readonly pages_evicted: number;
    readonly blocks: number;
    readonly frames: number;
    readonly captures: number;
    readonly repaired: number;
    readonly captures_dropped: number;
    readonly processes_left_out: number;
  };
  readonly summary: string;
}

export interface TargetName {
  readonly pid: number;
  readonly start_ticks: number;
  /** Untrusted. */
  readonly comm: string;
}

export interface Task {
  readonly id: string;
  readonly kind: string;
  readonly target: Target;
  /** The processes of a target of pids when the task began; empty in results of older agents. */
  readonly target_names: readonly TargetName[];
  /** Name of the tasks that it was started with. */
  readonly group: string | null;
  readonly duration_s: number | null;
  /** Null for kinds that no clock drives. */
  readonly frequency_hz: number | null;
  readonly wakers: boolean;
  /** Null for other kinds, missing in answers of older agents. */
  readonly requests?: RequestSettings | null;
  readonly effective_frequency_hz: number | null;
  readonly state: TaskState;
  readonly reason: string | null;
  readonly created_at_ns: number;
  readonly started_at_ns: number | null;
  readonly ended_at_ns: number | null;
  readonly progress: number | null;
  readonly clock: "cpu-clock" | "cycles" | "sched-switch" | "wall-clock" | null;
  readonly samples: number;
  readonly stacks: StackQuality;
  /** Null until the end and for other kinds, missing in answers of older agents. */
  readonly coverage?: CpuCoverage | null;
  readonly losses: readonly Loss[];
  readonly notes: readonly string[];
}

export interface ProfileThread {
  readonly pid: number;
  readonly tid: number;
  readonly process: string;
  readonly name: string;
  readonly samples: number;
}

/** A file whose frames lack exact names. */
export interface PoorModule {
  readonly path: string;
  readonly build_id: string | null;
  readonly unnamed: number;
  readonly inferred: number;
}

/** A language runtime whose functions native stacks do not name. */
export interface RuntimeQuality {
  readonly runtime: string;
  readonly frames: number;
  readonly samples: number;
  readonly remedy: string;
}

/** User frames of a result, counted by samples. Each is of one class: the five from `exact` to `unnamed`. */
export interface NamesQuality {
  readonly frames: number;
  readonly exact: number;
  readonly inferred: number;
  /** The loop of an interpreter, whatever function it runs. */
  readonly interpreter: number;
  /** Code made at run time without a perf map. */
  readonly jit: number;
  readonly unnamed: number;
  readonly sources: readonly { readonly source: string; readonly frames: number }[];
  readonly samples: number;
  readonly samples_with_a_name: number;
  readonly modules: readonly PoorModule[];
  readonly runtimes: readonly RuntimeQuality[];
}

export interface ProfileQuality {
  readonly names: NamesQuality;
}

export interface SymbolFile {
  readonly build_id: string;
  readonly bytes: number;
  readonly origin: "uploaded" | "folder" | "debuginfod";
  readonly added_at_ns: number;
  readonly has_symbols: boolean;
  readonly has_debug_information: boolean;
}

export interface SymbolFileList extends List<SymbolFile> {
  readonly max_bytes: number;
}

/** Switches (on the CPU: samples) and time of one kind. */
export interface WaitSum {
  readonly name: string;
  readonly count: number;
  readonly total_ns: number;
}

export interface Waits {
  /** As a part of everything, also where it is hidden. */
  readonly idle: {
    readonly count: number;
    readonly idle_ns: number;
    readonly total_count: number;
    readonly total_ns: number;
    readonly percent: number;
    readonly summary: string;
    readonly rules: readonly WaitSum[];
  } | null;
  readonly states: readonly WaitSum[];
  readonly reasons: readonly WaitSum[];
}

export interface Timeline {
  readonly bucket_ms: number;
  readonly from_ms: number;
  readonly counts: readonly number[];
  /** Only when asked for by thread: the largest threads, and how many others there are. */
  readonly threads?: readonly TimelineThread[];
  readonly other_threads?: number;
}

export interface TimelineThread {
  readonly pid: number;
  readonly tid: number;
  readonly process: string;
  readonly name: string;
  readonly total: number;
  readonly counts: readonly number[];
}

/** Three columns with one entry for each stack that the thread has in a bucket. */
export interface SequenceThread {
  readonly pid: number;
  readonly tid: number;
  readonly process: string;
  readonly name: string;
  readonly total: number;
  /** In ascending order. */
  readonly bucket: readonly number[];
  readonly stack: readonly number[];
  readonly amount: readonly number[];
}

/** Stacks in the order of time buckets; inside a bucket the order is not known. */
export interface Sequence {
  readonly bucket_ms: number;
  readonly from_ms: number;
  readonly buckets: number;
  readonly value: "count" | "duration";
  readonly labels: readonly {
    readonly name: string;
    readonly module: string;
    readonly file: string;
    readonly line: number;
    readonly kind: number;
    readonly source: number;
  }[];
  /** Indexes of labels from the root to the leaf. */
  readonly stacks: readonly (readonly number[])[];
  readonly threads: readonly SequenceThread[];
  readonly other_threads: number;
  readonly other_amount: number;
  readonly stacks_per_bucket: number;
}

export type ProfileFormat = "folded" | "pprof" | "svg" | "speedscope" | "html" | "flamegraph";

/** `counts[i]` values are not above `bounds[i]`; the last of `counts` are above all bounds. */
export interface Histogram {
  readonly bounds: readonly number[];
  readonly counts: readonly number[];
}

export interface EdgeEnd {
  /** Null when the end is not on this node or was not seen. */
  readonly pid: number | null;
  /** With the pid what `Process.id` is made of. */
  readonly start_ticks: number | null;
  readonly comm: string | null;
  readonly container: string | null;
  /** What name servers were asked for to get the address. */
  readonly name: string | null;
  readonly address: string;
  /** Inode of the network namespace of its sockets; null when it is not known, or they are in several. */
  readonly network_namespace: number | null;
  readonly port: number | null;
}

export interface EdgeTransfer {
  readonly count: number;
  readonly bytes: number;
  readonly time_ns: number | null;
  readonly histogram: Histogram | null;
}

export interface EdgeTimes {
  readonly count: number;
  readonly time_ns: number;
  readonly histogram: Histogram;
}

/** What one end measured; null metrics are named in `unavailable`. */
export interface EdgeSide {
  readonly connections: { readonly count: number; readonly open: number };
  readonly write: EdgeTransfer | null;
  readonly read: EdgeTransfer | null;
  readonly connect: (EdgeTimes & { readonly failed: number }) | null;
  readonly accept: EdgeTimes | null;
  readonly close: EdgeTimes | null;
  /** Smoothed by the kernel; with acknowledgements that the peer delays. */
  readonly write_rtt_us: {
    readonly count: number;
    readonly sum: number;
    readonly min: number | null;
    readonly max: number | null;
    readonly histogram: Histogram;
  } | null;
  /** The smallest round trip that the kernel measured: what the network takes. */
  readonly min_rtt_us: number | null;
  readonly receive_wait: EdgeTimes | null;
  readonly retransmit: { readonly count: number } | null;
  readonly drop: { readonly count: number; readonly by_reason: Readonly<Record<string, number>> } | null;
  readonly reset: { readonly count: number; readonly sent: number; readonly received: number } | null;
  readonly error: { readonly count: number; readonly by_errno: Readonly<Record<string, number>> } | null;
  readonly socket: {
    readonly sent_bytes: number;
    readonly received_bytes: number;
    readonly written_bytes: number;
    readonly read_bytes: number;
  } | null;
}

export interface EdgeSides {
  readonly client: EdgeSide | null;
  readonly server: EdgeSide | null;
}

export interface Edge {
  /** The same as long as the edge lives. */
  readonly id: string;
  readonly client: EdgeEnd;
  readonly server: EdgeEnd;
  readonly original_destination: string | null;
  readonly protocol: string;
  readonly tls: boolean | null;
  readonly metrics: EdgeSides;
}

/** The kernel's table of connections. */
export interface KernelTable {
  readonly capacity: number;
  readonly used: number;
  readonly refused: number;
  readonly evicted: number;
  readonly swept: number;
  /** By program. */
  readonly missed_runs: Readonly<Record<string, number>>;
  /** Null in results of older agents. */
  readonly delayed: number | null;
}

export interface EdgeTable {
  readonly edges: readonly Edge[];
  readonly other: { readonly edges: number; readonly metrics: EdgeSides } | null;
  /** Where each metric comes from: the kernel's hook, or `system calls`. */
  readonly sources: Readonly<Record<string, string>>;
  readonly unavailable: Readonly<Record<string, string>>;
  readonly unresolved: Readonly<Record<string, number>>;
  readonly lost: { readonly events: number; readonly bytes: number };
  readonly kernel_table: KernelTable;
  readonly containers: NamedContainers;
}

/** One connection as one end saw it. */
export interface EdgeConnection {
  readonly side: "client" | "server";
  readonly local: string;
  readonly remote: string;
  readonly pid: number | null;
  readonly age_ms: number;
  readonly open: boolean;
  readonly write_calls: number;
  readonly write_bytes: number;
  readonly read_calls: number;
  readonly read_bytes: number;
  /** Mean of the smoothed ones. */
  readonly rtt_mean_us: number | null;
  readonly min_rtt_us: number | null;
  readonly retransmits: number | null;
  readonly drops: number | null;
}

export interface EdgeConnections {
  readonly edge: string;
  readonly items: readonly EdgeConnection[];
  /** Why none are listed. */
  readonly reason: string | null;
  readonly most: number;
}

/** The always-on collection of the node. */
export interface NetworkEdges extends EdgeTable {
  readonly state: "starting" | "running" | "waiting";
  readonly reason: string | null;
  readonly since_ns: number | null;
  readonly restarts: number;
  readonly age_ms: number | null;
}

/** The edges of a task, with what became of it. */
export interface TaskEdges extends EdgeTable {
  readonly state: Task["state"];
  readonly reason: string | null;
}

export interface ProcessReading {
  readonly id: string;
  readonly cpu_percent: number | null;
  readonly rss_bytes: number;
  readonly threads: number;
}

export interface ProcessChange {
  readonly change: "started" | "exited";
  readonly id: string;
  readonly pid: number;
  readonly comm: string | null;
}
