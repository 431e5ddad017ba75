// The result of a task of requests: how good it is, operations, single requests, and what sidecars add.

import { useMemo } from "preact/hooks";
import { taskRequests } from "../api/requests";
import type { RequestSource, Task, TaskRequests } from "../api/types";
import { count, plural, visible } from "../lib/format";
import { partsChip } from "../lib/quality";
import type { RequestsTab } from "../lib/query_state";
import { encryptedConnections, requestQuality } from "../lib/request_quality";
import { sourcesOf } from "../lib/request_source";
import {
  edgeName,
  edgeOf,
  matchesOperation,
  matchesSample,
  operationRows,
  protocolsOf,
  protocolTitle,
  sampleRows,
  totalText,
} from "../lib/requests";
import { useAnswer } from "../state/answer";
import { patchRoute, route } from "../state/route";
import { Choice } from "./choice";
import { Named } from "./container_name";
import { LoggedEnvoys } from "./logged_requests";
import { NetworkResult } from "./network";
import { PageLink } from "./page_link";
import { QualityMenu } from "./quality_menu";
import { RequestCounts } from "./request_counts";
import { OperationTable, rateText } from "./request_operations";
import { OperationPanel } from "./request_panel";
import { Plaintext } from "./request_plaintext";
import { SampleTable } from "./request_sample";
import { Sidecars } from "./request_sidecar";
import { RequestTrends } from "./request_trends";
import { Empty, ErrorBox, Loading } from "./states";
import { TaskRemarks, taskLosses } from "./task_facts";

function Quality({ answer, task }: { answer: TaskRequests; task: Task }) {
  const parts = [...taskLosses(task), ...requestQuality(answer, sourcesOf(task))];
  return (
    <QualityMenu chip={partsChip(parts)} parts={parts}>
      <TaskRemarks task={task} />
    </QualityMenu>
  );
}

/** Why there may be nothing to see, and what to do. */
function Nothing({
  answer,
  sources,
  running,
}: {
  answer: TaskRequests;
  sources: readonly RequestSource[];
  running: boolean;
}) {
  const encrypted = encryptedConnections(answer);
  return (
    <Empty title={running ? "No requests were seen yet" : "No requests were seen"}>
      {sources.includes("access_log") && (
        <p class="muted">
          No Envoy of the target has reported a request in its access log.{" "}
          <PageLink to={{ view: "node" }}>Which Envoys send theirs</PageLink>
        </p>
      )}
      {!sources.includes("sockets") ? null : encrypted > 0 && !sources.includes("tls") ? (
        <p class="muted">
          {`${count(encrypted)} connections are encrypted, and this task does not read plaintext at TLS libraries: start one that does.`}
        </p>
      ) : (
        <p class="muted">
          Requests are counted when they are over. Connections of unknown protocols are listed behind
          "Quality".
        </p>
      )}
    </Empty>
  );
}

function Hellos({ answer }: { answer: TaskRequests }) {
  if (answer.tls.length === 0) return null;
  return (
    <details class="remarks edge-remarks tls-hellos">
      <summary>
        TLS hellos<span class="badge">{answer.tls.length}</span>
      </summary>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it */}
      <div class="plain-table-box" tabIndex={0} role="region" aria-label="TLS hellos">
        <table class="plain-table">
          <thead>
            <tr>
              <th scope="col">Client</th>
              <th scope="col">Server</th>
              <th scope="col">Server name</th>
              <th scope="col">Offered</th>
              <th scope="col">Chosen</th>
              <th scope="col">Version</th>
              <th scope="col">Connections</th>
            </tr>
          </thead>
          <tbody>
            {answer.tls.map((seen, i) => (
              <tr key={`${i} ${seen.edge.id}`}>
                <td class="bounded">{visible(seen.edge.client.comm ?? seen.edge.client.address)}</td>
                <td class="bounded">{visible(seen.edge.server.comm ?? seen.edge.server.address)}</td>
                <td class="bounded">{visible(seen.server_name ?? "no name")}</td>
                <td class="bounded">{visible(seen.alpn_offered.join(", ")) || "nothing"}</td>
                <td class="bounded">{visible(seen.alpn_chosen ?? "not seen")}</td>
                <td class="bounded">{visible(seen.version ?? "not seen")}</td>
                <td class="numeric">{count(seen.connections)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

/** The edge that everything is cut to, and the way out of it. */
function EdgeChip({ answer }: { answer: TaskRequests }) {
  const { edge: id } = route.value;
  if (id === "") return null;
  const edge = edgeOf(answer, id);
  const name = visible(edge === null ? `edge ${id}` : edgeName(edge));
  return (
    <button
      type="button"
      class="edge-chip"
      title={`Only ${name}; show all edges`}
      onClick={() => patchRoute({ edge: "" }, "replace")}
    >
      <span>only {name}</span>
      <span aria-hidden="true">×</span>
      <span class="hidden">: show all edges</span>
    </button>
  );
}

function Bar({ answer, shown, task }: { answer: TaskRequests; shown: string; task: Task }) {
  const { requests: tab, q, speaks, failing } = route.value;
  const protocols = protocolsOf(answer.operations);
  const tabs: readonly (readonly [RequestsTab, string])[] = [
    ["operations", "Operations"],
    ["samples", `Samples ${count(answer.samples.length)}`],
    ["sidecars", `Sidecars ${count(answer.sidecars.length)}`],
    ...(answer.access_logs === null
      ? []
      : ([["access_logs", `Access logs ${count(answer.access_logs.envoys.length)}`]] as const)),
    ["connections", "Connections"],
  ];
  const filters = tab === "operations" || tab === "samples";
  return (
    <div class="toolbar">
      <Choice
        label="What is shown"
        value={tab}
        choices={tabs}
        set={(next) => patchRoute({ requests: next, sort: "", q: "", sample: "" })}
      />
      {filters && (
        <>
          <input
            type="search"
            data-search
            class="filter"
            placeholder="Filter: process, pod, route, status, id   /"
            aria-label="Filter requests"
            spellcheck={false}
            value={q}
            onInput={(event) => patchRoute({ q: event.currentTarget.value }, "replace")}
          />
          <select
            aria-label="Protocol"
            value={speaks}
            onChange={(event) => patchRoute({ speaks: event.currentTarget.value }, "replace")}
          >
            <option value="">All protocols</option>
            {[...new Set([...protocols, ...(speaks === "" ? [] : [speaks])])].map((protocol) => (
              <option key={protocol} value={protocol}>
                {visible(protocolTitle(protocol))}
              </option>
            ))}
          </select>
          <label class="check">
            <input
              type="checkbox"
              checked={failing}
              onChange={(event) => patchRoute({ failing: event.currentTarget.checked }, "replace")}
            />
            failing
          </label>
          <EdgeChip answer={answer} />
        </>
      )}
      <span class="muted push" aria-live="off">
        {shown}
      </span>
      <Quality answer={answer} task={task} />
    </div>
  );
}

function sumText(answer: TaskRequests): string {
  const errors = answer.operations.reduce((sum, operation) => sum + operation.errors, 0);
  // Those inside TLS may have been counted for another time.
  const rates = operationRows(answer).map(({ rate }) => rate);
  const known = rates.length > 0 && rates.every((rate) => rate !== null);
  const rate = known ? `, ${rateText(rates.reduce((sum, one) => sum + (one ?? 0), 0))}` : "";
  return `${totalText(answer)}${rate}, ${plural(errors, "error")}`;
}

/** Where the time of requests goes, a sentence for each process that they come to. */
function Latency({ answer }: { answer: TaskRequests }) {
  if (answer.latency.length === 0 || route.value.edge !== "") return null;
  return (
    <ul class="latency" aria-label="Where the time of requests goes">
      {answer.latency.map(({ process, text }) => (
        <li key={`${process.pid}-${process.name}`}>{visible(text)}</li>
      ))}
    </ul>
  );
}

function Operations({ answer, task }: { answer: TaskRequests; task: Task }) {
  const { q, speaks, failing, edge, operation: picked } = route.value;
  const all = useMemo(() => operationRows(answer), [answer]);
  const samples = useMemo(() => sampleRows(answer.samples), [answer]);
  const rows = useMemo(
    () =>
      all.filter(({ operation }) =>
        matchesOperation(operation, {
          q,
          protocol: speaks,
          failingOnly: failing,
          edge,
          named: answer.containers,
        }),
      ),
    [all, q, speaks, failing, edge, answer.containers],
  );
  const open = picked === "" ? undefined : all.find(({ key }) => key === picked);
  const number = `${count(rows.length)}${rows.length === all.length ? "" : ` of ${count(all.length)}`} operations`;
  return (
    <>
      <Bar answer={answer} shown={`${number} · ${sumText(answer)}`} task={task} />
      <Latency answer={answer} />
      <RequestCounts answer={answer} />
      <RequestTrends answer={answer} />
      <Hellos answer={answer} />
      <Plaintext answer={answer} />
      {all.length === 0 ? (
        <Nothing answer={answer} sources={sourcesOf(task)} running={task.state === "running"} />
      ) : rows.length === 0 ? (
        <Empty title="No operation matches the filter">
          <button
            type="button"
            onClick={() => patchRoute({ q: "", speaks: "", failing: false, edge: "" }, "replace")}
          >
            Clear the filter
          </button>
        </Empty>
      ) : (
        <OperationTable rows={rows} all={all} picked={picked} />
      )}
      {open !== undefined && (
        <OperationPanel operation={open.operation} answer={answer} rows={samples} task={task.id} />
      )}
    </>
  );
}

function Samples({ answer, task }: { answer: TaskRequests; task: Task }) {
  const { q, speaks, failing, edge } = route.value;
  const all = useMemo(() => sampleRows(answer.samples), [answer]);
  const rows = useMemo(
    () =>
      all.filter(({ sample }) =>
        matchesSample(sample, {
          q,
          protocol: speaks,
          failingOnly: failing,
          edge,
          named: answer.containers,
        }),
      ),
    [all, q, speaks, failing, edge, answer.containers],
  );
  const number = `${count(rows.length)}${rows.length === all.length ? "" : ` of ${count(all.length)}`} samples`;
  const kept =
    task.requests?.samples === "all"
      ? "every request, as long as there is room"
      : "the slowest and the first failing of each edge";
  return (
    <>
      <Bar answer={answer} shown={`${number}: ${kept}`} task={task} />
      <SampleTable rows={rows} all={all} answer={answer} task={task} empty="No request was kept" />
    </>
  );
}

function Shown({ answer, task }: { answer: TaskRequests; task: Task }) {
  switch (route.value.requests) {
    case "operations":
      return <Operations answer={answer} task={task} />;
    case "samples":
      return <Samples answer={answer} task={task} />;
    case "sidecars":
      return (
        <>
          <Bar answer={answer} shown={sumText(answer)} task={task} />
          <Sidecars sidecars={answer.sidecars} />
        </>
      );
    case "access_logs":
      return (
        <>
          <Bar answer={answer} shown={sumText(answer)} task={task} />
          <LoggedEnvoys logged={answer.access_logs} />
        </>
      );
    case "connections":
      return (
        <>
          <Bar answer={answer} shown={sumText(answer)} task={task} />
          <NetworkResult task={task} requests={answer} />
        </>
      );
  }
}

export function RequestsResult({ task }: { task: Task }) {
  const { value: answer, failure } = useAnswer(
    (signal) => taskRequests(task.id, signal),
    ({ state }) => state === "running" || state === "queued",
    [task.id],
  );
  if (task.state === "queued") return <Loading what="the first requests (the task waits for its turn)" />;
  if (answer === null)
    return failure === null ? (
      <Loading what="the requests" />
    ) : (
      <ErrorBox title="No requests to show" detail={failure.detail} hint={failure.hint} />
    );
  return (
    <div class="requests">
      {failure !== null && (
        <p class="banner" role="alert">
          <b>This is the last known state:</b> {visible(failure.detail)}
        </p>
      )}
      {answer.damaged ? (
        <ErrorBox
          title="The stored result is damaged"
          detail="It cannot be read: nothing can be told of its requests."
        />
      ) : (
        <Named.Provider value={answer.containers}>
          <Shown answer={answer} task={task} />
        </Named.Provider>
      )}
    </div>
  );
}
