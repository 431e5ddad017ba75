// From a request to the code of its threads: which profiles were recorded at that time, and what they may show.

import type { EdgeEnd, NamedContainers, RequestSample, Target, Task } from "../api/types";
import { endName } from "./edges";
import { plural } from "./format";
import type { PageState } from "./query_state";
import { covers } from "./requests";

/** A thread, or all threads of a process, and the time in which it had to do with a request. */
export interface CodeOf {
  readonly end: EdgeEnd;
  readonly pid: number;
  /** Null where it is not known. */
  readonly tid: number | null;
  readonly begin_ns: number;
  readonly duration_ns: number;
}

/** The thread that moved a request's first byte, and the process that answers behind it, if it is the last. */
export function codeOf(sample: RequestSample, isLast: boolean): CodeOf[] {
  const { edge, seen_by, pid, tid, begin_ns, duration_ns } = sample;
  if (edge === null) return [];
  const own = { end: edge[seen_by], pid, tid, begin_ns, duration_ns };
  const { server } = edge;
  return isLast && seen_by === "client" && server.pid !== null
    ? [own, { ...own, end: server, pid: server.pid, tid: null }]
    : [own];
}

export function codeTitle({ end, pid, tid }: CodeOf): string {
  return tid === null
    ? `all threads of ${endName(end)} (${pid})`
    : `thread ${tid} of ${endName(end)} (${pid})`;
}

/** Best first: wall clock has all of a thread's time. */
const KINDS = ["wall", "off_cpu", "on_cpu"] as const;
const TITLES = { wall: "Wall clock", off_cpu: "Off-CPU", on_cpu: "On-CPU" } as const;

/** Samples are counted in buckets of so many milliseconds. */
const BUCKET_MS = 20;

export interface ProfileLink {
  readonly task: Task;
  readonly title: string;
  readonly to: Partial<PageState>;
  /** What it holds of a time that short. */
  readonly help: string;
}

function helpOf({ kind, effective_frequency_hz, frequency_hz }: Task, length_ms: number): string {
  if (kind === "off_cpu") return "Waits that ended in this time, each with its whole length";
  const hz = effective_frequency_hz ?? frequency_hz;
  if (hz === null) return "";
  const most = Math.ceil((length_ms / 1e3) * hz);
  return `At ${hz} Hz at most ${plural(most, "sample")} of a thread in this time${kind === "wall" ? ", and its waits" : ""}`;
}

function linkOf(task: Task, kind: (typeof KINDS)[number], code: CodeOf): ProfileLink {
  const started = task.started_at_ns ?? 0;
  const ms = (ns: number): number => (ns - started) / 1e6 / BUCKET_MS;
  const { pid, tid, begin_ns, duration_ns } = code;
  const from = Math.max(0, Math.floor(ms(begin_ns))) * BUCKET_MS;
  const to = Math.ceil(ms(begin_ns + duration_ns)) * BUCKET_MS;
  return {
    task,
    title: TITLES[kind],
    to: { view: "task", id: task.id, from, to, ...(tid === null ? { pid } : { tids: [tid] }) },
    help: helpOf(task, to - from),
  };
}

/** The profiles of a process that were recorded while a request went on, one of each kind: of the same check-up, else the one with the most samples. */
export function profilesOf(
  code: CodeOf,
  own: { readonly group: string | null; readonly target: Target },
  tasks: Iterable<Task>,
  named: NamedContainers,
): ProfileLink[] {
  const { begin_ns, duration_ns, end } = code;
  const ran = [...tasks].filter(
    ({ started_at_ns, ended_at_ns, samples, target }) =>
      started_at_ns !== null &&
      started_at_ns <= begin_ns &&
      (ended_at_ns === null || ended_at_ns >= begin_ns + duration_ns) &&
      samples > 0 &&
      // Whether a process is one of these can be told; of other targets only that they are the same.
      covers(target, "pids" in target || "container" in target ? null : own.target, [end], named),
  );
  const rank = ({ group, effective_frequency_hz }: Task): number =>
    group !== null && group === own.group ? Number.POSITIVE_INFINITY : (effective_frequency_hz ?? 0);
  const better = (a: Task, b: Task): number => Math.sign(rank(b) - rank(a)) || Number(b.id) - Number(a.id);
  return KINDS.flatMap((kind) => {
    const [best] = ran.filter((task) => task.kind === kind).sort(better);
    return best === undefined ? [] : [linkOf(best, kind, code)];
  });
}
