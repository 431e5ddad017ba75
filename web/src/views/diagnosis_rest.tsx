// What stands after the costs: connections, what is as it should be, the configuration that was read, and
// what all of it cannot know.

import type { ComponentChildren } from "preact";
import type { Diagnosis } from "../api/types";
import { perRequestText, reasonOf, share } from "../lib/diagnosis";
import { count, duration, visible } from "../lib/format";
import { Unknown } from "./unknown";

function Row({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{title}</dt>
      <dd>{children}</dd>
    </div>
  );
}

export function NetworkCard({ diagnosis }: { diagnosis: Diagnosis }) {
  const { network, limits } = diagnosis;
  const title = <h2 id="network-title">Connections</h2>;
  if (network === null)
    return (
      <section class="card" aria-labelledby="network-title">
        {title}
        <p data-absent="network">
          <b>Not known.</b> {visible(reasonOf(limits, ["network", "connection"]))}
        </p>
      </section>
    );
  const { connections_per_request, retransmit_percent, receive_wait_ns } = network;
  return (
    <section class="card" aria-labelledby="network-title">
      {title}
      <dl class="pairs">
        <Row title="Opened">{count(network.connections_opened)}</Row>
        <Row title="Per request">
          {connections_per_request === null ? (
            <Unknown why={reasonOf(limits, ["request"])} />
          ) : (
            perRequestText(connections_per_request)
          )}
        </Row>
        <Row title="Retransmitted">
          {retransmit_percent === null ? (
            <Unknown why={reasonOf(limits, ["retransmi", "network"])} />
          ) : (
            `${share(retransmit_percent)} of the segments`
          )}
        </Row>
        <Row title="Resets">{count(network.resets)}</Row>
        <Row title="Waits for data">
          {receive_wait_ns === null ? (
            <Unknown why={reasonOf(limits, ["receive", "network"])} />
          ) : (
            `${duration(receive_wait_ns.p50)} median, ${duration(receive_wait_ns.p99)} p99`
          )}
        </Row>
      </dl>
    </section>
  );
}

export function GoodNews({ diagnosis }: { diagnosis: Diagnosis }) {
  if (diagnosis.good.length === 0) return null;
  return (
    <section class="card" aria-labelledby="good-title">
      <h2 id="good-title">Checked, no problem</h2>
      <ul class="good-news">
        {diagnosis.good.map(({ id, title, text }) => (
          <li key={id}>
            <span class="good-mark" aria-hidden="true">
              ✓
            </span>
            <span>
              <b>{visible(title)}</b> {visible(text)}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

export function ConfigurationCard({ diagnosis }: { diagnosis: Diagnosis }) {
  const { configuration, limits } = diagnosis;
  const title = <h2 id="configuration-title">Configuration in force</h2>;
  if (configuration === null)
    return (
      <section class="card" aria-labelledby="configuration-title">
        {title}
        <p data-absent="configuration">
          <b>Not known.</b> {visible(reasonOf(limits, ["configur", "admin"]))}
        </p>
      </section>
    );
  const { source, version, concurrency, items } = configuration;
  return (
    <section class="card" aria-labelledby="configuration-title">
      {title}
      <dl class="pairs">
        <Row title="Read from">{visible(source)}</Row>
        <Row title="Version">{version === null ? <Unknown why="It did not say." /> : visible(version)}</Row>
        <Row title="Concurrency">
          {concurrency === null ? <Unknown why="It did not say." /> : concurrency}
        </Row>
        {items.map(({ key, value }) => (
          <Row key={key} title={visible(key)}>
            <span class="mono">{visible(value)}</span>
          </Row>
        ))}
      </dl>
    </section>
  );
}

export function Limits({ diagnosis }: { diagnosis: Diagnosis }) {
  const { limits, rules } = diagnosis;
  return (
    <section class="card wide" aria-labelledby="limits-title" data-limits>
      <h2 id="limits-title">Limits</h2>
      {limits.length === 0 ? (
        <p class="muted">Nothing that it looks for is missing.</p>
      ) : (
        <ul class="limits">
          {limits.map((limit) => (
            <li key={limit}>{visible(limit)}</li>
          ))}
        </ul>
      )}
      <p class="muted small">
        Attributed by version {rules.version} of the rules
        {rules.user_file === null ? "." : ", with those of "}
        {rules.user_file !== null && <code class="wrap">{visible(rules.user_file)}</code>}
      </p>
    </section>
  );
}
