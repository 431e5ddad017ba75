// What is known of the node or the line that was picked on the map.

import type { EdgeTable } from "../api/types";
import { workloadTitle } from "../lib/container_names";
import { EDGE_METRICS } from "../lib/edge_metrics";
import { EDGE_SIGNALS, type EdgeSignal, labelText, troubleText } from "../lib/edge_signals";
import { betweenText, percentile } from "../lib/edges";
import { bytes, count, cpu, duration, visible } from "../lib/format";
import type { Line } from "../lib/map_lines";
import type { Topology, TopologyNode } from "../lib/topology";
import type { RateWindow } from "../state/edge_window";
import { processes } from "../state/live";
import { href, openView, patchRoute } from "../state/route";
import { Changing } from "./changing";
import { ContainerLine } from "./container_name";
import type { EdgeOrigin } from "./edges_view";
import { Icon } from "./icons";
import { LineTrend } from "./line_trend";

interface Props {
  topology: Topology;
  lines: readonly Line[];
  picked: string;
  signal: EdgeSignal;
  window: RateWindow;
  table: EdgeTable;
  origin: EdgeOrigin;
}

export function Fact({ title, help, children }: { title: string; help?: string; children: unknown }) {
  return (
    <div title={help}>
      <dt>{title}</dt>
      <dd>{children as string}</dd>
    </div>
  );
}

export function PanelHead({ title }: { title: string }) {
  return (
    <header>
      <h2>{title}</h2>
      <button
        type="button"
        class="icon-button"
        aria-label="Close the details"
        onClick={() => patchRoute({ node: "" }, "replace")}
      >
        <Icon name="close" />
      </button>
    </header>
  );
}

/** Link to the page of an edge. */
export function EdgeLink({ origin, edge, text }: { origin: EdgeOrigin; edge: string; text: string }) {
  const target = { view: "edge", id: origin.id, edge } as const;
  return (
    <a
      class="edge-link"
      href={href(target)}
      onClick={(event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
        event.preventDefault();
        openView(target);
      }}
    >
      {text}
    </a>
  );
}

function NodePanel({ node, lines }: { node: TopologyNode; lines: readonly Line[] }) {
  const process = [...(processes.value?.values() ?? [])].find(({ id }) => node.key === `p:${id}`);
  const workload = node.container?.names?.workload ?? null;
  const its = lines.filter(({ client, server }) => client === node.key || server === node.key);
  const open = its
    .flatMap(({ edges }) => edges)
    .reduce((sum, { metrics }) => sum + ((metrics.client ?? metrics.server)?.connections.open ?? 0), 0);
  return (
    <aside class="map-panel" aria-label="The picked node">
      <PanelHead title={visible(node.name)} />
      {node.why !== null && <p class="small muted">{node.why}</p>}
      <dl class="pairs">
        <Fact title="Process">{node.pid === null ? "not on this node, or not seen" : `pid ${node.pid}`}</Fact>
        {node.container !== null && (
          <Fact title="Container">
            <ContainerLine container={node.container} />
          </Fact>
        )}
        {workload !== null && <Fact title="Workload">{visible(workloadTitle(workload))}</Fact>}
        <Fact title="Addresses">{node.addresses.map(visible).join(", ")}</Fact>
        {node.pid !== null && (
          <Fact title="CPU">{process === undefined ? "the process is gone" : cpu(process.cpu_percent)}</Fact>
        )}
        <Fact title="Listens on">{node.ports.length === 0 ? "no port seen" : node.ports.join(", ")}</Fact>
        <Fact title="Traffic">{bytes(node.bytes)}</Fact>
        <Fact title="Connections">{`${count(open)} open`}</Fact>
      </dl>
      <div class="panel-buttons">
        {node.pid !== null && process !== undefined && (
          <Changing>
            <button
              type="button"
              class="primary"
              onClick={() => patchRoute({ create: true, pids: [node.pid!], container: "" })}
            >
              Profile this process
            </button>
          </Changing>
        )}
        <button
          type="button"
          onClick={() => patchRoute({ net: "table", q: String(node.pid ?? node.addresses[0] ?? "") })}
        >
          Its edges as a table
        </button>
      </div>
    </aside>
  );
}

function LinePanel({
  line,
  signal,
  window,
  origin,
}: { line: Line } & Pick<Props, "signal" | "window" | "origin">) {
  const { counters, recent } = line;
  const p = (share: number): string => {
    const between = counters.rtt === null ? null : percentile(counters.rtt, share);
    return between === null ? "–" : betweenText(between, 1e3);
  };
  const wait = counters.wait === null ? null : percentile(counters.wait, 0.95);
  const number = (value: number | null): string => (value === null ? "not measured" : count(value));
  const trouble = troubleText(line.trouble);
  return (
    <aside class="map-panel" aria-label="The picked line">
      <PanelHead
        title={`${visible(line.clientName)} → ${visible(line.serverName)}${line.port === null ? "" : ` :${line.port}`}`}
      />
      <p class={trouble === "" ? "small muted" : "small warn"}>
        {trouble === "" ? `No trouble ${window.trouble.text}.` : `⚠ ${trouble} ${window.trouble.text}`}
      </p>
      <dl class="pairs">
        <Fact title="Protocol">{`${line.protocol}${line.tls ? ", TLS" : ""}`}</Fact>
        {line.asked.length > 0 && <Fact title="Asked for">{line.asked.join(", ")}</Fact>}
        <Fact title="Bytes">{counters.bytes === null ? "not measured" : bytes(counters.bytes)}</Fact>
        <Fact title="Rates">
          {`${labelText("bytes", recent, window.seconds)}, ${labelText("ops", recent, window.seconds)} calls (${window.text})`}
        </Fact>
        <Fact title="Minimum RTT">{counters.minRtt === null ? "–" : duration(counters.minRtt * 1e3)}</Fact>
        <Fact title="Smoothed RTT p50 · p95" help={EDGE_METRICS.rtt.help}>{`${p(0.5)} · ${p(0.95)}`}</Fact>
        <Fact title="Receive wait p95">{wait === null ? "–" : betweenText(wait, 1)}</Fact>
        <Fact title="Retransmits">{number(counters.retransmits)}</Fact>
        <Fact title="Drops" help="Duplicates are dropped too: nothing is missing after them">
          {counters.drops === null
            ? "not measured"
            : `${count(counters.drops)}, ${count(counters.lost ?? 0)} lost`}
        </Fact>
        <Fact title="Resets">{number(counters.resets)}</Fact>
        <Fact title="Errors">{number(counters.errors)}</Fact>
      </dl>
      <LineTrend line={line} origin={origin} />
      <p class="small muted">{`Lines are marked by: ${EDGE_SIGNALS.find(({ key }) => key === signal)?.title}.`}</p>
      <ul class="panel-edges">
        {line.edges.slice(0, 20).map((edge) => (
          <li key={edge.id}>
            <EdgeLink
              origin={origin}
              edge={edge.id}
              text={
                line.edges.length === 1
                  ? "Open the edge"
                  : `Open ${edge.client.address} → ${edge.server.address}`
              }
            />
          </li>
        ))}
      </ul>
    </aside>
  );
}

export function TopologyPanel(props: Props) {
  const { topology, lines, picked } = props;
  if (picked === "") return null;
  const node = topology.nodes.find(({ key }) => key === picked);
  if (node !== undefined) return <NodePanel node={node} lines={lines} />;
  const line = lines.find(({ key }) => key === picked);
  return line === undefined ? null : <LinePanel line={line} {...props} />;
}
