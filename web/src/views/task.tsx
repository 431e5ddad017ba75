// One task: what was measured, how well, and the result.

import { useEffect, useMemo, useState } from "preact/hooks";
import { api, ProblemError, type WaitCut } from "../api/client";
import type { Task } from "../api/types";
import { isContinuous } from "../lib/continuous";
import { visible } from "../lib/format";
import { specAgain } from "../lib/run_again";
import { isFinal } from "../lib/task_list";
import { threadTitle } from "../lib/threads";
import { edited } from "../state/edited";
import { fullScreen, useFullScreen } from "../state/full_screen";
import { dropTask, putTask, tasks } from "../state/live";
import { useProfile } from "../state/profile";
import { openView, patchRoute, route } from "../state/route";
import { useThreads } from "../state/timeline";
import { BaseMenu } from "./base_menu";
import { CellChip } from "./cell_chip";
import { Changing } from "./changing";
import { ContinuousBar } from "./continuous_bar";
import { DiffView } from "./diff_view";
import { DisplayMenu } from "./display_menu";
import { EdgeExportMenu } from "./edge_export_menu";
import { ExportMenu } from "./export_menu";
import { RequestsResult } from "./later_pages";
import { NetworkResult } from "./network";
import { NoSamples } from "./no_samples";
import { NoticeChoice } from "./notice";
import { PageLink } from "./page_link";
import { ProfileSearch, ProfileView } from "./profile_view";
import { QualityChip } from "./quality_chip";
import { RequestExportMenu } from "./request_export_menu";
import { useShownProfile } from "./shown_profile";
import { ErrorBox, Loading } from "./states";
import { Facts, Remarks } from "./task_facts";
import { StateChip } from "./task_state";
import { namedTarget } from "./tasks";
import { useTimeKey } from "./time_choice";
import { TimeOrder } from "./time_order";
import { TimeBars, TimePanel } from "./time_panel";
import { ViewChoice } from "./view_choice";
import { WaitBar } from "./wait_bar";

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

/** The same samples by what asked for them; a picked time is kept. */
function DiagnoseLink({ id }: { id: string }) {
  const { from, to, pid } = route.value;
  return (
    <PageLink class="button-link" to={{ view: "diagnosis", id, from, to, pid }} title="Which part costs what">
      Diagnose this result
    </PageLink>
  );
}

/** The same once more, or with something changed. */
function Again({ task, attempt }: { task: Task; attempt: (action: () => Promise<void>) => Promise<void> }) {
  const [sending, setSending] = useState(false);
  const spec = specAgain(task);
  if (spec === null || !isFinal(task)) return null;
  const run = async (): Promise<void> => {
    setSending(true);
    try {
      const started = await api.create(spec);
      putTask(started);
      openView({ view: "task", id: started.id });
    } finally {
      setSending(false);
    }
  };
  return (
    <Changing>
      <button type="button" disabled={sending} onClick={() => void attempt(run)}>
        Run again
      </button>
      <button
        type="button"
        onClick={() => {
          edited.value = task;
          patchRoute({ create: true });
        }}
      >
        Edit and run
      </button>
    </Changing>
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
      {!isFinal(task) && task.duration_s !== null && <NoticeChoice />}
      {DIAGNOSED.includes(task.kind) && task.samples > 0 && <DiagnoseLink id={task.id} />}
      <Again task={task} attempt={attempt} />
      {PROFILES.includes(task.kind) && <BaseMenu task={task} />}
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
  on_cpu: "on-CPU",
  off_cpu: "off-CPU",
  wall: "wall clock",
  imported: "imported",
  network: "network",
  requests: "requests",
};

const PROFILES = ["on_cpu", "off_cpu", "wall", "imported"];

/** Samples have a feature only where a diagnosis of them can be made. */
const DIAGNOSED = ["on_cpu", "wall", "imported"];

function Result({ task }: { task: Task }) {
  const { from, to, tids, except, base, tab, cell, pid, containers, time, colour } = route.value;
  useTimeKey();
  useFullScreen();
  const running = task.state === "running";
  const waits = waitCut(task);
  const waitsKey = JSON.stringify(waits);
  const attributed = DIAGNOSED.includes(task.kind);
  // Who woke a thread is no part of the stacks that a diagnosis knows.
  const features = attributed && colour === "feature" && waits?.wakers !== true;
  const cut = useMemo(
    () => ({ from, to, tids, except, waits, cell, pid, containers }),
    [from, to, tids, except, waitsKey, cell, pid, containers],
  );
  const file = "imported" in task.target ? task.target.imported : null;
  // The other views ask for what they show themselves.
  const whole = base === "" && tab !== "order";
  const answer = useProfile(task.id, cut, features, running, task.state !== "queued" && whole);
  const profile = useShownProfile(answer.index);
  const hasThreads = file?.has_threads !== false;
  const isRecorded = task.state !== "queued" && (task.state !== "failed" || task.samples > 0);
  const threads = useThreads(task.id, cut, running, isRecorded && hasThreads);
  if (task.state === "queued") return <Loading what="the first samples (the task waits for its turn)" />;
  if (task.state === "failed" && task.samples === 0)
    return <NoSamples index={profile.base} running={false} failed={true} />;
  const timed = file?.has_times !== false;
  const continuous = isContinuous(task);
  return (
    <>
      {continuous && <ContinuousBar task={task} running={running} threads={threads} />}
      <div class="toolbar result-bar">
        {base === "" && <ViewChoice order />}
        {!timed ? (
          <p class="muted no-times">The file does not say when samples were taken.</p>
        ) : (
          time === "bars" && !continuous && <TimeBars task={task} running={running} />
        )}
        {hasThreads && (
          <button
            type="button"
            class={tids.length > 0 ? "thread-button active" : "thread-button"}
            aria-expanded={time === "threads"}
            title="Processes and threads, what each did over time, and which of them are shown"
            onClick={() => patchRoute({ time: time === "threads" ? "bars" : "threads" }, "replace")}
          >
            {threadTitle(threads?.length ?? 0, tids, except)}
          </button>
        )}
        {whole && <ProfileSearch profile={profile} />}
        <QualityChip task={task} cut={cut} running={running} index={answer.index} />
        <DisplayMenu
          index={whole ? profile.pane.index : null}
          changes={base === ""}
          timed={timed}
          attributed={attributed && waits?.wakers !== true}
        />
      </div>
      {(time === "threads" ? hasThreads : timed && time === "subsecond") && (
        <TimePanel key={task.id} task={task} cut={cut} running={running} threads={threads} timed={timed} />
      )}
      <CellChip />
      {waits !== null && <WaitBar task={task} cut={cut} view={waits} running={running} />}
      {base !== "" ? (
        <DiffView task={task} cut={cut} running={running} />
      ) : tab === "order" ? (
        <div class="time-order">
          <TimeOrder task={task} cut={cut} running={running} />
        </div>
      ) : answer.index === null ? (
        answer.error === null ? (
          <Loading what="the profile" />
        ) : (
          <ErrorBox title="No profile to show" detail={answer.error} />
        )
      ) : (
        <ProfileView
          profile={profile}
          arrivedAt={answer.arrivedAt}
          running={running}
          failed={task.state === "failed"}
          error={answer.error}
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
  const isProfile = PROFILES.includes(task.kind);
  return (
    <section class={fullScreen.value && isProfile ? "task-page full" : "task-page"}>
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
          <h1 title={visible(namedTarget(task))}>
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
      {/* Those of a profile, and all remarks, stand behind the chip of the result's quality: the result gets the window. */}
      {!isProfile && <Facts task={task} />}
      <Remarks task={task} reasonOnly={task.state !== "failed"} />
      <KindResult task={task} />
    </section>
  );
}
