// The wire types of the requests of a task (docs/http-api.json, TaskRequests), and their call.
// Text in them comes from payload: it is untrusted.

import { json } from "./client";
import type { NamedContainers } from "./container_types";
import type { EdgeEnd, Task } from "./types";

/** Least and greatest value that a percentile can be. */
export type ValueBounds = readonly [number, number];

/** Values in buckets. A percentile is the upper bound of the bucket that it is in. */
export interface RequestValues {
  readonly count: number;
  readonly sum: number;
  /** Null without values, as the others. */
  readonly mean: number | null;
  readonly min: number | null;
  readonly max: number | null;
  readonly p50: number | null;
  readonly p90: number | null;
  readonly p99: number | null;
  readonly p999: number | null;
  readonly bounds: {
    readonly p50: ValueBounds | null;
    readonly p90: ValueBounds | null;
    readonly p99: ValueBounds | null;
    readonly p999: ValueBounds | null;
  };
  /** Every bucket that is not empty, in order: its least value, its greatest, and how many it has. */
  readonly buckets: readonly (readonly [number, number, number])[];
}

export interface RequestEdge {
  readonly id: string;
  /** Its port is null for several connections. */
  readonly client: EdgeEnd;
  readonly server: EdgeEnd;
  readonly original_destination: string | null;
}

/** What the sockets of one end saw. */
export interface RequestTimings {
  readonly count: number;
  readonly latency_ns: RequestValues;
  readonly first_byte_ns: RequestValues;
}

export interface RequestOperation {
  /** Null: edges for which there was no room. */
  readonly edge: RequestEdge | null;
  readonly protocol: string;
  /** The plaintext was read at a TLS library. */
  readonly tls: boolean;
  readonly method: string | null;
  readonly route: string | null;
  /** Operations of the edge for which there was no room. */
  readonly other: boolean;
  /** Where connections were sampled all by estimate, as errors and statuses are. */
  readonly count: number;
  /** Those that were seen. */
  readonly seen: number;
  /** Between which the count is, 95 times of 100; null where all were seen, or when that is not known. */
  readonly count_interval: { readonly low: number; readonly high: number | null } | null;
  readonly errors: number;
  readonly errors_by_class: {
    readonly client: number;
    readonly server: number;
    readonly broken: number;
  };
  /** Their end was not seen whole; they are no errors. */
  readonly unknown: number;
  readonly counted_from: "client" | "server" | "both" | "none";
  readonly statuses: Readonly<Record<string, number>>;
  readonly latency_ns: RequestValues;
  readonly latency_from: "client" | "server";
  readonly client: RequestTimings | null;
  readonly server: RequestTimings | null;
  readonly request_bytes: RequestValues;
  readonly response_bytes: RequestValues;
  /** Requests that were seen and are not in `request_bytes`: the size was not seen whole. */
  readonly request_sizes_unknown: number;
  readonly response_sizes_unknown: number;
  readonly messages: {
    readonly streams: number;
    readonly to_server: number;
    readonly to_client: number;
  } | null;
}

export type RequestOutcome = "ok" | "client_error" | "server_error" | "broken" | "unknown";

/** The beginning of a body, as it was sent. */
export interface RequestBody {
  readonly encoding: "utf-8" | "base64";
  readonly data: string;
  /** More came behind it. */
  readonly cut: boolean;
}

export interface RequestSample {
  readonly edge: RequestEdge | null;
  readonly protocol: string;
  readonly tls: boolean;
  readonly method: string | null;
  readonly route: string | null;
  /** As it was sent, its query masked; null unless the task was asked for raw paths. */
  readonly path: string | null;
  readonly authority: string | null;
  readonly status: number | string | null;
  readonly outcome: RequestOutcome;
  /** Nanoseconds since the Unix epoch. */
  readonly begin_ns: number;
  readonly duration_ns: number;
  /** From the first byte of the request to its last, and to the first of the answer. */
  readonly request_end_ns: number | null;
  readonly first_byte_ns: number | null;
  readonly request_bytes: number | null;
  readonly response_bytes: number | null;
  /** Messages of a stream: to the server, to the client. */
  readonly messages: readonly [number, number] | null;
  /** Of a task that was asked for bodies; null: there was none, or it was not looked at. */
  readonly request_body: RequestBody | null;
  readonly response_body: RequestBody | null;
  readonly trace: {
    readonly request_id: string | null;
    readonly trace_id: string | null;
    readonly span_id: string | null;
  };
  /** Chosen headers of request and answer: name, value. */
  readonly headers: readonly (readonly [string, string])[];
  readonly stream: number;
  readonly seen_by: "client" | "server";
  readonly pid: number;
  readonly tid: number | null;
  readonly client: string;
  readonly kept_as: "slow" | "failed" | "rule" | "all";
  readonly rule: number | null;
}

/** Where the time of pairs went. */
export interface SidecarTimes {
  readonly inside_ns: RequestValues;
  readonly read_wait_ns: RequestValues;
  readonly to_upstream_ns: RequestValues;
  readonly upstream_ns: RequestValues;
  /** The part of `upstream_ns` for which the answer had arrived already. */
  readonly answer_wait_ns: RequestValues;
  readonly to_client_ns: RequestValues;
}

/** What ties a request in to the one that went out for it, the best evidence first. */
export type MatchClass = "request_id" | "trace_id" | "fingerprint" | "order";

export interface SidecarPairs {
  readonly class: MatchClass;
  readonly pairs: number;
  /** Part of all pairs, 0 to 1. */
  readonly share: number;
  readonly times: SidecarTimes;
}

/** A process that requests go into and out of. */
export interface RequestSidecar {
  readonly process: EdgeEnd;
  readonly requests_in: number;
  readonly requests_out: number;
  /** Needs no pairs; null when more time was waited than taken. */
  readonly mean_ns: number | null;
  readonly unmatched_in: number;
  readonly unmatched_out: number;
  readonly forgotten: number;
  readonly pairs: readonly SidecarPairs[];
  /** All pairs but those that order alone decided. */
  readonly times: SidecarTimes | null;
  readonly upstream_header: {
    readonly pairs: number;
    readonly header_ms: number;
    readonly measured_ns: number;
    /** Pairs that differ by not more than 2 ms. */
    readonly agreeing: number;
  } | null;
}

/** What was told before encryption began. */
export interface RequestTls {
  readonly edge: RequestEdge;
  readonly server_name: string | null;
  readonly alpn_offered: readonly string[];
  readonly alpn_chosen: string | null;
  readonly version: string | null;
  readonly connections: number;
}

/** A place in a TLS library at which plaintext is read. */
export interface PlaintextProbe {
  readonly function: string;
  /** It reads the function's result, else its arguments. */
  readonly result: boolean;
  readonly address: string;
  readonly class: string;
  readonly price_ns: number;
}

/** A file with a TLS library. Its path is untrusted text. */
export interface PlaintextFile {
  readonly path: string;
  readonly build_id: string | null;
  readonly library: string | null;
  readonly found_by: string | null;
  readonly probes: readonly PlaintextProbe[];
  readonly processes: number;
  /** Why it, or a function of it, has no probes. */
  readonly reasons: readonly string[];
}

/** What became of TLS libraries. */
export interface RequestPlaintext {
  readonly files: readonly PlaintextFile[];
  readonly unavailable: string | null;
  readonly attached_percent: number;
  readonly attached_ns: number;
  /** What probes may cost, where that kept them away for a part of the time. */
  readonly limited_to_percent: number | null;
  readonly hits: number;
  readonly program_ns_per_hit: number | null;
  readonly cost_ns: number;
  readonly unreadable: number;
}

/** What could not be told. */
export interface RequestGaps {
  readonly gaps: number;
  readonly gap_connections: number;
  readonly undecoded_connections: number;
  readonly undecoded_bytes: number;
  readonly withdrawn_guesses: number;
  readonly unknown_direction: number;
  readonly refused_connections: number;
  readonly refused_bytes: number;
  readonly other_operations: number;
  readonly other_edges: number;
  /** Requests that had not ended when the task did. */
  readonly under_way: number;
}

export interface TaskRequests {
  readonly state: Task["state"];
  readonly reason: string | null;
  /** Null before the first result. */
  readonly window: { readonly from_ns: number; readonly to_ns: number } | null;
  /** Most requests first. */
  readonly operations: readonly RequestOperation[];
  /** In the order of their ends. */
  readonly samples: readonly RequestSample[];
  readonly samples_left_out: number;
  readonly tls: readonly RequestTls[];
  /** Null where plaintext was not asked for. */
  readonly plaintext: RequestPlaintext | null;
  readonly sidecars: readonly RequestSidecar[];
  readonly unbound_bytes: number;
  /** Pieces of payload that did not fit the ring buffer. */
  readonly lost: number;
  /** One connection in so many is looked at; 1 is all. */
  readonly sampled_one_of: number;
  readonly connections_by_protocol: Readonly<Record<string, number>>;
  readonly incomplete: RequestGaps;
  readonly damaged: boolean;
  readonly containers: NamedContainers;
}

export const requestsPath = (id: string): string => `/tasks/${encodeURIComponent(id)}/requests`;

export function taskRequests(id: string, signal?: AbortSignal): Promise<TaskRequests> {
  return json<TaskRequests>(requestsPath(id), signal);
}
