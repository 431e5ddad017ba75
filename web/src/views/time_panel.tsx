// Samples over time in one of three forms: bars, fractions of seconds, or threads. Whatever is picked
// here is what the rest of the page shows.

import { useMemo, useState } from "preact/hooks";
import type { ProfileCut } from "../api/client";
import type { ProfileThread, Task } from "../api/types";
import { amount, count } from "../lib/format";
import {
  cellsOfRange,
  type HeatMap,
  heatMap,
  heatScale,
  ROWS,
  rangeOfCells,
  stepped,
  timeText,
} from "../lib/heat";
import type { StripRange } from "../lib/strip";
import { route } from "../state/route";
import { useTimeline } from "../state/timeline";
import { Caption, HeatLegend, rangeText, setRange } from "./heat_caption";
import { type Cell, HeatGrid } from "./heat_grid";
import { TimeChoice } from "./time_choice";
import { TimeStrip } from "./time_strip";
import { Tracks } from "./tracks";

const SUBSECOND_HEIGHT = 150;
const WIDEST_COLUMN = 24;

interface Props {
  readonly task: Task;
  readonly cut: ProfileCut;
  readonly running: boolean;
}

/** What is counted: samples, waits that end, or the time of a result that has no counts. */
function measure(task: Task): { value: "count" | "duration"; one: string; periodNs: number } {
  if (task.kind === "wall") return { value: "duration", one: "of all threads", periodNs: 1 };
  if (task.kind === "off_cpu") return { value: "count", one: "waits that ended", periodNs: 0 };
  return { value: "count", one: "samples", periodNs: 0 };
}

function usePicked(map: HeatMap): StripRange | null {
  const { from, to } = route.value;
  if (from === null && to === null) return null;
  const end = map.originMs + map.columns * map.scale.columnMs;
  return { from: from ?? map.originMs, to: to ?? end };
}

function cellSpan(columns: readonly [number, number]): (column: number) => readonly [number, number] | null {
  const [first, last] = columns;
  return (column) => {
    const from = Math.max(0, first - column * ROWS);
    const to = Math.min(ROWS, last + 1 - column * ROWS);
    return from < to ? [from, to] : null;
  };
}

/** Columns are seconds, rows their fractions. */
function SubSecond(props: Props) {
  const { one, periodNs, value } = measure(props.task);
  const { timeline, lengthMs } = useTimeline(
    props.task,
    props.cut,
    props.running,
    { by: undefined, value },
    (length) => heatScale(length).bucketMs,
  );
  const [text, setText] = useState<string | null>(null);
  const map = useMemo(() => {
    const scale =
      timeline === null
        ? heatScale(lengthMs)
        : { bucketMs: timeline.bucket_ms, columnMs: timeline.bucket_ms * ROWS };
    return heatMap(scale, timeline?.from_ms ?? 0, timeline?.counts ?? []);
  }, [timeline]);
  const range = usePicked(map);
  const picked = range === null ? null : cellsOfRange(map, range);
  const heat = { columns: map.columns, rows: ROWS, cells: map.cells, top: map.top };
  const index = (cell: Cell): number => cell.column * ROWS + cell.row;
  const toCell = (at: number): Cell => ({ column: Math.floor(at / ROWS), row: at % ROWS });
  const textOf = (cell: Cell): string => {
    const value = map.cells[index(cell)] ?? -1;
    const { from, to } = rangeOfCells(map, index(cell), index(cell));
    const what = value < 0 ? "not measured" : `${amount(value, periodNs)} ${one}`;
    return `${timeText(from)} to ${timeText(to)}: ${what}`;
  };
  const { columnMs, bucketMs } = map.scale;
  const scaleText = `column ${columnMs / 1000} s, cell ${bucketMs} ms${columnMs > 1000 ? " (coarser, as the task is long)" : ""}`;
  if (timeline !== null && map.columns === 0) return <p class="muted small">Nothing was measured yet.</p>;
  const steps: Readonly<Record<string, readonly [number, number]>> = {
    ArrowUp: [-1, 0],
    ArrowDown: [1, 0],
    ArrowLeft: [0, -1],
    ArrowRight: [0, 1],
  };
  return (
    <>
      <div class="heat-frame">
        <div class="heat-axis muted" aria-hidden="true">
          <span>0</span>
          <span>{columnMs / 2 < 1000 ? `${columnMs / 2} ms` : `${columnMs / 2000} s`}</span>
          <span>{columnMs / 1000} s</span>
        </div>
        <HeatGrid
          heat={heat}
          height={SUBSECOND_HEIGHT}
          maxWidth={Math.max(1, map.columns) * WIDEST_COLUMN}
          label={`Sub-second heat map, ${scaleText}. Arrow keys walk the cells, with Shift they mark, Enter picks what is marked, Escape shows everything`}
          picked={range === null ? null : picked === null ? () => null : cellSpan(picked)}
          pickedBy={(a, b) => cellSpan([Math.min(index(a), index(b)), Math.max(index(a), index(b))])}
          dimmed={() => false}
          textOf={textOf}
          summary={rangeText(range) || scaleText}
          step={(cell, key) => {
            const [cells, columns] = steps[key] ?? [0, 0];
            return toCell(stepped(map, index(cell), cells, columns));
          }}
          fromMs={map.originMs}
          toMs={map.originMs + map.columns * columnMs}
          onPick={(a, b) => setRange(rangeOfCells(map, index(a), index(b)))}
          onClear={() => setRange(null)}
          onText={setText}
        />
      </div>
      <Caption text={text ?? (range === null ? scaleText : rangeText(range))} picked={range}>
        <HeatLegend top={map.top} periodNs={periodNs} one={one} />
      </Caption>
    </>
  );
}

/** Bars, small enough for a toolbar. */
export function TimeBars({ task, running }: { task: Task; running: boolean }) {
  const { from, to } = route.value;
  return (
    <TimeStrip
      id={task.id}
      running={running}
      startedAtMs={(task.started_at_ns ?? task.created_at_ns) / 1e6}
      endedAtMs={task.ended_at_ns === null ? null : task.ended_at_ns / 1e6}
      from={from}
      to={to}
    />
  );
}

/** Fractions of seconds, or threads: they need room. */
export function TimePanel(
  props: Props & {
    /** Null before the first answer. */
    readonly threads: readonly ProfileThread[] | null;
    /** Whether it is known when samples were taken. */
    readonly timed: boolean;
  },
) {
  const { task, timed } = props;
  const { time } = route.value;
  const lost = task.losses.reduce((sum, loss) => sum + loss.count, 0);
  const notes = timed && lost > 0 && (
    <span class="muted small">{count(lost)} lost in the task: at what time is not known.</span>
  );
  return (
    <div class="time-panel">
      {time === "subsecond" ? (
        <>
          <div class="time-modes">
            <TimeChoice />
            {task.kind !== "on_cpu" && <span class="muted small">Waits are counted where they end.</span>}
            {notes}
          </div>
          <SubSecond {...props} />
        </>
      ) : (
        <Tracks {...props} notes={notes} />
      )}
    </div>
  );
}
