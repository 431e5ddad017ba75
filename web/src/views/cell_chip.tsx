// Says that a profile is cut to one cell of a diagnosis, or to one process, and takes that away.

import { cellText } from "../lib/cell";
import { plural } from "../lib/format";
import { patchRoute, route } from "../state/route";
import { Icon } from "./icons";

function Chip({ words, away }: { words: string; away: () => void }) {
  return (
    <span class="chip">
      <span class="muted">only</span>
      <span class="chip-name">{words}</span>
      <button type="button" aria-label={`Show all samples, not only ${words}`} onClick={away}>
        <Icon name="close" />
      </button>
    </span>
  );
}

export function CellChip() {
  const { cell, pid, containers } = route.value;
  if (cell === "" && pid === null && containers.length === 0) return null;
  return (
    <p class="cell-chip" data-cell-chip>
      {cell !== "" && <Chip words={cellText(cell)} away={() => patchRoute({ cell: "" })} />}
      {pid !== null && <Chip words={`process ${pid}`} away={() => patchRoute({ pid: null })} />}
      {containers.length > 0 && (
        <Chip words={plural(containers.length, "container")} away={() => patchRoute({ containers: [] })} />
      )}
      <span class="muted">Graph, table, time and exports hold only these samples.</span>
    </p>
  );
}
