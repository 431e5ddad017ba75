// Pods and roles of the stand-in's processes. The agent knows more programs and more reasons.

const HOST = 4_026_531_840;

const percentOf = (members) => {
  const known = members.filter(({ cpu_percent }) => cpu_percent !== null);
  return known.length === 0 ? null : known.reduce((sum, { cpu_percent }) => sum + cpu_percent, 0);
};

function roleOf(process, members) {
  const names = process.container?.names ?? null;
  if (names?.role === "sidecar")
    return { role: "sidecar", reason: `Kubernetes runs its container ${names.name} as a sidecar` };
  const app = members.find(({ comm }) => comm !== "envoy");
  if (process.comm === "envoy")
    return app === undefined
      ? { role: "other", reason: "envoy is a proxy without an application in its pod: a gateway" }
      : { role: "sidecar", reason: `envoy is a proxy and shares the pod with ${app.comm}` };
  return members.some(({ comm }) => comm === "envoy")
    ? { role: "app", reason: "it is not a proxy and shares the pod with envoy" }
    : { role: "app", reason: "the pod has no proxy that is known here" };
}

const OUTSIDE = { role: "other", reason: "it is in the network namespace of the node, not in a pod" };

const coresOf = (percent) => (percent / 100).toFixed(2);

function summaryOf(kind, all, sidecar) {
  if (kind === "host") return `${coresOf(all)} cores`;
  if (sidecar === null) return `no sidecar; ${coresOf(all)} cores`;
  return `sidecar uses ${coresOf(sidecar)} of ${coresOf(all)} cores (${Math.round((sidecar / all) * 100)} %)`;
}

function podOf(network_namespace, members) {
  const kind = network_namespace === HOST ? "host" : "pod";
  const roles = members.map((process) => (kind === "pod" ? roleOf(process, members) : OUTSIDE));
  const cpu_percent = percentOf(members);
  const sidecar_cpu_percent = percentOf(members.filter((_, i) => roles[i].role === "sidecar"));
  const names =
    members.map(({ container }) => container?.names ?? null).find((one) => one?.pod != null) ?? null;
  const programs = [...new Set(members.map(({ program }) => program))];
  return {
    kind,
    network_namespace,
    summary: summaryOf(kind, cpu_percent, sidecar_cpu_percent),
    cpu_percent,
    sidecar_cpu_percent,
    without_reading: 0,
    rss_bytes: members.reduce((sum, { rss_bytes }) => sum + rss_bytes, 0),
    title:
      kind === "host"
        ? "Host processes"
        : names === null
          ? programs.slice(0, 3).join(" + ")
          : `${names.pod.namespace}/${names.pod.name}`,
    pod: kind === "pod" && names !== null ? names.pod : null,
    labels: names?.labels ?? {},
    workload: names?.workload ?? null,
    processes: members.map(({ id, pid, program, comm, container, cpu_percent, rss_bytes, threads }, i) => ({
      id,
      pid,
      program,
      comm,
      container: container?.id ?? null,
      ...roles[i],
      cpu_percent,
      rss_bytes,
      threads,
    })),
  };
}

/** `GET /pods`. */
export function podList(processes) {
  const byNamespace = new Map();
  for (const process of processes) {
    if (process.kernel_thread) continue;
    const { network_namespace } = process;
    const members = byNamespace.get(network_namespace);
    if (members === undefined) byNamespace.set(network_namespace, [process]);
    else members.push(process);
  }
  const items = [...byNamespace].map(([namespace, members]) => podOf(namespace, members));
  items.sort(
    (a, b) => Number(a.kind === "host") - Number(b.kind === "host") || b.cpu_percent - a.cpu_percent,
  );
  return { items, total: items.length };
}

/** What the event `processes` has of them. */
export function podReadings(processes) {
  const { items } = podList(processes);
  return items.map(
    ({ title: _title, pod: _pod, labels: _labels, workload: _workload, processes: _processes, ...reading }) =>
      reading,
  );
}
