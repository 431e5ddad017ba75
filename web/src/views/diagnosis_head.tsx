// The verdict, the numbers that everything else is a part of, and how far they can be trusted.

import type { ComponentChildren } from "preact";
import type { Coverage, Diagnosis } from "../api/types";
import type { Subject } from "../lib/checkup_paths";
import { DIAGNOSABLE, estimateText, reasonOf, share, throttledText } from "../lib/diagnosis";
import { count, duration, fileName, moment, visible } from "../lib/format";
import { NAMED_FRAMES } from "../lib/names_quality";
import { patchRoute } from "../state/route";
import { Choice } from "./choice";
import { Unknown } from "./unknown";

function Fact({ title, help, children }: { title: string; help?: string; children: ComponentChildren }) {
  return (
    <div class="fact" title={help}>
      <dt>{title}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Totals({ diagnosis }: { diagnosis: Diagnosis }) {
  const { totals, limits, window, workers } = diagnosis;
  const why = (...words: string[]): string => reasonOf(limits, words);
  const { throttled } = workers;
  return (
    <dl class="facts diagnosis-totals" data-totals>
      <Fact title="CPU" help="As the kernel accounts it to the process, not from samples">
        {totals.cpu_cores === null && totals.sampled_ns === 0 ? (
          <Unknown why={why("cpu time", "accounting", "cores")} />
        ) : totals.cpu_cores === null ? (
          <span title={why("cpu time", "accounting", "cores")}>
            about {(totals.sampled_ns / 1e9 / window.duration_s).toFixed(2)} cores{" "}
            <span class="muted">by the samples</span>
          </span>
        ) : (
          `${totals.cpu_cores.toFixed(2)} cores`
        )}
        {totals.cpu_ns !== null && <span class="muted"> {duration(totals.cpu_ns)}</span>}
      </Fact>
      <Fact title="CPU of one request" help="With its 95 % interval">
        {totals.cpu_us_per_request === null ? (
          <Unknown why={why("per request", "request")} />
        ) : (
          estimateText(totals.cpu_us_per_request)
        )}
      </Fact>
      <Fact title="Requests">
        {totals.requests === null ? (
          <Unknown why={why("request")} />
        ) : (
          <>
            {totals.requests.per_second < 10
              ? totals.requests.per_second.toFixed(2)
              : count(totals.requests.per_second)}{" "}
            /s <span class="muted">{visible(totals.requests.source)}</span>
          </>
        )}
      </Fact>
      {throttled !== null && (
        <Fact title="Throttled" help="How often the CPU limit of the container stopped it">
          {throttledText(throttled)}
        </Fact>
      )}
      <Fact title="Measured" help="The window of the samples">
        {moment(window.from_ns)} <span class="muted">for {window.duration_s.toFixed(0)} s</span>
      </Fact>
    </dl>
  );
}

const PARTS = [
  ["named_frames_percent", "named", NAMED_FRAMES],
  ["named_percent", "can be diagnosed", DIAGNOSABLE],
  ["attributed_percent", "attributed", "Samples that a rule gave to a feature"],
  ["complete_percent", "complete stacks", "Stacks that end where their thread began"],
  ["no_symbols_percent", "without symbols", "Samples that neither a rule nor a name explains"],
] as const;

function Trust({ coverage }: { coverage: Coverage }) {
  return (
    <p class="diagnosis-trust" data-coverage>
      <span>
        <b class="numeric">{count(coverage.samples)}</b> samples
      </span>
      {PARTS.map(([key, title, help]) => {
        const percent = coverage[key];
        return (
          percent !== null && (
            <span key={key} title={help}>
              <b class="numeric">{share(percent)}</b> {title}
            </span>
          )
        );
      })}
    </p>
  );
}

/** Too little is named: what follows is about the rest only, and this says what to give. */
function Poor({ coverage }: { coverage: Coverage }) {
  return (
    <section class="diagnosis-poor" aria-label="Too few names" data-poor>
      <h2>
        <span aria-hidden="true">▲ </span>Only {share(coverage.named_percent)} of the samples can be diagnosed
      </h2>
      <p>
        {DIAGNOSABLE} Below that the findings cover what the kernel, system calls, threads and connections
        tell, and no more.
        {coverage.supply !== null && ` Supply ${visible(coverage.supply)}.`}
      </p>
      <Unnamed coverage={coverage} />
    </section>
  );
}

function Unnamed({ coverage }: { coverage: Coverage }) {
  if (coverage.unnamed_modules.length === 0) return null;
  return (
    <table class="plain">
      <thead>
        <tr>
          <th scope="col">File without names</th>
          <th scope="col">Build-id</th>
          <th scope="col" class="numeric">
            Samples
          </th>
        </tr>
      </thead>
      <tbody>
        {coverage.unnamed_modules.map(({ module, build_id, share_percent }) => (
          <tr key={`${module} ${build_id}`}>
            <td class="mono wrap" title={visible(module)}>
              {visible(fileName(module) || module)}
            </td>
            <td class="mono wrap">{build_id === null ? "none" : visible(build_id)}</td>
            <td class="numeric">{share(share_percent)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

type Processes = Diagnosis["processes"];
/** Processes of a single result as a whole: a diagnosis of one of them knows no other. */
const known = new Map<string, Processes>();
/** So many are buttons side by side. */
const MOST_BUTTONS = 4;
const LONGEST_COMM = 60;

const isProxy = ({ rule_set }: Processes[number]): boolean => rule_set === "envoy";

/** All processes of what is diagnosed, sidecars first. */
function processesOf({ processes, other_processes }: Diagnosis, { of, id, pid }: Subject): Processes {
  const found = [...processes, ...other_processes];
  const key = `${of} ${id}`;
  if (pid === null) known.set(key, found);
  const all = known.get(key) ?? found;
  return [...all.filter(isProxy), ...all.filter((process) => !isProxy(process))];
}

/** Which of several processes the diagnosis is about. */
export function ProcessChoice({ diagnosis, subject }: { diagnosis: Diagnosis; subject: Subject }) {
  const all = processesOf(diagnosis, subject);
  const { pid } = subject;
  const listed = all.some((process) => process.pid === pid);
  if (all.length < 2 && pid === null) return null;
  // Without a process in the address it is the sidecar, where the target has one.
  const isDefault = pid === null && diagnosis.other_processes.length > 0;
  const shown = isDefault ? (diagnosis.processes[0]?.pid ?? null) : pid;
  const value = shown === null ? "" : String(shown);
  const proxies = all.filter(isProxy);
  const sidecar = subject.of === "checkups" && proxies.length === 1 ? String(proxies[0]?.pid) : null;
  const set = (next: string): void =>
    patchRoute({
      pid: next === "" || next === sidecar ? null : Number(next),
      scope: next === "" ? "all" : "sidecar",
    });
  if (all.length <= MOST_BUTTONS && (listed || pid === null)) {
    const isPair = all.length === 2 && proxies.length === 1;
    const title = (process: Processes[number]): string => {
      const role = isProxy(process) ? "Sidecar: " : isPair ? "App: " : "";
      return `${role}${visible(process.comm).slice(0, LONGEST_COMM)} ${process.pid}`;
    };
    return (
      <Choice
        label="About"
        value={value}
        choices={[
          ...all.map((process) => [String(process.pid), title(process)] as const),
          ["", isPair ? "Both" : "All of it"],
        ]}
        set={set}
      />
    );
  }
  return (
    <label class="process-choice">
      <span class="muted">About</span>{" "}
      <select value={value} onChange={(event) => set(event.currentTarget.value)}>
        <option value="">all processes</option>
        {pid !== null && !listed && <option value={String(pid)}>pid {pid}</option>}
        {all.map((process) => (
          <option key={process.pid} value={String(process.pid)}>
            {visible(process.comm).slice(0, LONGEST_COMM)} {process.pid}
            {process.rule_set === "generic" ? "" : ` (rules for ${process.rule_set})`}
          </option>
        ))}
      </select>
    </label>
  );
}

export function VerdictHead({ diagnosis }: { diagnosis: Diagnosis }) {
  const { coverage } = diagnosis;
  return (
    <>
      <p class="verdict" data-verdict>
        {visible(diagnosis.verdict)}
      </p>
      <Totals diagnosis={diagnosis} />
      <Trust coverage={coverage} />
      {!coverage.sufficient && <Poor coverage={coverage} />}
      {coverage.sufficient && coverage.supply !== null && (
        <details class="remarks">
          <summary>What would give more names</summary>
          <p>Supply {visible(coverage.supply)}.</p>
          <Unnamed coverage={coverage} />
        </details>
      )}
    </>
  );
}
