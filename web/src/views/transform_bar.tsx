// The changes of what is shown, as chips that can be taken away, and what they leave out.

import type { Applied, Transformed, TransformKind } from "../lib/flame_transform";
import { amount, fileName, percent, shortName, visible } from "../lib/format";
import { clearTransforms, removeTransform, shiftTransform } from "../state/transforms";
import { Icon } from "./icons";

const WORDS: Readonly<Record<TransformKind, string>> = {
  focus: "focus",
  merge: "hidden",
  drop: "without",
  recursion: "recursion collapsed",
  module: "module collapsed",
  processes: "processes and threads merged",
  envoy: "Envoy's plumbing hidden",
  runtime: "tokio and std hidden",
  kernel: "kernel only",
};

/** Changes act one after the other. */
const SHIFTS = [
  { by: -1, sign: "‹", word: "earlier" },
  { by: 1, sign: "›", word: "later" },
] as const;

function subject({ transform, name }: Applied): string {
  if (transform.key === "") return "";
  if (name === null) return "not in this profile";
  return transform.kind === "module" ? fileName(name) : shortName(name);
}

export function TransformBar({ shown, whole }: { shown: Transformed; whole: number }) {
  const { applied, dropped } = shown;
  if (applied.length === 0) return null;
  const { periodNs } = shown.index.graph;
  return (
    <fieldset class="transform-bar" data-transforms>
      <legend class="hidden">Changes of what is shown</legend>
      {applied.map((item, i) => {
        const text = visible(subject(item));
        const share = item.dropped > 0 ? `, leaves out ${percent(item.dropped, whole)} of all` : "";
        return (
          // biome-ignore lint/a11y/noStaticElementInteractions: keys of the buttons in it
          <span
            onKeyDown={(event) => {
              const by = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
              if (by === 0 || !event.altKey) return;
              event.preventDefault();
              shiftTransform(i, by);
            }}
            key={`${item.transform.kind} ${item.transform.key}`}
            class="chip"
            title={visible(item.name ?? "")}
          >
            {applied.length > 1 &&
              SHIFTS.map(({ by, sign, word }) => (
                <button
                  key={by}
                  type="button"
                  class="chip-shift"
                  data-shift={by}
                  aria-label={`Apply ${word}: ${WORDS[item.transform.kind]} ${text}`}
                  aria-disabled={i + by < 0 || i + by >= applied.length}
                  onClick={() => shiftTransform(i, by)}
                >
                  {sign}
                </button>
              ))}
            <span class="muted">{WORDS[item.transform.kind]}</span>
            {text !== "" && (
              <span class={item.name === null ? "warn chip-name" : "mono chip-name"}>{text}</span>
            )}
            {item.dropped > 0 && <span class="numeric">−{percent(item.dropped, whole)}</span>}
            <button
              type="button"
              aria-label={`Take away: ${WORDS[item.transform.kind]} ${text}${share}`}
              onClick={() => removeTransform(i)}
            >
              <Icon name="close" />
            </button>
          </span>
        );
      })}
      <span class={dropped > 0 ? "warn" : "muted"} data-dropped>
        {dropped > 0
          ? `${percent(dropped, whole)} of all (${amount(dropped, periodNs)}) left out`
          : "nothing left out"}
      </span>
      {applied.length > 1 && (
        <button type="button" class="quiet" onClick={clearTransforms}>
          Take all away
        </button>
      )}
    </fieldset>
  );
}
