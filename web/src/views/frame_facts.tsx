// What is known about one frame of a graph, in numbers and words: for the tooltip, the line below the
// graph, the panel and screen readers.

import { childCount, contains, type FlameIndex, labelOf } from "../lib/flame_index";
import { Kind, type Label } from "../lib/flamegraph";
import { amount, duration, percent, visible } from "../lib/format";
import { KIND_TEXT } from "./function_table";

/** What lies on a frame: what it called, or who called it. Of callers there are no self samples. */
export type Reading = "calls" | "callers";

const SOURCES = [
  "no trustworthy name: module and offset",
  "ELF symbol",
  "debug information",
  "kernel symbol",
  "vdso",
  "perf map",
  "the profiler",
  "imported",
  "inferred from class tables and source paths",
  "separate debug file",
  "compressed symbol table (.gnu_debugdata)",
  "debuginfod server",
  "Go's function table",
  "symbol file given by the user",
] as const;

/** "12.3 % · 1,234 · 12.3 s": share, amount and, of samples, the time they stand for. */
export function measured(samples: number, whole: number, periodNs: number): string {
  const time = periodNs > 1 ? ` · ${duration(samples * periodNs)}` : "";
  return `${percent(samples, whole)} · ${amount(samples, periodNs)}${time}`;
}

export function placeOf({ file, line }: Label): string {
  return file === "" ? "" : `${visible(file)}${line > 0 ? `:${line}` : ""}`;
}

/** Where the name came from; empty for what is not code. */
export function sourceOf(label: Label): string {
  const code = label.kind !== Kind.Root && label.kind !== Kind.Process && label.kind !== Kind.Thread;
  return code && label.kind !== Kind.Other ? (SOURCES[label.source] ?? "") : "";
}

/** Kind, module, place and origin of the name. */
export function Origin({ label }: { label: Label }) {
  const place = placeOf(label);
  const source = sourceOf(label);
  return (
    <span class="origin">
      <span>{KIND_TEXT[label.kind]}</span>
      {label.module !== "" && <span class="mono">{visible(label.module)}</span>}
      {place !== "" && <span class="mono">{place}</span>}
      {source !== "" && <span>{source}</span>}
    </span>
  );
}

export function Numbers(props: {
  index: FlameIndex;
  node: number;
  zoomed: number;
  reading: Reading;
  /** Samples of everything that is shown; in a sandwich more than those of the function. */
  whole: number;
}) {
  const { index, node, zoomed, reading, whole } = props;
  const { periodNs } = index.graph;
  return (
    <span class="numbers">
      <span>
        {reading === "calls" ? "total" : "by this path"}{" "}
        <b>{measured(index.total[node]!, whole, periodNs)}</b>
      </span>
      {reading === "calls" && (
        <span>
          self <b>{measured(index.graph.self[node]!, whole, periodNs)}</b>
        </span>
      )}
      {zoomed !== 0 && contains(index, zoomed, node) && (
        <span>
          of the zoom <b>{percent(index.total[node]!, index.total[zoomed]!)}</b>
        </span>
      )}
      {index.total[0] !== whole && node > 0 && (
        <span>
          of the function <b>{percent(index.total[node]!, index.total[0]!)}</b>
        </span>
      )}
    </span>
  );
}

/** One line that says what a frame is, for screen readers. */
export function describe(index: FlameIndex, node: number, reading: Reading, whole: number): string {
  const share = percent(index.total[node]!, whole);
  const numbers =
    reading === "calls"
      ? `${share} total, ${percent(index.graph.self[node]!, whole)} self`
      : `${share} by this path`;
  const depth = index.graph.depth[node]! + 1;
  const number = childCount(index, node);
  const one = reading === "calls" ? "child" : "caller";
  const children = number === 1 ? `1 ${one}` : `${number} ${reading === "calls" ? "children" : "callers"}`;
  const name = visible(labelOf(index, node).name);
  return `${name}, ${numbers}, depth ${depth} of ${index.rows}, ${children}`;
}
