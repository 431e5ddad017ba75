// The result of a task as a graph or a table, with its toolbar. Search, zoom, layout and tab live
// in the address bar.

import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import { ancestry, type FlameIndex, findPath, labelOf, pathKey } from "../lib/flame_index";
import { amount, count, percent, shortName, visible } from "../lib/format";
import { type Matches, parseQuery, searchFlameGraph, stepMatch } from "../lib/search";
import { inTextField, sequencePending } from "../state/keys";
import { singleKeys } from "../state/preferences";
import { patchRoute, route } from "../state/route";
import { Choice } from "./choice";
import { FlameView } from "./flame_view";
import { FunctionTable } from "./function_table";
import { Icon } from "./icons";
import { Legend } from "./legend";
import { Empty } from "./states";

interface Props {
  readonly index: FlameIndex;
  readonly arrivedAt: number | null;
  readonly running: boolean;
  readonly failed: boolean;
  readonly error: string | null;
  /** What one sample is called. */
  readonly unit: "samples" | "switches";
  /** What the time is that waits are measured in. */
  readonly time: string;
}

/** The search of the address bar, run on this profile. */
function useSearch(index: FlameIndex, text: string): { matches: Matches | null; problem: string | null } {
  return useMemo(() => {
    const query = parseQuery(text);
    if (query.kind === "none") return { matches: null, problem: null };
    if (query.kind === "invalid") return { matches: null, problem: query.reason };
    const matches = searchFlameGraph(index, query.test);
    return { matches, problem: matches === null ? "the pattern takes too long" : null };
  }, [index, text]);
}

function Crumbs({
  index,
  zoomed,
  zoom,
}: {
  index: FlameIndex;
  zoomed: number;
  zoom: (node: number) => void;
}) {
  const path = ancestry(index, zoomed);
  const shown = path.length > 7 ? [...path.slice(0, 2), -1, ...path.slice(-4)] : path;
  return (
    <nav class="crumbs" aria-label="Zoom">
      {shown.map((node) => {
        if (node === -1) {
          return (
            <span key="gap" class="muted">
              … {path.length - 6} frames …
            </span>
          );
        }
        const name = visible(labelOf(index, node).name);
        return node === zoomed ? (
          <span key={node} class="crumb here" aria-current="true" title={name}>
            {shortName(name)}
          </span>
        ) : (
          <button key={node} type="button" class="crumb link" title={name} onClick={() => zoom(node)}>
            {shortName(name)}
          </button>
        );
      })}
      {zoomed !== 0 && (
        <span class="crumb-share">
          <b>{percent(index.total[zoomed]!, index.total[0]!)}</b> of all that is shown
          <button type="button" class="quiet" onClick={() => zoom(0)}>
            Show all
          </button>
        </span>
      )}
    </nav>
  );
}

function SearchBox(props: {
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
        placeholder="Search: name, /regex/, mod:, kind:   /"
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
        <span class={problem === null ? "search-result" : "search-result bad"} role="status" data-matched>
          <b>{result}</b>
          {matches !== null && matches.list.length > 0 && (
            <span class="muted">
              {props.position > 0 ? `${count(props.position)} of ` : ""}
              {count(matches.list.length)} frames · {percent(matches.self, all)} self
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

/** Why nothing is left of a result with waits, and how to see it. */
function AllHidden({ index }: { index: FlameIndex }) {
  const { idle } = index.graph;
  const onlyIdle = idle !== null && idle.count === idle.totalCount && idle.count > 0;
  const everything = {
    idle: "show",
    states: [],
    reasons: [],
    from: null,
    to: null,
    tids: [],
    except: false,
  } as const;
  return (
    <Empty title={onlyIdle ? "Everything is idle" : "Nothing that is shown waited"}>
      <p class="muted">
        {onlyIdle
          ? "All threads only waited for something to do, and idle waits are hidden."
          : "The picked time, threads, states and reasons hold no waits, or only idle ones, which are hidden."}
      </p>
      <button type="button" onClick={() => patchRoute(everything, "replace")}>
        Show everything
      </button>
    </Empty>
  );
}

function NoSamples({ index, running, failed }: { index: FlameIndex; running: boolean; failed: boolean }) {
  const { from, to, tids } = route.value;
  if (index.graph.idle !== null) return <AllHidden index={index} />;
  if (from !== null || to !== null || tids.length > 0) {
    return (
      <Empty title="No samples in the picked time and threads">
        <button
          type="button"
          onClick={() => patchRoute({ from: null, to: null, tids: [], except: false }, "replace")}
        >
          Show everything
        </button>
      </Empty>
    );
  }
  if (failed) {
    return (
      <Empty title="No samples">
        <p class="muted">The task failed before it had any.</p>
      </Empty>
    );
  }
  return (
    <Empty title={running ? "No samples yet" : "No samples"}>
      <p class="muted">
        {running
          ? "Samples are taken only while the target uses a CPU. The graph appears with the first one."
          : "No sample met the target: it used no CPU, or too little for this frequency and time."}
      </p>
    </Empty>
  );
}

export function ProfileView(props: Props) {
  const { index, arrivedAt, running, error } = props;
  const { search, zoom: zoomKey, layout, tab } = route.value;
  const zoomed = useMemo(() => findPath(index, zoomKey), [index, zoomKey]);
  const { matches, problem } = useSearch(index, search);
  // The selection is kept as a path, so that it survives the next fetch of a running task.
  const [selectedKey, setSelectedKey] = useState("");
  const selected = useMemo(
    () => (selectedKey === "" ? -1 : findPath(index, selectedKey)),
    [index, selectedKey],
  );

  const zoom = useCallback(
    (node: number) => patchRoute({ zoom: node === 0 ? "" : pathKey(index, node) }),
    [index],
  );
  const select = useCallback((node: number) => setSelectedKey(node < 0 ? "" : pathKey(index, node)), [index]);
  const step = useCallback(
    (direction: 1 | -1) => {
      if (matches === null) return;
      const next = stepMatch(matches, selected, direction);
      if (next >= 0) select(next);
    },
    [matches, selected, select],
  );
  const position = matches === null || selected < 0 ? 0 : matches.list.indexOf(selected) + 1;

  useEffect(() => {
    if (search !== "") setSelectedKey("");
  }, [search]);

  const all = index.total[0]!;
  if (all === 0) {
    return <NoSamples index={index} running={running} failed={props.failed} />;
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey && !event.defaultPrevented;
    if (!plain || event.key !== "t" || sequencePending() || !singleKeys.value || inTextField(event.target))
      return;
    event.preventDefault();
    event.stopPropagation();
    patchRoute({ tab: tab === "graph" ? "table" : "graph" }, "replace");
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: a shortcut; the buttons do the same
    <div class="profile" onKeyDown={onKeyDown}>
      <div class="toolbar profile-bar">
        <Choice
          label="View"
          value={tab}
          choices={[
            ["graph", "Graph"],
            ["table", "Table"],
            ["order", "Time order"],
          ]}
          set={(value) => patchRoute({ tab: value }, "replace")}
        />
        {tab === "graph" && (
          <Choice
            label="Layout"
            value={layout}
            choices={[
              ["flame", "Flame"],
              ["icicle", "Icicle"],
            ]}
            set={(value) => patchRoute({ layout: value }, "replace")}
          />
        )}
        <SearchBox
          text={search}
          matches={matches}
          problem={problem}
          all={all}
          position={position}
          step={step}
        />
        <span class="push muted numeric shown-samples">
          {running && <span class="live-dot" aria-hidden="true" />}
          {amount(all, index.graph.periodNs)} {index.graph.periodNs === 1 ? props.time : props.unit}
        </span>
      </div>
      {error !== null && (
        <p class="field-error" role="alert">
          Not up to date: {error}
        </p>
      )}
      <Crumbs index={index} zoomed={zoomed} zoom={zoom} />
      {tab === "graph" ? (
        <>
          <FlameView
            index={index}
            arrivedAt={arrivedAt}
            zoomed={zoomed}
            selected={selected}
            selectedKey={selectedKey}
            matches={matches}
            layout={layout}
            onZoom={zoom}
            onSelect={select}
            onStep={step}
          />
          <Legend />
        </>
      ) : (
        <FunctionTable
          index={index}
          root={zoomed}
          search={search}
          onFind={(name) => patchRoute({ tab: "graph", search: name })}
        />
      )}
    </div>
  );
}
