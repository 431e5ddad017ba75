// Who asked for the CPU (rows) by what it did (columns). Every sample is in exactly one cell, so rows
// and columns each add to 100 %. A cell opens the flame graph of only its samples.

import { useMemo, useRef, useState } from "preact/hooks";
import type { Matrix, MatrixCell } from "../api/types";
import { formatCell } from "../lib/cell";
import { type Flame, flameState, share } from "../lib/diagnosis";
import { count, visible } from "../lib/format";
import {
  cellWords,
  heatLevel,
  type MatrixTable,
  matrixTable,
  type Sum,
  stepCell,
  sumsTo100,
} from "../lib/matrix";
import { openView } from "../state/route";
import { PageLink } from "./page_link";

interface Place {
  readonly row: number;
  readonly column: number;
}

/** What stands in one place of the grid: a cell, or the sum of a row, of a column, or of all. */
interface Content {
  readonly percent: number | null;
  readonly level: number;
  /** In addresses; empty for everything, null for what has no samples. */
  readonly cell: string | null;
  readonly words: string;
}

const sumWords = (title: string, sum: Sum): string =>
  `${title}: ${share(sum.share_percent)}, ${count(sum.samples)} samples`;

function contentOf(table: MatrixTable, { row, column }: Place): Content {
  const { rows, columns, total, most } = table;
  const inRow = rows[row];
  const inColumn = columns[column];
  if (inRow === undefined && inColumn === undefined)
    return { percent: total.share_percent, level: 0, cell: "", words: sumWords("Everything", total) };
  if (inRow === undefined && inColumn !== undefined) {
    const { id, title, sum } = inColumn;
    const cell = formatCell({ feature: null, mechanism: id });
    return { percent: sum.share_percent, level: 0, cell, words: sumWords(visible(title), sum) };
  }
  if (inRow !== undefined && inColumn === undefined) {
    const { feature, sum } = inRow;
    const cell = formatCell({ feature: feature.id, mechanism: null });
    const about = feature.about === "" ? "" : `. ${visible(feature.about)}`;
    const set = feature.settings ? ". A setting changes what it costs" : "";
    return {
      percent: sum.share_percent,
      level: 0,
      cell,
      words: `${sumWords(visible(feature.title), sum)}${about}${set}`,
    };
  }
  const found: MatrixCell | null = inRow?.cells[column] ?? null;
  const [feature, mechanism] = [visible(inRow?.feature.title ?? ""), visible(inColumn?.title ?? "")];
  if (found === null)
    return { percent: null, level: 0, cell: null, words: `${feature} × ${mechanism}: no sample` };
  return {
    percent: found.share_percent,
    level: heatLevel(found.share_percent, most),
    cell: formatCell(found),
    words: visible(cellWords(found, feature, mechanism)),
  };
}

function GridCell(props: {
  content: Content;
  sum: boolean;
  focusable: boolean;
  flame: Flame;
  look: () => void;
}) {
  const { content, flame, look } = props;
  const { percent, cell, words } = content;
  const text = percent === null ? "" : share(percent).replace(/ %$/, "");
  const to = flameState(flame, { cell });
  return (
    <td
      // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: a table that keys walk is a grid
      role="gridcell"
      class={`numeric ${props.sum ? "matrix-sum" : `heat-${content.level}`}`}
      tabIndex={props.focusable ? 0 : -1}
      aria-label={to === null ? words : `${words}. Enter opens the flame graph`}
      onFocus={look}
      onPointerEnter={look}
    >
      {to === null ? (
        text
      ) : (
        <PageLink to={to} tabIndex={-1}>
          {text}
        </PageLink>
      )}
    </td>
  );
}

function Grid({ table, flame }: { table: MatrixTable; flame: Flame }) {
  const { rows, columns } = table;
  const body = useRef<HTMLTableSectionElement>(null);
  const [current, setCurrent] = useState<Place>({ row: 0, column: 0 });
  const [looked, setLooked] = useState<Place | null>(null);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.altKey || event.metaKey) return;
    const { cell } = contentOf(table, current);
    const to = flameState(flame, { cell });
    if (event.key === "Enter" && to !== null) {
      event.preventDefault();
      openView(to);
      return;
    }
    const next = stepCell(current, event.key, event.ctrlKey, rows.length + 1, columns.length + 1);
    if (next === null) return;
    event.preventDefault();
    event.stopPropagation();
    setCurrent(next);
    // The first cell of a row is its heading.
    body.current?.rows[next.row]?.cells[next.column + 1]?.focus();
  };
  const cellsOf = (row: number) =>
    [...columns, null].map((column, i) => {
      const place = { row, column: i };
      return (
        <GridCell
          key={column?.id ?? "sum"}
          content={contentOf(table, place)}
          sum={row === rows.length || column === null}
          focusable={current.row === row && current.column === i}
          flame={flame}
          look={() => {
            setLooked(place);
          }}
        />
      );
    });
  return (
    <>
      <div class="matrix-box">
        <table
          // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: a table that keys walk is a grid
          role="grid"
          class="matrix"
          aria-label="Share of the CPU by feature and mechanism, percent. Arrow keys walk the cells"
          onKeyDown={onKeyDown}
          onFocusIn={(event) => {
            const cell = event.target instanceof Element ? event.target.closest("td") : null;
            const row = cell?.parentElement;
            if (cell instanceof HTMLTableCellElement && row instanceof HTMLTableRowElement)
              setCurrent({ row: row.sectionRowIndex, column: cell.cellIndex - 1 });
          }}
        >
          <thead>
            <tr>
              <th scope="col">Feature</th>
              {columns.map(({ id, title }) => (
                <th key={id} scope="col" class="numeric">
                  {visible(title)}
                </th>
              ))}
              <th scope="col" class="numeric">
                Sum
              </th>
            </tr>
          </thead>
          <tbody ref={body}>
            {rows.map(({ feature }, row) => (
              <tr key={feature.id}>
                <th scope="row" title={visible(feature.about)}>
                  {visible(feature.title)}
                </th>
                {cellsOf(row)}
              </tr>
            ))}
            <tr>
              <th scope="row">Sum</th>
              {cellsOf(rows.length)}
            </tr>
          </tbody>
        </table>
      </div>
      <p class="matrix-words" data-matrix-words>
        {looked === null ? (
          <span class="muted">
            Point at a cell for its interval, samples and rules
            {flame.task === null
              ? "."
              : "; click it, or press Enter, for the flame graph of its samples alone."}
          </span>
        ) : (
          contentOf(table, looked).words
        )}
      </p>
    </>
  );
}

function Left({ what, titles }: { what: string; titles: readonly string[] }) {
  if (titles.length === 0) return null;
  return (
    <p class="muted small">
      No sample at all in the {what}: {titles.map(visible).join(" · ")}
    </p>
  );
}

export function CostMatrix({ matrix, flame }: { matrix: Matrix; flame: Flame }) {
  const table = useMemo(() => matrixTable(matrix), [matrix]);
  const { rows, total, empty } = table;
  return (
    <section class="card wide" aria-labelledby="matrix-title">
      <h2 id="matrix-title">CPU by feature and kind of work</h2>
      <p class="muted small">
        Percent of the CPU time. Rows are features, columns the kind of work; each sample is in exactly one
        cell.
      </p>
      {rows.length === 0 ? (
        <p class="muted">Nothing ran on a CPU while it was measured: there is nothing to share out.</p>
      ) : (
        <Grid table={table} flame={flame} />
      )}
      {rows.length > 0 && !sumsTo100(total) && (
        <p class="warn" role="alert">
          The cells add to {share(total.share_percent)} instead of 100 %: the agent has counted wrong.
        </p>
      )}
      <Left what="features" titles={empty.features} />
      <Left what="mechanisms" titles={empty.mechanisms} />
    </section>
  );
}
