// Calls about check-ups and diagnoses.

import { comparisonPath, diagnosisPath, type Scope, type Subject } from "../lib/checkup_paths";
import { json, post, request } from "./client";
import type { Checkup, CheckupComparison, CheckupSpec, Diagnosis, List } from "./types";

const word = encodeURIComponent;

export const checkups = {
  list: async (signal?: AbortSignal): Promise<readonly Checkup[]> => {
    const answer = await json<readonly Checkup[] | List<Checkup>>("/checkups", signal);
    return "items" in answer ? answer.items : answer;
  },
  one: (id: string, signal?: AbortSignal) => json<Checkup>(`/checkups/${word(id)}`, signal),
  create: (spec: CheckupSpec) => post<Checkup>("/checkups", spec),
  remove: async (id: string): Promise<void> => {
    await request(`/checkups/${word(id)}`, { method: "DELETE" });
  },
  diagnosis: (subject: Subject, signal?: AbortSignal) => json<Diagnosis>(diagnosisPath(subject), signal),
  /** The same in Markdown, for tickets and chats. */
  report: async (subject: Subject): Promise<string> =>
    (await request(diagnosisPath(subject, "markdown"))).text(),
  /** The same in Markdown. */
  compareReport: async (a: string, b: string, scope: Scope): Promise<string> =>
    (await request(comparisonPath(a, b, scope, "markdown"))).text(),
  compare: (a: string, b: string, scope: Scope, signal?: AbortSignal) =>
    json<CheckupComparison>(comparisonPath(a, b, scope), signal),
};
