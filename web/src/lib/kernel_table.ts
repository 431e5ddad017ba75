// What the kernel's table of connections went through, in sentences: only what a reader must know of a result.

import type { KernelTable } from "../api/types";
import { count, plural } from "./format";

export interface TableRemark {
  readonly text: string;
  /** Counts are missing; otherwise it is only reported. */
  readonly bad: boolean;
}

const connections = (number: number): string => plural(number, "connection");

export function tableRemarks(table: KernelTable): readonly TableRemark[] {
  const { refused, evicted, swept, missed_runs, delayed, capacity } = table;
  const remarks: TableRemark[] = [];
  if (refused > 0)
    remarks.push({
      bad: true,
      text: `${connections(refused)} found no room in the kernel's table of ${count(capacity)} when they began`,
    });
  for (const [program, runs] of Object.entries(missed_runs))
    if (runs > 0)
      remarks.push({
        bad: true,
        text: `the kernel left out ${count(runs)} runs of ${program}, because it was at work on that CPU already: what they would have counted is missing`,
      });
  if (delayed > 0)
    remarks.push({
      bad: false,
      text: `the end of ${connections(delayed)} waited in the kernel's table because the agent was slow; none of their counts is lost`,
    });
  if (evicted > 0)
    remarks.push({
      bad: false,
      text: `${count(evicted)} times a connection that rested made room in the kernel's table; none of its counts is lost`,
    });
  if (swept > 0)
    remarks.push({
      bad: false,
      text: `the end of ${connections(swept)} was missed, and found because the kernel does not list them any more`,
    });
  return remarks;
}
