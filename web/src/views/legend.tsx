// What the colours and marks of the graph mean; drawn by the painter of the graph itself.

import { useEffect, useRef } from "preact/hooks";
import { paintSwatch } from "../canvas/painter";
import { DARK, LEGEND, LIGHT } from "../canvas/palette";
import { indexFlameGraph } from "../lib/flame_index";
import type { Label } from "../lib/flamegraph";
import { dark } from "../state/preferences";

function Swatch({ label }: { label: Label }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const night = dark.value;
  useEffect(() => {
    if (canvas.current === null) return;
    const one = indexFlameGraph({
      periodNs: 0,
      idle: null,
      labels: [label],
      depth: Uint32Array.of(0),
      self: Float64Array.of(1),
      label: Uint32Array.of(0),
    });
    paintSwatch(canvas.current, one, night ? DARK : LIGHT, window.devicePixelRatio || 1);
  }, [label, night]);
  return <canvas class="swatch" ref={canvas} aria-hidden="true" />;
}

export function Legend() {
  return (
    <ul class="legend" aria-label="Legend">
      {LEGEND.map(({ text, label }) => (
        <li key={text}>
          <Swatch label={label} />
          {text}
        </li>
      ))}
    </ul>
  );
}
