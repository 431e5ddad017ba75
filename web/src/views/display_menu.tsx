// How a result is drawn: colours with their legend, changes made for a kind of program, start-up
// frames, samples over time, and the whole window.

import type { FlameIndex } from "../lib/flame_index";
import type { Preset } from "../lib/flame_transform";
import { toggleFullScreen } from "../state/full_screen";
import { patchRoute, route } from "../state/route";
import { addTransform } from "../state/transforms";
import { Legend } from "./legend";
import { Menu } from "./menu";
import { TimeChoice } from "./time_choice";

const PRESETS: readonly { kind: Preset; title: string; help: string }[] = [
  {
    kind: "envoy",
    title: "Hide Envoy's plumbing",
    help: "std::function, event loop and dispatcher: their samples go to their callers",
  },
  {
    kind: "runtime",
    title: "Hide tokio and std",
    help: "Frames of tokio, futures, std, core and alloc: their samples go to their callers",
  },
  { kind: "kernel", title: "Kernel only", help: "The kernel's part of each stack" },
];

export function DisplayMenu(props: {
  /** Null before the first answer. */
  index: FlameIndex | null;
  /** Whether frames can be changed: not in a comparison. */
  changes: boolean;
  /** Whether there are samples over time. */
  timed: boolean;
  /** Whether the agent can say which feature asked for the work. */
  attributed: boolean;
}) {
  const { index } = props;
  const { tab, layout, unfold } = route.value;
  const isTree = tab === "graph" && (layout === "flame" || layout === "icicle");
  return (
    <Menu title="Display" class="menu-right display-menu">
      {(close) => (
        <div class="display-panel">
          {index !== null && tab === "graph" && (
            <section>
              <h3>Colours</h3>
              <Legend index={index} attributed={props.attributed && isTree} />
            </section>
          )}
          {props.changes && tab !== "order" && (
            <section>
              <h3>Frames</h3>
              <div class="buttons">
                {PRESETS.map(({ kind, title, help }) => (
                  <button
                    key={kind}
                    type="button"
                    title={help}
                    onClick={() => {
                      addTransform({ kind, key: "" });
                      close();
                    }}
                  >
                    {title}
                  </button>
                ))}
              </div>
              {isTree && (
                <label class="check">
                  <input
                    type="checkbox"
                    checked={!unfold}
                    onChange={(event) => patchRoute({ unfold: !event.currentTarget.checked }, "replace")}
                  />
                  Fold first frames, up to where stacks part
                </label>
              )}
            </section>
          )}
          {props.timed && (
            <section>
              <h3>Samples over time</h3>
              <TimeChoice />
            </section>
          )}
          <button
            type="button"
            class="menu-item"
            onClick={() => {
              close();
              toggleFullScreen();
            }}
          >
            <b>Full screen</b>
            <kbd>z</kbd>
          </button>
        </div>
      )}
    </Menu>
  );
}
