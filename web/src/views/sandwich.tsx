// One function in the middle: above it who called it, below it what it called. The table beside it
// picks the function.

import { useMemo, useState } from "preact/hooks";
import { callersGraph } from "../lib/flame_climb";
import { type FlameIndex, indexFlameGraph, labelOf } from "../lib/flame_index";
import { findFunction, functionKey, functionOf } from "../lib/flame_keys";
import { calleesGraph } from "../lib/flame_transform";
import { visible } from "../lib/format";
import { patchRoute, route } from "../state/route";
import { Crumbs } from "./crumbs";
import { FlameCanvas } from "./flame_canvas";
import { FrameDetails } from "./frame_details";
import { measured } from "./frame_facts";
import { FramePanel } from "./frame_panel";
import { FunctionTable } from "./function_table";
import { type Pane, usePane } from "./pane";
import { Empty } from "./states";

/** Keeps paths of callers apart from those of callees. */
const CALLERS_SALT = 0x5a17;

interface Props {
  /** What is shown, from the root on. */
  readonly calls: FlameIndex;
  readonly arrivedAt: number | null;
  readonly sampled: boolean;
  /** The function when the address has none: its first label. */
  readonly fallback: number;
  /** Takes the way from match to match, for the search box. */
  readonly step: { current: (direction: 1 | -1) => void };
  /** How much is shown, in words. */
  readonly shown: string;
  readonly running: boolean;
}

/** The function with the most self samples, as its first label. */
export function heaviest(index: FlameIndex): number {
  const { labels, label, self } = index.graph;
  const functions = functionOf(labels);
  const sums = new Float64Array(labels.length);
  let best = 0;
  for (let node = 1; node < index.count; node += 1) {
    const id = functions[label[node]!]!;
    sums[id]! += self[node]!;
    if (sums[id]! > sums[best]!) best = id;
  }
  return best;
}

export function openSandwich(fn: string): void {
  patchRoute({ tab: "graph", layout: "sandwich", fn, zoom: "" });
}

function Halves(props: Props & { target: number }) {
  const { calls, target, arrivedAt } = props;
  const callers = useMemo(() => indexFlameGraph(callersGraph(calls, target), CALLERS_SALT), [calls, target]);
  const callees = useMemo(() => indexFlameGraph(calleesGraph(calls, target)), [calls, target]);
  const [side, setSide] = useState<"callers" | "callees">("callees");
  const upper = usePane(callers, () => setSide("callers"));
  const lower = usePane(callees, () => setSide("callees"));
  const pane = side === "callers" ? upper : lower;
  props.step.current = pane.step;
  const reading = side === "callers" ? "callers" : "calls";
  const name = visible(labelOf(callees, 0).name);
  const whole = calls.total[0]!;
  const sandwichOf = (from: Pane) => (node: number) => openSandwich(functionKey(labelOf(from.index, node)));
  const half = (shown: Pane, what: "callers" | "callees") => (
    <FlameCanvas
      index={shown.index}
      arrivedAt={what === "callees" ? arrivedAt : null}
      zoomed={shown.zoomed}
      selected={shown.selected}
      selectedKey={shown.selectedKey}
      matches={shown.matches}
      growth={what === "callers" ? "up" : "down"}
      reading={what === "callers" ? "callers" : "calls"}
      whole={whole}
      label={`${what === "callers" ? "Callers" : "Callees"} of ${name}. Arrow keys walk the frames, Enter zooms, Backspace goes back, s puts a frame's function in the middle`}
      itemId={what === "callers" ? "flame-item-callers" : "flame-item"}
      onZoom={shown.zoom}
      onSelect={shown.select}
      onStep={shown.step}
      onSandwich={sandwichOf(shown)}
    />
  );
  const zoomedPane = upper.zoomed !== 0 ? upper : lower;
  return (
    <>
      <div class="profile-main">
        {zoomedPane.zoomed !== 0 && (
          <Crumbs index={zoomedPane.index} zoomed={zoomedPane.zoomed} zoom={zoomedPane.zoom} />
        )}
        {half(upper, "callers")}
        <p class="sandwich-middle" data-sandwich>
          <span class="muted">↑ callers</span>
          <code title={visible(name)}>{visible(name)}</code>
          <b class="numeric">{measured(callees.total[0]!, whole, calls.graph.periodNs)}</b>
          <span class="muted">↓ callees</span>
        </p>
        {half(lower, "callees")}
        <FrameDetails
          index={pane.index}
          node={pane.selected >= 0 ? pane.selected : 0}
          zoomed={pane.zoomed}
          reading={reading}
          whole={whole}
          shown={props.shown}
          running={props.running}
        />
      </div>
      {route.value.panel && (
        <FramePanel
          index={pane.index}
          node={pane.selected >= 0 ? pane.selected : 0}
          reading={reading}
          calls={calls}
          sampled={props.sampled}
          onSandwich={sandwichOf(pane)}
          onFunction={(label) => openSandwich(functionKey(calls.graph.labels[label]!))}
        />
      )}
    </>
  );
}

export function Sandwich(props: Props) {
  const { calls } = props;
  const { fn, search } = route.value;
  const target = useMemo(
    () => (fn === "" ? props.fallback : findFunction(calls.graph.labels, fn)),
    [calls, fn, props.fallback],
  );
  return (
    <div class="profile-body">
      <div class="sandwich-table">
        <FunctionTable
          index={calls}
          root={0}
          search={search}
          compact
          picked={target < 0 ? "" : functionKey(calls.graph.labels[target]!)}
          onOpen={(row) => openSandwich(functionKey(row.label))}
        />
      </div>
      {target < 0 ? (
        <div class="profile-main">
          <Empty title="This function is not in what is shown">
            <p class="muted">Pick another one in the table, or take changes away.</p>
          </Empty>
        </div>
      ) : (
        <Halves {...props} target={target} />
      )}
    </div>
  );
}
