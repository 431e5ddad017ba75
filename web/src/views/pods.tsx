// Pods of the node with their processes, live: what the sidecar takes, what can be profiled, and how well.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Process } from "../api/types";
import { labelList, nameInPod, workloadTitle } from "../lib/container_names";
import { bytes, plural, visible } from "../lib/format";
import { cores, type Member, type Pod, type PodRow, podRows } from "../lib/pods";
import { cpuHistory, meta, pods } from "../state/live";
import { wantSymbols } from "../state/process_symbols";
import { href, openView, patchRoute, route } from "../state/route";
import { Changing } from "./changing";
import { ContainerName, Cut } from "./container_name";
import { KindsChip, SymbolsChip } from "./process_chips";
import { Sparkline } from "./sparkline";
import { Empty, Loading } from "./states";
import { type Column, VirtualTable } from "./virtual_table";

const DEFAULT_SORT = "-cpu";
/** Members of pods whose symbols are looked at without being asked for. */
const MOST_LOOKED_AT = 12;

function openProcess(process: Process): void {
  patchRoute({ process: process.id });
}

function RoleChip({ member }: { member: Member }) {
  return (
    <span class={`role-chip role-${member.role}`} title={visible(member.reason)}>
      {member.role}
    </span>
  );
}

function CpuCores({ process }: { process: Process }) {
  const busy = process.cpu_percent;
  return (
    <span class={(busy ?? 0) >= 50 ? "cpu hot" : (busy ?? 0) >= 1 ? "cpu" : "cpu idle"}>
      <Sparkline values={cpuHistory.value.get(process.id) ?? []} />
      <span>
        {busy === null ? <span title="No reading yet: the process is new">–</span> : cores(busy / 100)}
      </span>
    </span>
  );
}

const only =
  (cell: (member: Member, pod: Pod) => ReturnType<Column<PodRow>["cell"]>): Column<PodRow>["cell"] =>
  (row) =>
    row.kind === "member" ? cell(row.member, row.pod) : null;

const COLUMNS: readonly Column<PodRow>[] = [
  {
    key: "name",
    title: "Process",
    sortable: true,
    cell: only(({ process }) => (
      <span class="name pod-member" title={visible(process.exe ?? process.comm)}>
        {visible(process.program)}{" "}
        {process.program !== process.comm && <span class="muted">{visible(process.comm)}</span>}
      </span>
    )),
  },
  { key: "pid", title: "PID", numeric: true, sortable: true, cell: only(({ process }) => process.pid) },
  {
    key: "container",
    title: "Container",
    sortable: true,
    cell: only(({ process: { container } }, { pod }) =>
      container === null ? (
        <span class="muted">none</span>
      ) : pod === null ? (
        <ContainerName container={container} />
      ) : (
        <ContainerName container={container} text={nameInPod} />
      ),
    ),
  },
  {
    key: "role",
    title: "Role",
    help: "Told by Kubernetes where it says so, else from the names of programs; each says why",
    sortable: true,
    cell: only((member) => <RoleChip member={member} />),
  },
  {
    key: "cpu",
    title: "CPU, cores",
    help: "CPU time of the last two seconds; the line is the last minute",
    numeric: true,
    sortable: true,
    cell: only(({ process }) => <CpuCores process={process} />),
  },
  {
    key: "rss",
    title: "Memory",
    help: "Resident memory; pages that processes share count in each",
    numeric: true,
    sortable: true,
    cell: only(({ process }) => bytes(process.rss_bytes)),
  },
  {
    key: "threads",
    title: "Threads",
    numeric: true,
    sortable: true,
    cell: only(({ process }) => process.threads),
  },
  {
    key: "symbols",
    title: "Names",
    help: "What names a profile of the process will have",
    cell: only(({ process }) => <SymbolsChip process={process} />),
  },
  {
    key: "probes",
    title: "Probes",
    help: "Which kinds of task are possible",
    cell: only(({ process }) => <KindsChip process={process} />),
  },
  {
    key: "action",
    title: "",
    cell: only(({ process }) => (
      <Changing>
        <button
          type="button"
          class="row-action"
          onClick={() =>
            patchRoute({ create: true, pids: [process.pid], container: "", pod: "", checkup: false })
          }
          aria-label={`Profile ${visible(process.program)} ${process.pid}`}
        >
          Profile…
        </button>
      </Changing>
    )),
  },
];

/** The pod on the map of connections, which the agent always watches when it was told to. */
const mapOf = (pod: Pod) => ({ view: "network", net: "map", map: `!${pod.key}` }) as const;

const NAMESPACE_HELP =
  "Inode number of the network namespace. Processes that share it are shown as one pod; its name is that of their containers";

/** What tells a pod from others, a line each. */
function podTip(shown: Pod): string {
  const { title, pod, workload, network_namespace: namespace } = shown;
  if (pod === null) return visible(title);
  const lines = [
    title,
    `unique id ${pod.uid}`,
    `network namespace ${namespace}`,
    ...(workload === null ? [] : [`workload ${workloadTitle(workload)}`]),
    ...labelList(shown).map((label) => `label ${label}`),
  ];
  return lines.map(visible).join("\n");
}

function PodHead({ pod }: { pod: Pod }) {
  const { kind, title, pod: names, workload, members, containers } = pod;
  const create = (checkup: boolean): void =>
    patchRoute({ create: true, checkup, pod: pod.key, pids: [], container: "" });
  return (
    <span class="group-row pod-head">
      <b class="name" title={podTip(pod)}>
        <Cut parts={names === null ? [title, ""] : [names.namespace, `/${names.name}`]} />
      </b>
      {kind === "pod" && names === null && (
        <span class="muted" title={NAMESPACE_HELP}>
          net {pod.network_namespace}
        </span>
      )}
      {workload !== null && (
        <span class="muted group-extra" title={visible(workloadTitle(workload))}>
          {visible(workloadTitle(workload))}
        </span>
      )}
      <span
        data-sidecar-line
        title="The sum of the processes' CPU times over the last two seconds; processes that began and ended in between are not in it"
      >
        {visible(pod.summary)}
      </span>
      <span class="muted">
        {plural(members.length, "process", "processes")}
        {containers > 0 && `, ${plural(containers, "container")}`}
      </span>
      <span class="muted">{bytes(pod.rss_bytes)}</span>
      {kind === "pod" && (
        <span class="pod-actions">
          {meta.value?.network === "always" && (
            <a
              class="row-action"
              href={href(mapOf(pod))}
              onClick={(event) => {
                if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
                event.preventDefault();
                openView(mapOf(pod));
              }}
            >
              Network map
            </a>
          )}
          <Changing>
            <button type="button" class="row-action" onClick={() => create(true)}>
              Check-up…
            </button>
            <button type="button" class="row-action" onClick={() => create(false)}>
              Profile pod…
            </button>
          </Changing>
        </span>
      )}
    </span>
  );
}

const keyOf = (row: PodRow): string => (row.kind === "pod" ? `pod ${row.pod.key}` : row.member.process.id);

function subjectOf(row: PodRow): string | undefined {
  if (row.kind === "member") return `pid ${row.member.process.pid}`;
  return row.pod.kind === "pod" ? `pod ${row.pod.key}` : undefined;
}

/** Keeps the order of rows while the pointer is on the table, so that nothing moves under it. */
function useSteadyRows(rows: readonly PodRow[], frozen: boolean, key: string): readonly PodRow[] {
  const order = useRef<{
    readonly key: string;
    readonly rows: readonly PodRow[];
    ranks: ReadonlyMap<string, number> | null;
  }>({ key: "", rows: [], ranks: null });
  if (!frozen || order.current.key !== key) {
    order.current = { key, rows, ranks: null };
    return rows;
  }
  // Made when it is needed only: a key in the filter must not wait for it.
  order.current.ranks ??= new Map(order.current.rows.map((row, i) => [keyOf(row), i]));
  const { ranks } = order.current;
  const podRank = (row: PodRow): number => ranks.get(`pod ${row.pod.key}`) ?? Number.MAX_SAFE_INTEGER;
  const rank = (row: PodRow): number => ranks.get(keyOf(row)) ?? Number.MAX_SAFE_INTEGER;
  return rows.toSorted((a, b) => podRank(a) - podRank(b) || rank(a) - rank(b));
}

/** Pods with a sidecar are looked at by themselves, others when asked for: reading programs costs the agent CPU. */
function useLookAtPods(all: readonly Pod[]): void {
  const wanted = all
    .filter(({ members }) => members.some(({ role }) => role === "sidecar"))
    .flatMap(({ members }) => members)
    .filter(({ role }) => role !== "other")
    .slice(0, MOST_LOOKED_AT)
    .map(({ process }) => process.id);
  const key = wanted.toSorted().join(" ");
  useEffect(() => {
    for (const id of wanted.toReversed()) wantSymbols(id);
  }, [key]);
}

export function PodsPage() {
  const { q, sort: asked } = route.value;
  const sort = asked || DEFAULT_SORT;
  const all = pods.value;
  const [over, setOver] = useState(false);
  const rows = useMemo(() => podRows(all ?? [], q, sort), [all, q, sort]);
  const steady = useSteadyRows(rows, over, `${sort} ${q}`);
  useLookAtPods(all ?? []);
  const real = (all ?? []).filter(({ kind }) => kind === "pod").length;
  const shown = rows.filter(({ kind }) => kind === "member").length;
  return (
    <section class="list-page">
      <div class="toolbar">
        <h1>Pods</h1>
        <input
          type="search"
          data-search
          class="filter"
          placeholder="Filter: name, role, pid, container, workload   /"
          aria-label="Filter pods"
          spellcheck={false}
          value={q}
          onInput={(event) => patchRoute({ q: event.currentTarget.value }, "replace")}
        />
        <span class="muted push" aria-live="off">
          {plural(real, "pod")} · {plural(shown, "process", "processes")}
        </span>
      </div>
      {all !== null && real === 0 && q === "" && (
        <p class="page-note">
          No pod is running: every process is in the network namespace of the node. A pod is a network
          namespace with its processes.
        </p>
      )}
      {all === null ? (
        <Loading what="pods" />
      ) : rows.length === 0 ? (
        <Empty title={q === "" ? "No processes to show" : "Nothing matches the filter"}>
          {q !== "" && (
            <button type="button" onClick={() => patchRoute({ q: "" }, "replace")}>
              Clear the filter
            </button>
          )}
        </Empty>
      ) : (
        <div class="table-box" onPointerEnter={() => setOver(true)} onPointerLeave={() => setOver(false)}>
          <VirtualTable
            label="Pods and their processes"
            class="pod-table"
            rows={steady}
            columns={COLUMNS}
            rowKey={keyOf}
            subject={subjectOf}
            spanning={(row) => (row.kind === "pod" ? <PodHead pod={row.pod} /> : null)}
            sort={sort}
            onSort={(next) => patchRoute({ sort: next }, "replace")}
            onOpen={(row) => row.kind === "member" && openProcess(row.member.process)}
          />
        </div>
      )}
    </section>
  );
}
