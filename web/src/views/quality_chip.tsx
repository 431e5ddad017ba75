// How good the shown result is, as one button: how much of the CPU time was sampled, how many frames
// have names, how many stacks are complete. Everything else that is known of it stands behind the button.

import { useMemo } from "preact/hooks";
import type { ProfileCut } from "../api/client";
import type { Task } from "../api/types";
import type { FlameIndex } from "../lib/flame_index";
import { visible } from "../lib/format";
import { mergedSamples } from "../lib/modules";
import { chipText, lossesPart, mergedPart, namesPart, type QualityPart, stacksPart } from "../lib/quality";
import { useNames } from "../state/symbols";
import { Menu } from "./menu";
import { NamesButton } from "./names";
import { Facts, RemarkList, remarksOf } from "./task_facts";
import { lossText, tableText } from "./task_state";

function Part({ part }: { part: QualityPart }) {
  return (
    <>
      <dt>{part.title}</dt>
      <dd class={part.poor ? "warn" : ""}>
        {part.poor && <span aria-hidden="true">▲ </span>}
        {visible(part.text)}
        {part.detail !== "" && (
          <p class="muted small quality-detail">{part.detail.split("\n").map(visible).join("\n")}</p>
        )}
      </dd>
    </>
  );
}

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
    <Menu
      title={chip.text}
      class={chip.poor ? "menu-right quality-chip poor" : "menu-right quality-chip"}
      label={`Quality of this result: ${chip.whole}`}
    >
      {() => (
        <section class="quality-panel" aria-label="Quality of this result" data-quality>
          <Facts task={task} />
          <dl class="quality-parts">
            {parts.map((part) => (
              <Part key={part.title} part={part} />
            ))}
          </dl>
          <NamesButton id={task.id} cut={cut} running={running} />
          {remarksOf(task) > 0 && (
            <div class="remarks">
              <RemarkList task={task} />
            </div>
          )}
        </section>
      )}
    </Menu>
  );
}
