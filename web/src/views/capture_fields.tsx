// What a task of requests looks for, in the create dialog.

import { useEffect, useState } from "preact/hooks";
import { api } from "../api/client";
import type { TaskForm } from "../lib/task_spec";
import { FieldError, type FieldFailure } from "./field_error";

interface Props {
  readonly form: TaskForm;
  readonly change: (part: Partial<TaskForm>) => void;
  readonly failure: FieldFailure | null;
}

type Allowed = "asking" | "yes" | "no" | "unknown";

/** What the operator lets tasks look at, by the settings that allow it. */
interface Allowances {
  readonly allow_tls_capture: Allowed;
  readonly allow_bodies: Allowed;
}

const same = (allowed: Allowed): Allowances => ({ allow_tls_capture: allowed, allow_bodies: allowed });

function useAllowed(): Allowances {
  const [allowed, setAllowed] = useState<Allowances>(same("asking"));
  useEffect(() => {
    const stop = new AbortController();
    api.config(stop.signal).then(
      ({ items }) => {
        const of = (wanted: keyof Allowances): Allowed => {
          const setting = items.find(({ name }) => name === wanted);
          return setting === undefined ? "unknown" : setting.value === "true" ? "yes" : "no";
        };
        setAllowed({ allow_tls_capture: of("allow_tls_capture"), allow_bodies: of("allow_bodies") });
      },
      () => {
        if (!stop.signal.aborted) setAllowed(same("unknown"));
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

const BODIES_TEXT: Readonly<Record<Allowed, string>> = {
  ...TLS_TEXT,
  yes: "The first 4096 bytes of each, as they were sent: they may hold secrets. Each use is logged.",
  no: "Not allowed here: the agent must be started with --allow-bodies.",
};

/** What is kept, for the line of what is folded. */
function captureText({ samples, rawPaths, bodies }: TaskForm): string {
  const kept = samples === "all" ? "all samples" : "slowest and failing";
  return `${kept}${rawPaths ? ", raw paths" : ""}${bodies ? ", bodies" : ""}`;
}

export function CaptureFields({ form, change, failure }: Props) {
  // What is not as usual is shown, and so is what is wrong.
  const [isUnusual] = useState(form.samples === "all" || form.rawPaths || form.bodies);
  const isOpen = isUnusual || failure?.field === "bodies";
  const { allow_tls_capture: allowed, allow_bodies: bodiesAllowed } = useAllowed();
  const isRefused = (it: Allowed) => it === "no" || it === "unknown";
  useEffect(() => {
    if (isRefused(allowed) && form.tls) change({ tls: false });
    if (isRefused(bodiesAllowed) && form.bodies) change({ bodies: false });
  }, [allowed, bodiesAllowed, form.tls, form.bodies]);
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
          Decode TLS
        </label>
        <p class="muted small" id="tls-allowed">
          {TLS_TEXT[allowed]}
        </p>
        <div class="inline-field" hidden={!form.tls}>
          <label for="tls-duty">TLS duty, %</label>
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
      <details class="field capture-more" open={isOpen}>
        <summary>
          Capture: <b>{captureText(form)}</b>
        </summary>
        <label for="samples-kept">Samples</label>
        <select
          id="samples-kept"
          value={form.samples}
          onChange={(event) => change({ samples: event.currentTarget.value === "all" ? "all" : "slow" })}
        >
          <option value="slow">Slowest and first failing of each edge</option>
          <option value="all">All, while there is room</option>
        </select>
        <label class="check" title="Paths as they were sent, which may hold secrets; queries stay masked">
          <input
            type="checkbox"
            checked={form.rawPaths}
            onChange={(event) => change({ rawPaths: event.currentTarget.checked })}
          />
          Raw paths
        </label>
        <label class="check" title="The beginning of bodies of HTTP">
          <input
            type="checkbox"
            checked={form.bodies}
            disabled={bodiesAllowed !== "yes"}
            aria-describedby="bodies-allowed"
            onChange={(event) => change({ bodies: event.currentTarget.checked })}
          />
          Capture bodies
        </label>
        <p class="muted small" id="bodies-allowed">
          {BODIES_TEXT[bodiesAllowed]}
        </p>
        <FieldError failure={failure} field="bodies" />
      </details>
    </div>
  );
}
