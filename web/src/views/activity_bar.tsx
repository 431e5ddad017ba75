// What threads did with their time, as one bar; a part shows that time alone.

import type { ActivitySum, ThreadActivity } from "../api/types";
import { duration, percent, visible } from "../lib/format";
import type { PageState } from "../lib/query_state";
import { activityText } from "../lib/tracks";
import { patchRoute } from "../state/route";

type Cut = Pick<PageState, "idle" | "states" | "reasons">;

const ALL: Cut = { idle: "hide", states: [], reasons: [] };

function cutOf({ activity, states, reasons }: ActivitySum): Cut {
  return activity === "idle" ? { ...ALL, idle: "only" } : { ...ALL, states, reasons };
}

function isSame(a: Cut, b: Cut): boolean {
  const same = (left: readonly string[], right: readonly string[]): boolean =>
    left.length === right.length && left.every((name) => right.includes(name));
  return a.idle === b.idle && same(a.states, b.states) && same(a.reasons, b.reasons);
}

/** Parts of a bar, of which the width is in percent. */
function Parts({ parts }: { parts: readonly (readonly [string, number])[] }) {
  return (
    <span class="activity-parts" aria-hidden="true">
      {parts.map(([activity, width]) => (
        <span key={activity} data-activity={activity} style={{ width: `${width}%` }} />
      ))}
    </span>
  );
}

/** Of a whole result: the kinds are buttons. */
export function ActivityBar(props: { activities: readonly ActivitySum[]; byCount: boolean; shown: Cut }) {
  const { activities, byCount, shown } = props;
  const of = (sum: ActivitySum): number => (byCount ? sum.count : sum.total_ns);
  const all = activities.reduce((total, sum) => total + of(sum), 0);
  if (all === 0) return null;
  return (
    <fieldset class="activity-bar">
      <legend class="hidden">What threads did, idle or not</legend>
      <Parts parts={activities.map((sum) => [sum.activity, (100 * of(sum)) / all])} />
      {activities.map((sum) => {
        const cut = cutOf(sum);
        const isPicked = isSame(cut, shown);
        return (
          <button
            key={sum.activity}
            type="button"
            class="activity"
            data-activity={sum.activity}
            aria-pressed={isPicked}
            title={`${duration(sum.total_ns)} in sum over threads. Click to ${isPicked ? "show all but idle again" : "show this alone"}`}
            onClick={() => patchRoute(isPicked ? ALL : cut, "replace")}
          >
            {visible(sum.title)} <b class="numeric">{percent(of(sum), all)}</b>
          </button>
        );
      })}
    </fieldset>
  );
}

/** Of a thread or a process, in words. */
export function activityWords(activities: readonly ThreadActivity[]): string {
  const all = activities.reduce((total, { total_ns }) => total + total_ns, 0);
  return activities
    .map(({ activity, total_ns }) => `${activityText(activity)} ${percent(total_ns, all)}`)
    .join(", ");
}

/** Of a thread or a process, small; the words stand elsewhere. */
export function SmallActivityBar({ activities }: { activities: readonly ThreadActivity[] }) {
  const all = activities.reduce((total, { total_ns }) => total + total_ns, 0);
  return (
    <Parts
      parts={activities.map(({ activity, total_ns }) => [activity, (100 * total_ns) / Math.max(1, all)])}
    />
  );
}
