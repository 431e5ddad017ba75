import { expect, test } from "vitest";
import type { Edge, EdgeSide } from "../api/types";
import { edgeOpen, edgeRate, isActiveEdge, shownEdges } from "./edge_activity";

const side = (connections: number, open: number, bytes: number): EdgeSide =>
  ({
    connections: { count: connections, open },
    write: { count: bytes / 10, bytes, time_ns: null, histogram: null },
    read: null,
  }) as unknown as EdgeSide;
const edge = (id: string, client: EdgeSide | null, server: EdgeSide | null, protocol = "tcp"): Edge =>
  ({ id, protocol, metrics: { client, server } }) as unknown as Edge;
const byId = (...edges: Edge[]) => new Map(edges.map((one) => [one.id, one]));

test("an edge is active while it is open or is used", () => {
  const closed = edge("a", side(3, 0, 100), null);
  expect(isActiveEdge(closed, byId(closed))).toBe(false);
  expect(isActiveEdge(edge("a", side(3, 1, 100), null), byId(closed))).toBe(true);
  // Short connections are never seen open.
  expect(isActiveEdge(edge("a", side(4, 0, 100), null), byId(closed))).toBe(true);
  expect(isActiveEdge(edge("a", null, side(3, 0, 110)), byId(edge("a", null, side(3, 0, 100))))).toBe(true);
  expect(isActiveEdge(edge("new", side(1, 0, 0), null), byId(closed))).toBe(true);
  // Nothing is hidden before anything is known of now.
  expect(isActiveEdge(closed, null)).toBe(true);
});

test("the rate is that of the last seconds, and of the end that saw more", () => {
  const before = byId(edge("a", side(1, 1, 1000), side(1, 1, 900)));
  const now = edge("a", side(1, 1, 6000), side(1, 1, 5800));
  expect(edgeRate(now, before, 5)).toBe(1000);
  expect(edgeRate(now, null, 6)).toBe(1000);
  expect(edgeRate(edge("a", null, null), before, 5)).toBeNull();
  expect(edgeOpen(edge("a", side(9, 2, 0), side(9, 3, 0)))).toBe(3);
});

test("the filter keeps a protocol, what is active and what is picked", () => {
  const edges = [
    edge("a", side(1, 1, 0), null),
    edge("b", side(1, 0, 0), null),
    edge("c", side(1, 1, 0), null, "unix"),
  ];
  const before = byId(...edges);
  const ids = (filter: Partial<Parameters<typeof shownEdges>[2]>): string[] =>
    shownEdges(edges, before, { activeOnly: false, protocol: "all", picked: "", ...filter }).map(
      ({ id }) => id,
    );
  expect(ids({})).toEqual(["a", "b", "c"]);
  expect(ids({ activeOnly: true })).toEqual(["a", "c"]);
  expect(ids({ activeOnly: true, protocol: "tcp" })).toEqual(["a"]);
  expect(ids({ activeOnly: true, picked: "b" })).toEqual(["a", "b", "c"]);
  expect(ids({ protocol: "unix" })).toEqual(["c"]);
});
