// Comparisons as the stand-in has them: the columns, and the table of functions.

import { lengthMs } from "./mock_time.mjs";
import { random, synthetic } from "./synthetic.mjs";

/** Whether chance explains a difference, by a rule of thumb: the agent tests. Null for too few samples. */
function chanceOf([x, y], [wholeA, wholeB]) {
  if (x + y < 20 || wholeA * wholeB === 0) return null;
  const expected = ((x + y) * wholeB) / (wholeA + wholeB);
  const significant = Math.abs(y - expected) > 3 * Math.sqrt(x + y);
  return { significant, p: significant ? 0.00001 : 0.31 };
}

/** What each side has of a node and below it, and where its part of the nodes ends. */
function sumsOf({ depth, a, b }) {
  const totals = Array.from(depth, (_, i) => [a[i], b[i]]);
  const ends = Array.from(depth, (_, i) => i + 1);
  const path = [];
  depth.forEach((own, i) => {
    path.length = own;
    path.push(i);
    for (const above of path) ends[above] = i + 1;
    for (const above of path.slice(0, -1)) for (const side of [0, 1]) totals[above][side] += [a, b][side][i];
  });
  return { totals, ends };
}

function encodeDiff(diff) {
  const { unitNs, coveredNs, labels, depth, a, b, label } = diff;
  const out = [];
  const varint = (value) => {
    let rest = value;
    while (rest >= 128) {
      out.push((rest % 128) | 128);
      rest = Math.floor(rest / 128);
    }
    out.push(rest);
  };
  const ids = new Map([["", 0]]);
  for (const { name, module, file } of labels)
    for (const text of [name, module, file]) if (!ids.has(text)) ids.set(text, ids.size);
  for (const char of "PFD2") out.push(char.charCodeAt(0));
  for (const number of [0, ...unitNs, ...coveredNs, ids.size]) varint(number);
  for (const text of ids.keys()) {
    const utf8 = Buffer.from(text);
    varint(utf8.length);
    out.push(...utf8);
  }
  varint(labels.length);
  for (const { name, module, file, line, kind, source } of labels) {
    for (const text of [name, module, file]) varint(ids.get(text));
    varint(line);
    out.push(kind, source);
  }
  varint(depth.length);
  for (const column of [depth, a, b, label]) for (const value of column) varint(value);
  const { totals } = sumsOf(diff);
  for (const whole of [totals[0], coveredNs]) {
    varint(0);
    for (const total of totals) {
      const chance = chanceOf(total, whole);
      varint(chance === null ? 0 : 1 + 2 * Math.round(chance.p * 100_000) + Number(chance.significant));
    }
  }
  return Uint8Array.from(out);
}

const KINDS = ["root", "user", "kernel", "inlined", "inlined_kernel", "marker", "jit", "other", "process"];
const SHARES =
  "two-proportion z-test of self samples, two-sided; q by Benjamini and Hochberg over all tested functions, significant below 0.05";

/** The functions below a node, the largest change first. */
function tableOf(diff, [from, to], query) {
  const { unitNs, coveredNs, labels, a, b, label } = diff;
  const { totals, ends } = sumsOf(diff);
  const below = Number(query.get("below") ?? 0);
  const norm = query.get("norm") ?? "share";
  const whole = norm === "share" ? totals[0] : coveredNs.map((ns) => ns / 1e9);
  const change = (pair) => {
    const [before, after] = pair.map((value, side) => (whole[side] > 0 ? value / whole[side] : 0));
    return after - before;
  };
  const rows = new Map();
  for (let i = below; i < ends[below]; i += 1) {
    const { name, module, kind } = labels[label[i]];
    if (kind === 0) continue;
    const row = rows.get(label[i]) ?? {
      name,
      module,
      kind: KINDS[kind],
      self: [0, 0],
      total: [0, 0],
      open: 0,
    };
    rows.set(label[i], row);
    for (const side of [0, 1]) row.self[side] += [a, b][side][i];
    if (i < row.open) continue;
    for (const side of [0, 1]) row.total[side] += totals[i][side];
    row.open = ends[i];
  }
  const functions = [...rows.values()].map(({ open: _, ...row }) => {
    const chance = chanceOf(row.self, whole);
    const verdict = chance === null ? "too_few" : chance.significant ? "significant" : "not_significant";
    const badge = row.total[0] === 0 ? "new" : row.total[1] === 0 ? "removed" : null;
    const [z, p] = chance === null ? [null, null] : [chance.significant ? 4.4 : 1, chance.p];
    return { ...row, change: change(row.self), total_change: change(row.total), badge, verdict, z, p, q: p };
  });
  functions.sort((one, other) => Math.abs(other.change) - Math.abs(one.change));
  const side = (task, i) => ({
    source: task.id,
    total: totals[0][i],
    covered_ns: coveredNs[i],
    unit_ns: unitNs[i],
  });
  return {
    a: side(from, 0),
    b: side(to, 1),
    norm,
    value: "count",
    method: norm === "share" ? SHARES : "conditional test of two Poisson rates",
    unknown: null,
    root: { name: labels[label[below]].name, total: totals[below] },
    tested: functions.filter(({ p }) => p !== null).length,
    significant: functions.filter(({ verdict }) => verdict === "significant").length,
    all_functions: functions.length,
    functions: functions.slice(0, Number(query.get("limit") ?? 100)),
  };
}

/** The base is the usual tree; on the other side one function has doubled, some are new, some gone. */
function diffOf(a, b) {
  const { graph } = synthetic(1500, 7, 12_000);
  const factor = graph.labels.map(({ name }, i) => {
    if (i < 4) return 1;
    if (/finishSpan|FormatterImpl/.test(name)) return 3;
    if (i % 29 === 5) return 0;
    return 0.9 + random(i)() * 0.2;
  });
  const onlyNew = graph.labels.map((_, i) => i > 4 && i % 31 === 7);
  const before = graph.self.map((value, i) => (onlyNew[graph.label[i]] ? 0 : value));
  const after = graph.self.map((value, i) => Math.round(value * factor[graph.label[i]]));
  const none = (task, values) => (task.samples === 0 ? values.map(() => 0) : values);
  return {
    unitNs: [graph.periodNs, graph.periodNs],
    coveredNs: [lengthMs(a) * 1e6, lengthMs(b) * 1e6],
    labels: graph.labels,
    depth: graph.depth,
    a: none(a, before),
    b: none(b, after),
    label: graph.label,
  };
}

/** `/diff`: the columns as bytes, or the table as an object. */
export function mockDiff(a, b, query) {
  const diff = diffOf(a, b);
  return query.get("format") === "flamegraph" ? encodeDiff(diff) : tableOf(diff, [a, b], query);
}
