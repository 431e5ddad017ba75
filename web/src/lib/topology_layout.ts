// Where the nodes of the map stand. Places are numbered slots; a node keeps its slot as long as it is
// there, so that nothing jumps when numbers change. Everything is a pure function of the nodes and of the
// layout before.

import type { Role, Topology, TopologyNode } from "./topology";

export const MAP_WIDTH = 1240;
export const MAP_HEIGHT = 830;
export const CENTER = { x: 620, y: 370 } as const;
export const HEXAGON_RADIUS = 250;

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** Where a node stands. */
export interface Place extends Point {
  readonly area: Area;
  readonly slot: number;
}

export type Area = "center" | "ring" | "rim" | "left" | "right" | "bottom" | "unknown" | "port";

export interface Layout {
  readonly places: ReadonlyMap<string, Place>;
  /** Nodes without a place of their own, by the area that has no room for them. */
  readonly hidden: ReadonlyMap<Area, readonly string[]>;
}

/** Slots of each area; what is more collapses. */
export const ROOM: Readonly<Record<Area, number>> = {
  center: 1,
  ring: 6,
  rim: 12,
  left: 12,
  right: 12,
  bottom: 4,
  unknown: 1,
  port: 0,
};

const AREAS: Readonly<Record<Role, Area>> = {
  sidecar: "center",
  center: "center",
  app: "ring",
  helper: "rim",
  caller: "left",
  dependency: "right",
  control: "bottom",
  unknown: "unknown",
};

const ROW_PX = 50;
const RING_PX = 136;
const RIM_PX = 197;
/** Apps stand above the sidecar first: the sides are for what comes in and goes out, and below is the way out. */
const RING_ANGLES = [270, 220, 320, 150, 30, 90];
const RIM_ANGLES = [135, 45, 245, 295, 222, 318, 113, 67, 158, 22, 202, 338];

const at = (radius: number, degrees: number): Point => ({
  x: Math.round(CENTER.x + radius * Math.cos((degrees * Math.PI) / 180)),
  y: Math.round(CENTER.y + radius * Math.sin((degrees * Math.PI) / 180)),
});

/** 0, 1, -1, 2, -2, …: from the middle outwards. */
const outwards = (slot: number): number => (slot % 2 === 1 ? (slot + 1) / 2 : -slot / 2);

/** The point of a slot. */
export function slotPoint(area: Area, slot: number): Point {
  switch (area) {
    case "center":
      return CENTER;
    case "ring":
      return at(RING_PX, RING_ANGLES[slot] ?? 90);
    case "rim":
      return at(RIM_PX, RIM_ANGLES[slot] ?? 0);
    case "left":
    case "right": {
      const row = outwards(slot);
      // An arc around the pod: rows in the middle stand farther out.
      const bend = 26 * (1 - Math.min(1, Math.abs(row) / 6) ** 2);
      const away = CENTER.x - 122 + bend;
      return { x: Math.round(CENTER.x + (area === "left" ? -away : away)), y: CENTER.y + row * ROW_PX };
    }
    case "bottom":
      return { x: CENTER.x + outwards(slot) * 196, y: 770 };
    case "unknown":
      return { x: 122, y: 785 };
    case "port":
      return CENTER;
  }
}

/** The node that gets the better place: more bytes, then the smaller key. */
function byTraffic(a: TopologyNode, b: TopologyNode): number {
  return b.bytes - a.bytes || (a.key < b.key ? -1 : a.key > b.key ? 1 : 0);
}

/** `before`: the layout of the same pod a moment ago. */
export function layoutOf(topology: Topology, before: Layout | null): Layout {
  const byArea = new Map<Area, TopologyNode[]>();
  for (const node of topology.nodes) {
    const area = AREAS[node.role];
    byArea.set(area, [...(byArea.get(area) ?? []), node]);
  }
  const places = new Map<string, Place>();
  const hidden = new Map<Area, readonly string[]>();
  const fill = (area: Area, nodes: readonly TopologyNode[]): TopologyNode[] => {
    const taken = new Set<number>();
    const put = (node: TopologyNode, slot: number): void => {
      taken.add(slot);
      places.set(node.key, { ...slotPoint(area, slot), area, slot });
    };
    const waiting: TopologyNode[] = [];
    for (const node of [...nodes].sort(byTraffic)) {
      const known = before?.places.get(node.key);
      if (known?.area === area && !taken.has(known.slot)) put(node, known.slot);
      else waiting.push(node);
    }
    const rest: TopologyNode[] = [];
    for (const node of waiting) {
      let slot = 0;
      while (taken.has(slot)) slot += 1;
      if (slot < ROOM[area]) put(node, slot);
      else rest.push(node);
    }
    return rest;
  };
  fill("center", byArea.get("center") ?? []);
  // Apps that the ring has no room for stand at the rim with the helpers.
  const outer = fill("ring", byArea.get("ring") ?? []);
  const areas: readonly [Area, readonly TopologyNode[]][] = [
    ["rim", [...(byArea.get("rim") ?? []), ...outer]],
    ["left", byArea.get("left") ?? []],
    ["right", byArea.get("right") ?? []],
    ["bottom", byArea.get("bottom") ?? []],
    ["unknown", byArea.get("unknown") ?? []],
  ];
  for (const [area, nodes] of areas) {
    const rest = fill(area, nodes);
    if (rest.length > 0)
      hidden.set(
        area,
        rest.map(({ key }) => key),
      );
  }
  return { places, hidden };
}

/** Corners of the pod: a hexagon that is flat at the top. */
export function hexagonCorners(): Point[] {
  return [0, 60, 120, 180, 240, 300].map((degrees) => at(HEXAGON_RADIUS, degrees));
}

/** Half of the size of a node's shape; a circle has the same in both. */
export function nodeSize(area: Area): { readonly x: number; readonly y: number; readonly round: boolean } {
  switch (area) {
    case "center":
      return { x: 36, y: 36, round: true };
    case "ring":
      return { x: 33, y: 33, round: true };
    case "rim":
      return { x: 12, y: 12, round: true };
    case "port":
      return { x: 24, y: 9, round: false };
    default:
      return { x: 88, y: 19, round: false };
  }
}

/** The part of the map that is used, down to `least`: it changes with slots that are taken, never with numbers. */
export function extentOf(layout: Layout, least = 0): { readonly y: number; readonly height: number } {
  const half = Math.round((HEXAGON_RADIUS * Math.sqrt(3)) / 2);
  const ys = [...layout.places.values()].map(({ y }) => y);
  const more = [...layout.hidden.keys()].some((area) => area !== "rim");
  const top = Math.min(CENTER.y - half - 26, ...ys.map((y) => y - 58));
  const bottom = Math.max(
    CENTER.y + half + 26,
    least,
    ...ys.map((y) => y + 34),
    more ? (layout.hidden.has("bottom") ? MAP_HEIGHT : 736) : 0,
  );
  return { y: top, height: Math.min(MAP_HEIGHT, bottom) - top };
}

export interface Curve {
  /** `d` of the path. */
  readonly path: string;
  /** Corners of the arrow head. */
  readonly head: string;
  readonly middle: Point;
  /** Where the text of the line may stand: `middle` first. */
  readonly along: readonly Point[];
  /** Where the port stands: near the callee. Null where lines meet at a port. */
  readonly port: Point | null;
}

/** The point on the border of a node towards `to`. */
function border(place: Place, to: Point, gap: number): Point {
  const size = nodeSize(place.area);
  // Lines leave what stands outside at the side towards the pod, and never run behind their neighbours.
  if (place.area === "left" || place.area === "unknown") return { x: place.x + size.x + gap, y: place.y };
  if (place.area === "right") return { x: place.x - size.x - gap, y: place.y };
  if (place.area === "bottom") return { x: place.x, y: place.y - size.y - gap };
  const [dx, dy] = [to.x - place.x, to.y - place.y];
  const length = Math.hypot(dx, dy) || 1;
  const reach = size.round
    ? size.x
    : Math.min(size.x / Math.abs(dx / length || 1e-9), size.y / Math.abs(dy / length || 1e-9));
  const far = reach + gap;
  return { x: place.x + (dx / length) * far, y: place.y + (dy / length) * far };
}

/** Shares of a curve where its text may stand, the best first. */
const TEXT_PLACES = [0.42, 0.5, 0.34, 0.58, 0.26, 0.66];

/** A coordinate in a path. */
export const one = (value: number): string => String(Math.round(value * 10) / 10);

/**
 * A curve from client to server. `lane` sets links between the same two nodes apart: 0 is nearly straight;
 * every direction bends to its own right, so that both directions are seen.
 */
export function curveOf(client: Place, server: Place, lane: number): Curve {
  const same = client.x === server.x && client.y === server.y;
  if (same) return loop(client, lane);
  const [dx, dy] = [server.x - client.x, server.y - client.y];
  const length = Math.hypot(dx, dy);
  const inner =
    client.area === "ring" || client.area === "center"
      ? server.area === "ring" || server.area === "center"
      : false;
  const bend = (inner ? 58 : Math.min(18, length * 0.12)) + lane * 34;
  const control = {
    x: (client.x + server.x) / 2 - (dy / length) * bend,
    y: (client.y + server.y) / 2 + (dx / length) * bend,
  };
  const from = border(client, control, 2);
  const to = border(server, control, 3);
  const on = (t: number): Point => ({
    x: (1 - t) ** 2 * from.x + 2 * (1 - t) * t * control.x + t ** 2 * to.x,
    y: (1 - t) ** 2 * from.y + 2 * (1 - t) * t * control.y + t ** 2 * to.y,
  });
  return {
    path: `M${one(from.x)} ${one(from.y)}Q${one(control.x)} ${one(control.y)} ${one(to.x)} ${one(to.y)}`,
    head: headOf(control, to),
    // Not in the middle: there it would meet the one of the other direction.
    middle: on(0.42),
    along: TEXT_PLACES.map(on),
    port: on(length < 180 ? 0.78 : 0.86),
  };
}

/** A port of a node to which several lines go: they meet there. */
export interface AccessPoint extends Point {
  readonly key: string;
  readonly port: number;
  /** From the port to the node. */
  readonly path: string;
  readonly head: string;
}

/** Lines to one port of one node that come from the same side meet when they are many. */
const MEET = 3;

export interface Drawn {
  readonly curves: ReadonlyMap<string, Curve>;
  readonly ports: readonly AccessPoint[];
}

interface Joined {
  readonly key: string;
  readonly client: string;
  readonly server: string;
  readonly port: number | null;
}

/** The curves of all links whose ends have places. Links between the same two nodes get lanes. */
export function drawLinks(links: readonly Joined[], layout: Layout): Drawn {
  const lanes = new Map<string, number>();
  const curves = new Map<string, Curve>();
  const meeting = new Map<string, { link: Joined; from: Place; to: Place }[]>();
  for (const link of links) {
    const from = layout.places.get(link.client);
    const to = layout.places.get(link.server);
    if (from === undefined || to === undefined) continue;
    const key = `${link.server}:${link.port ?? ""}:${from.area}`;
    meeting.set(key, [...(meeting.get(key) ?? []), { link, from, to }]);
  }
  const ports: AccessPoint[] = [];
  for (const [key, group] of meeting) {
    const { to, link } = group[0]!;
    if (group.length < MEET || link.port === null || nodeSize(group[0]!.from.area).round) {
      for (const { link: each, from } of group) {
        const pair = `${each.client}>${each.server}`;
        const lane = lanes.get(pair) ?? 0;
        lanes.set(pair, lane + 1);
        curves.set(each.key, curveOf(from, to, lane));
      }
      continue;
    }
    const before = ports.filter(({ key: other }) => other.startsWith(`${link.server}:`)).length;
    const mean = {
      x: group.reduce((sum, { from }) => sum + from.x, 0) / group.length,
      y: group.reduce((sum, { from }) => sum + from.y, 0) / group.length + before * 90,
    };
    const point = border(to, mean, 46);
    const tip = border(to, mean, 3);
    const port: Place = { ...point, area: "port", slot: 0 };
    ports.push({
      key,
      port: link.port,
      x: point.x,
      y: point.y,
      path: `M${one(point.x)} ${one(point.y)}L${one(tip.x)} ${one(tip.y)}`,
      head: headOf(point, tip),
    });
    for (const { link: each, from } of group) curves.set(each.key, { ...curveOf(from, port, 0), port: null });
  }
  return { curves, ports };
}

/** A process that talks to itself. */
function loop(place: Place, lane: number): Curve {
  const { x: size } = nodeSize(place.area);
  const wide = size + 20 + lane * 16;
  const from = { x: place.x + size * 0.7, y: place.y - size * 0.7 };
  const to = { x: place.x + size * 0.7, y: place.y + size * 0.7 };
  const far = { x: place.x + wide + 20, y: place.y };
  return {
    path: `M${one(from.x)} ${one(from.y)}C${one(far.x)} ${one(from.y - 14)} ${one(far.x)} ${one(to.y + 14)} ${one(to.x)} ${one(to.y)}`,
    head: headOf({ x: to.x + 10, y: to.y + 6 }, to),
    middle: { x: place.x + wide + 8, y: place.y },
    along: [{ x: place.x + wide + 8, y: place.y }],
    port: { x: place.x + wide, y: place.y + size },
  };
}

/** Corners of an arrow head that comes from `from`. */
export function headOf(from: Point, tip: Point): string {
  const [dx, dy] = [tip.x - from.x, tip.y - from.y];
  const length = Math.hypot(dx, dy) || 1;
  const [ux, uy] = [dx / length, dy / length];
  const base = { x: tip.x - ux * 11, y: tip.y - uy * 11 };
  const corners = [
    tip,
    { x: base.x - uy * 5.5, y: base.y + ux * 5.5 },
    { x: base.x + uy * 5.5, y: base.y - ux * 5.5 },
  ];
  return corners.map(({ x, y }) => `${one(x)},${one(y)}`).join(" ");
}

/** Width of a line: grows with the logarithm of the bytes. */
export function lineWidth(bytes: number): number {
  return Math.min(5, 0.9 + Math.log10(bytes + 1) * 0.36);
}

export type Arrow = "ArrowLeft" | "ArrowRight" | "ArrowUp" | "ArrowDown";

/** What an arrow key goes to: the nearest item in that direction; null at the end. */
export function nextInDirection(
  items: readonly (Point & { readonly key: string })[],
  from: string,
  arrow: Arrow,
): string | null {
  const start = items.find(({ key }) => key === from);
  if (start === undefined) return items[0]?.key ?? null;
  let best: string | null = null;
  let least = Number.POSITIVE_INFINITY;
  for (const item of items) {
    const [dx, dy] = [item.x - start.x, item.y - start.y];
    const [along, across] =
      arrow === "ArrowLeft"
        ? [-dx, dy]
        : arrow === "ArrowRight"
          ? [dx, dy]
          : arrow === "ArrowUp"
            ? [-dy, dx]
            : [dy, dx];
    if (along <= 0.5 || item.key === from) continue;
    const cost = along + 2.2 * Math.abs(across);
    if (cost < least) {
      least = cost;
      best = item.key;
    }
  }
  return best;
}
