// Profiles from files: a button, and the whole page as a place to drop them on.

import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { api } from "../api/client";
import { visible } from "../lib/format";
import { putTask } from "../state/live";
import { mayChange } from "../state/role";
import { openView } from "../state/route";

/** What is going on, for both ways of giving a file. */
export interface Importing {
  readonly busy: string | null;
  readonly error: string | null;
  readonly give: (file: File | null | undefined) => Promise<void>;
}

export function useImport(): Importing {
  const [busy, setBusy] = useState<string | null>(null);
  const [error, setError] = useState<string | null>(null);
  const give = async (file: File | null | undefined): Promise<void> => {
    if (file === null || file === undefined || busy !== null) return;
    setError(null);
    setBusy(file.name);
    try {
      const task = await api.importProfile(file, file.name);
      putTask(task);
      openView({ view: "task", id: task.id });
    } catch (problem) {
      const text = problem instanceof Error ? problem.message : "failed";
      setError(`${file.name}: ${text}`);
    } finally {
      setBusy(null);
    }
  };
  return { busy, error, give };
}

export function ImportButton({ importing }: { importing: Importing }) {
  const field = useRef<HTMLInputElement>(null);
  return (
    <>
      <button
        type="button"
        disabled={importing.busy !== null}
        title="Look at a pprof file or folded stacks; files can also be dropped on this page"
        onClick={() => field.current?.click()}
      >
        {importing.busy === null ? "Import…" : "Importing…"}
      </button>
      <input
        ref={field}
        type="file"
        hidden
        data-import-file
        aria-label="Profile to import"
        onChange={(event) => {
          const input = event.currentTarget;
          void importing.give(input.files?.[0]).finally(() => {
            // The same file can be given again.
            input.value = "";
          });
        }}
      />
    </>
  );
}

export function ImportError({ importing }: { importing: Importing }) {
  if (importing.error === null) return null;
  return (
    <p class="import-error bad" role="alert">
      {visible(importing.error)}
    </p>
  );
}

const hasFiles = (event: DragEvent): boolean =>
  mayChange.value && event.dataTransfer?.types.includes("Files") === true;

/** Takes files that are dropped on what it holds. */
export function DropTarget({ importing, children }: { importing: Importing; children: ComponentChildren }) {
  const [over, setOver] = useState(false);
  return (
    <section
      class={over ? "list-page drop-over" : "list-page"}
      aria-label="Tasks"
      onDragOver={(event) => {
        if (!hasFiles(event)) return;
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={(event) => {
        const to = event.relatedTarget;
        if (!(to instanceof Node) || !event.currentTarget.contains(to)) setOver(false);
      }}
      onDrop={(event) => {
        if (!hasFiles(event)) return;
        event.preventDefault();
        setOver(false);
        void importing.give(event.dataTransfer?.files[0]);
      }}
    >
      {children}
      {over && (
        <p class="drop-hint" aria-hidden="true">
          Drop a pprof file or folded stacks to look at it
        </p>
      )}
    </section>
  );
}
