// Generated from docs/http-api.json by `npm run types`; do not edit.

export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description An Envoy that sends its access log. Counts begin with the first of its entries that was received. */
        readonly AccessLogEnvoy: {
            /**
             * Format: int64
             * @description Attempts of the router, which belong to requests that have entries of their own.
             */
            readonly attempts: number;
            /** Format: int64 */
            readonly bytes: number;
            /** @description True: nothing on this node proves which Envoy it is; it is only what it calls itself. */
            readonly claimed: boolean;
            /**
             * Format: int64
             * @description Requests whose answers it has begun, logged or not, by its own count. It is some seconds behind `requests`.
             */
            readonly completed: number | null;
            /**
             * Format: int64
             * @description TCP connections that are over.
             */
            readonly connections: number;
            /**
             * Format: int64
             * @description Entries that it has dropped because its buffers were full, by its own count.
             */
            readonly dropped: number | null;
            /**
             * Format: int64
             * @description Entries that it could not send, by its own count (Envoy 1.40).
             */
            readonly failed: number | null;
            /**
             * Format: int64
             * @description When its first and its newest message came.
             */
            readonly first_ns: number;
            /** @description `PID-STARTTICKS` of the process. */
            readonly id: string | null;
            /** @description Names of its logs. Untrusted text. */
            readonly log_names: readonly string[];
            /** Format: int64 */
            readonly newest_ns: number;
            /** @description What it calls itself; empty where it has not said. Untrusted text. */
            readonly node_id: string;
            /** @description `node_id` is that of a proxy of Istio in another pod than the process's. */
            readonly node_id_differs: boolean;
            /**
             * Format: int64
             * @description Entries of streams that were not over.
             */
            readonly open: number;
            /** @description Address and port of its newest connection. */
            readonly peer: string | null;
            /**
             * Format: int32
             * @description Null where no process of this node holds the other end of its connections.
             */
            readonly pid: number | null;
            /** @description `NAMESPACE/NAME` of the process's pod; null where nothing has named it. Untrusted text. */
            readonly pod: string | null;
            /** @description The process's program; null also where it has ended. Untrusted text. */
            readonly program: string | null;
            /**
             * Format: int64
             * @description Entries of every kind.
             */
            readonly received: number;
            /**
             * Format: double
             * @description Share of `written` and `dropped` that was received. Null where these are not known.
             */
            readonly received_percent: number | null;
            /**
             * Format: int64
             * @description Messages that were refused, with all of their entries.
             */
            readonly refused_messages: number;
            /**
             * Format: int64
             * @description Requests that are over.
             */
            readonly requests: number;
            readonly stage: components["schemas"]["AccessLogStage"];
            /**
             * Format: int64
             * @description Streams that are open.
             */
            readonly streams: number;
            /**
             * Format: int64
             * @description Of `written`, those that were not received.
             */
            readonly unknown: number | null;
            /** @description Why its own counts are not known. Untrusted text. */
            readonly unknown_reason: string | null;
            /**
             * Format: int64
             * @description Entries that were counted and not read, see `stage`.
             */
            readonly unread: number;
            /**
             * Format: int64
             * @description Entries that could not be decoded.
             */
            readonly unreadable: number;
            /** @description Of Envoy, as it says. Untrusted text. */
            readonly version: string;
            /**
             * Format: int64
             * @description Entries that the Envoy has written into its buffers, by its own count.
             */
            readonly written: number | null;
        };
        /**
         * @description How much of what comes is read. `full`: every entry. `counted`: entries are counted and not read, as reading them all would take more
         *     than half of a CPU. `held`: messages wait as well, and Envoys drop what they have no room for.
         * @enum {string}
         */
        readonly AccessLogStage: "full" | "counted" | "held";
        /** @description How long each stage was in force since the agent began, in seconds. */
        readonly AccessLogStages: {
            /** Format: double */
            readonly counted: number;
            /** Format: double */
            readonly full: number;
            /** Format: double */
            readonly held: number;
        };
        /**
         * @description Which Envoys send their access logs, what has come of them, and what is missing. Nothing is received where the agent was started
         *     without `--access-logs`.
         */
        readonly AccessLogStatus: {
            /** @description Those with the most entries first. */
            readonly envoys: readonly components["schemas"]["AccessLogEnvoy"][];
            /**
             * Format: int64
             * @description Connections that failed before anything was received: without TLS where it is asked for, or with a certificate that is not trusted.
             */
            readonly failed_connections: number;
            /** @description False: nothing is received. */
            readonly is_on: boolean;
            /** @description Address and port where it is received. */
            readonly listen: string | null;
            /** @description From where the newest of them came, and why it failed. */
            readonly newest_failure: string | null;
            /**
             * Format: int64
             * @description Connections that were not accepted, because there were too many.
             */
            readonly refused_connections: number;
            readonly stage_seconds: components["schemas"]["AccessLogStages"];
        };
        /**
         * @description Kinds that all time of a thread divides into.
         * @enum {string}
         */
        readonly Activity: "running" | "waiting_for_cpu" | "lock" | "disk" | "page_fault" | "network" | "asleep" | "other" | "idle";
        /** @description Time of one kind in a result, and the parameters that select it. */
        readonly ActivitySum: {
            readonly activity: components["schemas"]["Activity"];
            /**
             * Format: int64
             * @description Switches (on the CPU: samples).
             */
            readonly count: number;
            /** @description Empty: any. */
            readonly reasons: readonly string[];
            /** @description With `idle=hide`; empty for what is idle, which `idle=only` selects. */
            readonly states: readonly string[];
            readonly title: string;
            /** Format: int64 */
            readonly total_ns: number;
        };
        /** @description Time of one kind of a thread, over time. */
        readonly ActivityTimes: {
            readonly activity: components["schemas"]["Activity"];
            /** @description Microseconds in each bucket. */
            readonly times_us: readonly number[];
        };
        /** @description The agent's own cost and losses. */
        readonly AgentSelf: {
            readonly bpf: components["schemas"]["Bpf"];
            /**
             * Format: double
             * @description Share of one core since the previous reading, in percent.
             */
            readonly cpu_percent: number;
            /**
             * Format: double
             * @description User plus system time since the agent started.
             */
            readonly cpu_seconds: number;
            /** @description Losses of all tasks and of the agent since it started. */
            readonly losses: readonly components["schemas"]["Loss"][];
            /** @description What counts against the ceiling. */
            readonly memory: components["schemas"]["Memory"];
            /** Format: int64 */
            readonly open_files: number;
            /** Format: int64 */
            readonly peak_rss_bytes: number;
            /** Format: int64 */
            readonly rss_bytes: number;
            readonly running_tasks: number;
            /**
             * Format: int64
             * @description Disk space that results take.
             */
            readonly store_bytes: number;
            /** Format: int64 */
            readonly uptime_s: number;
        };
        /** @enum {string} */
        readonly AuthKind: "token" | "none";
        readonly BTreeMap: {
            readonly [key: string]: {
                readonly image: string | null;
                /** @description The pod's; without a pod the container's. */
                readonly labels: {
                    readonly [key: string]: string;
                };
                /** @description Null where only the pod is known. */
                readonly name: string | null;
                readonly named_by: components["schemas"]["NamedBy"];
                readonly pod: components["schemas"]["PodNames"] | null;
                readonly role: components["schemas"]["ContainerRole"];
                /** @description `NAMESPACE/POD/CONTAINER`, as far as it is known; without a pod the container's name. */
                readonly title: string;
                readonly workload: components["schemas"]["Workload"] | null;
            };
        };
        /** @enum {string} */
        readonly BodyEncoding: "utf-8" | "base64";
        readonly Bpf: {
            readonly programs: readonly components["schemas"]["BpfProgram"][];
        };
        readonly BpfProgram: {
            readonly name: string;
            /**
             * Format: int64
             * @description Null unless the kernel's BPF statistics are on.
             */
            readonly run_count: number | null;
            /**
             * Format: int64
             * @description Null unless the kernel's BPF statistics are on.
             */
            readonly run_time_ns: number | null;
            /** Format: int64 */
            readonly verified_instructions: number | null;
        };
        /** @description Whether the kernel measures runs of programs. */
        readonly BpfStatistics: {
            readonly by: components["schemas"]["StatisticsBy"] | null;
            readonly on: boolean;
        };
        readonly CallSeries: {
            readonly bytes: readonly number[];
            readonly count: readonly number[];
            readonly time: components["schemas"]["ValueSeries"] | null;
        };
        /** @enum {string} */
        readonly CeilingSource: "setting" | "cgroup" | "none";
        /** @description An on-CPU, an off-CPU and a requests task on one target, and what was read beside them. */
        readonly Checkup: {
            /** Format: int64 */
            readonly created_ns: number;
            /** Format: int64 */
            readonly duration_s: number;
            /**
             * Format: double
             * @description Null when it is over, and while a task waits for its turn.
             */
            readonly ends_in_s: number | null;
            /** @description Also the group of its tasks. */
            readonly id: string;
            /** @description The kernel's accounts, and Envoy's counts and configuration where it could be asked, were kept. */
            readonly observed: boolean;
            /** @description What became of the on-CPU task, which the diagnosis rests on; `running` while any task does. */
            readonly state: components["schemas"]["CheckupState"];
            readonly target: components["schemas"]["Target"];
            readonly tasks: readonly components["schemas"]["CheckupTask"][];
        };
        /** @description What changed from check-up `a` to check-up `b`. */
        readonly CheckupComparison: {
            readonly a: string;
            readonly b: string;
            readonly findings: components["schemas"]["ComparedFindings"];
            readonly latency: components["schemas"]["ComparedLatency"] | null;
            /** @description Why features and findings are not compared; there are none then. */
            readonly not_compared: string | null;
            /** @description Of the same targets, and not compared. Untrusted. */
            readonly other_programs: readonly string[];
            /** @description Whose CPU time is compared, each once. Untrusted. */
            readonly programs: readonly string[];
            /** @description The largest change first. */
            readonly rows: readonly components["schemas"]["ComparedRow"][];
            readonly totals: components["schemas"]["ComparedTotals"];
            readonly verdict: string;
        };
        /** @enum {string} */
        readonly CheckupState: "running" | "finished" | "failed" | "cancelled";
        /** @description One of its tasks. */
        readonly CheckupTask: {
            readonly id: string;
            readonly kind: components["schemas"]["TaskKind"];
            /** @description Why it failed. */
            readonly reason: string | null;
            readonly state: components["schemas"]["TaskState"];
        };
        /** @enum {string} */
        readonly Clock: "cpu-clock" | "cycles" | "sched-switch" | "wall-clock";
        readonly ComparedFinding: {
            readonly id: string;
            readonly title: string;
        };
        /** @description Findings by what became of them. */
        readonly ComparedFindings: {
            readonly gone: readonly components["schemas"]["ComparedFinding"][];
            readonly new: readonly components["schemas"]["ComparedFinding"][];
            readonly still: readonly components["schemas"]["ComparedFinding"][];
        };
        /** @description How long the requests to one program take on both sides. Nothing says how much of a difference is chance. */
        readonly ComparedLatency: {
            readonly a: components["schemas"]["LatencyNumbers"];
            readonly b: components["schemas"]["LatencyNumbers"];
            /** @description Name of the process that the requests came to. Untrusted. */
            readonly process: string;
        };
        /** @description A feature on both sides. */
        readonly ComparedRow: {
            /** Format: double */
            readonly a_percent: number;
            /**
             * Format: double
             * @description Microseconds of CPU time for each request; null when requests are not known.
             */
            readonly a_us: number | null;
            /** Format: double */
            readonly b_percent: number;
            /** Format: double */
            readonly b_us: number | null;
            /**
             * Format: double
             * @description Points of percent, `b` minus `a`; `low` and `high` are its 95 % interval.
             */
            readonly change: number;
            readonly feature: string;
            /** Format: double */
            readonly high: number;
            /** Format: double */
            readonly low: number;
            /**
             * Format: double
             * @description Adjusted for the number of rows; null when there are too few samples for a test.
             */
            readonly p: number | null;
            /** @description `p` is below 0.05, and the change is one point at least. */
            readonly significant: boolean;
            /** @description Its name for people. */
            readonly title: string;
        };
        /** @description A number of each side. */
        readonly ComparedTotal: {
            /** Format: double */
            readonly a: number;
            /** Format: double */
            readonly b: number;
            /**
             * Format: double
             * @description Of `a`; `low` and `high` are its 95 % interval, with what runs of the same differ by.
             */
            readonly change_percent: number;
            /** Format: double */
            readonly high: number;
            /** Format: double */
            readonly low: number;
            /** @description The interval is without zero. */
            readonly significant: boolean;
        };
        readonly ComparedTotals: {
            readonly cpu_cores: components["schemas"]["ComparedTotal"] | null;
            readonly cpu_us_per_request: components["schemas"]["ComparedTotal"] | null;
        };
        /** @description One item of it. */
        readonly ConfiguredItem: {
            readonly key: string;
            readonly value: string;
        };
        readonly ConnectionCount: {
            /** Format: int64 */
            readonly count: number;
            /**
             * Format: int64
             * @description Of these, open now.
             */
            readonly open: number;
        };
        readonly Container: {
            readonly id: string;
            readonly names: components["schemas"]["ContainerNames"] | null;
            /** @description Unique id of its Kubernetes pod, where its cgroup has it. */
            readonly pod_uid: string | null;
            readonly runtime: string;
        };
        readonly ContainerList: {
            readonly items: readonly components["schemas"]["ContainerSummary"][];
            /** @description Who names them. */
            readonly name_sources: readonly components["schemas"]["NameSource"][];
            readonly total: number;
        };
        /** @description What a container is called, by whoever started it. */
        readonly ContainerNames: {
            readonly image: string | null;
            /** @description The pod's; without a pod the container's. */
            readonly labels: {
                readonly [key: string]: string;
            };
            /** @description Null where only the pod is known. */
            readonly name: string | null;
            readonly named_by: components["schemas"]["NamedBy"];
            readonly pod: components["schemas"]["PodNames"] | null;
            readonly role: components["schemas"]["ContainerRole"];
            /** @description `NAMESPACE/POD/CONTAINER`, as far as it is known; without a pod the container's name. */
            readonly title: string;
            readonly workload: components["schemas"]["Workload"] | null;
        };
        /**
         * @description What a container is for in its pod: `sidecar` is an init container that is always restarted, `sandbox` holds the
         *     pod's namespaces.
         * @enum {string}
         */
        readonly ContainerRole: "main" | "init" | "sidecar" | "ephemeral" | "sandbox" | "unknown";
        readonly ContainerSummary: {
            readonly cgroup: string;
            /**
             * Format: double
             * @description Sum over the container's processes; null until one has two readings.
             */
            readonly cpu_percent: number | null;
            readonly id: string;
            readonly names: components["schemas"]["ContainerNames"] | null;
            readonly pids: readonly number[];
            readonly runtime: string;
        };
        /** @description How sure an estimated count is. */
        readonly CountInterval: {
            /**
             * Format: int64
             * @description Null: nobody can tell, of too few or too many connections, or because payload was lost.
             */
            readonly high: number | null;
            /** Format: int64 */
            readonly low: number;
        };
        /**
         * @description Whose sockets requests were counted at.
         * @enum {string}
         */
        readonly CountedFrom: "client" | "server" | "both" | "none";
        /** @description Nanoseconds since the Unix epoch. */
        readonly CountedWindow: {
            /**
             * Format: int64
             * @description When the programs were attached.
             */
            readonly from_ns: number;
            /**
             * Format: int64
             * @description When the counts were read; at the end, when the programs were detached.
             */
            readonly to_ns: number;
        };
        /** @description How long threads waited for a CPU, and who had it meanwhile. Times are nanoseconds, in sum over threads. */
        readonly CpuContention: {
            /** @description The same by container, most time first. */
            readonly by_container: readonly components["schemas"]["CpuHolderGroup"][];
            /** @description The same by pod, most time first. */
            readonly by_pod: readonly components["schemas"]["CpuHolderGroup"][];
            /** @description Most time first. */
            readonly holders: readonly components["schemas"]["CpuHolderTime"][];
            /**
             * Format: int64
             * @description The part of it of which it is known who had the CPU: the sum of `holders`.
             */
            readonly known_ns: number;
            /**
             * Format: int64
             * @description All that they waited for a CPU.
             */
            readonly waited_ns: number;
        };
        /** @description CPU time of the target's processes that were there at the end, from when they were first seen on. */
        readonly CpuCoverage: {
            /**
             * Format: int64
             * @description By the kernel's accounting of the processes, in steps of 10 ms each.
             */
            readonly accounted_ns: number;
            /**
             * Format: double
             * @description Sampled time of the accounted; a little above 100 by the steps. Below 90, and more than chance
             *     can be, the loss `tick_missed` counts the samples that are missing.
             */
            readonly percent: number;
            /**
             * Format: int64
             * @description Processes whose accounts were read, 256 at most.
             */
            readonly processes: number;
            /**
             * Format: int64
             * @description By the samples.
             */
            readonly sampled_ns: number;
        };
        /** @description Processes that had the CPU while threads waited for one, the process of the waiting thread included. */
        readonly CpuHolderGroup: {
            readonly kind: components["schemas"]["CpuHolderGroupKind"];
            /** @description Of a pod `NAMESPACE/POD`, of a container its name or else its id; of what is none, null. Text is untrusted. */
            readonly name: string | null;
            /** Format: int64 */
            readonly ns: number;
            /**
             * Format: double
             * @description Of `waited_ns`.
             */
            readonly share_percent: number;
        };
        /** @enum {string} */
        readonly CpuHolderGroupKind: "container" | "pod" | "outside" | "idle" | "out_of_sight" | "others";
        /**
         * @description What had the CPU.
         * @enum {string}
         */
        readonly CpuHolderKind: "process" | "same_process" | "idle" | "out_of_sight" | "others";
        /** @description One that had the CPU. */
        readonly CpuHolderTime: {
            /** @description Id of its container. */
            readonly container: string | null;
            /** @description What the container is called, `NAMESPACE/POD/CONTAINER` as far as it is known. Text is untrusted. */
            readonly container_name: string | null;
            readonly kind: components["schemas"]["CpuHolderKind"];
            /** @description Null: not one process, or one that had ended before it was looked at. Text is untrusted. */
            readonly name: string | null;
            /** Format: int64 */
            readonly ns: number;
            /** Format: int32 */
            readonly pid: number | null;
            /**
             * Format: double
             * @description Of `waited_ns`.
             */
            readonly share_percent: number;
            /** @description Who it is, for the middle of a sentence: its name and container, or what is known. Printable. */
            readonly title: string;
        };
        /** @description What a CPU quota did. */
        readonly CpuThrottling: {
            /** Format: int64 */
            readonly periods: number;
            /** Format: int64 */
            readonly throttled_ns: number;
            /** Format: int64 */
            readonly throttled_periods: number;
        };
        readonly CreateCheckup: {
            /**
             * Format: int64
             * @description 1 to 3600.
             * @default 30
             */
            readonly duration_s?: number;
            /**
             * Format: int32
             * @description On-CPU samples per second and CPU, 1 to 4999.
             * @default 99
             */
            readonly frequency_hz?: number;
            readonly target: components["schemas"]["Target"];
        };
        readonly CreateTask: {
            /**
             * @description Samples have the first 4096 bytes of bodies of HTTP, as far as they were captured, with `requests`; the
             *     agent must have been started with `--allow-bodies`.
             * @default false
             */
            readonly bodies?: boolean | null;
            /**
             * Format: int32
             * @description First bytes of each read and write that are looked at, 64 to 16384, with `requests`.
             * @default 1024
             */
            readonly capture_bytes?: number | null;
            /**
             * Format: int32
             * @description Share of one CPU in percent, 1 to 100, that reading payload may use before connections are sampled,
             *     with `requests`.
             * @default 5
             */
            readonly cpu_percent?: number | null;
            /**
             * Format: int64
             * @description 1 to 3600; null: until stopped.
             * @default 10
             */
            readonly duration_s?: number | null;
            readonly event_loop?: components["schemas"]["LoopRules"] | null;
            /**
             * Format: int32
             * @description Samples per second and CPU, 1 to 4999; not with `network`, which does not sample.
             * @default 99
             */
            readonly frequency_hz?: number;
            /** @description Name that tasks share which belong together: 1 to 64 letters, digits, `-`, `_` and `.`. */
            readonly group?: string | null;
            readonly kind: components["schemas"]["TaskKind"];
            /**
             * Format: int64
             * @description Longer waits are left out; null: none are.
             */
            readonly max_wait_ns?: number | null;
            /**
             * Format: int64
             * @description Shorter waits are left out; for kinds that measure waits.
             * @default 0
             */
            readonly min_wait_ns?: number;
            readonly off_cpu_mode?: components["schemas"]["OffCpuMode"] | null;
            /**
             * @description Samples have the path as it was sent, its query masked, with `requests`.
             * @default false
             */
            readonly raw_paths?: boolean | null;
            /** @description Requests that are kept besides, with `requests`; at most 16. */
            readonly rules?: readonly components["schemas"]["RequestRule"][] | null;
            readonly samples?: components["schemas"]["RequestSamples"] | null;
            /**
             * @description Where requests are taken from, each source once, with `requests`: `access_log` is what Envoys report to the agent, which must have
             *     been started with `--access-logs`; `tls` needs `sockets`. Null: `sockets`, and `tls` where that is true.
             */
            readonly source?: readonly components["schemas"]["RequestSource"][] | null;
            readonly target: components["schemas"]["Target"];
            /**
             * @description Also how long system calls on sockets take, with `network`; slows every system call of the machine.
             * @default false
             */
            readonly timed?: boolean;
            /**
             * @description Also plaintext at the functions of TLS libraries, as `tls` in `source`, with `requests`; the agent must have been started
             *     with `--allow-tls-capture`.
             * @default false
             */
            readonly tls?: boolean | null;
            /**
             * Format: int32
             * @description Part of the time in which that is on, 1 to 100.
             * @default 100
             */
            readonly tls_duty_percent?: number | null;
            /**
             * @description Also who ended the waits; not with `on_cpu`.
             * @default false
             */
            readonly wakers?: boolean;
        };
        /** @description What the process says is configured. */
        readonly DiagnosedConfiguration: {
            /** Format: int64 */
            readonly concurrency: number | null;
            readonly items: readonly components["schemas"]["ConfiguredItem"][];
            readonly source: string;
            readonly version: string | null;
        };
        /** @description How long threads stayed away from their event loop. */
        readonly DiagnosedEventLoop: {
            /** @description Longest first. */
            readonly stalls: readonly components["schemas"]["LoopStall"][];
            readonly threads: readonly components["schemas"]["LoopThread"][];
            /** Format: int64 */
            readonly threshold_ms: number;
        };
        /** @description What the connections of the processes show. */
        readonly DiagnosedNetwork: {
            /** Format: int64 */
            readonly connections_opened: number;
            /**
             * Format: double
             * @description Null: requests are not known.
             */
            readonly connections_per_request: number | null;
            readonly receive_wait_ns: components["schemas"]["WaitLengths"] | null;
            /** Format: int64 */
            readonly resets: number;
            /**
             * Format: double
             * @description Null: not measured, or nothing was sent.
             */
            readonly retransmit_percent: number | null;
        };
        /** @description A process that has samples. */
        readonly DiagnosedProcess: {
            readonly comm: string;
            readonly container: string | null;
            readonly exe: string;
            /** Format: int32 */
            readonly pid: number;
            /** @description Which rules were applied: `envoy`, `nginx` or `generic`. */
            readonly rule_set: string;
            /** Format: int64 */
            readonly samples: number;
            /** Format: double */
            readonly share_percent: number;
            /** Format: int64 */
            readonly start_ticks: number;
        };
        /** @description Requests in the window. */
        readonly DiagnosedRequests: {
            /** Format: int64 */
            readonly count: number;
            /** Format: double */
            readonly per_second: number;
            /** @description Who counted them. */
            readonly source: string;
        };
        /** @description When the samples were taken, nanoseconds since the Unix epoch. */
        readonly DiagnosedWindow: {
            /** Format: double */
            readonly duration_s: number;
            /** Format: int64 */
            readonly from_ns: number;
            /** Format: int64 */
            readonly to_ns: number;
        };
        /** @description The threads that do the work. */
        readonly DiagnosedWorkers: {
            readonly contention: components["schemas"]["CpuContention"] | null;
            readonly imbalance: components["schemas"]["WorkerImbalance"] | null;
            /** @description Most CPU time first. */
            readonly threads: readonly components["schemas"]["WorkerThread"][];
            readonly throttled: components["schemas"]["CpuThrottling"] | null;
        };
        /**
         * @description Which part of a process costs what. Shares are percent of the time of the on-CPU samples in the
         *     selection; `low` and `high` are their 95 % interval. Null is not known, and `limits` says why.
         */
        readonly Diagnosis: {
            readonly configuration: components["schemas"]["DiagnosedConfiguration"] | null;
            readonly coverage: components["schemas"]["DiagnosisCoverage"];
            readonly event_loop: components["schemas"]["DiagnosedEventLoop"] | null;
            /** @description The largest saving first. */
            readonly findings: readonly components["schemas"]["Finding"][];
            /** @description What is as it should be. */
            readonly good: readonly components["schemas"]["GoodNews"][];
            /** @description How long the requests of these processes take; empty where that was not measured. Most requests first. */
            readonly latency: readonly components["schemas"]["RequestLatency"][];
            /** @description What this cannot know, as sentences. */
            readonly limits: readonly string[];
            readonly matrix: components["schemas"]["DiagnosisMatrix"];
            readonly network: components["schemas"]["DiagnosedNetwork"] | null;
            /** @description What nothing is known of. A verdict without findings says nothing about these. */
            readonly not_measured: readonly components["schemas"]["Measurement"][];
            /** @description The others that have samples: latency is theirs too, all else is not about them. Shares are of all processes. */
            readonly other_processes: readonly components["schemas"]["DiagnosedProcess"][];
            /** @description Those that this is about. Most samples first. */
            readonly processes: readonly components["schemas"]["DiagnosedProcess"][];
            readonly rules: components["schemas"]["DiagnosisRules"];
            readonly totals: components["schemas"]["DiagnosisTotals"];
            /** @description How long requests take and where, then what costs the most CPU time. */
            readonly verdict: string;
            /**
             * Format: int32
             * @description Version of this form.
             */
            readonly version: number;
            readonly window: components["schemas"]["DiagnosedWindow"];
            readonly workers: components["schemas"]["DiagnosedWorkers"];
        };
        /** @description Samples of one feature and one mechanism. */
        readonly DiagnosisCell: {
            readonly feature: string;
            /** Format: double */
            readonly high: number;
            /** Format: double */
            readonly low: number;
            readonly mechanism: string;
            /** Format: int64 */
            readonly ns: number;
            /** @description Rules that put samples here, most first. */
            readonly rules: readonly components["schemas"]["RuleSamples"][];
            /** Format: int64 */
            readonly samples: number;
            /** Format: double */
            readonly share_percent: number;
        };
        /** @description How much of the samples can be believed. */
        readonly DiagnosisCoverage: {
            /**
             * Format: double
             * @description Samples that a rule gave to a feature.
             */
            readonly attributed_percent: number;
            /**
             * Format: double
             * @description Stacks that end where their thread began.
             */
            readonly complete_percent: number;
            /**
             * Format: double
             * @description User frames with a name, exact or inferred, of those of all samples: the same number as in the `quality` of
             *     the task. Null: there are no user frames.
             */
            readonly named_frames_percent: number | null;
            /**
             * Format: double
             * @description Samples with names for at least half of their user frames: what can be diagnosed.
             */
            readonly named_percent: number;
            /**
             * Format: double
             * @description Samples that no rule held for and that are not named.
             */
            readonly no_symbols_percent: number;
            /** Format: int64 */
            readonly samples: number;
            /** @description Enough samples are named for conclusions. */
            readonly sufficient: boolean;
            /** @description What to give the agent so that more has names. */
            readonly supply: string | null;
            /** @description Files whose frames have no names, most samples first. */
            readonly unnamed_modules: readonly components["schemas"]["UnnamedModule"][];
        };
        /** @description A feature, as people call it. */
        readonly DiagnosisFeature: {
            readonly about: string;
            /** @description As in `cell=`: `tracing`, `filter:rbac`. */
            readonly id: string;
            /** @description Some setting changes what it costs. */
            readonly settings: boolean;
            readonly title: string;
        };
        /** @description One finding that there can be. */
        readonly DiagnosisFindingRule: {
            readonly cells: readonly string[];
            readonly id: string;
            /**
             * Format: double
             * @description What is usual and no finding.
             */
            readonly normal_percent: number;
            readonly sets: readonly string[];
            /** @description Keys of what can be changed. */
            readonly settings: readonly string[];
            readonly title: string;
        };
        /**
         * @description How a diagnosis is written.
         * @enum {string}
         */
        readonly DiagnosisFormat: "json" | "markdown";
        /** @description Every sample in one cell: who asked for the work, and what kind of work it is. */
        readonly DiagnosisMatrix: {
            /** @description Cells that have samples, most first. */
            readonly cells: readonly components["schemas"]["DiagnosisCell"][];
            /** @description Features that have samples, most first. */
            readonly features: readonly components["schemas"]["DiagnosisFeature"][];
            readonly mechanisms: readonly components["schemas"]["DiagnosisMechanism"][];
            /** @description Sums of the features, in their order. */
            readonly rows: readonly components["schemas"]["DiagnosisRow"][];
        };
        /** @description A column of the matrix. */
        readonly DiagnosisMechanism: {
            readonly id: string;
            readonly title: string;
        };
        /** @description All samples of one feature; `low` and `high` are the 95 % interval of the share. */
        readonly DiagnosisRow: {
            readonly feature: string;
            /** Format: double */
            readonly high: number;
            /** Format: double */
            readonly low: number;
            /** Format: int64 */
            readonly samples: number;
            /** Format: double */
            readonly share_percent: number;
        };
        /** @description One rule: all conditions that are given must hold, of a list one entry must match. */
        readonly DiagnosisRule: {
            readonly boundary: boolean;
            readonly feature: string | null;
            readonly frames: readonly string[];
            readonly mechanism: string | null;
            readonly module: readonly string[];
            readonly name: string;
            /** @description `embedded` or `user`. */
            readonly origin: string;
            readonly process: readonly string[];
            readonly sets: readonly string[];
            /** @description `user` or `kernel`. */
            readonly space: string;
            readonly symbols: readonly string[];
            readonly thread: readonly string[];
            readonly with: readonly string[];
            readonly without: readonly string[];
        };
        /** @description All rules in force. */
        readonly DiagnosisRuleSets: {
            readonly features: readonly components["schemas"]["DiagnosisFeature"][];
            readonly findings: readonly components["schemas"]["DiagnosisFindingRule"][];
            readonly mechanisms: readonly components["schemas"]["DiagnosisMechanism"][];
            /** @description In their order: the first that holds for a function counts. */
            readonly rules: readonly components["schemas"]["DiagnosisRule"][];
            /** @description Kinds of processes that have rules of their own; the last takes all others. */
            readonly sets: readonly string[];
            /**
             * Format: double
             * @description How much above what is usual the lower end of an interval must be for a finding, in percent.
             */
            readonly threshold_percent: number;
            /** @description Null: only the embedded rules. */
            readonly user_file: string | null;
            /**
             * Format: int32
             * @description Version of the form of the file.
             */
            readonly version: number;
        };
        /** @description The rules that a diagnosis was made by. */
        readonly DiagnosisRules: {
            /** @description The user's file with further rules. */
            readonly user_file: string | null;
            /**
             * Format: int32
             * @description Version of the form of the rules.
             */
            readonly version: number;
        };
        /**
         * @description Which processes of a target have their CPU time diagnosed. Latency is always that of the whole target.
         * @enum {string}
         */
        readonly DiagnosisScope: "sidecar" | "all";
        /** @description What all of it comes to. */
        readonly DiagnosisTotals: {
            /**
             * Format: double
             * @description CPUs that were busy on average, from `cpu_ns`.
             */
            readonly cpu_cores: number | null;
            /**
             * Format: int64
             * @description CPU time by the kernel's own accounting of the processes.
             */
            readonly cpu_ns: number | null;
            readonly cpu_us_per_request: components["schemas"]["Estimate"] | null;
            readonly requests: components["schemas"]["DiagnosedRequests"] | null;
            /**
             * Format: int64
             * @description CPU time that the samples stand for.
             */
            readonly sampled_ns: number;
        };
        /** @description Two results compared. */
        readonly Diff: {
            readonly a: components["schemas"]["DiffSide"];
            /** @description Functions on both sides together, of which `functions` may be only the first. */
            readonly all_functions: number;
            readonly b: components["schemas"]["DiffSide"];
            /** @description Largest change of the self part first. */
            readonly functions: readonly components["schemas"]["DiffFunction"][];
            /** @description How significance was found. */
            readonly method: string;
            readonly norm: string;
            /** @description What the functions are below: everything, or the frame that `below` names. */
            readonly root: components["schemas"]["DiffRoot"];
            readonly significant: number;
            /**
             * Format: int64
             * @description Functions that were tested.
             */
            readonly tested: number;
            /** @description Why nothing is said about significance. */
            readonly unknown: string | null;
            readonly value: string;
        };
        /**
         * @description Which side alone has a function: `removed`, the base; `new`, what is compared with it.
         * @enum {string}
         */
        readonly DiffBadge: "new" | "removed";
        /**
         * @description Formats of a comparison.
         * @enum {string}
         */
        readonly DiffFormat: "table" | "flamegraph";
        /** @description A function on both sides, the base first. */
        readonly DiffFunction: {
            readonly badge: components["schemas"]["DiffBadge"] | null;
            /**
             * Format: double
             * @description Change of the self part: of its share, or of its units for each second.
             */
            readonly change: number;
            readonly kind: string;
            readonly module: string;
            readonly name: string;
            /**
             * Format: double
             * @description Two-sided p-value of this function alone.
             */
            readonly p: number | null;
            /**
             * Format: double
             * @description With all tested functions in view: the smallest false discovery rate at which this one is
             *     called significant.
             */
            readonly q: number | null;
            readonly self: readonly [
                number,
                number
            ];
            /** @description With the function anywhere in the stack; recursion counts once. */
            readonly total: readonly [
                number,
                number
            ];
            /**
             * Format: double
             * @description The same with the function anywhere in the stack.
             */
            readonly total_change: number;
            readonly verdict: components["schemas"]["DiffVerdict"];
            /** Format: double */
            readonly z: number | null;
        };
        /**
         * @description What makes both sides comparable.
         * @enum {string}
         */
        readonly DiffNorm: "share" | "rate";
        /** @description A frame on both sides, the base first. */
        readonly DiffRoot: {
            readonly name: string;
            readonly total: readonly [
                number,
                number
            ];
        };
        /** @description One side of a comparison. */
        readonly DiffSide: {
            /** Format: int64 */
            readonly covered_ns: number;
            /** @description Task, or name of a file. */
            readonly source: string;
            /**
             * Format: int64
             * @description Sum of everything that is compared.
             */
            readonly total: number;
            /**
             * Format: int64
             * @description Time that one unit stands for; 0 where it differs, 1 where the numbers are nanoseconds.
             */
            readonly unit_ns: number;
        };
        /**
         * @description Whether a change is more than chance.
         * @enum {string}
         */
        readonly DiffVerdict: "significant" | "not_significant" | "too_few" | "unknown";
        /** @description Connections from one process to one port of another. */
        readonly Edge: {
            readonly client: components["schemas"]["EdgeEnd"];
            /** @description The same for the same edge as long as it lives: what `.../edges/{edge}/series` takes. */
            readonly id: string;
            readonly metrics: components["schemas"]["EdgeMetrics"];
            /** @description Where the client asked to go (`ADDRESS:PORT`), when that is not where it came out. */
            readonly original_destination: string | null;
            /** @description `tcp` or `unix`. */
            readonly protocol: string;
            readonly server: components["schemas"]["EdgeEnd"];
            /** @description Null: not looked at. */
            readonly tls: boolean | null;
        };
        /** @description One connection as one end saw it. */
        readonly EdgeConnection: {
            /**
             * Format: int64
             * @description Since it was first seen.
             */
            readonly age_ms: number;
            /** Format: int64 */
            readonly drops: number | null;
            /** @description `ADDRESS:PORT` of this end. */
            readonly local: string;
            /**
             * Format: int64
             * @description As `min_rtt_us` of edges.
             */
            readonly min_rtt_us: number | null;
            /** @description False: it has ended, and its other end is waited for. */
            readonly open: boolean;
            /** Format: int32 */
            readonly pid: number | null;
            /** Format: int64 */
            readonly read_bytes: number;
            /** Format: int64 */
            readonly read_calls: number;
            /** @description `ADDRESS:PORT` of the other end, as this one sees it. */
            readonly remote: string;
            /** Format: int64 */
            readonly retransmits: number | null;
            /**
             * Format: int64
             * @description Mean of the smoothed round-trip times at its writes, microseconds; null before the first. As
             *     `write_rtt_us` of edges.
             */
            readonly rtt_mean_us: number | null;
            /** @description The end that saw it. */
            readonly side: components["schemas"]["RequestEnd"];
            /** Format: int64 */
            readonly write_bytes: number;
            /** Format: int64 */
            readonly write_calls: number;
        };
        /** @description The connections of an edge with most bytes, largest first. */
        readonly EdgeConnections: {
            readonly edge: string;
            readonly items: readonly components["schemas"]["EdgeConnection"][];
            /** @description Most that are listed at each end; fewer when other edges have larger ones. */
            readonly most: number;
            /** @description Why none are listed although there may be some. */
            readonly reason: string | null;
        };
        readonly EdgeConnects: {
            /**
             * Format: int64
             * @description Connections that were established.
             */
            readonly count: number;
            /** Format: int64 */
            readonly failed: number;
            readonly histogram: components["schemas"]["EdgeHistogram"];
            /** Format: int64 */
            readonly time_ns: number;
        };
        readonly EdgeDrops: {
            /** @description The kernel's names of the reasons. */
            readonly by_reason: {
                readonly [key: string]: number;
            };
            /** Format: int64 */
            readonly count: number;
        };
        readonly EdgeEnd: {
            /** @description An IP address; of a Unix socket its path, `@NAME`, or `unnamed`. */
            readonly address: string;
            readonly comm: string | null;
            readonly container: string | null;
            /**
             * @description What name servers were asked for to get the address (the original destination's, for a
             *     server); null when no answer was seen, or several names lead to it.
             */
            readonly name: string | null;
            /**
             * Format: int64
             * @description Inode of the network namespace that its sockets are in; null when the end is not on this node, was
             *     not seen, or has sockets in several. The kernel gives the number of a namespace that is gone again.
             */
            readonly network_namespace: number | null;
            /**
             * Format: int32
             * @description Null when the end is not on this node or was not seen.
             */
            readonly pid: number | null;
            /**
             * Format: int32
             * @description Null for the client's end of several connections, and for Unix sockets.
             */
            readonly port: number | null;
            readonly program_kind: components["schemas"]["ProgramKind"] | null;
            /**
             * Format: int64
             * @description Clock ticks from boot to the start of the process: a number may be used again.
             */
            readonly start_ticks: number | null;
        };
        readonly EdgeErrors: {
            /** @description Connections by the number of their last error (`errno`). */
            readonly by_errno: {
                readonly [key: string]: number;
            };
            /** Format: int64 */
            readonly count: number;
        };
        /**
         * @description `counts[i]` values are not above `bounds[i]` and above the bound before it; the last of `counts`
         *     are those above all bounds.
         */
        readonly EdgeHistogram: {
            readonly bounds: readonly number[];
            readonly counts: readonly number[];
        };
        /** @description What each end measured; null for an end that was not watched. */
        readonly EdgeMetrics: {
            readonly client: components["schemas"]["SideMetrics"] | null;
            readonly server: components["schemas"]["SideMetrics"] | null;
        };
        readonly EdgeResets: {
            /** Format: int64 */
            readonly count: number;
            /** Format: int64 */
            readonly received: number;
            /** Format: int64 */
            readonly sent: number;
        };
        /** @description What an edge counted in each step. Every array has one number for each step; sums over steps are exact. */
        readonly EdgeSeries: {
            readonly client: components["schemas"]["SideSeries"] | null;
            /**
             * Format: int64
             * @description Stored parts that cannot be read.
             */
            readonly damaged: number;
            readonly edge: string;
            /**
             * Format: int64
             * @description Steps in which so many edges changed that the counts of some came with a later step.
             */
            readonly late_steps: number;
            /**
             * Format: int64
             * @description Counts that are in no step, in edges and steps: more edges changed at once than there is room for.
             */
            readonly left_out: number;
            readonly server: components["schemas"]["SideSeries"] | null;
            /**
             * @description Steps in milliseconds since counting began, in order: from, and to. One may be missing where stored
             *     results were removed.
             */
            readonly steps_ms: readonly (readonly [
                number,
                number
            ])[];
            /** @description Metrics that are null, with the reason. */
            readonly unavailable: {
                readonly [key: string]: string;
            };
        };
        /**
         * @description Payload of connections that have ended, by the kernel's own counts, beside what the calls that
         *     were seen add up to. The kernel counts the end of a stream as one byte.
         */
        readonly EdgeSocketTotals: {
            /** Format: int64 */
            readonly read_bytes: number;
            /** Format: int64 */
            readonly received_bytes: number;
            /** Format: int64 */
            readonly sent_bytes: number;
            /** Format: int64 */
            readonly written_bytes: number;
        };
        /** @description Connections between processes, from the task's start until now. */
        readonly EdgeTable: {
            /** @description Names of the containers of these edges, by id; those that nobody has named are missing. */
            readonly containers: components["schemas"]["BTreeMap"];
            readonly edges: readonly components["schemas"]["Edge"][];
            readonly kernel_table: components["schemas"]["KernelTable"];
            readonly lost: components["schemas"]["LostTraffic"];
            readonly other: components["schemas"]["OtherEdges"] | null;
            /** @description Where each metric comes from: the kernel's hook, or `system calls`. */
            readonly sources: {
                readonly [key: string]: string;
            };
            /** @description Metrics that are null because this kernel or this mode cannot give them, with the reason. */
            readonly unavailable: {
                readonly [key: string]: string;
            };
            /** @description Connections of which something could not be told, by what. */
            readonly unresolved: {
                readonly [key: string]: number;
            };
            readonly window: components["schemas"]["CountedWindow"] | null;
        };
        readonly EdgeTimes: {
            /** Format: int64 */
            readonly count: number;
            readonly histogram: components["schemas"]["EdgeHistogram"];
            /** Format: int64 */
            readonly time_ns: number;
        };
        readonly EdgeTransfer: {
            /** Format: int64 */
            readonly bytes: number;
            /** Format: int64 */
            readonly count: number;
            readonly histogram: components["schemas"]["EdgeHistogram"] | null;
            /**
             * Format: int64
             * @description Time in the calls that moved something, until they returned. What moved without a system call
             *     of its own, by `io_uring` or as one of several messages, has no time of its own.
             */
            readonly time_ns: number | null;
        };
        readonly EdgeValues: {
            /** Format: int64 */
            readonly count: number;
            readonly histogram: components["schemas"]["EdgeHistogram"];
            /** Format: int64 */
            readonly max: number | null;
            /**
             * Format: int64
             * @description Null before the first value.
             */
            readonly min: number | null;
            /** Format: int64 */
            readonly sum: number;
        };
        /** @description A number with its 95 % interval. */
        readonly Estimate: {
            /** Format: double */
            readonly high: number;
            /** Format: double */
            readonly low: number;
            /** Format: double */
            readonly value: number;
        };
        readonly EventCount: {
            /** Format: int64 */
            readonly count: number;
        };
        /**
         * @description How long threads stay away from epoll. A turn of a loop lasts from a return from epoll, with
         *     events or because its time was over, until the thread's next call.
         */
        readonly EventLoop: {
            /**
             * Format: int64
             * @description What is missing: stalls that are counted and not listed, ended threads, turns that were not
             *     counted. The task's losses say which.
             */
            readonly lost: number;
            /**
             * Format: int64
             * @description All of them.
             */
            readonly stall_count: number;
            /** @description The longest; at most 200. */
            readonly stalls: readonly components["schemas"]["EventLoopStall"][];
            /** @description All of them. */
            readonly thread_count: number;
            /** @description The threads with most time in stalls, then in turns; at most 1000. */
            readonly threads: readonly components["schemas"]["EventLoopThread"][];
            /**
             * Format: int32
             * @description Turns from this length on are stalls.
             */
            readonly threshold_ms: number;
        };
        readonly EventLoopStall: {
            /** Format: int64 */
            readonly duration_ns: number;
            /**
             * @description `on_cpu`: it ran for most of the time that is known; `off_cpu`: it waited, for a CPU or
             *     something else; `unknown`: what the task records explains less than half of the stall.
             */
            readonly kind: string;
            /** @description Of the thread. */
            readonly name: string;
            /** @description The thread did not come back before its end, or has not by now or by the task's end. */
            readonly open: boolean;
            /** Format: int32 */
            readonly pid: number;
            /**
             * Format: int64
             * @description Samples or waits in the stall that the stack was chosen from.
             */
            readonly samples: number;
            /** @description Where most of the recorded time was spent, from the leaf on; empty when nothing was recorded. */
            readonly stack: readonly string[];
            /** Format: int64 */
            readonly start_ns: number;
            /** Format: int32 */
            readonly tid: number;
        };
        readonly EventLoopThread: {
            /**
             * Format: int64
             * @description Time of these, in nanoseconds.
             */
            readonly busy_ns: number;
            readonly loop_ns: components["schemas"]["LoopTimes"];
            /**
             * Format: int64
             * @description Turns that are over.
             */
            readonly loops: number;
            readonly name: string;
            /** Format: int32 */
            readonly pid: number;
            /** Format: int64 */
            readonly stalled_ns: number;
            /**
             * Format: int64
             * @description Stalls, also those that are not over.
             */
            readonly stalls: number;
            /** Format: int32 */
            readonly tid: number;
        };
        /** @description One thing that this kernel or these privileges allow or not. */
        readonly Feature: {
            readonly detail: string;
            /** @description Oldest kernel that has it; empty where the version does not matter. */
            readonly minimum_kernel: string;
            readonly name: string;
            /** @description What to do; empty when there is nothing to do. */
            readonly remedy: string;
            readonly verdict: components["schemas"]["FeatureVerdict"];
        };
        readonly FeatureList: {
            readonly items: readonly components["schemas"]["Feature"][];
        };
        /** @enum {string} */
        readonly FeatureVerdict: "ok" | "degraded" | "missing";
        /** @description Something that costs, and what changes it. */
        readonly Finding: {
            readonly cells: readonly components["schemas"]["FindingCell"][];
            readonly confidence: components["schemas"]["FindingConfidence"];
            /** @description What the process itself says is configured now. */
            readonly configured: string | null;
            /** @description Frames that the rules matched, most samples first. */
            readonly evidence: readonly components["schemas"]["FindingEvidence"][];
            /** Format: double */
            readonly high: number;
            readonly id: string;
            /** Format: double */
            readonly low: number;
            /** @description Why this is a finding, what it counts and what it cannot count. */
            readonly reason: string;
            readonly saving: components["schemas"]["FindingSaving"] | null;
            readonly settings: readonly components["schemas"]["FindingSetting"][];
            readonly severity: components["schemas"]["FindingSeverity"];
            /**
             * Format: double
             * @description Of the samples' time; of something else where `reason` says so.
             */
            readonly share_percent: number;
            readonly title: string;
        };
        /** @description A cell, or all of a feature or of a mechanism, as the parameter `cell` takes it. */
        readonly FindingCell: {
            /** @description Null: every feature. */
            readonly feature: string | null;
            /** @description Null: every mechanism. */
            readonly mechanism: string | null;
        };
        /**
         * @description What a finding rests on: names from tables or counts of the kernel, inferred names, names of threads only, or several of these.
         * @enum {string}
         */
        readonly FindingConfidence: "exact" | "inferred" | "thread" | "mixed";
        /** @description A frame that decided. */
        readonly FindingEvidence: {
            readonly frame: string;
            /** Format: int64 */
            readonly samples: number;
            /** Format: double */
            readonly share_percent: number;
        };
        /**
         * @description What is above the usual. Switching it off saves more where it leaves work to other parts, and less where another
         *     part takes its place.
         */
        readonly FindingSaving: {
            /** Format: double */
            readonly percent: number;
            /**
             * Format: double
             * @description Null: requests are not known.
             */
            readonly us_per_request: number | null;
        };
        /** @description Something to change. Names and labels of the pod, and what is configured now, may be in it. */
        readonly FindingSetting: {
            readonly key: string;
            /** @description What it applies to. */
            readonly scope: string;
            readonly side_effects: string;
            readonly system: components["schemas"]["SettingSystem"];
            /** @description How it is taken back. */
            readonly undo: string;
            /** @description To be copied. */
            readonly yaml: string;
        };
        /**
         * @description How much a finding matters.
         * @enum {string}
         */
        readonly FindingSeverity: "high" | "medium" | "low" | "info";
        /** @description Something that is as it should be. */
        readonly GoodNews: {
            readonly id: string;
            readonly text: string;
            readonly title: string;
        };
        readonly Health: {
            /** @description Always `ok`. */
            readonly status: string;
        };
        /** @description Waits of threads that have nothing to do, as a part of everything, also where they are hidden. */
        readonly Idle: {
            /** Format: int64 */
            readonly count: number;
            /** Format: int64 */
            readonly idle_ns: number;
            /**
             * Format: double
             * @description Share of the time.
             */
            readonly percent: number;
            /** @description Rules that hold for something, most time first. */
            readonly rules: readonly components["schemas"]["WaitSum"][];
            /** @description The same in words. */
            readonly summary: string;
            /**
             * Format: int64
             * @description Everything, idle or not.
             */
            readonly total_count: number;
            /** Format: int64 */
            readonly total_ns: number;
        };
        /**
         * @description How an imported file was written.
         * @enum {string}
         */
        readonly ImportFormat: "pprof" | "folded";
        /**
         * @description Which numbers an imported file has.
         * @enum {string}
         */
        readonly ImportValues: "counts" | "durations" | "both";
        /** @description An imported file, and what it does not say. */
        readonly ImportedFile: {
            readonly format: components["schemas"]["ImportFormat"];
            /** @description Whether samples say which thread they are of; without, all of them are of one. */
            readonly has_threads: boolean;
            /** @description Whether samples say when they were taken; without, all of them are at the task's start. */
            readonly has_times: boolean;
            readonly name: string;
            readonly values: components["schemas"]["ImportValues"];
        };
        readonly IncompleteStacks: {
            /** Format: int64 */
            readonly count: number;
            readonly meaning: string;
            readonly reason: string;
        };
        /**
         * @description Why a request is among the samples.
         * @enum {string}
         */
        readonly KeptAs: "slow" | "failed" | "rule" | "all";
        readonly KernelMap: {
            /**
             * Format: int64
             * @description Null: `reason` says why.
             */
            readonly entries: number | null;
            /** Format: int32 */
            readonly id: number;
            readonly kind: string;
            /** Format: int64 */
            readonly max_entries: number;
            /** Format: int64 */
            readonly memory_bytes: number;
            readonly name: string;
            readonly reason: string | null;
        };
        /** @description Everything that the agent holds in the kernel now. */
        readonly KernelObjectList: {
            readonly maps: readonly components["schemas"]["KernelMap"][];
            readonly programs: readonly components["schemas"]["KernelProgram"][];
            readonly statistics: components["schemas"]["BpfStatistics"];
        };
        readonly KernelProgram: {
            /** Format: int32 */
            readonly id: number;
            /** Format: int64 */
            readonly memory_bytes: number;
            /**
             * Format: int64
             * @description Runs that the kernel left out because the program was at work on that CPU.
             */
            readonly missed_runs: number;
            /** @description At most 15 bytes: the kernel keeps no more. */
            readonly name: string;
            /**
             * Format: int64
             * @description Runs since it was loaded, while the statistics were on; null when they are off and none was counted.
             */
            readonly run_count: number | null;
            /** Format: int64 */
            readonly run_time_ns: number | null;
            /** Format: int64 */
            readonly verified_instructions: number | null;
        };
        /** @description The kernel's table of connections. */
        readonly KernelTable: {
            /** Format: int64 */
            readonly capacity: number;
            /**
             * Format: int64
             * @description Connections whose end waited in the table because the agent was slow; none of their counts is
             *     lost.
             */
            readonly delayed: number;
            /**
             * Format: int64
             * @description How often a connection that rested left it to make room; none of its counts is lost.
             */
            readonly evicted: number;
            /**
             * @description Runs that the kernel left out because the same program was at work on that CPU, by program:
             *     what they would have counted is missing. Empty: none.
             */
            readonly missed_runs: {
                readonly [key: string]: number;
            };
            /**
             * Format: int64
             * @description Connections that found no room when they began; their reads and writes are in `lost` unless
             *     there was room later.
             */
            readonly refused: number;
            /**
             * Format: int64
             * @description Connections whose end was missed, found because the kernel does not list them any more.
             */
            readonly swept: number;
            /**
             * Format: int64
             * @description Connections that are in it.
             */
            readonly used: number;
        };
        /** @description Event `lagged`: the reader was too slow. */
        readonly LaggedEvent: {
            /**
             * Format: int64
             * @description Events that were not sent.
             */
            readonly missed: number;
        };
        /** @description One kind of what a process did. */
        readonly LatencyActivity: {
            readonly kind: components["schemas"]["LatencyActivityKind"];
            /** Format: int64 */
            readonly mean_ns: number;
            /** Format: double */
            readonly share_percent: number;
            /** @description The functions where most of it is, the innermost first; empty where no stack shows it. */
            readonly stack: readonly string[];
            /**
             * @description Of `running` the feature that takes most of it, of `own_requests` the server that is asked most, of `waiting_for_cpu` and
             *     `suspended` the likely reason. Text is untrusted.
             */
            readonly what: string | null;
            /**
             * Format: int64
             * @description What of `mean_ns` belongs to `what`.
             */
            readonly what_ns: number | null;
        };
        /**
         * @description What threads do.
         * @enum {string}
         */
        readonly LatencyActivityKind: "running" | "waiting_for_cpu" | "asleep" | "lock" | "file" | "page_fault" | "blocked" | "own_requests" | "queued" | "suspended";
        /** @description What a process did while it had requests: a mean for each of them. */
        readonly LatencyInside: {
            /** @description Most time first; they add up to `mean_ns`. */
            readonly activities: readonly components["schemas"]["LatencyActivity"][];
            /**
             * Format: int64
             * @description How long it has a request.
             */
            readonly mean_ns: number;
            readonly process: components["schemas"]["LatencyProcess"];
            /**
             * Format: int32
             * @description Threads that read a request or wrote a response. What others did is not counted.
             */
            readonly threads: number;
        };
        /** @description Nanoseconds, as in `RequestLatency`. */
        readonly LatencyNumbers: {
            /** Format: int64 */
            readonly mean_ns: number;
            /** Format: int64 */
            readonly p50_ns: number;
            /** Format: int64 */
            readonly p95_ns: number;
            /** Format: int64 */
            readonly p99_ns: number;
            /** Format: int64 */
            readonly requests: number;
        };
        /** @description One part of the way. */
        readonly LatencyPart: {
            /** Format: int64 */
            readonly mean_ns: number;
            /**
             * Format: int64
             * @description Null: only the mean is known.
             */
            readonly p50_ns: number | null;
            /** Format: int64 */
            readonly p95_ns: number | null;
            readonly place: components["schemas"]["LatencyPlace"];
            readonly process: components["schemas"]["LatencyProcess"] | null;
            /**
             * Format: double
             * @description Of the mean of all requests.
             */
            readonly share_percent: number;
        };
        /**
         * @description Where a request is.
         * @enum {string}
         */
        readonly LatencyPlace: "inbound_queue" | "request_path" | "network" | "upstream" | "server" | "response_queue" | "response_path" | "response_body";
        /** @description A process. Text is untrusted. */
        readonly LatencyProcess: {
            /** @description Its name; where that is not known, its address. */
            readonly name: string;
            /**
             * Format: int32
             * @description Null: not on this node, or not seen.
             */
            readonly pid: number | null;
        };
        readonly Limits: {
            /** Format: int64 */
            readonly max_duration_s: number;
            /** Format: int32 */
            readonly max_frequency_hz: number;
            readonly max_running_tasks: number;
        };
        /** @description Where responses come from. */
        readonly LoggedDetail: {
            /** Format: int64 */
            readonly count: number;
            /** @description `via_upstream`, as in `%RESPONSE_CODE_DETAILS%`. */
            readonly text: string;
        };
        /** @description A response flag. */
        readonly LoggedFlag: {
            /** @description The usual cause, and the setting to look at. */
            readonly cause: string;
            /**
             * Format: int64
             * @description Requests and connections that have it.
             */
            readonly count: number;
            /** @description `UpstreamConnectionFailure`, as in `%RESPONSE_FLAGS_LONG%`. */
            readonly long_name: string;
            /** @description What happened, in a sentence. */
            readonly meaning: string;
            /** @description `UF`, as in `%RESPONSE_FLAGS%`. */
            readonly name: string;
            /** @description Where they were sent, most first: at most three places. Those that are missing from the sum of their counts went elsewhere. */
            readonly upstreams: readonly components["schemas"]["LoggedFlagged"][];
        };
        /** @description Where requests with a response flag were sent. */
        readonly LoggedFlagged: {
            /** @description Address and port of the host of the last attempt; empty: there was none. */
            readonly address: string;
            /** @description Empty: no cluster was chosen. */
            readonly cluster: string;
            /** Format: int64 */
            readonly count: number;
        };
        /**
         * @description Entries that were joined with the same request at a socket of the Envoy: by the connection and the time, or by `x-request-id`. A request
         *     through an Envoy has two ends: one towards the client and one towards the upstream.
         */
        readonly LoggedJoin: {
            /**
             * Format: int64
             * @description Those of them where both have the same `x-request-id`.
             */
            readonly confirmed: number;
            /**
             * Format: int64
             * @description Ends towards the upstream whose times fit a request with another `x-request-id`. They were not joined with it.
             */
            readonly contradicted: number;
            /**
             * Format: int64
             * @description Ends of requests that were answered.
             */
            readonly ends: number;
            /**
             * Format: int64
             * @description Those that were found at a socket.
             */
            readonly joined: number;
            /**
             * Format: int64
             * @description Requests with one attempt of which both ends were found: their times are those of the sockets.
             */
            readonly requests: number;
        };
        /** @description How long one phase of a request took. */
        readonly LoggedPhase: {
            /** @description What happens in it, in a sentence. */
            readonly meaning: string;
            /** @description `read`, `to_upstream`, `upstream`, `response`, `to_client`, `tail` or `cleanup`. */
            readonly name: string;
            readonly ns: components["schemas"]["RequestValues"];
        };
        /** @description What an Envoy reported during the task. Text is untrusted. */
        readonly LoggedReport: {
            /**
             * Format: int64
             * @description TCP connections that are over.
             */
            readonly connections: number;
            /** @description Where responses come from, most first; after some different ones `other`. */
            readonly details: readonly components["schemas"]["LoggedDetail"][];
            /** @description Response flags, those with the most requests and connections first. One request may have several. */
            readonly flags: readonly components["schemas"]["LoggedFlag"][];
            readonly joined: components["schemas"]["LoggedJoin"] | null;
            /**
             * Format: int64
             * @description Requests that the Envoy has logged, or dropped, by its own counters, and that did not arrive or were not read. Counts of
             *     operations contain an estimate of what was dropped or not read. Null: its counters are not known.
             */
            readonly missing: number | null;
            /** @description What it calls itself; empty where it has not said. */
            readonly node_id: string;
            /**
             * Format: int64
             * @description Requests to hosts for which there was no room.
             */
            readonly of_other_upstreams: number;
            /** @description In the order in which a request goes through them; those without times are left out. */
            readonly phases: readonly components["schemas"]["LoggedPhase"][];
            /**
             * Format: int64
             * @description Requests that are over.
             */
            readonly requests: number;
            /**
             * Format: int64
             * @description Requests that took several attempts.
             */
            readonly retried: number;
            /**
             * Format: int64
             * @description Attempts after the first of each request.
             */
            readonly retries: number;
            /** @description Versions of TLS of the clients' connections, most requests first. Requests without TLS are left out. */
            readonly tls: readonly components["schemas"]["LoggedTls"][];
            /** @description Hosts that requests were sent to, those with the most requests first. */
            readonly upstreams: readonly components["schemas"]["LoggedUpstream"][];
        };
        /** @description Requests that come from access logs, beside the operations. */
        readonly LoggedRequests: {
            /** @description Those with the most requests first. */
            readonly envoys: readonly components["schemas"]["LoggingEnvoy"][];
            /**
             * Format: int64
             * @description Entries that arrived faster than they could be read.
             */
            readonly left_out: number;
            /**
             * Format: int64
             * @description Entries of Envoys for which there was no room; their operations are counted.
             */
            readonly of_other_envoys: number;
            /**
             * Format: int64
             * @description Requests that were seen at sockets as well. They are counted once, as the access log has them.
             */
            readonly seen_twice: number;
            /**
             * Format: int64
             * @description Requests into these Envoys that sockets show at listeners with an access log, and of which no entry tells: it was lost, or not all of them
             *     are logged. No operation has them. Known at the end of the task, where all connections were captured.
             */
            readonly without_entry: number;
        };
        /** @description A version of TLS. */
        readonly LoggedTls: {
            /** Format: int64 */
            readonly count: number;
            /** @description `TLSv1.3`. */
            readonly version: string;
        };
        /** @description A host of a cluster. Requests with several attempts belong to the host of the last one. */
        readonly LoggedUpstream: {
            /** @description Address and port. */
            readonly address: string;
            readonly cluster: string;
            /**
             * Format: int64
             * @description Requests that failed at the host: by status 5xx, by a status of gRPC that blames the server, or by a response flag.
             */
            readonly errors: number;
            /** @description From the last byte of the request to the first one of the response. */
            readonly ns: components["schemas"]["RequestValues"];
            /** Format: int64 */
            readonly requests: number;
            /**
             * Format: int64
             * @description Segments that these connections sent again during the task; null: the socket of none was found.
             */
            readonly retransmits: number | null;
            /**
             * @description Round-trip times of the Envoy's connections to the address, by the kernel: one of each connection that was open when its socket was
             *     looked for.
             */
            readonly rtt_ns: components["schemas"]["RequestValues"];
            /** @description How the host differs from the others of its cluster by more than chance; null: it does not, or there are too few requests. */
            readonly stands_out: string | null;
        };
        /** @description An Envoy that sends its access log. */
        readonly LoggingEnvoy: components["schemas"]["LoggedReport"] & {
            /** @description No process of this node is known to be this Envoy: it is only what it calls itself. */
            readonly claimed: boolean;
            /** @description Its port is null. */
            readonly process: components["schemas"]["EdgeEnd"];
        };
        /** @description Lengths of loops; upper bounds of the buckets that they were counted in. */
        readonly LoopLengths: {
            /** Format: int64 */
            readonly max: number;
            /** Format: int64 */
            readonly p50: number;
            /** Format: int64 */
            readonly p99: number;
        };
        /** @description What is asked for of event loops. */
        readonly LoopRules: {
            /**
             * Format: int32
             * @description Turns from this length on are stalls.
             */
            readonly threshold_ms: number;
        };
        /** @description One loop that took long. */
        readonly LoopStall: {
            /** Format: int64 */
            readonly duration_ns: number;
            readonly name: string;
            /** Format: int64 */
            readonly samples: number;
            /** @description Where the thread was most, from the leaf on; empty when no sample fell into it. */
            readonly stack: readonly string[];
            /**
             * Format: int64
             * @description Nanoseconds since the Unix epoch.
             */
            readonly start_ns: number;
            /** Format: int32 */
            readonly tid: number;
        };
        /** @description The event loop of one thread. */
        readonly LoopThread: {
            readonly loop_ns: components["schemas"]["LoopLengths"] | null;
            /** Format: int64 */
            readonly loops: number;
            readonly name: string;
            /** Format: int64 */
            readonly stalled_ns: number;
            /**
             * Format: int64
             * @description Loops that took longer than the threshold, and their time.
             */
            readonly stalls: number;
            /** Format: int32 */
            readonly tid: number;
        };
        /** @description Lengths of turns in nanoseconds; null without turns. */
        readonly LoopTimes: {
            /**
             * Format: int64
             * @description Exact.
             */
            readonly max: number | null;
            /**
             * Format: int64
             * @description At most a quarter too long, as the next: bounds of the buckets that turns are counted in.
             */
            readonly p50: number | null;
            /** Format: int64 */
            readonly p99: number | null;
        };
        readonly Loss: {
            /** Format: int64 */
            readonly count: number;
            readonly kind: string;
            /** @description What was lost and what it means for the result. */
            readonly meaning: string;
        };
        /** @description Reads and writes of connections that did not fit the kernel's table. */
        readonly LostTraffic: {
            /** Format: int64 */
            readonly bytes: number;
            /** Format: int64 */
            readonly events: number;
        };
        /**
         * @description What ties a pair together: the process's own access log, the same ids, `fingerprint` (alike, and nothing else fits), or `order`
         *     (several fit equally well, and the first was taken).
         * @enum {string}
         */
        readonly MatchClass: "access_log" | "request_id" | "trace_id" | "fingerprint" | "order";
        /** @description For how long the kernel shall measure runs of programs. */
        readonly MeasureRuns: {
            /**
             * Format: int64
             * @description 100 to 10,000; the answer comes then.
             */
            readonly duration_ms: number;
        };
        /** @description Two readings, between which the kernel measured every run of a program. */
        readonly MeasuredRuns: {
            readonly after: components["schemas"]["KernelObjectList"];
            readonly before: components["schemas"]["KernelObjectList"];
            /**
             * Format: int64
             * @description Between the two.
             */
            readonly elapsed_ns: number;
        };
        /**
         * @description A part of the evidence that a diagnosis may lack: `latency` is how long requests take; `cpu_time` is by the kernel's own
         *     accounting; `requests` is how many there were.
         * @enum {string}
         */
        readonly Measurement: "latency" | "waits" | "connections" | "event_loops" | "cpu_time" | "requests" | "configuration";
        /** @description The agent's memory, its ceiling, and what was given up for it. */
        readonly Memory: {
            /**
             * Format: int64
             * @description Times that caches were dropped since the agent started.
             */
            readonly caches_dropped: number;
            /** Format: int64 */
            readonly ceiling_bytes: number | null;
            /** @description Where the ceiling comes from. */
            readonly ceiling_source: components["schemas"]["CeilingSource"];
            readonly cgroup: components["schemas"]["MemoryCgroup"] | null;
            /**
             * Format: int64
             * @description Copies of symbol tables in files without a name.
             */
            readonly copied_bytes: number;
            /**
             * Format: int64
             * @description Maps and programs in the kernel.
             */
            readonly kernel_bytes: number;
            /**
             * Format: int64
             * @description Heap, stacks and other pages without a file.
             */
            readonly own_bytes: number;
            /**
             * Format: int64
             * @description Tasks, imports and results that were refused since then.
             */
            readonly refusals: number;
            readonly stage: components["schemas"]["MemoryStage"];
            /**
             * Format: int64
             * @description Tasks and collections that were stopped since then.
             */
            readonly stopped: number;
            /**
             * Format: int64
             * @description Sum of the next three; what the ceiling is for.
             */
            readonly used_bytes: number;
        };
        readonly MemoryCgroup: {
            /** Format: int64 */
            readonly limit_bytes: number;
            readonly path: string;
        };
        /**
         * @description What the agent gives up: nothing; caches; new tasks as well; running tasks as well.
         * @enum {string}
         */
        readonly MemoryStage: "open" | "trimming" | "refusing" | "stopping";
        readonly Meta: {
            readonly arch: string;
            readonly auth: components["schemas"]["AuthKind"];
            /** @description Whether the kernel describes its types, which the probes need. */
            readonly btf: boolean;
            /** Format: double */
            readonly cpu_budget_percent: number | null;
            /** @description CPUs online. */
            readonly cpus: number;
            /** @description Whether all that is shown was recorded elsewhere (`serve --demo-data`); no task is started. */
            readonly demo_data: boolean;
            /** @description Commit the agent was built from, or `unknown`. */
            readonly git_revision: string;
            readonly kernel: string;
            readonly limits: components["schemas"]["Limits"];
            /** @description Whether the connections of the node are watched for the agent's life. */
            readonly network: components["schemas"]["NetworkMode"];
            /** @description Host name. */
            readonly node: string;
            readonly probes: readonly components["schemas"]["Probe"][];
            /** @description What the token of this request may do. */
            readonly role: components["schemas"]["RoleName"];
            readonly version: string;
        };
        readonly ModuleQuality: {
            /** @description Null when the file has none, so that no symbol file can be given for it. */
            readonly build_id: string | null;
            /** Format: int64 */
            readonly inferred: number;
            readonly path: string;
            /** Format: int64 */
            readonly unnamed: number;
        };
        /** @description Who names containers. */
        readonly NameSource: {
            /** @description Containers that exist and have their names from it. */
            readonly containers: number;
            /** @description Whom it asks. */
            readonly endpoint: string | null;
            /** @description Why it is off or waits. */
            readonly reason: string | null;
            /** @description The first that knows a container is believed. */
            readonly source: components["schemas"]["NamedBy"];
            readonly state: components["schemas"]["NameSourceState"];
        };
        /**
         * @description Whether a source of names answers: `waiting` has failed and is asked again.
         * @enum {string}
         */
        readonly NameSourceState: "off" | "connecting" | "connected" | "waiting";
        /**
         * @description A source of names.
         * @enum {string}
         */
        readonly NamedBy: "kubernetes" | "cri" | "docker";
        readonly NamedSeries: {
            /** @description By reason (drops) or `errno` (errors). */
            readonly by_name: {
                readonly [key: string]: readonly number[];
            };
            readonly count: readonly number[];
        };
        /** @description Names of user frames. Each frame is of one class: `exact`, `inferred`, `interpreter`, `jit` or `unnamed`. */
        readonly NamesQuality: {
            /**
             * Format: int64
             * @description Named by a table that compiler, linker or runtime made.
             */
            readonly exact: number;
            /** Format: int64 */
            readonly frames: number;
            /**
             * Format: int64
             * @description Deduced from what the code refers to.
             */
            readonly inferred: number;
            /**
             * Format: int64
             * @description The loop of an interpreter: its name says nothing of the function that it interprets.
             */
            readonly interpreter: number;
            /**
             * Format: int64
             * @description Code made at run time, in memory without a file, that no perf map names.
             */
            readonly jit: number;
            /** @description Files whose frames lack exact names, most frames first; at most 50. */
            readonly modules: readonly components["schemas"]["ModuleQuality"][];
            /** @description Language runtimes that `interpreter` and `jit` are of, most frames first. */
            readonly runtimes: readonly components["schemas"]["RuntimeQuality"][];
            /**
             * Format: int64
             * @description Samples with at least one user frame.
             */
            readonly samples: number;
            /**
             * Format: int64
             * @description Those of them with at least one named user frame.
             */
            readonly samples_with_a_name: number;
            /** @description Where the names came from, most frames first. */
            readonly sources: readonly components["schemas"]["SourceCount"][];
            /**
             * Format: int64
             * @description All others without a name.
             */
            readonly unnamed: number;
        };
        /** @description The always-on collection of the whole node, with everything that it has counted. */
        readonly NetworkEdges: components["schemas"]["EdgeTable"] & {
            /**
             * Format: int64
             * @description Age of the table; null before the first.
             */
            readonly age_ms: number | null;
            /** @description Why it does not run. */
            readonly reason: string | null;
            /**
             * Format: int64
             * @description Times that it had to be started again. Counts go on; connections that were open count again.
             */
            readonly restarts: number;
            /**
             * Format: int64
             * @description When counting began; null before that.
             */
            readonly since_ns: number | null;
            readonly state: components["schemas"]["NetworkState"];
        };
        /** @enum {string} */
        readonly NetworkMode: "always" | "tasks";
        /** @enum {string} */
        readonly NetworkState: "starting" | "running" | "waiting";
        /**
         * @description How the pods of the node do, what needs attention first. Nothing is read where the agent was started with
         *     `--overview off`.
         */
        readonly NodeOverview: components["schemas"]["Overview"] & {
            /** @description The newest check-up of each row that has one. */
            readonly checkups: readonly components["schemas"]["RowCheckup"][];
            /** @description False: it is off, and there are no rows. */
            readonly is_on: boolean;
        };
        /** @enum {string} */
        readonly OffCpuMode: "every" | "sampled" | "auto";
        /** @description Everything that edges had counted which are no longer told apart. */
        readonly OtherEdges: {
            /**
             * Format: int64
             * @description How many; an edge that came back and went again counts again.
             */
            readonly edges: number;
            readonly metrics: components["schemas"]["EdgeMetrics"];
        };
        /** @description All rows, what needs attention first, with what it costs to know them. */
        readonly Overview: {
            /**
             * Format: double
             * @description CPU time of the agent's threads that read, in percent of one core, since they began.
             */
            readonly cost_percent: number | null;
            /** @description What is not known and why, as sentences. */
            readonly notes: readonly string[];
            /**
             * Format: double
             * @description Seconds between two readings, at least: on a node with very many processes they are more.
             */
            readonly period_s: number;
            /**
             * Format: int64
             * @description When the values were read, in nanoseconds since the Unix epoch; null before there are any.
             */
            readonly read_ns: number | null;
            readonly rows: readonly components["schemas"]["OverviewRow"][];
            /** @description In one sentence: what needs attention, and on which row. */
            readonly summary: string;
        };
        /** @description CPU time, in cores. */
        readonly OverviewCpu: {
            /** Format: double */
            readonly cores: number | null;
            readonly limit: components["schemas"]["OverviewLimit"] | null;
            /**
             * Format: double
             * @description Threads that could have run and had no CPU, on average.
             */
            readonly waiting: number | null;
        };
        /**
         * @description What the processes of a row have in common.
         * @enum {string}
         */
        readonly OverviewKind: "pod" | "container" | "service" | "program";
        /** @description A CPU quota, which may be that of one container of a pod. */
        readonly OverviewLimit: {
            /**
             * Format: double
             * @description What it allows.
             */
            readonly cores: number;
            /**
             * Format: int64
             * @description Periods in which something ran below it; null with one reading only.
             */
            readonly periods: number | null;
            /**
             * Format: int64
             * @description Those of them in which it was used up.
             */
            readonly throttled_periods: number | null;
            /**
             * Format: double
             * @description What was used of it, also by processes that have ended.
             */
            readonly used_cores: number;
        };
        /** @description A pod by its name. */
        readonly OverviewPod: {
            readonly name: string;
            readonly namespace: string;
        };
        /** @description A row at an earlier reading. */
        readonly OverviewPoint: {
            /**
             * Format: int64
             * @description Nanoseconds since the Unix epoch.
             */
            readonly at_ns: number;
            /** Format: double */
            readonly cores: number | null;
            /**
             * Format: double
             * @description Of requests that it answered; the upper end.
             */
            readonly p95_ms: number | null;
            /**
             * Format: double
             * @description Of requests that it answered, else of those that it sent.
             */
            readonly requests_per_s: number | null;
        };
        /** @description Requests by Envoy's own counters. */
        readonly OverviewRequests: {
            /** Format: int64 */
            readonly count: number;
            /**
             * Format: int64
             * @description Answers with status 5xx.
             */
            readonly errors: number;
            readonly p50: components["schemas"]["OverviewTime"] | null;
            readonly p95: components["schemas"]["OverviewTime"] | null;
            /** Format: double */
            readonly per_s: number;
            /**
             * Format: double
             * @description Seconds in which they were counted.
             */
            readonly window_s: number;
        };
        /**
         * @description A pod, or a group of processes outside of pods. Values are of the time between the last two readings; what is null is not
         *     known.
         */
        readonly OverviewRow: {
            readonly answered: components["schemas"]["OverviewRequests"] | null;
            readonly cpu: components["schemas"]["OverviewCpu"];
            /** @description The last ten minutes, the oldest first, at most 120. */
            readonly history: readonly components["schemas"]["OverviewPoint"][];
            /** @description The same in each answer, also after a restart of a pod that has a name. */
            readonly id: string;
            readonly kind: components["schemas"]["OverviewKind"];
            /**
             * Format: int64
             * @description Inode number of its network namespace.
             */
            readonly network_namespace: number | null;
            /** @description Those that a check-up is for: app and sidecar; at most 64. */
            readonly pids: readonly number[];
            readonly pod: components["schemas"]["OverviewPod"] | null;
            /** Format: int64 */
            readonly processes: number;
            /** @description Why neither is known, or not of all its Envoys. */
            readonly requests_unknown: string | null;
            readonly segments: components["schemas"]["OverviewSegments"] | null;
            readonly sent: components["schemas"]["OverviewRequests"] | null;
            /** @description Untrusted text. */
            readonly title: string;
            /** @description The worst first. */
            readonly troubles: readonly components["schemas"]["Trouble"][];
            /**
             * Format: double
             * @description Seconds between the two readings; null while there is one only.
             */
            readonly window_s: number | null;
            /** @description What manages it, as `KIND/NAME`. Untrusted text. */
            readonly workload: string | null;
        };
        /** @description TCP segments. */
        readonly OverviewSegments: {
            /** Format: int64 */
            readonly retransmitted: number;
            /** Format: double */
            readonly retransmitted_per_s: number;
            /** Format: int64 */
            readonly sent: number;
        };
        /** @description A time of requests: between these two, in milliseconds, which are the ends of the bucket that Envoy counts it in. */
        readonly OverviewTime: {
            /** Format: double */
            readonly from_ms: number;
            /** Format: double */
            readonly to_ms: number;
        };
        /** @description A file with a TLS library. Its path is untrusted text. */
        readonly PlaintextFile: {
            readonly build_id: string | null;
            /** @description How its functions were found. */
            readonly found_by: string | null;
            readonly library: string | null;
            readonly path: string;
            readonly probes: readonly components["schemas"]["PlaintextProbe"][];
            /**
             * Format: int64
             * @description Processes of the target that run it.
             */
            readonly processes: number;
            /** @description Why it, or a function of it, has no probes. */
            readonly reasons: readonly string[];
        };
        /** @description A place at which plaintext is read. */
        readonly PlaintextProbe: {
            /** @description As linked, in hexadecimal. */
            readonly address: string;
            /** @description What the kernel does with the instruction there. */
            readonly class: string;
            readonly function: string;
            /**
             * Format: int32
             * @description What a hit takes there, about, without the program.
             */
            readonly price_ns: number;
            /** @description It reads the function's result, else its arguments. */
            readonly result: boolean;
        };
        /** @description A network namespace with its processes. */
        readonly Pod: components["schemas"]["PodReading"] & {
            /** @description The pod's labels. */
            readonly labels: {
                readonly [key: string]: string;
            };
            readonly pod: components["schemas"]["PodNames"] | null;
            readonly processes: readonly components["schemas"]["PodProcess"][];
            /** @description `NAMESPACE/NAME` where its containers are named as those of one pod, else made of the names of its programs. */
            readonly title: string;
            readonly workload: components["schemas"]["Workload"] | null;
        };
        /**
         * @description What the processes of one network namespace are.
         * @enum {string}
         */
        readonly PodKind: "pod" | "host" | "unknown";
        readonly PodList: {
            readonly items: readonly components["schemas"]["Pod"][];
            readonly total: number;
        };
        readonly PodNames: {
            readonly name: string;
            readonly namespace: string;
            readonly uid: string;
        };
        readonly PodProcess: {
            readonly comm: string;
            readonly container: string | null;
            /** Format: double */
            readonly cpu_percent: number | null;
            readonly id: string;
            /** Format: int32 */
            readonly pid: number;
            /** @description What it calls itself, or the name of its file. */
            readonly program: string;
            /** @description Why it has this role: Kubernetes says so, or names do. */
            readonly reason: string;
            readonly role: components["schemas"]["PodRole"];
            /** Format: int64 */
            readonly rss_bytes: number;
            /** Format: int32 */
            readonly threads: number;
        };
        /** @description What is read anew of a pod, every two seconds by the event `processes`. */
        readonly PodReading: {
            /**
             * Format: double
             * @description Shares of one CPU; null before there is any reading.
             */
            readonly cpu_percent: number | null;
            readonly kind: components["schemas"]["PodKind"];
            /**
             * Format: int64
             * @description Inode number of the network namespace.
             */
            readonly network_namespace: number | null;
            /** Format: int64 */
            readonly rss_bytes: number;
            /** Format: double */
            readonly sidecar_cpu_percent: number | null;
            /** @description What the sidecar takes of its pod, or why that cannot be told. */
            readonly summary: string;
            /** @description Processes that have no reading yet and are not in the sums. */
            readonly without_reading: number;
        };
        /**
         * @description The role of a process in its pod.
         * @enum {string}
         */
        readonly PodRole: "app" | "sidecar" | "other";
        /** @description Which pods, and which of their containers; one of `name`, `labels` and `container` must be there. */
        readonly PodSelector: {
            /** @description Name of a container; without a name and labels also one of Docker's. */
            readonly container?: string;
            /** @description As in `kubectl get --selector`: `app=web,tier in (a,b),!canary`. */
            readonly labels?: string;
            readonly name?: string;
            readonly namespace?: string;
        };
        readonly Probe: {
            /** @description Oldest kernel that has what the probe needs. */
            readonly minimum_kernel: string;
            readonly name: string;
            readonly reason: string | null;
            readonly state: components["schemas"]["ProbeState"];
        };
        readonly ProbeList: {
            readonly items: readonly components["schemas"]["Probe"][];
        };
        /** @enum {string} */
        readonly ProbeState: "available" | "attached" | "unavailable" | "denied";
        /** @description An error answer (RFC 9457). */
        readonly Problem: {
            /** @description What failed, for programs; stable. */
            readonly code: string;
            /** @description What failed, for people. */
            readonly detail: string;
            /** @description The field or parameter that is wrong. */
            readonly field?: string;
            /** @description What to do about it. */
            readonly hint?: string;
            /** Format: int32 */
            readonly status: number;
            /** @description The status in words. */
            readonly title: string;
            /** @description Always `about:blank`. */
            readonly type: string;
        };
        /** @description A process of the node. */
        readonly Process: {
            /** @description The program, then `***` for each argument unless the agent runs with `--show-arguments`. */
            readonly arguments: readonly string[];
            readonly cgroup: string;
            readonly comm: string;
            readonly container: components["schemas"]["Container"] | null;
            /**
             * Format: double
             * @description Share of one CPU (two busy threads: 200); null until there are two readings.
             */
            readonly cpu_percent: number | null;
            readonly exe: string | null;
            /** @description `PID-STARTTICKS`: unique, unlike the pid alone. */
            readonly id: string;
            readonly kernel_thread: boolean;
            /**
             * Format: int64
             * @description Inode number of the network namespace.
             */
            readonly network_namespace: number | null;
            /** Format: int32 */
            readonly parent_pid: number;
            /** Format: int32 */
            readonly pid: number;
            /**
             * @description What it calls itself, completed from the name of its file where the kernel cut it; of proxies and what serves
             *     them the name of the file.
             */
            readonly program: string;
            /** Format: int64 */
            readonly rss_bytes: number;
            /** Format: int32 */
            readonly threads: number;
            /** Format: int32 */
            readonly uid: number;
            readonly user: string | null;
        };
        /** @enum {string} */
        readonly ProcessChange: "started" | "exited";
        readonly ProcessDetail: components["schemas"]["Process"] & {
            readonly thread_list: readonly components["schemas"]["ProcessThread"][];
        };
        /** @description Event `process`. */
        readonly ProcessEvent: {
            readonly change: components["schemas"]["ProcessChange"];
            readonly comm: string | null;
            readonly id: string;
            /** Format: int32 */
            readonly pid: number;
        };
        readonly ProcessFile: {
            readonly build_id: string | null;
            /** @description Static functions have names as well, not only exported ones. */
            readonly complete: boolean;
            /** @description Lines and inlined functions are known. */
            readonly lines: boolean;
            /** @description In the order in which they are asked. */
            readonly names_from: readonly string[];
            readonly path: string;
            /** @description Why the file is of no use. */
            readonly refusal: string | null;
            /** @description What would give better names; empty when there is nothing to do. */
            readonly remedy: string;
            readonly unwind_table: boolean;
        };
        readonly ProcessList: {
            readonly items: readonly components["schemas"]["Process"][];
            /** @description Processes that match, before `limit`. */
            readonly total: number;
        };
        readonly ProcessReading: {
            /** Format: double */
            readonly cpu_percent: number | null;
            readonly id: string;
            /** Format: int64 */
            readonly rss_bytes: number;
            /** Format: int32 */
            readonly threads: number;
        };
        /** @description The files that a process executes, and where the names of their functions can come from. */
        readonly ProcessSymbols: {
            /** @description Executable mappings without a file: code that was made while running. */
            readonly anonymous_executable_mappings: number;
            /** @description The program itself first. */
            readonly files: readonly components["schemas"]["ProcessFile"][];
            /** @description Why its stacks cannot be walked at all. */
            readonly refusal: string | null;
        };
        readonly ProcessThread: {
            /**
             * Format: int64
             * @description User plus system time so far.
             */
            readonly cpu_time_ns: number;
            readonly name: string;
            /** Format: int32 */
            readonly tid: number;
        };
        /** @description Event `processes`. */
        readonly ProcessesEvent: {
            readonly items: readonly components["schemas"]["ProcessReading"][];
            /** @description Busiest first, as in the list of pods. */
            readonly pods: readonly components["schemas"]["PodReading"][];
        };
        /**
         * @description Formats of a profile.
         * @enum {string}
         */
        readonly ProfileFormat: "folded" | "pprof" | "svg" | "speedscope" | "html" | "flamegraph";
        /**
         * @description Which waits are shown: all, those of threads that have something to do, or the others.
         * @enum {string}
         */
        readonly ProfileIdle: "show" | "hide" | "only";
        /** @description How good a result is. Counts are by samples: a frame counts once for each sample that has it. */
        readonly ProfileQuality: {
            readonly names: components["schemas"]["NamesQuality"];
        };
        /** @description A thread in a profile. */
        readonly ProfileThread: {
            /** @description What it did, idle waits included whatever is shown; empty where the result has no waits. */
            readonly activities: readonly components["schemas"]["ThreadActivity"][];
            /** @description Id of its container. */
            readonly container: string | null;
            /** @description Name of the thread. */
            readonly name: string;
            /** Format: int32 */
            readonly pid: number;
            /** @description `NAMESPACE/POD`, also of one that has ended; null where nothing has named it. Untrusted. */
            readonly pod: string | null;
            /** @description Name of the process. */
            readonly process: string;
            /** Format: int64 */
            readonly samples: number;
            /** Format: int32 */
            readonly tid: number;
            /**
             * Format: int64
             * @description The time that these stand for.
             */
            readonly total_ns: number;
        };
        readonly ProfileThreadList: {
            /** @description Most samples first. */
            readonly items: readonly components["schemas"]["ProfileThread"][];
        };
        /**
         * @description What the numbers of a profile count.
         * @enum {string}
         */
        readonly ProfileValue: "count" | "duration";
        /**
         * @description Programs of a pod that are not its own work, known by their names.
         * @enum {string}
         */
        readonly ProgramKind: "proxy" | "proxy_agent" | "keeper";
        readonly Readiness: {
            /** @description Always `ready`. */
            readonly status: string;
        };
        /** @description The beginning of a body, as it was sent. */
        readonly RequestBody: {
            /** @description More came behind it. */
            readonly cut: boolean;
            readonly data: string;
            readonly encoding: components["schemas"]["BodyEncoding"];
        };
        /** @description Between which values each percentile lies. */
        readonly RequestBounds: {
            readonly p50: readonly [
                number,
                number
            ] | null;
            readonly p90: readonly [
                number,
                number
            ] | null;
            readonly p99: readonly [
                number,
                number
            ] | null;
            readonly p999: readonly [
                number,
                number
            ] | null;
        };
        /** @description Requests of HTTP without TLS on one edge, each counted once. Upgrades are left out. */
        readonly RequestCount: {
            /**
             * Format: int64
             * @description Requests that are over.
             */
            readonly count: number;
            /** @description The end whose sockets counted. */
            readonly counted_from: components["schemas"]["RequestEnd"];
            readonly edge: components["schemas"]["RequestEdge"];
            /** Format: int64 */
            readonly errors: number;
            /**
             * @description A request is broken here if its connection ended before the answer began, or its stream of HTTP/2 was reset or open at the
             *     end of the connection.
             */
            readonly errors_by_class: components["schemas"]["RequestErrors"];
            /** @description No request is known to be missing; else there may be more. */
            readonly exact: boolean;
            /**
             * @description From the first byte of the request to the last one of the answer; `min`, `max` and `sum` of HTTP/1 are rounded down to 64 ns for
             *     each.
             */
            readonly latency_ns: components["schemas"]["RequestValues"];
            /** @description `http1`, or `http2`, which calls of gRPC are counted as. */
            readonly protocol: string;
            /**
             * Format: int64
             * @description Their status could not be read: of HTTP/2 that of every answer with trailers, as calls of gRPC have.
             */
            readonly unknown: number;
        };
        /** @description From which process to which. */
        readonly RequestEdge: {
            /** @description Its port is null for several connections. */
            readonly client: components["schemas"]["EdgeEnd"];
            /** @description As at `/edges`. */
            readonly id: string;
            /** @description Where the client asked to go (`ADDRESS:PORT`), when that is not where it came out. */
            readonly original_destination: string | null;
            readonly server: components["schemas"]["EdgeEnd"];
        };
        /** @enum {string} */
        readonly RequestEnd: "client" | "server";
        readonly RequestErrors: {
            /**
             * Format: int64
             * @description The connection ended or the stream was reset before the answer was complete.
             */
            readonly broken: number;
            /**
             * Format: int64
             * @description The answer says that the request was wrong (HTTP 4xx).
             */
            readonly client: number;
            /**
             * Format: int64
             * @description The answer says that the server failed (HTTP 5xx).
             */
            readonly server: number;
        };
        /** @description What could not be told. */
        readonly RequestGaps: {
            /** Format: int64 */
            readonly gap_connections: number;
            /**
             * Format: int64
             * @description Places where payload is missing, and connections that have one.
             */
            readonly gaps: number;
            /**
             * Format: int64
             * @description Requests of edges for which there was no room.
             */
            readonly other_edges: number;
            /**
             * Format: int64
             * @description Requests whose operation is one of those that are told as `other`.
             */
            readonly other_operations: number;
            /** Format: int64 */
            readonly refused_bytes: number;
            /**
             * Format: int64
             * @description Connections for which there was no room, and bytes of connections that are not known.
             */
            readonly refused_connections: number;
            /**
             * Format: int64
             * @description Bytes that no decoder understood.
             */
            readonly undecoded_bytes: number;
            /**
             * Format: int64
             * @description Connections that speak nothing that is known here.
             */
            readonly undecoded_connections: number;
            /**
             * Format: int64
             * @description Requests that had not ended when the task did; they are in no operation.
             */
            readonly under_way: number;
            /**
             * Format: int64
             * @description Connections of which nobody can tell which end is the client.
             */
            readonly unknown_direction: number;
            /**
             * Format: int64
             * @description Times that a connection did not speak what it was taken for.
             */
            readonly withdrawn_guesses: number;
        };
        /**
         * @description How long the requests of one process take, and where the time goes. Times are nanoseconds; percentiles are upper bounds of
         *     the buckets that times are counted in, at most 6.25 % too high.
         */
        readonly RequestLatency: {
            /** @description What the processes of these parts did meanwhile; only in a diagnosis, which knows their threads. */
            readonly inside: readonly components["schemas"]["LatencyInside"][];
            /** Format: int64 */
            readonly mean_ns: number;
            /** Format: int64 */
            readonly p50_ns: number;
            /** Format: int64 */
            readonly p95_ns: number;
            /** Format: int64 */
            readonly p99_ns: number;
            /** @description In the order of a request's way. Their means add up to `mean_ns` where all requests were matched. */
            readonly parts: readonly components["schemas"]["LatencyPart"][];
            /** @description The process that the requests came to. */
            readonly process: components["schemas"]["LatencyProcess"];
            /**
             * Format: int64
             * @description Requests whose response was seen whole.
             */
            readonly requests: number;
            /** @description The same in one sentence. */
            readonly text: string;
        };
        readonly RequestMessages: {
            /**
             * Format: int64
             * @description Requests that are streams.
             */
            readonly streams: number;
            /** Format: int64 */
            readonly to_client: number;
            /** Format: int64 */
            readonly to_server: number;
        };
        /** @description Requests of one kind on one edge, each counted once, whichever ends saw it. */
        readonly RequestOperation: {
            readonly client: components["schemas"]["RequestTimings"] | null;
            /**
             * Format: int64
             * @description Requests that are over. Where connections were sampled, or entries of access logs dropped, all by estimate, as are errors and
             *     statuses.
             */
            readonly count: number;
            readonly count_interval: components["schemas"]["CountInterval"] | null;
            readonly counted_from: components["schemas"]["CountedFrom"];
            readonly edge: components["schemas"]["RequestEdge"] | null;
            /**
             * Format: int64
             * @description Of these, those that are known to have gone wrong.
             */
            readonly errors: number;
            readonly errors_by_class: components["schemas"]["RequestErrors"];
            readonly latency_from: components["schemas"]["RequestEnd"];
            /**
             * @description From the first byte of the request to the last one of the answer, of requests whose answer was seen
             *     whole: as `latency_from` saw it, the client unless its sockets timed fewer than nine in ten of what the
             *     server's did.
             */
            readonly latency_ns: components["schemas"]["RequestValues"];
            readonly messages: components["schemas"]["RequestMessages"] | null;
            /** @description `GET`, the first word of a statement, a command; null: not seen. */
            readonly method: string | null;
            /** @description Operations of the edge for which there was no room. */
            readonly other: boolean;
            /** @description `http1`, `http2`, `grpc`, `websocket`, `dns`, `redis`, `postgresql`, `mysql`. */
            readonly protocol: string;
            /** @description Bytes of bodies (HTTP) or messages, of requests whose sizes are known. */
            readonly request_bytes: components["schemas"]["RequestValues"];
            /**
             * Format: int64
             * @description Requests of `seen` that are not in `request_bytes`: the size was not seen whole.
             */
            readonly request_sizes_unknown: number;
            readonly response_bytes: components["schemas"]["RequestValues"];
            /**
             * Format: int64
             * @description As `request_sizes_unknown`, of `response_bytes`.
             */
            readonly response_sizes_unknown: number;
            /** @description The path with its numbers folded, a statement without values; null: not seen. */
            readonly route: string | null;
            /**
             * Format: int64
             * @description Those that were seen.
             */
            readonly seen: number;
            readonly server: components["schemas"]["RequestTimings"] | null;
            readonly source: components["schemas"]["RequestSource"];
            /** @description Requests by status: `404`, `grpc 14`, `42P01`, `ok`; after some different ones `other`. */
            readonly statuses: {
                readonly [key: string]: number;
            };
            /** @description The plaintext was read at a TLS library. */
            readonly tls: boolean;
            /**
             * Format: int64
             * @description Requests whose end was not seen whole; they are no errors.
             */
            readonly unknown: number;
        };
        /** @enum {string} */
        readonly RequestOutcome: "ok" | "client_error" | "server_error" | "broken" | "unknown";
        /** @description A request that came in and the one that went out for it. */
        readonly RequestPair: {
            /** @description As in `pairs`. */
            readonly class: components["schemas"]["MatchClass"];
            readonly in: components["schemas"]["RequestPlace"];
            readonly out: components["schemas"]["RequestPlace"];
        };
        readonly RequestPairs: {
            readonly class: components["schemas"]["MatchClass"];
            /** Format: int64 */
            readonly pairs: number;
            /**
             * Format: double
             * @description Part of all pairs, 0 to 1.
             */
            readonly share: number;
            readonly times: components["schemas"]["RequestTimes"];
        };
        /** @description Which of the samples it is: these fields say the same there. */
        readonly RequestPlace: {
            readonly client: string;
            /** Format: int64 */
            readonly stream: number;
        };
        /** @description What became of the task's TLS libraries, and what capturing costs their processes. */
        readonly RequestPlaintext: {
            /**
             * Format: int64
             * @description The same time in nanoseconds: rates of requests inside TLS are of it.
             */
            readonly attached_ns: number;
            /**
             * Format: int32
             * @description Part of the time, in percent, in which probes were there.
             */
            readonly attached_percent: number;
            /**
             * Format: int64
             * @description What all hits have cost, about: traps and programs, in nanoseconds.
             */
            readonly cost_ns: number;
            readonly files: readonly components["schemas"]["PlaintextFile"][];
            /**
             * Format: int64
             * @description Times that a probe was met.
             */
            readonly hits: number;
            /**
             * Format: int32
             * @description What probes may cost the processes, in percent of one CPU, where that kept them away for a part of the
             *     time; null where it did not.
             */
            readonly limited_to_percent: number | null;
            /**
             * Format: int64
             * @description Calls of the libraries of which something was captured.
             */
            readonly pieces: number;
            /**
             * Format: int64
             * @description What the programs took for each hit, without the trap, in nanoseconds; null while nobody asks for
             *     the kernel's statistics.
             */
            readonly program_ns_per_hit: number | null;
            /**
             * Format: int64
             * @description Those of them at instructions that the kernel cannot carry out itself.
             */
            readonly stepped_hits: number;
            /** @description Why nothing can be captured at all. */
            readonly unavailable: string | null;
            /**
             * Format: int64
             * @description Bytes that were read where the socket is not known.
             */
            readonly unbound_read_bytes: number;
            /**
             * Format: int64
             * @description Bytes that were written without a call of a socket.
             */
            readonly unbound_written_bytes: number;
            /**
             * Format: int64
             * @description Calls whose arguments or memory could not be read.
             */
            readonly unreadable: number;
        };
        /**
         * @description Conditions that must all hold for a request to be kept; at least one must be given. What is not known
         *     of a request fits no condition about it.
         */
        readonly RequestRule: {
            readonly grpc_status?: readonly number[];
            /**
             * Format: int64
             * @description Of request and answer together.
             * @default 0
             */
            readonly min_bytes?: number;
            /**
             * Format: int64
             * @default 0
             */
            readonly min_duration_ns?: number;
            /** @description Regular expression that is searched in `METHOD ROUTE`, and in the path with `raw_paths`. */
            readonly operation?: string | null;
            /** @description One of these, or one of `grpc_status`. */
            readonly status?: readonly components["schemas"]["RequestStatusClass"][];
        };
        /** @description One request. */
        readonly RequestSample: {
            readonly authority: string | null;
            /**
             * Format: int64
             * @description Nanoseconds since the Unix epoch.
             */
            readonly begin_ns: number;
            /** @description The client's end of the connection: `ADDRESS:PORT`, or `unix:` and a number of its own. */
            readonly client: string;
            /** Format: int64 */
            readonly duration_ns: number;
            readonly edge: components["schemas"]["RequestEdge"] | null;
            /** Format: int64 */
            readonly first_byte_ns: number | null;
            /** @description Chosen headers of request and answer: name, value. */
            readonly headers: readonly (readonly [
                string,
                string
            ])[];
            readonly kept_as: components["schemas"]["KeptAs"];
            /** @description Messages of a stream: to the server, to the client. */
            readonly messages: readonly [
                number,
                number
            ] | null;
            readonly method: string | null;
            readonly outcome: components["schemas"]["RequestOutcome"];
            /** @description As it was sent, its query masked; null unless the task was asked for raw paths. */
            readonly path: string | null;
            /**
             * Format: int32
             * @description Who moved its first byte.
             */
            readonly pid: number;
            readonly protocol: string;
            readonly request_body: components["schemas"]["RequestBody"] | null;
            /**
             * Format: int64
             * @description Null: not known.
             */
            readonly request_bytes: number | null;
            /**
             * Format: int64
             * @description From the first byte of the request to its last, and to the first of the answer.
             */
            readonly request_end_ns: number | null;
            readonly response_body: components["schemas"]["RequestBody"] | null;
            /** Format: int64 */
            readonly response_bytes: number | null;
            readonly route: string | null;
            /**
             * Format: int32
             * @description Number of the rule that wanted it, from 0.
             */
            readonly rule: number | null;
            readonly seen_by: components["schemas"]["RequestEnd"];
            readonly source: components["schemas"]["RequestSource"];
            readonly status: components["schemas"]["RequestStatus"] | null;
            /**
             * Format: int64
             * @description Number of the request on its connection; with HTTP/2 that of its stream.
             */
            readonly stream: number;
            /** Format: int32 */
            readonly tid: number | null;
            readonly tls: boolean;
            readonly trace: components["schemas"]["RequestTrace"];
        };
        /**
         * @description Which requests are kept as samples.
         * @enum {string}
         */
        readonly RequestSamples: "slow" | "all";
        /** @description What a requests task looks for. */
        readonly RequestSettings: {
            readonly bodies: boolean;
            /** Format: int32 */
            readonly capture_bytes: number;
            /** Format: int32 */
            readonly cpu_percent: number;
            readonly raw_paths: boolean;
            readonly rules: readonly components["schemas"]["RequestRule"][];
            readonly samples: components["schemas"]["RequestSamples"];
            /** @description Where requests are taken from. */
            readonly source: readonly components["schemas"]["RequestSource"][];
            readonly tls: boolean;
            /** Format: int32 */
            readonly tls_duty_percent: number;
        };
        /** @description A process that requests go into and out of, as an Envoy. */
        readonly RequestSidecar: {
            /**
             * Format: int64
             * @description Requests for which there was no room until their other half came.
             */
            readonly forgotten: number;
            /** @description Each pair, of tasks that keep every request; otherwise none. */
            readonly matched: readonly components["schemas"]["RequestPair"][];
            /**
             * Format: int64
             * @description Pairs for which there was no room.
             */
            readonly matched_left_out: number;
            /**
             * Format: int64
             * @description Time in the process for each request that came in, without what it waited for others: the sum of
             *     all times of requests in less that of all requests out. It needs no pairs. Null when more time was
             *     waited than taken, as with requests to several at once.
             */
            readonly mean_ns: number | null;
            /** @description Pairs by what ties them together, the best evidence first; those without pairs are left out. */
            readonly pairs: readonly components["schemas"]["RequestPairs"][];
            /** @description Its port is null. */
            readonly process: components["schemas"]["EdgeEnd"];
            /**
             * Format: int64
             * @description Requests whose answer was seen whole.
             */
            readonly requests_in: number;
            /** Format: int64 */
            readonly requests_out: number;
            readonly times: components["schemas"]["RequestTimes"] | null;
            /**
             * Format: int64
             * @description Requests in that nothing was found for: answered here, or not matched.
             */
            readonly unmatched_in: number;
            /** Format: int64 */
            readonly unmatched_out: number;
            readonly upstream_header: components["schemas"]["UpstreamHeader"] | null;
        };
        /**
         * @description Where requests are taken from.
         * @enum {string}
         */
        readonly RequestSource: "access_log" | "sockets" | "tls";
        /** @description One number for each span. */
        readonly RequestSpans: {
            /** @description Where connections were sampled, estimates: each request that was seen counts as many as its connection stands for. */
            readonly count: readonly number[];
            readonly errors: readonly number[];
            /** @description Upper bounds, at most 6.25 % above the value; null: no request was seen whole. */
            readonly p50_ns: readonly (number | null)[];
            readonly p95_ns: readonly (number | null)[];
            readonly p99_ns: readonly (number | null)[];
        };
        /** @description A number for HTTP and gRPC; otherwise the protocol's own code, or `ok`. */
        readonly RequestStatus: number | string;
        /** @enum {string} */
        readonly RequestStatusClass: "4xx" | "5xx";
        /** @description Where the time of pairs went. */
        readonly RequestTimes: {
            /** @description The part of it for which the answer had arrived already. */
            readonly answer_wait_ns: components["schemas"]["RequestValues"];
            /** @description The time of the request that came in less that of the one that went out. */
            readonly inside_ns: components["schemas"]["RequestValues"];
            /**
             * @description From the arrival of the request until the process read it, as it was busy with others; of pairs for
             *     which that was measured.
             */
            readonly read_wait_ns: components["schemas"]["RequestValues"];
            /** @description From reading the first byte of the answer to writing one to the client. */
            readonly to_client_ns: components["schemas"]["RequestValues"];
            /** @description From reading the request to writing it to the upstream. */
            readonly to_upstream_ns: components["schemas"]["RequestValues"];
            /** @description From there to reading the first byte of the answer. */
            readonly upstream_ns: components["schemas"]["RequestValues"];
        };
        /** @description What one end's socket saw. */
        readonly RequestTimings: {
            /** Format: int64 */
            readonly count: number;
            /** @description From the first byte of the request to the first one of the answer. */
            readonly first_byte_ns: components["schemas"]["RequestValues"];
            readonly latency_ns: components["schemas"]["RequestValues"];
        };
        /** @description What clients and servers of an edge told each other before encryption began. */
        readonly RequestTls: {
            /** @description The one that the server chose; null from TLS 1.3 on, where that is encrypted. */
            readonly alpn_chosen: string | null;
            /** @description Protocols that the client offered. */
            readonly alpn_offered: readonly string[];
            /**
             * Format: int64
             * @description Connections that told this.
             */
            readonly connections: number;
            readonly edge: components["schemas"]["RequestEdge"];
            /** @description Name of the server that the client asked for. */
            readonly server_name: string | null;
            /** @description `1.3`; null: the server's answer was not seen. */
            readonly version: string | null;
        };
        /** @description Ids that tie requests together. */
        readonly RequestTrace: {
            /** @description `x-request-id`. */
            readonly request_id: string | null;
            readonly span_id: string | null;
            /** @description Of `traceparent`, `b3` or `sw8`. */
            readonly trace_id: string | null;
        };
        /**
         * @description How many values there are, and how large. Percentiles are the upper bound of the bucket that the
         *     value is in, which is at most 6.25 % above it; `bounds` has both bounds.
         */
        readonly RequestValues: {
            readonly bounds: components["schemas"]["RequestBounds"];
            /** @description Every bucket that has values, in order: its least value, its greatest, and how many it has. */
            readonly buckets: readonly (readonly [
                number,
                number,
                number
            ])[];
            /** Format: int64 */
            readonly count: number;
            /** Format: int64 */
            readonly max: number | null;
            /**
             * Format: int64
             * @description Null without values, as the others.
             */
            readonly mean: number | null;
            /**
             * Format: int64
             * @description Exact.
             */
            readonly min: number | null;
            /** Format: int64 */
            readonly p50: number | null;
            /** Format: int64 */
            readonly p90: number | null;
            /** Format: int64 */
            readonly p99: number | null;
            /** Format: int64 */
            readonly p999: number | null;
            /** Format: int64 */
            readonly sum: number;
        };
        /**
         * @description Requests over time, by when they ended. Each is counted once, at the end of the connection where operations count it; one that a
         *     sidecar passes on is counted on the way to it and on the way on.
         */
        readonly RequestsOverTime: {
            readonly all: components["schemas"]["RequestSpans"];
            /** @description By the id of the edge; those for which there was no room are in `all` alone. */
            readonly edges: {
                readonly [key: string]: components["schemas"]["RequestSpans"];
            };
            /**
             * Format: int64
             * @description Beginning of the first span, nanoseconds since the Unix epoch. The last span ends with `window`: it lasts
             *     half to one and a half of `width_ns`.
             */
            readonly from_ns: number;
            /**
             * Format: int64
             * @description Width of each span; it grows with the task.
             */
            readonly width_ns: number;
        };
        readonly ResetSeries: {
            readonly received: readonly number[];
            readonly sent: readonly number[];
        };
        /** @enum {string} */
        readonly RoleName: "read_only" | "full";
        /** @description The newest check-up of a row. */
        readonly RowCheckup: {
            /** Format: int64 */
            readonly created_ns: number;
            /** @description Id of the check-up. */
            readonly id: string;
            /** @description Id of the row. */
            readonly row: string;
            readonly state: components["schemas"]["CheckupState"];
            /** @description What it found, in short. Null while it runs, where it failed, and until it has been read once more. Untrusted text. */
            readonly verdict: string | null;
        };
        /** @description How many samples a rule decided about. */
        readonly RuleSamples: {
            readonly rule: string;
            /** Format: int64 */
            readonly samples: number;
        };
        /** @description A language runtime whose functions have no names, and what gives them names. */
        readonly RuntimeQuality: {
            /**
             * Format: int64
             * @description Of `interpreter` and `jit`.
             */
            readonly frames: number;
            /** @description For people: what gives names, or that nothing does. */
            readonly remedy: string;
            /** @description For people, as "Python 3.11 or older". */
            readonly runtime: string;
            /**
             * Format: int64
             * @description Samples with at least one such frame.
             */
            readonly samples: number;
        };
        /** @description Stacks of threads in the order of time buckets. Inside a bucket the order is not known. */
        readonly Sequence: {
            /** Format: int64 */
            readonly bucket_ms: number;
            /** Format: int64 */
            readonly buckets: number;
            /**
             * Format: int64
             * @description Start of bucket 0, milliseconds after the task's start.
             */
            readonly from_ms: number;
            readonly labels: readonly components["schemas"]["SequenceLabel"][];
            /** Format: int64 */
            readonly other_amount: number;
            /** @description Threads that are left out, and what they have. */
            readonly other_threads: number;
            /** @description Indexes of labels from the root to the leaf. */
            readonly stacks: readonly (readonly number[])[];
            /** @description Stacks of a thread in one bucket that are told apart; the smaller ones are one "(other)". */
            readonly stacks_per_bucket: number;
            /** @description Largest first. */
            readonly threads: readonly components["schemas"]["SequenceThread"][];
            /** @description `count` of samples, or `duration` in nanoseconds. */
            readonly value: components["schemas"]["ProfileValue"];
        };
        /** @description A function; kinds and sources of names have the numbers of docs/flamegraph-format.md. */
        readonly SequenceLabel: {
            readonly file: string;
            /** Format: int32 */
            readonly kind: number;
            /** Format: int32 */
            readonly line: number;
            readonly module: string;
            readonly name: string;
            /** Format: int32 */
            readonly source: number;
        };
        /** @description Three columns with one entry for each stack that the thread has in a bucket. */
        readonly SequenceThread: {
            readonly amount: readonly number[];
            /** @description In ascending order. */
            readonly bucket: readonly number[];
            /** @description Name of the thread. */
            readonly name: string;
            /** Format: int32 */
            readonly pid: number;
            /** @description Name of the process. */
            readonly process: string;
            readonly stack: readonly number[];
            /** Format: int32 */
            readonly tid: number;
            /** Format: int64 */
            readonly total: number;
        };
        /** @description A setting in force. */
        readonly Setting: {
            readonly name: string;
            /** @description As in a TOML file; secrets are `***`. */
            readonly value: string;
        };
        readonly SettingList: {
            readonly items: readonly components["schemas"]["Setting"][];
        };
        /**
         * @description Whose setting it is.
         * @enum {string}
         */
        readonly SettingSystem: "istio" | "envoy" | "nginx" | "kubernetes";
        /** @description Null metrics are named in `unavailable`. Times are nanoseconds. */
        readonly SideMetrics: {
            readonly accept: components["schemas"]["EdgeTimes"] | null;
            readonly close: components["schemas"]["EdgeTimes"] | null;
            readonly connect: components["schemas"]["EdgeConnects"] | null;
            readonly connections: components["schemas"]["ConnectionCount"];
            readonly drop: components["schemas"]["EdgeDrops"] | null;
            readonly error: components["schemas"]["EdgeErrors"] | null;
            /**
             * Format: int64
             * @description The smallest round-trip time that the kernel measured (`tcp_sock.rtt_min`), microseconds: what the
             *     network takes. Null also before the first write.
             */
            readonly min_rtt_us: number | null;
            readonly read: components["schemas"]["EdgeTransfer"] | null;
            readonly receive_wait: components["schemas"]["EdgeTimes"] | null;
            readonly reset: components["schemas"]["EdgeResets"] | null;
            readonly retransmit: components["schemas"]["EventCount"] | null;
            readonly socket: components["schemas"]["EdgeSocketTotals"] | null;
            readonly write: components["schemas"]["EdgeTransfer"] | null;
            readonly write_rtt_us: components["schemas"]["EdgeValues"] | null;
        };
        /** @description One end over time. */
        readonly SideSeries: {
            readonly accept: components["schemas"]["ValueSeries"] | null;
            readonly close: components["schemas"]["ValueSeries"] | null;
            readonly connect: components["schemas"]["ValueSeries"] | null;
            /** @description New connections. */
            readonly connections: readonly number[];
            readonly connects_failed: readonly number[] | null;
            readonly drop: components["schemas"]["NamedSeries"] | null;
            readonly error: components["schemas"]["NamedSeries"] | null;
            /** @description Open at the end of the step. */
            readonly open: readonly number[];
            readonly read: components["schemas"]["CallSeries"] | null;
            readonly receive_wait: components["schemas"]["ValueSeries"] | null;
            readonly reset: components["schemas"]["ResetSeries"] | null;
            readonly retransmit: readonly number[] | null;
            readonly write: components["schemas"]["CallSeries"] | null;
            readonly write_rtt_us: components["schemas"]["ValueSeries"] | null;
        };
        readonly SourceCount: {
            /** Format: int64 */
            readonly frames: number;
            readonly source: string;
        };
        /** @description How complete user stacks are, and why the others are not. */
        readonly StackQuality: {
            /**
             * Format: int64
             * @description Samples whose user stack reaches its outermost frame.
             */
            readonly complete: number;
            /** @description The others, by reason; most samples first. */
            readonly incomplete: readonly components["schemas"]["IncompleteStacks"][];
            /**
             * Format: int64
             * @description Samples with a user stack.
             */
            readonly samples: number;
            /** @description All of this in one line for people; empty without samples. */
            readonly summary: string;
            readonly tables: components["schemas"]["UnwindTables"];
            /**
             * Format: int64
             * @description Samples whose user stack was walked by frame pointers alone, where nobody knows.
             */
            readonly unverified: number;
        };
        /**
         * @description What keeps statistics on: `agent` is `--bpf-stats`, `kernel` is `kernel.bpf_stats_enabled`, `request` is the request
         *     that this answers, until then.
         * @enum {string}
         */
        readonly StatisticsBy: "agent" | "kernel" | "request";
        /** @description A file with names for the program of one build-id. */
        readonly SymbolFile: {
            /** Format: int64 */
            readonly added_at_ns: number;
            readonly build_id: string;
            /** Format: int64 */
            readonly bytes: number;
            /** @description It has debug information, which gives lines and inlined functions. */
            readonly has_debug_information: boolean;
            /** @description It has a symbol table. */
            readonly has_symbols: boolean;
            readonly origin: components["schemas"]["SymbolOrigin"];
        };
        readonly SymbolFileList: {
            /** @description By build-id. */
            readonly items: readonly components["schemas"]["SymbolFile"][];
            /**
             * Format: int64
             * @description Room for all uploaded files together, and for one.
             */
            readonly max_bytes: number;
            readonly total: number;
        };
        /**
         * @description Where a symbol file came from.
         * @enum {string}
         */
        readonly SymbolOrigin: "uploaded" | "folder" | "debuginfod";
        /** @description Whose CPU time is sampled; exactly one key. */
        readonly Target: {
            /** @description These processes and the children they fork during the task. */
            readonly pids: readonly number[];
        } | {
            /** @description Every process of the container: full id or a unique prefix of at least 12 digits. */
            readonly container: string;
        } | {
            /** @description Every process of the pods that fit, or of one container in each; also of those that start later. */
            readonly pod: components["schemas"]["PodSelector"];
        } | {
            /** @description Every process in this cgroup or below. */
            readonly cgroup: string;
        } | {
            /** @description Every process with this name. */
            readonly comm: string;
        } | {
            /** @description Every process of the node; always `true`. */
            readonly all: boolean;
        } | {
            /** @description Every connection in this network namespace (a path as `/run/netns/NAME`); network tasks only. */
            readonly network_namespace: string;
        } | {
            /** @description The result was read from this file; no task can be started with it. */
            readonly imported: components["schemas"]["ImportedFile"];
        };
        /** @description A process of a task's target. */
        readonly TargetName: {
            readonly comm: string;
            /** Format: int32 */
            readonly pid: number;
            /**
             * Format: int64
             * @description Clock ticks from boot to the start of the process.
             */
            readonly start_ticks: number;
        };
        /** @description A profiling task. */
        readonly Task: {
            readonly clock: components["schemas"]["Clock"] | null;
            readonly coverage: components["schemas"]["CpuCoverage"] | null;
            /** Format: int64 */
            readonly created_at_ns: number;
            /**
             * Format: int64
             * @description Null: until stopped.
             */
            readonly duration_s: number | null;
            /**
             * Format: int32
             * @description The rate in force; lower than asked for when the CPU budget lowered it.
             */
            readonly effective_frequency_hz: number | null;
            /** Format: int64 */
            readonly ended_at_ns: number | null;
            readonly event_loop: components["schemas"]["LoopRules"] | null;
            /**
             * Format: int32
             * @description Samples per second and CPU that were asked for; null for kinds that no clock drives.
             */
            readonly frequency_hz: number | null;
            /** @description Name of the tasks that it was started with. */
            readonly group: string | null;
            readonly id: string;
            readonly kind: components["schemas"]["TaskKind"];
            readonly losses: readonly components["schemas"]["Loss"][];
            /** @description Remarks in the order they arose. */
            readonly notes: readonly string[];
            /**
             * Format: double
             * @description Part of the duration that has passed, 0 to 1; null without a duration.
             */
            readonly progress: number | null;
            /** @description Why it failed. */
            readonly reason: string | null;
            readonly requests: components["schemas"]["RequestSettings"] | null;
            /** Format: int64 */
            readonly samples: number;
            readonly stacks: components["schemas"]["StackQuality"];
            /**
             * Format: int64
             * @description When recording began; null before, also while the programs of a running task are being loaded, and for
             *     a task that failed before.
             */
            readonly started_at_ns: number | null;
            readonly state: components["schemas"]["TaskState"];
            readonly target: components["schemas"]["Target"];
            /**
             * @description The processes of a target of pids as they were when the task began, in its order. Those that had
             *     ended by then are missing.
             */
            readonly target_names: readonly components["schemas"]["TargetName"][];
            /** @description Whether it times system calls on sockets. */
            readonly timed: boolean;
            readonly waits: components["schemas"]["WaitCounts"];
            /** @description Whether it records who ended the waits. */
            readonly wakers: boolean;
        };
        /** @description Event `task_deleted`. */
        readonly TaskDeletedEvent: {
            readonly id: string;
        };
        /** @description The edges of a task, with what became of the task. */
        readonly TaskEdges: components["schemas"]["EdgeTable"] & {
            /** @description Why the task failed. */
            readonly reason: string | null;
            readonly state: components["schemas"]["TaskState"];
        };
        /** @enum {string} */
        readonly TaskKind: "on_cpu" | "off_cpu" | "wall" | "network" | "requests" | "imported";
        readonly TaskList: {
            /** @description Newest first. */
            readonly items: readonly components["schemas"]["Task"][];
            readonly total: number;
        };
        /**
         * @description Requests between processes, from the task's start until now, with the state of the task. Text comes
         *     from payload and is untrusted. Times are nanoseconds.
         */
        readonly TaskRequests: {
            readonly access_logs: components["schemas"]["LoggedRequests"] | null;
            /**
             * @description Connections whose payload was looked at, by what they speak. Both ends of a connection count, where
             *     both are seen.
             */
            readonly connections_by_protocol: {
                readonly [key: string]: number;
            };
            /** @description Names of the containers of these edges, by id; those that nobody has named are missing. */
            readonly containers: components["schemas"]["BTreeMap"];
            /** @description Requests of HTTP/1 without TLS by edge, counted in the kernel, whatever was captured. Most first. */
            readonly counted: readonly components["schemas"]["RequestCount"][];
            /** @description The stored result cannot be read: nothing here was counted. */
            readonly damaged: boolean;
            readonly incomplete: components["schemas"]["RequestGaps"];
            /**
             * @description How long requests take and where, of the processes that pass requests on; where none does, of those that answer. Most
             *     requests first.
             */
            readonly latency: readonly components["schemas"]["RequestLatency"][];
            /**
             * Format: int64
             * @description Pieces of payload that did not fit the ring buffer.
             */
            readonly lost: number;
            /** @description Most requests first. */
            readonly operations: readonly components["schemas"]["RequestOperation"][];
            readonly over_time: components["schemas"]["RequestsOverTime"] | null;
            readonly plaintext: components["schemas"]["RequestPlaintext"] | null;
            /** @description Why the task failed. */
            readonly reason: string | null;
            /**
             * Format: int32
             * @description One connection in so many was looked at when they were fewest; 1 is all, all the time. Counts are then
             *     estimates.
             */
            readonly sampled_one_of: number;
            /** @description In the order of their ends. */
            readonly samples: readonly components["schemas"]["RequestSample"][];
            /**
             * Format: int64
             * @description Samples for which there was no room.
             */
            readonly samples_left_out: number;
            /** @description Processes that requests go into and out of, with the time that they add. */
            readonly sidecars: readonly components["schemas"]["RequestSidecar"][];
            readonly state: components["schemas"]["TaskState"];
            /** @description What was told before encryption began, by edge. */
            readonly tls: readonly components["schemas"]["RequestTls"][];
            /**
             * Format: int64
             * @description Bytes of TLS that belong to no known socket.
             */
            readonly unbound_bytes: number;
            readonly window: components["schemas"]["CountedWindow"] | null;
        };
        /** @enum {string} */
        readonly TaskState: "queued" | "running" | "finished" | "failed" | "cancelled";
        /** @description Time of one kind of a thread. */
        readonly ThreadActivity: {
            readonly activity: components["schemas"]["Activity"];
            /** Format: int64 */
            readonly total_ns: number;
        };
        /**
         * @description What a thread is for, by its name.
         * @enum {string}
         */
        readonly ThreadRole: "worker" | "main" | "helper" | "other";
        /** @description Samples over time. */
        readonly Timeline: {
            /** Format: int64 */
            readonly bucket_ms: number;
            /** @description Samples in each bucket, or nanoseconds; waits are counted where they end. */
            readonly counts: readonly number[];
            /**
             * Format: int64
             * @description Start of the first bucket, milliseconds after the task's start.
             */
            readonly from_ms: number;
            /** @description Threads that are not listed for themselves; only with `by`. */
            readonly other_threads?: number;
            /** @description The same by process, with all of its threads; only with `by`. */
            readonly processes?: readonly components["schemas"]["TimelineThread"][];
            /** @description The same by thread, largest first; only with `by`. */
            readonly threads?: readonly components["schemas"]["TimelineThread"][];
        };
        /** @description One thread over time, or a process: then `tid` is its pid. */
        readonly TimelineThread: {
            /**
             * @description What it did in each bucket, idle waits included whatever is shown, with waits over all the
             *     time that they took; only with `by=activity`, and where the result has waits.
             */
            readonly activities?: readonly components["schemas"]["ActivityTimes"][];
            readonly counts: readonly number[];
            /** @description Name of the thread. */
            readonly name: string;
            /** Format: int32 */
            readonly pid: number;
            /** @description Name of the process. */
            readonly process: string;
            /** Format: int32 */
            readonly tid: number;
            /** Format: int64 */
            readonly total: number;
        };
        /** @description Something that needs attention. */
        readonly Trouble: {
            readonly level: components["schemas"]["TroubleLevel"];
            readonly text: string;
        };
        /**
         * @description How bad it is. `docs/overview.md` has the thresholds.
         * @enum {string}
         */
        readonly TroubleLevel: "elsewhere" | "warning" | "bad";
        /** @description A file that lacks names. */
        readonly UnnamedModule: {
            /** @description Hexadecimal; Null: the file has none. */
            readonly build_id: string | null;
            readonly module: string;
            /**
             * Format: double
             * @description Samples in whose stacks it has a frame without name.
             */
            readonly share_percent: number;
        };
        /** @description What it took to walk the stacks. */
        readonly UnwindTables: {
            /**
             * Format: int64
             * @description Most blocks of rows, 1 KiB each, that the kernel held at once.
             */
            readonly blocks: number;
            /**
             * Format: int64
             * @description Samples that the kernel could not walk and sent to the agent.
             */
            readonly captures: number;
            /**
             * Format: int64
             * @description Samples that were to be sent so and did not fit.
             */
            readonly captures_dropped: number;
            /**
             * Format: int64
             * @description Frames that the kernel walked.
             */
            readonly frames: number;
            /**
             * Format: int64
             * @description Pages that made room for others.
             */
            readonly pages_evicted: number;
            /**
             * Format: int64
             * @description Pages of unwind rows that were decoded and given to the kernel.
             */
            readonly pages_loaded: number;
            /**
             * Format: int64
             * @description Processes that got no place in the kernel's table of mappings.
             */
            readonly processes_left_out: number;
            /**
             * Format: int64
             * @description Of these, the ones that the agent walked to their outermost frame.
             */
            readonly repaired: number;
        };
        /** @description The header is in whole milliseconds, rounded down. */
        readonly UpstreamHeader: {
            /**
             * Format: int64
             * @description Pairs that differ by not more than 2 ms.
             */
            readonly agreeing: number;
            /** Format: int64 */
            readonly header_ms: number;
            /** Format: int64 */
            readonly measured_ns: number;
            /** Format: int64 */
            readonly pairs: number;
        };
        /** @description Values in buckets. `bounds` are nanoseconds; of `write_rtt_us` microseconds. */
        readonly ValueSeries: {
            /** @description As in the histograms of edges. */
            readonly bounds: readonly number[];
            /** @description For each step the buckets that are not empty: number of the bucket, and count. */
            readonly buckets: readonly (readonly (readonly [
                number,
                number
            ])[])[];
            readonly count: readonly number[];
            readonly sum: readonly number[];
        };
        /** @description What became of waits, in tasks that measure them. */
        readonly WaitCounts: {
            /**
             * Format: int64
             * @description Waits that were left out because they were too long, and their time.
             */
            readonly above: number;
            /** Format: int64 */
            readonly above_ns: number;
            /**
             * Format: int64
             * @description Waits that were left out because they were too short, and their time.
             */
            readonly below: number;
            /** Format: int64 */
            readonly below_ns: number;
            /** Format: int64 */
            readonly max_wait_ns: number | null;
            /** Format: int64 */
            readonly min_wait_ns: number;
            readonly off_cpu_mode: components["schemas"]["OffCpuMode"] | null;
            /** @description Waits were sampled, from some time on: sums are exact, stacks have their shares on average. */
            readonly sampled: boolean;
            /** @description One line for people; empty when every wait was counted for itself. */
            readonly summary: string;
        };
        /** @description Lengths of waits. */
        readonly WaitLengths: {
            /** Format: int64 */
            readonly p50: number;
            /** Format: int64 */
            readonly p99: number;
        };
        /** @description Switches and nanoseconds of one kind. */
        readonly WaitSum: {
            /**
             * Format: int64
             * @description Switches (on the CPU: samples).
             */
            readonly count: number;
            readonly name: string;
            /** Format: int64 */
            readonly total_ns: number;
        };
        /** @description What the waits of a result were. */
        readonly Waits: {
            /** @description By what the threads did, idle or not. */
            readonly activities: readonly components["schemas"]["ActivitySum"][];
            /** @description Who had the CPU while threads waited for one; idle threads are included. */
            readonly contention: components["schemas"]["CpuContention"];
            readonly idle: components["schemas"]["Idle"] | null;
            /** @description By what they waited for, most time first. */
            readonly reasons: readonly components["schemas"]["WaitSum"][];
            /** @description By what the threads did, most time first. */
            readonly states: readonly components["schemas"]["WaitSum"][];
        };
        /** @description Whether one worker has more to do than the others. */
        readonly WorkerImbalance: {
            /**
             * Format: double
             * @description Percent of one CPU.
             */
            readonly busiest_percent: number;
            /** Format: double */
            readonly high: number;
            /** Format: double */
            readonly low: number;
            /** Format: double */
            readonly mean_percent: number;
            /**
             * Format: double
             * @description Busiest to mean, with its 95 % interval.
             */
            readonly ratio: number;
            /** @description More than chance. */
            readonly significant: boolean;
        };
        /** @description One thread. */
        readonly WorkerThread: {
            readonly contention: components["schemas"]["CpuContention"] | null;
            /**
             * Format: double
             * @description Of one CPU: the kernel's accounting where it was observed, otherwise from samples.
             */
            readonly cpu_percent: number;
            /** Format: int64 */
            readonly longest_wait_ns: number | null;
            readonly name: string;
            /** Format: int32 */
            readonly pid: number;
            readonly role: components["schemas"]["ThreadRole"];
            /**
             * Format: double
             * @description Of the window, ready to run without a CPU; Null when nobody measured it.
             */
            readonly run_queue_percent: number | null;
            /**
             * Format: double
             * @description Of all samples.
             */
            readonly share_percent: number;
            /** Format: int32 */
            readonly tid: number;
            /** @description Waits that are not idle, most time first; empty also when waits were not watched. */
            readonly waits: readonly components["schemas"]["WorkerWait"][];
        };
        /** @description Waits of one reason. */
        readonly WorkerWait: {
            /** Format: int64 */
            readonly count: number;
            /** Format: int64 */
            readonly ns: number;
            readonly reason: string;
            /**
             * Format: double
             * @description Of the window.
             */
            readonly share_percent: number;
        };
        readonly Workload: {
            /** @description `Deployment`, `StatefulSet`, `Compose service` and the like. */
            readonly kind: string;
            readonly name: string;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type AccessLogEnvoy = components['schemas']['AccessLogEnvoy'];
export type AccessLogStage = components['schemas']['AccessLogStage'];
export type AccessLogStages = components['schemas']['AccessLogStages'];
export type AccessLogStatus = components['schemas']['AccessLogStatus'];
export type Activity = components['schemas']['Activity'];
export type ActivitySum = components['schemas']['ActivitySum'];
export type ActivityTimes = components['schemas']['ActivityTimes'];
export type AgentSelf = components['schemas']['AgentSelf'];
export type AuthKind = components['schemas']['AuthKind'];
export type BTreeMap = components['schemas']['BTreeMap'];
export type BodyEncoding = components['schemas']['BodyEncoding'];
export type Bpf = components['schemas']['Bpf'];
export type BpfProgram = components['schemas']['BpfProgram'];
export type BpfStatistics = components['schemas']['BpfStatistics'];
export type CallSeries = components['schemas']['CallSeries'];
export type CeilingSource = components['schemas']['CeilingSource'];
export type Checkup = components['schemas']['Checkup'];
export type CheckupComparison = components['schemas']['CheckupComparison'];
export type CheckupState = components['schemas']['CheckupState'];
export type CheckupTask = components['schemas']['CheckupTask'];
export type Clock = components['schemas']['Clock'];
export type ComparedFinding = components['schemas']['ComparedFinding'];
export type ComparedFindings = components['schemas']['ComparedFindings'];
export type ComparedLatency = components['schemas']['ComparedLatency'];
export type ComparedRow = components['schemas']['ComparedRow'];
export type ComparedTotal = components['schemas']['ComparedTotal'];
export type ComparedTotals = components['schemas']['ComparedTotals'];
export type ConfiguredItem = components['schemas']['ConfiguredItem'];
export type ConnectionCount = components['schemas']['ConnectionCount'];
export type Container = components['schemas']['Container'];
export type ContainerList = components['schemas']['ContainerList'];
export type ContainerNames = components['schemas']['ContainerNames'];
export type ContainerRole = components['schemas']['ContainerRole'];
export type ContainerSummary = components['schemas']['ContainerSummary'];
export type CountInterval = components['schemas']['CountInterval'];
export type CountedFrom = components['schemas']['CountedFrom'];
export type CountedWindow = components['schemas']['CountedWindow'];
export type CpuContention = components['schemas']['CpuContention'];
export type CpuCoverage = components['schemas']['CpuCoverage'];
export type CpuHolderGroup = components['schemas']['CpuHolderGroup'];
export type CpuHolderGroupKind = components['schemas']['CpuHolderGroupKind'];
export type CpuHolderKind = components['schemas']['CpuHolderKind'];
export type CpuHolderTime = components['schemas']['CpuHolderTime'];
export type CpuThrottling = components['schemas']['CpuThrottling'];
export type CreateCheckup = components['schemas']['CreateCheckup'];
export type CreateTask = components['schemas']['CreateTask'];
export type DiagnosedConfiguration = components['schemas']['DiagnosedConfiguration'];
export type DiagnosedEventLoop = components['schemas']['DiagnosedEventLoop'];
export type DiagnosedNetwork = components['schemas']['DiagnosedNetwork'];
export type DiagnosedProcess = components['schemas']['DiagnosedProcess'];
export type DiagnosedRequests = components['schemas']['DiagnosedRequests'];
export type DiagnosedWindow = components['schemas']['DiagnosedWindow'];
export type DiagnosedWorkers = components['schemas']['DiagnosedWorkers'];
export type Diagnosis = components['schemas']['Diagnosis'];
export type DiagnosisCell = components['schemas']['DiagnosisCell'];
export type DiagnosisCoverage = components['schemas']['DiagnosisCoverage'];
export type DiagnosisFeature = components['schemas']['DiagnosisFeature'];
export type DiagnosisFindingRule = components['schemas']['DiagnosisFindingRule'];
export type DiagnosisFormat = components['schemas']['DiagnosisFormat'];
export type DiagnosisMatrix = components['schemas']['DiagnosisMatrix'];
export type DiagnosisMechanism = components['schemas']['DiagnosisMechanism'];
export type DiagnosisRow = components['schemas']['DiagnosisRow'];
export type DiagnosisRule = components['schemas']['DiagnosisRule'];
export type DiagnosisRuleSets = components['schemas']['DiagnosisRuleSets'];
export type DiagnosisRules = components['schemas']['DiagnosisRules'];
export type DiagnosisScope = components['schemas']['DiagnosisScope'];
export type DiagnosisTotals = components['schemas']['DiagnosisTotals'];
export type Diff = components['schemas']['Diff'];
export type DiffBadge = components['schemas']['DiffBadge'];
export type DiffFormat = components['schemas']['DiffFormat'];
export type DiffFunction = components['schemas']['DiffFunction'];
export type DiffNorm = components['schemas']['DiffNorm'];
export type DiffRoot = components['schemas']['DiffRoot'];
export type DiffSide = components['schemas']['DiffSide'];
export type DiffVerdict = components['schemas']['DiffVerdict'];
export type Edge = components['schemas']['Edge'];
export type EdgeConnection = components['schemas']['EdgeConnection'];
export type EdgeConnections = components['schemas']['EdgeConnections'];
export type EdgeConnects = components['schemas']['EdgeConnects'];
export type EdgeDrops = components['schemas']['EdgeDrops'];
export type EdgeEnd = components['schemas']['EdgeEnd'];
export type EdgeErrors = components['schemas']['EdgeErrors'];
export type EdgeHistogram = components['schemas']['EdgeHistogram'];
export type EdgeMetrics = components['schemas']['EdgeMetrics'];
export type EdgeResets = components['schemas']['EdgeResets'];
export type EdgeSeries = components['schemas']['EdgeSeries'];
export type EdgeSocketTotals = components['schemas']['EdgeSocketTotals'];
export type EdgeTable = components['schemas']['EdgeTable'];
export type EdgeTimes = components['schemas']['EdgeTimes'];
export type EdgeTransfer = components['schemas']['EdgeTransfer'];
export type EdgeValues = components['schemas']['EdgeValues'];
export type Estimate = components['schemas']['Estimate'];
export type EventCount = components['schemas']['EventCount'];
export type EventLoop = components['schemas']['EventLoop'];
export type EventLoopStall = components['schemas']['EventLoopStall'];
export type EventLoopThread = components['schemas']['EventLoopThread'];
export type Feature = components['schemas']['Feature'];
export type FeatureList = components['schemas']['FeatureList'];
export type FeatureVerdict = components['schemas']['FeatureVerdict'];
export type Finding = components['schemas']['Finding'];
export type FindingCell = components['schemas']['FindingCell'];
export type FindingConfidence = components['schemas']['FindingConfidence'];
export type FindingEvidence = components['schemas']['FindingEvidence'];
export type FindingSaving = components['schemas']['FindingSaving'];
export type FindingSetting = components['schemas']['FindingSetting'];
export type FindingSeverity = components['schemas']['FindingSeverity'];
export type GoodNews = components['schemas']['GoodNews'];
export type Health = components['schemas']['Health'];
export type Idle = components['schemas']['Idle'];
export type ImportFormat = components['schemas']['ImportFormat'];
export type ImportValues = components['schemas']['ImportValues'];
export type ImportedFile = components['schemas']['ImportedFile'];
export type IncompleteStacks = components['schemas']['IncompleteStacks'];
export type KeptAs = components['schemas']['KeptAs'];
export type KernelMap = components['schemas']['KernelMap'];
export type KernelObjectList = components['schemas']['KernelObjectList'];
export type KernelProgram = components['schemas']['KernelProgram'];
export type KernelTable = components['schemas']['KernelTable'];
export type LaggedEvent = components['schemas']['LaggedEvent'];
export type LatencyActivity = components['schemas']['LatencyActivity'];
export type LatencyActivityKind = components['schemas']['LatencyActivityKind'];
export type LatencyInside = components['schemas']['LatencyInside'];
export type LatencyNumbers = components['schemas']['LatencyNumbers'];
export type LatencyPart = components['schemas']['LatencyPart'];
export type LatencyPlace = components['schemas']['LatencyPlace'];
export type LatencyProcess = components['schemas']['LatencyProcess'];
export type Limits = components['schemas']['Limits'];
export type LoggedDetail = components['schemas']['LoggedDetail'];
export type LoggedFlag = components['schemas']['LoggedFlag'];
export type LoggedFlagged = components['schemas']['LoggedFlagged'];
export type LoggedJoin = components['schemas']['LoggedJoin'];
export type LoggedPhase = components['schemas']['LoggedPhase'];
export type LoggedReport = components['schemas']['LoggedReport'];
export type LoggedRequests = components['schemas']['LoggedRequests'];
export type LoggedTls = components['schemas']['LoggedTls'];
export type LoggedUpstream = components['schemas']['LoggedUpstream'];
export type LoggingEnvoy = components['schemas']['LoggingEnvoy'];
export type LoopLengths = components['schemas']['LoopLengths'];
export type LoopRules = components['schemas']['LoopRules'];
export type LoopStall = components['schemas']['LoopStall'];
export type LoopThread = components['schemas']['LoopThread'];
export type LoopTimes = components['schemas']['LoopTimes'];
export type Loss = components['schemas']['Loss'];
export type LostTraffic = components['schemas']['LostTraffic'];
export type MatchClass = components['schemas']['MatchClass'];
export type MeasureRuns = components['schemas']['MeasureRuns'];
export type MeasuredRuns = components['schemas']['MeasuredRuns'];
export type Measurement = components['schemas']['Measurement'];
export type Memory = components['schemas']['Memory'];
export type MemoryCgroup = components['schemas']['MemoryCgroup'];
export type MemoryStage = components['schemas']['MemoryStage'];
export type Meta = components['schemas']['Meta'];
export type ModuleQuality = components['schemas']['ModuleQuality'];
export type NameSource = components['schemas']['NameSource'];
export type NameSourceState = components['schemas']['NameSourceState'];
export type NamedBy = components['schemas']['NamedBy'];
export type NamedSeries = components['schemas']['NamedSeries'];
export type NamesQuality = components['schemas']['NamesQuality'];
export type NetworkEdges = components['schemas']['NetworkEdges'];
export type NetworkMode = components['schemas']['NetworkMode'];
export type NetworkState = components['schemas']['NetworkState'];
export type NodeOverview = components['schemas']['NodeOverview'];
export type OffCpuMode = components['schemas']['OffCpuMode'];
export type OtherEdges = components['schemas']['OtherEdges'];
export type Overview = components['schemas']['Overview'];
export type OverviewCpu = components['schemas']['OverviewCpu'];
export type OverviewKind = components['schemas']['OverviewKind'];
export type OverviewLimit = components['schemas']['OverviewLimit'];
export type OverviewPod = components['schemas']['OverviewPod'];
export type OverviewPoint = components['schemas']['OverviewPoint'];
export type OverviewRequests = components['schemas']['OverviewRequests'];
export type OverviewRow = components['schemas']['OverviewRow'];
export type OverviewSegments = components['schemas']['OverviewSegments'];
export type OverviewTime = components['schemas']['OverviewTime'];
export type PlaintextFile = components['schemas']['PlaintextFile'];
export type PlaintextProbe = components['schemas']['PlaintextProbe'];
export type Pod = components['schemas']['Pod'];
export type PodKind = components['schemas']['PodKind'];
export type PodList = components['schemas']['PodList'];
export type PodNames = components['schemas']['PodNames'];
export type PodProcess = components['schemas']['PodProcess'];
export type PodReading = components['schemas']['PodReading'];
export type PodRole = components['schemas']['PodRole'];
export type PodSelector = components['schemas']['PodSelector'];
export type Probe = components['schemas']['Probe'];
export type ProbeList = components['schemas']['ProbeList'];
export type ProbeState = components['schemas']['ProbeState'];
export type Problem = components['schemas']['Problem'];
export type Process = components['schemas']['Process'];
export type ProcessChange = components['schemas']['ProcessChange'];
export type ProcessDetail = components['schemas']['ProcessDetail'];
export type ProcessEvent = components['schemas']['ProcessEvent'];
export type ProcessFile = components['schemas']['ProcessFile'];
export type ProcessList = components['schemas']['ProcessList'];
export type ProcessReading = components['schemas']['ProcessReading'];
export type ProcessSymbols = components['schemas']['ProcessSymbols'];
export type ProcessThread = components['schemas']['ProcessThread'];
export type ProcessesEvent = components['schemas']['ProcessesEvent'];
export type ProfileFormat = components['schemas']['ProfileFormat'];
export type ProfileIdle = components['schemas']['ProfileIdle'];
export type ProfileQuality = components['schemas']['ProfileQuality'];
export type ProfileThread = components['schemas']['ProfileThread'];
export type ProfileThreadList = components['schemas']['ProfileThreadList'];
export type ProfileValue = components['schemas']['ProfileValue'];
export type ProgramKind = components['schemas']['ProgramKind'];
export type Readiness = components['schemas']['Readiness'];
export type RequestBody = components['schemas']['RequestBody'];
export type RequestBounds = components['schemas']['RequestBounds'];
export type RequestCount = components['schemas']['RequestCount'];
export type RequestEdge = components['schemas']['RequestEdge'];
export type RequestEnd = components['schemas']['RequestEnd'];
export type RequestErrors = components['schemas']['RequestErrors'];
export type RequestGaps = components['schemas']['RequestGaps'];
export type RequestLatency = components['schemas']['RequestLatency'];
export type RequestMessages = components['schemas']['RequestMessages'];
export type RequestOperation = components['schemas']['RequestOperation'];
export type RequestOutcome = components['schemas']['RequestOutcome'];
export type RequestPair = components['schemas']['RequestPair'];
export type RequestPairs = components['schemas']['RequestPairs'];
export type RequestPlace = components['schemas']['RequestPlace'];
export type RequestPlaintext = components['schemas']['RequestPlaintext'];
export type RequestRule = components['schemas']['RequestRule'];
export type RequestSample = components['schemas']['RequestSample'];
export type RequestSamples = components['schemas']['RequestSamples'];
export type RequestSettings = components['schemas']['RequestSettings'];
export type RequestSidecar = components['schemas']['RequestSidecar'];
export type RequestSource = components['schemas']['RequestSource'];
export type RequestSpans = components['schemas']['RequestSpans'];
export type RequestStatus = components['schemas']['RequestStatus'];
export type RequestStatusClass = components['schemas']['RequestStatusClass'];
export type RequestTimes = components['schemas']['RequestTimes'];
export type RequestTimings = components['schemas']['RequestTimings'];
export type RequestTls = components['schemas']['RequestTls'];
export type RequestTrace = components['schemas']['RequestTrace'];
export type RequestValues = components['schemas']['RequestValues'];
export type RequestsOverTime = components['schemas']['RequestsOverTime'];
export type ResetSeries = components['schemas']['ResetSeries'];
export type RoleName = components['schemas']['RoleName'];
export type RowCheckup = components['schemas']['RowCheckup'];
export type RuleSamples = components['schemas']['RuleSamples'];
export type RuntimeQuality = components['schemas']['RuntimeQuality'];
export type Sequence = components['schemas']['Sequence'];
export type SequenceLabel = components['schemas']['SequenceLabel'];
export type SequenceThread = components['schemas']['SequenceThread'];
export type Setting = components['schemas']['Setting'];
export type SettingList = components['schemas']['SettingList'];
export type SettingSystem = components['schemas']['SettingSystem'];
export type SideMetrics = components['schemas']['SideMetrics'];
export type SideSeries = components['schemas']['SideSeries'];
export type SourceCount = components['schemas']['SourceCount'];
export type StackQuality = components['schemas']['StackQuality'];
export type StatisticsBy = components['schemas']['StatisticsBy'];
export type SymbolFile = components['schemas']['SymbolFile'];
export type SymbolFileList = components['schemas']['SymbolFileList'];
export type SymbolOrigin = components['schemas']['SymbolOrigin'];
export type Target = components['schemas']['Target'];
export type TargetName = components['schemas']['TargetName'];
export type Task = components['schemas']['Task'];
export type TaskDeletedEvent = components['schemas']['TaskDeletedEvent'];
export type TaskEdges = components['schemas']['TaskEdges'];
export type TaskKind = components['schemas']['TaskKind'];
export type TaskList = components['schemas']['TaskList'];
export type TaskRequests = components['schemas']['TaskRequests'];
export type TaskState = components['schemas']['TaskState'];
export type ThreadActivity = components['schemas']['ThreadActivity'];
export type ThreadRole = components['schemas']['ThreadRole'];
export type Timeline = components['schemas']['Timeline'];
export type TimelineThread = components['schemas']['TimelineThread'];
export type Trouble = components['schemas']['Trouble'];
export type TroubleLevel = components['schemas']['TroubleLevel'];
export type UnnamedModule = components['schemas']['UnnamedModule'];
export type UnwindTables = components['schemas']['UnwindTables'];
export type UpstreamHeader = components['schemas']['UpstreamHeader'];
export type ValueSeries = components['schemas']['ValueSeries'];
export type WaitCounts = components['schemas']['WaitCounts'];
export type WaitLengths = components['schemas']['WaitLengths'];
export type WaitSum = components['schemas']['WaitSum'];
export type Waits = components['schemas']['Waits'];
export type WorkerImbalance = components['schemas']['WorkerImbalance'];
export type WorkerThread = components['schemas']['WorkerThread'];
export type WorkerWait = components['schemas']['WorkerWait'];
export type Workload = components['schemas']['Workload'];
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
