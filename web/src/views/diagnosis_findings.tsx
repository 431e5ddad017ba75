// What could be cheaper, ranked: how sure it is, what shows it, and what to change.

import type { ComponentChildren } from "preact";
import type { Diagnosis, Finding } from "../api/types";
import { formatCell } from "../lib/cell";
import {
  barOf,
  CONFIDENCES,
  cellTitle,
  type Flame,
  flameState,
  frameSearch,
  interval,
  noSavingText,
  notMeasuredText,
  SEVERITIES,
  savingText,
  scaleOf,
  share,
} from "../lib/diagnosis";
import { count, visible } from "../lib/format";
import type { PageState } from "../lib/query_state";
import { Settings } from "./diagnosis_settings";
import { PageLink } from "./page_link";
import { Unknown } from "./unknown";

function IntervalBar({ finding, end }: { finding: Finding; end: number }) {
  const { value, from, to } = barOf(finding, end);
  return (
    <span class="interval-bar" aria-hidden="true">
      <span class="interval-fill" style={{ width: `${value}%` }} />
      <span class="interval-range" style={{ left: `${from}%`, width: `${Math.max(0.5, to - from)}%` }} />
    </span>
  );
}

function FrameName({ frame, to }: { frame: string; to: Partial<PageState> | null }) {
  if (to === null)
    return (
      <span class="frame-name" title={visible(frame)}>
        {visible(frame)}
      </span>
    );
  return (
    <PageLink class="frame-name" to={to} title={`Show in the flame graph: ${visible(frame)}`}>
      {visible(frame)}
    </PageLink>
  );
}

function Evidence({ finding, flame }: { finding: Finding; flame: Flame }) {
  const { evidence, cells } = finding;
  const [only] = cells;
  // With several cells there is no one filter: the search marks the frames in all of it.
  const cell = cells.length === 1 && only !== undefined ? formatCell(only) : "";
  if (evidence.length === 0) return <p class="muted">No frames: it was not told from stacks.</p>;
  return (
    <table class="plain evidence">
      <thead>
        <tr>
          <th scope="col">Frame</th>
          <th scope="col" class="numeric">
            Share
          </th>
          <th scope="col" class="numeric">
            Samples
          </th>
        </tr>
      </thead>
      <tbody>
        {evidence.map(({ frame, share_percent, samples }) => (
          <tr key={frame}>
            <td class="mono wrap">
              <FrameName frame={frame} to={flameState(flame, { cell, search: frameSearch(frame) })} />
            </td>
            <td class="numeric">{share(share_percent)}</td>
            <td class="numeric">{count(samples)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function CellLinks({ finding, flame, diagnosis }: { finding: Finding; flame: Flame; diagnosis: Diagnosis }) {
  if (flame.task === null || finding.cells.length === 0) return null;
  return (
    <p class="small cell-links">
      Flame graph of{" "}
      {finding.cells.map((cell) => (
        <PageLink key={formatCell(cell)} to={flameState(flame, { cell: formatCell(cell) }) ?? {}}>
          {visible(cellTitle(cell, diagnosis.matrix))}
        </PageLink>
      ))}
    </p>
  );
}

function Card(props: {
  finding: Finding;
  rank: number;
  end: number;
  flame: Flame;
  diagnosis: Diagnosis;
  verify: ComponentChildren;
}) {
  const { finding, rank, end } = props;
  const severity = SEVERITIES[finding.severity];
  const confidence = CONFIDENCES[finding.confidence];
  const saving = savingText(finding);
  return (
    <li class={`finding severity-${finding.severity}`} data-finding={finding.id}>
      <header>
        <span class="finding-rank muted" aria-hidden="true">
          {rank}
        </span>
        <h3>{visible(finding.title)}</h3>
        <span class={`severity severity-text-${finding.severity}`}>
          <span aria-hidden="true">{severity.mark} </span>
          {severity.word}
        </span>
      </header>
      <div class="finding-numbers">
        <span class="finding-share">
          <b class="numeric">{share(finding.share_percent)}</b>{" "}
          <span class="muted numeric" title="95 % interval">
            {interval(finding.low, finding.high)}
          </span>
        </span>
        <IntervalBar finding={finding} end={end} />
        <span class="finding-saving" title="An upper bound: never more than was measured">
          {saving === null ? (
            <Unknown why={finding.reason} word={noSavingText(finding)} />
          ) : (
            <>
              Saves <b class="numeric">{saving}</b>
            </>
          )}
        </span>
      </div>
      <div class="finding-body">
        <div class="finding-why">
          <p>{visible(finding.reason)}</p>
          <dl class="pairs">
            {(finding.configured !== null || props.diagnosis.configuration === null) && (
              <div>
                <dt>Configured now</dt>
                <dd>
                  {finding.configured === null ? (
                    <Unknown why="The configuration could not be read." />
                  ) : (
                    <span class="mono wrap">{visible(finding.configured)}</span>
                  )}
                </dd>
              </div>
            )}
            <div>
              <dt>Symbols</dt>
              <dd title={confidence.about}>{confidence.word}</dd>
            </div>
          </dl>
          <Evidence finding={finding} flame={props.flame} />
          <CellLinks finding={finding} flame={props.flame} diagnosis={props.diagnosis} />
        </div>
        <div class="finding-settings">
          <h4>What to change</h4>
          <Settings settings={finding.settings} />
          {finding.settings.length > 0 && props.verify}
        </div>
      </div>
    </li>
  );
}

/** `verify`: what proves a setting once it is applied. */
export function Findings({
  diagnosis,
  flame,
  verify,
}: {
  diagnosis: Diagnosis;
  flame: Flame;
  verify?: ComponentChildren;
}) {
  const { findings } = diagnosis;
  const end = scaleOf(findings);
  return (
    <section class="card wide" aria-labelledby="findings-title">
      <h2 id="findings-title">
        {findings.length === 0
          ? "No findings"
          : findings.length === 1
            ? "1 finding"
            : `${findings.length} findings${findings[0]?.saving == null ? "" : ", the largest saving first"}`}
      </h2>
      {findings.length === 0 ? (
        <p class="muted" data-no-findings>
          {diagnosis.coverage.sufficient
            ? "Nothing that a setting changes costs enough to be told from chance."
            : "Too little is named to find what a setting changes: this is not proof that nothing does."}
          {diagnosis.not_measured.length > 0 && ` ${notMeasuredText(diagnosis.not_measured)}`}
        </p>
      ) : (
        <ol class="findings">
          {findings.map((finding, i) => (
            <Card
              key={finding.id}
              finding={finding}
              rank={i + 1}
              end={end}
              flame={flame}
              diagnosis={diagnosis}
              verify={verify}
            />
          ))}
        </ol>
      )}
    </section>
  );
}
