// How good a result of requests is: everything that was lost, left out or not understood, in words.

import type { RequestSource, TaskRequests } from "../api/types";
import { bytes, count, plural } from "./format";
import { loggedQuality } from "./logged_requests";
import type { QualityPart } from "./quality";
import { protocolTitle } from "./requests";

/** Parts of all connections or requests: below these, counts and times are as good as whole. */
const MUCH = 0.01;

const allConnections = ({ connections_by_protocol }: TaskRequests): number =>
  Object.values(connections_by_protocol).reduce((sum, number) => sum + number, 0);

/** "2 connections, 4.8 KiB", without what is none. */
function amountText(connections: number, size: number): string {
  const parts = [
    ...(connections > 0 ? [plural(connections, "connection")] : []),
    ...(size > 0 ? [bytes(size)] : []),
  ];
  return parts.length === 0 ? "nothing" : parts.join(", ");
}

function lossPart({ lost, incomplete }: TaskRequests): QualityPart {
  const { gaps, gap_connections } = incomplete;
  const parts: string[] = [];
  if (lost > 0) parts.push(`${plural(lost, "piece")} lost`);
  if (gaps > 0) parts.push(`${plural(gaps, "gap")} in ${plural(gap_connections, "connection")}`);
  return {
    title: "Losses",
    text: parts.length === 0 ? "nothing lost" : parts.join(", "),
    detail:
      parts.length === 0
        ? "Every piece of payload that the kernel captured arrived, and no place is missing."
        : "Pieces of payload did not fit the ring buffer. A connection with a gap counts requests again as soon as its decoder knows where one begins; what it cannot know is told as unknown.",
    poor: parts.length > 0,
  };
}

function samplingPart({ sampled_one_of }: TaskRequests): QualityPart {
  const all = sampled_one_of <= 1;
  return {
    title: "Sampled",
    text: all ? "every connection" : `1 of ${count(sampled_one_of)} connections`,
    detail: all
      ? "The CPU budget sufficed for every connection."
      : "Payload came faster than the CPU budget allows. Counts, rates and errors of operations are estimates. Where the kernel counts requests itself (HTTP/1 without TLS), they add up to its count; elsewhere they are what was seen, times the bytes of all connections, divided by the bytes that were looked at. The interval of a count shows when the pointer rests on it.",
    poor: !all,
  };
}

function undecodedPart(answer: TaskRequests): QualityPart {
  const { incomplete, connections_by_protocol } = answer;
  const { undecoded_connections: connections, undecoded_bytes } = incomplete;
  const known = Object.entries(connections_by_protocol)
    .sort((a, b) => b[1] - a[1])
    .map(([protocol, number]) => `${protocolTitle(protocol)}: ${count(number)}`);
  const none = connections === 0 && undecoded_bytes === 0;
  return {
    title: "Undecoded",
    text: amountText(connections, undecoded_bytes),
    detail: [
      none
        ? "Every connection that was looked at speaks something that is known here."
        : "Connections that speak nothing that is known here, or that began before the task did, and bytes that no decoder understood. Their requests are not counted.",
      ...(known.length === 0 ? [] : ["Connections by what they speak, each end by itself:", ...known]),
    ].join("\n"),
    poor: connections > MUCH * allConnections(answer),
  };
}

function unboundPart({ unbound_bytes }: TaskRequests, tls: boolean): QualityPart | null {
  if (!tls && unbound_bytes === 0) return null;
  return {
    title: "TLS without a socket",
    text: unbound_bytes === 0 ? "nothing" : bytes(unbound_bytes),
    detail:
      unbound_bytes === 0
        ? "All plaintext was tied to the socket that its ciphertext went over."
        : "Plaintext that was read at a TLS library and belongs to no known socket: its requests are not counted, because their edge is unknown.",
    poor: unbound_bytes > 0,
  };
}

/** For how much of the time plaintext was read, when not for all of it. */
function dutyPart({ plaintext }: TaskRequests): QualityPart | null {
  if (plaintext === null) return null;
  const { unavailable, attached_percent, limited_to_percent, files } = plaintext;
  if (unavailable !== null) return { title: "TLS", text: "not read", detail: unavailable, poor: true };
  const refused = files.filter(({ probes }) => probes.length === 0).length;
  const text: string[] = [];
  const detail: string[] = [];
  if (attached_percent < 100) {
    text.push(`read for ${attached_percent} % of the time`);
    detail.push(
      "Counts of requests inside TLS are those of that time, and rates are of it.",
      limited_to_percent === null
        ? "The task was asked to read it for a part of the time."
        : `All the time its probes would cost the processes more than ${limited_to_percent} % of a CPU.`,
    );
  }
  if (refused > 0) {
    text.push(`${plural(refused, "library", "libraries")} not read`);
    detail.push("The reasons are below, with the libraries.");
  }
  if (text.length === 0) return null;
  return { title: "TLS", text: text.join(", "), detail: detail.join(" "), poor: true };
}

/** Those that are said only when they happened: each is a number that is missing elsewhere. */
function rarer(answer: TaskRequests): QualityPart[] {
  const { incomplete, samples_left_out, operations } = answer;
  const {
    withdrawn_guesses,
    unknown_direction,
    refused_connections,
    refused_bytes,
    other_operations,
    other_edges,
    under_way,
  } = incomplete;
  const parts: QualityPart[] = [];
  const requests = operations.reduce((sum, operation) => sum + operation.count, 0);
  const add = (title: string, happened: boolean, text: string, detail: string, poor = true): void => {
    if (happened) parts.push({ title, text, detail, poor });
  };
  add(
    "Unknown direction",
    unknown_direction > 0,
    plural(unknown_direction, "connection"),
    "It is unknown which end of these connections is the client. Their requests are not counted.",
    unknown_direction > MUCH * allConnections(answer),
  );
  add(
    "No room",
    refused_connections > 0 || refused_bytes > 0,
    amountText(refused_connections, refused_bytes),
    "Connections for which there was no room, and bytes of connections that are not known.",
  );
  add(
    "Grouped as other",
    other_operations > 0 || other_edges > 0,
    [
      other_operations > 0 ? `${plural(other_operations, "request")} of too many operations` : "",
      other_edges > 0 ? `${plural(other_edges, "request")} of too many edges` : "",
    ]
      .filter((text) => text !== "")
      .join(", "),
    "Counted, but put together: an edge keeps a bounded number of operations, and a task a bounded number of edges.",
    other_operations + other_edges > MUCH * requests,
  );
  add(
    "In flight",
    under_way > 0,
    plural(under_way, "request"),
    "They had not ended when the task did, and are not counted: long streams, and responses that were still awaited.",
    under_way > MUCH * requests,
  );
  add(
    "Samples",
    samples_left_out > 0,
    `${count(samples_left_out)} left out`,
    "There was no room for them. Operations count them all the same.",
    false,
  );
  if (withdrawn_guesses > 0)
    parts.push({
      title: "Withdrawn guesses",
      text: count(withdrawn_guesses),
      detail:
        "So many times a connection did not speak what its first bytes looked like. What had been counted of such a guess was taken back.",
      poor: false,
    });
  return parts;
}

/** What was lost or not understood of what is moved over sockets. */
function socketParts(answer: TaskRequests, tls: boolean): QualityPart[] {
  const unbound = unboundPart(answer, tls);
  const duty = dutyPart(answer);
  return [
    lossPart(answer),
    samplingPart(answer),
    ...(duty === null ? [] : [duty]),
    undecodedPart(answer),
    ...(unbound === null ? [] : [unbound]),
  ];
}

/** `sources`: where the task looks for requests. */
export function requestQuality(answer: TaskRequests, sources: readonly RequestSource[]): QualityPart[] {
  if (answer.damaged)
    return [
      {
        title: "Stored result",
        text: "damaged",
        detail: "The stored result cannot be read: nothing here was counted.",
        poor: true,
      },
    ];
  if (answer.window === null)
    return [
      {
        title: "Result",
        text: "none yet",
        detail: "The first result has not come: nothing can be said of its quality.",
        poor: false,
      },
    ];
  return [
    ...(answer.access_logs === null ? [] : loggedQuality(answer.access_logs)),
    ...(sources.includes("sockets") ? socketParts(answer, sources.includes("tls")) : []),
    ...rarer(answer),
  ];
}

/** Connections whose bytes are encrypted and were not read. */
export function encryptedConnections({ tls, connections_by_protocol }: TaskRequests): number {
  const hellos = tls.reduce((sum, { connections }) => sum + connections, 0);
  return Math.max(hellos, connections_by_protocol.tls ?? 0);
}
