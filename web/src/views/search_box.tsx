// The search of a profile: what is looked for, how much of it there is, and the way from match to match.

import { count, percent } from "../lib/format";
import type { Matches } from "../lib/search";
import { patchRoute } from "../state/route";
import { Icon } from "./icons";

export function SearchBox(props: {
  text: string;
  matches: Matches | null;
  problem: string | null;
  all: number;
  position: number;
  step: (direction: 1 | -1) => void;
}) {
  const { text, matches, problem, all } = props;
  const result =
    problem !== null
      ? problem
      : matches === null
        ? ""
        : matches.list.length === 0
          ? "no match"
          : `${percent(matches.union, all)} matched`;
  return (
    <div class="search-box" role="search">
      <input
        type="search"
        data-search
        class={problem === null ? "search" : "search invalid"}
        placeholder="Search   /"
        title="Part of a name, /regex/, mod:path, kind:kernel, and with colours by feature feature:title"
        aria-label="Search in the profile"
        aria-invalid={problem !== null}
        spellcheck={false}
        value={text}
        onInput={(event) => patchRoute({ search: event.currentTarget.value }, "replace")}
        onKeyDown={(event) => {
          if (event.key === "Enter") props.step(event.shiftKey ? -1 : 1);
          else if (event.key === "Escape" && text !== "") patchRoute({ search: "" }, "replace");
          else return;
          event.preventDefault();
        }}
      />
      {text !== "" && (
        <span
          class={problem === null ? "search-result" : "search-result bad"}
          role="status"
          title={
            matches === null
              ? undefined
              : `Samples below a match: ${percent(matches.union, all)}; in a match itself: ${percent(matches.self, all)}; ${count(matches.list.length)} frames`
          }
          data-matched
        >
          <b>{result}</b>
          {matches !== null && matches.list.length > 0 && (
            <span class="muted">
              {props.position > 0 ? `${count(props.position)} of ` : ""}
              {count(matches.list.length)}
            </span>
          )}
        </span>
      )}
      {matches !== null && matches.list.length > 0 && (
        <span class="stepper">
          <button
            type="button"
            class="icon-button small"
            aria-label="Previous match"
            onClick={() => props.step(-1)}
          >
            <Icon name="up" />
          </button>
          <button
            type="button"
            class="icon-button small"
            aria-label="Next match"
            onClick={() => props.step(1)}
          >
            <Icon name="down" />
          </button>
        </span>
      )}
    </div>
  );
}
