// The time range of the page of an edge: a picture of the whole time, and two fields for the keyboard.

import type { ComponentChildren } from "preact";
import { moment } from "../lib/format";
import { patchRoute, route } from "../state/route";
import { ClockTicks } from "./clock_ticks";

function Field(props: {
  label: string;
  value: number | null;
  /** What holds without a value. */
  shown: number;
  least: number;
  most: number;
  zeroNs: number | null;
  set: (ms: number | null) => void;
}) {
  return (
    <label class="inline-label">
      {props.label}{" "}
      <input
        type="number"
        min={props.least / 1000}
        max={props.most / 1000}
        step="any"
        placeholder={String((props.label === "from" ? props.least : props.most) / 1000)}
        value={props.value === null ? "" : props.value / 1000}
        onChange={(event) => {
          const { value, valueAsNumber } = event.currentTarget;
          props.set(
            value === "" || !Number.isFinite(valueAsNumber) ? null : Math.round(valueAsNumber * 1000),
          );
        }}
      />{" "}
      s
      {props.zeroNs !== null && (
        <span class="muted numeric"> {moment(props.zeroNs + props.shown * 1e6)}</span>
      )}
    </label>
  );
}

export function EdgeRange(props: {
  whole: readonly [number, number] | null;
  from: number | null;
  to: number | null;
  /** Where the last minute begins, when that is shown. */
  recent: number | null;
  /** The last minute is what is shown when nothing is picked. */
  always: boolean;
  /** When counting began, where that is known. */
  zeroNs: number | null;
  children: ComponentChildren;
}) {
  const { whole, from, to, recent, always, zeroNs } = props;
  if (whole === null) return null;
  const [least, most] = whole;
  const share = (ms: number): number =>
    Math.min(100, Math.max(0, ((ms - least) / Math.max(1, most - least)) * 100));
  const left = share(from ?? recent ?? least);
  const right = share(to ?? most);
  const change = (next: { from?: number | null; to?: number | null }): void => {
    const range = { from, to, ...next };
    // An empty range would be refused.
    if (range.from !== null && range.to !== null && range.from >= range.to) return;
    patchRoute(range);
  };
  return (
    <div class="edge-range">
      <div class="edge-range-picture">
        {props.children}
        {(from !== null || to !== null || recent !== null) && (
          <div class="range-picked" style={{ left: `${left}%`, width: `${Math.max(0.3, right - left)}%` }} />
        )}
      </div>
      {zeroNs !== null && <ClockTicks fromMs={zeroNs / 1e6 + least} toMs={zeroNs / 1e6 + most} />}
      <fieldset class="edge-range-fields">
        <legend class="hidden">Time range</legend>
        <Field
          label="from"
          value={from}
          shown={from ?? recent ?? least}
          least={least}
          most={most}
          zeroNs={zeroNs}
          set={(ms) => change({ from: ms })}
        />
        <Field
          label="to"
          value={to}
          shown={to ?? most}
          least={least}
          most={most}
          zeroNs={zeroNs}
          set={(ms) => change({ to: ms })}
        />
        {from !== null && from > least && (
          <label class="check">
            <input
              type="checkbox"
              checked={route.value.earlier}
              onChange={(event) => patchRoute({ earlier: event.currentTarget.checked }, "replace")}
            />
            with the time before it
          </label>
        )}
        {recent !== null && (
          <button type="button" onClick={() => patchRoute({ from: least, to: null })}>
            Whole time
          </button>
        )}
        {(from !== null || to !== null) && (
          <button type="button" onClick={() => patchRoute({ from: null, to: null, earlier: false })}>
            {always ? "Last minute" : "Whole time"}
          </button>
        )}
      </fieldset>
    </div>
  );
}
