// Stacks in the order of time, thread by thread. What is known of time is the bucket of a sample: the
// page draws nothing finer and says so. Dragging picks a time range, as on the maps above.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { api, type ProfileCut } from "../api/client";
import type { Sequence, Task } from "../api/types";
import { hitOrder, laneTops, OrderPainter } from "../canvas/order_painter";
import { ROW_HEIGHT } from "../canvas/painter";
import { DARK, LIGHT } from "../canvas/palette";
import { amount, count, visible } from "../lib/format";
import { timeText } from "../lib/heat";
import { type Box, besides, boxAt, type Lane, lane, sequenceBucketMs } from "../lib/sequence";
import { dark } from "../state/preferences";
import { useRefetched } from "../state/refetch";
import { patchRoute } from "../state/route";
import { KIND_TEXT } from "./function_table";
import { Empty, Loading } from "./states";
import { TimeTicks } from "./time_ticks";

const REFETCH_MS = 4_000;
const MAX_THREADS = 8;
const MAX_COLUMNS = 800;

interface Props {
  readonly task: Task;
  readonly cut: ProfileCut;
  readonly running: boolean;
}

interface Place {
  readonly lane: number;
  readonly box: Box;
}

function useSequence({ task, cut, running }: Props): Sequence | null {
  const load = (signal: AbortSignal) => {
    const started = (task.started_at_ns ?? task.created_at_ns) / 1e6;
    const whole = (task.ended_at_ns === null ? Date.now() : task.ended_at_ns / 1e6) - started;
    const length = (cut.to ?? whole) - (cut.from ?? 0);
    const rate = task.kind === "off_cpu" ? 0 : (task.effective_frequency_hz ?? task.frequency_hz ?? 0);
    return api.sequence(task.id, sequenceBucketMs(length, rate, MAX_COLUMNS), MAX_THREADS, cut, signal);
  };
  const keys = [task.id, JSON.stringify(cut), task.ended_at_ns];
  return useRefetched<Sequence | null>(null, load, running, REFETCH_MS, keys);
}

function boxTimes(sequence: Sequence, box: Box): string {
  const at = (bucket: number): string => timeText(sequence.from_ms + bucket * sequence.bucket_ms);
  return `${at(Math.floor(box.from))} to ${at(Math.ceil(box.to))}`;
}

function boxText(sequence: Sequence, titles: readonly string[], { lane: at, box }: Place): string {
  const label = sequence.labels[box.label];
  const periodNs = sequence.value === "duration" ? 1 : 0;
  const what = sequence.value === "duration" ? "" : box.amount === 1 ? " sample" : " samples";
  return `${visible(label?.name ?? "")}, ${amount(box.amount, periodNs)}${what}, ${boxTimes(sequence, box)}, ${KIND_TEXT[label?.kind ?? 0]}, ${titles[at] ?? ""}`;
}

function Notes({ sequence, waits }: { sequence: Sequence; waits: boolean }) {
  const { bucket_ms, other_threads, other_amount, stacks_per_bucket, value } = sequence;
  const hasOther = sequence.labels.some((label) => label.name === "(other)");
  return (
    <p class="muted order-note" data-order-note>
      One column is {bucket_ms} ms. Inside a column the order is not known: its stacks share the width by{" "}
      {value === "duration" ? "their time" : "their samples"}. The bars above tell how much each column has.
      {waits && " Waits stand in the column where they end, however long they were."}
      {other_threads > 0 &&
        ` ${count(other_threads)} smaller threads with ${amount(other_amount, value === "duration" ? 1 : 0)}${value === "duration" ? "" : " samples"} are not drawn: pick threads to see them.`}
      {hasOther && ` Of a column at most ${stacks_per_bucket} stacks are told apart.`}
    </p>
  );
}

export function TimeOrder(props: Props) {
  const sequence = useSequence(props);
  const lanes = useMemo<readonly Lane[]>(
    () => (sequence === null ? [] : sequence.threads.map((thread) => lane(sequence, thread))),
    [sequence],
  );
  if (sequence === null) return <Loading what="stacks in time order" />;
  if (lanes.length === 0)
    return (
      <Empty title="Nothing in the picked time and threads">
        <button
          type="button"
          onClick={() => patchRoute({ from: null, to: null, tids: [], except: false }, "replace")}
        >
          Show everything
        </button>
      </Empty>
    );
  return (
    <>
      <Notes sequence={sequence} waits={props.cut.waits !== null} />
      <Picture sequence={sequence} lanes={lanes} />
    </>
  );
}

function Picture({ sequence, lanes }: { sequence: Sequence; lanes: readonly Lane[] }) {
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const painter = useRef<OrderPainter | null>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  const [scroll, setScroll] = useState(0);
  const [selected, setSelected] = useState<Place | null>(null);
  const [hovered, setHovered] = useState<Place | null>(null);
  const [drag, setDrag] = useState<{ a: number; b: number } | null>(null);
  const theme = dark.value ? DARK : LIGHT;
  const tops = useMemo(() => laneTops(lanes), [lanes]);
  const { buckets, labels } = sequence;
  const total = lanes.reduce((sum, { thread }) => sum + thread.total, 0) + sequence.other_amount;
  const titles = lanes.map(
    ({ thread, common }) =>
      `${visible(thread.name)} ${thread.tid} · ${visible(thread.process)} · ${((thread.total / Math.max(1, total)) * 100).toFixed(1)} %${common > 0 ? ` · below ${common === 1 ? "the frame" : `${common} frames`} that all its stacks have` : ""}`,
  );

  useEffect(() => {
    setSelected(null);
    setHovered(null);
  }, [sequence]);
  useEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    const observer = new ResizeObserver(() =>
      setSize({ width: element.clientWidth, height: element.clientHeight }),
    );
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const context = canvas.current?.getContext("2d", { alpha: false }) ?? null;
    painter.current = context === null ? null : new OrderPainter(context, labels, theme);
  }, [labels, theme]);
  const marked = drag === null ? null : ([Math.min(drag.a, drag.b), Math.max(drag.a, drag.b) + 1] as const);
  useEffect(() => {
    const element = canvas.current;
    if (element === null || size.width === 0) return;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [Math.round(size.width * ratio), Math.round(size.height * ratio)];
    if (element.width !== width || element.height !== height) {
      element.width = width;
      element.height = height;
      element.style.setProperty("width", `${size.width}px`);
      element.style.setProperty("height", `${size.height}px`);
    }
    painter.current?.paint({
      ...size,
      lanes,
      titles,
      labels,
      buckets,
      ratio,
      scroll,
      theme,
      selected,
      marked,
    });
  });

  const hit = (event: PointerEvent) => {
    const rect = canvas.current?.getBoundingClientRect();
    if (rect === undefined) return null;
    return hitOrder(
      { lanes, buckets, width: size.width },
      event.clientX - rect.left,
      event.clientY - rect.top + scroll,
    );
  };
  const pick = (first: number, last: number): void => {
    const from = sequence.from_ms + first * sequence.bucket_ms;
    patchRoute({ from, to: sequence.from_ms + (last + 1) * sequence.bucket_ms });
  };
  const select = (place: Place | null): void => {
    setSelected(place);
    if (place === null || scroller.current === null) return;
    const top = tops[place.lane]! + 30 + place.box.depth * ROW_HEIGHT;
    if (top < scroll + 20) scroller.current.scrollTop = Math.max(0, top - 60);
    else if (top > scroll + size.height - 40) scroller.current.scrollTop = top - size.height + 80;
  };
  const walk = (key: string): Place | null => {
    if (selected === null) {
      const box = lanes[0]?.rows[0]?.[0];
      return box === undefined ? null : { lane: 0, box };
    }
    const at = lanes[selected.lane]!;
    const { box } = selected;
    if (key === "ArrowLeft" || key === "ArrowRight") {
      const next = besides(at, box, key === "ArrowLeft" ? -1 : 1);
      return next === null ? selected : { lane: selected.lane, box: next };
    }
    const middle = (box.from + box.to) / 2;
    if (key === "ArrowDown") {
      const inside = at.rows[box.depth + 1]?.find((other) => other.from >= box.from && other.to <= box.to);
      if (inside !== undefined) return { lane: selected.lane, box: inside };
      const next = lanes[selected.lane + 1]?.rows[0]?.[0];
      return next === undefined ? selected : { lane: selected.lane + 1, box: next };
    }
    const above = box.depth > 0 ? boxAt(at, box.depth - 1, middle) : null;
    if (above !== null) return { lane: selected.lane, box: above };
    const before = lanes[selected.lane - 1]?.rows[0]?.[0];
    return before === undefined ? selected : { lane: selected.lane - 1, box: before };
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key.startsWith("Arrow")) select(walk(event.key));
    else if (event.key === "Enter" && selected !== null)
      pick(Math.floor(selected.box.from), Math.ceil(selected.box.to) - 1);
    else if (event.key === "Escape" && selected !== null) setSelected(null);
    else if (event.key === "Backspace") patchRoute({ from: null, to: null });
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const finish = (event: PointerEvent): void => {
    if (drag === null) return;
    setDrag(null);
    if (drag.a !== drag.b) pick(Math.min(drag.a, drag.b), Math.max(drag.a, drag.b));
    else {
      const found = hit(event);
      select(found?.box == null ? null : { lane: found.lane, box: found.box });
    }
  };
  const shown = hovered ?? selected;
  return (
    <>
      <TimeTicks
        fromMs={sequence.from_ms}
        toMs={sequence.from_ms + buckets * sequence.bucket_ms}
        width={size.width}
      />
      <div
        ref={scroller}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: an application takes the keys itself
        tabIndex={0}
        class="order-scroll"
        role="application"
        aria-label="Stacks in time order. Left and right go through time, up and down through the stack and the threads, Enter picks the time of the frame, Backspace shows the whole time; the table has the same functions"
        aria-describedby="order-item"
        onScroll={(event) => setScroll(event.currentTarget.scrollTop)}
        onKeyDown={onKeyDown}
      >
        <canvas
          ref={canvas}
          class="order-canvas"
          aria-hidden="true"
          onPointerDown={(event) => {
            const found = hit(event);
            if (event.button !== 0 || found === null) return;
            event.currentTarget.setPointerCapture(event.pointerId);
            setDrag({ a: found.bucket, b: found.bucket });
          }}
          onPointerMove={(event) => {
            const found = hit(event);
            if (drag !== null && found !== null) setDrag({ a: drag.a, b: found.bucket });
            setHovered(found?.box == null ? null : { lane: found.lane, box: found.box });
          }}
          onPointerLeave={() => setHovered(null)}
          onPointerUp={finish}
          onPointerCancel={() => setDrag(null)}
        />
        <OrderSpace height={Math.max(0, tops[tops.length - 1]! - size.height)} />
      </div>
      <div class="frame-details" id="order-item" aria-live="polite" data-order-item>
        {shown === null ? (
          <span class="muted">
            Drag over a time to show only that; click a frame or use the arrow keys to read it.
          </span>
        ) : (
          <span class="mono">{boxText(sequence, titles, shown)}</span>
        )}
      </div>
    </>
  );
}

/** What makes the box as high as its content; the canvas stays in view. */
function OrderSpace({ height }: { height: number }) {
  return <div style={{ height: `${height}px` }} aria-hidden="true" />;
}
