// How complete a result of connections is: lost traffic, ends that are not known, and metrics that this machine cannot give.

import type { Edge, EdgeTable } from "../api/types";
import { unresolvedText } from "./edges";
import { bytes, count, plural } from "./format";
import { tableRemarks } from "./kernel_table";
import type { QualityPart } from "./quality";

/** Share of all connections above which unresolved ends are marked. */
const MUCH = 0.01;

/** Without one of these a count of the table is missing; others (call times, Unix sockets) are seldom there. */
const COUNTED: ReadonlySet<string> = new Set([
  "close",
  "connect",
  "drop",
  "error",
  "min_rtt_us",
  "older_connections",
  "read",
  "receive_wait",
  "reset",
  "retransmit",
  "write",
  "write_rtt_us",
]);

/** Unresolved by these, something was not counted. */
const UNCOUNTED: ReadonlySet<string> = new Set([
  "calls_left_out",
  "calls_of_unknown_sockets",
  "messages_left_out",
  "stored_result_damaged",
  "times_left_out",
]);

const connectionsOf = ({ metrics: { client, server } }: Edge): number =>
  Math.max(client?.connections.count ?? 0, server?.connections.count ?? 0);

function lostPart({ lost, kernel_table }: EdgeTable): QualityPart {
  const missing = tableRemarks(kernel_table).filter(({ bad }) => bad);
  const { events, bytes: size } = lost;
  const none = events === 0 && missing.length === 0;
  return {
    title: "Lost traffic",
    text: none
      ? "none"
      : events === 0
        ? "counts are missing"
        : `${plural(events, "read or write", "reads and writes")}, ${bytes(size)}`,
    detail: none
      ? "Every read and write of every connection is counted; nothing is sampled."
      : [
          ...(events > 0 ? ["The kernel's table of connections was full."] : []),
          ...missing.map(({ text }) => text),
        ].join("\n"),
    poor: !none,
  };
}

function unresolvedPart({ unresolved, edges }: EdgeTable): QualityPart {
  const found = Object.entries(unresolved).filter(([, number]) => number > 0);
  const all = edges.reduce((sum, edge) => sum + connectionsOf(edge), 0);
  const isPoor = ([what, number]: [string, number]): boolean =>
    UNCOUNTED.has(what) || (what !== "used_by_several_processes" && number > MUCH * all);
  const poor = found.filter(isPoor);
  const [first] = poor.length > 0 ? poor : found;
  const more = found.length > 1 ? `, ${found.length - 1} more` : "";
  return {
    title: "Unresolved",
    text: first === undefined ? "nothing" : `${count(first[1])} ${unresolvedText(first[0])}${more}`,
    detail:
      found.length === 0
        ? "Both ends of every connection on this node are known."
        : found.map(([what, number]) => `${count(number)} ${unresolvedText(what)} (${what})`).join("\n"),
    poor: poor.length > 0,
  };
}

function unavailablePart({ unavailable, sources }: EdgeTable): QualityPart {
  const missing = Object.entries(unavailable);
  const poor = missing.filter(([metric]) => COUNTED.has(metric));
  const bySystemCalls = Object.entries(sources).filter(([, source]) => source === "system calls");
  const detail = missing.map(([metric, reason]) => `${metric}: ${reason}`);
  if (bySystemCalls.length > 0)
    detail.push(
      `Counted by system calls, because this kernel does not announce lengths: ${bySystemCalls.map(([metric]) => metric).join(", ")}`,
    );
  return {
    title: "Not available",
    text:
      missing.length === 0
        ? "nothing"
        : poor.length > 0
          ? poor.map(([metric]) => metric).join(", ")
          : plural(missing.length, "metric", "metrics"),
    detail: detail.join("\n"),
    poor: poor.length > 0,
  };
}

/** Each is said only when it happened; none of them loses a count. */
function rarer({ kernel_table, other }: EdgeTable): QualityPart[] {
  const harmless = tableRemarks(kernel_table).filter(({ bad }) => !bad);
  const parts: QualityPart[] = [];
  if (harmless.length > 0)
    parts.push({
      title: "Kernel's table",
      text: "nothing lost",
      detail: harmless.map(({ text }) => text).join("\n"),
      poor: false,
    });
  if (other !== null)
    parts.push({
      title: "Silent edges",
      text: `${count(other.edges)} added up`,
      detail:
        "Their connections ended more than a minute ago. They are counted, but not told apart any more.",
      poor: false,
    });
  return parts;
}

export function edgeQuality(table: EdgeTable): QualityPart[] {
  return [lostPart(table), unresolvedPart(table), unavailablePart(table), ...rarer(table)];
}
