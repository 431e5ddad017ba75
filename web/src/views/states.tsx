// Pages and boxes for the moments without data: loading, empty, error, no access.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { saveToken } from "../api/token";
import { visible } from "../lib/format";
import { access, reconnect, refusals } from "../state/live";

export function Loading({ what }: { what: string }) {
  return (
    <div class="state" role="status">
      <span class="spinner" aria-hidden="true" />
      <p>Loading {what}…</p>
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="state">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function ErrorBox({
  title,
  detail,
  hint,
}: {
  title: string;
  detail: string;
  hint?: string | undefined;
}) {
  return (
    <div class="state" role="alert">
      <h2>{title}</h2>
      <p>{visible(detail)}</p>
      {hint !== undefined && <p class="muted">{visible(hint)}</p>}
    </div>
  );
}

/** What was typed last: the page is left while the agent is asked. */
let lastTyped = "";

/** Shown instead of every page while the agent does not accept the token. */
export function TokenPage() {
  const [text, setText] = useState(lastTyped);
  const wrong = access.value === "wrong_token";
  const submit = (event: Event): void => {
    event.preventDefault();
    const token = text.trim().replace(/^.*#token=/, "");
    if (token === "") return;
    lastTyped = text;
    saveToken(token);
    reconnect();
  };
  return (
    <main class="token-page">
      <h1>{wrong ? "Invalid token" : "A token is needed"}</h1>
      <p>
        The agent shows data only to those who hold its token, on this machine too.
        {wrong &&
          " It makes a fresh token at each start unless it was given a token file, so an older link stops working."}
      </p>
      <p>
        This prints the address with it, where the agent runs; in a container by <code>docker exec</code> or{" "}
        <code>kubectl exec</code>:
      </p>
      <pre class="command">profiler-agent url</pre>
      <p>
        It is in the file <code>token</code> in the agent's data directory (usually{" "}
        <code>/var/lib/profiler-agent/token</code>, readable by root only), or in the file given with{" "}
        <code>--token-file</code>.
      </p>
      <form onSubmit={submit} class="token-form">
        {wrong && refusals.value > 1 && (
          <p class="field-error" role="alert">
            Invalid token: the agent has refused {refusals.value} tokens in a row.
          </p>
        )}
        <label for="token">Token or whole address</label>
        <div class="inline-field">
          <input
            id="token"
            type="password"
            autocomplete="off"
            spellcheck={false}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
          <button type="submit" class="primary" disabled={text.trim() === ""}>
            Open
          </button>
        </div>
      </form>
    </main>
  );
}
