// Where pods and flows stand on the map of the node: in layers from callers to callees. Lines run between the layers,
// and through a layer only where a place is kept for them, so that none passes behind a box.

import { graphlib, layout } from "@dagrejs/dagre";
import { grouped } from "./grouped";
import { headOf, one, type Point } from "./topology_layout";
import { type Box, boxAround } from "./topology_tags";

export const NODE_WIDTH = 196;
export const NODE_HEIGHT = 48;
const LABEL_WIDTH = 176;
const LABEL_HEIGHT = 36;
const MARGIN = 20;
/** Between the arrow's tip and its box. */
const GAP = 3;
/** Ends of lines keep so far from the corners of a box. */
const CORNER = 8;
/** Boxes without a flow stand in rows of so many at least. */
const ROW = 5;
const ROW_GAP = 24;
/** Texts have places of their own up to so many flows. */
const MOST_LABELS = 24;

export interface FlowCurve {
  /** `d` of the path. */
  readonly path: string;
  /** Its corners, for tests and for what has to stay clear of it. */
  readonly points: readonly Point[];
  /** Corners of the arrow head. */
  readonly head: string;
  /** The middle of its text where a place is kept for it. */
  readonly label: Point;
  /** Where its text may stand else, the best first. */
  readonly along: readonly Point[];
}

export interface NodeLayout {
  readonly places: ReadonlyMap<string, Point>;
  readonly curves: ReadonlyMap<string, FlowCurve>;
  readonly width: number;
  readonly height: number;
  /** No places are kept for texts: they would take more room than the boxes. */
  readonly isCrowded: boolean;
}

interface Joined {
  readonly key: string;
  readonly client: string;
  readonly server: string;
}

/** The same for the same nodes and flows, in whatever order they come. */
export function layoutNodeMap(nodes: readonly string[], flows: readonly Joined[]): NodeLayout {
  const sorted = flows.toSorted((a, b) => (a.key < b.key ? -1 : 1));
  const joined = new Set(sorted.flatMap(({ client, server }) => [client, server]));
  const graph = new graphlib.Graph({ multigraph: true });
  const isCrowded = flows.length > MOST_LABELS;
  const spaces = isCrowded
    ? { nodesep: 18, edgesep: 12, ranksep: 80 }
    : { nodesep: 26, edgesep: 20, ranksep: 30 };
  graph.setGraph({ rankdir: "LR", ...spaces, marginx: MARGIN, marginy: MARGIN });
  for (const key of nodes.toSorted())
    if (joined.has(key)) graph.setNode(key, { width: NODE_WIDTH, height: NODE_HEIGHT });
  for (const { key, client, server } of sorted)
    graph.setEdge(
      client,
      server,
      isCrowded ? {} : { width: LABEL_WIDTH, height: LABEL_HEIGHT, labelpos: "c" },
      key,
    );
  if (joined.size > 0) layout(graph);
  const places = new Map<string, Point>();
  for (const key of graph.nodes()) {
    const { x, y } = graph.node(key) as Point;
    places.set(key, { x, y });
  }
  const size = graph.graph() as { width?: number; height?: number };
  const [width, height] = joined.size === 0 ? [0, MARGIN] : [size.width ?? 0, size.height ?? 0];
  const alone = nodes.toSorted().filter((key) => !joined.has(key));
  const across = Math.max(ROW, Math.floor((width - MARGIN) / (NODE_WIDTH + ROW_GAP)));
  alone.forEach((key, i) => {
    places.set(key, {
      x: MARGIN + NODE_WIDTH / 2 + (i % across) * (NODE_WIDTH + ROW_GAP),
      y: height + NODE_HEIGHT / 2 + Math.floor(i / across) * (NODE_HEIGHT + ROW_GAP),
    });
  });
  const rows = Math.ceil(alone.length / across);
  return {
    places,
    curves: curvesOf(sorted, graph, places),
    width: Math.max(width, ...[...places.values()].map(({ x }) => x + NODE_WIDTH / 2 + MARGIN)),
    height: height + (rows === 0 ? 0 : rows * (NODE_HEIGHT + ROW_GAP)),
    isCrowded,
  };
}

/** A line's end at a box. */
interface End {
  readonly flow: string;
  readonly node: string;
  readonly side: 1 | -1;
  /** The next point of the line. */
  readonly next: Point;
}

function curvesOf(
  flows: readonly Joined[],
  graph: graphlib.Graph,
  places: ReadonlyMap<string, Point>,
): Map<string, FlowCurve> {
  const layers = new Set([...places].filter(([key]) => graph.hasNode(key)).map(([, { x }]) => Math.round(x)));
  const inner = new Map<string, readonly Point[]>();
  const labels = new Map<string, Point | null>();
  const ends: End[] = [];
  for (const { key, client, server } of flows) {
    const edge = graph.edge(client, server, key) as { points: Point[]; x?: number; y?: number };
    // The first and the last are where the line would meet the boxes.
    const points = edge.points.slice(1, -1);
    inner.set(key, points);
    labels.set(key, edge.x === undefined || edge.y === undefined ? null : { x: edge.x, y: edge.y });
    for (const [node, next] of [
      [client, points[0] ?? places.get(server)!],
      [server, points.at(-1) ?? places.get(client)!],
    ] as const)
      ends.push({ flow: key, node, side: next.x > places.get(node)!.x ? 1 : -1, next });
  }
  const at = spread(ends, places);
  return new Map(
    flows.map(({ key, client, server }) => {
      const from = at.get(`${key} ${client}`)!;
      const to = at.get(`${key} ${server}`)!;
      const points = inner.get(key)!;
      const way = Math.sign(to.x - from.x) || 1;
      const corners = [
        from,
        ...points.flatMap(({ x, y }) =>
          layers.has(Math.round(x))
            ? [
                { x: x - (way * NODE_WIDTH) / 2, y },
                { x: x + (way * NODE_WIDTH) / 2, y },
              ]
            : [{ x, y }],
        ),
        to,
      ];
      const path = corners.slice(1).map((point, i) => bend(corners[i]!, point));
      const along = corners.slice(1).map((point, i) => middleOf(corners[i]!, point));
      return [
        key,
        {
          path: `M${one(from.x)} ${one(from.y)}${path.join("")}`,
          points: corners,
          head: headOf({ x: to.x - way * 20, y: to.y }, to),
          label: labels.get(key) ?? along[0]!,
          along,
        },
      ];
    }),
  );
}

const middleOf = (a: Point, b: Point): Point => ({ x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 });

/** Level at both ends: it stays between them. */
function bend(from: Point, to: Point): string {
  if (from.y === to.y) return `H${one(to.x)}`;
  const middle = one((from.x + to.x) / 2);
  return `C${middle} ${one(from.y)} ${middle} ${one(to.y)} ${one(to.x)} ${one(to.y)}`;
}

/** Ends at the same side of a box stand one below the other, in the order in which their lines come. */
function spread(ends: readonly End[], places: ReadonlyMap<string, Point>): Map<string, Point> {
  const sides = grouped(ends, ({ side, node }) => `${side} ${node}`);
  const at = new Map<string, Point>();
  for (const its of sides.values()) {
    its.sort((a, b) => a.next.y - b.next.y || (a.flow < b.flow ? -1 : 1));
    const room = NODE_HEIGHT - 2 * CORNER;
    its.forEach(({ flow, node, side }, i) => {
      const { x, y } = places.get(node)!;
      at.set(`${flow} ${node}`, {
        x: x + side * (NODE_WIDTH / 2 + GAP),
        y: y + ((i + 1) / (its.length + 1) - 0.5) * room,
      });
    });
  }
  return at;
}

export const boxOf = (place: Point): Box => boxAround(place, NODE_WIDTH, NODE_HEIGHT);
