// All tasks, newest first.

import { useMemo, useState } from "preact/hooks";
import { api } from "../api/client";
import type { Checkup, Task } from "../api/types";
import { count, moment, plural, visible } from "../lib/format";
import { KIND_TITLES } from "../lib/kind_probes";
import { isFinal } from "../lib/task_list";
import { targetNames, targetText } from "../lib/task_spec";
import { dropTask, namedContainers, putTask, tasks } from "../state/live";
import { href, openView, patchRoute, route } from "../state/route";
import { Changing } from "./changing";
import { DropTarget, ImportButton, ImportError, useImport } from "./import_profile";
import { Empty, Loading } from "./states";
import { lossText, Progress, StateChip } from "./task_state";
import { type Column, VirtualTable } from "./virtual_table";

/** The target with the names that its processes had when the task began, where that is known. */
export function namedTarget(task: Pick<Task, "target"> & Partial<Pick<Task, "target_names">>): string {
  const text = targetText(task.target, namedContainers.value);
  const names = targetNames({ target_names: task.target_names ?? [] });
  return visible(names.length === 0 ? text : `${names.join(", ")} · ${text}`);
}

/** The target of a check-up, with the names that its tasks know. */
export function namedCheckup({ target, tasks: parts }: Checkup): string {
  const known = parts.map(({ id }) => tasks.value?.get(id)?.target_names ?? []);
  return namedTarget({ target, target_names: known.find((names) => names.length > 0) ?? [] });
}

const VALUES: Readonly<Record<string, (task: Task) => number | string>> = {
  id: (task) => Number(task.id),
  state: (task) => task.state,
  kind: (task) => task.kind,
  samples: (task) => task.samples,
  started: (task) => task.started_at_ns ?? task.created_at_ns,
};

function sortTasks(list: Task[], sort: string): Task[] {
  const descending = sort.startsWith("-");
  const value = VALUES[descending ? sort.slice(1) : sort] ?? VALUES.id!;
  const sign = descending ? -1 : 1;
  return list.sort((a, b) => {
    const left = value(a);
    const right = value(b);
    return left < right ? -sign : left > right ? sign : Number(b.id) - Number(a.id);
  });
}

/** Results of connections and requests have no stacks. */
function hasSamples(kind: string): boolean {
  return kind !== "network" && kind !== "requests";
}

/** A kind that this page does not know yet, as the agent says it. */
function kindTitle(kind: string): string {
  return (KIND_TITLES as Readonly<Record<string, string>>)[kind] ?? visible(kind);
}

function Actions({ task }: { task: Task }) {
  const [armed, setArmed] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const run = async (action: () => Promise<void>): Promise<void> => {
    try {
      await action();
    } catch (problem) {
      setError(problem instanceof Error ? problem.message : "failed");
    }
  };
  if (error !== null) {
    return (
      <button type="button" class="row-action bad" title={error} onClick={() => setError(null)}>
        {error}
      </button>
    );
  }
  if (!isFinal(task)) {
    return (
      <button
        type="button"
        class="row-action"
        onClick={() => run(async () => putTask(await api.stop(task.id)))}
      >
        Stop
      </button>
    );
  }
  const remove = async (): Promise<void> => {
    await api.remove(task.id);
    dropTask(task.id);
  };
  return (
    <button
      type="button"
      class={armed ? "row-action bad" : "row-action"}
      onClick={() => (armed ? void run(remove) : setArmed(true))}
      onBlur={() => setArmed(false)}
    >
      {armed ? "Really delete" : "Delete"}
    </button>
  );
}

const COLUMNS: readonly Column<Task>[] = [
  { key: "id", title: "Task", numeric: true, sortable: true, cell: (task) => task.id },
  { key: "state", title: "State", sortable: true, cell: (task) => <StateChip task={task} /> },
  { key: "kind", title: "Kind", sortable: true, cell: (task) => kindTitle(task.kind) },
  {
    key: "target",
    title: "Target",
    cell: (task) => (
      <a
        class="name"
        href={href({ view: "task", id: task.id })}
        title={namedTarget(task)}
        onClick={(event) => {
          if (event.ctrlKey || event.metaKey || event.shiftKey) return;
          event.preventDefault();
          openView({ view: "task", id: task.id });
        }}
      >
        {namedTarget(task)}
      </a>
    ),
  },
  {
    key: "group",
    title: "Group",
    help: "Tasks that were started together",
    cell: (task) =>
      task.group === null ? (
        <span class="muted">–</span>
      ) : (
        <a
          class="name"
          href={href({ view: "group", id: task.group })}
          title={task.group}
          onClick={(event) => {
            if (event.ctrlKey || event.metaKey || event.shiftKey) return;
            event.preventDefault();
            openView({ view: "group", id: task.group ?? "" });
          }}
        >
          {task.group}
        </a>
      ),
  },
  { key: "progress", title: "Progress", cell: (task) => <Progress task={task} /> },
  {
    key: "samples",
    title: "Samples",
    numeric: true,
    sortable: true,
    cell: (task) => (hasSamples(task.kind) ? count(task.samples) : "–"),
  },
  {
    key: "losses",
    title: "Losses",
    help: "Everything that was dropped or degraded on the way",
    numeric: true,
    cell: (task) => <span class={task.losses.length > 0 ? "warn" : "muted"}>{lossText(task)}</span>,
  },
  {
    key: "frequency",
    title: "Frequency",
    numeric: true,
    cell: (task) =>
      task.frequency_hz === null ? "–" : `${task.effective_frequency_hz ?? task.frequency_hz} Hz`,
  },
  {
    key: "started",
    title: "Started",
    numeric: true,
    sortable: true,
    cell: (task) => moment(task.started_at_ns ?? task.created_at_ns),
  },
  {
    key: "action",
    title: "",
    cell: (task) => (
      <Changing>
        <Actions task={task} />
      </Changing>
    ),
  },
];

export function TasksPage() {
  const { q, sort: wanted } = route.value;
  const sort = wanted || "-id";
  const all = tasks.value;
  const importing = useImport();
  const named = namedContainers.value;
  const rows = useMemo(() => {
    const words = q.toLowerCase();
    const list = [...(all?.values() ?? [])].filter((task) =>
      `${task.id} ${task.kind} ${task.state} ${task.group ?? ""} ${targetText(task.target, named)} ${targetNames(task).join(" ")}`
        .toLowerCase()
        .includes(words),
    );
    return sortTasks(list, sort);
  }, [all, q, sort, named]);
  return (
    <DropTarget importing={importing}>
      <div class="toolbar">
        <h1>Tasks</h1>
        <input
          type="search"
          data-search
          class="filter"
          placeholder="Filter: target, kind, state, group   /"
          aria-label="Filter tasks"
          spellcheck={false}
          value={q}
          onInput={(event) => patchRoute({ q: event.currentTarget.value }, "replace")}
        />
        <Changing>
          <ImportButton importing={importing} />
        </Changing>
        <span class="muted push">{plural(rows.length, "task")}</span>
      </div>
      <ImportError importing={importing} />
      {all === null ? (
        <Loading what="tasks" />
      ) : rows.length === 0 ? (
        <Empty title={q === "" ? "No tasks yet" : "No task matches the filter"}>
          <p class="muted">A task samples the stacks of processes for a while and keeps the result.</p>
          <Changing>
            <button type="button" class="primary" onClick={() => patchRoute({ create: true })}>
              New task
            </button>
          </Changing>
        </Empty>
      ) : (
        <div class="table-box">
          <VirtualTable
            label="Tasks"
            class="task-table"
            rows={rows}
            columns={COLUMNS}
            rowKey={(task) => task.id}
            sort={sort}
            onSort={(next) => patchRoute({ sort: next }, "replace")}
            onOpen={(task) => openView({ view: "task", id: task.id })}
          />
        </div>
      )}
    </DropTarget>
  );
}
