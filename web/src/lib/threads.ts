// Processes and threads of a result as rows over time: what a filter finds, how they fold, what a pick
// shows.

import type { Activity, ProfileThread, ThreadActivity } from "../api/types";
import { count } from "./format";
import { grouped } from "./grouped";

/** As many as the agent takes, and as a link carries. */
export const MAX_PICKED = 1024;
/** In the order of the agent. */
export const ACTIVITIES: readonly Activity[] = [
  "running",
  "waiting_for_cpu",
  "lock",
  "disk",
  "page_fault",
  "network",
  "asleep",
  "other",
  "idle",
];
/** As many rows are unfolded by themselves. */
const FEW_ROWS = 12;

export interface Track {
  readonly key: string;
  readonly pid: number;
  /** Null for a process with several threads. */
  readonly tid: number | null;
  readonly process: string;
  readonly name: string;
  /** Of what is shown: samples, switches, or nanoseconds. */
  readonly amount: number;
  readonly activities: readonly ThreadActivity[];
  /** Its threads; a thread has itself. */
  readonly tids: readonly number[];
}

export interface ProcessTrack extends Track {
  /** Its threads, where there are several. */
  readonly threads: readonly Track[];
}

/** Threads whose name, process or number has every word of `filter`. */
export function filterThreads(threads: readonly ProfileThread[], filter: string): readonly ProfileThread[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return threads;
  return threads.filter((thread) => {
    const text = `${thread.name} ${thread.process} ${thread.tid} ${thread.pid}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

function sumOf(threads: readonly ProfileThread[]): ThreadActivity[] {
  const sums = new Map<Activity, number>();
  for (const { activities } of threads)
    for (const { activity, total_ns } of activities) sums.set(activity, (sums.get(activity) ?? 0) + total_ns);
  return ACTIVITIES.filter((activity) => sums.has(activity)).map((activity) => ({
    activity,
    total_ns: sums.get(activity)!,
  }));
}

/** Processes with their threads, each by how much it has. */
export function processTracks(
  threads: readonly ProfileThread[],
  amountOf: (thread: ProfileThread) => number,
): readonly ProcessTrack[] {
  const byPid = grouped(threads, ({ pid }) => pid);
  const largest = (a: Track, b: Track): number => b.amount - a.amount || a.pid - b.pid;
  const processes = [...byPid].map(([pid, own]): ProcessTrack => {
    const tracks = own
      .map((thread): Track => {
        const { tid, process, name, activities } = thread;
        const amount = amountOf(thread);
        return { key: `${pid} ${tid}`, pid, tid, process, name, amount, activities, tids: [tid] };
      })
      .sort(largest);
    const first = tracks[0]!;
    if (tracks.length === 1) return { ...first, threads: [] };
    return {
      key: String(pid),
      pid,
      tid: null,
      process: first.process,
      name: first.process,
      amount: tracks.reduce((sum, { amount }) => sum + amount, 0),
      activities: sumOf(own),
      tids: [...new Set(tracks.flatMap(({ tids }) => tids))],
      threads: tracks,
    };
  });
  return processes.sort(largest);
}

/** Processes that are unfolded until somebody folds them: the largest, and further ones while rows are few. */
export function unfoldedAtFirst(processes: readonly ProcessTrack[]): ReadonlySet<number> {
  const unfolded = new Set<number>();
  let rows = processes.length;
  for (const { pid, threads } of processes) {
    rows += threads.length;
    if (unfolded.size > 0 && rows > FEW_ROWS) break;
    if (threads.length > 0) unfolded.add(pid);
  }
  return unfolded;
}

/** Rows from the top: each process, and below it its threads where it is unfolded. */
export function trackRows(
  processes: readonly ProcessTrack[],
  isUnfolded: (pid: number) => boolean,
): readonly Track[] {
  return processes.flatMap((process) =>
    isUnfolded(process.pid) ? [process, ...process.threads] : [process],
  );
}

/** All of a track, some of it, or nothing is picked. */
export function pickedPart(track: Track, picked: ReadonlySet<number>): "all" | "some" | "none" {
  const found = track.tids.filter((tid) => picked.has(tid)).length;
  return found === 0 ? "none" : found === track.tids.length ? "all" : "some";
}

/** Only this track; nothing when it was picked alone. */
export function pickOnly(track: Track, picked: readonly number[]): readonly number[] {
  const alone = pickedPart(track, new Set(picked)) === "all" && picked.length === track.tids.length;
  return alone ? [] : track.tids.slice(0, MAX_PICKED);
}

/** With this track, or without it when all of it was picked. */
export function pickToggled(track: Track, picked: readonly number[]): readonly number[] {
  if (pickedPart(track, new Set(picked)) === "all") {
    const own = new Set(track.tids);
    return picked.filter((tid) => !own.has(tid));
  }
  return [...new Set([...picked, ...track.tids])].slice(0, MAX_PICKED);
}

/** How much of everything a pick shows. */
export function amountOfPicked(
  processes: readonly ProcessTrack[],
  picked: readonly number[],
  except: boolean,
): number {
  const set = new Set(picked);
  const threads = processes.flatMap((process) => (process.threads.length > 0 ? process.threads : [process]));
  return threads.reduce((sum, { tids, amount }) => (set.has(tids[0]!) !== except ? sum + amount : sum), 0);
}

/** What the button that opens the rows says. */
export function threadTitle(threads: number, picked: readonly number[], except: boolean): string {
  if (threads === 0) return "Threads";
  if (picked.length === 0) return `Threads: all ${count(threads)}`;
  return `Threads: ${except ? "all but " : ""}${count(picked.length)} of ${count(threads)}`;
}
