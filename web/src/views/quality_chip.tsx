// How good the shown result is, as one button: how much of the CPU time was sampled, how many frames
// have names, how many stacks are complete. Everything else that is known of it stands behind the button.

import { useMemo } from "preact/hooks";
import type { ProfileCut } from "../api/client";
import type { Task } from "../api/types";
import type { FlameIndex } from "../lib/flame_index";
import { mergedSamples } from "../lib/modules";
import { chipText, lossesPart, mergedPart, namesPart, stacksPart } from "../lib/quality";
import { useNames } from "../state/symbols";
import { NamesButton } from "./names";
import { QualityMenu } from "./quality_menu";
import { Facts, TaskRemarks } from "./task_facts";
import { lossText, tableText } from "./task_state";

export function QualityChip(props: {
  task: Task;
  cut: ProfileCut;
  running: boolean;
  /** Null before the first answer. */
  index: FlameIndex | null;
}) {
  const { task, cut, running, index } = props;
  const names = useNames(task.id, cut, running);
  const merged = useMemo(
    () => (index === null ? null : mergedPart(mergedSamples(index), index.total[0]!)),
    [index],
  );
  const chip = chipText(task, names);
  const stacks = stacksPart(task);
  const parts = [
    { ...stacks, detail: `${stacks.detail}\n${tableText(task.stacks.tables)}` },
    namesPart(names),
    lossesPart(task, lossText(task)),
    merged,
  ].filter((part) => part !== null);
  return (
    <QualityMenu chip={chip} parts={parts} before={<Facts task={task} />}>
      <NamesButton id={task.id} cut={cut} running={running} />
      <TaskRemarks task={task} />
    </QualityMenu>
  );
}
