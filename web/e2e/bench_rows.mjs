// The table that a bench fills: each row with its target and what was measured.

import { median, percentile } from "./measure.mjs";

const shown = (value) => (value === null ? "-" : value >= 100 ? value.toFixed(0) : value.toPrecision(3));
const which = (of) => (of === 0.5 ? "median" : of === 1 ? "most" : `p${of * 100}`);

export class Rows {
  rows = [];

  /**
   * `values` in one unit. `limit` is for `of`, the share of the values that must hold it; with `least` they
   * must not be smaller.
   */
  add(name, unit, values, limit, of = 0.5, { least = false } = {}) {
    const measured = values.length === 0 ? null : percentile(values, of);
    const met = measured !== null && (least ? measured >= limit : measured <= limit);
    const row = {
      name,
      unit,
      measured,
      median: median(values),
      p95: percentile(values, 0.95),
      values: values.length,
      target: limit,
      of: which(of),
      compare: least ? ">=" : "<=",
      met,
    };
    this.rows.push(row);
    console.log(
      `${met ? "met   " : "MISSED"} ${name.padEnd(62)} median ${shown(row.median).padStart(8)}  p95 ${shown(row.p95).padStart(8)} ${unit.padEnd(4)} target ${row.of} ${row.compare} ${limit}`,
    );
  }

  get missed() {
    return this.rows.filter(({ met }) => !met).map(({ name }) => name);
  }

  /** As it stands in docs/performance.md. */
  markdown() {
    const line = ({ name, unit, measured, of, compare, target, median: middle, met }) =>
      `| ${name} | ${shown(middle)} ${unit} | ${shown(measured)} ${unit} (${of}) | ${compare} ${target} | ${met ? "yes" : "no"} |`;
    return [
      "| what | median | compared | target | met |",
      "|---|---|---|---|---|",
      ...this.rows.map(line),
    ].join("\n");
  }
}
