// Samples over time in one of three forms: bars, fractions of seconds, or threads. Whatever is picked
// here is what the rest of the page shows.

import { useEffect, useMemo, useState } from "preact/hooks";
import { api, type ProfileCut } from "../api/client";
import type { Task, Timeline } from "../api/types";
import { amount, count, visible } from "../lib/format";
import {
  cellsOfRange,
  type HeatMap,
  heatMap,
  heatScale,
  levelStarts,
  ROWS,
  rangeOfCells,
  rowBucketMs,
  stepped,
  timeText,
} from "../lib/heat";
import type { TimeView } from "../lib/query_state";
import type { StripRange } from "../lib/strip";
import { isPageLetter } from "../state/keys";
import { useRefetched } from "../state/refetch";
import { patchRoute, route } from "../state/route";
import { Choice } from "./choice";
import { TIME_CHOICES } from "./display_menu";
import { type Cell, HeatGrid } from "./heat_grid";
import { Icon } from "./icons";
import { TimeStrip } from "./time_strip";

const REFETCH_MS = 2_000;
const SUBSECOND_HEIGHT = 150;
const WIDEST_COLUMN = 24;
const THREAD_ROW = 18;
const MAX_ROW_BUCKETS = 600;
const MODES: readonly TimeView[] = TIME_CHOICES.map(([mode]) => mode);

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

function lengthOf(task: Task): number {
  const started = (task.started_at_ns ?? task.created_at_ns) / 1e6;
  return Math.max(1, (task.ended_at_ns === null ? Date.now() : task.ended_at_ns / 1e6) - started);
}

function useHeat(
  { task, cut, running }: Props,
  byThread: boolean,
  bucketMs: (lengthMs: number) => number,
): { timeline: Timeline | null; lengthMs: number } {
  // The map is of the whole time; threads are all listed where they are rows.
  const whole: ProfileCut = { ...cut, from: null, to: null, ...(byThread ? { tids: [] } : {}) };
  const load = async (signal: AbortSignal) => {
    const lengthMs = lengthOf(task);
    const query = { bucketMs: bucketMs(lengthMs), byThread, value: measure(task).value, cut: whole };
    return { timeline: await api.timeline(task.id, query, signal), lengthMs };
  };
  const keys = [task.id, byThread, task.ended_at_ns, JSON.stringify(whole)];
  return useRefetched<{ timeline: Timeline | null; lengthMs: number }>(
    { timeline: null, lengthMs: 0 },
    load,
    running,
    REFETCH_MS,
    keys,
  );
}

function setRange(range: StripRange | null): void {
  patchRoute({ from: range?.from ?? null, to: range?.to ?? null }, "replace");
}

function Caption(props: {
  text: string;
  top: number;
  periodNs: number;
  one: string;
  picked: StripRange | null;
}) {
  const starts = levelStarts(props.top);
  return (
    <div class="heat-caption">
      <span class="numeric heat-text" data-heat-text>
        {props.text}
      </span>
      {props.top > 0 && (
        <span
          class="heat-legend"
          role="img"
          aria-label={`Darker or brighter is more, up to ${amount(props.top, props.periodNs)} ${props.one}`}
        >
          <span class="muted">0</span>
          {starts.map((start, level) => (
            <span
              key={start}
              class={`heat-swatch heat-${level}`}
              title={`from ${amount(start, props.periodNs)}`}
            />
          ))}
          <span class="muted numeric">
            {amount(props.top, props.periodNs)} {props.one}
          </span>
        </span>
      )}
      {props.picked !== null && (
        <button type="button" class="quiet" onClick={() => setRange(null)}>
          <Icon name="close" /> Show the whole time
        </button>
      )}
    </div>
  );
}

function rangeText(range: StripRange | null): string {
  return range === null ? "" : `picked: ${timeText(range.from)} to ${timeText(range.to)}`;
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
  const { timeline, lengthMs } = useHeat(props, false, (length) => heatScale(length).bucketMs);
  const [text, setText] = useState<string | null>(null);
  const { one, periodNs } = measure(props.task);
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
      <Caption
        text={text ?? (range === null ? scaleText : rangeText(range))}
        top={map.top}
        periodNs={periodNs}
        one={one}
        picked={range}
      />
    </>
  );
}

/** Columns are time, rows threads. */
function Threads(props: Props) {
  const { timeline } = useHeat(props, true, (length) => rowBucketMs(length, MAX_ROW_BUCKETS));
  const [text, setText] = useState<string | null>(null);
  const { one, periodNs } = measure(props.task);
  const { from, to, tids, except } = route.value;
  const threads = timeline?.threads ?? [];
  const bucketMs = timeline?.bucket_ms ?? 20;
  const origin = timeline?.from_ms ?? 0;
  const columns = timeline?.counts.length ?? 0;
  const heat = useMemo(() => {
    const cells = new Float64Array(columns * threads.length);
    let top = 0;
    threads.forEach(({ counts }, row) => {
      counts.forEach((value, column) => {
        cells[column * threads.length + row] = value;
        if (value > top) top = value;
      });
    });
    return { columns, rows: threads.length, cells, top };
  }, [timeline]);
  const range: StripRange | null =
    from === null && to === null ? null : { from: from ?? origin, to: to ?? origin + columns * bucketMs };
  const span =
    (first: number, last: number) =>
    (column: number): readonly [number, number] | null =>
      column >= first && column <= last ? [0, threads.length] : null;
  const shownRow = (row: number): boolean => {
    const listed = tids.includes(threads[row]?.tid ?? -1);
    return tids.length === 0 || listed !== except;
  };
  const toggle = (row: number): void => {
    const tid = threads[row]?.tid;
    if (tid === undefined) return;
    const next = tids.includes(tid) ? tids.filter((other) => other !== tid) : [...tids, tid];
    patchRoute({ tids: next, except: next.length > 0 && except }, "replace");
  };
  const textOf = ({ column, row }: Cell): string => {
    const thread = threads[row];
    const start = origin + column * bucketMs;
    const value = heat.cells[column * heat.rows + row] ?? 0;
    return `${visible(thread?.name ?? "")} ${thread?.tid ?? ""}, ${timeText(start)} to ${timeText(start + bucketMs)}: ${amount(value, periodNs)} ${one}`;
  };
  const clamp = (value: number, most: number): number => Math.max(0, Math.min(most - 1, value));
  const others = timeline?.other_threads ?? 0;
  const scaleText = `cell ${bucketMs} ms${others > 0 ? `; ${count(others)} smaller threads are not drawn` : ""}`;
  if (timeline !== null && threads.length === 0) return <p class="muted small">Nothing was measured yet.</p>;
  return (
    <>
      <div class="heat-frame heat-threads">
        <ul class="heat-names">
          {threads.map((thread, row) => (
            <li key={`${thread.pid} ${thread.tid}`}>
              <button
                type="button"
                class="heat-name mono"
                aria-pressed={tids.length > 0 && shownRow(row)}
                title={`${visible(thread.process)} / ${visible(thread.name)} ${thread.tid}: ${amount(thread.total, periodNs)} ${one}. Click to show only picked threads`}
                onClick={() => toggle(row)}
              >
                {visible(thread.name) || thread.tid}
              </button>
            </li>
          ))}
        </ul>
        <HeatGrid
          heat={heat}
          height={threads.length * THREAD_ROW}
          maxWidth={Number.MAX_SAFE_INTEGER}
          label={`Threads over time, ${scaleText}. Arrow keys walk the cells, with Shift they mark, Enter picks the marked time, Space the thread, Escape shows everything`}
          picked={
            range === null
              ? null
              : span(
                  Math.floor((range.from - origin) / bucketMs),
                  Math.ceil((range.to - origin) / bucketMs) - 1,
                )
          }
          pickedBy={(a, b) => span(Math.min(a.column, b.column), Math.max(a.column, b.column))}
          dimmed={(row) => !shownRow(row)}
          textOf={textOf}
          summary={rangeText(range) || scaleText}
          step={({ column, row }, key) => ({
            column: clamp(column + (key === "ArrowRight" ? 1 : key === "ArrowLeft" ? -1 : 0), columns),
            row: clamp(row + (key === "ArrowDown" ? 1 : key === "ArrowUp" ? -1 : 0), threads.length),
          })}
          fromMs={origin}
          toMs={origin + columns * bucketMs}
          onPick={(a, b) =>
            setRange({
              from: origin + Math.min(a.column, b.column) * bucketMs,
              to: origin + (Math.max(a.column, b.column) + 1) * bucketMs,
            })
          }
          onClear={() => setRange(null)}
          onToggle={({ row }) => toggle(row)}
          onText={setText}
        />
      </div>
      <Caption
        text={text ?? (range === null ? scaleText : rangeText(range))}
        top={heat.top}
        periodNs={periodNs}
        one={one}
        picked={range}
      />
    </>
  );
}

/** `h` goes to the next form, on the whole task page. */
export function useModeKey(mode: TimeView): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key !== "h" || !isPageLetter(event)) return;
      event.preventDefault();
      patchRoute({ time: MODES[(MODES.indexOf(mode) + 1) % MODES.length]! }, "replace");
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [mode]);
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
export function TimePanel(props: Props) {
  const { task } = props;
  const { time } = route.value;
  const lost = task.losses.reduce((sum, loss) => sum + loss.count, 0);
  return (
    <div class="time-panel">
      <div class="time-modes">
        <Choice
          label="Samples over time"
          value={time}
          choices={TIME_CHOICES}
          set={(value) => patchRoute({ time: value }, "replace")}
        />
        {task.kind !== "on_cpu" && <span class="muted small">Waits are counted where they end.</span>}
        {lost > 0 && (
          <span class="muted small">{count(lost)} lost in the task: at what time is not known.</span>
        )}
      </div>
      {time === "subsecond" ? <SubSecond {...props} /> : <Threads {...props} />}
    </div>
  );
}
