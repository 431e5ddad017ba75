// What processes add to the requests that pass through them, and how sure that is.

import { Fragment } from "preact";
import type { RequestSidecar, RequestValues, SidecarTimes } from "../api/types";
import { endName } from "../lib/edges";
import { count, duration, percent, visible } from "../lib/format";
import { PERCENTILES, percentileText } from "../lib/request_values";
import {
  classShares,
  headerText,
  isLogged,
  type SidecarPart,
  sidecarParts,
  splitPieces,
  splitText,
  trustedPairs,
} from "../lib/sidecar";
import { ContainerLine, useContainerOf } from "./container_name";
import { Empty } from "./states";

function PartRow({
  title,
  help,
  values,
  mark,
}: {
  title: string;
  help: string;
  values: RequestValues;
  /** Its piece of the bar; null for a part of another. */
  mark: SidecarPart["key"] | null;
}) {
  return (
    <tr title={help}>
      <th scope="row" class={mark === null ? "part-of" : ""}>
        {mark !== null && <span class={`timing-mark split-${mark}`} aria-hidden="true" />}
        {title}
      </th>
      <td>{values.mean === null ? "–" : duration(values.mean)}</td>
      {PERCENTILES.map((which) => (
        <td key={which}>{percentileText(values, which, duration)}</td>
      ))}
      <td>{count(values.count)}</td>
    </tr>
  );
}

function Split({ times }: { times: SidecarTimes }) {
  const pieces = splitPieces(times);
  if (pieces.length === 0) return <p class="muted">No part was measured.</p>;
  return (
    <>
      <div class="split-bar" role="img" aria-label={splitText(pieces)} title={splitText(pieces)}>
        {pieces.map(({ part, share }) => (
          <span key={part.key} class={`split-${part.key}`} style={{ width: `${share * 100}%` }} />
        ))}
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it */}
      <div class="plain-table-box" tabIndex={0} role="region" aria-label="Times of the parts">
        <table class="plain-table numeric">
          <thead>
            <tr>
              <th scope="col">Part</th>
              <th scope="col">Mean</th>
              <th scope="col">p50</th>
              <th scope="col">p90</th>
              <th scope="col">p99</th>
              <th scope="col">Pairs</th>
            </tr>
          </thead>
          <tbody>
            {sidecarParts(times).map(({ key, title, help, values }) => (
              <Fragment key={key}>
                <PartRow title={title} help={help} values={values} mark={key} />
                {key === "upstream" && times.answer_wait_ns.count > 0 && (
                  <PartRow
                    title="of which response waiting to be read"
                    help="The response lay in the socket already: the event loop was busy with others"
                    values={times.answer_wait_ns}
                    mark={null}
                  />
                )}
              </Fragment>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

/** How pairs were found: shares of the classes of evidence. */
function Evidence({ sidecar }: { sidecar: RequestSidecar }) {
  const classes = classShares(sidecar);
  if (classes.length === 0) return null;
  return (
    <div class="pair-evidence small">
      <p class="muted">Pairs by evidence</p>
      <dl>
        {classes.map(({ key, title, help, text, trusted }) => (
          <div key={key} class="evidence-class" title={visible(help)}>
            <dt>{visible(title)}</dt>
            <dd class={trusted ? "numeric" : "numeric muted"}>
              {text}
              {!trusted && ", not in the times"}
            </dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

export function SidecarCard({ sidecar }: { sidecar: RequestSidecar }) {
  const { process, requests_in, requests_out, mean_ns, times, unmatched_in, unmatched_out, forgotten } =
    sidecar;
  const container = useContainerOf(process);
  const header = headerText(sidecar);
  const name = visible(endName(process));
  return (
    <section class="row-card sidecar" aria-label={`Time in ${name}`} data-sidecar={process.pid ?? ""}>
      <h3>
        <span class="name">{name}</span>
        <span class="muted">
          {process.pid === null ? "" : `pid ${process.pid}`}
          {container !== null && (
            <>
              {" · container "}
              <ContainerLine container={container} />
            </>
          )}
        </span>
      </h3>
      <p>
        {mean_ns === null ? (
          <span class="muted" title="More time was waited than taken, as with requests to several at once">
            Its mean time for a request cannot be told.
          </span>
        ) : (
          <>
            <b class="numeric" title="All time of requests in, less that of requests out, by requests in">
              {duration(mean_ns)}
            </b>{" "}
            per request (mean)
          </>
        )}
        <span class="muted numeric">{` · ${count(requests_in)} in, ${count(requests_out)} out`}</span>
      </p>
      {times === null ? (
        <p class="muted">
          No split into parts: no request in was tied to the one that went out for it by more than their
          order, which is not evidence.
        </p>
      ) : (
        <>
          <p class="muted small">
            {`Of ${count(trustedPairs(sidecar))} pairs (${percent(trustedPairs(sidecar), requests_in)} of requests in). The bar shows means.`}
          </p>
          <Split times={times} />
        </>
      )}
      <Evidence sidecar={sidecar} />
      <p class="muted small">
        {`Without a partner: ${count(unmatched_in)} in (no upstream, or not matched), ${count(unmatched_out)} out.`}
        {forgotten > 0 && ` For ${count(forgotten)} there was no room to wait for their other half.`}
      </p>
      {!isLogged(sidecar) && (
        <p class="muted small">
          {header === null ? "No response had x-envoy-upstream-service-time." : `Cross-check: ${header}.`}
        </p>
      )}
    </section>
  );
}

export function Sidecars({ sidecars }: { sidecars: readonly RequestSidecar[] }) {
  if (sidecars.length === 0)
    return (
      <Empty title="No process passes requests on">
        <p class="muted">
          A sidecar is a process that requests go into and out of. Inside TLS they are seen only when the task
          reads plaintext at TLS libraries.
        </p>
      </Empty>
    );
  return (
    <div class="request-scroll">
      <div class="request-cards wide">
        {sidecars.map((sidecar) => (
          <SidecarCard
            key={`${sidecar.process.pid}-${sidecar.process.start_ticks}-${sidecar.process.address}`}
            sidecar={sidecar}
          />
        ))}
      </div>
    </div>
  );
}
