// What of a result with waits is shown: time or switches, idle or not, which states and reasons.

import type { ProfileCut, WaitCut } from "../api/client";
import type { Task, WaitSum, Waits } from "../api/types";
import { count, duration, percent, visible } from "../lib/format";
import { patchRoute } from "../state/route";
import { useWaits } from "../state/waits";
import { ActivityBar } from "./activity_bar";
import { Choice } from "./choice";
import { ContentionMenu } from "./cpu_contention";
import { Menu } from "./menu";

/** States as people say them. */
const STATE_TEXT: Readonly<Record<string, string>> = {
  on_cpu: "on the CPU",
  preempted: "waits for a CPU, preempted",
  woken: "waits for a CPU, woken",
  interruptible: "asleep",
  uninterruptible: "uninterruptible sleep (D)",
  io: "I/O wait",
  stopped: "stopped",
};

/** States or reasons; those that are ticked are shown, all when none is. */
function Filter(props: {
  title: string;
  sums: readonly WaitSum[];
  picked: readonly string[];
  text: (name: string) => string;
  byCount: boolean;
  pick: (names: readonly string[]) => void;
}) {
  const { title, sums, picked, byCount } = props;
  const of = (sum: WaitSum): number => (byCount ? sum.count : sum.total_ns);
  const all = sums.reduce((total, sum) => total + of(sum), 0);
  const most = Math.max(1, ...sums.map(of));
  const toggle = (name: string): void =>
    props.pick(picked.includes(name) ? picked.filter((other) => other !== name) : [...picked, name]);
  return (
    <section aria-label={title}>
      <div class="menu-head">
        <span class="muted small">{title}</span>
        <button type="button" disabled={picked.length === 0} onClick={() => props.pick([])}>
          All
        </button>
      </div>
      <ul class="thread-list">
        {sums.map((sum) => (
          <li key={sum.name}>
            <label class="thread">
              <input type="checkbox" checked={picked.includes(sum.name)} onChange={() => toggle(sum.name)} />
              <span class="name">{props.text(sum.name)}</span>
              <span class="muted numeric">{byCount ? count(sum.count) : duration(sum.total_ns)}</span>
              <meter min={0} max={most} value={of(sum)} aria-hidden="true" />
              <span class="numeric" title={`${count(sum.count)} switches, ${duration(sum.total_ns)}`}>
                {percent(of(sum), all)}
              </span>
            </label>
          </li>
        ))}
        {sums.length === 0 && <li class="muted small">nothing</li>}
      </ul>
    </section>
  );
}

const IDLE_TEXT = { hide: "Idle hidden", show: "Idle shown", only: "Idle alone" } as const;

/** "Idle hidden: 93.1 % of the time (Envoy worker in its event loop 91.0 %, and 2 more)". */
function IdleLine({ waits, view }: { waits: Waits; view: WaitCut }) {
  const { idle } = waits;
  if (idle === null) return null;
  const byCount = view.value === "count";
  const share = byCount ? percent(idle.count, idle.total_count) : percent(idle.idle_ns, idle.total_ns);
  const part = (rule: WaitSum): string =>
    byCount ? percent(rule.count, idle.total_count) : percent(rule.total_ns, idle.total_ns);
  const rules = byCount ? [...idle.rules].sort((a, b) => b.count - a.count) : idle.rules;
  const all = rules.map((rule) => `${visible(rule.name)}: ${part(rule)}`).join("\n");
  const first = rules[0];
  return (
    <p class="idle-line" data-idle={share} title={all}>
      {IDLE_TEXT[view.idle]}: <b class="numeric">{share}</b> of {byCount ? "the switches" : "the time"}
      {first !== undefined && (
        <span class="muted">
          {" "}
          ({visible(first.name)} {part(first)}
          {rules.length > 1 ? `, and ${rules.length - 1} more` : ""})
        </span>
      )}
    </p>
  );
}

/** What the button says of its menu. */
function menuTitle(view: WaitCut): string {
  const parts: string[] = [IDLE_TEXT[view.idle]];
  if (view.value === "count") parts.push("switches");
  if (view.wakers) parts.push("with wakers");
  const picked = view.states.length + view.reasons.length;
  if (picked > 0) parts.push(`${picked} picked`);
  return parts.join(", ");
}

export function WaitBar(props: { task: Task; cut: ProfileCut; view: WaitCut; running: boolean }) {
  const { task, view } = props;
  const waits = useWaits(task.id, props.cut, props.running);
  const byCount = view.value === "count";
  const title = menuTitle(view);
  return (
    <fieldset class="toolbar wait-bar">
      <legend class="hidden">What is shown</legend>
      {waits !== null && <ActivityBar activities={waits.activities} byCount={byCount} shown={view} />}
      {waits !== null && <ContentionMenu contention={waits.contention} />}
      <Menu title={title} class="menu-right thread-menu wait-menu" active={title !== IDLE_TEXT.hide}>
        {() => (
          <>
            {task.kind !== "wall" && (
              <Choice
                label="Numbers"
                value={view.value}
                choices={[
                  ["duration", "Time"],
                  ["count", "Switches"],
                ]}
                set={(value) => patchRoute({ value }, "replace")}
              />
            )}
            {task.wakers && (
              <Choice
                label="Wakers"
                value={view.wakers ? "show" : "hide"}
                choices={[
                  ["hide", "Waits alone"],
                  ["show", "With wakers"],
                ]}
                set={(shown) => patchRoute({ wakers: shown === "show" }, "replace")}
              />
            )}
            <Choice
              label="Idle"
              value={view.idle}
              choices={[
                ["hide", "Hide idle"],
                ["show", "Show all"],
                ["only", "Only idle"],
              ]}
              set={(idle) => patchRoute({ idle }, "replace")}
            />
            {waits !== null && <IdleLine waits={waits} view={view} />}
            <Filter
              title="States"
              sums={waits?.states ?? []}
              picked={view.states}
              text={(name) => STATE_TEXT[name] ?? visible(name)}
              byCount={byCount}
              pick={(states) => patchRoute({ states }, "replace")}
            />
            <Filter
              title="Reasons"
              sums={waits?.reasons ?? []}
              picked={view.reasons}
              text={visible}
              byCount={byCount}
              pick={(reasons) => patchRoute({ reasons }, "replace")}
            />
          </>
        )}
      </Menu>
    </fieldset>
  );
}
