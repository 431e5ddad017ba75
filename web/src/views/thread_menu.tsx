// Picks the threads whose samples are shown.

import { useState } from "preact/hooks";
import { api } from "../api/client";
import type { ProfileThread } from "../api/types";
import { count, percent, visible } from "../lib/format";
import { useRefetched } from "../state/refetch";
import { patchRoute } from "../state/route";
import { Menu } from "./menu";

const REFETCH_MS = 4_000;
const MAX_SHOWN = 300;

function useThreads(id: string, running: boolean): readonly ProfileThread[] {
  const load = async (signal: AbortSignal) => {
    const { items } = await api.threads(id, signal);
    return [...items].sort((a, b) => b.samples - a.samples);
  };
  return useRefetched<readonly ProfileThread[]>([], load, running, REFETCH_MS, [id]);
}

export function ThreadMenu({
  id,
  running,
  picked,
}: {
  id: string;
  running: boolean;
  picked: readonly number[];
}) {
  const threads = useThreads(id, running);
  const [filter, setFilter] = useState("");
  const all = threads.reduce((sum, thread) => sum + thread.samples, 0);
  const most = threads[0]?.samples ?? 1;
  const words = filter.toLowerCase();
  const found = threads.filter((thread) =>
    `${thread.name} ${thread.process} ${thread.tid}`.toLowerCase().includes(words),
  );
  const toggle = (tid: number): void => {
    patchRoute(
      { tids: picked.includes(tid) ? picked.filter((other) => other !== tid) : [...picked, tid] },
      "replace",
    );
  };
  const title =
    picked.length === 0 ? `All threads (${threads.length})` : `${picked.length} of ${threads.length} threads`;
  return (
    <Menu title={title} class="menu-right thread-menu" active={picked.length > 0}>
      {() => (
        <>
          <div class="menu-head">
            <input
              type="search"
              aria-label="Filter threads"
              placeholder="Filter threads"
              value={filter}
              onInput={(event) => setFilter(event.currentTarget.value)}
            />
            <button
              type="button"
              disabled={picked.length === 0}
              onClick={() => patchRoute({ tids: [] }, "replace")}
            >
              All
            </button>
          </div>
          <ul class="thread-list">
            {found.slice(0, MAX_SHOWN).map((thread) => (
              <li key={`${thread.pid} ${thread.tid}`}>
                <label class="thread">
                  <input
                    type="checkbox"
                    checked={picked.includes(thread.tid)}
                    onChange={() => toggle(thread.tid)}
                  />
                  <span class="name mono">{visible(thread.name)}</span>
                  <span class="muted numeric">{thread.tid}</span>
                  <meter min={0} max={most} value={thread.samples} aria-hidden="true" />
                  <span class="numeric" title={`${count(thread.samples)} samples`}>
                    {percent(thread.samples, all)}
                  </span>
                </label>
              </li>
            ))}
            {found.length === 0 && <li class="muted small">no thread</li>}
          </ul>
        </>
      )}
    </Menu>
  );
}
