// The line below a graph: what the selected frame is.

import { type FlameIndex, labelOf } from "../lib/flame_index";
import { visible } from "../lib/format";
import { patchRoute, route } from "../state/route";
import { CopyButton } from "./copy_button";
import { ChangeButtons } from "./frame_actions";
import { Numbers, Origin, type Reading } from "./frame_facts";

export function FrameDetails(props: {
  index: FlameIndex;
  /** -1 for none. */
  node: number;
  zoomed: number;
  reading: Reading;
  whole: number;
  onSandwich: (node: number) => void;
}) {
  const { index, node, zoomed, reading, whole } = props;
  if (node < 0) {
    return (
      <div class="frame-details muted">
        Click a frame to zoom into it. Arrow keys walk, Enter zooms, Backspace goes back, ? shows all keys.
      </div>
    );
  }
  const label = labelOf(index, node);
  const { panel } = route.value;
  return (
    <div class="frame-details" data-details>
      <div class="frame-name">
        <code title={visible(label.name)}>{visible(label.name)}</code>
        <CopyButton title="Copy name" text={label.name} />
        <button
          type="button"
          class="quiet push"
          aria-expanded={panel}
          title="Callers, callees and interval, key o"
          onClick={() => patchRoute({ panel: !panel }, "replace")}
        >
          {panel ? "Close details" : "Details"}
        </button>
      </div>
      <div class="frame-facts">
        <Numbers index={index} node={node} zoomed={zoomed} reading={reading} whole={whole} />
        <Origin label={label} />
      </div>
      {!panel && <ChangeButtons index={index} node={node} onSandwich={props.onSandwich} />}
    </div>
  );
}
