// A request beside the median one of its operation, with what is known of that.

import { useMemo } from "preact/hooks";
import type { Task, TaskRequests } from "../api/types";
import { againstMedian, timesText } from "../lib/request_median";
import type { SampleRow } from "../lib/requests";
import { PageLink } from "./page_link";

/** From so many times the median on, a part stands out. */
const STANDS_OUT = 3;

export function AgainstMedian({
  row,
  rows,
  answer,
  task,
}: {
  row: SampleRow;
  /** All samples of the answer. */
  rows: readonly SampleRow[];
  answer: TaskRequests;
  task: Task;
}) {
  const found = useMemo(
    () => againstMedian(row.sample, answer, rows, task),
    [row.sample, answer, rows, task],
  );
  return (
    <section class="row-card against-median" aria-label="Against the median request">
      <h3>Against the median request</h3>
      {found === null ? (
        <p class="muted small">Its operation was not counted by itself, so there is no median of it.</p>
      ) : (
        <>
          <table class="plain-table numeric">
            <thead>
              <tr>
                <th scope="col">Part</th>
                <th scope="col">This one</th>
                <th scope="col">Median</th>
                <th scope="col">Ratio</th>
              </tr>
            </thead>
            <tbody>
              {found.rows.map(({ title, own, median, times }) => (
                <tr key={title}>
                  <th scope="row">{title}</th>
                  <td>{own}</td>
                  <td>{median ?? "not known"}</td>
                  <td class={times !== null && times >= STANDS_OUT ? "warn" : ""}>
                    {times === null ? "–" : timesText(times)}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
          <p class="muted small">{found.of}</p>
          {found.missing !== "" && <p class="muted small">{found.missing}</p>}
          {found.near !== null && found.near.key !== row.key && (
            <p class="small">
              <PageLink to={{ view: "task", id: task.id, requests: "samples", sample: found.near.key }}>
                A request of median length
              </PageLink>
            </p>
          )}
        </>
      )}
    </section>
  );
}
