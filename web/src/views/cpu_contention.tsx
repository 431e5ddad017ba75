// Who had the CPU while threads waited for one.

import type { CpuContention, CpuHolderTime } from "../api/types";
import { duration, percent, visible } from "../lib/format";
import { Menu } from "./menu";

/** Processes that are named in a line of text. */
const MOST_NAMED = 4;

/** Rows of the list; the others are one. */
const MOST_ROWS = 10;

/** One of the list; nothing where it had no time. */
function Row(props: {
  title: string;
  kind: string;
  pid?: number | null;
  ns: number;
  most: number;
  all: number;
  muted?: boolean;
}) {
  const { title, kind, pid = null, ns, most, all, muted = false } = props;
  if (ns === 0) return null;
  return (
    <li class="holder" data-holder={kind}>
      <span class={muted ? "name muted" : "name"} title={visible(title)}>
        {visible(title)} {pid !== null && <span class="muted numeric">{pid}</span>}
      </span>
      <span class="muted numeric">{duration(ns)}</span>
      <meter min={0} max={most} value={ns} aria-hidden="true" />
      <span class="numeric">{percent(ns, all)}</span>
    </li>
  );
}

function sumOf(holders: readonly CpuHolderTime[]): number {
  return holders.reduce((sum, { ns }) => sum + ns, 0);
}

/** On a button; the whole is in the list behind it. */
function titleOf(holder: CpuHolderTime | undefined): string {
  if (holder === undefined) return "not known";
  return visible(holder.kind === "process" ? (holder.name ?? holder.title) : holder.title);
}

/** A button that names the first, with all of them behind it; nothing where no thread waited for a CPU. */
export function ContentionMenu({ contention }: { contention: CpuContention }) {
  const { waited_ns, known_ns, holders } = contention;
  // Results of before, and imported ones, do not have it.
  if (known_ns === 0) return null;
  const first = holders[0];
  const unknown = waited_ns - known_ns;
  const others = sumOf(holders.slice(MOST_ROWS));
  const most = Math.max(unknown, ...holders.map(({ ns }) => ns));
  const title = `CPU taken by: ${titleOf(first)} ${percent(first?.ns ?? 0, waited_ns)}`;
  return (
    <Menu title={title} class="thread-menu holders">
      {() => (
        <>
          <p class="menu-head muted small">
            Threads were ready to run and waited {duration(waited_ns)} for a CPU, idle threads included. Who
            had it meanwhile:
          </p>
          <ul class="thread-list">
            {holders.slice(0, MOST_ROWS).map(({ title: holder, kind, name, pid, ns }) => (
              <Row
                key={`${kind} ${pid} ${holder}`}
                title={holder}
                kind={kind}
                pid={name === null ? null : pid}
                ns={ns}
                most={most}
                all={waited_ns}
              />
            ))}
            <Row title="others" kind="others" ns={others} most={most} all={waited_ns} muted />
            <Row title="not known" kind="unknown" ns={unknown} most={most} all={waited_ns} muted />
          </ul>
        </>
      )}
    </Menu>
  );
}

/** `chromium 6.1 s (46 %), node 4.0 s (30 %), others 3.1 s (24 %)`. */
export function holdersLine({ waited_ns, known_ns, holders }: CpuContention): string {
  const part = (title: string, ns: number): string => `${title} ${duration(ns)} (${percent(ns, waited_ns)})`;
  const parts = holders.slice(0, MOST_NAMED).map(({ title, ns }) => part(visible(title), ns));
  const others = sumOf(holders.slice(MOST_NAMED));
  if (others > 0) parts.push(part("others", others));
  if (waited_ns > known_ns) parts.push(part("not known", waited_ns - known_ns));
  return parts.join(", ");
}
