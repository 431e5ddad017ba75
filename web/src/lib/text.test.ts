import { describe, expect, it } from "vitest";
import { estimateLine, resolutionPoints, roughly } from "./estimate";
import {
  bytes,
  clock,
  cpu,
  duration,
  fitName,
  partStarts,
  percent,
  shortId,
  shortName,
  visible,
} from "./format";
import { formatState, parseState, START } from "./query_state";
import { EventParser, MAX_MESSAGE_LENGTH, type ServerEvent } from "./sse";
import { seeded } from "./testing";

describe("format", () => {
  it("writes numbers", () => {
    expect(bytes(0)).toBe("0 B");
    expect(bytes(1536)).toBe("1.5 KiB");
    expect(bytes(40 * 1024 ** 2)).toBe("40.0 MiB");
    expect(percent(1, 8)).toBe("12.5 %");
    expect(percent(1, 1e9)).toBe("< 0.01 %");
    expect(percent(0, 5)).toBe("0 %");
    expect(percent(1, 0)).toBe("–");
    expect(cpu(null)).toBe("–");
    expect(cpu(199.6)).toBe("200 %");
    expect(duration(999)).toBe("999 ns");
    expect(duration(2_400)).toBe("2.40 µs");
    expect(duration(3.2e9)).toBe("3.20 s");
    expect(duration(9_995)).toBe("10.0 µs");
    expect(duration(999_999)).toBe("1.00 ms");
    expect(duration(104_857_599)).toBe("105 ms");
    expect(clock(3725)).toBe("1 h 2 min");
  });

  it("shows what untrusted text would hide", () => {
    expect(visible("a\u202egnp.exe\n\u0000")).toBe("a▯gnp.exe▯▯");
    expect(visible("<b>&\"' ünï 火")).toBe("<b>&\"' ünï 火");
    expect(shortId("3f9d2c71aa0b4c1d8e6f5a4b3c2d1e0f")).toBe("3f9d2c71aa0b");
    expect(shortId("my-container")).toBe("my-container");
  });

  it("folds arguments, never the name", () => {
    expect(shortName("short<int>(char)")).toBe("short<int>(char)");
    expect(shortName("Envoy::Http::ConnectionManagerImpl::onData(Envoy::Buffer::Instance&, bool)")).toBe(
      "Envoy::Http::ConnectionManagerImpl::onData(…)",
    );
    expect(
      shortName("a::very::long::name::of::something::map<std::string, std::vector<int>>::find() const"),
    ).toBe("a::very::long::name::of::something::map<…>::find() const");
    expect(shortName("<tokio::runtime::task::core::Core<T,S> as core::future::Future>::poll")).toContain(
      "poll",
    );
    const broken = "unbalanced<<<<<((((((((((((((((((((((((((((((((((((((";
    expect(shortName(broken)).toBe(broken);
  });
});

describe("names in little room", () => {
  const shorten = (name: string, room: number): string => fitName(name, partStarts(name), room);

  it("drop outer namespaces first, then their end", () => {
    expect(shorten("a::b::work(…)", 13)).toBe("a::b::work(…)");
    expect(shorten("a::b::work(…)", 10)).toBe("b::work(…)");
    expect(shorten("a::b::work(…)", 8)).toBe("work(…)");
    expect(shorten("a::b::work(…)", 4)).toBe("wor…");
    expect(shorten("plain_function", 6)).toBe("plain…");
    expect(shorten("<a::b as c::d>::poll", 6)).toBe("poll");
    expect(shorten("x<a::b>::y", 5)).toBe("y");
  });

  it("never exceed the room", () => {
    const next = seeded(9);
    for (let round = 0; round < 2000; round += 1) {
      const name = Array.from(
        { length: 1 + Math.floor(next() * 30) },
        () => "ab::<>()-…"[Math.floor(next() * 10)],
      ).join("");
      const room = 2 + Math.floor(next() * 20);
      expect(shorten(name, room).length).toBeLessThanOrEqual(room);
    }
  });
});

describe("estimate", () => {
  it("says how many samples and how exact", () => {
    expect(estimateLine(10, 99, 0.84)).toBe(
      "About 830 samples (10 s × 99 Hz × 0.84 cores as now): a function of 10 % reads 10 ± 2.0 %.",
    );
    expect(estimateLine(10, 99, 0.11)).toMatch(/10 ± 5\.6 %\. For ± 2 %, record 80 s\.$/);
    expect(estimateLine(null, 19, 2)).toContain("until stopped");
    expect(estimateLine(1, 1, 0)).toContain("too few");
    expect(resolutionPoints(0, 0.1)).toBeNull();
    expect(roughly(0.3)).toBe("< 1");
  });
});

describe("query state", () => {
  it("survives the way through the address bar", () => {
    const state = {
      ...START,
      view: "task" as const,
      id: "7",
      search: "/a&b=c#d/ +%",
      zoom: "0123456789abcdef",
      part: "2500000-5000001",
      layout: "sandwich" as const,
      fn: "fedcba9876543210",
      transforms: "f-0123456789abcdef,p",
      colour: "module" as const,
      panel: true,
      tab: "table" as const,
      from: 0,
      to: 2500,
      tids: [12, 13],
      except: true,
      time: "subsecond" as const,
      base: "6",
      baseFrom: 20,
      baseTo: 4000,
      norm: "rate" as const,
      value: "count" as const,
      idle: "only" as const,
      states: ["io", "interruptible"],
      reasons: ["socket read"],
      earlier: true,
      bad: true,
      local: true,
      silent: true,
      protocol: "unix" as const,
      requests: "samples" as const,
      operation: "0123456789abcdef",
      sample: "fedcba9876543210",
      speaks: "grpc",
      failing: true,
      dead: "",
    };
    expect(parseState(formatState(state))).toEqual(state);
    expect(formatState(START)).toBe("?view=overview");
  });

  it.each([
    ["?view=bogus", "overview", "there is no page “bogus”"],
    ["?view=processes&process=nope", "processes", "“nope” is not a process: PID-STARTTICKS is needed"],
    ["?view=task&id=%2F", "tasks", "“/” is not a task"],
    ["?view=group", "tasks", "no group is named"],
    ["?view=edge&id=4", "task", "no edge is named"],
    ["?view=task&id=4&process=7-1", "task", ""],
    ["", "overview", ""],
  ])("says what %s asks for in vain", (search, view, dead) => {
    expect(parseState(search)).toMatchObject({ view, dead });
    // It is said once: the address that is written then is a good one.
    expect(parseState(formatState(parseState(search))).dead).toBe("");
  });

  it("carries all threads of a large process, as many as the agent takes", () => {
    const tids = Array.from({ length: 2000 }, (_, i) => i);
    expect(parseState(formatState({ ...START, tids })).tids).toEqual(tids.slice(0, 1024));
  });

  it("gives a valid state for anything", () => {
    expect(parseState("?view=task")).toMatchObject({ view: "tasks" });
    expect(
      parseState(
        "?view=<script>&id=../..&from=-1&to=1e9&tid=a,,5&idle=x&value=9&state=<a>&reason=A&zoom=xyz&part=9-3&sort=';--",
      ),
    ).toEqual({
      ...START,
      dead: "there is no page “<script>”",
      tids: [5],
    });
    const next = seeded(5);
    for (let round = 0; round < 500; round += 1) {
      const noise = Array.from({ length: 60 }, () => String.fromCharCode(Math.floor(next() * 300))).join("");
      const state = parseState(`?view=task&${noise}&id=${noise}&tid=${noise}`);
      expect(parseState(formatState(state))).toEqual({ ...state, dead: "" });
    }
  });
});

describe("EventParser", () => {
  const parse = (pieces: string[]): ServerEvent[] => {
    const events: ServerEvent[] = [];
    const parser = new EventParser((event) => events.push(event));
    for (const piece of pieces) parser.feed(piece);
    return events;
  };
  const STREAM =
    ': ping\n\nevent: task\ndata: {"id":"1"}\n\ndata: a\r\ndata: b\r\n\r\nevent: lost\n\nid: 4\ndata:x\n\n';

  it("reads messages however they are cut", () => {
    const whole = parse([STREAM]);
    expect(whole).toEqual([
      { event: "task", data: '{"id":"1"}' },
      { event: "message", data: "a\nb" },
      { event: "message", data: "x" },
    ]);
    expect(parse([...STREAM])).toEqual(whole);
    for (let at = 0; at < STREAM.length; at += 1)
      expect(parse([STREAM.slice(0, at), STREAM.slice(at)])).toEqual(whole);
  });

  it("gives up on an endless message", () => {
    expect(() => parse(["data: ", "x".repeat(MAX_MESSAGE_LENGTH)])).toThrow(RangeError);
  });
});
