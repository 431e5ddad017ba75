// Which labels are the same function, and short names of functions and modules that fit an address
// bar and stay the same in every fetch and every task.

import { hashText } from "./flame_index";
import { Kind, type Label } from "./flamegraph";

const KEY = /^[0-9a-f]{16}$/;

function hex(text: string): string {
  const part = (seed?: number): string => hashText(text, seed).toString(16).padStart(8, "0");
  return part(0x9e3779b9) + part();
}

/** 16 hexadecimal digits for a function: its kind, name and module, whatever the line. */
export function functionKey({ kind, name, module }: Label): string {
  return hex(`${kind}\0${name}\0${module}`);
}

/** 16 hexadecimal digits for a module path. */
export function moduleKey(module: string): string {
  return hex(`module\0${module}`);
}

export function isKey(text: string): boolean {
  return KEY.test(text);
}

const functionsOf = new WeakMap<readonly Label[], Uint32Array>();

/** For each label the first label of the same function. Two processes of one name stay two. */
export function functionOf(labels: readonly Label[]): Uint32Array {
  const known = functionsOf.get(labels);
  if (known !== undefined) return known;
  const first = new Map<string, number>();
  const functions = new Uint32Array(labels.length);
  labels.forEach(({ kind, name, module }, i) => {
    const text = `${kind}\0${name}\0${module}`;
    const same = kind === Kind.Process || kind === Kind.Thread ? undefined : first.get(text);
    functions[i] = same ?? i;
    if (same === undefined) first.set(text, i);
  });
  functionsOf.set(labels, functions);
  return functions;
}

/** The function of this key, as its first label; -1 when the profile does not have it. */
export function findFunction(labels: readonly Label[], key: string): number {
  return isKey(key) ? labels.findIndex((label) => functionKey(label) === key) : -1;
}

/** The module path of this key; null when the profile does not have it. */
export function findModule(labels: readonly Label[], key: string): string | null {
  const found = isKey(key)
    ? labels.find(({ module }) => module !== "" && moduleKey(module) === key)
    : undefined;
  return found?.module ?? null;
}

const ranksOf = new WeakMap<readonly Label[], Uint32Array>();

/** For each label its place in the order of siblings: by name, then module, then kind. */
export function ranks(labels: readonly Label[]): Uint32Array {
  const known = ranksOf.get(labels);
  if (known !== undefined) return known;
  const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
  const order = Uint32Array.from(labels.keys()).sort((a, b) => {
    const one = labels[a]!;
    const two = labels[b]!;
    return compare(one.name, two.name) || compare(one.module, two.module) || one.kind - two.kind || a - b;
  });
  const result = new Uint32Array(labels.length);
  order.forEach((label, rank) => {
    result[label] = rank;
  });
  ranksOf.set(labels, result);
  return result;
}
