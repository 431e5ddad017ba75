// How many frames have names, and the panel to give symbol files for those that have none.

import { useEffect, useRef, useState } from "preact/hooks";
import { api, ProblemError, type ProfileCut } from "../api/client";
import type { NamesQuality, SymbolFile, SymbolFileList } from "../api/types";
import { bytes, moment, percent, visible } from "../lib/format";
import { improvable, runtimeNotes, sourceText, summarize } from "../lib/names_quality";
import { mayChange } from "../state/role";
import { symbolsRevision, useNames } from "../state/symbols";
import { Dialog } from "./dialog";

const ORIGINS: Readonly<Record<SymbolFile["origin"], string>> = {
  uploaded: "uploaded",
  folder: "--symbol-dir",
  debuginfod: "debuginfod",
};

function reasonOf(error: unknown): string {
  if (!(error instanceof ProblemError)) return error instanceof Error ? error.message : "failed";
  const { detail, hint } = error.problem;
  return hint === undefined ? detail : `${detail}. ${hint}`;
}

/** A button that asks for a file and sends it; with a build-id another build is refused. */
function GiveButton(props: {
  title: string;
  buildId: string | null;
  busy: boolean;
  give: (file: Blob, buildId: string | null) => void;
}) {
  const input = useRef<HTMLInputElement>(null);
  if (!mayChange.value) return null;
  return (
    <>
      <button type="button" disabled={props.busy} onClick={() => input.current?.click()}>
        {props.title}
      </button>
      <input
        ref={input}
        type="file"
        class="hidden"
        tabIndex={-1}
        aria-label={`Symbol file${props.buildId === null ? "" : ` for ${props.buildId}`}`}
        data-symbol-file={props.buildId ?? ""}
        onChange={(event) => {
          const file = event.currentTarget.files?.[0];
          // The same file can be chosen again after an error.
          if (file !== undefined) props.give(file, props.buildId);
          event.currentTarget.value = "";
        }}
      />
    </>
  );
}

function Lacking(props: {
  names: NamesQuality;
  busy: boolean;
  give: (file: Blob, buildId: string | null) => void;
}) {
  const modules = improvable(props.names);
  if (modules.length === 0) return null;
  return (
    <table class="symbols">
      <thead>
        <tr>
          <th scope="col">File without exact names</th>
          <th scope="col" class="number">
            Inferred
          </th>
          <th scope="col" class="number">
            No name
          </th>
          <th scope="col" />
        </tr>
      </thead>
      <tbody>
        {modules.map(({ path, build_id, unnamed, inferred }) => (
          <tr key={`${path} ${build_id}`}>
            <td>
              <span class="mono">{visible(path)}</span>
              <br />
              <code class="muted small">{build_id}</code>
            </td>
            <td class="number">{percent(inferred, props.names.frames)}</td>
            <td class="number">{percent(unnamed, props.names.frames)}</td>
            <td>
              <GiveButton title="Upload symbols" buildId={build_id} busy={props.busy} give={props.give} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Files(props: { list: SymbolFileList; busy: boolean; remove: (buildId: string) => void }) {
  if (props.list.items.length === 0) return <p class="muted">No symbol files yet.</p>;
  return (
    <table class="symbols">
      <thead>
        <tr>
          <th scope="col">Symbol file for build-id</th>
          <th scope="col" class="number">
            Size
          </th>
          <th scope="col">From</th>
          <th scope="col" />
        </tr>
      </thead>
      <tbody>
        {props.list.items.map((file) => (
          <tr key={file.build_id}>
            <td>
              <code class="small">{file.build_id}</code>
              <br />
              <span class="muted small">
                {file.has_debug_information ? "functions, lines, inlined calls" : "functions"} ·{" "}
                {moment(file.added_at_ns)}
              </span>
            </td>
            <td class="number">{bytes(file.bytes)}</td>
            <td>{ORIGINS[file.origin]}</td>
            <td>
              {file.origin !== "folder" && mayChange.value && (
                <button type="button" disabled={props.busy} onClick={() => props.remove(file.build_id)}>
                  Delete
                </button>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function SymbolsDialog(props: { names: NamesQuality; onClose: () => void }) {
  const { names } = props;
  const [list, setList] = useState<SymbolFileList | null>(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const [done, setDone] = useState<string | null>(null);
  const revision = symbolsRevision.value;
  useEffect(() => {
    const stop = new AbortController();
    api
      .symbols(stop.signal)
      .then(setList)
      .catch((problem: unknown) => {
        if (!stop.signal.aborted) setError(reasonOf(problem));
      });
    return () => stop.abort();
  }, [revision]);
  const attempt = async (action: () => Promise<string>): Promise<void> => {
    setBusy(true);
    setError(null);
    setDone(null);
    try {
      setDone(await action());
      symbolsRevision.value += 1;
    } catch (problem) {
      setError(reasonOf(problem));
    }
    setBusy(false);
  };
  const give = (file: Blob, buildId: string | null): void => {
    void attempt(async () => `Taken for build-id ${(await api.giveSymbols(file, buildId)).build_id}.`);
  };
  const remove = (buildId: string): void => {
    void attempt(async () => {
      await api.removeSymbols(buildId);
      return "Deleted.";
    });
  };
  return (
    <Dialog title="Symbols" class="symbols-dialog" onClose={props.onClose}>
      <div class="symbols-body">
        <p>
          User frames of this result: <b data-names-detail>{summarize(names).detail}</b>.
        </p>
        <p class="muted small">
          {names.sources.map(({ source, frames }) => (
            <span key={source} class="source-share">
              {sourceText(source)} {percent(frames, names.frames)}
            </span>
          ))}
        </p>
        {runtimeNotes(names).map((note) => (
          <p key={note} class="warn" data-runtime-note>
            {visible(note)}
          </p>
        ))}
        <Lacking names={names} busy={busy} give={give} />
        <p class="muted small">
          A symbol file is the unstripped program or its debug file. It is used for the program with the same
          build-id, also in results that were recorded before.
        </p>
        {list !== null && <Files list={list} busy={busy} remove={remove} />}
        <div class="buttons">
          <GiveButton title="Add a symbol file" buildId={null} busy={busy} give={give} />
          {busy && (
            <span class="muted" role="status">
              Sending…
            </span>
          )}
          {done !== null && <span role="status">{done}</span>}
        </div>
        {error !== null && (
          <p class="field-error" role="alert">
            {error}
          </p>
        )}
      </div>
    </Dialog>
  );
}

export function NamesButton({ id, cut, running }: { id: string; cut: ProfileCut; running: boolean }) {
  const names = useNames(id, cut, running);
  const [open, setOpen] = useState(false);
  if (names === null || names.frames === 0) return null;
  const { title, detail, poor } = summarize(names);
  return (
    <>
      <button
        type="button"
        class={poor ? "names-button poor" : "names-button"}
        title={`User frames: ${detail}`}
        onClick={() => setOpen(true)}
      >
        {title}
      </button>
      {open && <SymbolsDialog names={names} onClose={() => setOpen(false)} />}
    </>
  );
}
