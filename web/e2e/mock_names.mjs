// What the stand-in's containers are called: a pod with a sidecar, a Compose service, and one without a name.

export const SIDECAR = "3f2a90c1d7e4b8a6950c1d7e4b8a6950c1d7e4b8a6950c1d7e4b8a6950c1d7e4";
export const CHECKOUT = "8d14f0b2c6a7e95310fb2c6a7e95310fb2c6a7e95310fb2c6a7e95310fb2c6a7";
export const HTTPBIN = "b7a1e5d0934c2f6e8d1a0b9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a2b1c0d9e";
export const COMPOSE = "51c0ffee934c2f6e8d1a0b9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a2b1c0d9e";
/** Nobody has named it. */
export const UNNAMED = "d00dfeed934c2f6e8d1a0b9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a2b1c0d9e";

/** Those of a container in a pod. */
function inPod(namespace, pod, name, more = {}) {
  return {
    title: `${namespace}/${pod}/${name}`,
    name,
    role: "main",
    image: `registry.example.com/${namespace}/${name}:1.27.3`,
    pod: { namespace, name: pod, uid: "5f3c9d6e-0c52-4a4e-9d5f-6d1f0a7d9b11" },
    labels: { app: name, "app.kubernetes.io/part-of": namespace, "pod-template-hash": "7d9f8b6c5" },
    workload: { kind: "Deployment", name: pod.replace(/-[0-9a-z]+-[0-9a-z]+$/, "") },
    named_by: "kubernetes",
    ...more,
  };
}

const LABELS = { app: "checkout", "app.kubernetes.io/part-of": "shop", "pod-template-hash": "7d9f8b6c5" };

export const NAMES = {
  [SIDECAR]: inPod("shop", "checkout-7d9f8b6c5-x2x9z", "istio-proxy", {
    role: "sidecar",
    image: "docker.io/istio/proxyv2:1.27.0-distroless",
    labels: LABELS,
  }),
  [CHECKOUT]: inPod("shop", "checkout-7d9f8b6c5-x2x9z", "checkout", { labels: LABELS }),
  [HTTPBIN]: inPod("a-namespace-with-a-long-name", "httpbin-with-a-long-name-6f7d8c9b54-qwert", "httpbin", {
    pod: {
      namespace: "a-namespace-with-a-long-name",
      name: "httpbin-with-a-long-name-6f7d8c9b54-qwert",
      uid: "0b1c8ee2-1d0e-4c39-8f0c-2b9a3f2fb4d2",
    },
  }),
  [COMPOSE]: {
    title: "demo-redis-1",
    name: "demo-redis-1",
    role: "main",
    image: "redis:8",
    pod: null,
    labels: { "com.docker.compose.project": "demo" },
    workload: { kind: "Compose service", name: "redis" },
    named_by: "docker",
  },
};

/** As processes have it. */
export function containerOf(id) {
  const names = NAMES[id] ?? null;
  const runtime = id === COMPOSE ? "docker" : "containerd";
  return { id, runtime, pod_uid: names?.pod?.uid ?? null, names };
}

/** As tables have them, by id. */
export function namesOf(ends) {
  const ids = ends.flatMap(({ container }) => (container !== null && container in NAMES ? [container] : []));
  return Object.fromEntries([...new Set(ids)].sort().map((id) => [id, NAMES[id]]));
}

/** `GET /containers`. */
export function containerList(processes) {
  const found = new Map();
  for (const { pid, cgroup, container, cpu_percent } of processes) {
    if (container === null) continue;
    const { id, runtime, names } = container;
    const known = found.get(id) ?? { id, runtime, cgroup, names, pids: [], cpu_percent: 0 };
    known.pids.push(pid);
    known.cpu_percent += cpu_percent ?? 0;
    found.set(id, known);
  }
  const items = [...found.values()];
  const named = (source) => items.filter(({ names }) => names?.named_by === source).length;
  const source = (name, state, endpoint, reason = null) => ({
    source: name,
    state,
    reason,
    endpoint,
    containers: named(name),
  });
  return {
    items,
    total: items.length,
    name_sources: [
      source("kubernetes", "connected", "https://10.96.0.1:443"),
      source(
        "cri",
        "waiting",
        "/run/containerd/containerd.sock",
        "connect /run/containerd/containerd.sock: permission denied; mount the socket and let the agent's user open it",
      ),
      source("docker", "connected", "/run/docker.sock"),
    ],
  };
}

/** Why a target of pods means nothing; null where it means something. */
export function podRefusal({ namespace, name, labels, container }) {
  const is = (wanted, given) => wanted === undefined || wanted === given;
  const found = Object.values(NAMES).some(
    (names) =>
      is(namespace, names.pod?.namespace) &&
      is(name, names.pod?.name) &&
      is(container, names.name) &&
      (labels ?? "")
        .split(",")
        .every((part) => part === "" || names.labels[part.split("=")[0]] === part.split("=")[1]),
  );
  return found
    ? null
    : "no running container of this node matches the target; kubernetes: connected, 3 containers named";
}
