// The series of a made-up edge: its totals, spread over seconds so that they add up exactly.

/** Shares of the total that were counted until each second: uneven, never less than before. */
function shares(seconds) {
  const weights = Array.from({ length: seconds }, (_, i) => 1.2 + Math.sin(i / 5) + (i % 17 === 3 ? 3 : 0));
  const all = weights.reduce((sum, weight) => sum + weight, 0);
  let until = 0;
  return weights.map((weight, i) => {
    until += weight;
    return i === seconds - 1 ? 1 : until / all;
  });
}

/** The series of `edge` over so many seconds; `range` cuts it as the agent does. */
export function edgeSeries(edge, unavailable, seconds, range) {
  const parts = shares(Math.max(1, seconds));
  const inside = parts
    .map((_, i) => i)
    .filter((i) => (i + 1) * 1000 > (range.from ?? 0) && i * 1000 < (range.to ?? Number.POSITIVE_INFINITY));
  const spread = (total) => {
    const until = parts.map((part) => Math.round(total * part));
    return inside.map((i) => until[i] - (i === 0 ? 0 : until[i - 1]));
  };
  const values = (found, sum) => {
    if (found.histogram === null) return null;
    const buckets = found.histogram.counts.map((total) => spread(total));
    const counts = inside.map((_, step) =>
      buckets.flatMap((of, bucket) => (of[step] > 0 ? [[bucket, of[step]]] : [])),
    );
    return {
      count: counts.map((step) => step.reduce((all, [, number]) => all + number, 0)),
      sum: spread(sum),
      bounds: found.histogram.bounds,
      buckets: counts,
    };
  };
  const named = (count, by) => ({
    count: spread(count),
    by_name: Object.fromEntries(Object.entries(by).map(([name, number]) => [name, spread(number)])),
  });
  /** The series of one metric, of the form that its totals have. */
  const series = (found) => {
    if (found === null) return null;
    if ("bytes" in found)
      return { count: spread(found.count), bytes: spread(found.bytes), time: values(found, found.time_ns) };
    if ("histogram" in found) return values(found, found.sum ?? found.time_ns);
    if ("sent" in found) return { sent: spread(found.sent), received: spread(found.received) };
    const by = found.by_reason ?? found.by_errno;
    return by === undefined ? spread(found.count) : named(found.count, by);
  };
  const side = (found) => {
    if (found === null) return null;
    const { connections, min_rtt_us: _, socket: __, ...metrics } = found;
    return {
      connections: spread(connections.count),
      open: inside.map(() => connections.open),
      connects_failed: found.connect && spread(found.connect.failed),
      ...Object.fromEntries(Object.entries(metrics).map(([name, metric]) => [name, series(metric)])),
    };
  };
  return {
    edge: edge.id,
    steps_ms: inside.map((i) => [i * 1000, (i + 1) * 1000]),
    client: side(edge.metrics.client),
    server: side(edge.metrics.server),
    unavailable,
    late_steps: 0,
    left_out: 0,
    damaged: 0,
  };
}

/** The single connections of an edge, while its measurement runs. */
export function edgeConnections(edge, live) {
  const of = (side, found, end, other) =>
    found === null
      ? []
      : Array.from({ length: found.connections.open }, (_, i) => ({
          side,
          local: `${end.address}:${end.port ?? 40_000 + i}`,
          remote: `${other.address}:${other.port ?? 40_000 + i}`,
          pid: end.pid,
          age_ms: 61_000 * i + 900,
          open: i % 7 !== 6,
          write_calls: 40,
          write_bytes: Math.round((found.write?.bytes ?? 0) / (i + 2)),
          read_calls: 43,
          read_bytes: Math.round((found.read?.bytes ?? 0) / (i + 2)),
          rtt_mean_us: i % 5 === 4 ? null : 240 + i,
          min_rtt_us: i % 5 === 4 ? null : 40 + i,
          retransmits: i === 0 ? (found.retransmit?.count ?? null) : 0,
          drops: found.drop === null ? null : 0,
        }));
  const items = [
    ...of("client", edge.metrics.client, edge.client, edge.server),
    ...of("server", edge.metrics.server, edge.server, edge.client),
  ];
  return {
    edge: edge.id,
    items: live ? items : [],
    reason: live ? null : "single connections are listed only while the measurement runs",
    most: 100,
  };
}
