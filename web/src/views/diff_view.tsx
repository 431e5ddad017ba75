// The shown result against its base: graph or table of what changed.

import { useMemo } from "preact/hooks";
import type { DiffSide, ProfileCut } from "../api/client";
import type { Task } from "../api/types";
import type { Norm } from "../lib/diff";
import type { DiffIndex } from "../lib/diff_index";
import { amountText, NORM_TITLE, UNKNOWN_TEXT } from "../lib/diff_text";
import { ancestry, findPath, labelOf, pathKey } from "../lib/flame_index";
import { parsePart } from "../lib/flame_window";
import { count, duration, percent, shortName, visible } from "../lib/format";
import { parseQuery, searchFlameGraph } from "../lib/search";
import { useDiff } from "../state/diff";
import { tasks } from "../state/live";
import { patchRoute, route } from "../state/route";
import { rangeText } from "./base_menu";
import { ChangeTable } from "./change_table";
import { Choice } from "./choice";
import { DiffFlame, DiffLegend } from "./diff_flame";
import { Empty, ErrorBox, Loading } from "./states";
import { namedTarget } from "./tasks";

interface Props {
  readonly task: Task;
  readonly cut: ProfileCut;
  readonly running: boolean;
}

function Side(props: {
  title: string;
  id: string;
  from: number | null;
  to: number | null;
  index: DiffIndex;
  side: 0 | 1;
}) {
  const { index, side } = props;
  const task = tasks.value?.get(props.id);
  const total = side === 0 ? index.totalA[0]! : index.totalB[0]!;
  const idle = index.diff.idle?.[side];
  const what = task?.kind === "on_cpu" ? " samples" : "";
  return (
    <>
      <dt>{props.title}</dt>
      <dd>
        <b>{props.id}</b> {task === undefined ? "" : namedTarget(task)}
      </dd>
      <dd class="muted">
        {rangeText(props.from, props.to)} · {amountText(index, total, side)}
        {what} in {duration(index.diff.coveredNs[side])}
        {idle !== undefined && idle.totalNs > 0 && ` · ${percent(idle.ns, idle.totalNs)} of the time is idle`}
        {task !== undefined &&
          task.losses.length > 0 &&
          ` · ${count(task.losses.reduce((sum, loss) => sum + loss.count, 0))} lost`}
      </dd>
    </>
  );
}

function Crumbs({ index, zoomed }: { index: DiffIndex; zoomed: number }) {
  const part = parsePart(route.value.part);
  if (zoomed === 0 && part === null) return null;
  const path = ancestry(index.flame, zoomed).slice(-4);
  const go = (node: number): void =>
    patchRoute({ zoom: node === 0 ? "" : pathKey(index.flame, node), part: "" });
  return (
    <nav class="crumbs" aria-label="Zoom">
      <button type="button" class="quiet" onClick={() => go(0)}>
        Show all
      </button>
      {path.map((node) => (
        <button
          key={node}
          type="button"
          class={node === zoomed ? "crumb here" : "crumb link"}
          aria-current={node === zoomed ? "true" : undefined}
          title={visible(labelOf(index.flame, node).name)}
          onClick={() => go(node)}
        >
          {shortName(visible(labelOf(index.flame, node).name))}
        </button>
      ))}
    </nav>
  );
}

function Compared(props: { a: DiffSide; b: DiffSide; index: DiffIndex; running: boolean }) {
  const { index, running } = props;
  const { unknown } = index.diff.chances[index.norm];
  const { search, zoom, tab } = route.value;
  const zoomed = useMemo(() => findPath(index.flame, zoom), [index, zoom]);
  const matches = useMemo(() => {
    const query = parseQuery(search);
    return query.kind === "test" ? searchFlameGraph(index.flame, query.test) : null;
  }, [index, search]);
  if (index.totalA[0] === 0 && index.totalB[0] === 0) {
    return (
      <Empty title={running ? "No samples yet on either side" : "No samples on either side"}>
        <p class="muted">There is nothing to compare in the picked parts.</p>
      </Empty>
    );
  }
  const table = tab === "table";
  return (
    <>
      <Crumbs index={index} zoomed={zoomed} />
      {(index.totalA[0] === 0 || index.totalB[0] === 0) && (
        <p class="order-note warn" role="status">
          {index.totalA[0] === 0 ? "The base" : "The shown part"} has no samples: everything is on the other
          side.
        </p>
      )}
      {table ? (
        <ChangeTable
          a={props.a}
          b={props.b}
          index={index}
          root={zoomed}
          search={search}
          onFind={(name) => patchRoute({ tab: "graph", search: name })}
        />
      ) : (
        <>
          {unknown !== null && <p class="muted order-note">{UNKNOWN_TEXT[unknown]}</p>}
          <DiffFlame
            index={index}
            zoomed={zoomed}
            matches={matches}
            onZoom={(node) => patchRoute({ zoom: node === 0 ? "" : pathKey(index.flame, node), part: "" })}
          />
          <DiffLegend />
        </>
      )}
    </>
  );
}

export function DiffView({ task, cut, running }: Props) {
  const { base, baseFrom, baseTo, norm, tab, search } = route.value;
  // Threads of another task have other numbers.
  const threads = base === task.id ? {} : { tids: [], except: false };
  const a: DiffSide = { id: base, cut: { ...cut, ...threads, from: baseFrom, to: baseTo } };
  const b: DiffSide = { id: task.id, cut };
  const baseTask = tasks.value?.get(base);
  const live = running || baseTask?.state === "running";
  const { index, error } = useDiff(a, b, norm, live);
  return (
    <div class="profile">
      <div class="diff-bar">
        <Choice
          label="View"
          value={tab === "table" ? "table" : "graph"}
          choices={[
            ["graph", "Graph"],
            ["table", "Table"],
          ]}
          set={(value) => patchRoute({ tab: value }, "replace")}
        />
        <Choice<Norm>
          label="What is compared"
          value={norm}
          choices={[
            ["share", NORM_TITLE.share],
            ["rate", NORM_TITLE.rate],
          ]}
          set={(value) => patchRoute({ norm: value }, "replace")}
        />
        <input
          type="search"
          data-search
          class="search"
          placeholder="Search: name, /regex/, mod:, kind:   /"
          aria-label="Search in the comparison"
          spellcheck={false}
          value={search}
          onInput={(event) => patchRoute({ search: event.currentTarget.value }, "replace")}
        />
        <button
          type="button"
          onClick={() =>
            patchRoute({
              id: base,
              base: task.id,
              from: baseFrom,
              to: baseTo,
              baseFrom: cut.from,
              baseTo: cut.to,
              ...(base === task.id ? {} : { tids: [], except: false }),
            })
          }
        >
          Swap sides
        </button>
        <button
          type="button"
          onClick={() => patchRoute({ base: "", baseFrom: null, baseTo: null, zoom: "", part: "" })}
        >
          Stop comparing
        </button>
      </div>
      {index === null ? (
        error === null ? (
          <Loading what="the comparison" />
        ) : (
          <ErrorBox title="No comparison to show" detail={error} />
        )
      ) : (
        <>
          {error !== null && (
            <p class="field-error" role="alert">
              Not up to date: {error}
            </p>
          )}
          <dl class="diff-sides" data-diff-sides>
            <Side title="Base" id={base} from={baseFrom} to={baseTo} index={index} side={0} />
            <Side title="Now" id={task.id} from={cut.from} to={cut.to} index={index} side={1} />
          </dl>
          <Compared a={a} b={b} index={index} running={live} />
        </>
      )}
    </div>
  );
}
