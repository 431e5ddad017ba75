// Which Envoys send their access logs to the agent, and what is missing of them, in words.

import type { AccessLogEnvoy, AccessLogStatus } from "../api/types";
import { clock, plural } from "./format";
import { shellWord } from "./task_spec";

/** What configures Envoys, by the names that the command has for it. */
export type LogSystem = "envoy" | "istio" | "envoy-gateway";
export const LOG_SYSTEMS: readonly (readonly [LogSystem, string])[] = [
  ["envoy", "Envoy"],
  ["istio", "Istio"],
  ["envoy-gateway", "Envoy Gateway"],
];

/** Its program and pid, or what it calls itself where no process of this node is known to be this one. */
export function logSender({ pid, program, node_id, peer }: AccessLogEnvoy): string {
  if (pid !== null) return `${program ?? "process"} (${pid})`;
  return node_id === "" ? (peer ?? "unknown") : node_id;
}

/** Rounded down: less than all is never 100 %. */
export function receivedPercent({ received_percent }: Pick<AccessLogEnvoy, "received_percent">): string {
  return received_percent === null ? "–" : `${(Math.floor(received_percent * 100) / 100).toFixed(2)} %`;
}

/** How long ago its newest message came. The clock of the node may be ahead of the reader's. */
export function newestText({ newest_ns }: Pick<AccessLogEnvoy, "newest_ns">, nowNs: number): string {
  return newest_ns === 0 ? "–" : `${clock(Math.max(0, nowNs - newest_ns) / 1e9)} ago`;
}

/** What is to be said of an Envoy beside its numbers. */
export function logNotes(envoy: AccessLogEnvoy): string[] {
  const { claimed, peer, node_id, node_id_differs, unknown_reason } = envoy;
  const notes: string[] = [];
  if (claimed)
    notes.push(
      `Only claimed: no process of this node is known to hold its connection from ${peer ?? "an unknown address"}.`,
    );
  if (node_id_differs) notes.push(`Its node id names another pod: ${node_id}.`);
  // That of a claimed one cannot be asked.
  if (unknown_reason !== null && !claimed) notes.push(`Its own counts are not known: ${unknown_reason}.`);
  const counts: readonly (readonly [number, string, string, string])[] = [
    [envoy.failed ?? 0, "entry", "entries", "it could not send"],
    [envoy.unreadable, "entry", "entries", "could not be decoded"],
    [envoy.unread, "entry", "entries", `${envoy.unread === 1 ? "was" : "were"} counted and not read`],
    [envoy.refused_messages, "message", "messages", "the agent refused"],
  ];
  for (const [number, one, more, what] of counts)
    if (number > 0) notes.push(`${plural(number, one, more)} that ${what}.`);
  return notes;
}

/** How much of what comes is read, by stage. */
export const STAGE_HELP: Readonly<Record<AccessLogEnvoy["stage"], string>> = {
  full: "Every entry is read",
  counted: "Entries are counted and not read: reading them all would take more than half of a CPU",
  held: "Messages wait as well, and Envoys drop entries for which they have no room",
};

/** For how long entries were not read; empty where they always were. */
export function unreadText({ counted, held }: AccessLogStatus["stage_seconds"]): string {
  if (counted + held === 0) return "";
  const waited = held === 0 ? "" : `, and messages waited for ${clock(held)},`;
  return `Entries were counted and not read for ${clock(counted)}${waited} since the agent began.`;
}

/** The port that documentation and commands use. */
const USUAL_PORT = "7118";
/** The Service that deploy/ makes. */
const SERVICE = "profiler-agent.profiler.svc.cluster.local";
const ANY = new Set(["0.0.0.0", "[::]"]);
const LOOPBACK = "127.0.0.1";

/** The command that prints what Envoys have to be configured with; `listen` is where the agent receives. */
export function snippetCommand(system: LogSystem, { listen }: Pick<AccessLogStatus, "listen">): string {
  const command = `profiler-agent access-logs snippet --for ${system}`;
  const colon = listen?.lastIndexOf(":") ?? -1;
  if (listen === null || colon === -1) return command;
  const [host, port] = [listen.slice(0, colon), listen.slice(colon + 1)];
  // Envoys of a mesh reach the agent by its Service.
  const isUsual = system !== "envoy" || ANY.has(host) || host === LOOPBACK;
  if (isUsual && port === USUAL_PORT) return command;
  const address = system !== "envoy" ? SERVICE : isUsual ? LOOPBACK : host;
  return `${command} --address ${shellWord(`${address}:${port}`)}`;
}

/** The command that starts an agent which receives access logs. */
export const RECEIVE_COMMAND = `profiler-agent serve --access-logs ${LOOPBACK}:${USUAL_PORT}`;
