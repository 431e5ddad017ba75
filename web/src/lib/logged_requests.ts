// What an Envoy reports of the requests of a task by its access log, as rows and sentences.

import type {
  LoggedFlag,
  LoggedPhase,
  LoggedRequests,
  LoggedUpstream,
  LoggingEnvoy,
  RequestValues,
} from "../api/types";
import { endName } from "./edges";
import { count, percent, plural } from "./format";
import type { QualityPart } from "./quality";

/** Its program, or what it calls itself where no process of this node is known to be this one. */
export function envoyName({ process, claimed, node_id }: LoggingEnvoy): string {
  return claimed && node_id !== "" ? node_id : endName(process);
}

/** A share in percent, rounded down: less than all is never 100 %. */
export function shareText(part: number, whole: number): string {
  return `${(Math.floor((part * 10_000) / whole) / 100).toFixed(2)} %`;
}

/** What has come of what it has logged: requests, or connections where it has no requests. */
export function receivedText({ requests, connections, missing }: LoggingEnvoy): string {
  const isTcp = requests === 0 && connections > 0;
  const [came, what] = isTcp ? [connections, "connection"] : [requests, "request"];
  const all = came + (missing ?? 0);
  if (missing === null)
    return `${plural(came, what)} came. How many are missing is unknown: its own counters could not be read.`;
  if (all === 0) return "No request has come, and none is missing.";
  if (missing === 0) return `All of ${plural(came, what)} came.`;
  return `${shareText(came, all)} of ${plural(all, what)} came; ${count(missing)} ${missing === 1 ? "is" : "are"} missing.`;
}

export function retriesText({ requests, retried, retries }: LoggingEnvoy): string {
  if (retried === 0) return "No request was retried.";
  const were = retried === 1 ? "was" : "were";
  return `${plural(retried, "request")} (${percent(retried, requests)}) ${were} retried, with ${plural(retries, "further attempt")}.`;
}

/** How many of its requests were found at sockets as well; empty where sockets were not looked at. */
export function joinedText({ joined }: LoggingEnvoy): string {
  if (joined === null || joined.ends === 0) return "";
  const { ends, joined: found, confirmed, requests, contradicted } = joined;
  const others =
    contradicted === 0 ? "" : ` The times of ${count(contradicted)} ends fit requests with other ids.`;
  const both =
    requests === 0
      ? "Of no request both ends were found at sockets."
      : `Both ends of ${plural(requests, "request")} were found at sockets: their time in the proxy is that of the sockets.`;
  return `${both} ${shareText(found, ends)} of ${count(ends)} ends were found, ${count(confirmed)} by the same x-request-id.${others}`;
}

interface PhaseText {
  readonly title: string;
  /** Time that the proxy itself adds. */
  readonly own: boolean;
}

const PHASES: Readonly<Record<string, PhaseText>> = {
  read: { title: "Request read", own: false },
  to_upstream: { title: "Request path", own: true },
  upstream: { title: "Upstream", own: false },
  response: { title: "Response read", own: false },
  to_client: { title: "Response path", own: true },
  tail: { title: "Rest sent", own: false },
  cleanup: { title: "Clean-up", own: false },
};

export interface PhaseRow {
  readonly key: string;
  readonly title: string;
  readonly meaning: string;
  readonly own: boolean;
  readonly values: RequestValues;
  /** Length of its bar, 0 to 1: its mean by the longest. */
  readonly length: number;
}

/** Phases in the order in which a request goes through them. */
export function phaseRows(phases: readonly LoggedPhase[]): PhaseRow[] {
  const longest = Math.max(1, ...phases.map(({ ns }) => ns.mean ?? 0));
  return phases.map(({ name, meaning, ns }) => ({
    key: name,
    title: PHASES[name]?.title ?? name.replaceAll("_", " "),
    own: PHASES[name]?.own ?? false,
    meaning,
    values: ns,
    length: (ns.mean ?? 0) / longest,
  }));
}

/** Share of requests and connections that have a flag. */
export function flagShare({ count: number }: LoggedFlag, { requests, connections }: LoggingEnvoy): string {
  return percent(number, requests + connections);
}

/** Hosts that stand out first, otherwise as they are given: by requests. */
export function hostRows(upstreams: readonly LoggedUpstream[]): LoggedUpstream[] {
  const rank = ({ stands_out }: LoggedUpstream): number => (stands_out === null ? 1 : 0);
  return upstreams.toSorted((a, b) => rank(a) - rank(b));
}

/** Something of which requests have one each, with how many have it. */
export interface CountedText {
  readonly text: string;
  readonly count: number;
}

/** Details of responses that are shown. */
export const SHOWN_DETAILS = 12;

/** The most frequent details, and what is left of them as one row. */
export function detailRows(details: readonly CountedText[]): {
  readonly shown: readonly CountedText[];
  /** Empty when all are shown. */
  readonly rest: string;
} {
  const left = details.slice(SHOWN_DETAILS);
  const requests = left.reduce((sum, detail) => sum + detail.count, 0);
  return {
    shown: details.slice(0, SHOWN_DETAILS),
    rest:
      left.length === 0
        ? ""
        : `${plural(left.length, "further detail")} of ${plural(requests, "request")}: the JSON has ${left.length === 1 ? "it" : "them"}.`,
  };
}

/** Versions of TLS of the clients' connections, and how many requests came without TLS. */
export function tlsRows({ requests, tls }: LoggingEnvoy): CountedText[] {
  const inside = tls.reduce((sum, { count: number }) => sum + number, 0);
  return [
    ...tls.map(({ version, count: number }) => ({ text: version, count: number })),
    ...(requests > inside ? [{ text: "without TLS", count: requests - inside }] : []),
  ];
}

function missingPart({ envoys }: LoggedRequests): QualityPart {
  const known = envoys.filter((envoy) => envoy.missing !== null);
  const came = known.reduce((sum, { requests }) => sum + requests, 0);
  const missing = known.reduce((sum, envoy) => sum + (envoy.missing ?? 0), 0);
  const unknown = envoys.length - known.length;
  const parts = [
    ...(missing > 0 ? [`${count(missing)} of ${plural(came + missing, "request")} missing`] : []),
    ...(unknown > 0 ? [`unknown what is missing of ${plural(unknown, "Envoy")}`] : []),
  ];
  const whole = envoys.length === 0 ? "nothing came" : "nothing missing";
  return {
    title: "Access logs",
    text: parts.length === 0 ? whole : parts.join(", "),
    detail:
      "An Envoy counts what it has logged and what it has dropped because its buffers were full. What of that did not come is missing from operations too.",
    poor: missing > 0 || unknown > 0,
  };
}

/** How complete that is which came by access logs. */
export function loggedQuality(logged: LoggedRequests): QualityPart[] {
  const { seen_twice, without_entry, left_out, of_other_envoys } = logged;
  const parts = [missingPart(logged)];
  if (left_out > 0)
    parts.push({
      title: "Entries not read",
      text: plural(left_out, "entry", "entries"),
      detail: "They came faster than the task could read them, and are missing from its numbers.",
      poor: true,
    });
  if (without_entry > 0)
    parts.push({
      title: "Without an entry",
      text: plural(without_entry, "request"),
      detail:
        "Sockets show them at these Envoys and no entry tells of them: it was lost, or not all of them are logged. No operation has them.",
      poor: true,
    });
  if (of_other_envoys > 0)
    parts.push({
      title: "Further Envoys",
      text: plural(of_other_envoys, "entry", "entries"),
      detail:
        "There was no room for the phases, flags and hosts of these Envoys. Operations count their requests all the same.",
      poor: false,
    });
  if (seen_twice > 0)
    parts.push({
      title: "At sockets too",
      text: plural(seen_twice, "request"),
      detail: "They are counted once, as the access log has them.",
      poor: false,
    });
  return parts;
}
