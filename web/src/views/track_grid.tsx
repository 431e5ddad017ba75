// What processes and threads did over time, a row each; a range of time is picked for all of them.

import type { ComponentChildren } from "preact";
import { useCallback, useMemo, useRef, useState } from "preact/hooks";
import type { ProfileCut } from "../api/client";
import type { Activity, Task } from "../api/types";
import { DARK_HEAT, LIGHT_HEAT } from "../canvas/heat_painter";
import { drawTracks } from "../canvas/track_painter";
import { amount, count, visible } from "../lib/format";
import { OWN_MS, rowBucketMs, timeText } from "../lib/heat";
import type { StripRange } from "../lib/strip";
import { ACTIVITIES, type Track } from "../lib/threads";
import {
  activityText,
  hasParts,
  measureOf,
  partsText,
  type TrackParts,
  trackAmounts,
  trackParts,
} from "../lib/tracks";
import { dark } from "../state/preferences";
import { route } from "../state/route";
import { useTimeline } from "../state/timeline";
import { Caption, HeatLegend, rangeText, setRange } from "./heat_caption";
import { type Cell, HeatGrid } from "./heat_grid";

/** As the style sheet has it for the names. */
const ROW_HEIGHT = 20;
/** Columns of a wide and of a narrow window: each needs a pixel. */
const COLUMNS = 300;
const NARROW_COLUMNS = 100;
const NARROW_PX = 720;

interface Props {
  readonly task: Task;
  readonly cut: ProfileCut;
  readonly running: boolean;
  readonly rows: readonly Track[];
  /** Threads that are looked for; empty for all. */
  readonly tids: readonly number[];
  readonly isShown: (track: Track) => boolean;
  readonly toggle: (track: Track) => void;
  /** Whether it is known when samples were taken. */
  readonly timed: boolean;
  /** The names, to the left of the rows. */
  readonly children: ComponentChildren;
}

export function TrackGrid(props: Props) {
  if (!props.timed) return <div class="heat-frame heat-threads untimed">{props.children}</div>;
  return <TimedGrid {...props} />;
}

/** The colours of the state bar, as the style sheet has them. */
function activityColours(): (activity: string) => string {
  const known = new Map<string, string>();
  return (activity) => {
    const found = known.get(activity);
    if (found !== undefined) return found;
    const probe = document.createElement("span");
    probe.dataset.activity = activity;
    probe.style.setProperty("color", "var(--activity)");
    document.body.append(probe);
    const { color } = getComputedStyle(probe);
    probe.remove();
    known.set(activity, color);
    return color;
  };
}

function ActivityLegend({ tracks }: { tracks: readonly TrackParts[] }) {
  const kinds = new Set<Activity>(tracks.flatMap(({ parts }) => parts.map(({ activity }) => activity)));
  return (
    <span class="track-legend">
      {ACTIVITIES.filter((activity) => kinds.has(activity)).map((activity) => (
        <span key={activity} class="activity-key muted" data-activity={activity}>
          {activityText(activity)}
        </span>
      ))}
    </span>
  );
}

function scaleText(bucketMs: number, others: number): string {
  const left = `${count(others)} smaller ${others === 1 ? "thread is" : "threads are"} drawn when found by the filter`;
  return `cell ${bucketMs} ms${others > 0 ? `; ${left}` : ""}`;
}

function TimedGrid({ task, cut, running, rows, tids, isShown, toggle, children }: Props) {
  const { isTime, one } = measureOf(cut.waits);
  const periodNs = isTime ? 1 : 0;
  const { timeline } = useTimeline(
    task,
    { ...cut, tids, except: false },
    running,
    { by: cut.waits === null ? "thread" : "activity", value: isTime ? "duration" : "count" },
    (length) => rowBucketMs(length, window.innerWidth < NARROW_PX ? NARROW_COLUMNS : COLUMNS),
  );
  const [text, setText] = useState<string | null>(null);
  const frame = useRef<HTMLDivElement>(null);
  const keys = rows.map(({ key }) => key).join();
  const heat = useMemo(() => trackAmounts(rows, timeline), [timeline, keys]);
  const tracks = useMemo(
    () => (timeline !== null && hasParts(timeline) ? trackParts(rows, timeline) : null),
    [timeline, keys],
  );
  const isDark = dark.value;
  const paint = useCallback(
    (width: number, height: number) =>
      drawTracks(
        tracks ?? [],
        heat.columns,
        width,
        height,
        isDark ? DARK_HEAT : LIGHT_HEAT,
        activityColours(),
      ),
    [tracks, isDark],
  );
  const { from, to } = route.value;
  const bucketMs = timeline?.bucket_ms ?? OWN_MS;
  const origin = timeline?.from_ms ?? 0;
  const { columns } = heat;
  const end = origin + columns * bucketMs;
  const range: StripRange | null =
    from === null && to === null ? null : { from: from ?? origin, to: to ?? end };
  const span =
    (first: number, last: number) =>
    (column: number): readonly [number, number] | null =>
      column >= first && column <= last ? [0, rows.length] : null;
  const textOf = ({ column, row }: Cell): string => {
    const track = rows[row];
    if (track === undefined) return "";
    const start = origin + column * bucketMs;
    const value = heat.cells[column * heat.rows + row] ?? -1;
    const own = tracks?.[row];
    const what =
      value < 0
        ? "too small, not drawn"
        : own === undefined
          ? `${amount(value, periodNs)} ${one}`
          : partsText(own, column);
    return `${visible(track.name)} ${track.tid ?? track.pid}, ${timeText(start)} to ${timeText(start + bucketMs)}: ${what}`;
  };
  const clamp = (value: number, most: number): number => Math.max(0, Math.min(most - 1, value));
  const step = ({ column, row }: Cell, key: string): Cell => {
    const next = clamp(row + (key === "ArrowDown" ? 1 : key === "ArrowUp" ? -1 : 0), rows.length);
    // The cursor stays in sight.
    const box = frame.current;
    if (box !== null) {
      const top = next * ROW_HEIGHT;
      const lowest = top - box.clientHeight + 2 * ROW_HEIGHT;
      box.scrollTop = Math.max(lowest, Math.min(top, box.scrollTop));
    }
    return {
      column: clamp(column + (key === "ArrowRight" ? 1 : key === "ArrowLeft" ? -1 : 0), columns),
      row: next,
    };
  };
  const scale = scaleText(bucketMs, timeline?.other_threads ?? 0);
  return (
    <>
      <div class="heat-frame heat-threads" ref={frame}>
        {children}
        <HeatGrid
          heat={heat}
          draw={tracks === null ? undefined : paint}
          height={rows.length * ROW_HEIGHT}
          maxWidth={Number.MAX_SAFE_INTEGER}
          label={`Threads over time, ${scale}. Arrow keys walk the cells, with Shift they mark, Enter picks the marked time, Space the thread, Escape shows everything`}
          picked={
            range === null
              ? null
              : span(
                  Math.floor((range.from - origin) / bucketMs),
                  Math.ceil((range.to - origin) / bucketMs) - 1,
                )
          }
          pickedBy={(a, b) => span(Math.min(a.column, b.column), Math.max(a.column, b.column))}
          dimmed={(row) => rows[row] !== undefined && !isShown(rows[row])}
          textOf={textOf}
          summary={rangeText(range) || scale}
          step={step}
          fromMs={origin}
          toMs={end}
          onPick={(a, b) =>
            setRange({
              from: origin + Math.min(a.column, b.column) * bucketMs,
              to: origin + (Math.max(a.column, b.column) + 1) * bucketMs,
            })
          }
          onClear={() => setRange(null)}
          onToggle={({ row }) => rows[row] !== undefined && toggle(rows[row])}
          onText={setText}
        />
      </div>
      <Caption text={text ?? (range === null ? scale : rangeText(range))} picked={range}>
        {tracks === null ? (
          <HeatLegend top={heat.top} periodNs={periodNs} one={one} />
        ) : (
          <ActivityLegend tracks={tracks} />
        )}
      </Caption>
      {tracks !== null && (
        <p class="muted small track-note">
          Waits are drawn over the time that they took, to {OWN_MS} ms, once they have ended. Processes:
          without idle time, full height is the busiest cell.
        </p>
      )}
    </>
  );
}
