// What a task of requests looks for, in the create dialog.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { api } from "../api/client";
import type { TaskForm } from "../lib/task_spec";

interface Props<F> {
  readonly form: TaskForm;
  readonly change: (part: Partial<TaskForm>) => void;
  readonly failure: F;
  readonly FieldError: (props: { failure: F; field: string }) => ComponentChildren;
}

type Allowed = "asking" | "yes" | "no" | "unknown";

/** Whether the operator lets tasks read plaintext of TLS libraries. */
function useTlsAllowed(): Allowed {
  const [allowed, setAllowed] = useState<Allowed>("asking");
  useEffect(() => {
    const stop = new AbortController();
    api.config(stop.signal).then(
      ({ items }) => {
        const setting = items.find(({ name }) => name === "allow_tls_capture");
        setAllowed(setting === undefined ? "unknown" : setting.value === "true" ? "yes" : "no");
      },
      () => {
        if (!stop.signal.aborted) setAllowed("unknown");
      },
    );
    return () => stop.abort();
  }, []);
  return allowed;
}

const TLS_TEXT: Readonly<Record<Allowed, string>> = {
  asking: "Asking whether the agent allows it…",
  yes: "The target pays 0.7 to 10 µs at each read and write of its TLS library, as long as this is on. Each use is logged.",
  no: "Not allowed here: the agent must be started with --allow-tls-capture.",
  unknown: "It is not known whether this agent allows it.",
};

export function CaptureFields<F>({ form, change, failure, FieldError }: Props<F>) {
  const allowed = useTlsAllowed();
  const refused = allowed === "no" || allowed === "unknown";
  useEffect(() => {
    if (refused && form.tls) change({ tls: false });
  }, [refused, form.tls]);
  return (
    <div class="two-fields" data-capture>
      <div class="field">
        <label class="check">
          <input
            type="checkbox"
            checked={form.tls}
            disabled={allowed !== "yes"}
            aria-describedby="tls-allowed"
            onChange={(event) => change({ tls: event.currentTarget.checked })}
          />
          Also inside TLS: read plaintext at TLS libraries
        </label>
        <p class="muted small" id="tls-allowed">
          {TLS_TEXT[allowed]}
        </p>
        <div class="inline-field" hidden={!form.tls}>
          <label for="tls-duty">in so many percent of the time</label>
          <input
            id="tls-duty"
            class="short"
            inputMode="numeric"
            autocomplete="off"
            value={form.duty}
            onInput={(event) => change({ duty: event.currentTarget.value })}
          />
        </div>
        <FieldError failure={failure} field="tls_duty_percent" />
        <FieldError failure={failure} field="tls" />
      </div>
      <div class="field">
        <label for="samples-kept">Requests that are kept one by one</label>
        <select
          id="samples-kept"
          value={form.samples}
          onChange={(event) => change({ samples: event.currentTarget.value === "all" ? "all" : "slow" })}
        >
          <option value="slow">Slowest and first failing of each edge</option>
          <option value="all">All, while there is room</option>
        </select>
        <label class="check">
          <input
            type="checkbox"
            checked={form.rawPaths}
            onChange={(event) => change({ rawPaths: event.currentTarget.checked })}
          />
          With paths as they were sent, which may hold secrets (queries stay masked)
        </label>
      </div>
    </div>
  );
}
