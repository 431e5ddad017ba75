// The lines of the map, with protocol, port, and what the reader wants to see on them.

import { troubleText } from "../lib/edge_signals";
import { bytes, visible } from "../lib/format";
import type { Line } from "../lib/map_lines";
import { type AccessPoint, type Curve, lineWidth, type Point } from "../lib/topology_layout";
import { type Box, placeTags, type TagPlace, type TagWish } from "../lib/topology_tags";
import { patchRoute } from "../state/route";

export function lineLabel(line: Line): string {
  const trouble = troubleText(line.trouble);
  const parts = [
    `${visible(line.clientName)} to ${visible(line.serverName)}`,
    line.port === null ? line.protocol : `port ${line.port}, ${line.protocol}`,
    line.tls ? "TLS" : "",
    line.asked.length > 0 ? `original destination ${line.asked.slice(0, 3).join(", ")}` : "",
    line.counters.bytes === null ? "bytes not measured" : bytes(line.counters.bytes),
    trouble,
    line.edges.length > 1 ? `${line.edges.length} edges` : "",
  ];
  return parts.filter((part) => part !== "").join(", ");
}

interface LineProps {
  line: Line;
  curve: Curve;
  focused: boolean;
  picked: boolean;
  tags: LineTags;
  onFocus: () => void;
  onHover: (over: boolean) => void;
}

/** What stands on a line, and where. */
export interface LineTags {
  readonly protocol: string;
  /** Why it is one of the worst; empty for others. */
  readonly mark: string;
  readonly middle: TagPlace;
  /** Null where the line has no port of its own. */
  readonly port: TagPlace | null;
}

export const TAG_HIGH = 18;
const MARK_BELOW = 19;
export const tagWidth = (text: string): number => text.length * 6.5 + (text.startsWith("⚠") ? 20 : 12);

/** Text with a ground under it, so that lines do not run through the letters. Without room it shows with the line. */
function Tag(props: { at: Point; text: string; name: string; locked?: boolean; crowded?: boolean }) {
  const { at, text, name } = props;
  const width = tagWidth(text);
  return (
    <g
      class={props.crowded ? `${name} crowded` : name}
      aria-hidden="true"
      transform={`translate(${Math.round(at.x)} ${Math.round(at.y)})`}
    >
      <rect x={-width / 2} y={-TAG_HIGH / 2} width={width} height={TAG_HIGH} rx="9" />
      {props.locked && (
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

function Texts({ line, tags }: { line: Line; tags: LineTags }) {
  const { middle, port, mark } = tags;
  return (
    <>
      <Tag
        at={middle.at}
        text={tags.protocol}
        name="tag-protocol"
        locked={line.tls}
        crowded={!middle.shown}
      />
      {port !== null && <Tag at={port.at} text={`:${line.port}`} name="tag-port" crowded={!port.shown} />}
      {mark !== "" && (
        <Tag
          at={{ x: middle.at.x, y: middle.at.y + MARK_BELOW }}
          text={`⚠ ${mark}`}
          name="tag-mark"
          crowded={!middle.shown}
        />
      )}
    </>
  );
}

/** Protocol, and what the reader wants to see of the line. */
function protocolText(line: Line, text: string): string {
  return `${line.protocol}${line.tls ? " TLS" : ""}${text === "" ? "" : ` · ${text}`}`;
}

/** The texts of the line that the pointer is on; `text` as if it were picked. */
export function LineText({ line, tags, text }: { line: Line; tags: LineTags; text: string }) {
  const seen = (place: TagPlace): TagPlace => ({ ...place, shown: true });
  const all = {
    ...tags,
    protocol: protocolText(line, text),
    middle: seen(tags.middle),
    port: tags.port === null ? null : seen(tags.port),
  };
  return (
    <g class="map-pointed" aria-hidden="true">
      <Texts line={line} tags={all} />
    </g>
  );
}

export function LineShape({ line, curve, focused, picked, tags, onFocus, onHover }: LineProps) {
  const label = lineLabel(line);
  const { mark } = tags;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the path in it is the button; this is for the pointer
    <g
      data-key={line.key}
      class={`map-line${picked ? " picked" : ""}${mark === "" ? "" : " marked"}`}
      onClick={() => patchRoute({ node: picked ? "" : line.key }, "replace")}
      onPointerEnter={() => onHover(true)}
      onPointerLeave={() => onHover(false)}
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
    </g>
  );
}

/** The texts of a line: they lie over all lines. */
export function LineTexts({ line, tags, active, picked, onHover }: TextProps) {
  return (
    <g
      data-key={line.key}
      class={active ? "map-text active" : "map-text"}
      aria-hidden="true"
      onClick={() => patchRoute({ node: picked ? "" : line.key }, "replace")}
      onPointerEnter={() => onHover(true)}
      onPointerLeave={() => onHover(false)}
    >
      <title>{lineLabel(line)}</title>
      <Texts line={line} tags={tags} />
    </g>
  );
}

interface TextProps {
  line: Line;
  tags: LineTags;
  /** Its line was focused last. */
  active: boolean;
  picked: boolean;
  onHover: (over: boolean) => void;
}

/** A port where several lines meet. */
export function Port({ port }: { port: AccessPoint }) {
  return (
    <g class="map-port" aria-hidden="true">
      <path class="line" d={port.path} stroke-width="3" />
      <polygon class="head" points={port.head} />
      <Tag at={port} text={`:${port.port}`} name="tag-port" />
    </g>
  );
}

export interface TagOptions {
  readonly obstacles: readonly Box[];
  readonly textOf: (line: Line) => string;
  readonly markOf: (line: Line) => string;
  readonly isForced: (line: Line) => boolean;
}

/** Texts of all lines with their places: what is looked at first, then the worst, then in the order of names. */
export function tagsOf(
  lines: readonly Line[],
  curves: ReadonlyMap<string, Curve>,
  { obstacles, textOf, markOf, isForced }: TagOptions,
): ReadonlyMap<string, LineTags> {
  const drawn = lines.flatMap((line) => {
    const curve = curves.get(line.key);
    if (curve === undefined) return [];
    const text = textOf(line);
    const protocol = protocolText(line, text);
    return [{ line, curve, protocol, mark: markOf(line), forced: isForced(line) }];
  });
  const wishes = drawn.map(({ line, curve, protocol, mark, forced }): TagWish => {
    const both = mark === "" ? 0 : MARK_BELOW;
    const width = Math.max(tagWidth(protocol) + (line.tls ? 14 : 0), mark === "" ? 0 : tagWidth(`⚠ ${mark}`));
    const places = curve.along.map(({ x, y }) => ({ x, y: y + both / 2 }));
    return { key: line.key, places, width, height: TAG_HIGH + both, forced };
  });
  const marked = new Set(drawn.filter(({ mark }) => mark !== "").map(({ line }) => line.key));
  const ports = drawn.flatMap(({ line, curve, forced }): TagWish[] =>
    line.port === null || curve.port === null
      ? []
      : [
          {
            key: `port ${line.key}`,
            places: [curve.port],
            width: tagWidth(`:${line.port}`),
            height: TAG_HIGH,
            forced,
          },
        ],
  );
  const first = wishes.filter(({ key }) => marked.has(key));
  const rest = wishes.filter(({ key }) => !marked.has(key));
  const placed = placeTags([...first, ...ports, ...rest], obstacles);
  return new Map(
    drawn.map(({ line, protocol, mark }) => {
      const { at, shown } = placed.get(line.key)!;
      const middle = { shown, at: { x: at.x, y: at.y - (mark === "" ? 0 : MARK_BELOW / 2) } };
      return [line.key, { protocol, mark, middle, port: placed.get(`port ${line.key}`) ?? null }];
    }),
  );
}
