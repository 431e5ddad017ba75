import { expect, it } from "vitest";
import { partsChip } from "./quality";
import { encryptedConnections, requestQuality } from "./request_quality";
import { answer, EDGE, logged, loggingEnvoy } from "./requests_testing";

const said = (change: Parameters<typeof answer>[0] = {}, tls = false) =>
  requestQuality(answer(change), tls ? ["sockets", "tls"] : ["sockets"]).map(
    ({ title, text, poor }) => `${title}: ${text}${poor ? " !" : ""}`,
  );

it("says that nothing was lost when nothing was", () => {
  expect(said()).toEqual(["Losses: nothing lost", "Sampled: every connection", "Undecoded: nothing"]);
  expect(said({}, true)).toContain("TLS without a socket: nothing");
});

it("says nothing of sockets where access logs are the only source", () => {
  const parts = requestQuality(answer({ access_logs: logged(loggingEnvoy({ missing: 4 })) }), ["access_log"]);
  expect(parts.map(({ title, text }) => `${title}: ${text}`)).toEqual([
    "Access logs: 4 of 1,004 requests missing",
  ]);
  const both = requestQuality(answer({ access_logs: logged() }), ["access_log", "sockets"]);
  expect(both.map(({ title }) => title)).toEqual(["Access logs", "Losses", "Sampled", "Undecoded"]);
});

it("says everything that is missing", () => {
  const whole = answer();
  const incomplete = Object.fromEntries(Object.keys(whole.incomplete).map((name) => [name, 2]));
  const text = said({
    lost: 37,
    sampled_one_of: 4,
    unbound_bytes: 2048,
    samples_left_out: 5,
    incomplete: incomplete as unknown as typeof whole.incomplete,
  });
  expect(text).toEqual([
    "Losses: 37 pieces lost, 2 gaps in 2 connections !",
    "Sampled: 1 of 4 connections !",
    "Undecoded: 2 connections, 2 B !",
    "TLS without a socket: 2.0 KiB !",
    "Unknown direction: 2 connections !",
    "No room: 2 connections, 2 B !",
    "Grouped as other: 2 requests of too many operations, 2 requests of too many edges !",
    "In flight: 2 requests !",
    "Samples: 5 left out",
    "Withdrawn guesses: 2",
  ]);
});

it("says for how much of the time TLS was read, and what is not read", () => {
  const file = { path: "/bin/x", build_id: null, library: "rustls", found_by: null, processes: 1 };
  const probe = { function: "SSL_read", result: false, address: "0x1", class: "push", price_ns: 725 };
  const plaintext = {
    files: [{ ...file, probes: [probe], reasons: [] }],
    unavailable: null,
    attached_percent: 100,
    attached_ns: 1e9,
    limited_to_percent: null,
    hits: 0,
    program_ns_per_hit: null,
    cost_ns: 0,
    unreadable: 0,
  };
  const tls = (change: Partial<typeof plaintext> & { unavailable?: string | null }) =>
    said({ plaintext: { ...plaintext, ...change } as never }).filter((text) => text.startsWith("TLS:"));
  expect(tls({})).toEqual([]);
  expect(tls({ attached_percent: 31 })).toEqual(["TLS: read for 31 % of the time !"]);
  expect(tls({ unavailable: "no" } as never)).toEqual(["TLS: not read !"]);
  const refused = { ...file, probes: [], reasons: ["has no symbols"] };
  const files = [refused as never, ...plaintext.files];
  expect(tls({ files })).toEqual(["TLS: 1 library not read !"]);
  expect(tls({ files, attached_percent: 2 })).toEqual([
    "TLS: read for 2 % of the time, 1 library not read !",
  ]);
});

it("hides no counter of what could not be told", () => {
  const { incomplete } = answer();
  for (const name of Object.keys(incomplete)) {
    // Connections that have a gap are said with their gaps.
    const change = name === "gap_connections" ? { gaps: 1, gap_connections: 7 } : { [name]: 7 };
    const text = said({ incomplete: { ...incomplete, ...change } });
    expect(
      text.some((part) => part.includes("7")),
      name,
    ).toBe(true);
  }
});

it("says nothing of a result that has not come", () => {
  expect(said({ window: null })).toEqual(["Result: none yet"]);
});

it("says of a damaged result nothing else", () => {
  expect(said({ damaged: true })).toEqual(["Stored result: damaged !"]);
});

it("counts encrypted connections by their hellos, or by what they were taken for", () => {
  const hello = {
    edge: EDGE,
    server_name: null,
    alpn_offered: [],
    alpn_chosen: null,
    version: null,
    connections: 3,
  };
  expect(encryptedConnections(answer({ tls: [hello, hello] }))).toBe(6);
  expect(encryptedConnections(answer({ connections_by_protocol: { tls: 2 } }))).toBe(2);
  expect(encryptedConnections(answer())).toBe(0);
});

it("marks what counts hardly depend on by no colour, and the button says the worst", () => {
  const connections_by_protocol = { http1: 900, unknown: 100 };
  const { incomplete } = answer();
  const few = { connections_by_protocol, incomplete: { ...incomplete, undecoded_bytes: 4900 } };
  expect(said(few)).toContain("Undecoded: 4.8 KiB");
  expect(partsChip(requestQuality(answer(few), ["sockets"]))).toMatchObject({
    text: "Quality: good",
    poor: false,
  });
  const many = { ...few, lost: 3, incomplete: { ...incomplete, undecoded_connections: 90 } };
  expect(said(many)).toContain("Undecoded: 90 connections !");
  expect(partsChip(requestQuality(answer(many), ["sockets"])).text).toBe(
    "▲ Losses: 3 pieces lost and 1 more",
  );
  expect(partsChip(requestQuality(answer({ window: null }), ["sockets"])).text).toBe("Quality: none yet");
});
