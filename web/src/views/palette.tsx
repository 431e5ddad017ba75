// Go to anything by typing a part of its name.

import { useMemo, useRef, useState } from "preact/hooks";
import { nodeProfile } from "../lib/continuous";
import { visible } from "../lib/format";
import { find, type PaletteEntry, processEntries } from "../lib/palette";
import { targetText } from "../lib/task_spec";
import { helpOpen, paletteOpen } from "../state/keys";
import { meta, namedContainers, pods, processes, tasks } from "../state/live";
import { mayChange } from "../state/role";
import { openView, patchRoute, route } from "../state/route";
import { Dialog } from "./dialog";

const KIND_TEXT: Readonly<Record<PaletteEntry["kind"], string>> = {
  page: "page",
  action: "do",
  pod: "pod",
  container: "container",
  process: "process",
  task: "task",
  frames: "profile",
};

function fixed(hasProfile: boolean): PaletteEntry[] {
  const page = (id: string, title: string): PaletteEntry => ({
    kind: "page",
    id,
    title,
    detail: "",
    weight: 0,
  });
  const action = (id: string, title: string, detail: string): PaletteEntry => ({
    kind: "action",
    id,
    title,
    detail,
    weight: 0,
  });
  return [
    page("overview", "Overview"),
    page("diagnose", "Diagnose"),
    page("pods", "Pods"),
    page("processes", "Processes"),
    page("tasks", "Tasks"),
    ...(meta.value?.network === "always" ? [page("network", "Network")] : []),
    page("node", "Node"),
    ...(mayChange.value
      ? [
          action("new", "New task", "profile something"),
          action("checkup", "New check-up", "what a sidecar costs, and what changes it"),
        ]
      : []),
    action("help", "Keys and help", "shortcuts"),
    ...(hasProfile
      ? [
          {
            kind: "frames" as const,
            id: "",
            title: "Find in this profile",
            detail: "frames by name",
            weight: 0,
          },
        ]
      : []),
  ];
}

function entries(): PaletteEntry[] {
  const list = fixed(route.value.view === "task");
  const continuous = nodeProfile(tasks.value?.values() ?? []);
  if (continuous !== null)
    list.push({
      kind: "task",
      id: continuous.id,
      title: "Continuous profile",
      detail: "the whole node, at any time",
      weight: 0,
    });
  list.push(...processEntries([...(processes.value?.values() ?? [])], pods.value ?? []));
  for (const task of tasks.value?.values() ?? [])
    list.push({
      kind: "task",
      id: task.id,
      title: `Task ${task.id}`,
      detail: `${task.kind} · ${targetText(task.target, namedContainers.peek())} · ${task.state}`,
      weight: Number(task.id),
    });
  return list;
}

function go(entry: PaletteEntry, query: string): void {
  switch (entry.kind) {
    case "page":
      openView({
        view: entry.id as "overview" | "diagnose" | "pods" | "processes" | "tasks" | "network" | "node",
      });
      return;
    case "action":
      if (entry.id === "help") helpOpen.value = true;
      else patchRoute({ create: true, checkup: entry.id === "checkup" });
      return;
    case "pod":
      openView({ view: "pods", q: entry.id });
      return;
    case "container":
      openView({ view: "processes", q: entry.id });
      return;
    case "process":
      openView({ view: "processes", q: entry.detail.split(" ")[0] ?? "", process: entry.id });
      return;
    case "task":
      openView({ view: "task", id: entry.id });
      return;
    case "frames":
      patchRoute({ search: query.trim() });
      return;
  }
}

export function Palette() {
  const [query, setQuery] = useState("");
  const [active, setActive] = useState(0);
  const list = useRef<HTMLDivElement>(null);
  // What is found does not change under the reader's eyes: it is collected once, when the palette opens or
  // when the first lists arrive.
  const all = useMemo(entries, [processes.value === null, tasks.value === null]);
  const found = useMemo(() => find(all, query), [all, query]);
  const current = Math.min(active, found.length - 1);
  const close = (): void => {
    paletteOpen.value = false;
  };
  const choose = (entry: PaletteEntry): void => {
    close();
    go(entry, query);
  };
  const moveTo = (to: number): void => {
    const next = Math.max(0, Math.min(found.length - 1, to));
    setActive(next);
    list.current?.children[next]?.scrollIntoView({ block: "nearest" });
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const moves: Readonly<Record<string, number>> = {
      ArrowDown: current + 1,
      ArrowUp: current - 1,
      PageDown: current + 10,
      PageUp: current - 10,
    };
    const target = moves[event.key];
    const entry = found[current];
    if (target !== undefined) moveTo(target);
    else if (event.key === "Enter" && entry !== undefined) choose(entry);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title="Go to" class="palette" onClose={close}>
      <input
        type="text"
        data-first
        class="palette-field"
        role="combobox"
        aria-label="Go to: process, pod, container, task, page"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={current >= 0 ? `palette-${current}` : undefined}
        aria-autocomplete="list"
        placeholder="Process, pod, container, task, page"
        autocomplete="off"
        spellcheck={false}
        value={query}
        onInput={(event) => {
          setQuery(event.currentTarget.value);
          setActive(0);
        }}
        onKeyDown={onKeyDown}
      />
      <div id="palette-list" ref={list} class="palette-list" role="listbox" aria-label="Found">
        {found.map((entry, i) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field handles the keys, as comboboxes do
          <div
            key={`${entry.kind} ${entry.id}`}
            id={`palette-${i}`}
            role="option"
            tabIndex={-1}
            aria-selected={i === current}
            class="palette-entry"
            onPointerMove={() => setActive(i)}
            onClick={() => choose(entry)}
          >
            <span class="palette-kind">{KIND_TEXT[entry.kind]}</span>
            <span class="name">
              {entry.kind === "frames"
                ? `Find “${visible(query.trim())}” in this profile`
                : visible(entry.title)}
            </span>
            <span class="muted path">{visible(entry.detail)}</span>
          </div>
        ))}
      </div>
      {found.length === 0 && <p class="muted palette-none">Nothing has this name now.</p>}
      <p class="hidden" role="status">
        {found.length} found
      </p>
    </Dialog>
  );
}
