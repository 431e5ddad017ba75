// Edges for tests: ends that measured nothing but what a test gives them.

import type { Edge, EdgeEnd, EdgeSide, SideSeries } from "../api/types";
import { EDGE_METRICS } from "./edge_metrics";

/** Every metric of the table as null. */
const UNMEASURED = Object.fromEntries(Object.values(EDGE_METRICS).map(({ id }) => [id, null]));

export function edgeSide(change: Partial<EdgeSide> = {}): EdgeSide {
  const rest = { connections: { count: 1, open: 0 }, min_rtt_us: null, socket: null };
  return { ...UNMEASURED, ...rest, ...change } as EdgeSide;
}

export function sideSeries(change: Partial<SideSeries> = {}): SideSeries {
  return { ...UNMEASURED, connections: [], open: [], connects_failed: null, ...change } as SideSeries;
}

/** Calls without their times. */
export function untimed(count: number, bytes: number): NonNullable<EdgeSide["write"]> {
  return { count, bytes, time_ns: null, histogram: null };
}

/** What the agent says of the few programs that tests have. */
function programKind(comm: string | null): EdgeEnd["program_kind"] {
  const known = { envoy: "proxy", "pilot-agent": "proxy_agent", pause: "keeper" } as const;
  return known[comm as keyof typeof known] ?? null;
}

export function edgeEnd(change: Partial<EdgeEnd> = {}): EdgeEnd {
  return {
    pid: null,
    start_ticks: change.pid ?? null,
    comm: null,
    program_kind: programKind(change.comm ?? null),
    container: null,
    name: null,
    address: "10.0.0.1",
    network_namespace: null,
    port: null,
    ...change,
  };
}

export function edgeOf(
  client: EdgeEnd,
  server: EdgeEnd,
  metrics: Edge["metrics"],
  change: Partial<Edge> = {},
): Edge {
  return {
    id: "0",
    client,
    server,
    original_destination: null,
    protocol: "tcp",
    tls: null,
    metrics,
    ...change,
  };
}
