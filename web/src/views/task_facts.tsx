// What a task was asked for and how it ran, as facts; and what it has to remark.

import type { CpuCoverage, ImportedFile, RequestSettings, Task } from "../api/types";
import { clock, count, moment, visible } from "../lib/format";
import { lossesPart, type QualityPart } from "../lib/quality";
import { sourcesText } from "../lib/request_source";
import { isFinal } from "../lib/task_list";
import { knownNow } from "../state/silent";
import { elapsedSeconds, lossText } from "./task_state";

const CLOCKS = {
  "cpu-clock": "a timer of each CPU that ticks while the CPU works",
  cycles: "the hardware's cycle counter",
  "sched-switch": "no clock: every time that a thread leaves the CPU",
  "wall-clock": "switches, and between them a timer whose samples share the time on the CPU",
} as const;

/** What the number of samples counts. */
const COUNTED = {
  "cpu-clock": "One for each period of CPU time",
  cycles: "One for each period of CPU time",
  "sched-switch": "Each time that a thread left the CPU; there is no rate",
  "wall-clock": "Those of the time on the CPU at the frequency beside, and one for each wait",
} as const;

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
        {clock(elapsedSeconds(task, knownNow()))}
        {task.duration_s !== null && !isFinal(task) ? ` of ${clock(task.duration_s)}` : ""}
      </Fact>
      <Fact title="Started">{moment(task.started_at_ns ?? task.created_at_ns)}</Fact>
    </>
  );
}

/** What the task was asked to look at. */
function CaptureFacts({ settings }: { settings: RequestSettings }) {
  const { source, tls, tls_duty_percent, bodies, raw_paths, samples, rules, capture_bytes } = settings;
  const readsSockets = source.includes("sockets");
  const duty = tls_duty_percent < 100 ? `, ${tls_duty_percent} % of the time` : "";
  const kept = samples === "all" ? "all" : "slowest and failing";
  return (
    <>
      <Fact title="Requests from" help="Where requests are looked for">
        {sourcesText(source)}
      </Fact>
      {readsSockets && (
        <Fact title="Inside TLS" help="Plaintext is read at the functions of TLS libraries, or not">
          {tls ? `yes${duty}` : "no"}
        </Fact>
      )}
      <Fact title="Samples">
        {`${kept}${rules.length === 0 ? "" : ` and ${count(rules.length)} rules`}, ${raw_paths ? "paths as sent" : "routes only"}${bodies ? ", with bodies" : ""}`}
      </Fact>
      {readsSockets && (
        <Fact title="Capture size" help="The first bytes of each read and write">
          {`${count(capture_bytes)} B`}
        </Fact>
      )}
    </>
  );
}

export function Facts({ task }: { task: Task }) {
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
      <Fact title={waits ? "Switches" : "Samples"} help={COUNTED[task.clock ?? "cpu-clock"]}>
        {count(task.samples)}
        {task.clock === "wall-clock" && ", waits included"}
        {waits && " off the CPU"}
      </Fact>
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

/** Why the task failed stands by itself: losses and notes are no causes. */
const ownReason = ({ state, reason }: Task): string | null => (state === "failed" ? null : reason);

/** Number of things that a task has to remark. */
export function remarksOf(task: Task): number {
  return task.losses.length + task.notes.length + (ownReason(task) === null ? 0 : 1);
}

export function RemarkList({ task }: { task: Task }) {
  const reason = ownReason(task);
  return (
    <ul>
      {reason !== null && <li>{visible(reason)}</li>}
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
  );
}

/** What the task itself has lost, beside what its result counts; nothing without losses. */
export function taskLosses(task: Task): QualityPart[] {
  return task.losses.length === 0 ? [] : [{ ...lossesPart(task, lossText(task)), title: "Task" }];
}

/** The remarks of a task behind the chip of its quality. */
export function TaskRemarks({ task }: { task: Task }) {
  if (remarksOf(task) === 0) return null;
  return (
    <div class="remarks">
      <RemarkList task={task} />
    </div>
  );
}

/** Why a task failed, and what else it has to say. */
export function Remarks({ task, reasonOnly }: { task: Task; reasonOnly: boolean }) {
  const others = reasonOnly ? 0 : remarksOf(task);
  return (
    <>
      {task.state === "failed" && task.reason !== null && (
        <p class="remarks bad" role="alert" data-failed>
          <b>Why it failed:</b> {visible(task.reason)}
        </p>
      )}
      {others > 0 && (
        <details class="remarks">
          <summary>
            About the quality of this result<span class="badge">{others}</span>
          </summary>
          <RemarkList task={task} />
        </details>
      )}
    </>
  );
}
