// The two sides of one edge beside each other: counters, and times as bars with their bounds.

import type { Edge, EdgeEnd, EdgeSide, Histogram } from "../api/types";
import { EDGE_METRICS, type MetricKey, type Times, timesOf } from "../lib/edge_metrics";
import { bars, endName, errnoText, meanText } from "../lib/edges";
import { bytes, count, duration, plural, visible } from "../lib/format";
import { patchRoute } from "../state/route";
import { ContainerLine, useContainerOf } from "./container_name";
import type { EdgeOrigin } from "./edges_view";
import { Icon } from "./icons";
import { EdgeLink } from "./topology_panel";

export function Bars({ histogram, unitNs }: { histogram: Histogram; unitNs: number }) {
  const shown = bars(histogram, unitNs);
  const most = Math.max(1, ...shown.map((bar) => bar.count));
  return (
    <ol class="bars">
      {shown.map((bar) => (
        <li key={bar.label}>
          <span class="bar-bounds numeric">{bar.label}</span>
          <span class="bar-track" aria-hidden="true">
            {bar.count > 0 && <span class="bar-fill" style={{ width: `${(bar.count / most) * 100}%` }} />}
          </span>
          <span class="bar-count numeric">{count(bar.count)}</span>
        </li>
      ))}
    </ol>
  );
}

function TimesCard({ title, help, times }: { title: string; help: string; times: Times }) {
  const mean = meanText(times.sum * times.unitNs, times.count);
  return (
    <section class="times" title={help}>
      <h4>
        {title}{" "}
        <span class="muted numeric">{`${count(times.count)}${mean === null ? "" : ` · mean ${mean}`}`}</span>
      </h4>
      {times.count === 0 ? (
        <p class="muted small">none</p>
      ) : (
        <Bars histogram={times.histogram} unitNs={times.unitNs} />
      )}
    </section>
  );
}

function Pair({
  title,
  value,
  reason,
}: {
  title: string;
  value: string | null;
  reason?: string | undefined;
}) {
  return (
    <div title={value === null ? visible(reason ?? "") : undefined}>
      <dt>{title}</dt>
      <dd class={value === null ? "muted" : ""}>{value ?? "not available"}</dd>
    </div>
  );
}

function named(counts: Readonly<Record<string, number>>, name: (key: string) => string): string {
  return Object.entries(counts)
    .map(([key, value]) => `${visible(name(key))} ${count(value)}`)
    .join(", ");
}

function counted(total: number, details: string): string {
  return details === "" ? count(total) : `${count(total)}: ${details}`;
}

type Reasons = Readonly<Record<string, string>>;

function Counters({ side, reasons }: { side: EdgeSide; reasons: Reasons }) {
  const { connections, write, read, connect, retransmit, drop, reset, error } = side;
  const transfer = (found: EdgeSide["write"]): string | null =>
    found === null
      ? null
      : `${bytes(found.bytes)} in ${plural(found.count, "call")}${found.time_ns === null ? "" : `, ${duration(found.time_ns)}`}`;
  return (
    <dl class="pairs">
      <Pair title="Connections" value={`${count(connections.count)}, ${count(connections.open)} open`} />
      <Pair title="Written" value={transfer(write)} reason={reasons.write} />
      <Pair title="Read" value={transfer(read)} reason={reasons.read} />
      <Pair
        title="Minimum RTT"
        value={side.min_rtt_us === null ? null : duration(side.min_rtt_us * 1e3)}
        reason={reasons.min_rtt_us ?? "no round trip was measured yet"}
      />
      <Pair
        title="Failed connects"
        value={connect === null ? null : count(connect.failed)}
        reason={reasons.connect}
      />
      <Pair
        title="Retransmits"
        value={retransmit === null ? null : count(retransmit.count)}
        reason={reasons.retransmit}
      />
      <Pair
        title="Drops"
        value={
          drop === null
            ? null
            : counted(
                drop.count,
                named(drop.by_reason, (reason) => reason),
              )
        }
        reason={reasons.drop}
      />
      <Pair
        title="Resets"
        value={reset === null ? null : `${count(reset.sent)} sent, ${count(reset.received)} received`}
        reason={reasons.reset}
      />
      <Pair
        title="Errors"
        value={error === null ? null : counted(error.count, named(error.by_errno, errnoText))}
        reason={reasons.error}
      />
    </dl>
  );
}

/** Times in the order of their cards, with a title and a help of their own where the metric's do not fit. */
const CARDS: readonly { readonly key: MetricKey; readonly title?: string; readonly help?: string }[] = [
  { key: "rtt" },
  { key: "wait", help: "How long data waited until the process read it: the lag of an event loop" },
  { key: "connect" },
  { key: "accept", title: "Accept", help: "How long a connection waited to be accepted" },
  { key: "write", title: "Write calls", help: "Time in the calls" },
  { key: "read", title: "Read calls", help: "Time in the calls" },
  { key: "close" },
];

function Side({
  title,
  end,
  side,
  reasons,
}: {
  title: string;
  end: EdgeEnd;
  side: EdgeSide | null;
  reasons: Reasons;
}) {
  const container = useContainerOf(end);
  return (
    <section class="edge-side" aria-label={title}>
      <h3>
        {title} <span class="name">{visible(endName(end))}</span>{" "}
        <span class="muted">{end.pid === null ? "" : `pid ${end.pid}`}</span>
      </h3>
      <p class="muted small">
        <span class="mono">{visible(`${end.address}${end.port === null ? "" : ` port ${end.port}`}`)}</span>
        {container !== null && (
          <>
            {" · container "}
            <ContainerLine container={container} />
          </>
        )}
      </p>
      {side === null ? (
        <p class="muted">This end was not watched.</p>
      ) : (
        <>
          <Counters side={side} reasons={reasons} />
          <div class="times-grid">
            {CARDS.map(({ key, ...own }) => {
              const times = timesOf(side, key);
              return times && <TimesCard key={key} {...EDGE_METRICS[key]} {...own} times={times} />;
            })}
          </div>
        </>
      )}
    </section>
  );
}

/** Reasons of this edge: those of its protocol stand before the general ones. */
export function reasonsOf(edge: Edge, unavailable: Reasons): Reasons {
  const prefix = `${edge.protocol}.`;
  const own = Object.entries(unavailable).filter(([metric]) => metric.startsWith(prefix));
  return {
    ...unavailable,
    ...Object.fromEntries(own.map(([metric, reason]) => [metric.slice(prefix.length), reason])),
  };
}

export function EdgePanel({
  edge,
  unavailable,
  origin,
}: {
  edge: Edge;
  unavailable: Reasons;
  origin: EdgeOrigin;
}) {
  const reasons = reasonsOf(edge, unavailable);
  return (
    <aside class="edge-panel" aria-label="Both sides of the edge">
      <header>
        <h2>
          {visible(endName(edge.client))} → {visible(endName(edge.server))}
          <span class="muted">
            {` port ${edge.server.port ?? "unknown"}`}
            {edge.original_destination !== null && ` · original destination ${edge.original_destination}`}
          </span>
        </h2>
        <EdgeLink origin={origin} edge={edge.id} text="Open the edge: over time" />
        <button
          type="button"
          class="icon-button"
          aria-label="Close the sides"
          onClick={() => patchRoute({ edge: "" }, "replace")}
        >
          <Icon name="close" />
        </button>
      </header>
      <div class="edge-sides">
        <Side title="Client" end={edge.client} side={edge.metrics.client} reasons={reasons} />
        <Side title="Server" end={edge.server} side={edge.metrics.server} reasons={reasons} />
      </div>
    </aside>
  );
}
