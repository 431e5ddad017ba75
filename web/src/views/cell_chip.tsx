// Says that a profile is cut to one cell of a diagnosis, and takes that away.

import { cellText } from "../lib/cell";
import { patchRoute, route } from "../state/route";
import { Icon } from "./icons";

export function CellChip() {
  const { cell } = route.value;
  if (cell === "") return null;
  const words = cellText(cell);
  return (
    <p class="cell-chip" data-cell-chip>
      <span class="chip">
        <span class="muted">only</span>
        <span class="chip-name">{words}</span>
        <button
          type="button"
          aria-label={`Show all samples, not only ${words}`}
          onClick={() => patchRoute({ cell: "" })}
        >
          <Icon name="close" />
        </button>
      </span>
      <span class="muted">Graph, table and exports hold only the samples of this cell of the diagnosis.</span>
    </p>
  );
}
