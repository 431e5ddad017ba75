// A profile without end: its last minutes, hours or day by the clock, of one pod or process, now against before.

import { useState } from "preact/hooks";
import type { Task } from "../api/types";
import { clockTicks, earlier, HOUR_MS, SPANS, sinceOf, type TimeRange } from "../lib/continuous";
import { clockTime, moment, visible } from "../lib/format";
import type { Pod } from "../lib/pods";
import { compareBy } from "../lib/process_list";
import { pods, processes } from "../state/live";
import { patchRoute, route } from "../state/route";
import { TimeStrip } from "./time_strip";

/** Processes that are offered, busiest first. */
const MOST_PROCESSES = 40;
const MOST_TICKS = 10;
/** A tick further right has no place for its text. */
const LAST_TICK = 0.97;

/** Containers of a pod; the samples of processes that have ended are found by them too. */
const containersOf = ({ members }: Pod): readonly string[] => [
  ...new Set(members.flatMap(({ process: { container } }) => container?.id ?? [])),
];

/** Whose samples are shown. */
function Filter() {
  const { containers, pid } = route.value;
  const named = (pods.value ?? [])
    .filter(({ kind }) => kind === "pod")
    .map((pod) => ({ title: visible(pod.title), ids: containersOf(pod) }))
    .filter(({ ids }) => ids.length > 0);
  const busiest = [...(processes.value?.values() ?? [])]
    .filter(({ kernel_thread }) => !kernel_thread)
    .sort(compareBy("-cpu"))
    .slice(0, MOST_PROCESSES);
  const value = pid !== null ? `pid ${pid}` : containers.length > 0 ? containers.join(",") : "";
  const known =
    value === "" ||
    named.some(({ ids }) => ids.join(",") === value) ||
    busiest.some((process) => process.pid === pid);
  const set = (next: string): void => {
    const process = /^pid (\d+)$/.exec(next);
    patchRoute({
      pid: process === null ? null : Number(process[1]),
      containers: process === null && next !== "" ? next.split(",") : [],
      tids: [],
      zoom: "",
    });
  };
  return (
    <label>
      <span class="muted">Of</span>{" "}
      <select
        value={value}
        onChange={(event) => set(event.currentTarget.value)}
        aria-label="Whose samples are shown"
      >
        <option value="">everything</option>
        {!known && <option value={value}>{pid === null ? "one pod" : `process ${pid}`}</option>}
        {named.length > 0 && (
          <optgroup label="Pods">
            {named.map(({ title, ids }) => (
              <option key={ids.join()} value={ids.join(",")}>
                {title}
              </option>
            ))}
          </optgroup>
        )}
        <optgroup label="Processes, busiest first">
          {busiest.map(({ id, pid: own, comm }) => (
            <option key={id} value={`pid ${own}`}>
              {visible(comm)} {own}
            </option>
          ))}
        </optgroup>
      </select>
    </label>
  );
}

function Ticks({ fromMs, toMs }: { fromMs: number; toMs: number }) {
  return (
    <div class="time-ticks muted" aria-hidden="true">
      {clockTicks(fromMs, toMs, MOST_TICKS)
        .filter(({ at }) => at <= LAST_TICK)
        .map(({ at, text }) => (
          <span key={at} style={{ left: `${at * 100}%` }}>
            {text}
          </span>
        ))}
    </div>
  );
}

export function ContinuousBar({ task, running }: { task: Task; running: boolean }) {
  const { from, to, since, base, baseFrom } = route.value;
  const [refused, setRefused] = useState("");
  const startedMs = (task.started_at_ns ?? task.created_at_ns) / 1e6;
  const endMs = task.ended_at_ns === null ? Date.now() : task.ended_at_ns / 1e6;
  const lengthMs = Math.max(1, endMs - startedMs);
  const shown: TimeRange = { from: from ?? since ?? 0, to: to ?? lengthMs };
  const show = (ms: number | null): void => {
    setRefused("");
    const next = ms === null ? null : sinceOf(ms, lengthMs);
    patchRoute({ since: next, from: next, to: null, base: "", baseFrom: null, baseTo: null, zoom: "" });
  };
  const compare = (): void => {
    const before = earlier(shown, HOUR_MS);
    setRefused(before === null ? "The profile is not that old: nothing was recorded an hour before." : "");
    if (before === null) return;
    patchRoute({
      base: task.id,
      baseFrom: Math.round(before.from),
      baseTo: Math.round(before.to),
      from: Math.round(shown.from),
      to: Math.round(shown.to),
      zoom: "",
      tab: "graph",
    });
  };
  const compared = base === task.id && baseFrom !== null;
  return (
    <section class="continuous" aria-label="Time and target of the continuous profile" data-continuous>
      <div class="continuous-row">
        <fieldset class="switch">
          <legend class="hidden">How far back</legend>
          {SPANS.map(({ title, ms }) => (
            <button
              key={title}
              type="button"
              aria-pressed={since !== null && since === from && Math.abs(lengthMs - since - ms) < ms / 10}
              onClick={() => show(ms)}
            >
              {title}
            </button>
          ))}
          <button type="button" aria-pressed={since === null && from === null} onClick={() => show(null)}>
            All
          </button>
        </fieldset>
        <span class="numeric" data-clock>
          {moment((startedMs + shown.from) * 1e6)} to{" "}
          {to === null && running ? "now" : clockTime(new Date(startedMs + shown.to), true)}
        </span>
        <Filter />
        {!compared && (
          <button type="button" onClick={compare} title="The same minutes of the hour before are the base">
            Compare with an hour before
          </button>
        )}
        {refused !== "" && (
          <span class="field-error" role="alert">
            {refused}
          </span>
        )}
      </div>
      <TimeStrip
        id={task.id}
        running={running}
        startedAtMs={startedMs}
        endedAtMs={task.ended_at_ns === null ? null : task.ended_at_ns / 1e6}
        from={from}
        to={to}
        since={since}
      />
      <Ticks fromMs={startedMs + (since ?? 0)} toMs={endMs} />
    </section>
  );
}
