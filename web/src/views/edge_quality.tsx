// How complete the shown connections are, as one button.

import type { EdgeTable, Task } from "../api/types";
import { edgeQuality } from "../lib/edge_quality";
import { partsChip } from "../lib/quality";
import { QualityMenu } from "./quality_menu";
import { TaskRemarks, taskLosses } from "./task_facts";

/** `task`: its remarks stand behind the button. `name` is that of the button. */
export function EdgeQuality({ table, task, name }: { table: EdgeTable; task: Task | null; name: string }) {
  const parts = [...(task === null ? [] : taskLosses(task)), ...edgeQuality(table)];
  return (
    <QualityMenu chip={partsChip(parts, name)} parts={parts}>
      {task !== null && <TaskRemarks task={task} />}
    </QualityMenu>
  );
}
