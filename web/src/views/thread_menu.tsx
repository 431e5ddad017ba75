// Picks the threads whose samples are shown: only these, or all but these.

import { useState } from "preact/hooks";
import { api, type WaitCut } from "../api/client";
import type { ProfileThread } from "../api/types";
import { count, percent, visible } from "../lib/format";
import { filterThreads, shareOfPicked, threadTitle } from "../lib/threads";
import { useRefetched } from "../state/refetch";
import { patchRoute } from "../state/route";
import { ThreadBar } from "./activity_bar";
import { Choice } from "./choice";
import { Menu } from "./menu";

const REFETCH_MS = 4_000;
const MAX_SHOWN = 300;

function useThreads(id: string, running: boolean, waits: WaitCut | null): readonly ProfileThread[] {
  const load = async (signal: AbortSignal) => {
    const { items } = await api.threads(id, waits, signal);
    return [...items].sort((a, b) => b.samples - a.samples);
  };
  const keys = [id, waits?.idle, waits?.states.join(), waits?.reasons.join()];
  return useRefetched<readonly ProfileThread[]>([], load, running, REFETCH_MS, keys);
}

interface Props {
  readonly id: string;
  readonly running: boolean;
  readonly picked: readonly number[];
  /** The picked threads are those that are left out. */
  readonly except: boolean;
  readonly waits: WaitCut | null;
}

export function ThreadMenu({ id, running, picked, except, waits }: Props) {
  const threads = useThreads(id, running, waits);
  const [filter, setFilter] = useState("");
  const [exclude, setExclude] = useState(except);
  const all = threads.reduce((sum, thread) => sum + thread.samples, 0);
  const most = threads[0]?.samples ?? 1;
  const found = filterThreads(threads, filter);
  const unit = waits === null ? "samples" : "switches and samples";
  const set = (tids: readonly number[], leaveOut: boolean): void => {
    patchRoute({ tids, except: leaveOut && tids.length > 0 }, "replace");
  };
  const toggle = (tid: number): void => {
    set(picked.includes(tid) ? picked.filter((other) => other !== tid) : [...picked, tid], exclude);
  };
  return (
    <Menu
      title={threadTitle(threads.length, picked, except)}
      class="menu-right thread-menu"
      active={picked.length > 0}
    >
      {() => (
        <>
          <div class="menu-head">
            <input
              type="search"
              aria-label="Filter threads by name, process or number"
              placeholder="Filter threads"
              value={filter}
              onInput={(event) => setFilter(event.currentTarget.value)}
            />
            {filter !== "" && found.length > 0 && (
              <button
                type="button"
                onClick={() =>
                  set([...new Set([...picked, ...found.slice(0, MAX_SHOWN).map(({ tid }) => tid)])], exclude)
                }
              >
                Pick {count(Math.min(found.length, MAX_SHOWN))}
              </button>
            )}
            <button type="button" disabled={picked.length === 0} onClick={() => set([], exclude)}>
              All
            </button>
          </div>
          <div class="menu-head">
            <Choice
              label="What the picked threads are"
              value={exclude ? "except" : "only"}
              choices={[
                ["only", "Only picked"],
                ["except", "All but picked"],
              ]}
              set={(value) => {
                setExclude(value === "except");
                set(picked, value === "except");
              }}
            />
            {picked.length > 0 && (
              <span class="muted small numeric thread-share" role="status">
                shows {percent(shareOfPicked(threads, picked, except), all)} of the {unit}
              </span>
            )}
          </div>
          <ul class="thread-list">
            {found.slice(0, MAX_SHOWN).map((thread) => (
              <li key={`${thread.pid} ${thread.tid}`}>
                <label class="thread" title={`${visible(thread.process)} (${thread.pid})`}>
                  <input
                    type="checkbox"
                    checked={picked.includes(thread.tid)}
                    onChange={() => toggle(thread.tid)}
                  />
                  <span class="name mono">{visible(thread.name)}</span>
                  <span class="muted numeric">{thread.tid}</span>
                  {thread.activities.length > 0 ? (
                    <ThreadBar activities={thread.activities} />
                  ) : (
                    <meter min={0} max={most} value={thread.samples} aria-hidden="true" />
                  )}
                  <span class="numeric" title={`${count(thread.samples)} ${unit}`}>
                    {percent(thread.samples, all)}
                  </span>
                </label>
              </li>
            ))}
            {found.length === 0 && <li class="muted small">no thread</li>}
            {found.length > MAX_SHOWN && (
              <li class="muted small">{count(found.length - MAX_SHOWN)} more: narrow the filter</li>
            )}
          </ul>
        </>
      )}
    </Menu>
  );
}
