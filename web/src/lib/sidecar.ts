// What a process adds to the requests that pass through it: its time in parts, and how sure that is.

import type { MatchClass, RequestSidecar, RequestValues, SidecarTimes } from "../api/types";
import { count, duration, percent } from "./format";

export interface SidecarPart {
  readonly key: "read_wait" | "to_upstream" | "upstream" | "to_client";
  readonly title: string;
  readonly help: string;
  readonly values: RequestValues;
  /** Time in the process itself, not in what it waits for. */
  readonly own: boolean;
}

/** The way of a request through the process, in its order. */
export function sidecarParts(times: SidecarTimes): readonly SidecarPart[] {
  return [
    {
      key: "read_wait",
      title: "Inbound socket queue",
      help: "From the arrival of the request until the process read it: its event loop was busy with others",
      values: times.read_wait_ns,
      own: true,
    },
    {
      key: "to_upstream",
      title: "Request path",
      help: "From reading the request to writing it to the upstream",
      values: times.to_upstream_ns,
      own: true,
    },
    {
      key: "upstream",
      title: "Upstream",
      help: "From there to reading the first byte of the response: network and service, and until it was read",
      values: times.upstream_ns,
      own: false,
    },
    {
      key: "to_client",
      title: "Response path",
      help: "From reading the first byte of the response to writing one to the client",
      values: times.to_client_ns,
      own: true,
    },
  ];
}

/** A piece of the bar of means. */
export interface SplitPiece {
  readonly part: SidecarPart;
  readonly mean_ns: number;
  /** 0 to 1 of the sum of means. */
  readonly share: number;
}

/** Means beside each other; parts without values are left out. */
export function splitPieces(times: SidecarTimes): SplitPiece[] {
  const known = sidecarParts(times).flatMap((part) =>
    part.values.mean === null ? [] : [{ part, mean_ns: part.values.mean }],
  );
  const sum = known.reduce((all, { mean_ns }) => all + mean_ns, 0);
  return known.map((piece) => ({ ...piece, share: sum === 0 ? 0 : piece.mean_ns / sum }));
}

export function splitText(pieces: readonly SplitPiece[]): string {
  return pieces.map(({ part, mean_ns }) => `${part.title} ${duration(mean_ns)}`).join(", ");
}

const CLASSES: Readonly<Record<MatchClass, { readonly title: string; readonly help: string }>> = {
  access_log: {
    title: "access log",
    help: "The process itself reports both in one entry of its access log",
  },
  request_id: {
    title: "request id",
    help: "Both have the same x-request-id, and no other request of that time has it",
  },
  trace_id: { title: "trace id", help: "Both have the same trace, and no other request of that time has it" },
  fingerprint: {
    title: "unique match",
    help: "They agree in method, authority, path and size, and nothing else fits",
  },
  order: {
    title: "FIFO order only",
    help: "Several fit equally well, and the order in which they came decided: no evidence, and not in the times",
  },
};

export interface ClassShare {
  readonly key: string;
  readonly title: string;
  readonly help: string;
  readonly text: string;
  /** Its times are among those that are shown. */
  readonly trusted: boolean;
}

/** The classes of pairs with their shares, the best evidence first. */
export function classShares({ pairs }: Pick<RequestSidecar, "pairs">): ClassShare[] {
  const all = pairs.reduce((sum, found) => sum + found.pairs, 0);
  return pairs.map((found) => {
    const known = CLASSES[found.class] ?? { title: found.class, help: "" };
    return {
      key: found.class,
      ...known,
      text: `${percent(found.pairs, all)} (${count(found.pairs)})`,
      trusted: found.class !== "order",
    };
  });
}

/** Pairs that the shown times are of. */
export function trustedPairs({ pairs }: Pick<RequestSidecar, "pairs">): number {
  return pairs.reduce((sum, found) => sum + (found.class === "order" ? 0 : found.pairs), 0);
}

/** The header of the upstream's time beside what was measured, in words; null where no response had it. */
export function headerText({ upstream_header }: Pick<RequestSidecar, "upstream_header">): string | null {
  if (upstream_header === null || upstream_header.pairs === 0) return null;
  const { pairs, header_ms, measured_ns, agreeing } = upstream_header;
  const said = duration((header_ms / pairs) * 1e6);
  return `the process says ${said} on average in x-envoy-upstream-service-time, ${duration(measured_ns / pairs)} were measured; ${percent(agreeing, pairs)} of ${count(pairs)} pairs agree within 2 ms`;
}

/** Whether its times are those that the process itself reports. */
export function isLogged({ pairs }: Pick<RequestSidecar, "pairs">): boolean {
  return pairs.length > 0 && pairs.every((found) => found.class === "access_log");
}
