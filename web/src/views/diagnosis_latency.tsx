// Where requests spend their time: the way of a request as a row of parts, and below it what each process did meanwhile.

import type { Diagnosis, LatencyActivity, LatencyInside, RequestLatency } from "../api/types";
import { type Flame, reasonOf, share } from "../lib/diagnosis";
import { count, duration, plural, visible } from "../lib/format";
import {
  activityFlame,
  activityText,
  journeyText,
  processName,
  type Step,
  stepFlame,
  stepsOf,
} from "../lib/latency";
import { PageLink } from "./page_link";

/** Of the time in a process, what takes less is not listed. */
const LEAST_PERCENT = 1;
/** Functions of a stack that are shown. */
const FUNCTIONS = 4;

function Way({ latency, flame }: { latency: RequestLatency; flame: Flame }) {
  const steps = stepsOf(latency).map((step) => ({ step, shown: stepFlame(flame, latency, step) }));
  return (
    <>
      {/* The list below has the same links, for the keyboard and to be read out. */}
      <div class="journey-bar" aria-hidden="true" data-journey-bar={journeyText(latency)}>
        {steps.map(({ step, shown }) => {
          const { place, who, title, mean_ns, share: part } = step;
          const what = `${who === null ? "" : `${who}: `}${title} ${duration(mean_ns)}`;
          return (
            <span key={place} class={`journey-${step.where}`} style={{ flexGrow: part }} title={what}>
              {shown !== null && (
                <PageLink
                  to={shown.to}
                  class="journey-link"
                  tabIndex={-1}
                  title={`${what}. Flame graph: ${shown.text}`}
                >
                  {""}
                </PageLink>
              )}
            </span>
          );
        })}
      </div>
      <ol class="journey-steps">
        {steps.map(({ step, shown }) => (
          <li key={step.place} title={step.help}>
            <span class="muted">
              <span class={`journey-mark journey-${step.where}`} aria-hidden="true" />
              {step.who ?? "between them"}
            </span>
            <b class="numeric">{duration(step.mean_ns)}</b>
            <Title step={step} shown={shown} />
            {step.p95_ns !== null && <span class="muted numeric">p95 {duration(step.p95_ns)}</span>}
          </li>
        ))}
      </ol>
    </>
  );
}

function Title({ step, shown }: { step: Step; shown: ReturnType<typeof stepFlame> }) {
  return (
    <span>
      {shown === null ? (
        step.title
      ) : (
        <PageLink to={shown.to} title={`${step.help}. Flame graph: ${shown.text}`}>
          {step.title}
        </PageLink>
      )}{" "}
      <span class="muted numeric">{share(step.share * 100)}</span>
    </span>
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
          {duration(mean_ns)} for each request, {plural(threads, "thread")} with requests
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
      <Way latency={latency} flame={flame} />
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
