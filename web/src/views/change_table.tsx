// The functions of a comparison with both sides, the change, and what chance can explain of it.

import { useMemo, useState } from "preact/hooks";
import { type ChangeRow, changes, type DiffIndex, normalised } from "../lib/diff_index";
import { amountText, changeText, normText, pText, UNKNOWN_TEXT, VERDICT_TEXT } from "../lib/diff_text";
import { count, fileName, visible } from "../lib/format";
import { parseQuery } from "../lib/search";
import { ALPHA } from "../lib/significance";
import { KIND_TEXT } from "./function_table";
import { Empty } from "./states";
import { type Column, VirtualTable } from "./virtual_table";

const VERDICT_ORDER = { significant: 0, not_significant: 1, too_few: 2, unknown: 3 } as const;

function sorted(rows: readonly ChangeRow[], sort: string): ChangeRow[] {
  const descending = sort.startsWith("-");
  const key = descending ? sort.slice(1) : sort;
  const sign = descending ? -1 : 1;
  const compare = (a: ChangeRow, b: ChangeRow): number => {
    if (key === "change") return Math.abs(a.change) - Math.abs(b.change);
    if (key === "total") return Math.abs(a.totalChange) - Math.abs(b.totalChange);
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
export function TestNote({ index, rows }: { index: DiffIndex; rows: readonly ChangeRow[] }) {
  if (index.unknown !== null) return <p class="muted order-note">{UNKNOWN_TEXT[index.unknown]}</p>;
  const tested = rows.filter((row) => row.q !== null).length;
  const found = rows.filter((row) => row.verdict === "significant").length;
  const method = index.norm === "share" ? "two-proportion z-test" : "test of two Poisson rates";
  return (
    <p class="muted order-note" data-test-note>
      {count(found)} of {count(tested)} tested functions changed significantly ({method} of self samples, q by
      Benjamini and Hochberg below {ALPHA}: of those called significant about one in twenty is chance).
      Samples of one long phase depend on each other, so a result near the limit deserves a second
      measurement.
    </p>
  );
}

export function ChangeTable({
  index,
  root,
  search,
  onFind,
}: {
  index: DiffIndex;
  root: number;
  search: string;
  onFind: (name: string) => void;
}) {
  const [sort, setSort] = useState("-change");
  const all = useMemo(() => changes(index, root), [index, root]);
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
        cell: (row) => <span class="muted">{changeText(index, row.totalChange)}</span>,
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
  return (
    <>
      <TestNote index={index} rows={all} />
      {rows.length === 0 ? (
        <Empty title="No function matches the search" />
      ) : (
        <div class="table-box" data-change-table>
          <VirtualTable
            label="Functions by their change. Enter finds the function in the graph"
            class="function-table change-table"
            rows={rows}
            columns={columns}
            rowKey={(row) => `${row.kind} ${row.name} ${row.module}`}
            sort={sort}
            onSort={setSort}
            onOpen={(row) => onFind(row.name)}
          />
        </div>
      )}
    </>
  );
}
