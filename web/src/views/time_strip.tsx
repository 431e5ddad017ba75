// Samples over time. Dragging (or the arrow keys) picks the range whose samples are shown.

import { useMemo, useRef, useState } from "preact/hooks";
import { api } from "../api/client";
import type { Timeline } from "../api/types";
import { brushed, condense, moved, resized, type StripRange } from "../lib/strip";
import { useRefetched } from "../state/refetch";
import { patchRoute } from "../state/route";
import { Icon } from "./icons";

const REFETCH_MS = 2_000;
const SLOW_REFETCH_MS = 10_000;
const MAX_BARS = 300;
/** Buckets that are asked for at most; longer tasks get longer buckets. */
const MAX_BUCKETS = 1200;
const FINEST_MS = 100;
const HEIGHT = 26;

function useTimeline(
  id: string,
  running: boolean,
  startedAtMs: number,
  endedAtMs: number | null,
  since: number | null,
): Timeline | null {
  const load = (signal: AbortSignal) => {
    const length = (endedAtMs ?? Date.now()) - startedAtMs - (since ?? 0);
    const bucketMs = FINEST_MS * Math.max(1, Math.ceil(length / FINEST_MS / MAX_BUCKETS));
    const cut =
      since === null ? {} : { cut: { from: since, to: null, tids: [], except: false, waits: null } };
    return api.timeline(id, { bucketMs, ...cut }, signal);
  };
  // A long task has long buckets: they need not be read so often.
  const everyMs = since === null ? REFETCH_MS : SLOW_REFETCH_MS;
  return useRefetched<Timeline | null>(null, load, running, everyMs, [id, startedAtMs, endedAtMs, since]);
}

function setRange(from: number | null, to: number | null): void {
  patchRoute({ from, to }, "replace");
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

/** The bars as one path in a box of `bars` × 1. */
function barPath(values: readonly number[], top: number): string {
  return values
    .map((value, i) => (value > 0 ? `M${i} 1h.85v-${Math.max(0.03, value / top).toFixed(3)}h-.85z` : ""))
    .join("");
}

interface Props {
  readonly id: string;
  readonly running: boolean;
  readonly startedAtMs: number;
  readonly endedAtMs: number | null;
  readonly from: number | null;
  readonly to: number | null;
  /** Where the strip begins, in milliseconds after the start; the caller says what time that is. */
  readonly since?: number | null;
}

export function TimeStrip(props: Props) {
  const since = props.since ?? null;
  const timeline = useTimeline(props.id, props.running, props.startedAtMs, props.endedAtMs, since);
  // Ranges below count from the first bucket; the address and the API from the start of the task.
  const origin = timeline?.from_ms ?? 0;
  const setShown = (range: StripRange | null): void => {
    setRange(range === null ? since : range.from + origin, range === null ? null : range.to + origin);
  };
  const box = useRef<HTMLDivElement>(null);
  const [drag, setDrag] = useState<{ a: number; b: number } | null>(null);
  const counts = timeline?.counts ?? [];
  const bucketMs = timeline?.bucket_ms ?? 100;
  const values = useMemo(() => condense(counts, MAX_BARS), [counts]);
  const top = Math.max(1e-9, ...values);
  const length = counts.length * bucketMs;

  const range: StripRange | null =
    drag !== null
      ? brushed(drag.a, drag.b, bucketMs, counts.length)
      : (props.from !== null && props.from !== since) || props.to !== null
        ? { from: (props.from ?? origin) - origin, to: (props.to ?? origin + length) - origin }
        : null;

  const positionOf = (event: PointerEvent): number => {
    const rect = box.current?.getBoundingClientRect();
    return rect === undefined || rect.width === 0 ? 0 : (event.clientX - rect.left) / rect.width;
  };
  const finish = (): void => {
    if (drag === null) return;
    const picked = brushed(drag.a, drag.b, bucketMs, counts.length);
    setDrag(null);
    setShown(picked);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (event.key === "Escape" && range !== null) setShown(null);
    else if (step !== 0 && counts.length > 0) {
      const base = range ?? { from: 0, to: Math.max(1, Math.round(counts.length / 10)) * bucketMs };
      const next = event.shiftKey
        ? resized(base, step, bucketMs, counts.length)
        : moved(base, step, bucketMs, counts.length);
      setShown(next);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };

  const share = (ms: number): number => (length === 0 ? 0 : Math.min(100, (ms / length) * 100));
  const text =
    range === null
      ? `all ${seconds(length)}`
      : `${seconds(range.from + origin)} to ${seconds(range.to + origin)}`;
  return (
    <div class="strip">
      <div
        ref={box}
        class="strip-box"
        role="slider"
        tabIndex={0}
        aria-label="Time range of the shown samples. Arrow keys move it, with Shift they change its length, Escape shows everything"
        aria-valuemin={0}
        aria-valuemax={length}
        aria-valuenow={range?.from ?? 0}
        aria-valuetext={text}
        title="Samples over time. Drag to pick a range"
        onPointerDown={(event) => {
          if (event.button !== 0) return;
          event.currentTarget.setPointerCapture(event.pointerId);
          const at = positionOf(event);
          setDrag({ a: at, b: at });
        }}
        onPointerMove={(event) => {
          if (drag !== null) setDrag({ a: drag.a, b: positionOf(event) });
        }}
        onPointerUp={finish}
        onPointerCancel={() => setDrag(null)}
        onKeyDown={onKeyDown}
      >
        <svg
          class="strip-bars"
          width="100%"
          height={HEIGHT}
          viewBox={`0 0 ${Math.max(1, values.length)} 1`}
          preserveAspectRatio="none"
          aria-hidden="true"
        >
          <path d={barPath(values, top)} />
        </svg>
        {range !== null && (
          <>
            <div class="strip-shade" style={{ left: "0", width: `${share(range.from)}%` }} />
            <div class="strip-shade" style={{ right: "0", width: `${100 - share(range.to)}%` }} />
            <div
              class="strip-range"
              style={{ left: `${share(range.from)}%`, width: `${share(range.to) - share(range.from)}%` }}
            />
          </>
        )}
      </div>
      <div class="strip-text">
        <span class="numeric">{text}</span>
        {range !== null && drag === null && (
          <button
            type="button"
            class="icon-button small"
            aria-label="Show the whole time"
            onClick={() => setShown(null)}
          >
            <Icon name="close" />
          </button>
        )}
      </div>
    </div>
  );
}
