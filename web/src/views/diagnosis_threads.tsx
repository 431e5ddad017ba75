// Threads: what they use, what they wait for, whether one has more to do than the others, and loops that
// took too long.

import { useState } from "preact/hooks";
import type { EventLoop, Workers, WorkerThread } from "../api/types";
import { reasonOf, share, waitsWatched } from "../lib/diagnosis";
import { count, duration, moment, plural, visible } from "../lib/format";
import { holdersLine } from "./cpu_contention";
import { Unknown } from "./unknown";

/** Reasons of waits that are listed for one thread. */
const MOST_REASONS = 3;
/** Stalls that are listed before more are asked for. */
const MOST_STALLS = 5;

function Bar({ percent }: { percent: number }) {
  return (
    <span class="bar-cell">
      <span class="bar" style={{ width: `${Math.max(0, Math.min(100, percent))}%` }} />
      <span>{share(percent)}</span>
    </span>
  );
}

function Waits({ thread, watched, why }: { thread: WorkerThread; watched: boolean; why: string }) {
  if (!watched) return <Unknown why={why} />;
  if (thread.waits.length === 0) return <span class="muted">none</span>;
  const rest = thread.waits.length - MOST_REASONS;
  const all = thread.waits.map(
    ({ reason, count: times, ns, share_percent }) =>
      `${reason.replaceAll("_", " ")}: ${duration(ns)} (${share(share_percent)}), ${count(times)} times`,
  );
  return (
    <span title={visible(all.join("; "))}>
      {thread.waits.slice(0, MOST_REASONS).map(({ reason, ns, share_percent }) => (
        <span key={reason} class="wait-part">
          {visible(reason.replaceAll("_", " "))} <b class="numeric">{share(share_percent)}</b>{" "}
          <span class="muted numeric">{duration(ns)}</span>
        </span>
      ))}
      {rest > 0 && <span class="muted"> and {rest} more</span>}
    </span>
  );
}

function Imbalance({ imbalance, accounted }: Pick<Workers, "imbalance"> & { accounted: boolean }) {
  if (imbalance === null) return null;
  const { busiest_percent, mean_percent, ratio, low, high, significant } = imbalance;
  return (
    <p data-imbalance>
      <span class={significant ? "warn" : ""}>
        {significant && <span aria-hidden="true">▲ </span>}
        The busiest worker uses {share(busiest_percent)} of a CPU, the mean is {share(mean_percent)}
      </span>{" "}
      {accounted ? "by the kernel's accounting" : "by samples"}: × <b class="numeric">{ratio.toFixed(2)}</b>{" "}
      <span class="muted numeric">
        ({low.toFixed(2)} to {high.toFixed(2)})
      </span>
      , {significant ? "significant" : "not significant"}.
    </p>
  );
}

/** Who had the CPU meanwhile is in the title, and above the table for all threads. */
function RunQueue({ thread, percent }: { thread: WorkerThread; percent: number }) {
  const { contention } = thread;
  const who =
    contention === null || contention.known_ns === 0
      ? undefined
      : `The CPU was with ${holdersLine(contention)}`;
  return (
    <span title={who}>
      {share(percent)}
      {who !== undefined && <span class="hidden">{who}</span>}
    </span>
  );
}

function Contention({ contention }: Pick<Workers, "contention">) {
  if (contention === null || contention.known_ns === 0) return null;
  return (
    <p data-contention>
      Waiting for a CPU: <b class="numeric">{duration(contention.waited_ns)}</b>, in sum over threads. It was
      with {holdersLine(contention)}.
    </p>
  );
}

/** A thread that neither ran nor waited says nothing; they are counted. */
const MOST_THREADS = 40;

export function WorkerTable({
  workers,
  limits,
  accounted,
}: {
  workers: Workers;
  limits: readonly string[];
  /** CPU time is that of the kernel's accounting. */
  accounted: boolean;
}) {
  const watched = waitsWatched(workers);
  const offCpu = reasonOf(limits, ["waits", "wait"]);
  const queue = reasonOf(limits, ["run queue", "run-queue", "waits"]);
  const { threads } = workers;
  return (
    <section class="card wide" aria-labelledby="workers-title">
      <h2 id="workers-title">Threads</h2>
      <Imbalance imbalance={workers.imbalance} accounted={accounted} />
      <Contention contention={workers.contention} />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it */}
      <div class="plain-table-box" tabIndex={0} role="region" aria-label="Threads with their CPU and waits">
        <table class="plain worker-table">
          <thead>
            <tr>
              <th scope="col">Thread</th>
              <th scope="col">Role</th>
              <th
                scope="col"
                class="numeric"
                title="Of one CPU: by the kernel's accounting where it was read, otherwise by samples"
              >
                CPU
              </th>
              <th scope="col" class="numeric" title="Of the time of all samples">
                Samples
              </th>
              <th scope="col" class="numeric" title="Ready to run and without a CPU, of the window">
                Run queue
              </th>
              <th scope="col" title="Waits that are not idling, of the window">
                Waits
              </th>
              <th scope="col" class="numeric">
                Longest wait
              </th>
            </tr>
          </thead>
          <tbody>
            {threads.slice(0, MOST_THREADS).map((thread) => (
              <tr key={thread.tid}>
                <td>
                  <span class="mono wrap">{visible(thread.name)}</span>{" "}
                  <span class="muted numeric">{thread.tid}</span>
                </td>
                <td>{thread.role}</td>
                <td class="numeric">
                  <Bar percent={thread.cpu_percent} />
                </td>
                <td class="numeric">{share(thread.share_percent)}</td>
                <td class="numeric">
                  {thread.run_queue_percent === null ? (
                    <Unknown why={queue} />
                  ) : (
                    <RunQueue thread={thread} percent={thread.run_queue_percent} />
                  )}
                </td>
                <td>
                  <Waits thread={thread} watched={watched} why={offCpu} />
                </td>
                <td class="numeric">
                  {thread.longest_wait_ns !== null ? (
                    duration(thread.longest_wait_ns)
                  ) : watched ? (
                    <span class="muted">none</span>
                  ) : (
                    <Unknown why={offCpu} />
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {threads.length > MOST_THREADS && (
        <p class="muted small">and {count(threads.length - MOST_THREADS)} more with less CPU</p>
      )}
    </section>
  );
}

function Stall({ stall }: { stall: EventLoop["stalls"][number] }) {
  const { name, tid, start_ns, duration_ns, stack, samples } = stall;
  return (
    <li>
      <details class="stall">
        <summary>
          <b class="numeric">{duration(duration_ns)}</b> in <span class="mono">{visible(name)}</span>{" "}
          <span class="muted numeric">
            {tid}, {moment(start_ns)}
          </span>{" "}
          {stack[0] !== undefined && <span class="mono wrap">{visible(stack[0])}</span>}
        </summary>
        {stack.length === 0 ? (
          <p class="muted">No sample fell into it: what held the thread is not known.</p>
        ) : (
          <>
            <p class="muted small">What {plural(samples, "sample")} saw, leaf first</p>
            <ol class="stall-stack mono">
              {stack.map((frame, i) => (
                <li key={i} class="wrap">
                  {visible(frame)}
                </li>
              ))}
            </ol>
          </>
        )}
      </details>
    </li>
  );
}

/** The longest ones; the others are asked for. */
function Stalls({ stalls }: Pick<EventLoop, "stalls">) {
  const [all, setAll] = useState(false);
  const longest = stalls.toSorted((a, b) => b.duration_ns - a.duration_ns);
  return (
    <>
      <ul class="stalls" data-stalls>
        {(all ? longest : longest.slice(0, MOST_STALLS)).map((stall) => (
          <Stall key={`${stall.tid} ${stall.start_ns}`} stall={stall} />
        ))}
      </ul>
      {!all && longest.length > MOST_STALLS && (
        <button type="button" class="quiet" onClick={() => setAll(true)}>
          Show all {count(longest.length)}
        </button>
      )}
    </>
  );
}

function LoopLength({ ns }: { ns: number | undefined }) {
  return ns === undefined ? <Unknown why="No loop is over yet." /> : <span>{duration(ns)}</span>;
}

export function EventLoopPart({ loop, limits }: { loop: EventLoop | null; limits: readonly string[] }) {
  const title = <h2 id="loop-title">Event loops</h2>;
  if (loop === null)
    return (
      <section class="card" aria-labelledby="loop-title">
        {title}
        <p data-absent="event_loop">
          <b>Not known.</b> {visible(reasonOf(limits, ["stalls of event loops", "stall", "event loop"]))}
        </p>
      </section>
    );
  const { threads, stalls, threshold_ms } = loop;
  return (
    <section class="card" aria-labelledby="loop-title">
      {title}
      <p class="muted small">
        How long a thread stayed away from its event loop; above {threshold_ms} ms it is a stall.
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it */}
      <div class="plain-table-box" tabIndex={0} role="region" aria-label="Event loops by thread">
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">Thread</th>
              {["Loops", "p50", "p99", "Longest", "Stalls", "Stalled"].map((head) => (
                <th key={head} scope="col" class="numeric">
                  {head}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {threads.map((thread) => (
              <tr key={thread.tid}>
                <td>
                  <span class="mono wrap">{visible(thread.name)}</span>{" "}
                  <span class="muted numeric">{thread.tid}</span>
                </td>
                <td class="numeric">{count(thread.loops)}</td>
                <td class="numeric">
                  <LoopLength ns={thread.loop_ns?.p50} />
                </td>
                <td class="numeric">
                  <LoopLength ns={thread.loop_ns?.p99} />
                </td>
                <td class="numeric">
                  <LoopLength ns={thread.loop_ns?.max} />
                </td>
                <td class="numeric">{count(thread.stalls)}</td>
                <td class="numeric">{duration(thread.stalled_ns)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {stalls.length === 0 ? <p>No stall.</p> : <Stalls stalls={stalls} />}
    </section>
  );
}
