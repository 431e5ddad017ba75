// All pods of the node and what goes between them; one that is picked shows its ways, and opens to its own map.

import { useMemo } from "preact/hooks";
import { api } from "../api/client";
import { badness, labelText, troubleText, worst } from "../lib/edge_signals";
import { bytes, count, cpu, duration, visible } from "../lib/format";
import { linesOf } from "../lib/map_lines";
import { type MapNode, type NodeMap, nodeMapOf } from "../lib/node_map";
import { type CountedRequests, errorText, flowRequests, p95Text } from "../lib/node_map_requests";
import { between, errorShare, rate, requestsOf } from "../lib/overview";
import { useAnswer } from "../state/answer";
import type { RateWindow } from "../state/edge_window";
import { processes } from "../state/live";
import { patchRoute, route } from "../state/route";
import type { EdgeOrigin } from "./edges_view";
import { type FlowLine, NodeMapPicture } from "./node_map";
import { Empty } from "./states";
import { SignalChoice, type TopologyProps, useProcessKey } from "./topology";
import { EdgeLink, Fact, PanelHead } from "./topology_panel";

const NO_PROCESSES = new Map();
/** The overview reads each ten seconds. */
const OVERVIEW_MS = 10_000;
const MOST_EDGES = 20;

export interface NodeMapViewProps extends TopologyProps {
  /** Requests of the edges, and what they count from; null where they are not looked at. */
  requests: {
    readonly counted: CountedRequests;
    readonly before: CountedRequests | null;
    readonly text: string;
  } | null;
}

const open = (pod: string): void => patchRoute({ net: "map", map: pod, node: "" });

function PodPanel({ node, map, lines }: { node: MapNode; map: NodeMap; lines: readonly FlowLine[] }) {
  const titles = new Map(map.nodes.map(({ key, title }) => [key, title]));
  const requests = node.row === null ? null : requestsOf(node.row);
  const its = lines.filter(({ client, server }) => client === node.key || server === node.key);
  const names = (keys: readonly string[]): string =>
    keys.length === 0 ? "nothing seen" : keys.map((key) => visible(titles.get(key) ?? key)).join(", ");
  return (
    <aside class="map-panel" aria-label="What is picked">
      <PanelHead title={visible(node.title)} />
      {node.row?.troubles.map((trouble) => (
        <p key={trouble.text} class="small warn">
          ⚠ {visible(trouble.text)}
        </p>
      ))}
      <dl class="pairs">
        {node.pod !== null && <Fact title="Processes">{count(node.pod.processes)}</Fact>}
        {node.pod !== null && <Fact title="Found by">{node.pod.why}</Fact>}
        {node.row?.cpu.cores != null && <Fact title="CPU">{cpu(node.row.cpu.cores * 100)}</Fact>}
        {requests?.requests != null && (
          <Fact title={requests.areSent ? "It sends" : "It serves"}>
            {`${rate(requests.requests.per_s)} req/s, ${(errorShare(requests.requests) ?? 0).toFixed(1)} % errors`}
          </Fact>
        )}
        {requests?.requests?.p95 != null && <Fact title="Time">{between("p95", requests.requests.p95)}</Fact>}
        {node.addresses.length > 0 && (
          <Fact title="Addresses">{node.addresses.slice(0, MOST_EDGES).map(visible).join(", ")}</Fact>
        )}
        <Fact title="Called by">
          {names(its.filter(({ server }) => server === node.key).map(({ client }) => client))}
        </Fact>
        <Fact title="Calls">
          {names(its.filter(({ client }) => client === node.key).map(({ server }) => server))}
        </Fact>
      </dl>
      {node.pod !== null && (
        <div class="panel-buttons">
          <button type="button" class="primary" onClick={() => open(node.key)}>
            {node.kind === "host" ? "Open its map" : "Open this pod"}
          </button>
        </div>
      )}
    </aside>
  );
}

function FlowPanel({
  line,
  map,
  window,
  origin,
}: {
  line: FlowLine;
  map: NodeMap;
  window: RateWindow;
  origin: EdgeOrigin;
}) {
  const { recent, requests } = line;
  const title = (key: string): string => visible(map.nodes.find((node) => node.key === key)?.title ?? key);
  const trouble = troubleText(line.trouble);
  const number = (value: number | null): string => (value === null ? "not measured" : count(value));
  return (
    <aside class="map-panel" aria-label="What is picked">
      <PanelHead title={`${title(line.client)} → ${title(line.server)}`} />
      <p class={trouble === "" ? "small muted" : "small warn"}>
        {trouble === "" ? `No trouble ${window.trouble.text}.` : `⚠ ${trouble} ${window.trouble.text}`}
      </p>
      <dl class="pairs">
        <Fact title="Protocol">
          {`${requests === null ? line.protocol : requests.protocols.join(", ")}${line.tls || requests?.tls ? ", TLS" : ""}`}
        </Fact>
        {line.ports.length > 0 && <Fact title="Ports">{line.ports.join(", ")}</Fact>}
        {requests !== null && (
          <Fact title="Requests">
            {`${requests.perSecond === null ? "–" : rate(requests.perSecond)}/s, ${errorText(requests)}, ${p95Text(requests)}`}
          </Fact>
        )}
        <Fact title="Rates">
          {`${labelText("bytes", recent, window.seconds)}, ${labelText("ops", recent, window.seconds)} calls`}
        </Fact>
        <Fact title="Bytes">
          {line.counters.bytes === null ? "not measured" : bytes(line.counters.bytes)}
        </Fact>
        <Fact title="Minimum RTT">
          {line.counters.minRtt === null ? "–" : duration(line.counters.minRtt * 1e3)}
        </Fact>
        <Fact title="Retransmits">{number(recent.retransmits)}</Fact>
        <Fact title="Resets">{number(recent.resets)}</Fact>
        <Fact title="Errors">{number(recent.errors)}</Fact>
      </dl>
      <ul class="panel-edges">
        {line.edges.slice(0, MOST_EDGES).map((edge) => (
          <li key={edge.id}>
            <EdgeLink
              origin={origin}
              edge={edge.id}
              text={`${visible(edge.client.comm ?? edge.client.address)} → ${visible(edge.server.comm ?? edge.server.address)}${edge.server.port === null ? "" : ` :${edge.server.port}`}`}
            />
          </li>
        ))}
        {line.edges.length > MOST_EDGES && (
          <li class="small muted">{count(line.edges.length - MOST_EDGES)} more in the table</li>
        )}
      </ul>
    </aside>
  );
}

export function NodeMapView(props: NodeMapViewProps) {
  const { table, empty, origin, twin, quality, window, hidden, requests } = props;
  const { worst: signal, bad, node: picked } = route.value;
  const { value: overview } = useAnswer(api.overview, ({ is_on }) => is_on, [], OVERVIEW_MS);
  const known = processes.value ?? NO_PROCESSES;
  const processKey = useProcessKey();
  const map = useMemo(
    () =>
      nodeMapOf({
        edges: table.edges,
        processes: known,
        named: table.containers,
        rows: overview?.rows ?? [],
        live: origin.live,
      }),
    [table, processKey, overview, origin.live],
  );
  const requestsOn = useMemo(
    () => (requests === null ? () => null : flowRequests(requests.counted, requests.before)),
    [requests?.counted, requests?.before],
  );
  const lines = useMemo(
    () =>
      linesOf(map.flows, window.before, window.trouble.before).map(
        (line): FlowLine => ({ ...line, requests: requestsOn(line.edges) }),
      ),
    [map, window.before, window.trouble.before, requestsOn],
  );
  const marked = useMemo(() => new Set(worst(lines, signal)), [lines, signal]);
  const isBad = (line: FlowLine): boolean =>
    badness(signal, line.trouble) > 0 || (line.requests?.errors ?? 0) > 0;
  const shown = bad ? lines.filter(isBad) : lines;
  const node = map.nodes.find(({ key }) => key === picked);
  const line = lines.find(({ key }) => key === picked);
  return (
    <div class="topology">
      <div class="toolbar">
        {twin}
        <SignalChoice signal={signal} bad={bad} />
        <span class="muted push small" aria-live="off">
          {requests !== null && requests.text !== window.text ? `requests ${requests.text}, bytes ` : ""}
          {window.text}
          {overview?.is_on === true && origin.live && " · in boxes: the last readings of the overview"}
          {map.leftOut > 0 && ` · ${count(map.leftOut)} smaller boxes and flows are in the table only`}
          {hidden > 0 && ` · ${count(hidden)} edges not active now`}
          {overview?.is_on === false && origin.live && " · without requests of pods: the overview is off"}
        </span>
        {quality}
      </div>
      {map.nodes.length === 0 ? (
        <Empty title={table.edges.length === 0 && hidden > 0 ? "Nothing is active now" : empty} />
      ) : (
        <div class="topology-body">
          <NodeMapPicture
            map={map}
            lines={shown}
            marked={marked}
            signal={signal}
            seconds={window.seconds}
            picked={picked}
            onOpen={open}
          />
          {node !== undefined && <PodPanel node={node} map={map} lines={lines} />}
          {line !== undefined && <FlowPanel line={line} map={map} window={window} origin={origin} />}
        </div>
      )}
    </div>
  );
}
