// The list of threads of a result: what a filter finds, and what a pick shows.

import type { ProfileThread } from "../api/types";
import { count } from "./format";

/** Threads whose name, process or number has every word of `filter`. */
export function filterThreads(threads: readonly ProfileThread[], filter: string): readonly ProfileThread[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return threads;
  return threads.filter((thread) => {
    const text = `${thread.name} ${thread.process} ${thread.tid} ${thread.pid}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** Samples of the threads that a pick shows. */
export function shareOfPicked(
  threads: readonly ProfileThread[],
  picked: readonly number[],
  except: boolean,
): number {
  return threads.reduce(
    (sum, thread) => (picked.includes(thread.tid) !== except ? sum + thread.samples : sum),
    0,
  );
}

/** What the button of the list says. */
export function threadTitle(threads: number, picked: readonly number[], except: boolean): string {
  if (picked.length === 0) return `All threads (${count(threads)})`;
  if (except) return `All but ${count(picked.length)} of ${count(threads)} threads`;
  return `${count(picked.length)} of ${count(threads)} threads`;
}
