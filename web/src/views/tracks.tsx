// Processes and threads as rows over time: what each did, and which of them the rest of the page shows.

import type { ComponentChildren } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import type { ProfileCut } from "../api/client";
import type { ProfileThread, Task } from "../api/types";
import { count, percent } from "../lib/format";
import {
  amountOfPicked,
  filterThreads,
  MAX_PICKED,
  type ProcessTrack,
  pickedPart,
  pickOnly,
  pickToggled,
  processTracks,
  type Track,
  trackRows,
  unfoldedAtFirst,
} from "../lib/threads";
import { measureOf } from "../lib/tracks";
import { patchRoute, route } from "../state/route";
import { activityWords } from "./activity_bar";
import { Choice } from "./choice";
import { TimeChoice } from "./time_choice";
import { TrackGrid } from "./track_grid";
import { TrackNames } from "./track_names";

/** Rows that are drawn: a canvas has an end. */
const MAX_ROWS = 300;
const NONE: readonly ProfileThread[] = [];

interface Props {
  readonly task: Task;
  readonly cut: ProfileCut;
  readonly running: boolean;
  /** Null before the first answer. */
  readonly threads: readonly ProfileThread[] | null;
  readonly timed: boolean;
  /** What there is to say about the time of all samples. */
  readonly notes: ComponentChildren;
}

interface Folds {
  readonly isUnfolded: (pid: number) => boolean;
  readonly set: (pid: number, unfolded: boolean) => void;
}

/** Folds are kept as they are while the order of a running task changes. */
function useFolds(processes: readonly ProcessTrack[], isFiltered: boolean): Folds {
  const [changed, setChanged] = useState<ReadonlyMap<number, boolean>>(new Map());
  const first = useRef<ReadonlySet<number> | null>(null);
  if (first.current === null && processes.length > 0) first.current = unfoldedAtFirst(processes);
  return {
    isUnfolded: (pid) => isFiltered || (changed.get(pid) ?? first.current?.has(pid) ?? false),
    set: (pid, unfolded) => setChanged(new Map(changed).set(pid, unfolded)),
  };
}

function pick(tids: readonly number[], except: boolean): void {
  patchRoute({ tids, except: except && tids.length > 0 }, "replace");
}

/** Filter, what is picked, and how much that is. */
function PickBar(props: {
  filter: string;
  setFilter: (text: string) => void;
  found: readonly ProfileThread[];
  exclude: boolean;
  setExclude: (exclude: boolean) => void;
  share: string;
  children: ComponentChildren;
}) {
  const { filter, found, exclude } = props;
  const { tids } = route.value;
  const pickable = Math.min(found.length, MAX_PICKED);
  return (
    <div class="time-modes">
      <TimeChoice />
      <input
        type="search"
        class="track-filter"
        aria-label="Filter threads by name, process or number"
        placeholder="Filter threads"
        value={filter}
        onInput={(event) => props.setFilter(event.currentTarget.value)}
      />
      {filter !== "" && found.length > 0 && (
        <button
          type="button"
          onClick={() =>
            pick([...new Set([...tids, ...found.map(({ tid }) => tid)])].slice(0, MAX_PICKED), exclude)
          }
        >
          Pick {count(pickable)}
        </button>
      )}
      <button type="button" disabled={tids.length === 0} onClick={() => pick([], exclude)}>
        All
      </button>
      <Choice
        label="What the picked threads are"
        value={exclude ? "except" : "only"}
        choices={[
          ["only", "Only picked"],
          ["except", "All but picked"],
        ]}
        set={(value) => {
          props.setExclude(value === "except");
          pick(tids, value === "except");
        }}
      />
      {tids.length > 0 && (
        <span class="muted small numeric thread-share" role="status">
          {props.share}
        </span>
      )}
      {props.children}
    </div>
  );
}

export function Tracks(props: Props) {
  const { cut } = props;
  const threads = props.threads ?? NONE;
  const { tids, except } = route.value;
  const [filter, setFilter] = useState("");
  const [exclude, setExclude] = useState(except);
  const { isTime, unit } = measureOf(cut.waits);
  const amountOf = (thread: ProfileThread): number => (isTime ? thread.total_ns : thread.samples);
  const found = filterThreads(threads, filter);
  const all = useMemo(() => processTracks(threads, amountOf), [threads, isTime]);
  const processes = useMemo(() => processTracks(found, amountOf), [threads, filter, isTime]);
  const folds = useFolds(all, filter.trim() !== "");
  const rows = trackRows(processes, folds.isUnfolded);
  const drawn = rows.slice(0, MAX_ROWS);
  const total = all.reduce((sum, track) => sum + track.amount, 0);
  const picked = new Set(tids);
  const sought = found.length < threads.length ? found.slice(0, MAX_PICKED).map(({ tid }) => tid) : [];
  const share = `shows ${percent(amountOfPicked(all, tids, except), total)} of the ${unit}`;
  const only = (track: Track): void => pick(pickOnly(track, tids), exclude);
  const toggle = (track: Track): void => pick(pickToggled(track, tids), exclude);
  const isShown = (track: Track): boolean =>
    tids.length === 0 || pickedPart(track, picked) !== (except ? "all" : "none");
  const words = ({ tid, tids: own, activities }: Track): string =>
    [
      `of the ${unit}`,
      ...(tid === null ? [`${count(own.length)} threads`] : []),
      ...(activities.length > 0 ? [activityWords(activities)] : []),
    ].join("; ");
  return (
    <>
      <PickBar
        filter={filter}
        setFilter={setFilter}
        found={found}
        exclude={exclude}
        setExclude={setExclude}
        share={share}
      >
        {props.notes}
      </PickBar>
      <TrackGrid {...props} rows={drawn} tids={sought} isShown={isShown} toggle={toggle}>
        <TrackNames
          rows={drawn}
          words={words}
          shareOf={(track) => percent(track.amount, total)}
          picked={picked}
          isUnfolded={folds.isUnfolded}
          fold={folds.set}
          only={only}
          toggle={toggle}
        />
      </TrackGrid>
      {rows.length === 0 && props.threads !== null && (
        <p class="muted small">
          {threads.length === 0 ? "Nothing was measured yet." : "No thread is found."}
        </p>
      )}
      {rows.length > MAX_ROWS && (
        <p class="muted small">{count(rows.length - MAX_ROWS)} more: narrow the filter</p>
      )}
    </>
  );
}
