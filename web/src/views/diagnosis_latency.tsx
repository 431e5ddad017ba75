// Where requests spend their time: the way of a request as a row of parts, and below it what each process did meanwhile.

import type { Diagnosis, LatencyActivity, LatencyInside, RequestLatency } from "../api/types";
import { type Flame, reasonOf, share } from "../lib/diagnosis";
import { count, duration, visible } from "../lib/format";
import { activityFlame, activityText, journeyText, processName, stepsOf } from "../lib/latency";
import { PageLink } from "./page_link";

/** Of the time in a process, what takes less is not listed. */
const LEAST_PERCENT = 1;
/** Functions of a stack that are shown. */
const FUNCTIONS = 4;

function Way({ latency }: { latency: RequestLatency }) {
  const steps = stepsOf(latency);
  return (
    <>
      <div class="journey-bar" role="img" aria-label={journeyText(latency)}>
        {steps.map(({ place, where, title, who, mean_ns, share: part }) => (
          <span
            key={place}
            class={`journey-${where}`}
            style={{ flexGrow: part }}
            title={`${who === null ? "" : `${who}: `}${title} ${duration(mean_ns)}`}
          />
        ))}
      </div>
      <ol class="journey-steps">
        {steps.map(({ place, where, title, help, who, mean_ns, p95_ns, share: part }) => (
          <li key={place} title={help}>
            <span class="muted">
              <span class={`journey-mark journey-${where}`} aria-hidden="true" />
              {who ?? "between them"}
            </span>
            <b class="numeric">{duration(mean_ns)}</b>
            <span>
              {title} <span class="muted numeric">{share(part * 100)}</span>
            </span>
            {p95_ns !== null && <span class="muted numeric">p95 {duration(p95_ns)}</span>}
          </li>
        ))}
      </ol>
    </>
  );
}

function Activity({
  activity,
  inside,
  flame,
}: {
  activity: LatencyActivity;
  inside: LatencyInside;
  flame: Flame;
}) {
  const to = activityFlame(flame, inside.process, activity);
  const text = activityText(activity);
  const { stack, mean_ns, share_percent } = activity;
  return (
    <tr>
      <th scope="row">{to === null ? text : <PageLink to={to}>{text}</PageLink>}</th>
      <td class="numeric">{duration(mean_ns)}</td>
      <td class="numeric">{share(share_percent)}</td>
      <td class="mono wrap">{visible(stack.slice(0, FUNCTIONS).join(" < "))}</td>
    </tr>
  );
}

function Inside({ inside, flame }: { inside: LatencyInside; flame: Flame }) {
  const { process, mean_ns, threads, activities } = inside;
  const listed = activities.filter(({ share_percent }) => share_percent >= LEAST_PERCENT);
  const name = processName(process);
  return (
    <div class="journey-inside">
      <h3>
        {name}{" "}
        <span class="muted">
          {duration(mean_ns)} for each request, {count(threads)} {threads === 1 ? "thread" : "threads"} with
          requests
        </span>
      </h3>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it */}
      <div class="plain-table-box" tabIndex={0} role="region" aria-label={`What ${name} did`}>
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">What it did</th>
              <th scope="col" class="numeric">
                Mean
              </th>
              <th scope="col" class="numeric">
                Share
              </th>
              <th scope="col">Most of it in</th>
            </tr>
          </thead>
          <tbody>
            {listed.map((activity) => (
              <Activity key={activity.kind} activity={activity} inside={inside} flame={flame} />
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}

function Journey({ latency, flame }: { latency: RequestLatency; flame: Flame }) {
  const { process, requests, mean_ns, p50_ns, p95_ns, p99_ns, inside } = latency;
  return (
    <div class="journey" data-journey>
      <p>
        <b>{processName(process)}</b>: {count(requests)} requests, {duration(mean_ns)} on average{" "}
        <span class="muted numeric">
          p50 {duration(p50_ns)}, p95 {duration(p95_ns)}, p99 {duration(p99_ns)}
        </span>
      </p>
      <Way latency={latency} />
      {inside.map((each) => (
        <Inside key={processName(each.process)} inside={each} flame={flame} />
      ))}
    </div>
  );
}

export function Journeys({ diagnosis, flame }: { diagnosis: Diagnosis; flame: Flame }) {
  const { latency, limits, not_measured } = diagnosis;
  if (latency.length === 0 && !not_measured.includes("latency")) return null;
  return (
    <section class="card wide" aria-labelledby="journey-title">
      <h2 id="journey-title">Where requests spend their time</h2>
      {latency.length === 0 ? (
        <p data-absent="latency">
          <b>Not known.</b> {visible(reasonOf(limits, ["how long requests"]))}
        </p>
      ) : (
        latency.map((each) => <Journey key={processName(each.process)} latency={each} flame={flame} />)
      )}
    </section>
  );
}
