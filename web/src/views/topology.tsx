// The map of a pod: its processes in a hexagon, who calls it on the left, what it calls on the right.

import type { ComponentChildren } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import type { EdgeTable } from "../api/types";
import {
  badness,
  EDGE_LABELS,
  EDGE_SIGNALS,
  type EdgeLabel,
  type EdgeSignal,
  MAX_LABELS,
  worst,
} from "../lib/edge_signals";
import { count, visible } from "../lib/format";
import { type Line, linesOf } from "../lib/map_lines";
import { type Pod, splitEnded, topologyOf } from "../lib/topology";
import { podUse } from "../lib/topology_cpu";
import { foldLocal } from "../lib/topology_fold";
import { type Layout, layoutOf } from "../lib/topology_layout";
import type { RateWindow } from "../state/edge_window";
import { processes } from "../state/live";
import { patchRoute, route } from "../state/route";
import type { EdgeOrigin } from "./edges_view";
import { Menu } from "./menu";
import { Empty } from "./states";
import { TopologyMap } from "./topology_map";
import { TopologyPanel } from "./topology_panel";

const NO_PROCESSES = new Map();

function LabelMenu({ picked }: { picked: readonly EdgeLabel[] }) {
  const toggle = (key: EdgeLabel): void => {
    const rest = picked.filter((label) => label !== key);
    const labels = rest.length < picked.length ? rest : [...picked, key].slice(-MAX_LABELS);
    patchRoute({ labels }, "replace");
  };
  return (
    <Menu title="Labels">
      {() => (
        <fieldset class="menu-checks">
          <legend class="muted small">At most {MAX_LABELS} on each line</legend>
          {EDGE_LABELS.map(({ key, title }) => (
            <label key={key} class="check">
              <input type="checkbox" checked={picked.includes(key)} onChange={() => toggle(key)} />
              {title}
            </label>
          ))}
        </fieldset>
      )}
    </Menu>
  );
}

/** What is chosen to see the pods that have ended too. */
const ENDED = "ended";

function PodChoice({ topology }: { topology: ReturnType<typeof topologyOf> }) {
  const [all, setAll] = useState(false);
  const shown = topology.pod?.key ?? "";
  const { listed, ended } = splitEnded(topology.pods, shown);
  if (topology.pods.length < 2) return null;
  const option = (pod: Pod) => (
    <option key={pod.key} value={pod.key} title={pod.why}>
      {`${visible(pod.name)}${pod.hasSidecar ? " + sidecar" : ""} (${pod.processes})${
        pod.key.startsWith("!") ? ` · ${pod.key.slice(1)}` : ""
      }`}
    </option>
  );
  return (
    <label class="inline-label">
      Pod{" "}
      <select
        value={shown}
        onChange={(event) => {
          const { value } = event.currentTarget;
          if (value !== ENDED) return patchRoute({ map: value, node: "" });
          setAll(true);
          event.currentTarget.value = shown;
        }}
      >
        {listed.map(option)}
        {ended.length > 0 &&
          (all ? (
            <optgroup label="ended">{ended.map(option)}</optgroup>
          ) : (
            <option value={ENDED}>{`+${count(ended.length)} ended`}</option>
          ))}
      </select>
    </label>
  );
}

/** By what lines are marked, and whether only those are drawn. */
export function SignalChoice({ signal, bad }: { signal: EdgeSignal; bad: boolean }) {
  return (
    <>
      <label class="inline-label">
        Worst by{" "}
        <select
          value={signal}
          onChange={(event) => patchRoute({ worst: event.currentTarget.value as EdgeSignal }, "replace")}
        >
          {EDGE_SIGNALS.map(({ key, title }) => (
            <option key={key} value={key}>
              {title}
            </option>
          ))}
        </select>
      </label>
      <label class="check">
        <input
          type="checkbox"
          checked={bad}
          onChange={(event) => patchRoute({ bad: event.currentTarget.checked }, "replace")}
        />
        only bad
      </label>
    </>
  );
}

export interface TopologyProps {
  table: EdgeTable;
  empty: string;
  origin: EdgeOrigin;
  twin: ComponentChildren;
  quality: ComponentChildren;
  window: RateWindow;
  /** Edges that are left out because nothing happens on them. */
  hidden: number;
}

/** The layout goes on from the one before, so that nothing jumps. */
function useLayout(topology: ReturnType<typeof topologyOf>): Layout {
  const before = useRef<{ pod: string; layout: Layout } | null>(null);
  return useMemo(() => {
    const pod = topology.pod?.key ?? "";
    const known = before.current?.pod === pod ? before.current.layout : null;
    const layout = layoutOf(topology, known);
    before.current = { pod, layout };
    return layout;
  }, [topology]);
}

/** Namespaces do not change with each reading of the CPU: the map is made anew only when they do. */
export function useProcessKey(): string {
  const list = processes.value ?? NO_PROCESSES;
  let key = "";
  for (const [id, process] of list) key += `${id}:${process.network_namespace ?? ""};`;
  return key;
}

export function TopologyView({ table, empty, origin, twin, quality, window, hidden }: TopologyProps) {
  const { map: wanted, labels, worst: signal, bad, node: picked, local } = route.value;
  const known = processes.value ?? NO_PROCESSES;
  const processKey = useProcessKey();
  const topology = useMemo(
    () => topologyOf(table.edges, known, wanted, table.containers),
    [table, processKey, wanted],
  );
  const lines = useMemo(
    () => linesOf(topology.links, window.before, window.trouble.before),
    [topology, window.before, window.trouble.before],
  );
  const marked = useMemo(() => new Set(worst(lines, signal)), [lines, signal]);
  const isBad = (line: Line): boolean => badness(signal, line.trouble) > 0;
  const folded = useMemo(() => {
    const badKeys = new Set(lines.filter(isBad).map(({ key }) => key));
    return foldLocal(topology, ({ key }) => local || badKeys.has(key), picked);
  }, [topology, lines, signal, local, picked]);
  const layout = useLayout(folded.topology);
  const left = useMemo(() => new Set(folded.topology.links.map(({ key }) => key)), [folded]);
  const unfolded = lines.filter(({ key }) => left.has(key));
  const shown = bad ? unfolded.filter(isBad) : unfolded;
  const use = podUse(topology, known);
  const unresolved = Object.values(table.unresolved).reduce((sum, value) => sum + value, 0);

  return (
    <div class="topology">
      <div class="toolbar">
        {twin}
        <PodChoice topology={topology} />
        <LabelMenu picked={labels} />
        <SignalChoice signal={signal} bad={bad} />
        {local && (
          <label class="check">
            <input type="checkbox" checked onChange={() => patchRoute({ local: false }, "replace")} />
            local Unix edges
          </label>
        )}
        <span class="muted push small" aria-live="off">
          {`rates ${window.text}, marks: trouble ${window.trouble.text}`}
          {hidden > 0 && ` · ${count(hidden)} edges not active now`}
          {unresolved > 0 && ` · ${count(unresolved)} ends not resolved`}
          {table.other !== null && ` · ${count(table.other.edges)} silent edges not drawn`}
        </span>
        {quality}
      </div>
      {topology.pod === null ? (
        <Empty
          title={
            table.edges.length === 0
              ? hidden > 0
                ? "Nothing is active now"
                : empty
              : "No process of this node is in these edges"
          }
        >
          {table.edges.length > 0 && <p class="muted">The table has all of them.</p>}
        </Empty>
      ) : (
        <div class="topology-body">
          <TopologyMap
            topology={folded.topology}
            layout={layout}
            use={use}
            folded={folded}
            lines={shown}
            marked={marked}
            signal={signal}
            labels={labels}
            seconds={window.seconds}
            picked={picked}
            hiddenLines={unfolded.length - shown.length}
          />
          <TopologyPanel
            topology={topology}
            lines={lines}
            picked={picked}
            signal={signal}
            window={window}
            table={table}
            origin={origin}
          />
        </div>
      )}
    </div>
  );
}
