// What the kernel and the privileges allow, the configuration in force, and the support bundle.

import { useEffect, useState } from "preact/hooks";
import { api, ProblemError } from "../api/client";
import type { Feature, Setting } from "../api/types";
import { bytes, visible } from "../lib/format";
import { save } from "../lib/save";
import { meta } from "../state/live";
import { mayChange } from "../state/role";

type Answer<T> = { readonly items: readonly T[] } | { readonly failed: string } | null;

/** Asked once: these do not change while the agent runs. */
function useOnce<T>(ask: (signal: AbortSignal) => Promise<{ readonly items: readonly T[] }>): Answer<T> {
  const [answer, setAnswer] = useState<Answer<T>>(null);
  useEffect(() => {
    const stop = new AbortController();
    ask(stop.signal).then(setAnswer, (error: unknown) => {
      if (!stop.signal.aborted) setAnswer({ failed: error instanceof Error ? error.message : "failed" });
    });
    return () => stop.abort();
  }, []);
  return answer;
}

function Unknown<T>({ answer }: { answer: Answer<T> }) {
  return answer !== null && "failed" in answer ? (
    <p class="field-error">Unknown: {visible(answer.failed)}</p>
  ) : (
    <p class="muted">Asking…</p>
  );
}

const VERDICT_TEXT = { ok: "yes", degraded: "with less", missing: "no" } as const;
const VERDICT_CLASS = { ok: "ok", degraded: "degraded", missing: "impossible" } as const;

export function FeaturesCard() {
  const answer = useOnce<Feature>(api.features);
  return (
    <section class="card wide">
      <h2>Kernel and privileges</h2>
      {answer === null || "failed" in answer ? (
        <Unknown answer={answer} />
      ) : (
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">Feature</th>
              <th scope="col">Here</th>
              <th scope="col" class="numeric">
                From kernel
              </th>
              <th scope="col">Found</th>
            </tr>
          </thead>
          <tbody>
            {answer.items.map(({ name, verdict, minimum_kernel, detail, remedy }) => (
              <tr key={name}>
                <td class="mono">{visible(name)}</td>
                <td>
                  <span class={`kind-state kind-${VERDICT_CLASS[verdict]}`}>{VERDICT_TEXT[verdict]}</span>
                </td>
                <td class="numeric">{minimum_kernel === "" ? "any" : minimum_kernel}</td>
                <td class="wrap">
                  {visible(detail)}
                  {remedy !== "" && <p class="small">→ {visible(remedy)}</p>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

export function ConfigCard() {
  const answer = useOnce<Setting>(api.config);
  return (
    <section class="card">
      <h2>Configuration in force</h2>
      {answer === null || "failed" in answer ? (
        <Unknown answer={answer} />
      ) : (
        <dl class="pairs settings">
          {answer.items.map(({ name, value }) => (
            <div key={name}>
              <dt class="mono">{visible(name)}</dt>
              <dd class="mono">{visible(value)}</dd>
            </div>
          ))}
        </dl>
      )}
      <p class="muted small">
        Read only. The token and keys are in files that are named here and not shown; secrets in URLs are
        masked.
      </p>
    </section>
  );
}

export function SupportCard() {
  const [state, setState] = useState<"idle" | "busy" | { readonly said: string; readonly ok: boolean }>(
    "idle",
  );
  const fetchBundle = async (): Promise<void> => {
    setState("busy");
    try {
      const bundle = await api.supportBundle();
      const node = (meta.value?.node ?? "node").replace(/[^0-9A-Za-z._-]/g, "_");
      save(
        bundle,
        `profiler-agent-${node}-${new Date().toISOString().slice(0, 19).replace(/[:T]/g, "-")}.tar.gz`,
      );
      setState({ said: `Saved, ${bytes(bundle.size)}.`, ok: true });
    } catch (error) {
      const said = error instanceof ProblemError ? error.message : "the agent does not answer";
      setState({ said, ok: false });
    }
  };
  return (
    <section class="card">
      <h2>Support bundle</h2>
      <p>
        One archive with what is on this page, the list of tasks and the last lines of the log. Names of
        processes are in it; stacks, command lines, payload and the token are not.
      </p>
      <p class="buttons">
        {mayChange.value ? (
          <button type="button" disabled={state === "busy"} onClick={fetchBundle}>
            {state === "busy" ? "Collecting…" : "Download"}
          </button>
        ) : (
          <span class="muted">The read-only token may not ask for it.</span>
        )}
        {typeof state === "object" && (
          <span role="status" class={state.ok ? "" : "field-error"}>
            {visible(state.said)}
          </span>
        )}
      </p>
      <p class="muted small">
        The same without a browser: <code>profiler-agent support-bundle</code>
      </p>
    </section>
  );
}
