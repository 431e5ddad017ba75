// What a task will give and cost, before it is started.

import type { Process, TaskSpec } from "../api/types";
import { coresOf, estimateLine } from "../lib/estimate";
import { visible } from "../lib/format";
import { KIND_TITLES } from "../lib/kind_probes";
import { sourcesAsked } from "../lib/request_source";
import { costLines } from "../lib/task_cost";
import { kernelReadings } from "../state/kernel";
import { self } from "../state/live";

interface Props {
  readonly specs: readonly TaskSpec[];
  readonly matched: readonly Process[];
  /** Whether `matched` is what the target means. */
  readonly isMatched: boolean;
  /** Why there is no estimate. */
  readonly problem: string | null;
}

const GIVES: Readonly<Record<TaskSpec["kind"], string>> = {
  on_cpu: "",
  off_cpu: "Every time that a thread leaves the CPU is measured, with its stack.",
  wall: "All time of each thread: waits are measured, time on the CPU is shared out over the samples.",
  network: "Every connection is counted at both ends: bytes, calls, times, losses. Payload is not looked at.",
  requests:
    "Every connection is counted, and what is asked and answered over it: operations with their times, sizes and errors. Secrets in headers and queries are masked, and bodies are kept only where you ask for them.",
};

const GIVES_LOGGED =
  "Every request that an Envoy of the target reports is counted, with its phases, response flags and upstream host. Requests that go through no Envoy are not seen.";

function resolution(spec: TaskSpec, cores: number | null): string {
  if (spec.kind === "off_cpu" && spec.off_cpu_mode === "sampled")
    return "Waits are sampled: which stacks waited is an estimate, their sums are exact.";
  if (spec.kind === "requests" && !sourcesAsked(spec).includes("sockets")) return GIVES_LOGGED;
  if (spec.kind !== "on_cpu") return GIVES[spec.kind];
  if (cores === null) return "How many samples come is not known: the target has no CPU reading yet.";
  return estimateLine(spec.duration_s, spec.frequency_hz, cores);
}

export function TaskEstimate({ specs, matched, isMatched, problem }: Props) {
  if (problem !== null || specs.length === 0)
    return <p class="estimate">No estimate yet: {visible(problem ?? "something is missing")}.</p>;
  const cores = isMatched ? coresOf(matched) : null;
  const programs = kernelReadings.value.at(-1)?.objects.programs ?? self.value?.bpf.programs ?? [];
  return (
    <div class="estimate" data-estimate>
      {specs.map((spec) => (
        <section key={spec.kind}>
          <p>
            {specs.length > 1 && <b>{KIND_TITLES[spec.kind]}: </b>}
            {resolution(spec, cores)}
          </p>
          <ul class="cost">
            {costLines({
              kind: spec.kind,
              hertz: spec.frequency_hz,
              cores,
              sampled: spec.off_cpu_mode === "sampled",
              timed: spec.timed ?? false,
              sources: sourcesAsked(spec),
              tlsPercent: spec.tls_duty_percent ?? 100,
              programs,
            })
              .filter(
                (line, i) => specs.length === 1 || i === 0 || spec === specs[0] || line.ofAgent !== true,
              )
              .map(({ text, how }) => (
                <li key={text} title={how}>
                  Estimated overhead: {text}
                </li>
              ))}
          </ul>
        </section>
      ))}
    </div>
  );
}
