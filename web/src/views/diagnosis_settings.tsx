// What changes a finding: the same setting for each system that can hold it, one tab each.

import { useId, useRef, useState } from "preact/hooks";
import type { FindingSetting, SettingSystem } from "../api/types";
import { SYSTEMS } from "../lib/diagnosis";
import { visible } from "../lib/format";
import { CopyButton } from "./copy_button";

const lines = (text: string): string => text.replace(/\n$/, "").split("\n").map(visible).join("\n");

function Setting({ setting }: { setting: FindingSetting }) {
  return (
    <div class="setting">
      <p>
        <code class="wrap">{visible(setting.key)}</code>
        {setting.scope !== "" && <span class="muted"> {visible(setting.scope)}</span>}
      </p>
      {setting.yaml.trim() !== "" && (
        <div class="yaml">
          <pre>{lines(setting.yaml)}</pre>
          <CopyButton title="Copy YAML" text={setting.yaml} />
        </div>
      )}
      <p class="small">
        <b>Side effects:</b> {setting.side_effects === "" ? "none known" : visible(setting.side_effects)}
      </p>
      {setting.undo !== "" && (
        <p class="small" data-undo>
          <b>To undo:</b> {visible(setting.undo)}
        </p>
      )}
    </div>
  );
}

export function Settings({ settings }: { settings: readonly FindingSetting[] }) {
  const systems = [...new Set(settings.map(({ system }) => system))];
  const [picked, setPicked] = useState<SettingSystem | undefined>(systems[0]);
  const id = useId();
  const tabs = useRef<HTMLDivElement>(null);
  const current = picked !== undefined && systems.includes(picked) ? picked : systems[0];
  if (current === undefined)
    return <p class="muted">No setting of the mesh changes this, or it is in force already.</p>;
  const step = (event: KeyboardEvent): void => {
    const at = systems.indexOf(current);
    const moves: Readonly<Record<string, number>> = {
      ArrowRight: at + 1,
      ArrowLeft: at - 1,
      Home: 0,
      End: systems.length - 1,
    };
    const to = moves[event.key];
    if (to === undefined) return;
    const next = (to + systems.length) % systems.length;
    setPicked(systems[next]);
    (tabs.current?.children[next] as HTMLElement | undefined)?.focus();
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="settings-tabs">
      <div role="tablist" class="tabs" aria-label="Where the setting is made" ref={tabs} onKeyDown={step}>
        {systems.map((system) => (
          <button
            key={system}
            type="button"
            role="tab"
            id={`${id}-${system}`}
            aria-controls={`${id}-${system}-panel`}
            aria-selected={system === current}
            tabIndex={system === current ? 0 : -1}
            onClick={() => setPicked(system)}
          >
            {SYSTEMS[system] ?? visible(system)}
          </button>
        ))}
      </div>
      {systems.map((system) => (
        <div
          key={system}
          role="tabpanel"
          class="tab-panel"
          id={`${id}-${system}-panel`}
          aria-labelledby={`${id}-${system}`}
          hidden={system !== current}
        >
          <p class="print-only">
            <b>{SYSTEMS[system] ?? visible(system)}</b>
          </p>
          {settings
            .filter((setting) => setting.system === system)
            .map((setting) => (
              <Setting key={setting.key} setting={setting} />
            ))}
        </div>
      ))}
    </div>
  );
}
