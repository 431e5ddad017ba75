// What the agent holds in the kernel: programs with what a run costs, maps with how full they are.

import { useEffect } from "preact/hooks";
import { bytes, count, duration, percent, visible } from "../lib/format";
import { fillOf, mapRows, programRows, wholeName } from "../lib/kernel_objects";
import { corePercent } from "../lib/task_cost";
import { kernelPaceMs, kernelReadings, runsMeasured, runsRefused } from "../state/kernel";
import { self } from "../state/live";
import { Changing } from "./changing";

const PACE_MS = 4_000;
const CHIP_PACE_MS = 30_000;
/** Above this a map is nearly full. */
const NEARLY_FULL = 0.8;

/** Readings come faster while the page is open. */
export function useKernelPace(): void {
  useEffect(() => {
    kernelPaceMs.value = PACE_MS;
    return () => {
      kernelPaceMs.value = CHIP_PACE_MS;
      runsMeasured.value = false;
    };
  }, []);
}

const BY_TEXT = {
  agent: "measured all the time: the agent runs with --bpf-stats",
  kernel: "measured all the time: kernel.bpf_stats_enabled is 1",
} as const;

function Statistics() {
  const wanted = runsMeasured.value;
  const error = wanted ? runsRefused.value : null;
  const statistics = kernelReadings.value.at(-1)?.objects.statistics;
  const by = statistics?.by;
  const fixed = by === "agent" || by === "kernel";
  return (
    <div class="statistics">
      {fixed ? (
        <p class="muted small">Runs are {BY_TEXT[by]}.</p>
      ) : (
        <Changing>
          <label class="check">
            <input
              type="checkbox"
              checked={wanted}
              onChange={(event) => {
                runsMeasured.value = event.currentTarget.checked;
              }}
            />
            Measure runs while this page is open (a second of every four; costs about 20 ns a run)
          </label>
        </Changing>
      )}
      {!fixed && statistics?.on === false && !wanted && (
        <p class="muted small">The kernel does not count runs now: rates and times are unknown, not zero.</p>
      )}
      {error !== null && (
        <p class="field-error" role="alert">
          {error}
        </p>
      )}
    </div>
  );
}

const unknown = (
  <span class="muted" title="Not counted: the kernel's statistics are off, or there is one reading only">
    –
  </span>
);

export function ProgramsCard() {
  const [before, now] =
    kernelReadings.value.length === 2 ? kernelReadings.value : [null, kernelReadings.value[0]];
  const rows =
    now === undefined || now === null
      ? null
      : programRows(
          now.objects,
          before?.objects ?? null,
          before === null || before === undefined ? 0 : now.at - before.at,
        );
  const total = rows?.reduce((sum, { share }) => sum + (share ?? 0), 0) ?? 0;
  const names = self.value?.bpf.programs.map(({ name }) => name) ?? [];
  const known = rows?.some(({ share }) => share !== null) ?? false;
  return (
    <section class="card wide">
      <h2>BPF programs</h2>
      <Statistics />
      {rows === null ? (
        <p class="muted">Asking…</p>
      ) : rows.length === 0 ? (
        <p class="muted">None is loaded: programs are loaded when the first task starts.</p>
      ) : (
        <>
          {known && (
            <p class="small">
              Together <b>{corePercent(total)}</b> of one core now.
            </p>
          )}
          <table class="plain">
            <thead>
              <tr>
                <th scope="col">Program</th>
                <th scope="col" class="numeric" title="One for each task that runs it">
                  Loaded
                </th>
                <th scope="col" class="numeric">
                  Runs/s
                </th>
                <th scope="col" class="numeric">
                  Each run
                </th>
                <th scope="col" class="numeric">
                  Of one core
                </th>
                <th scope="col" class="numeric">
                  Runs counted
                </th>
                <th
                  scope="col"
                  class="numeric"
                  title="Left out because the same program was at work on that CPU"
                >
                  Missed
                </th>
                <th scope="col" class="numeric">
                  Verified instructions
                </th>
                <th scope="col" class="numeric">
                  Memory
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.name}>
                  <td class="mono">{visible(wholeName(row.name, names))}</td>
                  <td class="numeric">{row.copies}</td>
                  <td class="numeric">{row.runsPerSecond === null ? unknown : count(row.runsPerSecond)}</td>
                  <td class="numeric">{row.nsPerRun === null ? unknown : duration(row.nsPerRun)}</td>
                  <td class="numeric">{row.share === null ? unknown : corePercent(row.share)}</td>
                  <td class="numeric">{row.runs === null ? unknown : count(row.runs)}</td>
                  <td class={row.missed > 0 ? "numeric warn" : "numeric"}>{count(row.missed)}</td>
                  <td class="numeric">{row.instructions === null ? unknown : count(row.instructions)}</td>
                  <td class="numeric">{bytes(row.bytes)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </>
      )}
    </section>
  );
}

export function MapsCard() {
  const maps = kernelReadings.value.at(-1)?.objects.maps;
  const rows = maps === undefined ? null : mapRows(maps);
  const total = rows?.reduce((sum, map) => sum + map.memory_bytes, 0) ?? 0;
  return (
    <section class="card wide">
      <h2>BPF maps</h2>
      {rows === null ? (
        <p class="muted">Asking…</p>
      ) : rows.length === 0 ? (
        <p class="muted">None: they are made with the programs.</p>
      ) : (
        <>
          <p class="small">
            {rows.length} maps, {bytes(total)} of the kernel's memory. What does not fit into one is counted
            as a loss.
          </p>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
          <div class="scroll-box" role="region" aria-label="Scrollable table" tabIndex={0}>
            <table class="plain">
              <thead>
                <tr>
                  <th scope="col">Map</th>
                  <th scope="col">Kind</th>
                  <th scope="col">Fill</th>
                  <th scope="col" class="numeric">
                    Entries
                  </th>
                  <th scope="col" class="numeric">
                    Room
                  </th>
                  <th scope="col" class="numeric">
                    Memory
                  </th>
                </tr>
              </thead>
              <tbody>
                {rows.map((map) => {
                  const fill = fillOf(map);
                  return (
                    <tr key={map.id}>
                      <td class="mono">{visible(map.name)}</td>
                      <td>{map.kind}</td>
                      <td class={fill !== null && fill > NEARLY_FULL ? "warn" : ""}>
                        {fill === null ? (
                          <span class="muted small">{map.reason}</span>
                        ) : (
                          <span class="fill">
                            <meter min={0} max={1} value={fill} aria-label={`${visible(map.name)} fill`} />
                            {percent(map.entries ?? 0, map.max_entries)}
                            {fill > NEARLY_FULL && " nearly full"}
                          </span>
                        )}
                      </td>
                      <td class="numeric">{map.entries === null ? "–" : count(map.entries)}</td>
                      <td class="numeric">{count(map.max_entries)}</td>
                      <td class="numeric">{bytes(map.memory_bytes)}</td>
                    </tr>
                  );
                })}
              </tbody>
            </table>
          </div>
        </>
      )}
    </section>
  );
}
