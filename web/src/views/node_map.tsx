// The drawing of the node's map: pods as boxes in layers, callers to the left of what they call, and the flows
// between them with their requests.

import { useMemo, useState } from "preact/hooks";
import { type EdgeSignal, labelText, markText } from "../lib/edge_signals";
import { count, cpu, plural, visible } from "../lib/format";
import type { Line } from "../lib/map_lines";
import { type MapFlow, type MapNode, type NodeMap, waysThrough } from "../lib/node_map";
import {
  boxOf,
  type FlowCurve,
  layoutNodeMap,
  NODE_HEIGHT,
  NODE_WIDTH,
  type NodeLayout,
} from "../lib/node_map_layout";
import { errorText, type FlowRequests, p95Text } from "../lib/node_map_requests";
import { below, errorShare, rate, requestsOf } from "../lib/overview";
import { type Arrow, lineWidth, nextInDirection, type Point } from "../lib/topology_layout";
import { placeTags } from "../lib/topology_tags";
import { patchRoute } from "../state/route";
import { cut } from "./topology_node";

/** A flow with its numbers. */
export interface FlowLine extends MapFlow, Line {
  /** Null where the requests of its edges are not known. */
  readonly requests: FlowRequests | null;
}

const LABEL_LETTERS = 28;
const ROW_PX = 15;
/** Text stays readable: what needs more room scrolls. */
const SMALLEST = 0.85;
const SMALLEST_CROWDED = 0.7;

/** "312 req/s · p95 < 12 ms", or what else is known of the pod. */
function nodeDetail({ kind, row, pod, addresses, title }: MapNode): string {
  if (kind === "outside")
    return addresses[0] === title ? "outside of this node" : visible(addresses[0] ?? "");
  const requests = row === null ? null : requestsOf(row).requests;
  if (requests !== null) {
    const p95 = requests.p95 === null ? "" : ` · p95 ${below(requests.p95)}`;
    return `${rate(requests.per_s)} req/s${p95}`;
  }
  if (row?.cpu.cores != null) return `CPU ${cpu(row.cpu.cores * 100)}`;
  return `${plural(pod?.processes ?? 0, "process", "processes")}`;
}

function hasErrors({ row }: MapNode): boolean {
  const requests = row === null ? null : requestsOf(row).requests;
  return requests !== null && (errorShare(requests) ?? 0) > 0;
}

interface FlowText {
  readonly first: string;
  readonly second: string;
  readonly isBad: boolean;
}

/** The two rows on a flow: what goes over it, and how that does. */
function flowText(line: FlowLine, signal: EdgeSignal, isMarked: boolean, seconds: number): FlowText {
  const mark = isMarked ? markText(signal, line.trouble) : "";
  const { requests } = line;
  if (requests === null) {
    const protocol = `${line.protocol}${line.tls ? " TLS" : ""}`;
    return {
      first: `${protocol} · ${labelText("bytes", line.recent, seconds)}`,
      second: mark === "" ? "" : `⚠ ${mark}`,
      isBad: mark !== "",
    };
  }
  const protocol = `${requests.protocols.slice(0, 2).join(", ")}${requests.tls || line.tls ? " TLS" : ""}`;
  const perSecond = requests.perSecond === null ? "–" : rate(requests.perSecond);
  const bad = requests.errors > 0 || mark !== "";
  return {
    first: `${protocol} · ${perSecond}/s`,
    second: `${bad ? "⚠ " : ""}${p95Text(requests)}${requests.errors > 0 ? ` · ${errorText(requests)}` : ""}`,
    isBad: bad,
  };
}

function flowLabel(line: FlowLine, { first, second }: FlowText, titles: ReadonlyMap<string, string>): string {
  const ports = line.ports.length === 0 ? "" : `port ${line.ports.slice(0, 4).join(", ")}`;
  const ends = `${titles.get(line.client) ?? ""} to ${titles.get(line.server) ?? ""}`;
  return [visible(ends), ports, first, second].filter((part) => part !== "").join(", ");
}

interface BoxProps {
  node: MapNode;
  at: Point;
  focused: boolean;
  picked: boolean;
  dim: boolean;
  onFocus: () => void;
  onOpen: () => void;
}

function NodeBox({ node, at, focused, picked, dim, onFocus, onOpen }: BoxProps) {
  const detail = nodeDetail(node);
  const bad = hasErrors(node) || (node.row?.troubles.length ?? 0) > 0;
  const [x, y] = [-NODE_WIDTH / 2, -NODE_HEIGHT / 2];
  const what =
    node.kind === "outside" ? "outside of this node" : node.pod?.hasSidecar ? "with a sidecar" : "";
  const label = [
    visible(node.title),
    what,
    detail,
    ...(node.row?.troubles.map((trouble) => visible(trouble.text)) ?? []),
  ];
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the shape in it is the button; this is for the pointer
    <g
      data-key={node.key}
      class={`map-node in-node-map kind-${node.kind}${node.pod?.hasSidecar ? " role-sidecar" : ""}${picked ? " picked" : ""}${dim ? " dim" : ""}`}
      transform={`translate(${at.x} ${at.y})`}
      onClick={() => patchRoute({ node: picked ? "" : node.key }, "replace")}
      onDblClick={onOpen}
    >
      <title>{[...new Set(label)].filter((part) => part !== "").join("\n")}</title>
      <rect
        role="button"
        tabIndex={focused ? 0 : -1}
        data-item={node.key}
        aria-label={[...new Set(label)].filter((part) => part !== "").join(", ")}
        aria-pressed={picked}
        onFocus={onFocus}
        class="shape"
        x={x}
        y={y}
        width={NODE_WIDTH}
        height={NODE_HEIGHT}
        rx="6"
      />
      <text aria-hidden="true" class="node-name" y="-4" text-anchor="middle">
        {cut(visible(node.title), 22)}
      </text>
      <text aria-hidden="true" class={bad ? "node-detail bad" : "node-detail"} y="14" text-anchor="middle">
        {cut(`${bad ? "⚠ " : ""}${detail}`, 30)}
      </text>
    </g>
  );
}

interface FlowProps {
  line: FlowLine;
  text: FlowText;
  curve: FlowCurve;
  label: string;
  focused: boolean;
  picked: boolean;
  dim: boolean;
  onFocus: () => void;
}

const flowClass = (props: Pick<FlowProps, "picked" | "dim" | "text">): string =>
  `${props.picked ? " picked" : ""}${props.text.isBad ? " marked" : ""}${props.dim ? " dim" : ""}`;

const pick = (key: string, picked: boolean): void => patchRoute({ node: picked ? "" : key }, "replace");

function FlowShape(props: FlowProps) {
  const { line, curve, label, focused, picked, onFocus } = props;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the path in it is the button; this is for the pointer
    <g data-key={line.key} class={`map-line${flowClass(props)}`} onClick={() => pick(line.key, picked)}>
      <title>{label}</title>
      <path
        role="button"
        tabIndex={focused ? 0 : -1}
        data-item={line.key}
        aria-label={label}
        aria-pressed={picked}
        class="reach"
        d={curve.path}
        onFocus={onFocus}
      />
      <path class="line" d={curve.path} stroke-width={lineWidth(line.counters.bytes ?? 0).toFixed(1)} />
      <polygon class="head" points={curve.head} />
    </g>
  );
}

const rowsOf = ({ first, second }: FlowText): string[] =>
  [first, second].filter((row) => row !== "").map((row) => cut(row, LABEL_LETTERS));

const tagSize = (rows: readonly string[]): { width: number; height: number } => ({
  width: Math.max(...rows.map((row) => row.length)) * 6.3 + 12,
  height: rows.length * ROW_PX + 4,
});

/** Where texts stand. Of a crowded map only those that are wanted, as far as there is room for them. */
function tagPlaces(
  flows: readonly FlowProps[],
  layout: NodeLayout,
  isWanted: (one: FlowProps) => boolean,
): ReadonlyMap<string, Point> {
  if (!layout.isCrowded) return new Map(flows.map(({ line, curve }) => [line.key, curve.label]));
  const wishes = flows.filter(isWanted).map(({ line, text, curve, picked }) => ({
    key: line.key,
    places: curve.along,
    ...tagSize(rowsOf(text)),
    forced: picked,
  }));
  const placed = placeTags(wishes, [...layout.places.values()].map(boxOf));
  return new Map([...placed].filter(([, { shown }]) => shown).map(([key, { at }]) => [key, at]));
}

/** Its text has a ground under it, so that lines do not run through the letters. */
function FlowTag(props: FlowProps & { at: Point }) {
  const { line, text, at, label, picked } = props;
  const rows = rowsOf(text);
  const { width, height } = tagSize(rows);
  return (
    <g
      data-key={line.key}
      class={`flow-text${flowClass(props)}`}
      aria-hidden="true"
      transform={`translate(${at.x} ${at.y})`}
      onClick={() => pick(line.key, picked)}
    >
      <title>{label}</title>
      <rect x={-width / 2} y={-height / 2} width={width} height={height} rx="6" />
      {rows.map((row, i) => (
        <text key={i} y={(i - (rows.length - 1) / 2) * ROW_PX + 4} text-anchor="middle">
          {row}
        </text>
      ))}
    </g>
  );
}

/** The places stay as long as the same boxes and flows are there: nothing jumps when numbers change. */
function useLayout(map: NodeMap): NodeLayout {
  const keys = [...map.nodes, ...map.flows].map(({ key }) => key).join("\n");
  return useMemo(
    () =>
      layoutNodeMap(
        map.nodes.map(({ key }) => key),
        map.flows,
      ),
    [keys],
  );
}

export interface NodeMapProps {
  map: NodeMap;
  lines: readonly FlowLine[];
  marked: ReadonlySet<string>;
  signal: EdgeSignal;
  seconds: number;
  picked: string;
  onOpen: (pod: string) => void;
}

const ARROWS: ReadonlySet<string> = new Set(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"]);

export function NodeMapPicture(props: NodeMapProps) {
  const { map, lines, marked, signal, seconds, picked, onOpen } = props;
  const [active, setActive] = useState("");
  const layout = useLayout(map);
  const titles = useMemo(() => new Map(map.nodes.map(({ key, title }) => [key, title])), [map]);
  const ways = useMemo(() => waysThrough(map, picked), [map, picked]);
  const items = [
    ...[...layout.places].map(([key, at]) => ({ key, ...at })),
    ...lines.flatMap(({ key }) => {
      const curve = layout.curves.get(key);
      return curve === undefined ? [] : [{ key, ...curve.label }];
    }),
  ];
  const current = items.some(({ key }) => key === active) ? active : (items[0]?.key ?? "");
  const isDim = (key: string): boolean => ways !== null && !ways.has(key);

  const onKeyDown = (event: KeyboardEvent): void => {
    const target = event.target instanceof Element ? event.target : null;
    const key = target?.getAttribute("data-item") ?? "";
    if ((event.key === "Enter" || event.key === " ") && key !== "") {
      if (
        event.key === "Enter" &&
        key === picked &&
        map.nodes.some((node) => node.key === key && node.pod !== null)
      )
        onOpen(key);
      else pick(key, key === picked);
    } else if (event.key === "Escape" && picked !== "") pick("", true);
    else if (ARROWS.has(event.key) && key !== "") {
      const next = nextInDirection(items, key, event.key as Arrow);
      if (next !== null)
        (event.currentTarget as Element)
          .querySelector<SVGElement>(`[data-item="${CSS.escape(next)}"]`)
          ?.focus();
    } else return;
    event.preventDefault();
  };

  const drawn = lines.flatMap((line) => {
    const curve = layout.curves.get(line.key);
    if (curve === undefined) return [];
    const text = flowText(line, signal, marked.has(line.key), seconds);
    const shared = {
      line,
      text,
      curve,
      label: flowLabel(line, text, titles),
      focused: line.key === current,
      picked: line.key === picked,
      dim: isDim(line.key),
      onFocus: () => setActive(line.key),
    };
    return [shared];
  });
  const tags = tagPlaces(
    drawn,
    layout,
    ({ line, text }) => text.isBad || line.key === active || ways?.has(line.key) === true,
  );

  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <div class="map-box node-map-box" role="region" aria-label="Map, may be scrolled" tabIndex={0}>
      <svg
        class="map node-map"
        style={{
          minWidth: `${layout.width * (layout.isCrowded ? SMALLEST_CROWDED : SMALLEST)}px`,
          maxWidth: `${layout.width}px`,
        }}
        viewBox={`0 0 ${layout.width} ${layout.height}`}
        role="group"
        aria-label={`Map of the node: ${count(map.nodes.length)} boxes, ${count(drawn.length)} flows. Arrow keys move.`}
        onKeyDown={onKeyDown}
      >
        {drawn.map((one) => (
          <FlowShape key={one.line.key} {...one} />
        ))}
        {map.nodes.map((node) => (
          <NodeBox
            key={node.key}
            node={node}
            at={layout.places.get(node.key)!}
            focused={node.key === current}
            picked={node.key === picked}
            dim={isDim(node.key)}
            onFocus={() => setActive(node.key)}
            onOpen={() => node.pod !== null && onOpen(node.key)}
          />
        ))}
        {drawn.map((one) => {
          const at = tags.get(one.line.key);
          return at !== undefined && <FlowTag key={one.line.key} {...one} at={at} />;
        })}
      </svg>
    </div>
  );
}
