import { expect, test } from "vitest";
import { boxOf, layoutNodeMap, type NodeLayout } from "./node_map_layout";
import type { Point } from "./topology_layout";

const flow = (client: string, server: string) => ({ key: `${client}>${server}`, client, server });

/** Always the same numbers. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

/** So many pods in layers as in a mesh, with calls that skip layers and some that go back. */
function mesh(pods: number, seed: number) {
  const next = numbers(seed);
  const keys = Array.from({ length: pods }, (_, i) => `pod${i}`);
  const flows = new Map<string, ReturnType<typeof flow>>();
  for (let i = 1; i < pods; i += 1) {
    const calls = 1 + Math.floor(next() * 2.4);
    for (let j = 0; j < calls; j += 1) {
      const other = Math.floor(next() * i);
      const back = next() < 0.06;
      const one = back ? flow(keys[i]!, keys[other]!) : flow(keys[other]!, keys[i]!);
      flows.set(one.key, one);
    }
  }
  return { keys, flows: [...flows.values()] };
}

/** Points along a path as it is drawn. */
function pointsOf(path: string): Point[] {
  const points: Point[] = [];
  let at: Point = { x: 0, y: 0 };
  for (const [, letter, text] of path.matchAll(/([MHC])([^MHC]*)/g)) {
    const values = text!.trim().split(/[ ,]+/).map(Number);
    const from = at;
    if (letter === "M") at = { x: values[0]!, y: values[1]! };
    else if (letter === "H") at = { x: values[0]!, y: from.y };
    else at = { x: values[4]!, y: values[5]! };
    const bends =
      letter === "C"
        ? { a: { x: values[0]!, y: values[1]! }, b: { x: values[2]!, y: values[3]! } }
        : { a: from, b: at };
    for (let step = 0; step <= 40; step += 1) {
      const t = step / 40;
      const weigh = (axis: "x" | "y"): number =>
        (1 - t) ** 3 * from[axis] +
        3 * (1 - t) ** 2 * t * bends.a[axis] +
        3 * (1 - t) * t ** 2 * bends.b[axis] +
        t ** 3 * at[axis];
      if (letter !== "M") points.push({ x: weigh("x"), y: weigh("y") });
    }
  }
  return points;
}

const isIn = ({ x, y }: Point, place: Point): boolean => {
  const box = boxOf(place);
  return x > box.x && x < box.x + box.width && y > box.y && y < box.y + box.height;
};

/** Lines behind boxes, as "line behind box". */
function hidden(layout: NodeLayout): string[] {
  return [...layout.curves].flatMap(([key, { path }]) => {
    const points = pointsOf(path);
    return [...layout.places].flatMap(([node, place]) =>
      points.some((point) => isIn(point, place)) ? [`${key} behind ${node}`] : [],
    );
  });
}

test.each([2, 8, 25, 60])("with %i pods no line passes behind a box, and no box lies on another", (pods) => {
  for (let seed = 1; seed <= 5; seed += 1) {
    const { keys, flows } = mesh(pods, seed * 7919);
    const layout = layoutNodeMap(keys, flows);
    expect(layout.places.size).toBe(pods);
    expect(layout.curves.size).toBe(flows.length);
    expect(hidden(layout)).toEqual([]);
    const places = [...layout.places.values()];
    const near = places.flatMap((a, i) =>
      places.slice(i + 1).filter((b) => {
        const [one, other] = [boxOf(a), boxOf(b)];
        return Math.abs(a.x - b.x) < one.width && Math.abs(a.y - b.y) < other.height + 8;
      }),
    );
    expect(near).toEqual([]);
    for (const { x, y } of places) {
      expect(x).toBeLessThan(layout.width);
      expect(y).toBeLessThan(layout.height);
    }
  }
});

test("callers stand left of what they call, and both ways between two pods are told apart", () => {
  const layout = layoutNodeMap(["a", "b", "c"], [flow("a", "b"), flow("b", "c"), flow("c", "b")]);
  expect(layout.places.get("a")!.x).toBeLessThan(layout.places.get("b")!.x);
  expect(layout.places.get("b")!.x).toBeLessThan(layout.places.get("c")!.x);
  expect(layout.curves.get("b>c")!.label).not.toEqual(layout.curves.get("c>b")!.label);
  expect(layout.curves.get("b>c")!.path).not.toBe(layout.curves.get("c>b")!.path);
});

test("a long way goes around what is between", () => {
  const layout = layoutNodeMap(["a", "b", "c"], [flow("a", "b"), flow("b", "c"), flow("a", "c")]);
  expect(hidden(layout)).toEqual([]);
});

test("the order in which pods and flows come changes nothing", () => {
  const { keys, flows } = mesh(20, 5);
  const once = layoutNodeMap(keys, flows);
  expect(layoutNodeMap(keys.toReversed(), flows.toReversed())).toEqual(once);
});

test("pods without a flow stand in rows below, also when there is no flow at all", () => {
  const some = layoutNodeMap(["a", "b", "x", "y"], [flow("a", "b")]);
  expect(some.places.get("x")!.y).toBeGreaterThan(some.places.get("a")!.y);
  expect(some.places.get("x")!.y).toBe(some.places.get("y")!.y);
  const none = layoutNodeMap(
    Array.from({ length: 12 }, (_, i) => `p${i}`),
    [],
  );
  expect(none.places.size).toBe(12);
  expect(none.curves.size).toBe(0);
  for (const { y } of none.places.values()) expect(y).toBeLessThan(none.height);
});
