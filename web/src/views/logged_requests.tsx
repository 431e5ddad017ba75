// What Envoys report of a task's requests by their access logs: a section for each Envoy.

import type { LoggedFlag, LoggedRequests, LoggedUpstream, LoggingEnvoy } from "../api/types";
import { count, duration, percent, visible } from "../lib/format";
import {
  detailRows,
  envoyName,
  flagShare,
  hostRows,
  joinedText,
  phaseRows,
  receivedText,
  retriesText,
  tlsRows,
} from "../lib/logged_requests";
import { PERCENTILES, percentileText } from "../lib/request_values";
import { ContainerLine, useContainerOf } from "./container_name";
import { PageLink } from "./page_link";
import { Empty } from "./states";

function Phases({ envoy: { phases } }: { envoy: LoggingEnvoy }) {
  const rows = phaseRows(phases);
  return (
    <section class="row-card" aria-label="Phases of requests">
      <h3>Phases</h3>
      {rows.length === 0 ? (
        <p class="muted small">No entry had the times of a phase.</p>
      ) : (
        <>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it */}
          <div class="plain-table-box" tabIndex={0} role="region" aria-label="Times of the phases">
            <table class="plain-table numeric">
              <thead>
                <tr>
                  <th scope="col">Phase</th>
                  <th scope="col">Mean</th>
                  <th scope="col" class="phase-bar" aria-hidden="true" />
                  {PERCENTILES.map((which) => (
                    <th key={which} scope="col">
                      {which}
                    </th>
                  ))}
                  <th scope="col">Requests</th>
                </tr>
              </thead>
              <tbody>
                {rows.map(({ key, title, meaning, own, values, length }) => (
                  <tr key={key} title={visible(meaning)}>
                    <th scope="row">
                      {visible(title)} <code class="muted">{visible(key)}</code>
                    </th>
                    <td>{values.mean === null ? "–" : duration(values.mean)}</td>
                    <td class="phase-bar" aria-hidden="true">
                      <div class="bar-track">
                        <div
                          class={own ? "bar-fill" : "bar-fill other"}
                          style={{ width: `${length * 100}%` }}
                        />
                      </div>
                    </td>
                    {PERCENTILES.map((which) => (
                      <td key={which}>{percentileText(values, which, duration)}</td>
                    ))}
                    <td>{count(values.count)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          <p class="muted small">
            Bars show means; coloured ones are time in the proxy. Upstream times are those of the last
            attempt, and phases overlap where a response begins before the request ends.
          </p>
        </>
      )}
    </section>
  );
}

/** Text with names of settings between backquotes. */
function Coded({ text }: { text: string }) {
  return (
    <>
      {text
        .split("`")
        .map((part, i) => (i % 2 === 0 ? visible(part) : <code key={`${i} ${part}`}>{visible(part)}</code>))}
    </>
  );
}

/** Where the requests with a flag went. */
function FlaggedUpstreams({ flag }: { flag: LoggedFlag }) {
  const chosen = flag.upstreams.filter(({ cluster }) => cluster !== "");
  if (chosen.length === 0) return null;
  const elsewhere = flag.count - chosen.reduce((sum, place) => sum + place.count, 0);
  return (
    <ul class="flag-upstreams">
      {chosen.map(({ cluster, address, count: requests }) => (
        <li key={`${cluster} ${address}`}>
          {count(requests)} to {address === "" ? "no host" : <code>{visible(address)}</code>} of{" "}
          <code>{visible(cluster)}</code>
        </li>
      ))}
      {elsewhere > 0 && <li>{count(elsewhere)} elsewhere</li>}
    </ul>
  );
}

function Flags({ envoy }: { envoy: LoggingEnvoy }) {
  const { flags } = envoy;
  return (
    <section class="row-card" aria-label="Response flags">
      <h3>Response flags</h3>
      {flags.length === 0 ? (
        <p class="muted small">No request has one: no failure was reported by flag.</p>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it
        <div class="plain-table-box" tabIndex={0} role="region" aria-label="Requests by response flag">
          <table class="plain-table flag-table">
            <thead>
              <tr>
                <th scope="col">Flag</th>
                <th scope="col" class="numeric">
                  Requests
                </th>
                <th
                  scope="col"
                  class="numeric"
                  title="Of requests and connections; one may have several flags"
                >
                  Share
                </th>
                <th scope="col" class="flag-meaning">
                  What happened, and the usual cause
                </th>
              </tr>
            </thead>
            <tbody>
              {flags.map((flag) => (
                <tr key={flag.name}>
                  <th scope="row" class="flag-name" title={visible(flag.long_name)}>
                    <code>{visible(flag.name)}</code>
                  </th>
                  <td class="numeric">{count(flag.count)}</td>
                  <td class="numeric">{flagShare(flag, envoy)}</td>
                  <td class="flag-meaning">
                    {flag.meaning === "" ? (
                      <span class="muted">not a flag of a known release of Envoy</span>
                    ) : (
                      visible(flag.meaning)
                    )}
                    <FlaggedUpstreams flag={flag} />
                    {flag.cause !== "" && (
                      <p class="muted">
                        <Coded text={flag.cause} />
                      </p>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function Details({ envoy: { details, requests } }: { envoy: LoggingEnvoy }) {
  const { shown, rest } = detailRows(details);
  const most = Math.max(1, ...shown.map((detail) => detail.count));
  return (
    <section class="row-card" aria-label="Response details">
      <h3>Response details</h3>
      {shown.length === 0 ? (
        <p class="muted small">No entry had any.</p>
      ) : (
        <ol class="bars detail-bars">
          {shown.map((detail) => (
            <li key={detail.text}>
              <span class="bar-bounds mono" title={visible(detail.text)}>
                {visible(detail.text)}
              </span>
              <span class="bar-track" aria-hidden="true">
                <span class="bar-fill" style={{ width: `${(detail.count / most) * 100}%` }} />
              </span>
              <span class="bar-count numeric">
                {`${count(detail.count)} (${percent(detail.count, requests)})`}
              </span>
            </li>
          ))}
        </ol>
      )}
      {rest !== "" && <p class="muted small">{rest}</p>}
    </section>
  );
}

function Host({ host }: { host: LoggedUpstream }) {
  const { cluster, address, requests, errors, ns, rtt_ns, retransmits, stands_out } = host;
  const isOut = stands_out !== null;
  return (
    <>
      <tr class={isOut ? "stands-out" : ""}>
        <th scope="row" class="mono host-name" title={visible(address)}>
          {isOut && <span aria-hidden="true">▲ </span>}
          {visible(address)}
        </th>
        <td class="mono host-name" title={visible(cluster)}>
          {visible(cluster)}
        </td>
        <td class="numeric">{count(requests)}</td>
        <td class={errors > 0 ? "numeric bad" : "numeric muted"}>
          {errors === 0 ? "0" : `${count(errors)} (${percent(errors, requests)})`}
        </td>
        <td class="numeric">{percentileText(ns, "p50", duration)}</td>
        <td class="numeric">{percentileText(ns, "p99", duration)}</td>
        <td class="numeric">{percentileText(rtt_ns, "p50", duration)}</td>
        <td class="numeric">{retransmits === null ? "–" : count(retransmits)}</td>
      </tr>
      {stands_out !== null && (
        <tr class="stands-out">
          <td colSpan={8} class="host-reason">
            <div>{visible(stands_out)}</div>
          </td>
        </tr>
      )}
    </>
  );
}

function Hosts({ envoy: { upstreams, of_other_upstreams } }: { envoy: LoggingEnvoy }) {
  const rows = hostRows(upstreams);
  return (
    <section class="row-card logged-hosts" aria-label="Upstream hosts">
      <h3>
        Upstream hosts <span class="muted">{count(upstreams.length)}</span>
      </h3>
      {rows.length === 0 ? (
        <p class="muted small">No request was sent to a host.</p>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it
        <div class="plain-table-box" tabIndex={0} role="region" aria-label="Upstream hosts">
          <table class="plain-table">
            <thead>
              <tr>
                <th scope="col">Host</th>
                <th scope="col">Cluster</th>
                <th scope="col" class="numeric">
                  Requests
                </th>
                <th
                  scope="col"
                  class="numeric"
                  title="Answered with 5xx, or with a flag that says that the host failed"
                >
                  Errors
                </th>
                <th
                  scope="col"
                  class="numeric"
                  title="From the last byte of the request to the first of the answer"
                >
                  p50
                </th>
                <th
                  scope="col"
                  class="numeric"
                  title="From the last byte of the request to the first of the answer"
                >
                  p99
                </th>
                <th
                  scope="col"
                  class="numeric"
                  title="Round-trip time of the connections to the host, by the kernel: their median"
                >
                  RTT
                </th>
                <th scope="col" class="numeric" title="Segments that the connections to the host sent again">
                  Retransmits
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map((host) => (
                <Host key={`${host.cluster}\0${host.address}`} host={host} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {of_other_upstreams > 0 && (
        <p class="muted small">
          {`${count(of_other_upstreams)} requests went to further hosts, for which there was no room.`}
        </p>
      )}
    </section>
  );
}

function Tls({ envoy }: { envoy: LoggingEnvoy }) {
  const rows = tlsRows(envoy);
  if (rows.length === 0) return null;
  return (
    <div class="pair-evidence small">
      <p class="muted">TLS of the clients' connections, by requests</p>
      <dl>
        {rows.map(({ text, count: number }) => (
          <div key={text} class="evidence-class">
            <dt>{visible(text)}</dt>
            <dd class="numeric">{`${count(number)} (${percent(number, envoy.requests)})`}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

function Envoy({ envoy }: { envoy: LoggingEnvoy }) {
  const { process, claimed, node_id, requests, connections, missing } = envoy;
  const container = useContainerOf(process);
  const name = visible(envoyName(envoy));
  return (
    <section class="logged-envoy" aria-label={`Access log of ${name}`} data-envoy={process.pid ?? ""}>
      <h2>
        <span class="name clamped" title={name}>
          {name}
        </span>
        <span class="muted">
          {claimed ? "only claimed" : process.pid === null ? "" : `pid ${process.pid}`}
          {container !== null && (
            <>
              {" · container "}
              <ContainerLine container={container} />
            </>
          )}
        </span>
      </h2>
      {claimed && (
        <p class="warn">
          <span aria-hidden="true">▲ </span>
          No process of this node is known to be this Envoy: it is only what it calls itself.
        </p>
      )}
      <p class={missing === null || missing > 0 ? "warn" : ""}>
        {missing !== 0 && <span aria-hidden="true">▲ </span>}
        {receivedText(envoy)}
      </p>
      <p class="muted">
        {connections > 0 && requests > 0 && `${count(connections)} TCP connections were reported too. `}
        {requests > 0 && retriesText(envoy)}
        {!claimed && node_id !== "" && (
          <>
            {" Its node id is "}
            <code>{visible(node_id)}</code>.
          </>
        )}
      </p>
      {joinedText(envoy) !== "" && <p class="muted">{joinedText(envoy)}</p>}
      <Tls envoy={envoy} />
      <div class="request-cards wide">
        <div class="card-column">
          <Phases envoy={envoy} />
          <Details envoy={envoy} />
        </div>
        <Flags envoy={envoy} />
        <Hosts envoy={envoy} />
      </div>
    </section>
  );
}

export function LoggedEnvoys({ logged }: { logged: LoggedRequests | null }) {
  if (logged === null)
    return (
      <Empty title="This task does not take requests from access logs">
        <p class="muted">Start one with access logs as a source.</p>
      </Empty>
    );
  if (logged.envoys.length === 0)
    return (
      <Empty title="No Envoy has reported a request">
        <p class="muted">
          Entries come when requests are over, up to a second later.{" "}
          <PageLink to={{ view: "node" }}>Which Envoys send their access logs</PageLink>
        </p>
      </Empty>
    );
  return (
    <div class="request-scroll">
      {logged.envoys.map((envoy, i) => (
        <Envoy key={`${i} ${envoy.process.pid} ${envoy.node_id}`} envoy={envoy} />
      ))}
    </div>
  );
}
