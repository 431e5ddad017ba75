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
    if (found === null || found.histogram === null) return null;
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
  const calls = (found) =>
    found && { count: spread(found.count), bytes: spread(found.bytes), time: values(found, found.time_ns) };
  const named = (count, by) => ({
    count: spread(count),
    by_name: Object.fromEntries(Object.entries(by).map(([name, number]) => [name, spread(number)])),
  });
  const side = (found) =>
    found && {
      connections: spread(found.connections.count),
      open: inside.map(() => found.connections.open),
      write: calls(found.write),
      read: calls(found.read),
      connect: values(found.connect, found.connect?.time_ns),
      connects_failed: found.connect && spread(found.connect.failed),
      accept: values(found.accept, found.accept?.time_ns),
      close: values(found.close, found.close?.time_ns),
      write_rtt_us: values(found.write_rtt_us, found.write_rtt_us?.sum),
      receive_wait: values(found.receive_wait, found.receive_wait?.time_ns),
      retransmit: found.retransmit && spread(found.retransmit.count),
      drop: found.drop && named(found.drop.count, found.drop.by_reason),
      reset: found.reset && { sent: spread(found.reset.sent), received: spread(found.reset.received) },
      error: found.error && named(found.error.count, found.error.by_errno),
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
    reason: live ? null : "single connections are listed while the measurement runs",
    most: 100,
  };
}
