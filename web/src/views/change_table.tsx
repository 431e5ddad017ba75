// The functions of a comparison with both sides, the change, and what chance can explain of it.

import { useMemo, useState } from "preact/hooks";
import type { DiffSide } from "../api/client";
import type { ChangedFunctions } from "../api/types";
import { type ChangeRow, changeRows, type DiffIndex, normalised } from "../lib/diff_index";
import { amountText, changeText, normText, pText, UNKNOWN_TEXT, VERDICT_TEXT } from "../lib/diff_text";
import { count, fileName, visible } from "../lib/format";
import { parseQuery } from "../lib/search";
import { useChanges } from "../state/diff";
import { KIND_TEXT } from "./function_table";
import { Empty, ErrorBox, Loading } from "./states";
import { type Column, VirtualTable } from "./virtual_table";

const VERDICT_ORDER = { significant: 0, not_significant: 1, too_few: 2, unknown: 3 } as const;

function sorted(rows: readonly ChangeRow[], sort: string): ChangeRow[] {
  const descending = sort.startsWith("-");
  const key = descending ? sort.slice(1) : sort;
  const sign = descending ? -1 : 1;
  const compare = (a: ChangeRow, b: ChangeRow): number => {
    if (key === "change") return Math.abs(a.change) - Math.abs(b.change);
    if (key === "total") return Math.abs(a.total_change) - Math.abs(b.total_change);
    if (key === "before") return a.self[0] - b.self[0];
    if (key === "after") return a.self[1] - b.self[1];
    if (key === "verdict")
      return VERDICT_ORDER[a.verdict] - VERDICT_ORDER[b.verdict] || (a.q ?? 2) - (b.q ?? 2);
    if (key === "module") return a.module < b.module ? -1 : a.module > b.module ? 1 : 0;
    return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
  };
  return [...rows].sort((a, b) => sign * compare(a, b) || Math.abs(b.change) - Math.abs(a.change));
}

function Change({ index, row, change }: { index: DiffIndex; row: ChangeRow; change: number }) {
  const grey = row.verdict === "not_significant" || row.verdict === "too_few" || change === 0;
  return (
    <span class={grey ? "diff-grey" : change > 0 ? "diff-more" : "diff-less"}>
      {changeText(index, change)}
    </span>
  );
}

function Chance({ row }: { row: ChangeRow }) {
  const text =
    row.q === null
      ? VERDICT_TEXT[row.verdict]
      : `${VERDICT_TEXT[row.verdict]}, q ${row.q < 0.0001 ? "< 0.0001" : `= ${row.q.toFixed(4)}`}`;
  const title =
    row.p === null
      ? text
      : `${pText(row.p)} for this function alone; q takes all tested functions into account`;
  return (
    <span class={row.verdict === "significant" ? "" : "diff-grey"} title={title}>
      {row.badge !== null && <span class="diff-badge">{row.badge === "new" ? "new" : "gone"}</span>} {text}
    </span>
  );
}

/** What the numbers of the table can and cannot say. */
function TestNote({ index, table }: { index: DiffIndex; table: ChangedFunctions }) {
  const { unknown } = index.diff.chances[index.norm];
  const { significant, tested, method, functions, all_functions: all } = table;
  return (
    <p class="muted order-note" data-test-note>
      {unknown !== null
        ? UNKNOWN_TEXT[unknown]
        : `${count(significant)} of ${count(tested)} tested functions changed significantly: ${method}.`}
      {all > functions.length && ` The ${count(all - functions.length)} smallest changes are left out.`}
    </p>
  );
}

interface Props {
  readonly a: DiffSide;
  readonly b: DiffSide;
  readonly index: DiffIndex;
  /** The node that the functions are below. */
  readonly root: number;
  readonly search: string;
  readonly onFind: (name: string) => void;
}

export function ChangeTable(props: Props) {
  const [sort, setSort] = useState("-change");
  const { table, error } = useChanges(props.a, props.b, props.index, props.root);
  if (table === null)
    return error === null ? (
      <Loading what="the functions" />
    ) : (
      <ErrorBox title="No functions to show" detail={error} />
    );
  return (
    <>
      {error !== null && (
        <p class="field-error" role="alert">
          Not up to date: {error}
        </p>
      )}
      <TestNote index={props.index} table={table} />
      <Functions {...props} table={table} sort={sort} onSort={setSort} />
    </>
  );
}

interface FunctionsProps extends Pick<Props, "index" | "search" | "onFind"> {
  readonly table: ChangedFunctions;
  readonly sort: string;
  readonly onSort: (sort: string) => void;
}

function Functions({ index, table, search, onFind, sort, onSort }: FunctionsProps) {
  const all = useMemo(() => changeRows(table), [table]);
  const rows = useMemo(() => {
    const query = parseQuery(search);
    const found =
      query.kind !== "test" ? all : all.filter((row) => query.test({ ...row, file: "", line: 0, source: 0 }));
    return sorted(found, sort);
  }, [all, search, sort]);
  const columns = useMemo<readonly Column<ChangeRow>[]>(() => {
    const side = (which: 0 | 1) => (row: ChangeRow) => (
      <span title={amountText(index, row.self[which], which)}>
        {normText(index, normalised(index, row.self)[which], which)}
      </span>
    );
    return [
      {
        key: "before",
        title: "Base",
        help: "In the function itself, in the base",
        numeric: true,
        sortable: true,
        cell: side(0),
      },
      {
        key: "after",
        title: "Now",
        help: "In the function itself, in the shown result",
        numeric: true,
        sortable: true,
        cell: side(1),
      },
      {
        key: "change",
        title: "Change",
        help: "Of the function itself; sorted by size",
        numeric: true,
        sortable: true,
        cell: (row) => <Change index={index} row={row} change={row.change} />,
      },
      {
        key: "total",
        title: "With callees",
        help: "Change with the function anywhere in the stack; recursion counts once",
        numeric: true,
        sortable: true,
        cell: (row) => <span class="muted">{changeText(index, row.total_change)}</span>,
      },
      {
        key: "kind",
        title: "Kind",
        cell: (row) => <span class="muted">{KIND_TEXT[row.kind]}</span>,
      },
      {
        key: "verdict",
        title: "Chance",
        help: "Whether chance can explain the change of the function itself",
        sortable: true,
        cell: (row) => <Chance row={row} />,
      },
      {
        key: "name",
        title: "Function",
        sortable: true,
        cell: (row) => (
          <span class="mono path" title={visible(row.name)}>
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
    ];
  }, [index]);
  if (rows.length === 0) return <Empty title="No function matches the search" />;
  return (
    <div class="table-box" data-change-table>
      <VirtualTable
        label="Functions by their change. Enter finds the function in the graph"
        class="function-table change-table"
        rows={rows}
        columns={columns}
        rowKey={(row) => `${row.kind} ${row.name} ${row.module}`}
        sort={sort}
        onSort={onSort}
        onOpen={(row) => onFind(row.name)}
      />
    </div>
  );
}
