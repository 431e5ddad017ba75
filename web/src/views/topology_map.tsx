// The drawing: hexagon, nodes and lines as SVG with the focus of the page.

import { useMemo, useState } from "preact/hooks";
import { type EdgeLabel, type EdgeSignal, labelText, markText } from "../lib/edge_signals";
import { count, visible } from "../lib/format";
import type { Line } from "../lib/map_lines";
import type { Topology } from "../lib/topology";
import type { PodUse } from "../lib/topology_cpu";
import type { Folded } from "../lib/topology_fold";
import {
  type Area,
  type Arrow,
  CENTER,
  drawLinks,
  extentOf,
  hexagonCorners,
  type Layout,
  MAP_WIDTH,
  nextInDirection,
  type Point,
  slotPoint,
} from "../lib/topology_layout";
import { boxAround } from "../lib/topology_tags";
import { patchRoute } from "../state/route";
import { LineShape, LineText, LineTexts, Port, TAG_HIGH, tagsOf, tagWidth } from "./topology_line";
import { cut, NodeShape, nodeBox } from "./topology_node";

/** Labels stand on all lines while there are so few. */
const FEW_LINES = 12;
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

const LOCAL_POINT: Point = { x: CENTER.x, y: CENTER.y + 256 };

/** Lines that a crowded map leaves out; a click shows them. */
function LocalEdges({ folded }: { folded: Folded }) {
  const processes = folded.nodes === 0 ? "" : `, ${count(folded.nodes)} processes`;
  const text = `+ ${count(folded.links)} local Unix edges${processes}`;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the box in it is the button; this is for the pointer
    <g
      class="map-more"
      data-more="local"
      transform={`translate(${LOCAL_POINT.x} ${LOCAL_POINT.y})`}
      onClick={() => patchRoute({ local: true }, "replace")}
    >
      <rect
        role="button"
        tabIndex={0}
        aria-label={`${text}: show them`}
        x="-130"
        y="-12"
        width="260"
        height="24"
        rx="6"
      />
      <text aria-hidden="true" y="4" text-anchor="middle">
        {text}
      </text>
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
  use: PodUse;
  folded: Folded;
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
  const [hovered, setHovered] = useState("");
  const { curves, ports } = useMemo(() => drawLinks(lines, layout), [lines, layout]);
  const extent = extentOf(layout, props.folded.links > 0 ? LOCAL_POINT.y + 14 : 0);
  const nodes = topology.nodes.filter(({ key }) => layout.places.has(key));
  const items = [
    ...nodes.map(({ key }) => ({ key, ...layout.places.get(key)! })),
    ...[...curves].map(([key, { middle }]) => ({ key, ...middle })),
  ];
  const center = nodes.find(({ role }) => role === "sidecar" || role === "center")?.key;
  const current = items.some(({ key }) => key === active) ? active : (center ?? items[0]?.key ?? "");
  const touched = new Set(lines.flatMap(({ client, server }) => [client, server]));
  const few = curves.size <= FEW_LINES;

  const onKeyDown = (event: KeyboardEvent): void => {
    const target = event.target instanceof Element ? event.target : null;
    const more = target?.closest("[data-more]");
    const key = target?.getAttribute("data-item") ?? "";
    if (event.key === "Enter" || event.key === " ") {
      if (more?.getAttribute("data-more") === "local") patchRoute({ local: true }, "replace");
      else if (more) patchRoute({ net: "table" });
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
  const textOf = (line: Line): string =>
    labels.map((label) => labelText(label, line.recent, seconds)).join(" · ");
  const tags = tagsOf(lines, curves, {
    obstacles: [
      ...nodes.map(({ key }) => nodeBox(layout.places.get(key)!)),
      ...ports.map((port) => boxAround(port, tagWidth(`:${port.port}`), TAG_HIGH)),
    ],
    textOf: (line) => (labelled(line) ? textOf(line) : ""),
    markOf: (line) => (marked.has(line.key) ? markText(signal, line.trouble) : ""),
    isForced: (line) => line.key === picked || line.key === active,
  });
  // What is picked is drawn last, over everything else.
  const ordered = [...lines].sort((a, b) => rank(a) - rank(b));
  function rank(line: Line): number {
    return line.key === picked || line.key === active ? 2 : marked.has(line.key) ? 1 : 0;
  }

  // Drawn once more over everything, because there may be no room for it on the map.
  const pointed = lines.find(({ key }) => key === hovered && tags.has(key));

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
                tags={tags.get(line.key)!}
                onFocus={() => setActive(line.key)}
                onHover={(over) => setHovered(over ? line.key : "")}
              />
            )
          );
        })}
        {ports.map((port) => (
          <Port key={port.key} port={port} />
        ))}
        {ordered
          .filter(({ key }) => tags.has(key))
          .map((line) => (
            <LineTexts
              key={line.key}
              line={line}
              tags={tags.get(line.key)!}
              active={line.key === active}
              picked={line.key === picked}
              onHover={(over) => setHovered(over ? line.key : "")}
            />
          ))}
        {nodes.map((node) => (
          <NodeShape
            key={node.key}
            node={node}
            place={layout.places.get(node.key)!}
            cpu={props.use.shares.get(node.key) ?? null}
            focused={node.key === current}
            picked={node.key === picked}
            dim={!touched.has(node.key)}
            onFocus={() => setActive(node.key)}
          />
        ))}
        {pointed !== undefined && (
          <LineText line={pointed} tags={tags.get(pointed.key)!} text={textOf(pointed)} />
        )}
        {[...layout.hidden].map(([area, keys]) => (
          <More key={area} area={area} keys={keys} />
        ))}
        {props.folded.links > 0 && <LocalEdges folded={props.folded} />}
      </svg>
      {props.use.shares.size > 0 && (
        <p class="muted small map-note">
          {`The ring around a process is its share of the ${((props.use.total ?? 0) / 100).toFixed(2)} cores that the pod uses.`}
        </p>
      )}
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
