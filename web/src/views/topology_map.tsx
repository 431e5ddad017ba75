// The drawing: hexagon, nodes and lines as SVG with the focus of the page.

import { useMemo, useState } from "preact/hooks";
import {
  type Counters,
  type EdgeLabel,
  type EdgeSignal,
  labelText,
  markText,
  troubleText,
} from "../lib/edge_signals";
import { bytes, count, shortId, visible } from "../lib/format";
import type { Topology, TopologyLink, TopologyNode } from "../lib/topology";
import {
  type AccessPoint,
  type Area,
  type Arrow,
  CENTER,
  type Curve,
  drawLinks,
  extentOf,
  hexagonCorners,
  type Layout,
  lineWidth,
  MAP_WIDTH,
  nextInDirection,
  nodeSize,
  type Place,
  type Point,
  slotPoint,
} from "../lib/topology_layout";
import { patchRoute } from "../state/route";

/** A link with its numbers. */
export interface Line extends TopologyLink {
  /** Since counting began. */
  readonly counters: Counters;
  /** In the window of the rates. */
  readonly recent: Counters;
  readonly protocol: string;
  readonly tls: boolean;
  /** Destinations that were asked for, where the connection was redirected. */
  readonly asked: readonly string[];
  readonly clientName: string;
  readonly serverName: string;
}

/** Labels stand on all lines while there are so few. */
const FEW_LINES = 12;

const ROLE_TEXT = {
  sidecar: "in the centre",
  app: "process of the pod",
  helper: "helper process",
  caller: "calls this pod",
  dependency: "called by this pod",
  control: "control plane, names or telemetry",
  unknown: "not resolved",
} as const;

const AREA_TEXT: Readonly<Record<Area, string>> = {
  center: "processes",
  ring: "processes",
  rim: "processes",
  left: "callers",
  right: "dependencies",
  bottom: "others",
  unknown: "unresolved ends",
  port: "ports",
};

function cut(text: string, most: number): string {
  const letters = [...text];
  return letters.length <= most ? text : `${letters.slice(0, most - 1).join("")}…`;
}

function nodeLabel(node: TopologyNode): string {
  const parts = [
    visible(node.name),
    node.pid === null ? "process not known" : `pid ${node.pid}`,
    node.why ?? ROLE_TEXT[node.role],
    node.purpose,
    `${node.edges} ${node.edges === 1 ? "edge" : "edges"}`,
    bytes(node.bytes),
  ];
  if (node.ports.length > 0) parts.push(`answers on port ${node.ports.join(", ")}`);
  return parts.filter((part) => part !== "").join(", ");
}

export function lineLabel(line: Line): string {
  const trouble = troubleText(line.counters);
  const parts = [
    `${visible(line.clientName)} to ${visible(line.serverName)}`,
    line.port === null ? line.protocol : `port ${line.port}, ${line.protocol}`,
    line.tls ? "TLS" : "",
    line.asked.length > 0 ? `asked for ${line.asked.slice(0, 3).join(", ")}` : "",
    line.counters.bytes === null ? "bytes not measured" : bytes(line.counters.bytes),
    trouble,
    line.edges.length > 1 ? `${line.edges.length} edges` : "",
  ];
  return parts.filter((part) => part !== "").join(", ");
}

function NodeShape({ node, place, focused, picked, dim, onFocus }: NodeProps) {
  const size = nodeSize(place.area);
  const name = visible(node.name);
  const button = {
    role: "button",
    tabIndex: focused ? 0 : -1,
    "data-item": node.key,
    "aria-label": nodeLabel(node),
    "aria-pressed": picked,
    onFocus,
  } as const;
  const detail =
    node.pid === null
      ? node.purpose !== ""
        ? node.purpose
        : node.addresses[0] === node.name
          ? ""
          : visible(node.addresses[0] ?? "")
      : `${node.pid}${node.container === null ? "" : ` · ${shortId(visible(node.container))}`}`;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the shape in it is the button; this is for the pointer
    <g
      data-key={node.key}
      class={`map-node role-${node.role}${picked ? " picked" : ""}${dim ? " dim" : ""}`}
      transform={`translate(${place.x} ${place.y})`}
      onClick={() => patchRoute({ node: picked ? "" : node.key }, "replace")}
    >
      <title>{nodeLabel(node)}</title>
      {size.round ? (
        <>
          <circle class="shape" r={size.x} {...button} />
          <text
            aria-hidden="true"
            class="node-name"
            y={place.area === "rim" ? size.y + 12 : -1}
            text-anchor="middle"
          >
            {cut(name, place.area === "center" ? 10 : place.area === "ring" ? 8 : 12)}
          </text>
          {place.area !== "rim" && (
            <text aria-hidden="true" class="node-detail" y="14" text-anchor="middle">
              {node.pid === null ? cut(detail, 9) : node.pid}
            </text>
          )}
        </>
      ) : (
        <>
          <rect
            class="shape"
            x={-size.x}
            y={-size.y}
            width={2 * size.x}
            height={2 * size.y}
            rx="6"
            {...button}
          />
          <text aria-hidden="true" class="node-name" y={detail === "" ? 4 : -2} text-anchor="middle">
            {cut(name, 24)}
          </text>
          {detail !== "" && (
            <text aria-hidden="true" class="node-detail" y="12" text-anchor="middle">
              {cut(detail, 28)}
            </text>
          )}
        </>
      )}
    </g>
  );
}

interface NodeProps {
  node: TopologyNode;
  place: Place;
  focused: boolean;
  picked: boolean;
  dim: boolean;
  onFocus: () => void;
}

interface LineProps {
  line: Line;
  curve: Curve;
  focused: boolean;
  picked: boolean;
  mark: string;
  /** Stands beside the protocol. */
  text: string;
  onFocus: () => void;
}

/** Text with a ground under it, so that lines do not run through the letters. */
function Tag({ at, text, name, locked }: { at: Point; text: string; name: string; locked?: boolean }) {
  const width = text.length * 6.5 + (text.startsWith("⚠") ? 20 : 12);
  return (
    <g class={name} aria-hidden="true" transform={`translate(${Math.round(at.x)} ${Math.round(at.y)})`}>
      <rect x={-width / 2} y="-9" width={width} height="18" rx="9" />
      {locked && (
        <path
          class="lock"
          transform={`translate(${-width / 2 - 14} -6)`}
          d="M2 5V3.500a3 3 0 0 1 6 0V5h1v7H1V5Zm1.500 0h3V3.500a1.500 1.500 0 0 0-3 0Z"
        />
      )}
      <text y="4" text-anchor="middle">
        {text}
      </text>
    </g>
  );
}

function LineShape({ line, curve, focused, picked, mark, text, onFocus }: LineProps) {
  const label = lineLabel(line);
  const protocol = `${line.protocol}${line.tls ? " TLS" : ""}${text === "" ? "" : ` · ${text}`}`;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the path in it is the button; this is for the pointer
    <g
      data-key={line.key}
      class={`map-line${picked ? " picked" : ""}${mark === "" ? "" : " marked"}`}
      onClick={() => patchRoute({ node: picked ? "" : line.key }, "replace")}
    >
      <title>{label}</title>
      <path
        role="button"
        tabIndex={focused ? 0 : -1}
        data-item={line.key}
        aria-label={mark === "" ? label : `${label}, one of the worst`}
        aria-pressed={picked}
        class="reach"
        d={curve.path}
        onFocus={onFocus}
      />
      <path class="line" d={curve.path} stroke-width={lineWidth(line.counters.bytes ?? 0).toFixed(1)} />
      {curve.port !== null && <polygon class="head" points={curve.head} />}
      <Tag at={curve.middle} text={protocol} name="tag-protocol" locked={line.tls} />
      {line.port !== null && curve.port !== null && (
        <Tag at={curve.port} text={`:${line.port}`} name="tag-port" />
      )}
      {mark !== "" && (
        <Tag at={{ x: curve.middle.x, y: curve.middle.y + 19 }} text={`⚠ ${mark}`} name="tag-mark" />
      )}
    </g>
  );
}

/** A port where several lines meet. */
function Port({ port }: { port: AccessPoint }) {
  return (
    <g class="map-port" aria-hidden="true">
      <path class="line" d={port.path} stroke-width="3" />
      <polygon class="head" points={port.head} />
      <Tag at={port} text={`:${port.port}`} name="tag-port" />
    </g>
  );
}

const MORE_POINTS: Partial<Record<Area, Point>> = {
  rim: { x: CENTER.x, y: CENTER.y + 196 },
  bottom: { x: CENTER.x, y: 810 },
};

/** "+ n more" where an area is full; opens the table. */
function More({ area, keys }: { area: Area; keys: readonly string[] }) {
  const point = MORE_POINTS[area] ?? { x: slotPoint(area, 11).x, y: 716 };
  const text = `+ ${count(keys.length)} more ${AREA_TEXT[area]}`;
  const open = (): void => patchRoute({ net: "table" });
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the box in it is the button; this is for the pointer
    <g class="map-more" data-more={area} transform={`translate(${point.x} ${point.y})`} onClick={open}>
      <rect
        role="button"
        tabIndex={0}
        aria-label={`${text}: open the table`}
        x="-88"
        y="-12"
        width="176"
        height="24"
        rx="6"
      />
      <text aria-hidden="true" y="4" text-anchor="middle">
        {text}
      </text>
    </g>
  );
}

const ARROWS: ReadonlySet<string> = new Set(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"]);

export interface MapProps {
  topology: Topology;
  layout: Layout;
  lines: readonly Line[];
  marked: ReadonlySet<string>;
  signal: EdgeSignal;
  labels: readonly EdgeLabel[];
  seconds: number;
  picked: string;
  hiddenLines: number;
}

export function TopologyMap(props: MapProps) {
  const { topology, layout, lines, marked, signal, labels, seconds, picked } = props;
  const [active, setActive] = useState("");
  const { curves, ports } = useMemo(() => drawLinks(lines, layout), [lines, layout]);
  const extent = extentOf(layout);
  const nodes = topology.nodes.filter(({ key }) => layout.places.has(key));
  const items = [
    ...nodes.map(({ key }) => ({ key, ...layout.places.get(key)! })),
    ...[...curves].map(([key, { middle }]) => ({ key, ...middle })),
  ];
  const center = nodes.find(({ role }) => role === "sidecar")?.key;
  const current = items.some(({ key }) => key === active) ? active : (center ?? items[0]?.key ?? "");
  const touched = new Set(lines.flatMap(({ client, server }) => [client, server]));
  const few = curves.size <= FEW_LINES;

  const onKeyDown = (event: KeyboardEvent): void => {
    const target = event.target instanceof Element ? event.target : null;
    const more = target?.closest("[data-more]");
    const key = target?.getAttribute("data-item") ?? "";
    if (event.key === "Enter" || event.key === " ") {
      if (more) patchRoute({ net: "table" });
      else if (key !== "") patchRoute({ node: key === picked ? "" : key }, "replace");
      else return;
    } else if (event.key === "Escape" && picked !== "") patchRoute({ node: "" }, "replace");
    else if (ARROWS.has(event.key) && key !== "") {
      const next = nextInDirection(items, key, event.key as Arrow);
      if (next !== null) focusItem(event.currentTarget as Element, next);
    } else return;
    event.preventDefault();
  };

  const labelled = (line: Line): boolean =>
    few ||
    line.key === picked ||
    line.key === active ||
    marked.has(line.key) ||
    line.client === picked ||
    line.server === picked;
  // What is picked is drawn last, over everything else.
  const ordered = [...lines].sort((a, b) => rank(a) - rank(b));
  function rank(line: Line): number {
    return line.key === picked || line.key === active ? 2 : marked.has(line.key) ? 1 : 0;
  }

  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <div class="map-box" role="region" aria-label="Map, may be scrolled" tabIndex={0}>
      <svg
        class="map"
        viewBox={`0 ${extent.y} ${MAP_WIDTH} ${extent.height}`}
        role="group"
        aria-label={`Map of ${visible(topology.pod?.name ?? "")}: ${nodes.length} nodes, ${curves.size} lines. Arrow keys move.`}
        onKeyDown={onKeyDown}
      >
        <polygon
          class="hexagon"
          points={hexagonCorners()
            .map(({ x, y }) => `${x},${y}`)
            .join(" ")}
        />
        <text class="pod-name" x={CENTER.x} y={CENTER.y - 226} text-anchor="middle">
          {cut(visible(topology.pod?.name ?? ""), 44)}
        </text>
        <text class="pod-why" x={CENTER.x} y={CENTER.y + 233} text-anchor="middle">
          {cut(topology.pod?.why ?? "", 60)}
        </text>
        <text class="side-name" x="122" y={extent.y + 16} text-anchor="middle">
          callers
        </text>
        <text class="side-name" x={MAP_WIDTH - 122} y={extent.y + 16} text-anchor="middle">
          dependencies
        </text>
        {ordered.map((line) => {
          const curve = curves.get(line.key);
          return (
            curve !== undefined && (
              <LineShape
                key={line.key}
                line={line}
                curve={curve}
                focused={line.key === current}
                picked={line.key === picked}
                mark={marked.has(line.key) ? markText(signal, line.counters) : ""}
                text={
                  labelled(line)
                    ? labels.map((label) => labelText(label, line.recent, seconds)).join(" · ")
                    : ""
                }
                onFocus={() => setActive(line.key)}
              />
            )
          );
        })}
        {ports.map((port) => (
          <Port key={port.key} port={port} />
        ))}
        {nodes.map((node) => (
          <NodeShape
            key={node.key}
            node={node}
            place={layout.places.get(node.key)!}
            focused={node.key === current}
            picked={node.key === picked}
            dim={!touched.has(node.key)}
            onFocus={() => setActive(node.key)}
          />
        ))}
        {[...layout.hidden].map(([area, keys]) => (
          <More key={area} area={area} keys={keys} />
        ))}
      </svg>
      {props.hiddenLines > 0 && (
        <p class="muted small map-note">
          {lines.length === 0
            ? "No line is bad by this measure."
            : `${count(props.hiddenLines)} lines without trouble are hidden.`}
        </p>
      )}
    </div>
  );
}

function focusItem(map: Element, key: string): void {
  for (const item of map.querySelectorAll<SVGElement>("[data-item]"))
    if (item.getAttribute("data-item") === key) item.focus();
}
