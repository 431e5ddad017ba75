// What the agent can do on this kernel, and what it costs.

import { useEffect, useState } from "preact/hooks";
import { api } from "../api/client";
import type { BpfProgram, Probe } from "../api/types";
import { bytes, clock, count, cpu, duration, visible } from "../lib/format";
import { meta, self } from "../state/live";
import { Loading } from "./states";

function Row({ title, children }: { title: string; children: unknown }) {
  return (
    <div>
      <dt>{title}</dt>
      <dd>{children as string}</dd>
    </div>
  );
}

function NodeCard() {
  const info = meta.value;
  if (info === null) return null;
  return (
    <section class="card">
      <h2>Node</h2>
      <dl class="pairs">
        <Row title="Name">{info.node}</Row>
        <Row title="Kernel">{info.kernel}</Row>
        <Row title="Machine">{`${info.arch}, ${info.cpus} CPUs`}</Row>
        <Row title="BTF">{info.btf ? "yes" : "no: most probes cannot be loaded"}</Row>
        <Row title="Agent">
          {info.version} <code class="muted">{info.git_revision.slice(0, 12)}</code>
        </Row>
        <Row title="Access">
          {info.auth === "token" ? "with a token" : "open to everyone on this machine"}
        </Row>
        <Row title="CPU budget">
          {info.cpu_budget_percent === null ? "none" : `${info.cpu_budget_percent} % of one CPU`}
        </Row>
        <Row title="Limits">
          {`${clock(info.limits.max_duration_s)}, ${info.limits.max_frequency_hz} Hz, ${info.limits.max_running_tasks} tasks at once`}
        </Row>
      </dl>
    </section>
  );
}

function SelfCard() {
  const own = self.value;
  if (own === null) return null;
  return (
    <section class="card">
      <h2>The agent itself</h2>
      <dl class="pairs">
        <Row title="CPU now">{cpu(own.cpu_percent)}</Row>
        <Row title="CPU since start">{duration(own.cpu_seconds * 1e9)}</Row>
        <Row title="Memory">{`${bytes(own.rss_bytes)} (peak ${bytes(own.peak_rss_bytes)})`}</Row>
        <Row title="Store">{bytes(own.store_bytes)}</Row>
        <Row title="Open files">{count(own.open_files)}</Row>
        <Row title="Running tasks">{count(own.running_tasks)}</Row>
        <Row title="Up for">{clock(own.uptime_s)}</Row>
      </dl>
      <h3>Losses since the start</h3>
      {own.losses.length === 0 ? (
        <p class="muted">Nothing was lost.</p>
      ) : (
        <ul class="losses">
          {own.losses.map((loss) => (
            <li key={loss.kind}>
              <b class="numeric warn">{count(loss.count)}</b> {visible(loss.meaning)}{" "}
              <code class="muted">{loss.kind}</code>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

const PROBE_TEXT = {
  attached: "in use",
  available: "available",
  unavailable: "not possible",
  denied: "denied",
} as const;

function ProbesCard({ probes }: { probes: readonly Probe[] }) {
  return (
    <section class="card">
      <h2>Probes</h2>
      <table class="plain">
        <thead>
          <tr>
            <th scope="col">Probe</th>
            <th scope="col">State</th>
            <th scope="col">From kernel</th>
            <th scope="col">Why</th>
          </tr>
        </thead>
        <tbody>
          {probes.map((probe) => (
            <tr key={probe.name}>
              <td class="mono">{probe.name}</td>
              <td>
                <span class={`state-chip probe-${probe.state}`}>
                  <span class="state-mark" aria-hidden="true" />
                  {PROBE_TEXT[probe.state]}
                </span>
              </td>
              <td class="numeric">{probe.minimum_kernel}</td>
              <td>{probe.reason === null ? <span class="muted">–</span> : visible(probe.reason)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function perRun(program: BpfProgram): string {
  const { run_count, run_time_ns } = program;
  return run_count === null || run_time_ns === null || run_count === 0
    ? "–"
    : duration(run_time_ns / run_count);
}

function ProgramsCard({ programs }: { programs: readonly BpfProgram[] }) {
  const timed = programs.some((program) => program.run_time_ns !== null && program.run_time_ns > 0);
  return (
    <section class="card">
      <h2>Programs in the kernel</h2>
      {programs.length === 0 ? (
        <p class="muted">None is loaded: programs are loaded when the first task starts.</p>
      ) : (
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">Program</th>
              <th scope="col" class="numeric">
                Runs
              </th>
              <th scope="col" class="numeric">
                Time
              </th>
              <th scope="col" class="numeric">
                Each run
              </th>
              <th scope="col" class="numeric">
                Verified instructions
              </th>
            </tr>
          </thead>
          <tbody>
            {programs.map((program) => (
              <tr key={program.name}>
                <td class="mono">{visible(program.name)}</td>
                <td class="numeric">{program.run_count === null ? "–" : count(program.run_count)}</td>
                <td class="numeric">{program.run_time_ns === null ? "–" : duration(program.run_time_ns)}</td>
                <td class="numeric">{perRun(program)}</td>
                <td class="numeric">
                  {program.verified_instructions === null ? "–" : count(program.verified_instructions)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {programs.length > 0 && !timed && (
        <p class="muted small">
          The kernel measures run times only while <code>kernel.bpf_stats_enabled</code> is 1.
        </p>
      )}
    </section>
  );
}

/** The state of probes changes when a task starts: asked again now and then. */
function useProbes(): readonly Probe[] {
  const [probes, setProbes] = useState<readonly Probe[] | null>(null);
  const running = self.value?.running_tasks;
  useEffect(() => {
    const stop = new AbortController();
    api.probes(stop.signal).then(
      ({ items }) => setProbes(items),
      () => {},
    );
    return () => stop.abort();
  }, [running]);
  return probes ?? meta.value?.probes ?? [];
}

export function NodePage() {
  const probes = useProbes();
  if (meta.value === null && self.value === null) return <Loading what="the node" />;
  return (
    <section class="node-page">
      <h1>Node</h1>
      <div class="cards">
        <NodeCard />
        <SelfCard />
        <ProbesCard probes={probes} />
        <ProgramsCard programs={self.value?.bpf.programs ?? []} />
      </div>
    </section>
  );
}
