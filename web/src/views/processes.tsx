// All processes of the node, live.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Process } from "../api/types";
import { containerTip, titleParts, workloadTitle } from "../lib/container_names";
import { bytes, cpu, plural, shortId, visible } from "../lib/format";
import { compareBy, filterOf, groupByContainer, type ProcessRow, searchText } from "../lib/process_list";
import { cpuHistory, processes } from "../state/live";
import { patchRoute, route } from "../state/route";
import { Changing } from "./changing";
import { ContainerName, Cut, WorkloadName } from "./container_name";
import { Sparkline } from "./sparkline";
import { Empty, Loading } from "./states";
import { type Column, VirtualTable } from "./virtual_table";

const DEFAULT_SORT = "-cpu";
const TEXTS_AT_ONCE = 500;
const TEXTS_AFTER_MS = 100;

function profile(process: Process): void {
  patchRoute({ create: true, pids: [process.pid], container: "", pod: "", checkup: false });
}

function checkUp(process: Process): void {
  patchRoute({ create: true, pids: [process.pid], container: "", pod: "", checkup: true });
}

function CpuCell({ process }: { process: Process }) {
  const busy = process.cpu_percent ?? 0;
  return (
    <span class={busy >= 50 ? "cpu hot" : busy >= 1 ? "cpu" : "cpu idle"}>
      <Sparkline values={cpuHistory.value.get(process.id) ?? []} />
      <span>{cpu(process.cpu_percent)}</span>
    </span>
  );
}

function ExeCell({ process }: { process: Process }) {
  if (process.kernel_thread) return <span class="muted">kernel thread</span>;
  const path = process.exe ?? process.arguments[0] ?? "";
  if (path === "") return <span class="muted">not readable</span>;
  const shown = visible(path);
  return (
    <span class="mono path" title={visible([shown, ...process.arguments.slice(1)].join(" "))}>
      {shown}
    </span>
  );
}

const only =
  (cell: (process: Process) => ReturnType<Column<ProcessRow>["cell"]>): Column<ProcessRow>["cell"] =>
  (row) =>
    row.kind === "process" ? cell(row.process) : null;

const COLUMNS: readonly Column<ProcessRow>[] = [
  { key: "pid", title: "PID", numeric: true, sortable: true, cell: only((process) => process.pid) },
  {
    key: "name",
    title: "Name",
    sortable: true,
    cell: only((process) => (
      <button
        type="button"
        class="link name"
        title={`${visible(process.comm)}: details`}
        onClick={() => patchRoute({ process: process.id })}
      >
        {visible(process.comm)}
      </button>
    )),
  },
  {
    key: "cpu",
    title: "CPU",
    help: "Share of one CPU; the line is the last minute",
    numeric: true,
    sortable: true,
    cell: only((process) => <CpuCell process={process} />),
  },
  {
    key: "rss",
    title: "RSS",
    help: "Resident memory",
    numeric: true,
    sortable: true,
    cell: only((process) => bytes(process.rss_bytes)),
  },
  {
    key: "threads",
    title: "Threads",
    numeric: true,
    sortable: true,
    cell: only((process) => process.threads),
  },
  {
    key: "container",
    title: "Container",
    sortable: true,
    cell: only(({ container }) =>
      container === null ? <span class="muted">–</span> : <ContainerName container={container} />,
    ),
  },
  {
    key: "workload",
    title: "Workload",
    help: "What manages the container",
    sortable: true,
    cell: only(({ container }) => <WorkloadName container={container} />),
  },
  {
    key: "user",
    title: "User",
    sortable: true,
    cell: only((process) => visible(process.user ?? String(process.uid))),
  },
  { key: "exe", title: "Program", sortable: true, cell: only((process) => <ExeCell process={process} />) },
  {
    key: "action",
    title: "",
    cell: only((process) => (
      <Changing>
        <span class="row-actions">
          {!process.kernel_thread && (
            <button
              type="button"
              class="row-action"
              onClick={() => checkUp(process)}
              aria-label={`Check-up of ${visible(process.comm)} ${process.pid}`}
            >
              Check-up…
            </button>
          )}
          <button
            type="button"
            class="row-action"
            onClick={() => profile(process)}
            aria-label={`Profile ${visible(process.comm)} ${process.pid}`}
          >
            Profile…
          </button>
        </span>
      </Changing>
    )),
  },
];

const WITHOUT_WORKLOADS = COLUMNS.filter(({ key }) => key !== "workload");

function GroupRow({ row }: { row: Extract<ProcessRow, { kind: "group" }> }) {
  const { container } = row;
  const names = container?.names ?? null;
  return (
    <span class="group-row named-group">
      {container === null ? (
        <b>No container</b>
      ) : (
        <>
          <b class={names === null ? "mono" : "name"} title={containerTip(container)}>
            <Cut parts={titleParts(container)} />
          </b>
          {names !== null && names.workload !== null && (
            <span class="muted group-extra">{visible(workloadTitle(names.workload))}</span>
          )}
          <span class="muted">
            {names !== null && <span class="mono">{visible(shortId(container.id))} </span>}
            {visible(container.runtime)}
          </span>
        </>
      )}
      <span>{plural(row.count, "process", "processes")}</span>
      <span>{cpu(row.cpu)} CPU</span>
      <span>{bytes(row.rss)}</span>
      {container !== null && (
        <Changing>
          <button
            type="button"
            class="row-action"
            onClick={() =>
              patchRoute({ create: true, pids: [], container: container.id, pod: "", checkup: false })
            }
          >
            Profile container…
          </button>
        </Changing>
      )}
    </span>
  );
}

/** Keeps the order of rows while the pointer is on the table, so that nothing moves under it. */
function useSteadyOrder(sorted: readonly Process[], frozen: boolean, key: string): readonly Process[] {
  const order = useRef<{
    readonly key: string;
    readonly rows: readonly Process[];
    ranks: ReadonlyMap<string, number> | null;
  }>({ key: "", rows: [], ranks: null });
  if (!frozen || order.current.key !== key) {
    order.current = { key, rows: sorted, ranks: null };
    return sorted;
  }
  // Made when it is needed only: a key in the filter must not wait for it.
  order.current.ranks ??= new Map(order.current.rows.map((process, i) => [process.id, i]));
  const { ranks } = order.current;
  const rank = (process: Process): number => ranks.get(process.id) ?? Number.MAX_SAFE_INTEGER;
  return sorted.toSorted((a, b) => rank(a) - rank(b));
}

/** Readies some of the texts that a filter looks through, whenever there is nothing else to do. */
function useSearchTexts(all: ReadonlyMap<string, Process> | null): void {
  const size = all?.size ?? 0;
  useEffect(() => {
    if (all === null) return;
    const left = all.values();
    let timer: ReturnType<typeof setTimeout>;
    const some = (): void => {
      for (let i = 0; i < TEXTS_AT_ONCE; i += 1) {
        const { value, done } = left.next();
        if (done) return;
        searchText(value);
      }
      timer = setTimeout(some, 0);
    };
    timer = setTimeout(some, TEXTS_AFTER_MS);
    return () => clearTimeout(timer);
  }, [size]);
}

export function ProcessesPage() {
  const { q, sort: wanted, group, kernel } = route.value;
  const sort = wanted || DEFAULT_SORT;
  const all = processes.value;
  const [over, setOver] = useState(false);
  useSearchTexts(all);
  // Sorted once for all filters: what is left of a sorted list is sorted.
  const ordered = useMemo(
    () =>
      [...(all?.values() ?? [])].filter((process) => kernel || !process.kernel_thread).sort(compareBy(sort)),
    [all, sort, kernel],
  );
  const sorted = useMemo(() => ordered.filter(filterOf(q)), [ordered, q]);
  const steady = useSteadyOrder(sorted, over, `${sort} ${q} ${group} ${kernel}`);
  const rows = useMemo<ProcessRow[]>(
    () => (group ? groupByContainer(steady) : steady.map((process) => ({ kind: "process", process }))),
    [steady, group],
  );
  const hasWorkloads = useMemo(
    () => [...(all?.values() ?? [])].some(({ container }) => (container?.names?.workload ?? null) !== null),
    [all],
  );
  const busy = sorted.reduce((sum, process) => sum + (process.cpu_percent ?? 0), 0);
  return (
    <section class="list-page">
      <div class="toolbar">
        <h1>Processes</h1>
        <input
          type="search"
          data-search
          class="filter"
          placeholder="Filter: name, pid, user, path, container, pod   /"
          aria-label="Filter processes"
          spellcheck={false}
          value={q}
          onInput={(event) => patchRoute({ q: event.currentTarget.value }, "replace")}
        />
        <label class="check">
          <input
            type="checkbox"
            checked={group}
            onChange={(event) => patchRoute({ group: event.currentTarget.checked }, "replace")}
          />
          By container
        </label>
        <label class="check">
          <input
            type="checkbox"
            checked={kernel}
            onChange={(event) => patchRoute({ kernel: event.currentTarget.checked }, "replace")}
          />
          Kernel threads
        </label>
        <span class="muted push" aria-live="off">
          {plural(sorted.length, "process", "processes")} · {(busy / 100).toFixed(2)} cores busy
        </span>
      </div>
      {all === null ? (
        <Loading what="processes" />
      ) : rows.length === 0 ? (
        <Empty title={q === "" ? "No processes to show" : "No process matches the filter"}>
          {q !== "" && (
            <button type="button" onClick={() => patchRoute({ q: "" }, "replace")}>
              Clear the filter
            </button>
          )}
        </Empty>
      ) : (
        <div class="table-box" onPointerEnter={() => setOver(true)} onPointerLeave={() => setOver(false)}>
          <VirtualTable
            label="Processes"
            class={hasWorkloads ? "process-table with-workloads" : "process-table"}
            rows={rows}
            columns={hasWorkloads ? COLUMNS : WITHOUT_WORKLOADS}
            rowKey={(row) => (row.kind === "process" ? row.process.id : `group ${row.container?.id ?? ""}`)}
            subject={(row) => (row.kind === "process" ? `pid ${row.process.pid}` : undefined)}
            spanning={(row) => (row.kind === "group" ? <GroupRow row={row} /> : null)}
            sort={sort}
            onSort={(next) => patchRoute({ sort: next }, "replace")}
            onOpen={(row) => row.kind === "process" && profile(row.process)}
          />
        </div>
      )}
    </section>
  );
}
