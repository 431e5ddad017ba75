// A line of recent readings. The scale is 0 to `top`, or to the largest reading above that.

const WIDTH = 60;
const HEIGHT = 16;
const SLOTS = 30;

/** `slots`: readings for which there is room; fewer stand at the right end. */
export function Sparkline({
  values,
  top: wanted = 100,
  slots = SLOTS,
}: {
  values: readonly number[];
  top?: number;
  slots?: number;
}) {
  if (values.length < 2) return <svg class="spark" width={WIDTH} height={HEIGHT} aria-hidden="true" />;
  const top = Math.max(wanted, ...values);
  const step = WIDTH / (slots - 1);
  const from = WIDTH - (values.length - 1) * step;
  const points = values
    .map(
      (value, i) =>
        `${(from + i * step).toFixed(1)},${(HEIGHT - 1 - (value / top) * (HEIGHT - 2)).toFixed(1)}`,
    )
    .join(" ");
  return (
    <svg class="spark" width={WIDTH} height={HEIGHT} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true">
      <polygon class="spark-area" points={`${from.toFixed(1)},${HEIGHT} ${points} ${WIDTH},${HEIGHT}`} />
      <polyline class="spark-line" points={points} />
    </svg>
  );
}
