// How good the shown result is, in one line above it; the reasons are in the line, all of them behind it.

import { useMemo } from "preact/hooks";
import type { ProfileCut } from "../api/client";
import type { Task } from "../api/types";
import type { FlameIndex } from "../lib/flame_index";
import { visible } from "../lib/format";
import { mergedSamples } from "../lib/modules";
import { runtimeNotes } from "../lib/names_quality";
import { lossesPart, mergedPart, namesPart, type QualityPart, stacksPart } from "../lib/quality";
import { useNames } from "../state/symbols";
import { NamesButton } from "./names";
import { lossText, tableText } from "./task_state";

/** Runtimes of which the line says what gives names; the dialog has all of them. */
const NOTES = 2;

function Part({ part, more = "" }: { part: QualityPart; more?: string }) {
  return (
    <span class="quality-part" title={visible(part.detail + more)}>
      <span class="muted">{part.title}</span>
      <span class={part.poor ? "warn" : ""}>
        {part.poor && <span aria-hidden="true">▲ </span>}
        {visible(part.text)}
      </span>
    </span>
  );
}

export function QualityStrip(props: {
  task: Task;
  cut: ProfileCut;
  running: boolean;
  /** Null before the first answer. */
  index: FlameIndex | null;
}) {
  const { task, cut, running, index } = props;
  const quality = useNames(task.id, cut, running);
  const names = namesPart(quality);
  const notes = quality === null ? [] : runtimeNotes(quality);
  const merged = useMemo(
    () => (index === null ? null : mergedPart(mergedSamples(index), index.total[0]!)),
    [index],
  );
  return (
    <section class="quality-strip" aria-label="Quality of this result" data-quality>
      <Part part={stacksPart(task)} more={`\n${tableText(task.stacks.tables)}`} />
      {names !== null && <Part part={names} />}
      <Part part={lossesPart(task, lossText(task))} />
      {merged !== null && <Part part={merged} />}
      <span class="push">
        <NamesButton id={task.id} cut={cut} running={running} />
      </span>
      {notes.slice(0, NOTES).map((note) => (
        <p key={note} class="quality-note" data-runtime-note>
          {visible(note)}
        </p>
      ))}
    </section>
  );
}
