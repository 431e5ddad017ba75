// Two chips for a process: what names its profiles will have, and which kinds of task are possible.

import type { Process } from "../api/types";
import { visible } from "../lib/format";
import { kindStatuses, kindsText } from "../lib/kind_probes";
import { verdictOf } from "../lib/symbol_chip";
import { probes } from "../state/probes";
import { processSymbols, wantSymbols } from "../state/process_symbols";
import { patchRoute } from "../state/route";

function open(process: Process): void {
  patchRoute({ process: process.id });
}

export function SymbolsChip({ process }: { process: Process }) {
  const answer = processSymbols.value.get(process.id);
  if (process.kernel_thread) return <span class="muted">kernel</span>;
  if (answer === undefined) {
    return (
      <button
        type="button"
        class="chip-button unknown"
        title="Not looked at yet: the agent reads the program's file"
        onClick={() => wantSymbols(process.id)}
      >
        Check symbols
      </button>
    );
  }
  if (answer.state === "asked") return <span class="muted">checking…</span>;
  if (answer.state === "failed") {
    return (
      <button
        type="button"
        class="chip-button unknown"
        title={`Unknown: ${visible(answer.reason)}`}
        onClick={() => open(process)}
      >
        unknown
      </button>
    );
  }
  const { level, text, reason, lacking } = verdictOf(answer.symbols);
  return (
    <button
      type="button"
      class={`chip-button level-${level}`}
      title={visible(reason)}
      aria-label={`Names: ${text}${lacking > 0 ? `, ${lacking} files could be better` : ""}. Details`}
      onClick={() => open(process)}
    >
      {text}
    </button>
  );
}

export function KindsChip({ process }: { process: Process }) {
  const statuses = kindStatuses(probes.value);
  const reasons = statuses
    .filter(({ state }) => state !== "ok")
    .map(({ title, reason }) => `${title}: ${visible(reason)}`);
  const poor = statuses.some(({ state }) => state !== "ok");
  return (
    <button
      type="button"
      class={`chip-button ${poor ? "level-exported" : "level-full"}`}
      title={
        reasons.length === 0 ? "On-CPU, off-CPU, wall clock and network are possible" : reasons.join("\n")
      }
      onClick={() => open(process)}
    >
      {kindsText(statuses)}
    </button>
  );
}
