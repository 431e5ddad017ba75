// Figures about the agent's programs and maps in the kernel.

import type { KernelMap, KernelObjects, KernelProgram } from "../api/types";

/** Several copies of one program, one for each task that runs, as one. */
export interface ProgramRow {
  readonly name: string;
  readonly copies: number;
  readonly runs: number | null;
  readonly timeNs: number | null;
  readonly missed: number;
  readonly instructions: number | null;
  readonly bytes: number;
  /** Since the reading before; null where there is none, or nothing is counted. */
  readonly runsPerSecond: number | null;
  readonly nsPerRun: number | null;
  /** Share of one core. */
  readonly share: number | null;
}

const plus = (a: number | null, b: number | null): number | null => (a === null || b === null ? null : a + b);

function rowOf(
  name: string,
  programs: readonly KernelProgram[],
): Omit<ProgramRow, "runsPerSecond" | "share"> {
  const runs = programs.map(({ run_count }) => run_count).reduce(plus, 0);
  const timeNs = programs.map(({ run_time_ns }) => run_time_ns).reduce(plus, 0);
  return {
    name,
    copies: programs.length,
    runs,
    timeNs,
    missed: programs.reduce((sum, { missed_runs }) => sum + missed_runs, 0),
    instructions: programs[0]?.verified_instructions ?? null,
    bytes: programs.reduce((sum, { memory_bytes }) => sum + memory_bytes, 0),
    nsPerRun: runs === null || timeNs === null || runs === 0 ? null : timeNs / runs,
  };
}

/** What programs that are in both readings did between them. */
function between(
  now: readonly KernelProgram[],
  before: ReadonlyMap<number, KernelProgram>,
): { readonly runs: number; readonly ns: number } | null {
  let runs = 0;
  let ns = 0;
  let known = false;
  for (const program of now) {
    const old = before.get(program.id);
    if (old === undefined || program.run_count === null || program.run_time_ns === null) continue;
    known = true;
    runs += program.run_count - (old.run_count ?? 0);
    ns += program.run_time_ns - (old.run_time_ns ?? 0);
  }
  return known ? { runs, ns } : null;
}

/** The most bytes of a program's name that the kernel keeps. */
const KERNEL_NAME_BYTES = 15;

/** The name that the kernel cut, whole where one of the agent's programs is meant; an ellipsis where several may be. */
export function wholeName(name: string, known: readonly string[]): string {
  if (name.length < KERNEL_NAME_BYTES || known.includes(name)) return name;
  const meant = new Set(known.filter((whole) => whole.startsWith(name)));
  const [first] = meant;
  if (first === undefined) return name;
  return meant.size === 1 ? first : `${name}…`;
}

/** One row for each program, the costliest first. */
export function programRows(
  now: KernelObjects,
  before: KernelObjects | null,
  elapsedMs: number,
): ProgramRow[] {
  const byName = new Map<string, KernelProgram[]>();
  for (const program of now.programs) {
    const known = byName.get(program.name);
    if (known === undefined) byName.set(program.name, [program]);
    else known.push(program);
  }
  const old = new Map((before?.programs ?? []).map((program) => [program.id, program]));
  const seconds = elapsedMs / 1000;
  return [...byName]
    .map(([name, programs]): ProgramRow => {
      const row = rowOf(name, programs);
      // While the statistics are off the counts stand still, which is not a rate of 0.
      const change =
        now.statistics.on && before?.statistics.on && seconds > 0 ? between(programs, old) : null;
      return {
        ...row,
        runsPerSecond: change === null ? null : change.runs / seconds,
        nsPerRun: change !== null && change.runs > 0 ? change.ns / change.runs : row.nsPerRun,
        share: change === null ? null : change.ns / (seconds * 1e9),
      };
    })
    .sort(
      (a, b) =>
        (b.share ?? -1) - (a.share ?? -1) || (b.timeNs ?? 0) - (a.timeNs ?? 0) || (a.name < b.name ? -1 : 1),
    );
}

/** How full a map is, 0 to 1; null where that is not known. */
export function fillOf(map: KernelMap): number | null {
  return map.entries === null || map.max_entries === 0 ? null : map.entries / map.max_entries;
}

/** Maps with entries that come and go, the fullest first; then those where it is not known. */
export function mapRows(maps: readonly KernelMap[]): KernelMap[] {
  return maps.toSorted(
    (a, b) => (fillOf(b) ?? -1) - (fillOf(a) ?? -1) || b.memory_bytes - a.memory_bytes || a.id - b.id,
  );
}

/** The fullest map; null when none is known. */
export function fullest(maps: readonly KernelMap[]): { readonly name: string; readonly fill: number } | null {
  const [first] = mapRows(maps);
  const fill = first === undefined ? null : fillOf(first);
  return first === undefined || fill === null ? null : { name: first.name, fill };
}
