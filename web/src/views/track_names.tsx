// The names of processes and threads beside their rows over time: picks and folds them.

import { useRef, useState } from "preact/hooks";
import { visible } from "../lib/format";
import { pickedPart, type Track } from "../lib/threads";
import { SmallActivityBar } from "./activity_bar";

interface Props {
  readonly rows: readonly Track[];
  /** What its share is of, and what it did. */
  readonly words: (track: Track) => string;
  readonly shareOf: (track: Track) => string;
  readonly picked: ReadonlySet<number>;
  readonly isUnfolded: (pid: number) => boolean;
  readonly fold: (pid: number, unfolded: boolean) => void;
  readonly only: (track: Track) => void;
  readonly toggle: (track: Track) => void;
}

const HELP = "Click: only this. Ctrl-click: add it or take it away";

export function TrackNames(props: Props) {
  const { rows, picked } = props;
  const [current, setCurrent] = useState("");
  const list = useRef<HTMLDivElement>(null);
  const most = Math.max(1, ...rows.map(({ amount }) => amount));
  const at = Math.max(
    0,
    rows.findIndex(({ key }) => key === current),
  );
  const focus = (row: number): void => {
    const next = rows[Math.min(rows.length - 1, Math.max(0, row))];
    if (next === undefined) return;
    setCurrent(next.key);
    list.current?.querySelector<HTMLElement>(`[data-track="${next.key}"]`)?.focus();
  };
  const onKeyDown = (event: KeyboardEvent, track: Track, row: number): void => {
    if (event.metaKey || event.altKey || event.shiftKey) return;
    const isProcess = track.tid === null;
    const unfolded = props.isUnfolded(track.pid);
    if (event.key === "Enter" && !event.ctrlKey) props.only(track);
    else if (event.key === " " || event.key === "Enter") props.toggle(track);
    else if (event.ctrlKey) return;
    else if (event.key === "ArrowDown") focus(row + 1);
    else if (event.key === "ArrowUp") focus(row - 1);
    else if (event.key === "Home") focus(0);
    else if (event.key === "End") focus(rows.length - 1);
    else if (event.key === "ArrowRight" && isProcess) unfolded ? focus(row + 1) : props.fold(track.pid, true);
    else if (event.key === "ArrowLeft" && isProcess && unfolded) props.fold(track.pid, false);
    else if (event.key === "ArrowLeft" && !isProcess) focus(rows.findIndex(({ pid }) => pid === track.pid));
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div
      ref={list}
      class="heat-names"
      role="tree"
      aria-label="Processes and threads"
      aria-multiselectable="true"
    >
      {rows.map((track, row) => {
        const { key, pid, tid, activities } = track;
        const isProcess = tid === null;
        const part = picked.size === 0 ? "none" : pickedPart(track, picked);
        const isFirst = rows[row - 1]?.pid !== pid;
        return (
          <div
            key={key}
            role="treeitem"
            class="track"
            data-track={key}
            data-picked={part}
            aria-level={isFirst ? 1 : 2}
            aria-expanded={isProcess ? props.isUnfolded(pid) : undefined}
            aria-selected={part === "all"}
            title={`${isProcess ? "" : `${visible(track.process)} ${pid} / `}${visible(track.name)} ${tid ?? pid}: ${props.shareOf(track)} ${props.words(track)}\n${HELP}`}
            tabIndex={row === at ? 0 : -1}
            onFocus={() => setCurrent(key)}
            onKeyDown={(event) => onKeyDown(event, track, row)}
            onClick={(event) => (event.ctrlKey || event.metaKey ? props.toggle : props.only)(track)}
          >
            <span
              class="track-fold"
              aria-hidden="true"
              onClick={(event) => {
                if (!isProcess) return;
                event.stopPropagation();
                props.fold(pid, !props.isUnfolded(pid));
              }}
            >
              {isProcess ? (props.isUnfolded(pid) ? "▾" : "▸") : ""}
            </span>
            <span class="track-name mono">{visible(track.name) || tid}</span>
            <span class="track-id muted numeric">{tid ?? pid}</span>
            <span class="numeric">
              {props.shareOf(track)}
              <span class="hidden"> {props.words(track)}</span>
            </span>
            {activities.length > 0 ? (
              <SmallActivityBar activities={activities} />
            ) : (
              <meter min={0} max={most} value={track.amount} aria-hidden="true" />
            )}
          </div>
        );
      })}
    </div>
  );
}
