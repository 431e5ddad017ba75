// How long and how a task measures: what is recommended holds unless somebody opens this.

import { useEffect, useState } from "preact/hooks";
import { MOST_SECONDS } from "../lib/estimate";
import { MAX_FREQUENCY_HZ, measuresWaits, type TaskForm, watchesConnections } from "../lib/task_spec";
import { meta } from "../state/live";
import { FieldError, type FieldFailure } from "./field_error";
import { WaitFields } from "./wait_fields";

const DURATIONS = ["10", "30", "60", "300"] as const;

interface Props {
  readonly form: TaskForm;
  readonly change: (part: Partial<TaskForm>) => void;
  readonly failure: FieldFailure | null;
  readonly checkup: boolean;
  /** Seconds, where none are typed. */
  readonly recommended: number;
  readonly isOpen: boolean;
}

/** "30 s recommended, 99 Hz" */
function summaryOf({ form, checkup, recommended }: Props): string {
  const own = form.duration.trim();
  const advice = recommended === MOST_SECONDS ? "the most that is recommended" : "recommended";
  const long = form.endless ? "until stopped" : own === "" ? `${recommended} s ${advice}` : `${own} s`;
  const isSampled = checkup || form.kind === "on_cpu" || form.kind === "wall";
  return `${long}${isSampled ? `, ${form.frequency} Hz` : ""}`;
}

export function TaskOptions(props: Props) {
  const { form, change, failure, checkup, recommended } = props;
  const [isOpen, setOpen] = useState(props.isOpen);
  // What is wrong in here must be seen.
  useEffect(() => {
    if (failure !== null && failure.field !== "target") setOpen(true);
  }, [failure]);
  const maxFrequency = meta.value?.limits.max_frequency_hz ?? MAX_FREQUENCY_HZ;
  return (
    <details class="task-options" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        How long and how: <b>{summaryOf(props)}</b>
      </summary>
      <div class="two-fields">
        <div class="field">
          <label for="duration">Duration, seconds</label>
          <div class="inline-field">
            <input
              id="duration"
              inputMode="numeric"
              autocomplete="off"
              value={form.endless ? "" : form.duration}
              placeholder={form.endless ? "runs until stopped" : `${recommended} recommended`}
              disabled={form.endless}
              onInput={(event) => change({ duration: event.currentTarget.value })}
            />
            <span class="presets">
              {DURATIONS.map((seconds) => (
                <button
                  key={seconds}
                  type="button"
                  class="preset"
                  aria-pressed={!form.endless && form.duration === seconds}
                  onClick={() => change({ duration: seconds, endless: false })}
                >
                  {Number(seconds) >= 60 ? `${Number(seconds) / 60} min` : `${seconds} s`}
                </button>
              ))}
            </span>
          </div>
          <label class="check" hidden={checkup}>
            <input
              type="checkbox"
              checked={form.endless}
              onChange={(event) => change({ endless: event.currentTarget.checked })}
            />
            Run until stopped
          </label>
          <FieldError failure={failure} field="duration_s" />
        </div>
        <div class="field" hidden={watchesConnections(form.kind) && !checkup}>
          <label for="frequency">Frequency, Hz</label>
          <input
            id="frequency"
            inputMode="numeric"
            autocomplete="off"
            value={form.kind === "off_cpu" && !checkup ? "" : form.frequency}
            placeholder={form.kind === "off_cpu" && !checkup ? "every switch" : ""}
            disabled={form.kind === "off_cpu" && !checkup}
            onInput={(event) => change({ frequency: event.currentTarget.value })}
          />
          <p class="muted small">
            1 to {maxFrequency}. 99 does not run in step with timers that fire 100 times a second.
          </p>
          <FieldError failure={failure} field="frequency_hz" />
        </div>
      </div>

      {!checkup && measuresWaits(form.kind) && <WaitFields form={form} change={change} failure={failure} />}

      {!checkup && measuresWaits(form.kind) && (
        <label class="check">
          <input
            type="checkbox"
            checked={form.wakers}
            onChange={(event) => change({ wakers: event.currentTarget.checked })}
          />
          Record wakers
        </label>
      )}

      {!checkup && form.kind === "network" && (
        <label class="check" title="Also how long connections waited to be accepted">
          <input
            type="checkbox"
            checked={form.timed}
            onChange={(event) => change({ timed: event.currentTarget.checked })}
          />
          Call durations (costs more)
        </label>
      )}
    </details>
  );
}
