// Picks what the shown result is compared with: another task, or a time range of the same one.

import type { Task } from "../api/types";
import { count, moment } from "../lib/format";
import { timeText } from "../lib/heat";
import { tasks } from "../state/live";
import { patchRoute, route } from "../state/route";
import { Menu } from "./menu";
import { namedTarget } from "./tasks";

const MAX_SHOWN = 50;

/** Results of the same kind, those of the same target first, then the newest. */
function bases(task: Task): readonly Task[] {
  const target = JSON.stringify(task.target);
  const same = (other: Task): number => (JSON.stringify(other.target) === target ? 0 : 1);
  return [...(tasks.value?.values() ?? [])]
    .filter((other) => other.id !== task.id && other.kind === task.kind && other.samples > 0)
    .sort((a, b) => same(a) - same(b) || Number(b.id) - Number(a.id));
}

export function rangeText(from: number | null, to: number | null): string {
  if (from === null && to === null) return "the whole time";
  return `${from === null ? "the start" : timeText(from)} to ${to === null ? "the end" : timeText(to)}`;
}

/** Makes the picked time the base, so that the next pick is compared with it. */
function pickedAsBase(id: string): void {
  const { from, to } = route.value;
  patchRoute({ base: id, baseFrom: from, baseTo: to, from: null, to: null, zoom: "", tab: "graph" });
}

export function BaseMenu({ task }: { task: Task }) {
  const { base, from, to } = route.value;
  const others = bases(task);
  const picked = from !== null || to !== null;
  const shown = others.slice(0, MAX_SHOWN);
  return (
    <Menu
      title={base === "" ? "Compare" : `Compared with ${base === task.id ? "a time range" : base}`}
      class="menu-right"
      active={base !== ""}
    >
      {(close) => (
        <>
          <p class="muted small menu-note">The base, which this result is compared with:</p>
          {picked ? (
            <button
              type="button"
              class="menu-item"
              onClick={() => {
                pickedAsBase(task.id);
                close();
              }}
            >
              <b>The picked time of this task</b>
              <span class="muted">{rangeText(from, to)}</span>
            </button>
          ) : (
            <p class="muted small menu-note">
              To compare two times of this task, pick the first one in the strip, then open this menu.
            </p>
          )}
          <div class="base-list">
            {shown.map((other) => (
              <button
                key={other.id}
                type="button"
                class="menu-item"
                onClick={() => {
                  patchRoute({ base: other.id, baseFrom: null, baseTo: null, zoom: "", tab: "graph" });
                  close();
                }}
              >
                <b>
                  {other.id} {namedTarget(other)}
                </b>
                <span class="muted">
                  {moment(other.started_at_ns ?? other.created_at_ns)} · {count(other.samples)}
                </span>
              </button>
            ))}
          </div>
          {others.length > MAX_SHOWN && (
            <p class="muted small menu-note">
              {count(others.length - MAX_SHOWN)} older ones: put their id into the address as base=
            </p>
          )}
          {others.length === 0 && (
            <p class="muted small menu-note">There is no other task of this kind with a result.</p>
          )}
          {base !== "" && (
            <button
              type="button"
              onClick={() => {
                patchRoute({ base: "", baseFrom: null, baseTo: null, zoom: "" });
                close();
              }}
            >
              Stop comparing
            </button>
          )}
        </>
      )}
    </Menu>
  );
}
