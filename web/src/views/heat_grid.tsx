// A heat map to look at, drag over and walk with the keyboard. What cells mean is the caller's.

import { useEffect, useRef, useState } from "preact/hooks";
import {
  DARK_HEAT,
  drawCells,
  drawOverlay,
  type HeatCells,
  LIGHT_HEAT,
  type PickedRows,
} from "../canvas/heat_painter";
import { dark } from "../state/preferences";
import { TimeTicks } from "./time_ticks";

export interface Cell {
  readonly column: number;
  readonly row: number;
}

interface Props {
  readonly heat: HeatCells;
  /** Draws the cells, in device pixels, where their darkness does not say everything. */
  readonly draw?: ((width: number, height: number) => HTMLCanvasElement) | undefined;
  /** Height and largest width of the picture in CSS pixels. */
  readonly height: number;
  readonly maxWidth: number;
  readonly label: string;
  /** What is picked now, and what a drag from one cell to another would pick. */
  readonly picked: PickedRows | null;
  readonly pickedBy: (a: Cell, b: Cell) => PickedRows;
  readonly dimmed: (row: number) => boolean;
  /** A cell in words. */
  readonly textOf: (cell: Cell) => string;
  /** What is said when no cell is pointed at. */
  readonly summary: string;
  /** The cell after a step in time, and after one across. */
  readonly step: (cell: Cell, key: string) => Cell;
  readonly onPick: (a: Cell, b: Cell) => void;
  readonly onClear: () => void;
  /** Space, or a click with Ctrl. */
  readonly onToggle?: (cell: Cell) => void;
  readonly onText: (text: string | null) => void;
  /** The time of all columns, in milliseconds. */
  readonly fromMs: number;
  readonly toMs: number;
}

export function HeatGrid(props: Props) {
  const { heat } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const picture = useRef<HTMLCanvasElement | null>(null);
  const [drag, setDrag] = useState<{ a: Cell; b: Cell } | null>(null);
  const [cursor, setCursor] = useState<Cell | null>(null);
  /** Where Shift and an arrow began. */
  const [anchor, setAnchor] = useState<Cell | null>(null);
  const [width, setWidth] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  const colours = dark.value ? DARK_HEAT : LIGHT_HEAT;
  const ratio = window.devicePixelRatio || 1;

  useEffect(() => {
    if (box.current === null) return;
    const observer = new ResizeObserver(([entry]) => {
      if (entry !== undefined) setWidth(Math.round(Math.min(props.maxWidth, entry.contentRect.width)));
    });
    observer.observe(box.current);
    return () => observer.disconnect();
  }, [props.maxWidth]);

  useEffect(() => {
    const across = Math.round(width * ratio);
    const down = Math.round(props.height * ratio);
    picture.current =
      width === 0
        ? null
        : props.draw === undefined
          ? drawCells(heat, across, down, colours)
          : props.draw(across, down);
  }, [heat, props.draw, width, props.height, colours, ratio]);

  const shown =
    drag !== null
      ? props.pickedBy(drag.a, drag.b)
      : anchor !== null && cursor !== null
        ? props.pickedBy(anchor, cursor)
        : props.picked;
  useEffect(() => {
    const element = canvas.current;
    if (element === null || picture.current === null) return;
    element.width = picture.current.width;
    element.height = picture.current.height;
    element.style.setProperty("width", `${width}px`);
    element.style.setProperty("height", `${props.height}px`);
    const context = element.getContext("2d", { alpha: false });
    if (context === null) return;
    drawOverlay(context, picture.current, heat, { picked: shown, dimmed: props.dimmed, cursor }, colours);
  });

  const cellOf = (event: PointerEvent | MouseEvent): Cell | null => {
    const rect = canvas.current?.getBoundingClientRect();
    if (rect === undefined || rect.width === 0 || heat.columns === 0) return null;
    const inside = (value: number, count: number): number =>
      Math.min(count - 1, Math.max(0, Math.floor(value * count)));
    return {
      column: inside((event.clientX - rect.left) / rect.width, heat.columns),
      row: inside((event.clientY - rect.top) / rect.height, heat.rows),
    };
  };
  const finish = (event: PointerEvent): void => {
    if (drag === null) return;
    setDrag(null);
    if ((event.ctrlKey || event.metaKey) && props.onToggle !== undefined) props.onToggle(drag.a);
    else if (drag.a.column === drag.b.column && drag.a.row === drag.b.row && props.picked !== null)
      props.onClear();
    else props.onPick(drag.a, drag.b);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || heat.columns === 0) return;
    const { key } = event;
    if (key.startsWith("Arrow")) {
      const from = cursor ?? { column: 0, row: 0 };
      const next = cursor === null ? from : props.step(from, key);
      if (event.shiftKey && anchor === null) setAnchor(from);
      else if (!event.shiftKey) setAnchor(null);
      setCursor(next);
      props.onText(props.textOf(next));
    } else if (key === "Enter" && cursor !== null) {
      props.onPick(anchor ?? cursor, cursor);
      setAnchor(null);
    } else if (key === " " && cursor !== null && props.onToggle !== undefined) props.onToggle(cursor);
    else if (key === "Escape" && (anchor !== null || props.picked !== null)) {
      if (anchor !== null) setAnchor(null);
      else props.onClear();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const text = cursor === null ? props.summary : props.textOf(cursor);
  return (
    <div
      ref={box}
      class="heat-box"
      role="slider"
      tabIndex={0}
      aria-label={props.label}
      aria-valuemin={0}
      aria-valuemax={Math.max(0, heat.columns * heat.rows - 1)}
      aria-valuenow={cursor === null ? 0 : cursor.column * heat.rows + cursor.row}
      aria-valuetext={text}
      onKeyDown={onKeyDown}
      onBlur={() => {
        setCursor(null);
        setAnchor(null);
        props.onText(null);
      }}
    >
      <canvas
        ref={canvas}
        class="heat-canvas"
        aria-hidden="true"
        onPointerDown={(event) => {
          const cell = cellOf(event);
          if (event.button !== 0 || cell === null) return;
          event.currentTarget.setPointerCapture(event.pointerId);
          setCursor(null);
          setAnchor(null);
          setDrag({ a: cell, b: cell });
        }}
        onPointerMove={(event) => {
          const cell = cellOf(event);
          if (cell === null) return;
          props.onText(props.textOf(cell));
          if (drag !== null) setDrag({ a: drag.a, b: cell });
        }}
        onPointerLeave={() => props.onText(null)}
        onPointerUp={finish}
        onPointerCancel={() => setDrag(null)}
      />
      <TimeTicks fromMs={props.fromMs} toMs={props.toMs} width={width} />
    </div>
  );
}
