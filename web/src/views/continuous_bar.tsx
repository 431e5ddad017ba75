// A profile without end: its last minutes, hours or day by the clock, of one pod or process, now against before.

import { useEffect, useState } from "preact/hooks";
import type { ProfileThread, Task } from "../api/types";
import { earlier, HOUR_MS, SPANS, sinceOf, type TimeRange } from "../lib/continuous";
import { clockTime, moment, visible } from "../lib/format";
import type { Pod } from "../lib/pods";
import { compareBy } from "../lib/process_list";
import { pods, processes } from "../state/live";
import { patchRoute, route } from "../state/route";
import { ClockTicks } from "./clock_ticks";
import { TimeStrip } from "./time_strip";

/** Processes that are offered, busiest first. */
const MOST_PROCESSES = 40;

/** Containers of a pod; the samples of processes that have ended are found by them too. */
const containersOf = ({ members }: Pod): readonly string[] => [
  ...new Set(members.flatMap(({ process: { container } }) => container?.id ?? [])),
];

/** Processes that have samples and do not run any more, most samples first. */
function endedOf(threads: readonly ProfileThread[], running: ReadonlySet<number>) {
  const ended = new Map<number, string>();
  for (const { pid, process } of threads) if (!running.has(pid) && !ended.has(pid)) ended.set(pid, process);
  return [...ended].slice(0, MOST_PROCESSES).map(([pid, name]) => ({ pid, name }));
}

interface PodOption {
  title: string;
  /** Its containers. */
  ids: readonly string[];
}

function PodOptions({ label, pods }: { label: string; pods: readonly PodOption[] }) {
  return (
    pods.length > 0 && (
      <optgroup label={label}>
        {pods.map(({ title, ids }) => (
          <option key={ids.join()} value={ids.join(",")}>
            {title}
          </option>
        ))}
      </optgroup>
    )
  );
}

/** Pods that run, also with containers of theirs that have ended, and pods that have samples and do not run any more. */
function podOptions(
  pods: readonly Pod[],
  threads: readonly ProfileThread[],
): { running: readonly PodOption[]; ended: readonly PodOption[] } {
  const seen = new Map<string, Set<string>>();
  for (const { pod, container } of threads)
    if (pod !== null && container !== null) seen.set(pod, (seen.get(pod) ?? new Set()).add(container));
  const running = pods
    .filter(({ kind }) => kind === "pod")
    .map((pod) => ({
      title: visible(pod.title),
      ids: [...new Set([...containersOf(pod), ...(seen.get(pod.title) ?? [])])],
    }))
    .filter(({ ids }) => ids.length > 0);
  const run = new Set(running.flatMap(({ ids }) => ids));
  const ended = [...seen]
    .filter(([, ids]) => [...ids].every((id) => !run.has(id)))
    .map(([pod, ids]) => ({ title: visible(pod), ids: [...ids] }))
    .sort((a, b) => a.title.localeCompare(b.title));
  return { running, ended };
}

/** Whose samples are shown. `threads`: those of everything that is shown. */
function Filter({ threads }: { threads: readonly ProfileThread[] | null }) {
  const { containers, pid } = route.value;
  // With a filter only what it leaves is known: those of before stay on offer.
  const [all, setAll] = useState<readonly ProfileThread[]>([]);
  useEffect(() => {
    if (threads !== null && containers.length === 0 && pid === null) setAll(threads);
  }, [threads, containers.length, pid]);
  const ended = endedOf(all, new Set([...(processes.value?.values() ?? [])].map((each) => each.pid)));
  const offered = podOptions(pods.value ?? [], all);
  const busiest = [...(processes.value?.values() ?? [])]
    .filter(({ kernel_thread }) => !kernel_thread)
    .sort(compareBy("-cpu"))
    .slice(0, MOST_PROCESSES);
  // A link may have been made before a container of the pod was replaced.
  const pod = [...offered.running, ...offered.ended].find(({ ids }) =>
    containers.some((id) => ids.includes(id)),
  );
  const value = pid !== null ? `pid ${pid}` : (pod?.ids ?? containers).join(",");
  const known =
    value === "" ||
    pod !== undefined ||
    busiest.some((process) => process.pid === pid) ||
    ended.some((process) => process.pid === pid);
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
        <PodOptions label="Pods" pods={offered.running} />
        <PodOptions label="Pods that have ended" pods={offered.ended} />
        <optgroup label="Processes, busiest first">
          {busiest.map(({ id, pid: own, comm }) => (
            <option key={id} value={`pid ${own}`}>
              {visible(comm)} {own}
            </option>
          ))}
        </optgroup>
        {ended.length > 0 && (
          <optgroup label="Processes that have ended">
            {ended.map(({ pid: own, name }) => (
              <option key={own} value={`pid ${own}`}>
                {visible(name)} {own}
              </option>
            ))}
          </optgroup>
        )}
      </select>
    </label>
  );
}

export function ContinuousBar({
  task,
  running,
  threads,
}: {
  task: Task;
  running: boolean;
  threads: readonly ProfileThread[] | null;
}) {
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
        <Filter threads={threads} />
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
      <ClockTicks fromMs={startedMs + (since ?? 0)} toMs={endMs} />
    </section>
  );
}
