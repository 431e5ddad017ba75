// Everything about the selected frame: the frame, its function over the whole of what is shown, who
// calls it, what it calls, and how sure the share is.

import { useMemo } from "preact/hooks";
import { type FlameIndex, labelOf } from "../lib/flame_index";
import { functionOf } from "../lib/flame_keys";
import { type Relative, relatives } from "../lib/flame_relatives";
import { percent, shortName, visible } from "../lib/format";
import { wilson } from "../lib/wilson";
import { patchRoute } from "../state/route";
import { Cut } from "./container_name";
import { ChangeButtons, CopyButtons } from "./frame_actions";
import { measured, placeOf, type Reading, sourceOf } from "./frame_facts";
import { KIND_TEXT } from "./function_table";
import { Icon } from "./icons";

const MAX_RELATIVES = 6;
/** Characters at the end of a name that are always shown: `[vslot 3]` tells it from others. */
const TAIL = 14;

function RelativeList(props: {
  title: string;
  list: readonly Relative[];
  calls: FlameIndex;
  whole: number;
  none: string;
  open: (label: number) => void;
}) {
  const { title, list, calls, whole } = props;
  const rest = list.slice(MAX_RELATIVES);
  return (
    <section>
      <h3>{title}</h3>
      {list.length === 0 && <p class="muted">{props.none}</p>}
      <ul class="relatives">
        {list.slice(0, MAX_RELATIVES).map(({ label, total }) => {
          const { name } = calls.graph.labels[label]!;
          const short = shortName(name);
          return (
            <li key={label}>
              <span class="numeric">{percent(total, whole)}</span>
              <button type="button" class="link mono" title={visible(name)} onClick={() => props.open(label)}>
                <Cut parts={[short.slice(0, -TAIL), short.slice(-TAIL)]} />
              </button>
            </li>
          );
        })}
        {rest.length > 0 && (
          <li class="muted">
            <span class="numeric">
              {percent(
                rest.reduce((sum, { total }) => sum + total, 0),
                whole,
              )}
            </span>
            {rest.length} more: see the sandwich
          </li>
        )}
      </ul>
    </section>
  );
}

/** The interval of a share of samples, or why there is none. */
function Interval({ hits, samples, sampled }: { hits: number; samples: number; sampled: boolean }) {
  const interval = sampled ? wilson(hits, samples) : null;
  if (interval === null) {
    return (
      <span class="muted" title="An interval belongs to a share that is counted from samples">
        no interval: measured, not sampled
      </span>
    );
  }
  const text = (share: number): string => `${(share * 100).toFixed(share < 0.1 ? 2 : 1)}`;
  return (
    <span title="95 % interval (Wilson) of the share, for samples that are independent of each other">
      {text(interval.low)} – {text(interval.high)} %
    </span>
  );
}

export function FramePanel(props: {
  /** The graph of the frame. */
  index: FlameIndex;
  /** -1 for none. */
  node: number;
  reading: Reading;
  /** The same profile from the root on. */
  calls: FlameIndex;
  /** Whether the numbers count samples, and not time or switches that were measured one by one. */
  sampled: boolean;
  onSandwich: (node: number) => void;
  onFunction: (label: number) => void;
}) {
  const { index, node, calls, sampled } = props;
  // Labels that the view adds come after those of the profile.
  const own = node < 0 ? -1 : index.graph.label[node]!;
  const target = own >= 0 && own < calls.graph.labels.length ? functionOf(calls.graph.labels)[own]! : -1;
  const near = useMemo(() => (target < 0 ? null : relatives(calls, target)), [calls, target]);
  const whole = calls.total[0]!;
  const { periodNs } = calls.graph;
  const close = (
    <button
      type="button"
      class="icon-button small push"
      aria-label="Close the details"
      onClick={() => patchRoute({ panel: false }, "replace")}
    >
      <Icon name="close" />
    </button>
  );
  if (node < 0) {
    return (
      <aside class="frame-panel" aria-label="Details of the selected frame">
        <header>
          <h2>No frame is selected</h2>
          {close}
        </header>
        <p class="muted">Click a frame, or walk to one with the arrow keys.</p>
      </aside>
    );
  }
  const label = labelOf(index, node);
  const place = placeOf(label);
  const source = sourceOf(label);
  return (
    <aside class="frame-panel" aria-label="Details of the selected frame" data-panel>
      <header>
        <h2>{KIND_TEXT[label.kind]}</h2>
        {close}
      </header>
      <code class="panel-name">{visible(label.name)}</code>
      <div class="panel-copies">
        <CopyButtons index={index} node={node} />
      </div>
      <dl class="panel-facts">
        <dt>{props.reading === "calls" ? "Here, total" : "By this path"}</dt>
        <dd>{measured(index.total[node]!, whole, periodNs)}</dd>
        {near !== null && (
          <>
            <dt>Everywhere, total</dt>
            <dd>{measured(near.total, whole, periodNs)}</dd>
            <dt>95 % interval</dt>
            <dd data-interval>
              <Interval hits={near.total} samples={whole} sampled={sampled} />
            </dd>
            <dt>Everywhere, self</dt>
            <dd>{measured(near.self, whole, periodNs)}</dd>
            <dt>95 % interval</dt>
            <dd>
              <Interval hits={near.self} samples={whole} sampled={sampled} />
            </dd>
          </>
        )}
        {label.module !== "" && (
          <>
            <dt>Module</dt>
            <dd class="mono">{visible(label.module)}</dd>
          </>
        )}
        <dt>Source line</dt>
        <dd class={place === "" ? "muted" : "mono"}>{place === "" ? "not known" : place}</dd>
        {source !== "" && (
          <>
            <dt>Name from</dt>
            <dd>{source}</dd>
          </>
        )}
      </dl>
      {near !== null && (
        <>
          <RelativeList
            title="Callers"
            list={near.callers}
            calls={calls}
            whole={whole}
            none="none: the stacks begin here"
            open={props.onFunction}
          />
          <RelativeList
            title="Callees"
            list={near.callees}
            calls={calls}
            whole={whole}
            none="none: all samples are its own"
            open={props.onFunction}
          />
        </>
      )}
      <ChangeButtons index={index} node={node} onSandwich={props.onSandwich} />
    </aside>
  );
}
