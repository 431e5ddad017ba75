// What the agent can do on this kernel, and what it costs.

import type { ComponentChildren } from "preact";
import type { Memory, Probe } from "../api/types";
import { bytes, clock, count, cpu, duration, visible } from "../lib/format";
import { ceilingText, givenUp, memoryParts, STAGE_TEXT } from "../lib/memory";
import { meta, self, selfHistory } from "../state/live";
import { probes } from "../state/probes";
import { AccessLogsCard } from "./node_access_logs";
import { ConfigCard, FeaturesCard, SupportCard } from "./node_facts";
import { MapsCard, ProgramsCard, useKernelPace } from "./node_kernel";
import { NamesCard } from "./node_names";
import { Sparkline } from "./sparkline";
import { Loading } from "./states";

function Row({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{title}</dt>
      <dd>{children}</dd>
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

function MemoryRows({ memory }: { memory: Memory }) {
  return (
    <>
      <Row title="Memory ceiling">
        {ceilingText(memory)}
        {memory.stage !== "open" && <p class="small warn">{STAGE_TEXT[memory.stage]}</p>}
        {givenUp(memory) !== "" && <p class="small muted">{givenUp(memory)}</p>}
      </Row>
      <Row title="Counted for it">{memoryParts(memory)}</Row>
    </>
  );
}

function SelfCard() {
  const own = self.value;
  if (own === null) return null;
  return (
    <section class="card">
      <h2>The agent itself</h2>
      <dl class="pairs">
        <Row title="CPU now">
          {`${cpu(own.cpu_percent)} of one core`}{" "}
          <Sparkline values={selfHistory.value.cpu} top={Math.max(5, ...selfHistory.value.cpu)} />
        </Row>
        <Row title="CPU since start">{duration(own.cpu_seconds * 1e9)}</Row>
        <Row title="Memory">
          {`${bytes(own.rss_bytes)} (peak ${bytes(own.peak_rss_bytes)})`}{" "}
          <Sparkline values={selfHistory.value.rss} top={own.peak_rss_bytes} />
        </Row>
        <MemoryRows memory={own.memory} />
        <Row title="Store">{bytes(own.store_bytes)}</Row>
        <Row title="Open files">{count(own.open_files)}</Row>
        <Row title="Running tasks">{count(own.running_tasks)}</Row>
        <Row title="Up for">{clock(own.uptime_s)}</Row>
      </dl>
      <h3>Losses since the start, by cause</h3>
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
    <section class="card wide">
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
              <td class="mono">{visible(probe.name)}</td>
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

export function NodePage() {
  useKernelPace();
  if (meta.value === null && self.value === null) return <Loading what="the node" />;
  return (
    <section class="node-page">
      <h1>Node</h1>
      <div class="cards">
        <NodeCard />
        <SelfCard />
        <ProgramsCard />
        <MapsCard />
        <FeaturesCard />
        <ProbesCard probes={probes.value} />
        <AccessLogsCard />
        <NamesCard />
        <ConfigCard />
        <SupportCard />
      </div>
    </section>
  );
}
