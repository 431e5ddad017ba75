// The line below a graph: what the selected frame is, and how much is shown.

import { foldedNames, isFolded } from "../lib/flame_fold";
import { type FlameIndex, labelOf } from "../lib/flame_index";
import { visible } from "../lib/format";
import { patchRoute, route } from "../state/route";
import { Numbers, Origin, type Reading } from "./frame_facts";

export function FrameDetails(props: {
  index: FlameIndex;
  /** -1 for none. */
  node: number;
  zoomed: number;
  reading: Reading;
  whole: number;
  /** How much is shown, in words. */
  shown: string;
  running: boolean;
}) {
  const { index, node, zoomed, reading, whole } = props;
  const { panel } = route.value;
  const label = node < 0 ? null : labelOf(index, node);
  return (
    <div class="frame-details" data-details={label === null ? undefined : ""}>
      {label === null ? (
        <span class="muted frame-hint">
          Click a frame to zoom; right-click, or press long, for all that can be done. ? shows all keys.
        </span>
      ) : (
        <>
          <code title={visible(label.name)}>{visible(label.name)}</code>
          <Numbers index={index} node={node} zoomed={zoomed} reading={reading} whole={whole} />
          {isFolded(index, node) ? (
            <span class="origin">{foldedNames(index, node).map(visible).join(" › ")}</span>
          ) : (
            <Origin label={label} />
          )}
          <button
            type="button"
            class="quiet"
            aria-expanded={panel}
            title="Numbers with their interval, callers, callees, and all that can be done, key o"
            onClick={() => patchRoute({ panel: !panel }, "replace")}
          >
            {panel ? "Close details" : "Details"}
          </button>
        </>
      )}
      <span class="push muted numeric shown-samples">
        {props.running && <span class="live-dot" aria-hidden="true" />}
        {props.shown}
      </span>
    </div>
  );
}
