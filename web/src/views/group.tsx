// Tasks that were started together, beside each other: what each found, and the way to it.

import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { api } from "../api/client";
import { taskRequests } from "../api/requests";
import type { EdgeTable, Task, TaskRequests, Waits } from "../api/types";
import { tasksOfGroup } from "../lib/checkup";
import { resolutionPoints } from "../lib/estimate";
import { bytes, clock, count, duration, percent, visible } from "../lib/format";
import { KIND_TITLES } from "../lib/kind_probes";
import { groupAgain, specAgain } from "../lib/run_again";
import { isFinal } from "../lib/task_list";
import { putTask, tasks } from "../state/live";
import { useRefetched } from "../state/refetch";
import { href, openView } from "../state/route";
import { knownNow } from "../state/silent";
import { Changing } from "./changing";
import { PageLink } from "./page_link";
import { Empty, Loading } from "./states";
import { elapsedSeconds, lossText, Progress, StateChip } from "./task_state";
import { namedTarget } from "./tasks";

const REFETCH_MS = 3_000;
const MOST_REASONS = 4;
const MOST_EDGES = 4;

function Fact({ title, warn, children }: { title: string; warn?: boolean; children: ComponentChildren }) {
  return (
    <div>
      <dt>{title}</dt>
      <dd class={warn === true ? "warn" : ""}>{children}</dd>
    </div>
  );
}

const WHOLE = { from: null, to: null, tids: [], except: false } as const;

function OnCpu({ task }: { task: Task }) {
  const seconds = elapsedSeconds(task, knownNow());
  const hertz = task.effective_frequency_hz ?? task.frequency_hz ?? 0;
  const points = resolutionPoints(task.samples, 0.1);
  return (
    <>
      <Fact title="Samples">{count(task.samples)}</Fact>
      <Fact title="CPU used">
        {seconds < 1 || task.samples === 0
          ? "not known yet"
          : `about ${(task.samples / hertz / seconds).toFixed(2)} cores`}
      </Fact>
      <Fact title="Resolution">
        {points === null
          ? "no samples: nothing can be told"
          : `±${points.toFixed(1)} points at a share of 10 %`}
      </Fact>
    </>
  );
}

function OffCpu({ task }: { task: Task }) {
  const load = (signal: AbortSignal) =>
    api.waits(
      task.id,
      { ...WHOLE, waits: { value: "duration", idle: "hide", wakers: false, states: [], reasons: [] } },
      signal,
    );
  const waits = useRefetched<Waits | null>(null, load, !isFinal(task), REFETCH_MS, [task.id, task.state]);
  if (waits === null) return <Fact title="Waits">not known yet</Fact>;
  const total = waits.reasons.reduce((sum, { total_ns }) => sum + total_ns, 0);
  const top = waits.reasons.toSorted((a, b) => b.total_ns - a.total_ns).slice(0, MOST_REASONS);
  return (
    <>
      <Fact title="Waited, not idle">{duration(total)}</Fact>
      {top.map(({ name, total_ns }) => (
        <Fact key={name} title={visible(name.replaceAll("_", " "))}>
          {duration(total_ns)} <span class="muted">{percent(total_ns, total)}</span>
        </Fact>
      ))}
      {waits.idle !== null && (
        <Fact title="Idle, left out">{`${waits.idle.percent.toFixed(1)} % of all time off the CPU`}</Fact>
      )}
    </>
  );
}

function Network({ task }: { task: Task }) {
  const load = (signal: AbortSignal) =>
    api.edges<EdgeTable>(`/tasks/${encodeURIComponent(task.id)}/edges`, signal);
  const table = useRefetched<EdgeTable | null>(null, load, !isFinal(task), REFETCH_MS, [task.id, task.state]);
  if (table === null) return <Fact title="Edges">not known yet</Fact>;
  const moved = (edge: EdgeTable["edges"][number]): number => {
    const side = edge.metrics.client ?? edge.metrics.server;
    return (side?.write?.bytes ?? 0) + (side?.read?.bytes ?? 0);
  };
  const name = (end: EdgeTable["edges"][number]["client"]): string => visible(end.comm ?? end.address);
  const top = table.edges.toSorted((a, b) => moved(b) - moved(a)).slice(0, MOST_EDGES);
  return (
    <>
      <Fact title="Edges">{count(table.edges.length)}</Fact>
      {top.map((edge) => (
        <Fact
          key={`${edge.client.pid}${edge.client.address}${edge.server.pid}${edge.server.address}${edge.server.port}${edge.original_destination}`}
          title={`${name(edge.client)} → ${name(edge.server)}${edge.server.port === null ? "" : `:${edge.server.port}`}`}
        >
          {bytes(moved(edge))}
        </Fact>
      ))}
      <Fact title="Lost traffic" warn={table.lost.events > 0}>
        {table.lost.events === 0
          ? "none"
          : `${count(table.lost.events)} reads and writes, ${bytes(table.lost.bytes)}`}
      </Fact>
    </>
  );
}

function Requests({ task }: { task: Task }) {
  const load = (signal: AbortSignal) => taskRequests(task.id, signal);
  const answer = useRefetched<TaskRequests | null>(null, load, !isFinal(task), REFETCH_MS, [
    task.id,
    task.state,
  ]);
  if (answer === null) return <Fact title="Requests">not known yet</Fact>;
  const sum = (of: (operation: TaskRequests["operations"][number]) => number): number =>
    answer.operations.reduce((all, operation) => all + of(operation), 0);
  const failed = sum(({ errors }) => errors);
  return (
    <>
      <Fact title="Requests">{count(sum((operation) => operation.count))}</Fact>
      <Fact title="Errors" warn={failed > 0}>
        {count(failed)}
      </Fact>
      {answer.sampled_one_of > 1 && (
        <Fact title="Counted" warn>{`1 of ${count(answer.sampled_one_of)} connections`}</Fact>
      )}
      <Fact title="Lost pieces" warn={answer.lost > 0}>
        {answer.lost === 0 ? "none" : count(answer.lost)}
      </Fact>
    </>
  );
}

function Findings({ task }: { task: Task }) {
  if (task.kind === "network") return <Network task={task} />;
  if (task.kind === "requests") return <Requests task={task} />;
  if (task.kind === "off_cpu" || task.kind === "wall") return <OffCpu task={task} />;
  return <OnCpu task={task} />;
}

/** What kinds without a flame graph lead to. */
const OPEN_TEXT: Readonly<Record<string, string>> = {
  network: "Open the connections",
  requests: "Open the requests",
};

function Card({ task }: { task: Task }) {
  const title = KIND_TITLES[task.kind as keyof typeof KIND_TITLES] ?? task.kind;
  return (
    <section class="card group-card" aria-label={title}>
      <header>
        <h2>{title}</h2>
        <StateChip task={task} />
        <span class="muted push">task {task.id}</span>
      </header>
      <Progress task={task} />
      {task.reason !== null && <p class="field-error">{visible(task.reason)}</p>}
      <dl class="pairs">
        {task.state === "queued" ? <Fact title="Result">waits for a place</Fact> : <Findings task={task} />}
        <Fact title="Losses" warn={task.losses.length > 0}>
          {lossText(task)}
        </Fact>
        {task.notes.map((note) => (
          <Fact key={note} title="Note">
            {visible(note)}
          </Fact>
        ))}
      </dl>
      <a
        class="button-link"
        href={href({ view: "task", id: task.id })}
        onClick={(event) => {
          if (event.ctrlKey || event.metaKey || event.shiftKey) return;
          event.preventDefault();
          openView({ view: "task", id: task.id });
        }}
      >
        {OPEN_TEXT[task.kind] ?? "Open the flame graph"}
      </a>
    </section>
  );
}

/** A button that asks the agent to change something, and says why it did not. */
function ChangeButton({ text, change }: { text: string; change: () => Promise<void> }) {
  const [sending, setSending] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const run = async (): Promise<void> => {
    setSending(true);
    setError(null);
    try {
      await change();
    } catch (problem) {
      setError(problem instanceof Error ? problem.message : "failed");
    }
    setSending(false);
  };
  return (
    <>
      <Changing>
        <button type="button" disabled={sending} onClick={() => void run()}>
          {text}
        </button>
      </Changing>
      {error !== null && (
        <span class="field-error" role="alert">
          {error}
        </span>
      )}
    </>
  );
}

export function StopAll({ running, text = "Stop all" }: { running: readonly Task[]; text?: string }) {
  if (running.length === 0) return null;
  const stop = async (): Promise<void> => {
    for (const task of running) putTask(await api.stop(task.id));
  };
  return <ChangeButton text={text} change={stop} />;
}

/** The tasks of a group once more, as a group of its own. */
function RunAgain({ id, members }: { id: string; members: readonly Task[] }) {
  const specs = members.flatMap((task) => specAgain(task) ?? []);
  if (specs.length === 0) return null;
  const start = async (): Promise<void> => {
    const taken = new Set([...(tasks.peek()?.values() ?? [])].flatMap(({ group }) => group ?? []));
    const group = groupAgain(id, taken);
    for (const spec of specs) putTask(await api.create({ ...spec, group }));
    openView({ view: "group", id: group });
  };
  return <ChangeButton text="Run again" change={start} />;
}

export function GroupPage({ id }: { id: string }) {
  const all = tasks.value;
  const members = useMemo(() => tasksOfGroup(all?.values() ?? [], id), [all, id]);
  if (all === null) return <Loading what="the tasks" />;
  if (members.length === 0) {
    return (
      <Empty title={`No tasks of ${id}`}>
        <p class="muted">They were deleted, or retention has removed them.</p>
        <button type="button" onClick={() => openView({ view: "tasks" })}>
          All tasks
        </button>
      </Empty>
    );
  }
  const running = members.filter((task) => !isFinal(task));
  const [first] = members;
  const isCheckup = id.startsWith("checkup-");
  return (
    <section class="node-page">
      <div class="group-title">
        <h1>{isCheckup ? "Tasks of a check-up" : `Group ${id}`}</h1>
        {isCheckup && <span class="muted">{id}</span>}
        {isCheckup && (
          <PageLink class="button-link" to={{ view: "checkup", id }}>
            Open the check-up
          </PageLink>
        )}
        {first !== undefined && <span class="name">{namedTarget(first)}</span>}
        {first !== undefined && (
          <span class="muted">
            {running.length === 0
              ? "all have ended"
              : `${running.length} of ${members.length} running${first.duration_s === null ? "" : ` for ${clock(first.duration_s)}`}`}
          </span>
        )}
        <StopAll running={running} />
        {!isCheckup && running.length === 0 && <RunAgain id={id} members={members} />}
      </div>
      <div class="cards group-cards">
        {members.map((task) => (
          <Card key={task.id} task={task} />
        ))}
      </div>
    </section>
  );
}
