// The error next to the field it is about.

import { visible } from "../lib/format";

export interface FieldFailure {
  /** Null: it is about none of the fields. */
  readonly field: string | null;
  readonly detail: string;
  readonly hint: string | undefined;
}

export function FieldError({ failure, field }: { failure: FieldFailure | null; field: string }) {
  const mine = failure?.field === field || (failure?.field ?? "").startsWith(`${field}.`);
  if (failure === null || !mine) return null;
  return (
    <p class="field-error" role="alert" id={`error-${field}`}>
      {visible(failure.detail)}
      {failure.hint !== undefined && <span class="muted"> {failure.hint}</span>}
    </p>
  );
}
