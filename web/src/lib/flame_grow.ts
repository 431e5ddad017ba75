// Grows a tree from another one: frames that get the same path become one node. Made for a million
// nodes: where only one node of the old tree leads to a new one, its children are copied as they are,
// and only those of the others are looked up.

import { ranks } from "./flame_keys";
import { type FlameGraph, type Label, MIXED } from "./flamegraph";

const NONE = -1;
/** For `from` of a child that may be there already. */
export const ANYWHERE = -2;

export class Grower {
  private readonly parent: Int32Array;
  private readonly label: Uint32Array;
  private readonly self: Float64Array;
  private readonly firstChild: Int32Array;
  private readonly lastChild: Int32Array;
  private readonly next: Int32Array;
  /** The old node that made each new one. */
  private readonly owner: Int32Array;
  /** 1 for new nodes whose children come from several places: those children are in the table. */
  private readonly mixed: Uint8Array;
  /** Features of the own samples of the old nodes and of the new ones; null without them. */
  private readonly from: Uint16Array | null;
  private readonly feature: Uint16Array | null;
  private table = new Int32Array(1024).fill(NONE);
  private inTable = 0;
  private count = 1;

  /** Never makes more than `capacity` nodes below the root. */
  constructor(rootLabel: number, rootOwner: number, capacity: number, features: Uint16Array | null) {
    const size = capacity + 1;
    this.from = features;
    this.feature = features === null ? null : new Uint16Array(size).fill(MIXED);
    this.parent = new Int32Array(size);
    this.label = new Uint32Array(size);
    this.self = new Float64Array(size);
    this.firstChild = new Int32Array(size);
    this.lastChild = new Int32Array(size);
    this.next = new Int32Array(size);
    this.owner = new Int32Array(size);
    this.mixed = new Uint8Array(size);
    this.label[0] = rootLabel;
    this.parent[0] = NONE;
    this.firstChild[0] = NONE;
    this.lastChild[0] = NONE;
    this.next[0] = NONE;
    this.owner[0] = rootOwner;
  }

  /**
   * The child of `up` with this label, for the old node `node` whose parent is `from`; made when it is
   * not there. Node 0 is the root.
   */
  child(up: number, label: number, node: number, from: number): number {
    if (this.mixed[up] === 0) {
      if (this.owner[up] === from) return this.append(up, label, node);
      this.mix(up);
    }
    const found = this.table[this.slot(up, label)]!;
    if (found !== NONE) return found;
    const made = this.append(up, label, node);
    this.insert(made);
    return made;
  }

  /** Adds own samples of the old node `from`. */
  add(node: number, amount: number, from: number): void {
    if (this.feature !== null && amount > 0) {
      const feature = this.from![from]!;
      const isFirst = this.self[node] === 0;
      if (isFirst) this.feature[node] = feature;
      else if (this.feature[node] !== feature) this.feature[node] = MIXED;
    }
    this.self[node]! += amount;
  }

  private append(up: number, label: number, node: number): number {
    const made = this.count;
    this.count += 1;
    this.parent[made] = up;
    this.label[made] = label;
    this.owner[made] = node;
    this.firstChild[made] = NONE;
    this.lastChild[made] = NONE;
    this.next[made] = NONE;
    const last = this.lastChild[up]!;
    if (last === NONE) this.firstChild[up] = made;
    else this.next[last] = made;
    this.lastChild[up] = made;
    return made;
  }

  private mix(up: number): void {
    this.mixed[up] = 1;
    for (let child = this.firstChild[up]!; child !== NONE; child = this.next[child]!) this.insert(child);
  }

  /** Where the child is in the table, or where it would be. */
  private slot(up: number, label: number): number {
    const mask = this.table.length - 1;
    let slot = Math.imul(up, 0x9e3779b1) ^ Math.imul(label + 1, 0x85ebca6b);
    slot ^= slot >>> 15;
    for (slot &= mask; ; slot = (slot + 1) & mask) {
      const node = this.table[slot]!;
      if (node === NONE || (this.parent[node] === up && this.label[node] === label)) return slot;
    }
  }

  private insert(node: number): void {
    if ((this.inTable + 1) * 2 > this.table.length) {
      const before = this.table;
      this.table = new Int32Array(before.length * 2).fill(NONE);
      for (const other of before)
        if (other !== NONE) this.table[this.slot(this.parent[other]!, this.label[other]!)] = other;
    }
    this.table[this.slot(this.parent[node]!, this.label[node]!)] = node;
    this.inTable += 1;
  }

  /** The columns in pre-order. Children from several places are put in the order of their names. */
  finish(base: FlameGraph, labels: readonly Label[]): FlameGraph {
    const { count } = this;
    const depth = new Uint32Array(count);
    const self = new Float64Array(count);
    const label = new Uint32Array(count);
    const feature = this.feature && new Uint16Array(count);
    let node = 0;
    let level = 0;
    for (let at = 0; ; at += 1) {
      depth[at] = level;
      self[at] = this.self[node]!;
      label[at] = this.label[node]!;
      if (feature !== null) feature[at] = this.feature![node]!;
      if (this.mixed[node] === 1) this.order(node, ranks(labels));
      if (this.firstChild[node] !== NONE) {
        node = this.firstChild[node]!;
        level += 1;
        continue;
      }
      while (node > 0 && this.next[node] === NONE) {
        node = this.parent[node]!;
        level -= 1;
      }
      if (node <= 0) {
        const features = base.features && feature && { features: { ...base.features, own: feature } };
        return { ...base, labels, depth, self, label, ...features };
      }
      node = this.next[node]!;
    }
  }

  private order(up: number, rank: Uint32Array): void {
    const children: number[] = [];
    for (let child = this.firstChild[up]!; child !== NONE; child = this.next[child]!) children.push(child);
    if (children.length < 2) return;
    children.sort((a, b) => rank[this.label[a]!]! - rank[this.label[b]!]!);
    children.forEach((child, i) => {
      this.next[child] = children[i + 1] ?? NONE;
    });
    this.firstChild[up] = children[0]!;
  }
}
