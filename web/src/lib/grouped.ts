/** Items by what they have in common, in their order; those without a key are left out. */
export function grouped<K, T>(all: Iterable<T>, key: (item: T) => K | null): Map<K, T[]> {
  const found = new Map<K, T[]>();
  for (const item of all) {
    const name = key(item);
    if (name === null) continue;
    const known = found.get(name);
    if (known === undefined) found.set(name, [item]);
    else known.push(item);
  }
  return found;
}
