// Where a task of requests looks for them, and what it keeps, in the create dialog.

import type { ComponentChildren } from "preact";
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

/** Whether access logs of Envoys are received. */
function useReceived(): Allowed {
  const [received, setReceived] = useState<Allowed>("asking");
  useEffect(() => {
    const stop = new AbortController();
    api.accessLogs(stop.signal).then(
      ({ is_on }) => setReceived(is_on ? "yes" : "no"),
      () => {
        if (!stop.signal.aborted) setReceived("unknown");
      },
    );
    return () => stop.abort();
  }, []);
  return received;
}

const LOGS_TEXT: Readonly<Record<Allowed, string>> = {
  asking: "Asking whether the agent receives them…",
  yes: "What Envoys report: phases, response flags and upstream hosts, also inside TLS. No probes.",
  no: "The agent was started without --access-logs.",
  unknown: "It is not known whether this agent receives them.",
};

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

const isRefused = (it: Allowed): boolean => it === "no" || it === "unknown";

/** Takes out of the form what cannot be asked for; returns what can. */
function usePossible({ form, change }: Props): Allowances & { readonly received: Allowed } {
  const received = useReceived();
  const { allow_tls_capture, allow_bodies } = useAllowed();
  useEffect(() => {
    if (isRefused(allow_tls_capture) && form.tls) change({ tls: false });
    if (isRefused(allow_bodies) && form.bodies) change({ bodies: false });
    if (isRefused(received) && form.accessLogs) change({ accessLogs: false });
  }, [allow_tls_capture, allow_bodies, received, form.tls, form.bodies, form.accessLogs]);
  return { allow_tls_capture, allow_bodies, received };
}

function SourceBox(props: {
  id: string;
  title: string;
  text: string;
  checked: boolean;
  disabled: boolean;
  set: (checked: boolean) => void;
  children?: ComponentChildren;
}) {
  const { id, title, text, checked, disabled, set, children } = props;
  return (
    <>
      <label class="check">
        <input
          type="checkbox"
          checked={checked}
          disabled={disabled}
          aria-describedby={id}
          onChange={(event) => set(event.currentTarget.checked)}
        />
        {title}
      </label>
      <p class="muted small" id={id}>
        {text}
      </p>
      {children}
    </>
  );
}

function Sources({
  form,
  change,
  failure,
  allowed,
  received,
}: Props & { readonly allowed: Allowed; readonly received: Allowed }) {
  return (
    <fieldset class="field sources">
      <legend>Requests from</legend>
      <SourceBox
        id="source-sockets"
        title="Sockets"
        text="Decoded from what is moved over connections."
        checked={form.sockets}
        disabled={false}
        set={(sockets) => change(sockets ? { sockets } : { sockets, tls: false, bodies: false })}
      />
      <SourceBox
        id="tls-allowed"
        title="TLS libraries"
        text={TLS_TEXT[allowed]}
        checked={form.tls}
        disabled={allowed !== "yes" || !form.sockets}
        set={(tls) => change({ tls })}
      >
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
      </SourceBox>
      <FieldError failure={failure} field="tls_duty_percent" />
      <FieldError failure={failure} field="tls" />
      <SourceBox
        id="logs-received"
        title="Envoy access logs"
        text={LOGS_TEXT[received]}
        checked={form.accessLogs}
        disabled={received !== "yes"}
        set={(accessLogs) => change({ accessLogs })}
      />
      <FieldError failure={failure} field="source" />
    </fieldset>
  );
}

export function CaptureFields(props: Props) {
  const { form, change, failure } = props;
  // What is not as usual is shown, and so is what is wrong.
  const [isUnusual] = useState(form.samples === "all" || form.rawPaths || form.bodies);
  const isOpen = isUnusual || failure?.field === "bodies";
  const { allow_tls_capture, allow_bodies, received } = usePossible(props);
  return (
    <div class="two-fields" data-capture>
      <Sources {...props} allowed={allow_tls_capture} received={received} />
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
            disabled={allow_bodies !== "yes" || !form.sockets}
            aria-describedby="bodies-allowed"
            onChange={(event) => change({ bodies: event.currentTarget.checked })}
          />
          Capture bodies
        </label>
        <p class="muted small" id="bodies-allowed">
          {BODIES_TEXT[allow_bodies]}
        </p>
        <FieldError failure={failure} field="bodies" />
      </details>
    </div>
  );
}
