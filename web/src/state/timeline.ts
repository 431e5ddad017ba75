// The open task over time, and its threads.

import { api, type ProfileCut, type TimelineQuery } from "../api/client";
import type { ProfileThread, Task, Timeline } from "../api/types";
import { useRefetched } from "./refetch";

const TIMELINE_MS = 2_000;
const THREADS_MS = 4_000;

interface Answer {
  readonly timeline: Timeline | null;
  readonly lengthMs: number;
}

function lengthOf(task: Task): number {
  const started = (task.started_at_ns ?? task.created_at_ns) / 1e6;
  return Math.max(1, (task.ended_at_ns === null ? Date.now() : task.ended_at_ns / 1e6) - started);
}

/** What is shown, over the whole time of the task, in buckets as long as `bucketMs` says for its length. */
export function useTimeline(
  task: Task,
  cut: ProfileCut,
  running: boolean,
  { by, value }: Required<Pick<TimelineQuery, "by" | "value">>,
  bucketMs: (lengthMs: number) => number,
): Answer {
  const asked = { ...cut, from: null, to: null };
  const load = async (signal: AbortSignal): Promise<Answer> => {
    const lengthMs = lengthOf(task);
    const query = { bucketMs: bucketMs(lengthMs), by, value, cut: asked };
    return { timeline: await api.timeline(task.id, query, signal), lengthMs };
  };
  const keys = [task.id, by, value, task.ended_at_ns, JSON.stringify(asked)];
  return useRefetched<Answer>({ timeline: null, lengthMs: 0 }, load, running, TIMELINE_MS, keys);
}

/** All threads of what is shown, over the whole time; null before the first answer, and where there is nothing to ask for. */
export function useThreads(
  id: string,
  cut: ProfileCut,
  running: boolean,
  isRecorded: boolean,
): readonly ProfileThread[] | null {
  const asked = { ...cut, from: null, to: null, tids: [], except: false };
  const load = async (signal: AbortSignal) =>
    isRecorded ? (await api.threads(id, asked, signal)).items : null;
  const keys = [id, isRecorded, JSON.stringify(asked)];
  return useRefetched<readonly ProfileThread[] | null>(null, load, running, THREADS_MS, keys);
}
