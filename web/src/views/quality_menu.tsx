// How good a result is, as one button: everything that is known of it stands behind it.

import type { ComponentChildren } from "preact";
import { visible, visibleLines } from "../lib/format";
import type { ChipText, QualityPart } from "../lib/quality";
import { Menu } from "./menu";

function Part({ part }: { part: QualityPart }) {
  return (
    <>
      <dt>{part.title}</dt>
      <dd class={part.poor ? "warn" : ""}>
        {part.poor && <span aria-hidden="true">▲ </span>}
        {visible(part.text)}
        {part.detail !== "" && <p class="muted small quality-detail">{visibleLines(part.detail)}</p>}
      </dd>
    </>
  );
}

/** `before` and `children` stand around the parts. */
export function QualityMenu(props: {
  chip: ChipText;
  parts: readonly QualityPart[];
  before?: ComponentChildren;
  children?: ComponentChildren;
}) {
  const { chip, parts, before, children } = props;
  return (
    <Menu
      title={chip.text}
      class={chip.poor ? "menu-right quality-chip poor" : "menu-right quality-chip"}
      label={`${chip.text}. Quality of this result: ${chip.whole}`}
    >
      {() => (
        <section class="quality-panel" aria-label="Quality of this result" data-quality>
          {before}
          <dl class="quality-parts">
            {parts.map((part) => (
              <Part key={part.title} part={part} />
            ))}
          </dl>
          {children}
        </section>
      )}
    </Menu>
  );
}
