// Addresses of check-ups and diagnoses in the agent's API, below /api/v1.

const word = encodeURIComponent;

/** Whose CPU time: the sidecar's where the target has just one, else that of all; or of all. */
export type Scope = "sidecar" | "all";

/** What is diagnosed: a check-up, or one task and the part of its time. */
export interface Subject {
  readonly of: "checkups" | "tasks";
  readonly id: string;
  /** One process; null for all of the target, or as `scope` says. */
  readonly pid: number | null;
  /** Of a check-up. */
  readonly scope?: Scope;
  /** Milliseconds since the start of the task. */
  readonly from?: number | null;
  readonly to?: number | null;
}

/** Path of a diagnosis below /api/v1: the document, or with `markdown` a report. */
export function diagnosisPath(
  { of, id, pid, scope = "sidecar", from = null, to = null }: Subject,
  format: "markdown" | null = null,
): string {
  const params = new URLSearchParams();
  const all = scope === "all" ? scope : null;
  for (const [name, value] of Object.entries({ pid, scope: all, from, to, format }))
    if (value !== null) params.set(name, String(value));
  const query = params.toString();
  return `/${of}/${word(id)}/diagnosis${query === "" ? "" : `?${query}`}`;
}

/** Path of a comparison below /api/v1: the document, or with `markdown` a report. */
export function comparisonPath(a: string, b: string, scope: Scope, format: "markdown" | null = null): string {
  const all = scope === "all" ? { scope } : {};
  const params = new URLSearchParams({ a, b, ...all, ...(format === null ? {} : { format }) });
  return `/checkups/compare?${params}`;
}
