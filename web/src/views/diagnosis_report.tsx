// One diagnosis from the verdict to its limits, the same for a check-up and for a single result.

import type { ComponentChildren } from "preact";
import { checkups } from "../api/checkups";
import type { Diagnosis } from "../api/types";
import type { Subject } from "../lib/checkup_paths";
import type { Flame } from "../lib/diagnosis";
import { copyAnswer } from "../state/clipboard";
import { Findings } from "./diagnosis_findings";
import { ProcessChoice, VerdictHead } from "./diagnosis_head";
import { Journeys } from "./diagnosis_latency";
import { CostMatrix } from "./diagnosis_matrix";
import { ConfigurationCard, GoodNews, Limits, NetworkCard } from "./diagnosis_rest";
import { EventLoopPart, WorkerTable } from "./diagnosis_threads";

interface Props {
  readonly diagnosis: Diagnosis;
  /** What cells and frames open. */
  readonly flame: Flame;
  /** What is diagnosed. */
  readonly subject: Subject;
  /** What proves a setting once it is applied. */
  readonly verify?: ComponentChildren;
  /** Further buttons. */
  readonly children?: ComponentChildren;
}

export function Report({ diagnosis, flame, subject, verify, children }: Props) {
  const { workers, limits } = diagnosis;
  return (
    <div class="diagnosis" data-diagnosis>
      <div class="diagnosis-tools">
        <ProcessChoice diagnosis={diagnosis} subject={subject} />
        <span class="push" />
        {children}
        <button type="button" onClick={() => void copyAnswer(checkups.report(subject), "Report")}>
          Copy report
        </button>
        <button type="button" onClick={() => window.print()}>
          Print
        </button>
      </div>
      <VerdictHead diagnosis={diagnosis} />
      <div class="cards">
        <Journeys diagnosis={diagnosis} flame={flame} />
        <Findings diagnosis={diagnosis} flame={flame} verify={verify} />
        <CostMatrix matrix={diagnosis.matrix} flame={flame} />
        <WorkerTable
          workers={workers}
          limits={limits}
          accounted={!diagnosis.not_measured.includes("cpu_time")}
        />
        <EventLoopPart loop={diagnosis.event_loop} limits={limits} />
        <NetworkCard diagnosis={diagnosis} />
        <GoodNews diagnosis={diagnosis} />
        <ConfigurationCard diagnosis={diagnosis} />
        <Limits diagnosis={diagnosis} />
      </div>
    </div>
  );
}
