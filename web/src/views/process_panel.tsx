// Everything about one process: facts, what names its profiles will have, which tasks are possible, threads.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { api, ProblemError } from "../api/client";
import type { Container, ContainerNames, ProcessDetail, ProcessFile } from "../api/types";
import { labelList, sourceTitle, workloadTitle } from "../lib/container_names";
import { bytes, count, cpu, duration, visible } from "../lib/format";
import { kindStatuses } from "../lib/kind_probes";
import { sourceText } from "../lib/names_quality";
import { getWithCurl } from "../lib/page_request";
import { LEVEL_TEXT, levelOf, verdictOf } from "../lib/symbol_chip";
import { cpuHistory, pods, processes } from "../state/live";
import { probes } from "../state/probes";
import { processSymbols, wantSymbols } from "../state/process_symbols";
import { patchRoute, route } from "../state/route";
import { Changing } from "./changing";
import { CopyButton } from "./copy_button";
import { Dialog } from "./dialog";
import { Sparkline } from "./sparkline";
import { ErrorBox, Loading } from "./states";

/** Threads that are drawn; the busiest come first. */
const MOST_THREADS = 100;

type Answer = ProcessDetail | { readonly failed: string; readonly hint: string | undefined } | null;

function useDetail(id: string): Answer {
  const [answer, setAnswer] = useState<Answer>(null);
  useEffect(() => {
    const stop = new AbortController();
    setAnswer(null);
    api.process(id, stop.signal).then(setAnswer, (error: unknown) => {
      if (stop.signal.aborted) return;
      setAnswer({
        failed: error instanceof ProblemError ? error.message : "The agent does not answer.",
        hint: error instanceof ProblemError ? error.problem.hint : undefined,
      });
    });
    return () => stop.abort();
  }, [id]);
  return answer;
}

function FileRow({ file }: { file: ProcessFile }) {
  const level = levelOf(file);
  return (
    <tr>
      <td>
        <span class="mono wrap">{visible(file.path)}</span>
        <br />
        <span class="muted small">
          build-id <code>{file.build_id ?? "none"}</code>
          {!file.unwind_table && level !== "refused" && " · no unwind table"}
        </span>
        {file.remedy !== "" && <p class="small wrap">{visible(file.remedy)}</p>}
        {file.refusal !== null && <p class="small wrap">{visible(file.refusal)}</p>}
      </td>
      <td>
        <span class={`level-mark level-${level}`}>{LEVEL_TEXT[level]}</span>
        <br />
        <span class="muted small">{file.names_from.map(sourceText).join(", ")}</span>
      </td>
    </tr>
  );
}

function Names({ id }: { id: string }) {
  useEffect(() => wantSymbols(id), [id]);
  const answer = processSymbols.value.get(id);
  if (answer === undefined || answer.state === "asked") return <p class="muted">Reading its files…</p>;
  if (answer.state === "failed") {
    return (
      <p>
        Unknown: {visible(answer.reason)}{" "}
        <button type="button" class="link" onClick={() => wantSymbols(id, true)}>
          Try again
        </button>
      </p>
    );
  }
  const { symbols } = answer;
  const { text, reason } = verdictOf(symbols);
  return (
    <>
      <p>
        <b>{text}</b> <span class="wrap">{visible(reason)}</span>{" "}
        <button type="button" class="link" onClick={() => wantSymbols(id, true)}>
          Look again
        </button>
      </p>
      {symbols.anonymous_executable_mappings > 0 && (
        <p class="muted small">
          {symbols.anonymous_executable_mappings} executable mappings without a file: code made while running,
          named by /tmp/perf-PID.map if the runtime writes one.
        </p>
      )}
      <table class="plain">
        <thead>
          <tr>
            <th scope="col">File</th>
            <th scope="col">Names</th>
          </tr>
        </thead>
        <tbody>
          {symbols.files.map((file) => (
            <FileRow key={`${file.path} ${file.build_id}`} file={file} />
          ))}
        </tbody>
      </table>
    </>
  );
}

const STATE_TEXT = {
  ok: "possible",
  degraded: "with less",
  impossible: "not possible",
  unknown: "unknown",
} as const;

function Kinds() {
  return (
    <table class="plain">
      <tbody>
        {kindStatuses(probes.value).map(({ kind, title, state, reason }) => (
          <tr key={kind}>
            <th scope="row">{title}</th>
            <td>
              <span class={`kind-state kind-${state}`}>{STATE_TEXT[state]}</span>
            </td>
            <td class="wrap">{reason === "" ? <span class="muted">–</span> : visible(reason)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Threads({ detail }: { detail: ProcessDetail }) {
  const list = detail.thread_list.toSorted((a, b) => b.cpu_time_ns - a.cpu_time_ns);
  const rest = list.length - MOST_THREADS;
  return (
    <table class="plain">
      <thead>
        <tr>
          <th scope="col">Thread</th>
          <th scope="col" class="numeric">
            TID
          </th>
          <th scope="col" class="numeric">
            CPU time so far
          </th>
        </tr>
      </thead>
      <tbody>
        {list.slice(0, MOST_THREADS).map(({ tid, name, cpu_time_ns }) => (
          <tr key={tid}>
            <td class="mono">{visible(name)}</td>
            <td class="numeric">{tid}</td>
            <td class="numeric">{duration(cpu_time_ns)}</td>
          </tr>
        ))}
        {rest > 0 && (
          <tr>
            <td colSpan={3} class="muted">
              and {count(rest)} more with less
            </td>
          </tr>
        )}
      </tbody>
    </table>
  );
}

function Fact({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{title}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function ContainerFacts({ container }: { container: Container | null }) {
  if (container === null) return <Fact title="Container">none</Fact>;
  const { id, runtime, pod_uid, names } = container;
  const uid = names?.pod?.uid ?? pod_uid;
  const labels = names === null ? [] : labelList(names);
  return (
    <>
      {names !== null && names.pod !== null && (
        <>
          <Fact title="Kubernetes namespace">{visible(names.pod.namespace)}</Fact>
          <Fact title="Pod">{visible(names.pod.name)}</Fact>
        </>
      )}
      {uid !== null && (
        <Fact title="Pod's unique id">
          <span class="mono">{visible(uid)}</span>
        </Fact>
      )}
      <Fact title="Container">
        {names === null
          ? "no name known"
          : `${visible(names.name ?? "name not known")}${names.role === "unknown" ? "" : ` (${ROLE_TEXT[names.role] ?? names.role})`}`}
      </Fact>
      <Fact title="Container's id">
        <span class="mono">{visible(id)}</span> <span class="muted">{visible(runtime)}</span>
      </Fact>
      {names !== null && (
        <>
          <Fact title="Workload">
            {names.workload === null ? "none known" : visible(workloadTitle(names.workload))}
          </Fact>
          <Fact title="Image">
            <span class="mono">{names.image === null ? "not known" : visible(names.image)}</span>
          </Fact>
          <Fact title="Labels">
            {labels.length === 0 ? (
              "none"
            ) : (
              <ul class="label-list" aria-label="Labels">
                {labels.map((label) => (
                  <li key={label} class="mono">
                    {visible(label)}
                  </li>
                ))}
              </ul>
            )}
          </Fact>
          <Fact title="Named by">the {sourceTitle(names.named_by)}</Fact>
        </>
      )}
    </>
  );
}

const ROLE_TEXT: Readonly<Record<ContainerNames["role"], string>> = {
  main: "main",
  init: "runs before the others",
  sidecar: "sidecar",
  ephemeral: "added to the running pod",
  sandbox: "holds the pod's namespaces",
  unknown: "",
};

function Facts({ detail }: { detail: ProcessDetail }) {
  const live = processes.value?.get(detail.id);
  const now = live ?? detail;
  const member = (pods.value ?? [])
    .flatMap(({ members }) => members)
    .find(({ process }) => process.id === detail.id);
  return (
    <dl class="pairs">
      <div>
        <dt>CPU</dt>
        <dd class="cpu-fact">
          {cpu(now.cpu_percent)} of one core <Sparkline values={cpuHistory.value.get(detail.id) ?? []} />
          {live === undefined && <span class="muted">has ended, or is not listed</span>}
        </dd>
      </div>
      <div>
        <dt>Memory</dt>
        <dd>{bytes(now.rss_bytes)}</dd>
      </div>
      <div>
        <dt>Program</dt>
        <dd class="mono">{detail.exe === null ? "not readable" : visible(detail.exe)}</dd>
      </div>
      <div>
        <dt>User</dt>
        <dd>{visible(detail.user ?? String(detail.uid))}</dd>
      </div>
      {member !== undefined && (
        <div>
          <dt>Role</dt>
          <dd>
            {member.role}: {visible(member.reason)}
          </dd>
        </div>
      )}
      <div>
        <dt>Network namespace</dt>
        <dd>{detail.network_namespace ?? "not readable"}</dd>
      </div>
      <ContainerFacts container={detail.container} />
      <div>
        <dt>Cgroup</dt>
        <dd class="mono">{visible(detail.cgroup)}</dd>
      </div>
    </dl>
  );
}

export function ProcessPanel() {
  const id = route.value.process;
  const detail = useDetail(id);
  const close = (): void => patchRoute({ process: "" }, "replace");
  const known = detail !== null && !("failed" in detail) ? detail : null;
  const name = known === null ? `Process ${id.split("-")[0]}` : `${visible(known.comm)} ${known.pid}`;
  return (
    <Dialog title={name} class="process-panel" onClose={close}>
      <div class="panel-body">
        {detail === null ? (
          <Loading what="the process" />
        ) : known === null && "failed" in detail ? (
          <ErrorBox title="This process cannot be shown" detail={detail.failed} hint={detail.hint} />
        ) : (
          known !== null && (
            <>
              <Facts detail={known} />
              <h3>Names in profiles</h3>
              {known.kernel_thread ? (
                <p class="muted">A thread of the kernel executes no file.</p>
              ) : (
                <Names id={id} />
              )}
              <h3>Tasks that are possible</h3>
              <Kinds />
              <h3>Threads ({known.thread_list.length})</h3>
              <Threads detail={known} />
            </>
          )
        )}
      </div>
      <footer class="panel-foot">
        <CopyButton title="Copy as curl" text={getWithCurl(`/processes/${id}`, location.origin)} />
        <span class="push" />
        <button type="button" onClick={close}>
          Close
        </button>
        <Changing>
          {known !== null && !known.kernel_thread && (
            <button
              type="button"
              onClick={() =>
                patchRoute({
                  process: "",
                  create: true,
                  checkup: true,
                  pids: [known.pid],
                  container: "",
                  pod: "",
                })
              }
            >
              Check-up…
            </button>
          )}
          {known !== null && (
            <button
              type="button"
              class="primary"
              onClick={() =>
                patchRoute({
                  process: "",
                  create: true,
                  checkup: false,
                  pids: [known.pid],
                  container: "",
                  pod: "",
                })
              }
            >
              Profile…
            </button>
          )}
        </Changing>
      </footer>
    </Dialog>
  );
}
