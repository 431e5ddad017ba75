// The map of keys, and the switch that turns single keys off.

import { helpOpen } from "../state/keys";
import { singleKeys } from "../state/preferences";
import { Dialog } from "./dialog";

type Entry = readonly [keys: readonly string[], what: string];

const GROUPS: readonly { title: string; entries: readonly Entry[] }[] = [
  {
    title: "Everywhere",
    entries: [
      [["g", "p"], "processes"],
      [["g", "t"], "tasks"],
      [["g", "o"], "node"],
      [["n"], "new task"],
      [["/"], "search or filter"],
      [["?"], "this help"],
    ],
  },
  {
    title: "Search",
    entries: [
      [["text"], "part of a name, any case"],
      [["/regex/"], "regular expression, /regex/i without case"],
      [["mod:libssl"], "part of a module path"],
      [["kind:kernel"], "user, inlined, kernel, jit, inferred, unnamed, marker, process, merged"],
    ],
  },
  {
    title: "Flame graph",
    entries: [
      [["←", "→"], "frame left, right"],
      [["↑", "↓"], "up and down the stack"],
      [["Enter"], "zoom into the frame"],
      [["Backspace"], "zoom out one level (also Esc)"],
      [["0"], "show everything"],
      [["n", "N"], "next, previous match"],
      [["1", "2", "3", "4", "6"], "flame, icicle, inverted, sandwich, table"],
      [["i"], "flame or icicle"],
      [["t"], "graph or table"],
    ],
  },
  {
    title: "Selected frame",
    entries: [
      [["s"], "its callers and callees (sandwich)"],
      [["f"], "focus: only stacks with its function"],
      [["m"], "hide: merge its function into the callers"],
      [["d"], "drop the stacks with its function"],
      [["r"], "collapse the recursion of its function"],
      [["c"], "collapse its module"],
      [["p"], "merge processes and threads"],
      [["o"], "details"],
      [["y"], "copy the name"],
    ],
  },
];

export function Help() {
  const close = (): void => {
    helpOpen.value = false;
  };
  return (
    <Dialog title="Keys" class="help" onClose={close}>
      <div class="help-groups">
        {GROUPS.map(({ title, entries }) => (
          <section key={title}>
            <h3>{title}</h3>
            <dl class="key-list">
              {entries.map(([keys, what]) => (
                <div key={what}>
                  <dt>
                    {keys.map((key) => (
                      <kbd key={key}>{key}</kbd>
                    ))}
                  </dt>
                  <dd>{what}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <label class="check">
        <input
          type="checkbox"
          checked={singleKeys.value}
          onChange={(event) => {
            singleKeys.value = event.currentTarget.checked;
          }}
        />
        Single keys are shortcuts
      </label>
    </Dialog>
  );
}
