// The stand-in's overview: its pods, of which one fails and one is near its limit, and what else it runs.

import { checkupsOf } from "./mock_checkups.mjs";
import { podList } from "./mock_pods.mjs";

const PERIOD_S = 10;
const POINTS = 60;

const requests = (perS, errors, p95) => ({
  window_s: PERIOD_S,
  count: perS * PERIOD_S,
  per_s: perS,
  errors,
  p50: { from_ms: p95 / 2, to_ms: p95 / 2 + 1 },
  p95: { from_ms: p95, to_ms: Math.ceil(p95 * 1.1) },
});

/** What is wrong with the first pods, in the order of the list. */
const CASES = [
  {
    answered: requests(420, 210, 240),
    troubles: [
      { level: "bad", text: "5.0 % of its responses are errors (5xx): 210 of 4200 in 10 s" },
      {
        level: "warning",
        text: "its answers take longer: p95 is 264 ms, and was 80 ms over the last minutes",
      },
    ],
  },
  {
    answered: requests(35, 0, 12),
    limit: { cores: 0.5, used_cores: 0.49, periods: 100, throttled_periods: 41 },
    troubles: [
      {
        level: "bad",
        text: "a CPU limit stops it in 41 % of the periods in which it runs (0.49 of 0.50 cores are used)",
      },
    ],
  },
  { sent: requests(455, 0, 8), troubles: [] },
];

function history(now, cores, perS) {
  return Array.from({ length: POINTS }, (_, i) => ({
    at_ns: now - (POINTS - i) * PERIOD_S * 1e9,
    cores: cores * (1 + 0.3 * Math.sin(i / 5)),
    requests_per_s: perS === null ? null : perS * (1 + 0.2 * Math.sin(i / 7)),
    p95_ms: perS === null ? null : 12,
  }));
}

function rowsOf({ kind, title, pod, workload, network_namespace, cpu_percent, processes }, i, now) {
  const cores = (cpu_percent ?? 0) / 100;
  if (kind !== "pod") {
    const programs = new Map();
    for (const each of processes) programs.set(each.program, [...(programs.get(each.program) ?? []), each]);
    return [...programs].map(([program, members]) => {
      const percent = members.reduce((sum, { cpu_percent: own }) => sum + (own ?? 0), 0);
      return {
        ...rowWith({ id: `program ${program}`, kind: "program", title: program }, percent / 100, now),
        network_namespace,
        processes: members.length,
        pids: members.map(({ pid }) => pid).slice(0, 64),
      };
    });
  }
  const { answered = null, sent = null, limit = null, troubles = [] } = CASES[i] ?? {};
  const row = rowWith({ id: `net ${network_namespace}`, kind, title }, cores, now, answered ?? sent);
  return [
    {
      ...row,
      pod: pod === null ? null : { namespace: pod.namespace, name: pod.name },
      workload: workload === null ? null : `${workload.kind}/${workload.name}`,
      network_namespace,
      processes: processes.length,
      pids: processes.map(({ pid }) => pid),
      cpu: { ...row.cpu, limit },
      answered,
      sent,
      requests_unknown:
        answered === null && sent === null ? "no Envoy in it counts them; a check-up measures them" : null,
      segments: { sent: 12_000, retransmitted: i === 0 ? 3 : 0, retransmitted_per_s: i === 0 ? 0.3 : 0 },
      troubles,
    },
  ];
}

function rowWith(named, cores, now, counted = null) {
  return {
    ...named,
    pod: null,
    workload: null,
    window_s: PERIOD_S,
    cpu: { cores, waiting: cores / 20, limit: null },
    answered: null,
    sent: null,
    requests_unknown: "no Envoy in it counts them; a check-up measures them",
    segments: null,
    troubles: [],
    history: history(now, cores, counted?.per_s ?? null),
  };
}

/** `GET /overview`. */
export function overviewOf(agent) {
  const now = Date.now() * 1e6;
  const rows = podList(agent.processes).items.flatMap((pod, i) => rowsOf(pod, i, now));
  const troubled = rows.filter(({ troubles }) => troubles.length > 0);
  const known = checkupsOf(agent);
  const checkups = rows.flatMap(({ id, pids, pod }) => {
    const found = known.find(
      ({ target }) =>
        target.pids?.some((pid) => pids.includes(pid)) ||
        (pod !== null && target.pod?.namespace === pod.namespace && target.pod.name === pod.name),
    );
    if (found === undefined) return [];
    const verdict =
      found.state === "finished"
        ? "Its requests take 118 ms (p95): 110 ms in mesh-server, asleep in a timer."
        : null;
    return [{ row: id, id: found.id, state: found.state, created_ns: found.created_ns, verdict }];
  });
  return {
    is_on: agent.overview,
    summary: `${troubled[0]?.title}: ${troubled[0]?.troubles[0].text}. One more of 4 pods needs attention.`,
    rows: agent.overview ? rows : [],
    read_ns: now,
    period_s: PERIOD_S,
    cost_percent: 0.21,
    notes: [],
    checkups: agent.overview ? checkups : [],
  };
}
