// The TLS libraries of a task: where their plaintext is read, why not, and what that costs.

import type { PlaintextFile, RequestPlaintext, TaskRequests } from "../api/types";
import { count, duration, visible } from "../lib/format";

function costText({ hits, cost_ns, program_ns_per_hit }: RequestPlaintext, requests: number): string {
  if (hits === 0) return "No probe was met yet.";
  const each = `Probes were met ${count(hits)} times, which cost the processes about ${duration(cost_ns)} of CPU`;
  const share = requests > 0 ? `, ${duration(cost_ns / requests)} for each request` : "";
  const source =
    program_ns_per_hit === null
      ? "The time of the programs is that of a measurement elsewhere, because the statistics of the kernel are off."
      : `The programs took ${duration(program_ns_per_hit)} for each hit.`;
  return `${each}${share}. ${source}`;
}

function Probes({ file }: { file: PlaintextFile }) {
  return (
    <ul class="plaintext-probes">
      {file.probes.map((probe) => (
        <li key={`${probe.address} ${probe.function}`} title={`at ${probe.address}`}>
          <code>{visible(probe.function)}</code>
          <span class="muted">
            {probe.result ? " result" : " arguments"}, {visible(probe.class)}, {duration(probe.price_ns)}
          </span>
        </li>
      ))}
      {file.reasons.map((reason) => (
        <li key={reason} class="warn">
          {visible(reason)}
        </li>
      ))}
    </ul>
  );
}

export function Plaintext({ answer }: { answer: TaskRequests }) {
  const { plaintext } = answer;
  if (plaintext === null) return null;
  const inside = answer.operations.filter(({ tls }) => tls).reduce((sum, { count }) => sum + count, 0);
  return (
    <details class="remarks edge-remarks tls-libraries">
      <summary>
        TLS libraries<span class="badge">{plaintext.files.length}</span>
      </summary>
      {plaintext.unavailable !== null && <p class="plaintext-cost warn">{visible(plaintext.unavailable)}</p>}
      <p class="plaintext-cost muted">{costText(plaintext, inside)}</p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it */}
      <div class="plain-table-box" tabIndex={0} role="region" aria-label="TLS libraries">
        <table class="plain-table">
          <thead>
            <tr>
              <th scope="col">Library</th>
              <th scope="col">File</th>
              <th scope="col">Found by</th>
              <th scope="col">Processes</th>
              <th scope="col">Probes, and what the trap of a hit costs</th>
            </tr>
          </thead>
          <tbody>
            {plaintext.files.map((file) => (
              <tr key={`${file.path} ${file.build_id ?? ""}`}>
                <td>{visible(file.library ?? "not told")}</td>
                <td class="bounded" title={visible(file.path)}>
                  {visible(file.path)}
                </td>
                <td>{visible(file.found_by ?? "–")}</td>
                <td class="numeric">{count(file.processes)}</td>
                <td>
                  <Probes file={file} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
