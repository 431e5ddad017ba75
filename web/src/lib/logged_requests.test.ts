import { describe, expect, it } from "vitest";
import {
  detailRows,
  envoyName,
  flagShare,
  hostRows,
  joinedText,
  loggedQuality,
  phaseRows,
  receivedText,
  retriesText,
  SHOWN_DETAILS,
  shareText,
  tlsRows,
} from "./logged_requests";
import { logged, loggingEnvoy, values } from "./requests_testing";

describe("an Envoy that reports requests", () => {
  it("is its program, or what it calls itself where nothing else is known", () => {
    expect(envoyName(loggingEnvoy({ node_id: "sidecar~10.0.0.1" }))).toBe("envoy");
    const process = { ...loggingEnvoy().process, pid: null, comm: null };
    expect(envoyName(loggingEnvoy({ process, claimed: true, node_id: "gateway~7" }))).toBe("gateway~7");
    expect(envoyName(loggingEnvoy({ process, claimed: true }))).toBe("10.0.0.1");
  });

  it("says how much has come, and never all of it when some is missing", () => {
    const text = (change: Parameters<typeof loggingEnvoy>[0]) => receivedText(loggingEnvoy(change));
    expect(text({ requests: 1_202_829, missing: 612 })).toBe(
      "99.94 % of 1,203,441 requests came; 612 are missing.",
    );
    expect(text({ requests: 99_999_999, missing: 1 })).toBe(
      "99.99 % of 100,000,000 requests came; 1 is missing.",
    );
    expect(text({ missing: 0 })).toBe("All of 1,000 requests came.");
    expect(text({ requests: 1, missing: null })).toContain("1 request came. How many are missing is unknown");
    expect(text({ requests: 0 })).toBe("No request has come, and none is missing.");
    expect(text({ requests: 0, missing: 3 })).toBe("0.00 % of 3 requests came; 3 are missing.");
    expect(text({ requests: 0, connections: 5, missing: 5 })).toBe(
      "50.00 % of 10 connections came; 5 are missing.",
    );
    expect(shareText(1, 3)).toBe("33.33 %");
  });

  it("says how many requests were found at sockets", () => {
    expect(joinedText(loggingEnvoy())).toBe("");
    const text = (contradicted: number, ends = 2000, requests = 999) =>
      joinedText(loggingEnvoy({ joined: { ends, joined: 1999, confirmed: 1000, requests, contradicted } }));
    expect(text(0, 0)).toBe("");
    expect(text(0)).toBe(
      "Both ends of 999 requests were found at sockets: their time in the proxy is that of the sockets. 99.95 % of 2,000 ends were found, 1,000 by the same x-request-id.",
    );
    expect(text(0, 2000, 0)).toContain("Of no request both ends were found at sockets. 99.95 %");
    expect(text(3)).toContain("The times of 3 ends fit requests with other ids.");
  });

  it("says how many requests took several attempts", () => {
    expect(retriesText(loggingEnvoy())).toBe("No request was retried.");
    expect(retriesText(loggingEnvoy({ retried: 1, retries: 2 }))).toBe(
      "1 request (0.10 %) was retried, with 2 further attempts.",
    );
    expect(retriesText(loggingEnvoy({ retried: 20, retries: 20 }))).toContain("20 requests (2.0 %) were");
  });

  it("has phases in the order of a request, those of the proxy marked", () => {
    const phase = (name: string, ns: number) => ({ name, meaning: `${name}.`, ns: values([ns, ns, 4]) });
    const rows = phaseRows([phase("read", 0), phase("to_upstream", 50), phase("upstream", 200)]);
    expect(rows.map(({ key, own, length }) => [key, own, length])).toEqual([
      ["read", false, 0],
      ["to_upstream", true, 0.25],
      ["upstream", false, 1],
    ]);
    // One that this page does not know stays as it is.
    expect(phaseRows([{ name: "after_dark", meaning: "", ns: values() }])).toMatchObject([
      { title: "after dark", own: false, length: 0 },
    ]);
    expect(phaseRows([])).toEqual([]);
  });

  it("has flags as shares of requests and connections", () => {
    const flag = { name: "UF", long_name: "", meaning: "", cause: "", count: 12, upstreams: [] };
    expect(flagShare(flag, loggingEnvoy({ requests: 1000, connections: 200 }))).toBe("1.0 %");
    expect(flagShare(flag, loggingEnvoy({ requests: 0 }))).toBe("–");
  });

  it("has the hosts that stand out first", () => {
    const host = (address: string, stands_out: string | null) => ({
      cluster: "c",
      address,
      requests: 1,
      errors: 0,
      ns: values(),
      rtt_ns: values(),
      retransmits: null,
      stands_out,
    });
    const rows = hostRows([host("a", null), host("b", null), host("c", "is slow"), host("d", "fails")]);
    expect(rows.map(({ address }) => address)).toEqual(["c", "d", "a", "b"]);
  });

  it("has the most frequent details, and counts the others", () => {
    const details = Array.from({ length: SHOWN_DETAILS + 2 }, (_, i) => ({ text: `d${i}`, count: 50 - i }));
    expect(detailRows(details.slice(0, 2))).toEqual({ shown: details.slice(0, 2), rest: "" });
    expect(detailRows(details.slice(0, -1)).rest).toBe("1 further detail of 38 requests: the JSON has it.");
    const { shown, rest } = detailRows(details);
    expect(shown).toHaveLength(SHOWN_DETAILS);
    expect(rest).toBe("2 further details of 75 requests: the JSON has them.");
  });

  it("counts requests that came without TLS", () => {
    const tls = [{ version: "TLSv1.3", count: 900 }];
    expect(tlsRows(loggingEnvoy({ tls }))).toEqual([
      { text: "TLSv1.3", count: 900 },
      { text: "without TLS", count: 100 },
    ]);
    expect(tlsRows(loggingEnvoy({ requests: 900, tls }))).toHaveLength(1);
    expect(tlsRows(loggingEnvoy({ requests: 0 }))).toEqual([]);
  });
});

it("the quality of access logs is what is missing, in all and by cause", () => {
  const said = (given: Parameters<typeof loggedQuality>[0]) =>
    loggedQuality(given).map(({ title, text, poor }) => `${title}: ${text}${poor ? " !" : ""}`);
  expect(said(logged())).toEqual(["Access logs: nothing came"]);
  expect(said(logged(loggingEnvoy()))).toEqual(["Access logs: nothing missing"]);
  const poor = logged(loggingEnvoy({ missing: 10 }), loggingEnvoy({ missing: null }));
  expect(said({ ...poor, seen_twice: 3, without_entry: 4, left_out: 1, of_other_envoys: 2 })).toEqual([
    "Access logs: 10 of 1,010 requests missing, unknown what is missing of 1 Envoy !",
    "Entries not read: 1 entry !",
    "Without an entry: 4 requests !",
    "Further Envoys: 2 entries",
    "At sockets too: 3 requests",
  ]);
});
