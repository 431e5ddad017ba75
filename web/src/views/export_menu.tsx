// Downloads of the shown part of a profile. A link could not carry the token, so the file is
// fetched and saved from memory.

import { useState } from "preact/hooks";
import { api, type WaitCut } from "../api/client";
import type { ProfileFormat } from "../api/types";
import { save } from "../lib/save";
import { picture } from "../state/picture";
import { route } from "../state/route";
import { Menu } from "./menu";

const FORMATS: readonly { format: ProfileFormat; title: string; what: string; suffix: string }[] = [
  { format: "pprof", title: "pprof", what: "go tool pprof, Parca, Pyroscope", suffix: "pb.gz" },
  { format: "folded", title: "Folded stacks", what: "flamegraph.pl, inferno", suffix: "folded" },
  { format: "speedscope", title: "speedscope", what: "speedscope.app", suffix: "speedscope.json" },
  { format: "html", title: "HTML", what: "one file to search and zoom, offline", suffix: "html" },
  { format: "svg", title: "SVG", what: "a picture that opens anywhere", suffix: "svg" },
];

export function ExportMenu({ id, waits }: { id: string; waits: WaitCut | null }) {
  const [busy, setBusy] = useState<ProfileFormat | null>(null);
  const [error, setError] = useState<string | null>(null);
  const { from, to, tids, except, cell, pid, containers } = route.value;
  const filtered =
    waits !== null && (waits.idle !== "show" || waits.states.length + waits.reasons.length > 0);
  const cut =
    from !== null ||
    to !== null ||
    tids.length > 0 ||
    cell !== "" ||
    pid !== null ||
    containers.length > 0 ||
    filtered;
  const run = async (format: ProfileFormat, suffix: string): Promise<void> => {
    setBusy(format);
    setError(null);
    try {
      save(
        await api.exportBlob(id, format, { from, to, tids, except, waits, cell, pid, containers }),
        `task-${id}${cut ? "-part" : ""}.${suffix}`,
      );
    } catch (problem) {
      setError(problem instanceof Error ? problem.message : "failed");
    }
    setBusy(null);
  };
  const savePicture = async (make: () => Promise<Blob | null>): Promise<void> => {
    const blob = await make();
    if (blob === null) setError("this browser makes no picture of the graph");
    else save(blob, `task-${id}${cut ? "-part" : ""}.png`);
  };
  return (
    <Menu title="Export" class="menu-right">
      {() => (
        <>
          {cut && (
            <p class="muted small menu-note">
              {filtered ? "Only what is shown now" : "Only the picked time and threads"}
            </p>
          )}
          {FORMATS.map(({ format, title, what, suffix }) => (
            <button
              key={format}
              type="button"
              class="menu-item"
              disabled={busy !== null}
              onClick={() => run(format, suffix)}
            >
              <b>{busy === format ? "Fetching…" : title}</b>
              <span class="muted">{what}</span>
            </button>
          ))}
          {picture.value !== null && (
            <button
              type="button"
              class="menu-item"
              disabled={busy !== null}
              onClick={() => void savePicture(picture.value!)}
            >
              <b>PNG</b>
              <span class="muted">the graph as it is shown, all its rows</span>
            </button>
          )}
          {error !== null && (
            <p class="field-error" role="alert">
              {error}
            </p>
          )}
        </>
      )}
    </Menu>
  );
}
