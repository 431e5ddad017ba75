// How waits are counted, and which are left out, in the create dialog.

import { useEffect, useState } from "preact/hooks";
import { api } from "../api/client";
import type { OffCpuMode } from "../api/types";
import type { TaskForm } from "../lib/task_spec";
import { FieldError, type FieldFailure } from "./field_error";

interface Props {
  readonly form: TaskForm;
  readonly change: (part: Partial<TaskForm>) => void;
  readonly failure: FieldFailure | null;
}

const MODES: readonly (readonly [OffCpuMode, string])[] = [
  ["auto", "Every wait, sampled above 50,000/s"],
  ["every", "Every wait"],
  ["sampled", "Sampled, with exact sums"],
];

/** What the agent does unless a task says otherwise; empty while it is not known. */
function useDefault(): string {
  const [mode, setMode] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    api.config(stop.signal).then(
      ({ items }) => setMode(items.find(({ name }) => name === "off_cpu_mode")?.value ?? ""),
      // The choice works without it.
      () => {},
    );
    return () => stop.abort();
  }, []);
  return MODES.find(([name]) => name === mode)?.[1] ?? "";
}

export function WaitFields({ form, change, failure }: Props) {
  const usual = useDefault();
  return (
    <div class="three-fields">
      <div class="field">
        <label for="wait-mode">Wait recording</label>
        <select
          id="wait-mode"
          value={form.mode}
          onChange={(event) => change({ mode: event.currentTarget.value as OffCpuMode | "" })}
        >
          <option value="">{usual === "" ? "Default" : `Default (${usual.toLowerCase()})`}</option>
          {MODES.map(([mode, title]) => (
            <option key={mode} value={mode}>
              {title}
            </option>
          ))}
        </select>
      </div>
      <div class="field">
        <label for="min-wait">Shortest, ms</label>
        <input
          id="min-wait"
          inputMode="decimal"
          autocomplete="off"
          placeholder="all"
          value={form.minWait}
          onInput={(event) => change({ minWait: event.currentTarget.value })}
        />
        <FieldError failure={failure} field="min_wait_ns" />
      </div>
      <div class="field">
        <label for="max-wait">Longest, ms</label>
        <input
          id="max-wait"
          inputMode="decimal"
          autocomplete="off"
          placeholder="all"
          value={form.maxWait}
          onInput={(event) => change({ maxWait: event.currentTarget.value })}
        />
        <FieldError failure={failure} field="max_wait_ns" />
      </div>
    </div>
  );
}
