// A table of fixed-height rows that draws only those in view. Arrow keys walk the rows.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

export const ROW_PX = 28;
const OVERSCAN = 6;

export interface Column<T> {
  readonly key: string;
  readonly title: string;
  readonly help?: string;
  readonly numeric?: boolean;
  readonly sortable?: boolean;
  readonly cell: (row: T) => ComponentChildren;
}

export interface VirtualTableProps<T> {
  readonly label: string;
  /** Class that sets the column widths (`grid-template-columns` in --columns). */
  readonly class: string;
  readonly rows: readonly T[];
  readonly columns: readonly Column<T>[];
  readonly rowKey: (row: T) => string;
  /** A row that spans all columns instead of having cells. */
  readonly spanning?: (row: T) => ComponentChildren | null;
  /** Column key, `-` in front for descending. */
  readonly sort: string;
  readonly onSort: (sort: string) => void;
  readonly onOpen?: (row: T) => void;
  /** What a new task is of while the row has the focus: "pid 12" or "pod 4026531840". */
  readonly subject?: (row: T) => string | undefined;
  /** Key of the row whose details are shown elsewhere. */
  readonly picked?: string;
}

/** The next sort when a header is used: numbers begin with the largest. */
export function toggledSort(sort: string, key: string, numeric: boolean): string {
  if (sort === key) return `-${key}`;
  if (sort === `-${key}`) return key;
  return numeric ? `-${key}` : key;
}

function Header<T>({
  column,
  sort,
  onSort,
}: {
  column: Column<T>;
  sort: string;
  onSort: (sort: string) => void;
}) {
  const direction = sort === column.key ? "ascending" : sort === `-${column.key}` ? "descending" : undefined;
  const text = column.numeric ? "th numeric" : "th";
  if (!column.sortable) {
    return (
      <div role="columnheader" class={text} title={column.help}>
        {column.title}
      </div>
    );
  }
  return (
    <div role="columnheader" class={text} aria-sort={direction ?? "none"}>
      <button
        type="button"
        title={column.help}
        onClick={() => onSort(toggledSort(sort, column.key, column.numeric ?? false))}
      >
        {column.title}
        <span aria-hidden="true" class="sort-mark">
          {direction === "ascending" ? "▲" : direction === "descending" ? "▼" : ""}
        </span>
      </button>
    </div>
  );
}

export function VirtualTable<T>(props: VirtualTableProps<T>) {
  const { rows, columns } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const [active, setActive] = useState(0);
  const focusWanted = useRef(false);

  useEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    setHeight(element.clientHeight);
    return () => observer.disconnect();
  }, []);

  const current = Math.min(active, rows.length - 1);
  useLayoutEffect(() => {
    if (!focusWanted.current) return;
    focusWanted.current = false;
    scroller.current?.querySelector<HTMLElement>(`[data-row="${current}"]`)?.focus({ preventScroll: true });
  });

  const first = Math.max(0, Math.floor(top / ROW_PX) - OVERSCAN);
  const last = Math.min(rows.length, Math.ceil((top + height) / ROW_PX) + OVERSCAN);

  const moveTo = (row: number): void => {
    const element = scroller.current;
    const target = Math.max(0, Math.min(rows.length - 1, row));
    if (element === null || rows.length === 0) return;
    const from = target * ROW_PX;
    if (from < element.scrollTop) element.scrollTop = from;
    else if (from + 2 * ROW_PX > element.scrollTop + height) element.scrollTop = from + 2 * ROW_PX - height;
    focusWanted.current = true;
    setTop(element.scrollTop);
    setActive(target);
  };

  const onKeyDown = (event: KeyboardEvent): void => {
    if (!(event.target instanceof HTMLElement) || !event.target.hasAttribute("data-row")) return;
    const page = Math.max(1, Math.floor(height / ROW_PX) - 2);
    const moves: Readonly<Record<string, number>> = {
      ArrowDown: current + 1,
      ArrowUp: current - 1,
      PageDown: current + page,
      PageUp: current - page,
      Home: 0,
      End: rows.length - 1,
    };
    const target = moves[event.key];
    const row = rows[current];
    if (target !== undefined) moveTo(target);
    else if (event.key === "Enter" && row !== undefined && props.onOpen !== undefined) props.onOpen(row);
    else return;
    event.preventDefault();
  };

  const visibleRows = [];
  for (let i = first; i < last; i += 1) {
    const row = rows[i]!;
    const span = props.spanning?.(row) ?? null;
    visibleRows.push(
      // biome-ignore lint/a11y/useKeyWithClickEvents: the grid handles Enter for its rows
      <div
        key={props.rowKey(row)}
        role="row"
        aria-rowindex={i + 2}
        data-row={i}
        data-subject={props.subject?.(row)}
        tabIndex={i === current ? 0 : -1}
        aria-selected={props.picked === undefined ? undefined : props.rowKey(row) === props.picked}
        class={`tr${i % 2 === 1 ? " odd" : ""}${span === null ? "" : " spanning"}${props.onOpen ? " openable" : ""}`}
        style={{ transform: `translateY(${i * ROW_PX}px)` }}
        onFocus={() => setActive(i)}
        onClick={(event) => {
          if (event.target instanceof HTMLElement && event.target.closest("button, a, input") !== null)
            return;
          if (getSelection()?.isCollapsed !== false) props.onOpen?.(row);
        }}
      >
        {span === null ? (
          columns.map((column) => (
            <div key={column.key} role="gridcell" class={column.numeric ? "td numeric" : "td"}>
              {column.cell(row)}
            </div>
          ))
        ) : (
          <div role="gridcell" class="td span-cell" aria-colspan={columns.length}>
            {span}
          </div>
        )}
      </div>,
    );
  }

  return (
    <div
      ref={scroller}
      class={`table ${props.class}`}
      role="grid"
      aria-label={props.label}
      aria-rowcount={rows.length + 1}
      aria-colcount={columns.length}
      tabIndex={-1}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      onKeyDown={onKeyDown}
    >
      <div role="row" class="thead" aria-rowindex={1}>
        {columns.map((column) => (
          <Header key={column.key} column={column} sort={props.sort} onSort={props.onSort} />
        ))}
      </div>
      <div role="rowgroup" class="tbody" style={{ height: `${rows.length * ROW_PX}px` }}>
        {visibleRows}
      </div>
    </div>
  );
}
