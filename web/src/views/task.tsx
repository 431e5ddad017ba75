// One task: what was measured, how well, and the result.

import { useEffect, useMemo, useState } from "preact/hooks";
import { api, ProblemError, type ProfileCut, type WaitCut } from "../api/client";
import type { CpuCoverage, ImportedFile, RequestSettings, Task } from "../api/types";
import { clock, count, moment, visible } from "../lib/format";
import { isFinal } from "../lib/task_list";
import { dropTask, putTask, tasks } from "../state/live";
import { useProfile } from "../state/profile";
import { openView, route } from "../state/route";
import { BaseMenu } from "./base_menu";
import { CellChip } from "./cell_chip";
import { Changing } from "./changing";
import { DiffView } from "./diff_view";
import { EdgeExportMenu } from "./edge_export_menu";
import { ExportMenu } from "./export_menu";
import { RequestsResult } from "./later_pages";
import { NetworkResult } from "./network";
import { PageLink } from "./page_link";
import { ProfileView } from "./profile_view";
import { QualityStrip } from "./quality_strip";
import { RequestExportMenu } from "./request_export_menu";
import { ErrorBox, Loading } from "./states";
import { elapsedSeconds, StateChip } from "./task_state";
import { namedTarget } from "./tasks";
import { ThreadMenu } from "./thread_menu";
import { TimeOrder } from "./time_order";
import { TimePanel } from "./time_panel";
import { ViewChoice } from "./view_choice";
import { WaitBar } from "./wait_bar";

const CLOCKS = {
  "cpu-clock": "a timer of each CPU that ticks while the CPU works",
  cycles: "the hardware's cycle counter",
  "sched-switch": "no clock: every time that a thread leaves the CPU",
  "wall-clock": "switches, and between them a timer whose samples share the time on the CPU",
} as const;

/** The task from the live list; asked for by itself when the list does not have it. */
function useTask(id: string): { task: Task | null; problem: string | null } {
  const [problem, setProblem] = useState<string | null>(null);
  const task = tasks.value?.get(id) ?? null;
  const known = task !== null;
  const listed = tasks.value !== null;
  useEffect(() => {
    if (known) {
      setProblem(null);
      return;
    }
    const stop = new AbortController();
    api.task(id, stop.signal).then(putTask, (error: unknown) => {
      if (!stop.signal.aborted && error instanceof ProblemError) setProblem(error.message);
    });
    return () => stop.abort();
  }, [id, known, listed]);
  return { task, problem };
}

function Fact({
  title,
  help,
  warn,
  children,
}: {
  title: string;
  help?: string;
  warn?: boolean;
  children: unknown;
}) {
  return (
    <div class={warn ? "fact warn" : "fact"} title={help}>
      <dt>{title}</dt>
      <dd>{children as string}</dd>
    </div>
  );
}

function Times({ task }: { task: Task }) {
  return (
    <>
      <Fact title={isFinal(task) ? "Ran for" : "Running for"}>
        {clock(elapsedSeconds(task, Date.now()))}
        {task.duration_s !== null && !isFinal(task) ? ` of ${clock(task.duration_s)}` : ""}
      </Fact>
      <Fact title="Started">{moment(task.started_at_ns ?? task.created_at_ns)}</Fact>
    </>
  );
}

/** What the task was asked to look at. */
function CaptureFacts({ settings }: { settings: RequestSettings }) {
  const { tls, tls_duty_percent, bodies, raw_paths, samples, rules, capture_bytes } = settings;
  const duty = tls_duty_percent < 100 ? `, ${tls_duty_percent} % of the time` : "";
  const kept = samples === "all" ? "all" : "slowest and failing";
  return (
    <>
      <Fact title="Inside TLS" help="Plaintext is read at the functions of TLS libraries, or not">
        {tls ? `yes${duty}` : "no"}
      </Fact>
      <Fact title="Samples">
        {`${kept}${rules.length === 0 ? "" : ` and ${count(rules.length)} rules`}, ${raw_paths ? "paths as sent" : "routes only"}${bodies ? ", with bodies" : ""}`}
      </Fact>
      <Fact title="Looked at" help="The first bytes of each read and write">
        {`first ${count(capture_bytes)} bytes`}
      </Fact>
    </>
  );
}

function Facts({ task }: { task: Task }) {
  if (task.kind === "network" || task.kind === "requests") {
    return (
      <dl class="facts">
        {task.requests && <CaptureFacts settings={task.requests} />}
        <Times task={task} />
      </dl>
    );
  }
  if ("imported" in task.target) return <FileFacts task={task} file={task.target.imported} />;
  return <SampleFacts task={task} />;
}

const VALUE_TEXT = { counts: "counts only", durations: "times only", both: "counts and times" } as const;

/** What the file said of itself; what it did not say is unknown. */
function FileFacts({ task, file }: { task: Task; file: ImportedFile }) {
  const unknown = "not in the file";
  return (
    <dl class="facts">
      <Fact title="Samples">{file.values === "durations" ? unknown : count(task.samples)}</Fact>
      <Fact title="Format">{file.format}</Fact>
      <Fact title="Numbers">{VALUE_TEXT[file.values]}</Fact>
      <Fact title="Frequency">{task.frequency_hz === null ? unknown : `${task.frequency_hz} Hz`}</Fact>
      <Fact title="Length">{task.duration_s === null ? unknown : clock(elapsedSeconds(task, 0))}</Fact>
      <Fact title="Recorded">{task.started_at_ns === null ? unknown : moment(task.started_at_ns)}</Fact>
      <Fact title="Imported">{moment(task.created_at_ns)}</Fact>
    </dl>
  );
}

function coverageHelp({ sampled_ns, accounted_ns, processes }: CpuCoverage): string {
  const seconds = (ns: number) => `${(ns / 1e9).toFixed(2)} s`;
  return `Samples stand for ${seconds(sampled_ns)}, the kernel accounts ${seconds(accounted_ns)} to ${count(processes)} processes that were there at the end`;
}

function SampleFacts({ task }: { task: Task }) {
  const rate = task.effective_frequency_hz;
  const waits = task.clock === "sched-switch";
  const asked = task.frequency_hz;
  const lowered = rate !== null && asked !== null && rate < asked;
  return (
    <dl class="facts">
      <Fact title={waits ? "Switches" : "Samples"}>{count(task.samples)}</Fact>
      {!waits && (
        <Fact
          title="Frequency"
          warn={lowered}
          help={
            lowered
              ? `Asked for ${asked} Hz; lowered to keep the agent inside its CPU budget`
              : "Samples each second of CPU time"
          }
        >
          {lowered ? `${rate} Hz, lowered from ${asked}` : `${rate ?? asked} Hz`}
        </Fact>
      )}
      {task.coverage !== null && (
        <Fact title="CPU time sampled" help={coverageHelp(task.coverage)}>
          {`${task.coverage.percent.toFixed(1)} %`}
        </Fact>
      )}
      <Fact title="Clock" help={task.clock === null ? "Known when the task starts" : CLOCKS[task.clock]}>
        {task.clock ?? "–"}
      </Fact>
      <Times task={task} />
    </dl>
  );
}

function Remarks({ task }: { task: Task }) {
  if (task.losses.length === 0 && task.notes.length === 0 && task.reason === null) return null;
  return (
    <details class="remarks" open={task.state === "failed"}>
      <summary>
        {task.state === "failed" ? "Why it failed" : "About the quality of this result"}
        <span class="badge">{task.losses.length + task.notes.length + (task.reason === null ? 0 : 1)}</span>
      </summary>
      <ul>
        {task.reason !== null && <li class={task.state === "failed" ? "bad" : ""}>{visible(task.reason)}</li>}
        {task.losses.map((loss) => (
          <li key={loss.kind}>
            <b class="numeric">{count(loss.count)}</b> {visible(loss.meaning)}{" "}
            <code class="muted">{loss.kind}</code>
          </li>
        ))}
        {task.notes.map((note) => (
          <li key={note}>{visible(note)}</li>
        ))}
      </ul>
    </details>
  );
}

/** The same samples by what asked for them; a picked time is kept. */
function DiagnoseLink({ id }: { id: string }) {
  const { from, to, pid } = route.value;
  return (
    <PageLink class="button-link" to={{ view: "diagnosis", id, from, to, pid }} title="Which part costs what">
      Diagnose this result
    </PageLink>
  );
}

function Buttons({ task }: { task: Task }) {
  const [armed, setArmed] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const attempt = async (action: () => Promise<void>): Promise<void> => {
    setError(null);
    try {
      await action();
    } catch (problem) {
      setError(problem instanceof Error ? problem.message : "failed");
    }
  };
  const remove = async (): Promise<void> => {
    await api.remove(task.id);
    openView({ view: "tasks" });
    dropTask(task.id);
  };
  return (
    <div class="buttons">
      {error !== null && (
        <span class="bad" role="alert">
          {error}
        </span>
      )}
      {["on_cpu", "wall", "imported"].includes(task.kind) && <DiagnoseLink id={task.id} />}
      {task.kind === "network" ? (
        <EdgeExportMenu id={task.id} />
      ) : task.kind === "requests" ? (
        <RequestExportMenu id={task.id} />
      ) : (
        <ExportMenu id={task.id} waits={waitCut(task)} />
      )}
      <Changing>
        {isFinal(task) ? (
          <button
            type="button"
            class={armed ? "bad" : ""}
            onBlur={() => setArmed(false)}
            onClick={() => (armed ? void attempt(remove) : setArmed(true))}
          >
            {armed ? "Really delete" : "Delete"}
          </button>
        ) : (
          <button type="button" onClick={() => attempt(async () => putTask(await api.stop(task.id)))}>
            Stop
          </button>
        )}
      </Changing>
    </div>
  );
}

/** Draws again each second while the task runs, for the clock in the header. */
function useTick(active: boolean): void {
  const [, setTick] = useState(0);
  useEffect(() => {
    if (!active) return;
    const timer = setInterval(() => setTick((tick) => tick + 1), 1000);
    return () => clearInterval(timer);
  }, [active]);
}

/** What is shown of a result with waits; null for other results. */
function waitCut(task: Task): WaitCut | null {
  const file = "imported" in task.target ? task.target.imported : null;
  if (task.kind === "on_cpu") return null;
  // Only files of this program tell waits from work.
  if (file !== null && task.clock !== "sched-switch" && task.clock !== "wall-clock") return null;
  const { value, idle, wakers, states, reasons } = route.value;
  return {
    // Samples and switches make no sum.
    value: task.kind === "wall" || file?.values === "durations" ? "duration" : value,
    idle,
    wakers: task.wakers && wakers,
    states,
    reasons,
  };
}

const KIND_TITLE: Readonly<Record<string, string>> = {
  on_cpu: "on CPU",
  off_cpu: "off CPU",
  wall: "wall clock",
  imported: "imported",
  network: "network",
  requests: "requests",
};

/** Stacks in time order, with the way back to the other views. */
function OrderPane(props: { task: Task; cut: ProfileCut; running: boolean }) {
  return (
    <div class="time-order">
      <div class="toolbar profile-bar">
        <ViewChoice order />
      </div>
      <TimeOrder {...props} />
    </div>
  );
}

function Result({ task }: { task: Task }) {
  const { from, to, tids, except, base, tab, cell, pid } = route.value;
  const running = task.state === "running";
  const waits = waitCut(task);
  const waitsKey = JSON.stringify(waits);
  const cut = useMemo(
    () => ({ from, to, tids, except, waits, cell, pid }),
    [from, to, tids, except, waitsKey, cell, pid],
  );
  const file = "imported" in task.target ? task.target.imported : null;
  // The other views ask for what they show themselves.
  const whole = base === "" && tab !== "order";
  const profile = useProfile(task.id, cut, running, task.state !== "queued" && whole);
  if (task.state === "queued") return <Loading what="the first samples (the task waits for its turn)" />;
  return (
    <>
      <div class="cut-bar">
        {file?.has_times === false ? (
          <p class="muted no-times">The file does not say when samples were taken.</p>
        ) : (
          <TimePanel task={task} cut={cut} running={running} />
        )}
        {file?.has_threads !== false && (
          <ThreadMenu id={task.id} running={running} picked={tids} except={except} waits={waits} />
        )}
        <BaseMenu task={task} />
      </div>
      <QualityStrip task={task} cut={cut} running={running} index={profile.index} />
      <CellChip />
      {waits !== null && <WaitBar task={task} cut={cut} view={waits} running={running} />}
      {base !== "" ? (
        <DiffView task={task} cut={cut} running={running} />
      ) : tab === "order" ? (
        <OrderPane task={task} cut={cut} running={running} />
      ) : profile.index === null ? (
        profile.error === null ? (
          <Loading what="the profile" />
        ) : (
          <ErrorBox title="No profile to show" detail={profile.error} />
        )
      ) : (
        <ProfileView
          index={profile.index}
          arrivedAt={profile.arrivedAt}
          running={running}
          failed={task.state === "failed"}
          error={profile.error}
          order
          unit={waits === null ? "samples" : "switches"}
          time={task.kind === "wall" ? "of all threads" : "off the CPU"}
        />
      )}
    </>
  );
}

function KindResult({ task }: { task: Task }) {
  if (task.kind === "network") return <NetworkResult task={task} />;
  if (task.kind === "requests") return <RequestsResult task={task} />;
  return <Result task={task} />;
}

export function TaskPage({ id }: { id: string }) {
  const { task, problem } = useTask(id);
  useTick(task?.state === "running");
  if (task === null) {
    return problem === null ? (
      <Loading what={`task ${id}`} />
    ) : (
      <ErrorBox
        title={`Task ${id}`}
        detail={problem}
        hint="It may have been deleted, or removed by the retention."
      />
    );
  }
  return (
    <section class="task-page">
      <header class="task-head">
        <div class="task-title">
          <nav aria-label="Breadcrumb">
            <button type="button" class="link" onClick={() => openView({ view: "tasks" })}>
              Tasks
            </button>
            <span class="muted" aria-hidden="true">
              /
            </span>
          </nav>
          <h1>
            {id} <span class="muted">{KIND_TITLE[task.kind] ?? visible(task.kind)}</span> {namedTarget(task)}
          </h1>
          <StateChip task={task} />
        </div>
        <Buttons task={task} />
      </header>
      {task.state === "running" && (
        <progress
          class="task-progress"
          {...(task.progress === null ? {} : { value: task.progress })}
          max={1}
          aria-label="Progress of the task"
        />
      )}
      <Facts task={task} />
      <Remarks task={task} />
      <KindResult task={task} />
    </section>
  );
}
