// The way from the root to the zoomed frame.

import { ancestry, type FlameIndex, labelOf } from "../lib/flame_index";
import { parsePart } from "../lib/flame_window";
import { percent, shortName, visible } from "../lib/format";
import { route } from "../state/route";

interface Props {
  readonly index: FlameIndex;
  readonly zoomed: number;
  readonly zoom: (node: number) => void;
}

export function Crumbs({ index, zoomed, zoom }: Props) {
  const part = parsePart(route.value.part);
  if (zoomed === 0 && part === null) return null;
  const path = ancestry(index, zoomed);
  const shown = path.length > 7 ? [...path.slice(0, 2), -1, ...path.slice(-4)] : path;
  return (
    <nav class="crumbs" aria-label="Zoom">
      {shown.map((node) => {
        if (node === -1) {
          return (
            <span key="gap" class="muted">
              … {path.length - 6} frames …
            </span>
          );
        }
        const name = visible(labelOf(index, node).name);
        return node === zoomed ? (
          <span key={node} class="crumb here" aria-current="true" title={name}>
            {shortName(name)}
          </span>
        ) : (
          <button key={node} type="button" class="crumb link" title={name} onClick={() => zoom(node)}>
            {shortName(name)}
          </button>
        );
      })}
      {part !== null && (
        <span class="crumb-share" data-part>
          <b>{percent(part.to - part.from, 1)}</b> of the width is seen
          <button type="button" class="quiet" onClick={() => zoom(zoomed)}>
            Whole width
          </button>
        </span>
      )}
      {zoomed !== 0 && (
        <span class="crumb-share">
          <b>{percent(index.total[zoomed]!, index.total[0]!)}</b> of all that is shown
          <button type="button" class="quiet" onClick={() => zoom(0)}>
            Show all
          </button>
        </span>
      )}
    </nav>
  );
}
