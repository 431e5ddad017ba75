// Values of requests for the stand-in, in buckets as the agent has them.

const STEPS = 16;

/** The bucket of a value, as the agent makes them (crates/model/src/spread.rs). */
function bucketOf(value) {
  if (value < 2 * STEPS) return [value, value];
  const doublings = Math.floor(Math.log2(value)) - 4;
  const width = 2 ** doublings;
  const from = Math.floor(value / width) * width;
  return [from, from + width - 1];
}

/** Values in buckets, as the agent sends them. */
export function valuesOf(values) {
  const buckets = new Map();
  for (const value of values) {
    const [from, to] = bucketOf(value);
    const found = buckets.get(from) ?? [from, to, 0];
    found[2] += 1;
    buckets.set(from, found);
  }
  const sorted = [...buckets.values()].sort((a, b) => a[0] - b[0]);
  const count = values.length;
  const [least, most] = count === 0 ? [null, null] : [Math.min(...values), Math.max(...values)];
  const bounds = (share) => {
    if (count === 0) return null;
    const rank = Math.max(1, Math.ceil(count * share));
    let seen = 0;
    const found = sorted.find(([, , number]) => {
      seen += number;
      return seen >= rank;
    });
    return [Math.max(found[0], least), Math.min(found[1], most)];
  };
  const known = { p50: bounds(0.5), p90: bounds(0.9), p99: bounds(0.99), p999: bounds(0.999) };
  const sum = values.reduce((all, value) => all + value, 0);
  return {
    count,
    sum,
    mean: count === 0 ? null : Math.floor(sum / count),
    min: least,
    max: most,
    ...Object.fromEntries(Object.entries(known).map(([name, found]) => [name, found?.[1] ?? null])),
    bounds: known,
    buckets: sorted,
  };
}

/** So many values around a middle, with a long tail. */
export function spread(next, count, middle, tail = 3) {
  return Array.from({ length: count }, () =>
    Math.max(1, Math.round(middle * Math.exp((next() + next() + next() - 1.5) * 0.7 + next() ** 18 * tail))),
  );
}
