import { describe, expect, it } from "vitest";
import type { AccessLogEnvoy } from "../api/types";
import {
  logNotes,
  logSender,
  newestText,
  receivedPercent,
  snippetCommand,
  unreadText,
} from "./access_log_status";

const ENVOY: AccessLogEnvoy = {
  pid: 4242,
  id: "4242-156954",
  program: "envoy",
  pod: "shop/checkout-1",
  claimed: false,
  node_id: "sidecar~10.1.0.4~checkout-1.shop~shop.svc.cluster.local",
  node_id_differs: false,
  version: "1.40.0",
  peer: "10.1.0.4:39001",
  log_names: ["profiler-access-logs"],
  streams: 4,
  received: 1000,
  requests: 990,
  connections: 10,
  attempts: 0,
  open: 0,
  unreadable: 0,
  unread: 0,
  refused_messages: 0,
  bytes: 386_000,
  written: 1000,
  dropped: 0,
  failed: null,
  completed: 990,
  unknown: 0,
  unknown_reason: null,
  received_percent: 100,
  stage: "full",
  first_ns: 1e18,
  newest_ns: 1e18,
};

const envoy = (change: Partial<AccessLogEnvoy>): AccessLogEnvoy => ({ ...ENVOY, ...change });

describe("an Envoy that sends its access log", () => {
  it("is its process, or what it says of itself", () => {
    expect(logSender(ENVOY)).toBe("envoy (4242)");
    expect(logSender(envoy({ program: null }))).toBe("process (4242)");
    expect(logSender(envoy({ pid: null }))).toBe(ENVOY.node_id);
    expect(logSender(envoy({ pid: null, node_id: "" }))).toBe("10.1.0.4:39001");
    expect(logSender(envoy({ pid: null, node_id: "", peer: null }))).toBe("unknown");
  });

  it("never shows all as received when some is missing", () => {
    expect(receivedPercent(ENVOY)).toBe("100.00 %");
    expect(receivedPercent({ received_percent: 99.9999 })).toBe("99.99 %");
    expect(receivedPercent({ received_percent: null })).toBe("–");
  });

  it("says how old its newest message is, whatever the clocks say", () => {
    expect(newestText(ENVOY, 1e18 + 125e9)).toBe("2 min 5 s ago");
    expect(newestText(ENVOY, 1e18 - 5e9)).toBe("0 s ago");
    expect(newestText({ newest_ns: 0 }, 1e18)).toBe("–");
  });

  it("says what is wrong beside its numbers", () => {
    expect(logNotes(ENVOY)).toEqual([]);
    const lost = envoy({
      node_id_differs: true,
      unknown_reason: "no admin interface",
      failed: 2,
      unreadable: 1000,
      unread: 0,
      refused_messages: 1,
    });
    expect(logNotes(lost)).toEqual([
      `Its node id names another pod: ${ENVOY.node_id}.`,
      "Its own counts are not known: no admin interface.",
      "2 entries that it could not send.",
      "1,000 entries that could not be decoded.",
      "1 message that the agent refused.",
    ]);
    expect(logNotes(envoy({ unread: 1 }))).toEqual(["1 entry that was counted and not read."]);
    // The counters of a claimed one cannot be asked.
    expect(logNotes(envoy({ claimed: true, peer: null, unknown_reason: "x" }))).toEqual([
      "Only claimed: no process of this node is known to hold its connection from an unknown address.",
    ]);
  });
});

it("the time in which entries were not read is said, if there was any", () => {
  expect(unreadText({ full: 3600, counted: 0, held: 0 })).toBe("");
  expect(unreadText({ full: 3600, counted: 75, held: 0 })).toBe(
    "Entries were counted and not read for 1 min 15 s since the agent began.",
  );
  expect(unreadText({ full: 3600, counted: 75, held: 4.2 })).toBe(
    "Entries were counted and not read for 1 min 15 s, and messages waited for 4 s, since the agent began.",
  );
});

it("the command for a snippet has the address where it is not the usual one", () => {
  const of = (system: Parameters<typeof snippetCommand>[0], listen: string | null) =>
    snippetCommand(system, { listen }).replace("profiler-agent access-logs snippet --for ", "");
  expect(of("envoy", "127.0.0.1:7118")).toBe("envoy");
  expect(of("envoy", null)).toBe("envoy");
  expect(of("envoy", "0.0.0.0:9000")).toBe("envoy --address 127.0.0.1:9000");
  expect(of("envoy", "10.2.0.1:7118")).toBe("envoy --address 10.2.0.1:7118");
  expect(of("envoy", "[fd00::1]:7118")).toBe("envoy --address '[fd00::1]:7118'");
  expect(of("istio", "10.2.0.1:7118")).toBe("istio");
  expect(of("envoy-gateway", "[::]:9000")).toBe(
    "envoy-gateway --address profiler-agent.profiler.svc.cluster.local:9000",
  );
  // Text of an answer is no command.
  expect(of("envoy", "$(reboot):7118")).toBe("envoy --address '$(reboot):7118'");
});
