// The map of keys, and the switch that turns single keys off.

import { KEYMAP } from "../lib/keymap";
import { helpOpen } from "../state/keys";
import { singleKeys } from "../state/preferences";
import { Dialog } from "./dialog";

/** `groups` are titles; without them all are shown. */
export function Help({ groups }: { groups?: readonly string[] }) {
  const close = (): void => {
    helpOpen.value = false;
  };
  return (
    <Dialog title="Keys" class="help" onClose={close}>
      <div class="help-groups">
        {KEYMAP.filter(({ title }) => groups?.includes(title) ?? true).map(({ title, document, entries }) => (
          <section key={title}>
            <h3>{title}</h3>
            <dl class="key-list">
              {entries.map(({ keys, what }) => (
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
            {document !== null && (
              <p class="muted small help-document">
                More: <code>{document[0]}</code>
                {document[1] !== undefined && `, “${document[1]}”`}
              </p>
            )}
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
        Single keys are shortcuts (Ctrl-K works in any case)
      </label>
    </Dialog>
  );
}
