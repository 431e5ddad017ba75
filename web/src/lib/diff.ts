// Reads a comparison of two profiles (docs/diff-format.md): one tree with what each side has.

import {
  type IdleAmount,
  type Label,
  Reader,
  readDepths,
  readIdle,
  readLabels,
  readStrings,
} from "./flamegraph";

/** A number of each side, the base first. */
export type Pair = readonly [a: number, b: number];

/** What makes both sides comparable: parts of everything, or amounts for each second. */
export const NORMS = ["share", "rate"] as const;
export type Norm = (typeof NORMS)[number];

const UNKNOWN = [null, "not_samples", "no_period"] as const;

/** What chance can explain, as the agent found it. */
export interface Chances {
  /** Why nothing is said, or null. */
  readonly unknown: (typeof UNKNOWN)[number];
  /** Of each node's total, as docs/diff-format.md writes it; empty where nothing is said. */
  readonly codes: Uint32Array;
}

/** The union of both trees in pre-order; the columns have one entry for each node. */
export interface DiffGraph {
  /** Time that one unit of each side stands for; 0 when it differs, 1 when units are nanoseconds. */
  readonly unitNs: Pair;
  /** Length of the time that each side covers. */
  readonly coveredNs: Pair;
  readonly idle: readonly [IdleAmount, IdleAmount] | null;
  readonly labels: readonly Label[];
  readonly depth: Uint32Array;
  readonly selfA: Float64Array;
  readonly selfB: Float64Array;
  readonly label: Uint32Array;
  readonly chances: Readonly<Record<Norm, Chances>>;
}

const FLAG_IDLE = 1;
/** Depth, both sides and label. */
const MIN_NODE_BYTES = 4;

function readSelf(reader: Reader, count: number): Float64Array {
  const self = new Float64Array(count);
  let sum = 0;
  for (let i = 0; i < count; i += 1) {
    const value = reader.varint("self count");
    sum += value;
    if (sum > Number.MAX_SAFE_INTEGER) reader.fail("the sum of a side is above 2^53");
    self[i] = value;
  }
  return self;
}

const MOST_CODE = 200_002;

function readChances(reader: Reader, count: number): Chances {
  const unknown = UNKNOWN[reader.index("reason", UNKNOWN.length)] ?? null;
  const codes = new Uint32Array(unknown === null ? count : 0);
  for (let i = 0; i < codes.length; i += 1) codes[i] = reader.index("chance", MOST_CODE + 1);
  return { unknown, codes };
}

/** Reads a whole PFD2 file; throws FlameFormatError on anything else. */
export function decodeDiff(bytes: Uint8Array): DiffGraph {
  const reader = new Reader(bytes);
  reader.start("PFD2");
  const flags = reader.varint("flags");
  if (flags > FLAG_IDLE) reader.fail(`unknown flags ${flags}`);
  const unitNs = [reader.varint("unit of the base"), reader.varint("unit")] as const;
  const coveredNs = [reader.varint("covered time of the base"), reader.varint("covered time")] as const;
  const idle = flags === FLAG_IDLE ? ([readIdle(reader), readIdle(reader)] as const) : null;
  const strings = readStrings(reader);
  const labels = readLabels(reader, strings);
  const count = reader.count("node count", MIN_NODE_BYTES);
  if (count === 0) reader.fail("has no root");
  const depth = readDepths(reader, count);
  const selfA = readSelf(reader, count);
  const selfB = readSelf(reader, count);
  const label = new Uint32Array(count);
  for (let i = 0; i < count; i += 1) label[i] = reader.index("node label", labels.length);
  const chances = { share: readChances(reader, count), rate: readChances(reader, count) };
  if (reader.left !== 0) reader.fail(`${reader.left} bytes after the last column`);
  return { unitNs, coveredNs, idle, labels, depth, selfA, selfB, label, chances };
}
