// Check-ups of the stand-in: two that have ended, those that are started, and what changed between two.

import {
  findingsOf,
  NS,
  PLAIN,
  plain,
  poor,
  reportOf,
  SECONDS,
  samplesOf,
  shareOf,
  sum,
  ZIPKIN,
  zipkin,
} from "./mock_diagnosis.mjs";
import { MECHANISMS, titleOf } from "./mock_features.mjs";

const CHECKUPS = [
  { id: "checkup-20261122-070000-zip", document: zipkin, ageNs: 3_600e9, target: { pids: [4242, 4243] } },
  { id: "checkup-20261122-080000-off", document: plain, ageNs: 1_800e9, target: { pids: [4242, 4243] } },
];
const KINDS = ["on_cpu", "off_cpu", "requests"];

/** Finished tasks of the check-ups that are there from the start. */
export function checkupTasks(makeTask) {
  const now = Date.now() * 1e6;
  return CHECKUPS.flatMap(({ id, ageNs, target }, i) =>
    KINDS.map((kind, k) =>
      makeTask(100 + i * 10 + k, {
        kind,
        target,
        group: id,
        duration_s: SECONDS,
        samples: kind === "requests" ? 0 : samplesOf(i === 0 ? ZIPKIN : PLAIN),
        clock: kind === "on_cpu" ? "cpu-clock" : kind === "off_cpu" ? "sched-switch" : null,
        created_at_ns: now - ageNs,
        started_at_ns: now - ageNs,
        ended_at_ns: now - ageNs + SECONDS * 1e9,
      }),
    ),
  );
}

function checkupOf(agent, id) {
  const tasks = [...agent.tasks.values()].filter(({ group }) => group === id);
  if (tasks.length === 0) return null;
  const [first] = tasks;
  const running = tasks.filter(({ state }) => state === "running");
  const ends = Math.max(
    ...tasks.map((task) => (task.started_at_ns + task.duration_s * 1e9 - Date.now() * 1e6) / 1e9),
  );
  return {
    id,
    target: first.target,
    duration_s: first.duration_s,
    state:
      running.length > 0 ? "running" : tasks.every(({ state }) => state === "failed") ? "failed" : "finished",
    created_ns: first.created_at_ns,
    ends_in_s: running.length > 0 ? Math.max(0, ends) : null,
    tasks: tasks.map(({ id: task, kind, state, reason }) => ({ id: task, kind, state, reason })),
    observed: true,
  };
}

function create(agent, { target, duration_s, frequency_hz = 99 }) {
  const group = `checkup-20261122-090000-${agent.nextId}`;
  for (const kind of KINDS) agent.create({ kind, target, duration_s, frequency_hz, group });
  return checkupOf(agent, group);
}

/** All check-ups, the newest first. */
export function checkupsOf(agent) {
  const ids = new Set([...agent.tasks.values()].map(({ group }) => group ?? ""));
  return [...ids]
    .filter((id) => id.startsWith("checkup-"))
    .map((id) => checkupOf(agent, id))
    .sort((a, b) => b.created_ns - a.created_ns);
}

function comparison(a, b, scope) {
  const [before, after] = [a, b].map((id) => (id === CHECKUPS[0].id ? ZIPKIN : PLAIN));
  const features = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const [us, usAfter] = [before, after].map((counts) => (samplesOf(counts) * NS * 1.004) / 1e3 / 486_000);
  const total = (one, other) => {
    const change_percent = ((other - one) / one) * 100;
    const significant = before !== after;
    return {
      a: one,
      b: other,
      change_percent,
      low: change_percent - 3,
      high: change_percent + 3,
      significant,
    };
  };
  const [findings, later] = [findingsOf(before, us), after === PLAIN ? [] : findingsOf(after, usAfter)];
  const named = (list) => list.map(({ id, title }) => ({ id, title }));
  return {
    a,
    b,
    programs: scope === "all" ? ["envoy", "pilot-agent"] : ["envoy"],
    other_programs: scope === "all" ? [] : ["pilot-agent"],
    latency: {
      process: "envoy",
      a: { requests: 486_000, mean_ns: 18e6, p50_ns: 17.2e6, p95_ns: 24.6e6, p99_ns: 41e6 },
      b: { requests: 486_000, mean_ns: 17.1e6, p50_ns: 16.4e6, p95_ns: 23.1e6, p99_ns: 40e6 },
    },
    not_compared: null,
    totals: { cpu_us_per_request: total(us, usAfter), cpu_cores: total(us * 0.0081, usAfter * 0.0081) },
    rows: features.map((feature) => {
      const [one, other] = [before, after].map((counts) => shareOf(counts, feature));
      const change = other.share_percent - one.share_percent;
      const spread = one.high - one.low + (other.high - other.low);
      const significant = Math.abs(change) > spread;
      return {
        feature,
        title: titleOf(feature),
        a_percent: one.share_percent,
        b_percent: other.share_percent,
        a_us: (us * one.share_percent) / 100,
        b_us: (usAfter * other.share_percent) / 100,
        change,
        low: change - spread / 2,
        high: change + spread / 2,
        p: significant ? 0.00001 : 0.31,
        significant,
      };
    }),
    findings: {
      gone: named(findings.filter(({ id }) => !later.some((each) => each.id === id))),
      new: named(later.filter(({ id }) => !findings.some((each) => each.id === id))),
      still: named(later.filter(({ id }) => findings.some((each) => each.id === id))),
    },
    verdict:
      before === after
        ? "Nothing has changed that chance could not explain."
        : `One request costs ${us.toFixed(0)} µs of CPU before and ${usAfter.toFixed(0)} µs after: ${(((usAfter - us) / us) * 100).toFixed(0)} %.`,
  };
}

const refusal = (status, code, message) => Object.assign(new Error(message), { status, code });

/** `/api/v1/checkups/…` as `[status, answer]`. */
export function checkupsRoute(agent, method, [id, part], query, body) {
  const known = (wanted) => {
    const found = checkupOf(agent, wanted);
    if (found === null) throw refusal(404, "not_found", `no check-up ${wanted}`);
    return found;
  };
  if (id === undefined && method === "POST") return [201, create(agent, JSON.parse(body))];
  if (id === undefined) return [200, checkupsOf(agent)];
  if (id === "compare") {
    const [a, b] = ["a", "b"].map((side) => known(query.get(side)).id);
    const found = comparison(a, b, query.get("scope"));
    if (query.get("format") === "markdown") return [200, `# ${b} against ${a}\n\n${found.verdict}\n`];
    return [200, found];
  }
  const checkup = known(id);
  if (method === "DELETE") {
    for (const task of checkup.tasks) agent.tasks.delete(task.id);
    return [204, null];
  }
  if (part !== "diagnosis") return [200, checkup];
  const nowNs = checkup.created_ns + SECONDS * 1e9;
  const document = id === CHECKUPS[0].id ? zipkin(nowNs, "checkup") : plain(nowNs);
  return [200, inFormat(ofScope(document, query), query, `check-up ${id}`)];
}

/** About the sidecar, all or one process; of which are the numbers does not matter here. */
function ofScope(document, query) {
  const pid = Number(query.get("pid") ?? (query.get("scope") === "all" ? 0 : document.processes[0].pid));
  if (pid === 0) return document;
  const [processes, other_processes] = [true, false].map((is) =>
    document.processes.filter((process) => (process.pid === pid) === is),
  );
  return { ...document, processes, other_processes };
}

/** The document, or the text of its report. */
const inFormat = (document, query, source) =>
  query.get("format") === "markdown" ? reportOf(document, source) : document;

/** The diagnosis of one task: little is named of task 1. */
export function taskDiagnosis(task, query) {
  if (task.kind !== "on_cpu" && task.kind !== "wall")
    throw refusal(
      422,
      "not_diagnosable",
      `task ${task.id} is ${task.kind}: only on_cpu and wall can be diagnosed`,
    );
  const nowNs = task.ended_at_ns ?? Date.now() * 1e6;
  return inFormat(task.id === "1" ? poor(nowNs) : zipkin(nowNs, "task"), query, `task ${task.id}`);
}

/** Samples of `cell=` of the first check-up, for the stand-in's profiles; null for everything. */
export function samplesOfCell(cell) {
  if (cell === null || cell === "") return null;
  const at = cell.lastIndexOf(":");
  const known = MECHANISMS.some(({ id }) => id === cell.slice(at + 1));
  const [feature, mechanism] = at === -1 || !known ? [cell, null] : [cell.slice(0, at), cell.slice(at + 1)];
  const rows = Object.entries(ZIPKIN).filter(([id]) => feature === "" || id === feature);
  return sum(
    rows.flatMap(([, row]) =>
      Object.entries(row)
        .filter(([id]) => mechanism === null || id === mechanism)
        .map(([, samples]) => samples),
    ),
  );
}
