// The table twin of the graph: the same samples by function.

import { useMemo } from "preact/hooks";
import type { FlameIndex } from "../lib/flame_index";
import { functionKey } from "../lib/flame_keys";
import { Kind } from "../lib/flamegraph";
import { amount, fileName, percent, visible } from "../lib/format";
import { type FunctionRow, functionTable } from "../lib/functions";
import { parseQuery } from "../lib/search";
import { patchRoute, route } from "../state/route";
import { Empty } from "./states";
import { type Column, VirtualTable } from "./virtual_table";

export const KIND_TEXT: Readonly<Record<number, string>> = {
  [Kind.Root]: "everything",
  [Kind.User]: "user",
  [Kind.Kernel]: "kernel",
  [Kind.InlinedUser]: "inlined",
  [Kind.InlinedKernel]: "inlined kernel",
  [Kind.Marker]: "marker",
  [Kind.Jit]: "JIT",
  [Kind.Other]: "merged",
  [Kind.Process]: "process",
  [Kind.Thread]: "thread",
};

interface Props {
  readonly index: FlameIndex;
  readonly root: number;
  readonly search: string;
  /** The row that is marked, as its key; empty for none. */
  readonly picked?: string;
  /** Few columns, to stand beside a graph. */
  readonly compact?: boolean;
  readonly onOpen: (row: FunctionRow) => void;
}

function sortRows(rows: FunctionRow[], sort: string): FunctionRow[] {
  const descending = sort.startsWith("-");
  const key = descending ? sort.slice(1) : sort;
  const sign = descending ? -1 : 1;
  const compare = (a: FunctionRow, b: FunctionRow): number => {
    if (key === "self") return a.self - b.self || a.total - b.total;
    if (key === "total") return a.total - b.total || a.self - b.self;
    if (key === "module") return a.module < b.module ? -1 : a.module > b.module ? 1 : 0;
    if (key === "kind") return a.kind - b.kind;
    return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
  };
  return rows.sort((a, b) => sign * compare(a, b) || (a.name < b.name ? -1 : 1));
}

function Bar({ part, whole }: { part: number; whole: number }) {
  return (
    <span class="bar-cell">
      {part > 0 && <span class="bar" style={{ width: `${whole > 0 ? (part / whole) * 100 : 0}%` }} />}
      <span>{percent(part, whole)}</span>
    </span>
  );
}

/** Columns that a table beside a graph has. */
const COMPACT = ["selfshare", "totalshare", "name"];
const SORTED = ["self", "total", "name", "module", "kind"];

export function FunctionTable({ index, root, search, picked = "", compact = false, onOpen }: Props) {
  const sort = SORTED.includes(route.value.sort.replace("-", "")) ? route.value.sort : "-self";
  const rows = useMemo(() => {
    const query = parseQuery(search);
    const all = functionTable(index, root).filter((row) => row.kind !== Kind.Root);
    if (query.kind !== "test") return all;
    return all.filter((row) => query.test(row.label));
  }, [index, root, search]);
  const sorted = useMemo(() => sortRows([...rows], sort), [rows, sort]);
  const whole = index.total[root]!;
  const numbers = index.graph.periodNs === 1 ? "Time" : "Samples";
  const columns = useMemo<readonly Column<FunctionRow>[]>(
    () => [
      {
        key: "self",
        title: "Self",
        help: `${numbers} in the function itself`,
        numeric: true,
        sortable: true,
        cell: (row) => amount(row.self, index.graph.periodNs),
      },
      {
        key: "selfshare",
        title: compact ? "Self" : "",
        cell: (row) => <Bar part={row.self} whole={whole} />,
      },
      {
        key: "total",
        title: "Total",
        help: `${numbers} with the function anywhere in the stack; recursion counts once`,
        numeric: true,
        sortable: true,
        cell: (row) => amount(row.total, index.graph.periodNs),
      },
      {
        key: "totalshare",
        title: compact ? "Total" : "",
        cell: (row) => <Bar part={row.total} whole={whole} />,
      },
      {
        key: "name",
        title: "Function",
        sortable: true,
        cell: (row) => (
          <span
            class="mono path"
            title={visible(row.name)}
            aria-current={picked !== "" && functionKey(row.label) === picked ? "true" : undefined}
          >
            {visible(row.name)}
          </span>
        ),
      },
      {
        key: "module",
        title: "Module",
        sortable: true,
        cell: (row) => (
          <span class="path" title={visible(row.module)}>
            {visible(fileName(row.module))}
          </span>
        ),
      },
      {
        key: "kind",
        title: "Kind",
        sortable: true,
        cell: (row) => <span class="muted">{KIND_TEXT[row.kind]}</span>,
      },
    ],
    [whole, index, numbers, picked, compact],
  );
  if (sorted.length === 0) return <Empty title="No function matches the search" />;
  return (
    <div class="table-box" data-function-table>
      <VirtualTable
        label="Functions with self and total samples. Enter shows callers and callees of the function"
        class={compact ? "function-table compact" : "function-table"}
        rows={sorted}
        columns={compact ? columns.filter(({ key }) => COMPACT.includes(key)) : columns}
        rowKey={(row) => `${row.kind} ${row.name} ${row.module}`}
        sort={sort}
        onSort={(next) => patchRoute({ sort: next }, "replace")}
        onOpen={onOpen}
      />
    </div>
  );
}
