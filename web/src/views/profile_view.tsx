// The result of a task as a graph or a table, with its toolbar. Search, zoom, layout, changes and tab
// live in the address bar.

import { useMemo, useRef } from "preact/hooks";
import { invertedGraph } from "../lib/flame_climb";
import { type FlameIndex, indexFlameGraph, labelOf } from "../lib/flame_index";
import { findFunction, functionKey } from "../lib/flame_keys";
import { applyTransforms, parseTransforms } from "../lib/flame_transform";
import { amount } from "../lib/format";
import { route } from "../state/route";
import { clearTransforms } from "../state/transforms";
import { Crumbs } from "./crumbs";
import { FlameCanvas } from "./flame_canvas";
import { FrameDetails } from "./frame_details";
import { FramePanel } from "./frame_panel";
import { FunctionTable } from "./function_table";
import { Legend } from "./legend";
import { NoSamples } from "./no_samples";
import { type Pane, usePane } from "./pane";
import { heaviest, openSandwich, Sandwich } from "./sandwich";
import { SearchBox } from "./search_box";
import { Empty } from "./states";
import { TransformBar } from "./transform_bar";
import { ViewChoice } from "./view_choice";

interface Props {
  readonly index: FlameIndex;
  readonly arrivedAt: number | null;
  readonly running: boolean;
  readonly failed: boolean;
  readonly error: string | null;
  /** Whether the order of time is known, so that there is a view of it. */
  readonly order: boolean;
  /** What one sample is called. */
  readonly unit: "samples" | "switches";
  /** What the time is that waits are measured in. */
  readonly time: string;
}

interface GraphProps {
  readonly pane: Pane;
  /** The same from the root on. */
  readonly calls: FlameIndex;
  readonly arrivedAt: number | null;
  readonly layout: "flame" | "icicle" | "inverted";
  readonly sampled: boolean;
}

const TREE_NAMES = {
  flame: "Flame graph",
  icicle: "Icicle graph",
  inverted: "Functions by self, with their callers below",
} as const;

function Graph({ pane, calls, arrivedAt, layout, sampled }: GraphProps) {
  const { index, zoomed, selected } = pane;
  const reading = layout === "inverted" ? "callers" : "calls";
  const shown = selected >= 0 ? selected : zoomed === 0 ? -1 : zoomed;
  const sandwich = (node: number): void => openSandwich(functionKey(labelOf(index, node)));
  const whole = index.total[0]!;
  return (
    <>
      <Crumbs index={index} zoomed={zoomed} zoom={pane.zoom} />
      <div class="profile-body">
        <div class="profile-main">
          <FlameCanvas
            index={index}
            arrivedAt={arrivedAt}
            zoomed={zoomed}
            selected={selected}
            selectedKey={pane.selectedKey}
            matches={pane.matches}
            growth={layout === "flame" ? "up" : "down"}
            reading={reading}
            whole={whole}
            label={`${TREE_NAMES[layout]}. Arrow keys walk the frames, Enter zooms, Backspace goes back; the table has the same numbers`}
            itemId="flame-item"
            part={route.value.part}
            onZoom={pane.zoom}
            onSelect={pane.select}
            onStep={pane.step}
            onSandwich={sandwich}
          />
          <FrameDetails
            index={index}
            node={shown}
            zoomed={zoomed}
            reading={reading}
            whole={whole}
            onSandwich={sandwich}
          />
        </div>
        {route.value.panel && (
          <FramePanel
            index={index}
            node={shown}
            reading={reading}
            calls={calls}
            sampled={sampled}
            onSandwich={sandwich}
            onFunction={(label) => openSandwich(functionKey(calls.graph.labels[label]!))}
          />
        )}
      </div>
    </>
  );
}

export function ProfileView(props: Props) {
  const { index: base, arrivedAt, running, error } = props;
  const { search, layout, tab, transforms } = route.value;
  const shown = useMemo(() => applyTransforms(base, parseTransforms(transforms)), [base, transforms]);
  const calls = shown.index;
  const inverted = layout === "inverted" && tab === "graph";
  const index = useMemo(() => (inverted ? indexFlameGraph(invertedGraph(calls)) : calls), [calls, inverted]);
  const lastSelected = useRef("");
  const pane = usePane(index, (node) => {
    if (node > 0) lastSelected.current = functionKey(labelOf(index, node));
  });
  // The halves of a sandwich have their own matches to walk.
  const sandwichStep = useRef<(direction: 1 | -1) => void>(() => {});

  const whole = base.total[0]!;
  if (whole === 0 && !props.order) return <Empty title="No samples are in this file" />;
  if (whole === 0) return <NoSamples index={base} running={running} failed={props.failed} />;
  const { periodNs } = base.graph;
  const sampled = props.unit === "samples" && periodNs !== 1;
  const middle = (): number => {
    const known = findFunction(calls.graph.labels, lastSelected.current);
    if (known >= 0) return known;
    // It stays while the task runs, whichever function is the heaviest later.
    const first = heaviest(calls);
    lastSelected.current = functionKey(calls.graph.labels[first]!);
    return first;
  };
  return (
    <div class="profile">
      <div class="toolbar profile-bar">
        <ViewChoice order={props.order} />
        <SearchBox
          text={search}
          matches={pane.matches}
          problem={pane.problem}
          all={index.total[0]!}
          position={
            pane.matches === null || pane.selected < 0 ? 0 : pane.matches.list.indexOf(pane.selected) + 1
          }
          step={(direction) =>
            layout === "sandwich" && tab === "graph" ? sandwichStep.current(direction) : pane.step(direction)
          }
        />
        <span class="push muted numeric shown-samples">
          {running && <span class="live-dot" aria-hidden="true" />}
          {amount(calls.total[0]!, periodNs)} {periodNs === 1 ? props.time : props.unit}
        </span>
      </div>
      {error !== null && (
        <p class="field-error" role="alert">
          Not up to date: {error}
        </p>
      )}
      <TransformBar shown={shown} whole={whole} />
      {calls.total[0] === 0 ? (
        <Empty title="Nothing is left">
          <p class="muted">The changes above leave out every sample.</p>
          <button type="button" onClick={clearTransforms}>
            Take all away
          </button>
        </Empty>
      ) : tab === "table" ? (
        <>
          <Crumbs index={calls} zoomed={pane.zoomed} zoom={pane.zoom} />
          <FunctionTable
            index={calls}
            root={pane.zoomed}
            search={search}
            onOpen={(row) => openSandwich(functionKey(row.label))}
          />
        </>
      ) : layout === "sandwich" ? (
        <Sandwich
          calls={calls}
          arrivedAt={arrivedAt}
          sampled={sampled}
          fallback={middle()}
          step={sandwichStep}
        />
      ) : (
        <Graph pane={pane} calls={calls} arrivedAt={arrivedAt} layout={layout} sampled={sampled} />
      )}
      {tab === "graph" && <Legend index={calls} />}
    </div>
  );
}
