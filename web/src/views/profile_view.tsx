// The result of a task as a graph or a table. Search, zoom, layout, changes and tab live in the address
// bar.

import { isFolded } from "../lib/flame_fold";
import { type FlameIndex, labelOf } from "../lib/flame_index";
import { functionKey } from "../lib/flame_keys";
import { amount } from "../lib/format";
import { patchRoute, route } from "../state/route";
import { clearTransforms } from "../state/transforms";
import { Crumbs } from "./crumbs";
import { FlameCanvas } from "./flame_canvas";
import { FrameDetails } from "./frame_details";
import { FramePanel } from "./frame_panel";
import { FunctionTable } from "./function_table";
import { NoSamples } from "./no_samples";
import type { Pane } from "./pane";
import { openSandwich, Sandwich } from "./sandwich";
import { SearchBox } from "./search_box";
import type { ShownProfile } from "./shown_profile";
import { Empty } from "./states";
import { TransformBar } from "./transform_bar";

interface Props {
  readonly profile: ShownProfile;
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
  /** How much is shown, in words. */
  readonly shown: string;
  readonly running: boolean;
}

const TREE_NAMES = {
  flame: "Flame graph",
  icicle: "Icicle graph",
  inverted: "Functions by self, with their callers below",
} as const;

function Graph({ pane, calls, arrivedAt, layout, sampled, shown, running }: GraphProps) {
  const { index, zoomed, selected } = pane;
  const reading = layout === "inverted" ? "callers" : "calls";
  const node = selected >= 0 ? selected : zoomed === 0 ? -1 : zoomed;
  const unfold = (): void => patchRoute({ unfold: true }, "replace");
  const sandwich = (at: number): void =>
    isFolded(index, at) ? unfold() : openSandwich(functionKey(labelOf(index, at)));
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
            onZoom={(at) => (isFolded(index, at) ? unfold() : pane.zoom(at))}
            onSelect={pane.select}
            onStep={pane.step}
            onSandwich={sandwich}
          />
          <FrameDetails
            index={index}
            node={node}
            zoomed={zoomed}
            reading={reading}
            whole={whole}
            shown={shown}
            running={running}
          />
        </div>
        {route.value.panel && (
          <FramePanel
            index={index}
            node={node}
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

/** The search of the toolbar. */
export function ProfileSearch({ profile }: { profile: ShownProfile }) {
  const { pane, step } = profile;
  const at = pane.matches === null || pane.selected < 0 ? -1 : pane.matches.list.indexOf(pane.selected);
  return (
    <SearchBox
      text={route.value.search}
      matches={pane.matches}
      problem={pane.problem}
      all={pane.index.total[0]!}
      position={at + 1}
      step={step}
    />
  );
}

export function ProfileView(props: Props) {
  const { arrivedAt, running, error } = props;
  const { base, shown, calls, pane, sandwichStep, middle } = props.profile;
  const { search, layout, tab } = route.value;
  const whole = base.total[0]!;
  if (whole === 0 && !props.order) return <Empty title="No samples are in this file" />;
  if (whole === 0) return <NoSamples index={base} running={running} failed={props.failed} />;
  const { periodNs } = base.graph;
  const sampled = props.unit === "samples" && periodNs !== 1;
  const shownText = `${amount(calls.total[0]!, periodNs)} ${periodNs === 1 ? props.time : props.unit}`;
  return (
    <div class="profile">
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
          shown={shownText}
          running={running}
        />
      ) : (
        <Graph
          pane={pane}
          calls={calls}
          arrivedAt={arrivedAt}
          layout={layout}
          sampled={sampled}
          shown={shownText}
          running={running}
        />
      )}
    </div>
  );
}
