// Which Envoys send their access logs to the agent, and what Envoys need for it.

import { api } from "../api/client";
import type { AccessLogEnvoy, AccessLogStatus } from "../api/types";
import {
  LOG_SYSTEMS,
  logNotes,
  logSender,
  newestText,
  RECEIVE_COMMAND,
  receivedPercent,
  STAGE_HELP,
  snippetCommand,
  unreadText,
} from "../lib/access_log_status";
import { count, plural, visible } from "../lib/format";
import { useRefetched } from "../state/refetch";
import { CopyButton } from "./copy_button";

const REFETCH_MS = 5_000;
const MARKED_BELOW = 100;

function Command({ text }: { text: string }) {
  return (
    <p class="copy-command">
      <code>{visible(text)}</code>
      <CopyButton title="Copy" text={text} />
    </p>
  );
}

/** The configuration itself is printed by a command: it depends on how Envoys reach the agent. */
function Configure({ status }: { status: AccessLogStatus }) {
  return (
    <>
      <p class="muted">
        These commands print what Envoys have to be configured with; <code>--address HOST:PORT</code> names
        the agent as they reach it.
      </p>
      <dl class="commands">
        {LOG_SYSTEMS.map(([system, title]) => (
          <div key={system} class="command-row">
            <dt>{title}</dt>
            <dd>
              <Command text={snippetCommand(system, status)} />
            </dd>
          </div>
        ))}
      </dl>
    </>
  );
}

function Counted({ value }: { value: number | null }) {
  if (value === null)
    return (
      <span class="muted" title="The Envoy's own counters are not known">
        –
      </span>
    );
  return <span class={value > 0 ? "warn" : "muted"}>{count(value)}</span>;
}

function EnvoyRows({ envoy, nowNs }: { envoy: AccessLogEnvoy; nowNs: number }) {
  const { pod, claimed, requests, received_percent, dropped, unknown, stage, streams } = envoy;
  const notes = logNotes(envoy);
  const isPoor = received_percent !== null && received_percent < MARKED_BELOW;
  return (
    <tr>
      <td class="wrap">
        <span class={envoy.pid === null ? "mono clamped" : "name"} title={visible(envoy.node_id)}>
          {visible(logSender(envoy))}
        </span>
        {claimed && <span class="kind-state kind-degraded">claimed</span>}
        {pod !== null && <p class="small">{visible(pod)}</p>}
        {notes.length > 0 && (
          <ul class="warn small">
            {notes.map((note) => (
              <li key={note} class="clamped">
                {visible(note)}
              </li>
            ))}
          </ul>
        )}
      </td>
      <td class="numeric">{count(requests)}</td>
      <td class={isPoor ? "numeric warn" : "numeric"}>{receivedPercent(envoy)}</td>
      <td class="numeric">
        <Counted value={dropped} />
      </td>
      <td class="numeric">
        <Counted value={unknown} />
      </td>
      <td class={stage === "full" ? "" : "warn"} title={STAGE_HELP[stage]}>
        {stage}
      </td>
      <td class="numeric" title={plural(streams, "open stream")}>
        {newestText(envoy, nowNs)}
      </td>
    </tr>
  );
}

function Envoys({ status }: { status: AccessLogStatus }) {
  const nowNs = Date.now() * 1e6;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <div class="scroll-box" role="region" aria-label="Envoys that send their access logs" tabIndex={0}>
      <table class="plain access-log-table">
        <thead>
          <tr>
            <th scope="col">Envoy</th>
            <th scope="col" class="numeric">
              Requests
            </th>
            <th scope="col" class="numeric" title="Of what it has written or dropped, by its own counters">
              Received
            </th>
            <th
              scope="col"
              class="numeric"
              title="Dropped because its buffers were full, by its own counters"
            >
              Dropped
            </th>
            <th scope="col" class="numeric" title="Written by its own counters, and not received">
              Unknown
            </th>
            <th scope="col" title="How much of each entry is read">
              Stage
            </th>
            <th scope="col" class="numeric">
              Newest
            </th>
          </tr>
        </thead>
        <tbody>
          {status.envoys.map((envoy, i) => (
            <EnvoyRows key={`${envoy.id ?? i} ${envoy.node_id}`} envoy={envoy} nowNs={nowNs} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Received({ status }: { status: AccessLogStatus }) {
  const { listen, refused_connections, failed_connections, newest_failure, envoys, stage_seconds } = status;
  const unread = unreadText(stage_seconds);
  return (
    <>
      <p class="small">
        Received on <code>{visible(listen ?? "an unknown address")}</code>.
        {refused_connections > 0 && (
          <span class="warn">
            {` Refused because there were too many: ${plural(refused_connections, "connection")}.`}
          </span>
        )}
        {failed_connections > 0 && (
          <span class="warn">
            {` Failed before anything was received: ${plural(failed_connections, "connection")}, the newest from ${visible(newest_failure ?? "an unknown address")}.`}
          </span>
        )}
        {unread !== "" && <span class="warn">{` ${unread}`}</span>}
      </p>
      {envoys.length === 0 ? (
        <>
          <p>No Envoy has sent any yet.</p>
          <Configure status={status} />
        </>
      ) : (
        <>
          <Envoys status={status} />
          <details class="more-envoys">
            <summary>Configure further Envoys</summary>
            <Configure status={status} />
          </details>
        </>
      )}
    </>
  );
}

export function AccessLogsCard() {
  const answer = useRefetched<AccessLogStatus | null>(
    null,
    (signal) => api.accessLogs(signal),
    true,
    REFETCH_MS,
    [],
  );
  return (
    <section class="card wide" aria-label="Access logs of Envoys" data-access-logs>
      <h2>Access logs of Envoys</h2>
      {answer === null ? (
        <p class="muted">Asking…</p>
      ) : answer.is_on ? (
        <Received status={answer} />
      ) : (
        <>
          <p>
            Not received: the agent was started without <code>--access-logs</code>. With it, Envoys report
            each request with its phases, response flags and upstream host, and no probe is needed for that.
          </p>
          <Command text={RECEIVE_COMMAND} />
        </>
      )}
    </section>
  );
}
