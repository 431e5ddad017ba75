import { describe, expect, it } from "vitest";
import { callersGraph, invertedGraph, outermost } from "./flame_climb";
import { type FlameIndex, indexFlameGraph, nodeFeatures } from "./flame_index";
import { findFunction, findModule, functionKey, functionOf, moduleKey } from "./flame_keys";
import { relatives } from "./flame_relatives";
import {
  applyTransforms,
  calleesGraph,
  formatTransforms,
  moveTransform,
  parseTransforms,
  type Transform,
  type TransformKind,
} from "./flame_transform";
import { type FlameGraph, Kind, type Label, MIXED } from "./flamegraph";
import { functionTable } from "./functions";
import { searchFeatures } from "./search";
import { graphOf, label, randomGraph, seeded } from "./testing";

/** The stacks of a tree as `a;b;c` with their samples, the plain way. */
function folded(graph: FlameGraph): Map<string, number> {
  const path: string[] = [];
  const stacks = new Map<string, number>();
  for (let i = 0; i < graph.depth.length; i += 1) {
    path.length = graph.depth[i]!;
    path.push(graph.labels[graph.label[i]!]!.name);
    if (graph.self[i]! > 0) {
      const text = path.join(";");
      stacks.set(text, (stacks.get(text) ?? 0) + graph.self[i]!);
    }
  }
  return stacks;
}

/** The same after `change` of every stack; null leaves one out. */
function changed(graph: FlameGraph, change: (stack: string[]) => string[] | null): Map<string, number> {
  const stacks = new Map<string, number>();
  for (const [text, samples] of folded(graph)) {
    const stack = change(text.split(";"));
    if (stack !== null) stacks.set(stack.join(";"), (stacks.get(stack.join(";")) ?? 0) + samples);
  }
  return stacks;
}

/** A random tree as the agent sends them: the children of a node differ. */
function randomTree(seed: number, nodes: number): FlameIndex {
  const rows: [number, number, string][] = [];
  const done = new Set<string>();
  // What is below a node must stand together: the separator sorts before every letter.
  const stacks = [...folded(randomGraph(seed, nodes))].map(
    ([stack, samples]) => [stack.replaceAll(";", "\u0001"), samples] as const,
  );
  for (const [stack, samples] of stacks.sort(([a], [b]) => (a < b ? -1 : 1))) {
    const path = stack.split("\u0001");
    path.forEach((name, depth) => {
      const prefix = path.slice(0, depth + 1).join(";");
      if (!done.has(prefix)) rows.push([depth, 0, name]);
      done.add(prefix);
    });
    rows[rows.length - 1]![1] = samples;
  }
  return indexFlameGraph(graphOf(rows));
}

const total = (graph: FlameGraph): number => graph.self.reduce((sum, value) => sum + value, 0);
const nodeNamed = (labels: readonly Label[], name: string): number =>
  labels.findIndex((item) => item.name === name);

/** Every parent's children and self are its total, in order, and siblings differ. */
function wellFormed(index: FlameIndex): void {
  const sums = index.graph.self.slice();
  const siblings = new Set<string>();
  for (let i = 1; i < index.count; i += 1) {
    sums[index.parent[i]!]! += index.total[i]!;
    const key = `${index.parent[i]} ${index.graph.label[i]}`;
    expect(siblings.has(key)).toBe(false);
    siblings.add(key);
  }
  expect(sums).toEqual(index.total);
}

const SMALL = indexFlameGraph(
  graphOf([
    [0, 0, "all"],
    [1, 1, "main"],
    [2, 4, "parse"],
    [3, 2, "alloc"],
    [2, 0, "send"],
    [3, 3, "alloc"],
    [4, 5, "parse"],
    [1, 2, "idle"],
  ]),
);

describe("invertedGraph", () => {
  it("has functions by self samples, and their callers above each other", () => {
    expect(folded(invertedGraph(SMALL))).toEqual(
      new Map([
        ["all;parse;main", 4],
        ["all;parse;alloc;send;main", 5],
        ["all;alloc;parse;main", 2],
        ["all;alloc;send;main", 3],
        ["all;idle", 2],
        ["all;main", 1],
      ]),
    );
  });

  it("holds the self samples of each function, in order, for any tree", () => {
    for (let seed = 0; seed < 60; seed += 1) {
      const index = randomTree(seed, 300);
      const inverted = indexFlameGraph(invertedGraph(index));
      wellFormed(inverted);
      const selfs = new Map(functionTable(index, 0).map((row) => [row.name, row.self]));
      expect(inverted.total[0]).toBe(index.total[0]);
      let last = Number.POSITIVE_INFINITY;
      for (let node = 1; node < inverted.count; node = inverted.end[node]!) {
        const { name } = inverted.graph.labels[inverted.graph.label[node]!]!;
        expect(inverted.total[node]).toBe(selfs.get(name));
        expect(inverted.total[node]).toBeLessThanOrEqual(last);
        last = inverted.total[node]!;
        selfs.delete(name);
      }
      expect([...selfs].filter(([name, self]) => name !== "all" && self > 0)).toEqual([]);
    }
  });

  it("is every stack read backwards, where nothing is too small to be seen", () => {
    for (let seed = 0; seed < 30; seed += 1) {
      const index = randomTree(seed, 120);
      const backwards = changed(index.graph, ([root, ...frames]) => [root!, ...frames.reverse()]);
      expect(folded(invertedGraph(index))).toEqual(backwards);
    }
  });

  it("merges what is too small to be seen and loses none of it", () => {
    const rows: [number, number, string][] = [[0, 1_000_000, "all"]];
    for (let i = 0; i < 300; i += 1) rows.push([1, 0, `caller${i}`], [2, 1, "leaf"]);
    const inverted = indexFlameGraph(invertedGraph(indexFlameGraph(graphOf(rows))));
    wellFormed(inverted);
    expect(folded(inverted.graph)).toEqual(
      new Map([
        ["all", 1_000_000],
        ["all;leaf;(other)", 300],
      ]),
    );
  });

  it("ends in time for a deep recursion with samples everywhere", () => {
    const deep = 8_000;
    const graph: FlameGraph = {
      ...SMALL.graph,
      depth: Uint32Array.from({ length: deep }, (_, i) => i),
      self: new Float64Array(deep).fill(1),
      label: new Uint32Array(deep).fill(1),
    };
    const inverted = invertedGraph(indexFlameGraph(graph));
    expect(total(inverted)).toBe(deep);
  });
});

describe("a sandwich", () => {
  it("has callers above and callees below, recursion counted once", () => {
    const target = nodeNamed(SMALL.graph.labels, "parse");
    expect(folded(callersGraph(SMALL, target))).toEqual(
      new Map([
        ["parse;main", 6],
        ["parse;alloc;send;main", 5],
      ]),
    );
    expect(folded(calleesGraph(SMALL, target))).toEqual(
      new Map([
        ["parse", 9],
        ["parse;alloc", 2],
      ]),
    );
  });

  it("has the function's total on both sides, for any tree and function", () => {
    for (let seed = 0; seed < 40; seed += 1) {
      const index = randomTree(seed, 250);
      for (const row of functionTable(index, 0)) {
        const target = nodeNamed(index.graph.labels, row.name);
        const callers = indexFlameGraph(callersGraph(index, target));
        const callees = indexFlameGraph(calleesGraph(index, target));
        wellFormed(callers);
        wellFormed(callees);
        expect(callers.total[0]).toBe(row.total);
        expect(callees.total[0]).toBe(row.total);
        const near = relatives(index, target);
        expect([near.total, near.self]).toEqual([row.total, row.self]);
        expect(near.callees.reduce((sum, item) => sum + item.total, near.self)).toBeGreaterThanOrEqual(
          // Self samples of inner calls are part of a callee and of the function's own.
          row.total,
        );
        if (row.name !== "all")
          expect(near.callers.reduce((sum, item) => sum + item.total, 0)).toBe(row.total);
      }
    }
  });

  it("finds the outermost places alone", () => {
    const names = graphOf([
      [0, 0, "all"],
      [1, 1, "f"],
      [2, 1, "g"],
      [3, 1, "f"],
      [1, 1, "g"],
      [2, 1, "f"],
    ]);
    expect(outermost(indexFlameGraph(names), 1)).toEqual([1, 5]);
  });
});

const run = (index: FlameIndex, ...list: readonly [TransformKind, string][]) =>
  applyTransforms(
    index,
    list.map(([kind, name]): Transform => {
      if (kind === "processes") return { kind, key: "" };
      if (kind === "module") return { kind, key: moduleKey(name) };
      return { kind, key: functionKey(index.graph.labels[nodeNamed(index.graph.labels, name)]!) };
    }),
  );

describe("applyTransforms", () => {
  it("does what the plain change of every stack does, for any tree", () => {
    const plain: Readonly<Record<string, (stack: string[], name: string) => string[] | null>> = {
      focus: (stack, name) => {
        const at = stack.indexOf(name, 1);
        return at < 0 ? null : [stack[0]!, ...stack.slice(at)];
      },
      merge: (stack, name) => stack.filter((frame) => frame !== name),
      drop: (stack, name) => (stack.includes(name) ? null : stack),
      recursion: (stack, name) => {
        const last = stack.lastIndexOf(name);
        return last < 0 ? stack : [...stack.slice(0, stack.indexOf(name)), ...stack.slice(last)];
      },
    };
    for (let seed = 0; seed < 40; seed += 1) {
      const index = randomTree(seed, 200);
      for (const kind of ["focus", "merge", "drop", "recursion"] as const) {
        const name = `fn${seed % 20}`;
        if (nodeNamed(index.graph.labels, name) < 0) continue;
        const result = run(index, [kind, name]);
        wellFormed(result.index);
        const wanted = changed(index.graph, (stack) => plain[kind]!(stack, name));
        expect(folded(result.index.graph)).toEqual(wanted);
        expect(result.index.total[0]! + result.dropped).toBe(index.total[0]);
        if (kind === "merge" || kind === "recursion") expect(result.dropped).toBe(0);
      }
    }
  });

  it("keeps samples that end between two calls of a collapsed recursion", () => {
    const tree = graphOf([
      [0, 0, "all"],
      [1, 1, "f"],
      [2, 2, "g"],
      [3, 4, "f"],
      [4, 8, "h"],
    ]);
    expect(folded(run(indexFlameGraph(tree), ["recursion", "f"]).index.graph)).toEqual(
      new Map([
        ["all;f", 5],
        ["all;f;g", 2],
        ["all;f;h", 8],
      ]),
    );
  });

  it("collapses the calls inside a module into one frame", () => {
    const ssl = "/usr/lib/libssl.so.3";
    const labels = [label("all", 0, ""), label("main"), label("read", 1, ssl), label("digest", 3, ssl)];
    const index = indexFlameGraph({
      ...SMALL.graph,
      labels,
      depth: Uint32Array.of(0, 1, 2, 3, 4, 5),
      self: Float64Array.of(0, 1, 2, 4, 8, 16),
      label: Uint32Array.of(0, 1, 2, 3, 1, 3),
    });
    const result = run(index, ["module", ssl]);
    expect(folded(result.index.graph)).toEqual(
      new Map([
        ["all;main", 1],
        ["all;main;[libssl.so.3]", 6],
        ["all;main;[libssl.so.3];main", 8],
        ["all;main;[libssl.so.3];main;[libssl.so.3]", 16],
      ]),
    );
    expect(result.applied[0]).toMatchObject({ name: ssl, dropped: 0 });
    expect(result.index.graph.labels.at(-1)).toMatchObject({ kind: 1, module: ssl });
  });

  it("merges processes, of which two of one name stay apart elsewhere", () => {
    const labels = [label("all", 0, ""), label("envoy", 8), label("envoy", 8), label("main")];
    const graph: FlameGraph = {
      ...SMALL.graph,
      labels,
      depth: Uint32Array.of(0, 1, 2, 1, 2),
      self: Float64Array.of(0, 1, 2, 4, 8),
      label: Uint32Array.of(0, 1, 3, 2, 3),
    };
    expect([...functionOf(labels)]).toEqual([0, 1, 2, 3]);
    const index = indexFlameGraph(graph);
    expect(folded(run(index, ["processes", ""]).index.graph)).toEqual(
      new Map([
        ["all", 5],
        ["all;main", 10],
      ]),
    );
  });

  it("runs several in order, stays exact and says what each left out", () => {
    const result = run(SMALL, ["drop", "idle"], ["merge", "send"], ["focus", "alloc"]);
    expect(folded(result.index.graph)).toEqual(
      new Map([
        ["all;alloc", 5],
        ["all;alloc;parse", 5],
      ]),
    );
    expect(result.applied.map(({ name, dropped }) => [name, dropped])).toEqual([
      ["idle", 2],
      ["send", 0],
      ["alloc", 5],
    ]);
    expect(result.dropped).toBe(7);
  });

  it("keeps every sum for any chain", () => {
    const kinds: readonly TransformKind[] = ["focus", "merge", "drop", "recursion", "module", "processes"];
    for (let seed = 0; seed < 60; seed += 1) {
      const next = seeded(seed);
      const index = randomTree(seed, 250);
      const chain = Array.from({ length: 4 }, (): [TransformKind, string] => {
        const kind = kinds[Math.floor(next() * kinds.length)]!;
        const { name } = index.graph.labels[1 + Math.floor(next() * (index.graph.labels.length - 1))]!;
        return [kind, kind === "module" ? "/bin/app" : name];
      });
      const result = run(index, ...chain);
      wellFormed(result.index);
      expect(result.index.total[0]! + result.dropped).toBe(index.total[0]);
      expect(result.applied.reduce((sum, { dropped }) => sum + dropped, 0)).toBe(result.dropped);
    }
  });

  it("says when the profile does not have what a change is about", () => {
    const strange = "0123456789abcdef";
    const focus = applyTransforms(SMALL, [{ kind: "focus", key: strange }]);
    expect(focus.applied[0]).toMatchObject({ name: null, dropped: 17 });
    expect(focus.index.total[0]).toBe(0);
    const drop = applyTransforms(SMALL, [{ kind: "drop", key: strange }]);
    expect(drop.applied[0]).toMatchObject({ name: null, dropped: 0 });
    expect(drop.index).toBe(SMALL);
    const later = run(SMALL, ["merge", "send"], ["drop", "send"]);
    expect(later.applied[1]).toMatchObject({ name: "send", dropped: 0 });
  });

  it("acts earlier or later than others when it is moved, and stops at the ends", () => {
    const list: Transform[] = [
      { kind: "focus", key: "0123456789abcdef" },
      { kind: "processes", key: "" },
      { kind: "module", key: "fedcba9876543210" },
    ];
    const kinds = (position: number, by: number) => moveTransform(list, position, by).map(({ kind }) => kind);
    expect(kinds(0, 1)).toEqual(["processes", "focus", "module"]);
    expect(kinds(2, -1)).toEqual(["focus", "module", "processes"]);
    expect(kinds(2, -9)).toEqual(["module", "focus", "processes"]);
    expect(moveTransform(list, 0, -1)).toBe(list);
    expect(moveTransform(list, 7, -1)).toBe(list);
  });

  it("is written into the address and read back; nonsense is left out", () => {
    const list: Transform[] = [
      { kind: "focus", key: "0123456789abcdef" },
      { kind: "processes", key: "" },
      { kind: "module", key: "fedcba9876543210" },
    ];
    expect(formatTransforms(list)).toBe("f-0123456789abcdef,p,c-fedcba9876543210");
    expect(parseTransforms(formatTransforms(list))).toEqual(list);
    expect(parseTransforms("f-1,x-0123456789abcdef,p-,px,,f,m0123456789abcdef")).toEqual([]);
    expect(parseTransforms(new Array(1000).fill("p").join(","))).toHaveLength(32);
  });
});

describe("keys", () => {
  it("name functions and modules, and nothing else", () => {
    const { labels } = SMALL.graph;
    expect(findFunction(labels, functionKey(labels[2]!))).toBe(2);
    expect(functionKey({ ...labels[2]!, line: 7 })).toBe(functionKey(labels[2]!));
    expect(findFunction(labels, "no key")).toBe(-1);
    expect(findFunction(labels, "0123456789abcdef")).toBe(-1);
    expect(findModule(labels, moduleKey("/bin/app"))).toBe("/bin/app");
    expect(findModule(labels, moduleKey(""))).toBeNull();
  });
});

describe("changes for a kind of program", () => {
  const stacks: readonly (readonly [number, number, string])[] = [
    [0, 0, "all"],
    [1, 0, "start_thread"],
    [2, 0, "Envoy::Server::WorkerImpl::threadRoutine(Envoy::OptRef<Envoy::Server::GuardDog>)"],
    [3, 1, "event_base_loop"],
    [4, 2, "std::_Function_handler<void (unsigned int), Envoy::Event::FileEventImpl>::_M_invoke(x)"],
    [5, 4, "Envoy::Network::ConnectionImpl::onReadReady()"],
    [6, 8, "kernel_entry"],
    [7, 16, "tcp_sendmsg"],
    [5, 32, "tokio::runtime::task::raw::poll"],
    [6, 64, "<core::pin::Pin<P> as core::future::Future>::poll"],
    [7, 128, "shop::handle"],
  ];
  const graph = graphOf(stacks);
  const labels = graph.labels.map((item) =>
    ["kernel_entry", "tcp_sendmsg"].includes(item.name) ? { ...item, kind: Kind.Kernel } : item,
  );
  const index = indexFlameGraph({ ...graph, labels });
  const changedBy = (kind: TransformKind) => applyTransforms(index, [{ kind, key: "" }]);
  const stackOf = (kind: TransformKind, name: string): string | undefined =>
    [...folded(changedBy(kind).index.graph).keys()].find((stack) => stack.endsWith(name));

  it("hides Envoy's plumbing and keeps every sample", () => {
    expect(changedBy("envoy").dropped).toBe(0);
    expect(stackOf("envoy", "onReadReady()")).toBe(
      "all;start_thread;Envoy::Network::ConnectionImpl::onReadReady()",
    );
    expect(folded(changedBy("envoy").index.graph).get("all;start_thread")).toBe(3);
  });

  it("hides tokio and std and keeps every sample", () => {
    expect(changedBy("runtime").dropped).toBe(0);
    expect(stackOf("runtime", "shop::handle")).not.toMatch(/tokio|core::|start_thread/);
  });

  it("shows the kernel alone and says what it leaves out", () => {
    const { index: kernel, dropped } = changedBy("kernel");
    expect(folded(kernel.graph)).toEqual(
      new Map([
        ["all;kernel_entry", 8],
        ["all;kernel_entry;tcp_sendmsg", 16],
      ]),
    );
    expect(dropped).toBe(index.total[0]! - 24);
  });

  it("keeps features where all samples of a merged frame belong to one", () => {
    const same = indexFlameGraph({
      ...graphOf([
        [0, 0, "all"],
        [1, 0, "a"],
        [2, 1, "work"],
        [1, 0, "b"],
        [2, 2, "work"],
        [2, 4, "rest"],
      ]),
      features: { titles: ["one", "two"], own: Uint16Array.of(MIXED, MIXED, 0, MIXED, 0, 1) },
    });
    const key = (name: string) => functionKey(same.graph.labels.find((item) => item.name === name)!);
    const merged = applyTransforms(same, [
      { kind: "merge", key: key("a") },
      { kind: "merge", key: key("b") },
    ]).index;
    const features = [...merged.graph.label.keys()].map((node) => [
      merged.graph.labels[merged.graph.label[node]!]!.name,
      nodeFeatures(merged)?.[node],
    ]);
    expect(features).toEqual([
      ["all", MIXED],
      ["rest", 1],
      ["work", 0],
    ]);
    expect(searchFeatures(merged, (title) => title === "one")?.union).toBe(3);
    const only = applyTransforms(same, [{ kind: "focus", key: key("rest") }]).index;
    expect([...nodeFeatures(only)!]).toEqual([1, 1]);
  });

  it("counts own samples of a frame whose callees belong to others", () => {
    const connection = indexFlameGraph({
      ...graphOf([
        [0, 0, "all"],
        [1, 40, "connection"],
        [2, 60, "log"],
      ]),
      features: { titles: ["Connections", "Access logs"], own: Uint16Array.of(MIXED, 0, 1) },
    });
    const found = searchFeatures(connection, (title) => title === "Connections");
    expect([found?.union, [...(found?.list ?? [])]]).toEqual([40, []]);
  });

  it("stands in the address as one letter", () => {
    for (const kind of ["envoy", "runtime", "kernel"] as const)
      expect(parseTransforms(formatTransforms([{ kind, key: "" }]))).toEqual([{ kind, key: "" }]);
    expect(parseTransforms("e-0123456789abcdef,kk")).toEqual([]);
  });
});
