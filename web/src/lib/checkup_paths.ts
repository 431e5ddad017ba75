// Addresses of check-ups and diagnoses in the agent's API, below /api/v1.

const word = encodeURIComponent;

/** What is diagnosed: a check-up, or one task and the part of its time. */
export interface Subject {
  readonly of: "checkups" | "tasks";
  readonly id: string;
  /** One process; null for all of the target. */
  readonly pid: number | null;
  /** Milliseconds since the start of the task. */
  readonly from?: number | null;
  readonly to?: number | null;
}

/** Path of a diagnosis below /api/v1: the document, or with `markdown` a report. */
export function diagnosisPath(
  { of, id, pid, from = null, to = null }: Subject,
  format: "markdown" | null = null,
): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries({ pid, from, to, format }))
    if (value !== null) params.set(name, String(value));
  const query = params.toString();
  return `/${of}/${word(id)}/diagnosis${query === "" ? "" : `?${query}`}`;
}

/** Path of a comparison below /api/v1: the document, or with `markdown` a report. */
export function comparisonPath(a: string, b: string, format: "markdown" | null = null): string {
  const params = new URLSearchParams({ a, b, ...(format === null ? {} : { format }) });
  return `/checkups/compare?${params}`;
}
