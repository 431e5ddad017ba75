// Reader of the flame graph columns (docs/flamegraph-format.md, version PFG1).
//
// The bytes come from the agent, but their content was chosen by the profiled programs, so the
// reader trusts nothing: every read is bounds-checked, every count is compared with the bytes that
// are left before anything is allocated, and every malformed input ends in a FlameFormatError.

/** Why an input is not a PFG1 file, and at which byte that was seen. */
export class FlameFormatError extends Error {
  override readonly name = "FlameFormatError";
  readonly offset: number;

  constructor(what: string, offset: number) {
    super(`flame graph data: ${what} (byte ${offset})`);
    this.offset = offset;
  }
}

export const Kind = {
  Root: 0,
  User: 1,
  Kernel: 2,
  InlinedUser: 3,
  InlinedKernel: 4,
  Marker: 5,
  Jit: 6,
  Other: 7,
  Process: 8,
  Thread: 9,
} as const;
export const LAST_KIND = Kind.Thread;

export const NameSource = {
  None: 0,
  ElfSymbol: 1,
  Dwarf: 2,
  Kallsyms: 3,
  Vdso: 4,
  PerfMap: 5,
  Marker: 6,
  Imported: 7,
  Inferred: 8,
  DebugFile: 9,
  MiniDebug: 10,
  Debuginfod: 11,
  GoTable: 12,
  SymbolPack: 13,
} as const;
const LAST_NAME_SOURCE = NameSource.SymbolPack;

/** What a frame is called and where it comes from. All text is untrusted. */
export interface Label {
  readonly name: string;
  readonly module: string;
  readonly file: string;
  /** 0 when unknown. */
  readonly line: number;
  readonly kind: number;
  readonly source: number;
}

/** How much is idle of everything, whether it is part of the tree or not. */
export interface IdleAmount {
  readonly count: number;
  readonly ns: number;
  readonly totalCount: number;
  readonly totalNs: number;
}

/** A tree in pre-order; the three columns have one entry for each node. */
export interface FlameGraph {
  /** Nanoseconds that one sample stands for; 0 when rows differ. */
  readonly periodNs: number;
  /** Null where no thread waits. */
  readonly idle: IdleAmount | null;
  readonly labels: readonly Label[];
  readonly depth: Uint32Array;
  /** Samples whose leaf this node is. */
  readonly self: Float64Array;
  readonly label: Uint32Array;
  /** Which part of the program asked for the work, where the agent said it. */
  readonly features?: Features;
}

/** Features of the diagnosis, such as tracing or a filter. */
export interface Features {
  readonly titles: readonly string[];
  /** For each node the number of the feature that its own samples belong to; MIXED for several, and without any. */
  readonly own: Uint16Array;
}

/** Samples belong to more than one feature. */
export const MIXED = 0xffff;

/** The server never sends more; a larger answer is refused before it is read. */
export const MAX_INPUT_BYTES = 64 * 1024 * 1024;
const FLAG_IDLE = 1;
const FLAG_FEATURES = 2;
const MAX_VARINT_BYTES = 10;
const MIN_LABEL_BYTES = 6;
const MIN_NODE_BYTES = 3;

/** Reads bounded numbers and text; also used for comparisons (diff.ts). */
export class Reader {
  at = 0;
  readonly bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  fail(what: string): never {
    throw new FlameFormatError(what, this.at);
  }

  /** Refuses what is too large or does not begin with `magic`. */
  start(magic: string): void {
    if (this.bytes.length > MAX_INPUT_BYTES) this.fail(`has more than ${MAX_INPUT_BYTES} bytes`);
    for (const char of magic) {
      if (this.byte("the magic") !== char.charCodeAt(0)) this.fail(`does not start with ${magic}`);
    }
  }

  get left(): number {
    return this.bytes.length - this.at;
  }

  byte(what: string): number {
    const value = this.bytes[this.at];
    if (value === undefined) this.fail(`ends inside ${what}`);
    this.at += 1;
    return value;
  }

  varint(what: string): number {
    let value = 0;
    let scale = 1;
    for (let count = 0; count < MAX_VARINT_BYTES; count += 1) {
      const byte = this.byte(what);
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) {
        if (value > Number.MAX_SAFE_INTEGER) this.fail(`${what} is above 2^53`);
        return value;
      }
      scale *= 128;
    }
    this.fail(`${what} has more than ${MAX_VARINT_BYTES} bytes`);
  }

  /** A count of things that take at least `minBytes` each, so that it can be allocated safely. */
  count(what: string, minBytes: number): number {
    const value = this.varint(what);
    if (value * minBytes > this.left) this.fail(`${what} of ${value} does not fit the rest of the data`);
    return value;
  }

  index(what: string, limit: number): number {
    const value = this.varint(what);
    if (value >= limit) this.fail(`${what} ${value} is out of range (${limit})`);
    return value;
  }
}

export function readStrings(reader: Reader): string[] {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const count = reader.count("string count", 1);
  const strings: string[] = [];
  for (let i = 0; i < count; i += 1) {
    const length = reader.varint("string length");
    if (length > reader.left) reader.fail("ends inside a string");
    const end = reader.at + length;
    try {
      strings.push(decoder.decode(reader.bytes.subarray(reader.at, end)));
    } catch {
      reader.fail("a string is not UTF-8");
    }
    reader.at = end;
  }
  if (strings[0] !== "") reader.fail("string 0 is not empty");
  return strings;
}

export function readLabels(reader: Reader, strings: readonly string[]): Label[] {
  const count = reader.count("label count", MIN_LABEL_BYTES);
  const text = (what: string): string => strings[reader.index(what, strings.length)] ?? "";
  const labels: Label[] = [];
  for (let i = 0; i < count; i += 1) {
    const name = text("label name");
    const module = text("label module");
    const file = text("label file");
    const line = reader.varint("label line");
    const kind = reader.byte("label kind");
    if (kind > LAST_KIND) reader.fail(`unknown kind ${kind}`);
    const source = reader.byte("label name source");
    if (source > LAST_NAME_SOURCE) reader.fail(`unknown name source ${source}`);
    labels.push({ name, module, file, line, kind, source });
  }
  return labels;
}

export function readDepths(reader: Reader, count: number): Uint32Array {
  const depth = new Uint32Array(count);
  let previous = -1;
  for (let i = 0; i < count; i += 1) {
    const value = reader.varint("depth");
    const valid = i === 0 ? value === 0 : value >= 1 && value <= previous + 1;
    if (!valid) reader.fail(`depth ${value} after depth ${previous}`);
    depth[i] = value;
    previous = value;
  }
  return depth;
}

function readSelf(reader: Reader, count: number): Float64Array {
  const self = new Float64Array(count);
  let sum = 0;
  for (let i = 0; i < count; i += 1) {
    const value = reader.varint("self count");
    sum += value;
    if (sum > Number.MAX_SAFE_INTEGER) reader.fail("the sum of all samples is above 2^53");
    self[i] = value;
  }
  return self;
}

export function readIdle(reader: Reader): IdleAmount {
  const count = reader.varint("idle count");
  const ns = reader.varint("idle time");
  const totalCount = reader.varint("count of everything");
  const totalNs = reader.varint("time of everything");
  if (count > totalCount || ns > totalNs) reader.fail("more is idle than there is");
  return { count, ns, totalCount, totalNs };
}

function readFeatures(reader: Reader, strings: readonly string[], nodes: number): Features {
  const count = reader.count("feature count", 1);
  if (count >= MIXED) reader.fail(`${count} features`);
  const titles: string[] = [];
  for (let i = 0; i < count; i += 1)
    titles.push(strings[reader.index("feature title", strings.length)] ?? "");
  const own = new Uint16Array(nodes);
  for (let i = 0; i < nodes; i += 1) {
    const number = reader.index("feature of a node", count + 1);
    own[i] = number === 0 ? MIXED : number - 1;
  }
  return { titles, own };
}

/** Reads a whole PFG1 file; throws FlameFormatError on anything else. */
export function decodeFlameGraph(bytes: Uint8Array): FlameGraph {
  const reader = new Reader(bytes);
  reader.start("PFG1");
  const flags = reader.varint("flags");
  if (flags > (FLAG_IDLE | FLAG_FEATURES)) reader.fail(`unknown flags ${flags}`);
  const periodNs = reader.varint("period");
  const idle = (flags & FLAG_IDLE) === 0 ? null : readIdle(reader);
  const strings = readStrings(reader);
  const labels = readLabels(reader, strings);
  const count = reader.count("node count", MIN_NODE_BYTES);
  if (count === 0) reader.fail("has no root");
  const depth = readDepths(reader, count);
  const self = readSelf(reader, count);
  const label = new Uint32Array(count);
  for (let i = 0; i < count; i += 1) label[i] = reader.index("node label", labels.length);
  const features = (flags & FLAG_FEATURES) === 0 ? {} : { features: readFeatures(reader, strings, count) };
  if (reader.left !== 0) reader.fail(`${reader.left} bytes after the last column`);
  return { periodNs, idle, labels, depth, self, label, ...features };
}
