// Who had the CPU while threads waited for one.

import { useState } from "preact/hooks";
import type { CpuContention, CpuHolderGroup, CpuHolderTime } from "../api/types";
import { duration, percent, visible } from "../lib/format";
import { Choice } from "./choice";
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

const GROUPS: Readonly<Record<CpuHolderGroup["kind"], string>> = {
  container: "a container",
  pod: "a pod",
  outside: "none",
  idle: "nobody (the CPU was idle)",
  out_of_sight: "outside the agent's PID namespace",
  others: "others",
};

type By = "process" | "container" | "pod";

/** Ways to group of which something is known. */
function waysOf({ by_container, by_pod }: CpuContention): readonly (readonly [By, string])[] {
  const isNamed = ({ name }: CpuHolderGroup): boolean => name !== null;
  return [
    ["process", "By process"],
    ...(by_container.some(isNamed) ? [["container", "By container"] as const] : []),
    ...(by_pod.some(isNamed) ? [["pod", "By pod"] as const] : []),
  ];
}

function Groups({ groups, all }: { groups: readonly CpuHolderGroup[]; all: number }) {
  const most = Math.max(...groups.map(({ ns }) => ns));
  const others = groups.slice(MOST_ROWS).reduce((sum, { ns }) => sum + ns, 0);
  return (
    <>
      {groups.slice(0, MOST_ROWS).map(({ kind, name, ns }) => (
        <Row
          key={`${kind} ${name}`}
          title={name ?? GROUPS[kind]}
          kind={kind}
          ns={ns}
          most={most}
          all={all}
          muted={name === null}
        />
      ))}
      <Row title="others" kind="others" ns={others} most={most} all={all} muted />
    </>
  );
}

/** On a button; the whole is in the list behind it. */
function titleOf(holder: CpuHolderTime | undefined): string {
  if (holder === undefined) return "not known";
  return visible(holder.kind === "process" ? (holder.name ?? holder.title) : holder.title);
}

/** A button that names the first, with all of them behind it; nothing where no thread waited for a CPU. */
export function ContentionMenu({ contention }: { contention: CpuContention }) {
  const { waited_ns, known_ns, holders, by_container, by_pod } = contention;
  const [by, setBy] = useState<By>("process");
  // Results of before, and imported ones, do not have it.
  if (known_ns === 0) return null;
  const first = holders[0];
  const unknown = waited_ns - known_ns;
  const others = sumOf(holders.slice(MOST_ROWS));
  const most = Math.max(unknown, ...holders.map(({ ns }) => ns));
  const ways = waysOf(contention);
  const title = `CPU taken by: ${titleOf(first)} ${percent(first?.ns ?? 0, waited_ns)}`;
  return (
    <Menu title={title} class="thread-menu holders">
      {() => (
        <>
          <p class="menu-head muted small">
            Threads were ready to run and waited {duration(waited_ns)} for a CPU, idle threads included. Who
            had it meanwhile:
          </p>
          {ways.length > 1 && <Choice label="Grouped" value={by} choices={ways} set={setBy} />}
          <ul class="thread-list">
            {by === "process" ? (
              <>
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
              </>
            ) : (
              <Groups groups={by === "pod" ? by_pod : by_container} all={waited_ns} />
            )}
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
